"""`backplane bridge torch PLUGIN.so`: the operators and devices that a plugin provides to PyTorch, and the omitted ones with reasons."""

from __future__ import annotations

import backplane as bp

from . import _native_ops
from ._build import load_cached
from ._registered_ops import refusal, register_ops, schema_of
from ._tensors import NAMES

__all__ = ["report"]

_RULES = {"  autograd (vjp) ": "reverse mode", "  forward mode (jvp) ": "forward mode"}


def report(path):
    """The text for one plugin, which is loaded. Errors: as bp.load_plugin."""
    plugin = bp.load_plugin(path)
    register_ops()
    operators, left_out = [], []
    for name in sorted(plugin.ops):
        namespace, _, short = name.partition("::")
        op = getattr(getattr(bp.ops, namespace), short)
        if schema_of(name) is None:
            left_out.append(f"  {name}: {refusal(op)}")
        else:
            operators += _operator(name, op)
    devices = [line for info in bp.devices() if info.device.backend in plugin.backends for line in _device(info)]
    lines = [f"{plugin.name} {plugin.version} ({plugin.path})"]
    lines += _section("operators, as torch.ops.NAMESPACE.NAME", operators)
    lines += _section("ops without an operator", left_out)
    lines += _section("devices, as backplane.torch.device(NAME)", devices)
    return "\n".join(lines)


def _section(title, lines):
    return ["", title, *(lines or ["  none"])]


def _operator(name, op):
    """The schema, and how calls, derivatives and vmap are computed."""
    kernel = "native" if name in _native_ops.registered else "Python" if load_cached() is not None else "Python (backplane-torch build compiles native ones)"
    draws = any(row[0] == "generator" for row in op.parameters)
    lines = [f"  {name.replace('::', '.')}{schema_of(name)}", f"      kernel: {kernel}"]
    lines += ["      derivatives and vmap: refused, because it draws random numbers"] if draws else _rules(name)
    refused = _refused_dtypes(op)
    return lines + [f"      dtypes that it refuses: {', '.join(refused)}"] * bool(refused)


def _rules(name):
    """Derivatives by argument, and the batch rule, as `backplane explain` states them."""
    found = {}
    for line in bp.explain(name).splitlines():
        for word, title in _RULES.items():
            if line.startswith(word):
                argument, _, rule = line.removeprefix(word).strip().partition(": ")
                found.setdefault(title, []).append(f"{argument} {rule.partition(':')[0].partition('  ')[0]}")
        if line.startswith("  batch: "):
            found["vmap"] = [line.removeprefix("  batch: ").partition("  (")[0].partition(": ")[0]]
    return [f"      {title}: {', '.join(rules)}" for title, rules in found.items()]


def _refused_dtypes(op):
    """The dtypes that the op refuses in its tensor arguments. Empty if no call can be constructed."""
    verdicts = {}
    for dtype in _dtypes():
        try:
            op.infer(**{row[0]: _example(row[4], dtype) for row in op.parameters if row[0] != "out" and not row[2] and not row[4].endswith("None")})
            verdicts[dtype.name] = True
        except bp.DtypeError:
            verdicts[dtype.name] = False
        except (bp.BackplaneError, KeyError):
            pass
    return [name for name, accepted in verdicts.items() if not accepted] if any(verdicts.values()) else []


def _example(type_, dtype):
    tensor = bp.zeros((2, 2), dtype=dtype)
    return {"Tensor": tensor, "Sequence[Tensor]": [tensor], "Scalar": 1, "bool": False, "str": "sum", "Size": 1, "Index": 0, "Axis": 0, "Axes": [0], "Shape": [2, 2],
            "Sequence[Size]": [1, 1], "Sequence[Index]": [0, 0], "DType": dtype}[type_]  # fmt: skip


def _device(info):
    counts = ", ".join(f"{count} by {how}" for how, count in sorted(info.ops.items()))
    lacks = [dtype.name for dtype in _dtypes() if not _holds(info.device, dtype)]
    lines = [f"  {info.device}: {info.description}", f"      ops of the registry: {counts}"]
    if lacks:
        lines.append(f"      dtypes that it refuses: {', '.join(lacks)}")
    return lines


def _dtypes():
    return [getattr(bp, name) for name in NAMES]


def _holds(device, dtype):
    """Does the device fill and compare tensors of this dtype, itself or with the host's help?"""
    try:
        bp.equal(bp.full((2,), 1, dtype=dtype, device=device), bp.full((2,), 1, dtype=dtype, device=device))
        return True
    except (bp.DtypeError, bp.MissingRuleError):
        return False
