"""NumPy's forms of pad that no op has: counts of all axes at once, and a constant of each side's own."""

from . import _core
from ._ops import NAMESPACE, ops

op = getattr(ops, NAMESPACE)


def is_several(values):
    """Are they a sequence, or an array with axes, and no number?"""
    return hasattr(values, "__iter__") and getattr(values, "ndim", 1) > 0


def pad_constants(x, before, after, values):
    """x padded with a pair of constants (before, after), or with a pair for each axis; of corners the last axis's are seen."""
    values = list(values)
    pairs = [list(pair) for pair in values] if all(map(is_several, values)) else [values]
    pairs = pairs * x.ndim if len(pairs) == 1 else pairs
    if len(pairs) != x.ndim or not all(len(pair) in (1, 2) for pair in pairs):
        raise _core.ArgumentValueError(
            f"pad: argument constant_values: found {values!r}, expected a number, a pair (before, after), or a pair for each of {x.ndim} axes"
        )
    for axis, pair in enumerate(pairs):
        for counts, value, is_before in ((before, pair[0], True), (after, pair[-1], False)):
            added, none = [n if place == axis else 0 for place, n in enumerate(counts)], [0] * x.ndim
            x = op.pad(x, *((added, none) if is_before else (none, added)), value=value)
    return x


def counts_around(x, pad_width):
    """What pad_width adds before and after each axis."""
    if hasattr(pad_width, "tolist"):  # an array or a tensor
        pad_width = pad_width.tolist()
    given = list(pad_width) if hasattr(pad_width, "__iter__") else [pad_width] * 2
    pairs = [list(pair) if hasattr(pair, "__iter__") else [pair] for pair in given]
    if given and len(given) <= 2 and all(len(pair) == 1 for pair in pairs):  # (before, after), or one count, for every axis
        pairs = [[pairs[0][0], pairs[-1][0]]]
    if len(pairs) == 1:
        pairs = pairs * x.ndim
    pairs = [pair * 2 if len(pair) == 1 else pair for pair in pairs]
    if len(pairs) != x.ndim or not all(len(pair) == 2 and all(hasattr(n, "__index__") for n in pair) for pair in pairs):
        raise _core.ArgumentValueError(f"pad: argument pad_width: found {pad_width!r}, expected a count, a pair (before, after), or a pair for each of {x.ndim} axes")
    if any(n < 0 for pair in pairs for n in pair):
        raise _core.ArgumentValueError(f"pad: argument pad_width: found {pad_width!r}, expected counts of at least 0; index to take elements away")
    return [pair[0].__index__() for pair in pairs], [pair[1].__index__() for pair in pairs]


def by_axis(ndim, widths):
    """The pair of each axis, of counts or pairs by axis."""
    pairs = [widths.get(axis, 0) for axis in range(ndim)]
    return [pair if hasattr(pair, "__iter__") else (pair, pair) for pair in pairs]
