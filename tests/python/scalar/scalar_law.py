"""What the tests of scalar functions share: the functions of the registry's header, the values on which each dialect is
asked, and the comparison with the CPU backend.

A dialect's test gives `run(functions)`: for a list of (function, arrays) the arrays of results. Arrays have one element per
call of a function; all of one call are equally long.
"""

import itertools
import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

import backplane as bp
import numpy as np

BUILD = Path(os.environ.get("BACKPLANE_BUILD", ""))
REGISTRY = Path(__file__).parents[3] / "ops.yaml"
ENTRIES = {entry["name"].split("::")[1]: entry for entry in json.loads((Path(bp.__file__).parent / "samples.json").read_text())["ops"]}
DTYPES = (
    "bool",
    *(sign + width for sign in ("int", "uint") for width in ("8", "16", "32", "64")),
    *("float32", "float64", "complex64", "complex128"),
)
ELEMENTWISE_FAMILIES = ("unary", "binary", "ternary", "compare", "copy", "cast")
PARTS = {"complex64": "float32", "complex128": "float64"}


@dataclass(frozen=True)
class Function:
    op: str
    dtype: str  # of the computation
    params: tuple  # their dtypes
    result: str
    name: str

    @property
    def entry(self):
        return ENTRIES[self.op]


def write_headers(folder, *dialects):
    """The headers of the registry, in a folder to include from."""
    command = [BUILD / "bin/backplane-codegen", "--base", "--ops", REGISTRY, "--out", folder, "--emit", "scalar"]
    subprocess.run([*command, "--dialect", ",".join(dialects)], check=True, timeout=60)
    return Path(folder) / "include"


def _param(arg, dtype):
    return arg["accepts"][0] if arg["type"] == "Tensor" and not arg["promote"] else dtype


def _results(entry, dtype):
    rule = entry["results"][0]["dtype"]
    if rule.startswith("dtype |"):
        return DTYPES
    kinds = {"compute": dtype, "real": PARTS.get(dtype, dtype)}
    kinds["complex"] = {part: whole for whole, part in PARTS.items()}.get(dtype)
    return (kinds.get(rule, rule),)


def functions():
    """All functions of the registry, by entry."""
    for op, entry in ENTRIES.items():
        for dtype in entry["scalar"]["dtypes"]:
            args = [arg for arg in entry["args"] if arg["type"] != "Dtype"]
            params = tuple(_param(arg, dtype) for arg in args)
            for result in _results(entry, dtype):
                name = f"bp_{op}_{dtype}" + (f"_{result}" if len(args) < len(entry["args"]) else "")
                yield Function(op, dtype, params, result, name)


def _floats(dtype):
    info = np.finfo(dtype)
    sizes = [0, info.smallest_subnormal, info.tiny, info.eps, 1e-3, 0.3, 0.5, 1, 1.5, 2, 2.5, 3, 7.25, 10, 20.5]
    sizes += [88.5, 100.3, 710, 1000, 2.0**24 + 2, 2.0**31, 2.0**63, 1e30, info.max, np.inf]
    return [sign * dtype(size) for size in sizes for sign in (1, -1)] + [dtype(np.nan)]


