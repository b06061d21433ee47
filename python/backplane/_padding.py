"""What pad puts around a tensor in NumPy's forms that no op has: a constant of each side's own."""

from . import _core
from ._ops import NAMESPACE, ops

op = getattr(ops, NAMESPACE)


def _is_several(values):
    return hasattr(values, "__iter__") and getattr(values, "ndim", 1) > 0


def pad_constants(x, before, after, values):
    """x padded with a pair of constants (before, after), or with a pair for each axis; of corners the last axis's are seen."""
    values = list(values)
    pairs = [list(pair) for pair in values] if all(map(_is_several, values)) else [values]
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
