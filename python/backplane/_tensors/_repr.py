"""Tensors as text, after NumPy's manner: aligned columns, long axes cut in the middle."""

import contextvars

from .. import _core
from .._calls._ops import NAMESPACE, ops

op = getattr(ops, NAMESPACE)

# edgeitems: elements shown at each end of a long axis; threshold: elements above which axes are cut.
# PyTorch's names for sets of them.
PROFILES = {
    "default": {"precision": 4, "threshold": 1000, "edgeitems": 3, "linewidth": 80},
    "short": {"precision": 2, "threshold": 1000, "edgeitems": 2, "linewidth": 80},
    "full": {"precision": 4, "threshold": float("inf"), "edgeitems": 3, "linewidth": 80},
}
OPTIONS = {**PROFILES["default"], "sci_mode": None}
_OF_BLOCK = contextvars.ContextVar("printoptions")  # those that a `with` is in have been given; none of another thread's
MOST_DIGITS = 1074  # after the point: the least float64 above 0, 2 ** -1074, has as many


def options():
    """The options of the process, overridden by the `with` blocks that this thread is in."""
    return {**OPTIONS, **_OF_BLOCK.get({})}


def block_of(make_options):
    """What VariableBlock takes for a block of the options that make_options gives when it is entered."""

    def make():
        given = {**_OF_BLOCK.get({}), **make_options()}
        return given, {**OPTIONS, **given}

    return _OF_BLOCK, make


def change_options(given):
    """Of the block that this thread is in, else of the process."""
    if _OF_BLOCK.get(None) is None:
        OPTIONS.update(given)
    else:
        _OF_BLOCK.set({**_OF_BLOCK.get(), **given})


def tensor_repr(x):
    """tensor([1., 2.], device='sim'): the dtype and the device where they are not the default.

    Inside transforms the primal value, with their names, outermost first: tensor([1., 2.], inside=grad(jvp)). A batch
    has no single value: tensor(<batched>, shape=(2,), dtype=float32, inside=vmap).
    """
    transforms = _core.transforms_of(x)
    if transforms:
        try:
            value = _core.plain_value(x, "repr").detach()
        except _core.BackplaneError:
            kind = "batched" if "vmap" in transforms else "traced"
            return f"tensor(<{kind}>, shape={x.shape}, dtype={x.dtype.name}, inside={_nested(transforms)})"
        return f"{tensor_repr(value)[:-1]}, inside={_nested(transforms)})"
    if not _core.has_values(x):
        return f"tensor(<outside of what is traced>, shape={x.shape}, dtype={x.dtype.name})"
    suffix = _suffix(x)
    if x.size == 0:
        shape = "" if x.ndim == 1 else f", shape={x.shape}"
        return f"tensor([]{shape}{suffix})"
    shown = _cut(x.detach()) if x.size > options()["threshold"] else x.detach()
    values = shown.tolist()
    leaves = list(_leaves(values, x.ndim))
    texts = _format_all(leaves)
    width = max(map(len, texts))
    body = _layout(values, x.ndim, iter(text.rjust(width) for text in texts), x, "tensor(")
    return f"tensor({body}{suffix})"


def _nested(transforms):
    """('jvp', 'grad'), innermost first, as grad(jvp)."""
    text = ""
    for name in transforms:
        text = f"{name}({text})" if text else name
    return text


def _suffix(x):
    defaults = (_core.bool, _core.int64, _core.default_float())
    parts = [] if x.dtype in defaults else [f"dtype={x.dtype.name}"]
    if x.device != "cpu":
        parts.append(f"device='{x.device}'")
    if x.grad_op:
        parts.append(f"grad_op={x.grad_op}")
    elif x.requires_grad:
        parts.append("requires_grad=True")
    return "".join(", " + part for part in parts)


def _cut(x):
    """The edges of every long axis side by side."""
    edge = options()["edgeitems"]
    for axis in range(x.ndim):
        if x.shape[axis] > 2 * edge:
            whole = (slice(None),) * axis
            x = op.concat([x[(*whole, slice(None, edge))], x[(*whole, slice(x.shape[axis] - edge, None))]], axis=axis)
    return x


def _leaves(values, depth):
    if depth == 0:
        yield values
    else:
        for value in values:
            yield from _leaves(value, depth - 1)


def _format_all(leaves):
    kind = type(leaves[0])
    if kind is float:
        return _format_floats(leaves)
    if kind is complex:
        reals = _format_floats([value.real for value in leaves])
        imaginaries = _format_floats([value.imag for value in leaves])
        return [f"{a}{'' if b.startswith('-') else '+'}{b}j" for a, b in zip(reals, imaginaries)]
    return [str(value) for value in leaves]


def _format_floats(leaves):
    finite = [abs(value) for value in leaves if value == value and abs(value) != float("inf")]
    nonzero = [value for value in finite if value]
    given = options()
    digits, wanted = given["precision"], given["sci_mode"]
    wide = bool(nonzero) and (max(nonzero) >= 1e8 or min(nonzero) < 10.0 ** min(-digits, -4) or max(nonzero) / min(nonzero) > 1e6)
    if wide if wanted is None else wanted:
        return [f"{value:.{digits}e}" for value in leaves]
    texts = [f"{value:.{digits}f}" for value in leaves]
    # As many decimals as the longest needs, at least the point.
    decimals = max((len(text.split(".")[1].rstrip("0")) for text in texts if "." in text), default=0)
    return [f"{value:.{decimals}f}" + ("" if decimals or value - value != 0 else ".") for value in leaves]


def _layout(values, depth, texts, x, lead):
    if depth == 0:
        return next(texts).strip()
    given = options()
    edge, width = given["edgeitems"], given["linewidth"]
    cut = x.size > given["threshold"] and x.shape[x.ndim - depth] > 2 * edge
    items = [_layout(value, depth - 1, texts, x, lead + "[") if depth > 1 else next(texts) for value in values]
    if cut:
        items.insert(edge, "...")
    indent = " " * (len(lead) + 1)
    if depth > 1:
        return "[" + (",\n" + "\n" * (depth - 2) + indent).join(items) + "]"
    lines, line = [], ""
    for item in items:
        if line and len(indent) + len(line) + len(item) + 2 > width:
            lines.append(line)
            line = ""
        line += (", " if line else "") + item
    return "[" + (",\n" + indent).join([*lines, line]) + "]"