def values(dtype):
    """Those at which functions of the dtype are special, and some between."""
    if dtype == "bool":
        return np.array([False, True])
    kind = np.dtype(dtype).type
    if dtype.startswith("float"):
        return np.array(_floats(kind), dtype)
    if dtype.startswith("complex"):
        parts = [0.0, -0.0, 1.0, -1.0, 0.3, -2.5, 1e-3, 6.0]
        return np.array([complex(re, im) for re in parts for im in parts], dtype)
    info = np.iinfo(dtype)
    near = [info.min, info.min + 1, -7, -2, -1, 0, 1, 2, 3, 5, 7, 8, 31, 32, 63, 64, info.max // 3, info.max - 1, info.max]
    return np.array(sorted({n for n in near if n >= info.min}), dtype)


# Where a function that follows from a decomposition is asked: at special values a kernel may differ from that.
ORDINARY = (-2.3, -1.1, -0.4, 0.2, 0.7, 1.6, 3.1)


def arguments(function):
    """Every combination of values, as one array per parameter; few where there are three."""
    each = [values(dtype) for dtype in function.params]
    if not function.entry["scalar"]["stated"]:
        plain = {kind: np.array(ORDINARY, dtype) + (0.3j if kind == "c" else 0) for kind, dtype in (("f", "f8"), ("c", "c16"))}
        each = [plain.get(some.dtype.kind, some).astype(some.dtype) for some in each]
    if len(each) == 3:
        each = [list(some[:: max(1, len(some) // 9)]) for some in each]
    for place, arg in enumerate(function.entry["args"][: len(each)]):
        if arg["type"] == "Scalar":  # a number of the call, the same for all elements
            each[place] = [np.dtype(function.dtype).type(arg.get("default", 0.5))]
    rows = list(itertools.product(*each))
    return [np.array(column, dtype) for column, dtype in zip(zip(*rows), function.params)]


def reference(function, arrays):
    """What the CPU backend gives, and for which elements: it refuses a division of integers by 0 and the like."""
    op = getattr(bp.ops.bp, function.op)
    args, scalars = [], {}
    for arg, array in zip(function.entry["args"], arrays):
        if arg["type"] == "Scalar":
            scalars[arg["name"]] = array[0].item()
        else:
            args.append(array)

    def call(columns):
        tensors = [bp.asarray(np.ascontiguousarray(column), device="cpu") for column in columns]
        dtype = [getattr(bp, function.result)] if any(arg["type"] == "Dtype" for arg in function.entry["args"]) else []
        return op(*tensors, *dtype, **scalars).numpy()

    everywhere = np.ones(len(arrays[0]), bool)
    try:
        return call(args), everywhere
    except bp.DataError:
        pass
    out = np.zeros(len(arrays[0]), function.result)
    for i in range(len(out)):
        try:
            out[i] = call([column[i : i + 1] for column in args])[0]
        except bp.DataError:
            everywhere[i] = False
    return out, everywhere


def _size(values):
    return np.abs(values.astype(np.complex128 if np.iscomplexobj(values) else np.float64))


def mistakes(function, arrays, found, units, flushes=False):
    """The elements where `found` is not the reference's value: exactly, or within `units` of the last place (of a complex
    number: of its modulus). `flushes`: the dialect's device may take subnormal numbers for 0."""
    expected, asked = reference(function, arrays)
    assert found.dtype == expected.dtype == np.dtype(function.result) and found.shape == expected.shape
    if not np.issubdtype(expected.dtype, np.inexact):
        wrong = found != expected
    else:
        info = np.finfo(expected.dtype)
        with np.errstate(all="ignore"):
            exact = function.entry["compare"] == "exact"
            complex_or_derived = np.iscomplexobj(expected) or not function.entry["scalar"]["stated"]
            tolerance = max(units, function.entry["tolerance"]) * float(info.eps) * (16 if complex_or_derived else not exact)
            size = np.where(np.isfinite(expected), _size(expected), 0)
            near = _size(found.astype(np.clongdouble) - expected) <= size * tolerance + 2 * float(info.smallest_subnormal)
        same = (found == expected) | (np.isnan(found) & np.isnan(expected)) | (near & np.isfinite(expected))
        if not np.iscomplexobj(expected):
            same &= (np.signbit(found) == np.signbit(expected)) | (expected != 0) | np.isnan(expected)
        wrong = ~same
        if flushes:
            tiny = [(_size(array) < float(np.finfo(array.dtype).tiny)) & (array != 0) for array in arrays if array.dtype.kind in "fc"]
            wrong &= ~np.any([*tiny, (_size(expected) < 4 * float(info.tiny)) & (_size(found) < 4 * float(info.tiny))], axis=0)
    return [
        (function.name, *(column[i].item() for column in arrays), found[i].item(), "expected", expected[i].item())
        for i in np.flatnonzero(wrong & asked)
    ]
