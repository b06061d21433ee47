"""pad, in NumPy's form."""

from . import _core
from ._ops import NAMESPACE, ops
from ._tensor_argument import takes_tensor

op = getattr(ops, NAMESPACE)

__all__ = ["pad"]

# NumPy's words for the ways in which an axis goes on, and those of the op.
_MODES = {"edge": "replicate", "reflect": "reflect", "symmetric": "symmetric", "wrap": "circular"}


@takes_tensor
def pad(x, /, pad_width, mode="constant", *, constant_values=0):
    """x with elements added around it: pad_width is one count, a pair (before, after), or such a pair for each axis.

    mode: 'constant' (constant_values), 'edge', 'reflect' (mirrored about the edge), 'symmetric' (the edge itself too) or 'wrap'.
    """
    before, after = _counts(x, pad_width)
    if mode == "constant":
        return op.pad(x, before, after, value=constant_values)
    if not isinstance(mode, str) or mode not in _MODES:
        raise _core.ArgumentValueError(f"pad: argument mode: found {mode!r}, expected one of constant, {', '.join(_MODES)}")
    if constant_values != 0:
        raise _core.ArgumentValueError(f"pad: argument constant_values: found {constant_values} with mode {mode!r}, expected it with 'constant' alone")
    return op.pad_edges(x, before, after, mode=_MODES[mode])


def _counts(x, pad_width):
    """What pad_width adds before and after each axis."""
    given = list(pad_width) if hasattr(pad_width, "__iter__") else [pad_width] * 2
    pairs = [list(pair) if hasattr(pair, "__iter__") else [pair] for pair in given]
    if len(given) <= 2 and all(len(pair) == 1 for pair in pairs):  # (before, after), or one count, for every axis
        pairs = [[pairs[0][0], pairs[-1][0]]]
    if len(pairs) == 1:
        pairs = pairs * x.ndim
    pairs = [pair * 2 if len(pair) == 1 else pair for pair in pairs]
    if len(pairs) != x.ndim or not all(len(pair) == 2 and all(hasattr(n, "__index__") for n in pair) for pair in pairs):
        raise _core.ArgumentValueError(f"pad: argument pad_width: found {pad_width!r}, expected a count, a pair (before, after), or a pair for each of {x.ndim} axes")
    if any(n < 0 for pair in pairs for n in pair):
        raise _core.ArgumentValueError(f"pad: argument pad_width: found {pad_width!r}, expected counts of at least 0; index to take elements away")
    return [pair[0].__index__() for pair in pairs], [pair[1].__index__() for pair in pairs]
