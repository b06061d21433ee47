"""pad: NumPy's modes, counts of all axes at once, and a constant for each side, which no op has."""

from __future__ import annotations

from .. import _core
from .._calls._ops import NAMESPACE, ops
from .._calls._tensor_argument import takes_tensor
from ._manipulation_functions import normalized_axis

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from .._core import Tensor

__all__ = ["pad"]

op = getattr(ops, NAMESPACE)


def is_several(values):
    """Are they a sequence, or an array with axes, and no number?"""
    return hasattr(values, "__iter__") and getattr(values, "ndim", 1) > 0


def _pairs(argument, values, ndim):
    """A number, a pair (before, after), or a pair for each axis, as the pair of each axis."""
    values = list(values) if is_several(values) else [values]
    pairs = [list(pair) for pair in values] if all(map(is_several, values)) else [values]
    pairs = pairs * ndim if len(pairs) == 1 else pairs
    if len(pairs) != ndim or not all(len(pair) in (1, 2) for pair in pairs):
        raise _core.ArgumentValueError(
            f"pad: argument {argument}: found {values!r}, expected a number, a pair (before, after), or a pair for each of {ndim} axes"
        )
    return [[pair[0], pair[-1]] for pair in pairs]


def pad_constants(x, before, after, values):
    """x padded with a pair of constants (before, after), or with a pair for each axis; of corners the last axis's are seen."""
    for axis, pair in enumerate(_pairs("constant_values", values, x.ndim)):
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


_CONTINUED = {"edge": "replicate", "reflect": "reflect", "symmetric": "symmetric", "wrap": "circular"}
_STATISTICS = ("maximum", "mean", "median", "minimum")
_MODES = ("constant", *_CONTINUED, *_STATISTICS, "linear_ramp", "empty")
# What each mode reads beside the counts, and what says that it was left out.
_READS = {
    "constant": "constant_values", "linear_ramp": "end_values", "reflect": "reflect_type", "symmetric": "reflect_type",
    **dict.fromkeys(_STATISTICS, "stat_length")
}  # fmt: skip
_LEFT_OUT = {"constant_values": 0, "end_values": 0, "stat_length": None, "reflect_type": "even"}


def _check_options(mode, given, options):
    if not isinstance(mode, str) or mode not in _MODES:
        raise _core.ArgumentValueError(f"pad: argument mode: found {mode!r}, expected a function or one of {', '.join(_MODES)}")
    for argument, value in {**given, **options}.items():
        is_left_out = argument in _LEFT_OUT and not (is_several(value) and not isinstance(value, str)) and value == _LEFT_OUT[argument]
        if argument != _READS.get(mode) and not is_left_out:
            raise _core.ArgumentValueError(f"pad: argument {argument}: found {value!r} with mode {mode!r}, which does not read it")
    if given["reflect_type"] not in ("even", "odd"):
        raise _core.ArgumentValueError(f"pad: argument reflect_type: found {given['reflect_type']!r}, expected 'even' or 'odd'")


def padded(x, before, after, mode, given, options):
    """x with `before` and `after` elements around each axis. given: the arguments that one mode or another reads, by name."""
    from . import _padding_modes as modes

    if callable(mode):
        return modes.by_function(x, before, after, mode, options)
    _check_options(mode, given, options)
    if mode == "constant":
        values = given["constant_values"]
        return pad_constants(x, before, after, values) if is_several(values) else op.pad(x, before, after, value=values)
    if mode == "empty":
        return op.pad(x, before, after)
    if not any(before) and not any(after):
        return op.copy(x)
    if mode in _CONTINUED and given["reflect_type"] == "even":
        return op.pad_edges(x, before, after, mode=_CONTINUED[mode])
    pairs = _pairs(_READS[mode], given[_READS[mode]], x.ndim) if mode in _STATISTICS or mode == "linear_ramp" else None
    for axis, counts in enumerate(zip(before, after)):
        if not any(counts):
            continue
        if x.shape[axis] == 0:
            raise _core.ArgumentValueError(f"pad: argument x: found no elements along axis {axis}, expected at least one with mode {mode!r}")
        if mode in _STATISTICS:
            x = modes.by_statistic(x, axis, counts, mode, pairs[axis])
        elif mode == "linear_ramp":
            x = modes.by_ramp(x, axis, counts, pairs[axis])
        else:
            x = modes.by_odd_reflection(x, axis, counts, mode == "symmetric")
    return x


@takes_tensor
def pad(
    x: Tensor, pad_width: int | Sequence[int | Sequence[int]] | dict[int, int | Sequence[int]], mode: str | Callable[..., Any] = "constant", *,
    constant_values: float | Sequence[float | Sequence[float]] = 0, end_values: float | Sequence[float | Sequence[float]] = 0,
    stat_length: int | Sequence[int | Sequence[int]] | None = None, reflect_type: str = "even", **options: Any
) -> Tensor:
    """x with elements added around it: pad_width is one count, a pair (before, after), such a pair for each axis, or counts or pairs by axis in a dict.

    mode: 'constant' (constant_values, a number or pairs likewise), 'edge', 'reflect' (mirrored about the edge), 'symmetric' (the edge
    itself too), 'wrap', 'maximum', 'minimum', 'mean' or 'median' (of the stat_length elements at each end), 'linear_ramp' (from the
    edge to end_values), 'empty' (any values; zeros here), or a function(vector, (before, after), axis, options) that writes into each
    vector of the tensor padded with 0. reflect_type: 'odd' puts twice the edge less the mirrored element.
    """
    if isinstance(pad_width, dict):
        pad_width = by_axis(x.ndim, {normalized_axis("pad", axis, x.ndim, "pad_width"): pair for axis, pair in pad_width.items()})
    given = {"constant_values": constant_values, "end_values": end_values, "stat_length": stat_length, "reflect_type": reflect_type}
    return padded(x, *counts_around(x, pad_width), mode, given, options)
