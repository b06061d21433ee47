"""Order statistics: quantile, percentile, median, and their forms that leave NaN out."""

from __future__ import annotations

import math

from .. import _core
from ._data_type_functions import isdtype
from .._calls._half_floats import rounds_once
from .._calls._ops import NAMESPACE, ops
from ._manipulation_functions import normalized_axis
from .._calls._tensor_argument import require_real, takes_dim, takes_tensor, takes_words
from .._runtime._wraps import wraps

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from .._core import Tensor

op = getattr(ops, NAMESPACE)

__all__ = ["median", "nanmedian", "nanpercentile", "nanquantile", "percentile", "quantile"]

# Hyndman and Fan, Sample Quantiles in Statistical Packages, 1996: alpha and beta of the methods between two elements.
_ALPHA_BETA = {
    "interpolated_inverted_cdf": (0, 1), "hazen": (0.5, 0.5), "weibull": (0, 0), "median_unbiased": (1 / 3.0, 1 / 3.0),
    "normal_unbiased": (3 / 8.0, 3 / 8.0)
}  # fmt: skip
# Those that choose an element, and keep its dtype.
_OF_ELEMENTS = ("lower", "higher", "nearest", "inverted_cdf", "closest_observation")
_METHODS = ("linear", "midpoint", *_OF_ELEMENTS, "averaged_inverted_cdf", *_ALPHA_BETA)


def _axes(function, axis, ndim):
    if axis is None:
        return list(range(ndim))
    axes = axis if isinstance(axis, (tuple, list)) else [axis]
    return [normalized_axis(function, one, ndim) for one in axes]


def _lanes(function, x, axes):
    """x with the elements over axes as its last axis."""
    rest = [place for place in range(x.ndim) if place not in axes]
    size = math.prod(x.shape[axis] for axis in axes)
    if size == 0:
        raise _core.ArgumentValueError(f"{function}: argument x: found no elements over axes {axes}, expected at least one")
    return op.reshape(op.permute_dims(x, rest + axes), [x.shape[place] for place in rest] + [size])


def _fractions(function, q, x, scale):
    """q / scale as a float64 tensor. Errors: ValueError outside [0, 1]; inside a transform there is no one value to look at."""
    if not isinstance(q, _core.Tensor):
        q = _core.asarray(q, dtype=_core.float64, device=x.device)
    elif q.dtype is not _core.float64:
        require_real(function, "q", q)
        q = op.cast(q, _core.float64)
    if _core.has_values(q) and not bool(op.all(op.logical_and(op.greater_equal(q, 0), op.less_equal(q, scale)))):
        raise _core.ArgumentValueError(f"{function}: argument q: found a number outside [0, {scale}], expected numbers within")
    return op.divide(q, scale) if scale != 1 else q


def _positions(q, last, method):
    """Where the q-quantiles lie among elements 0 to last; a position outside means the element at that end."""
    if method in _ALPHA_BETA:
        alpha, beta = _ALPHA_BETA[method]
        offset = op.add(op.multiply(q, 1 - alpha - beta), alpha)
        return op.subtract(op.add(op.multiply(q, last + 1), offset), 1)
    if method in ("inverted_cdf", "averaged_inverted_cdf"):
        return op.subtract(op.multiply(q, last + 1), 1)
    if method == "closest_observation":
        return op.subtract(op.multiply(q, last + 1), 1.5)
    return op.multiply(q, last)


def _nearest_even(position):
    """The next position, but of one that is whole and odd itself. It counts from 0, and the rule's even ones from 1."""
    low = op.floor(position)
    stays = op.logical_and(op.equal(position, low), op.equal(op.remainder(low, 2), 1))
    return op.where(stays, low, op.add(low, 1))


_CHOSEN = {
    "lower": op.floor, "higher": op.ceil, "nearest": op.round, "inverted_cdf": op.ceil, "closest_observation": _nearest_even
}  # fmt: skip


def _between(ordered, position, last, method):
    """The elements of sorted lanes at fractional positions (..., m), from 0 to last."""

    def at(where):
        where = op.cast(op.maximum(op.minimum(where, last), 0), _core.int64)
        return op.take_along_axis(ordered, where, axis=-1)

    if method in _CHOSEN:
        return at(_CHOSEN[method](position))
    low = op.floor(position)
    part = op.subtract(position, low)
    if method == "midpoint":
        part = op.where(op.greater(part, 0), 0.5, part)
    elif method == "averaged_inverted_cdf":
        part = op.where(op.greater(part, 0), 1.0, 0.5)
    first, second, share = at(low), at(op.add(low, 1)), op.cast(part, ordered.dtype)
    step = op.subtract(second, first)
    # Of elements that are apart by more than the dtype holds, or infinite, the weighted sum is the one that exists.
    summed = op.add(op.multiply(first, op.subtract(1, share)), op.multiply(second, share))
    summed = op.where(op.equal(share, 1), second, summed)  # a part just below 1 may be 1 in this dtype
    found = op.where(op.isfinite(step), op.add(first, op.multiply(step, share)), summed)
    return op.where(op.greater(part, 0), found, first)


def _quantile(function, x, q, axis, method, keepdims, skip_nan, scale=1):
    if method not in _METHODS:
        raise _core.ArgumentValueError(f"{function}: argument method: found {method!r}, expected one of {', '.join(_METHODS)}")
    require_real(function, "x", x)
    is_floating = isdtype(x.dtype, "real floating")
    if not is_floating and method not in _OF_ELEMENTS:
        x, is_floating = op.cast(x, _core.default_float()), True
    axes = _axes(function, axis, x.ndim)
    q = _fractions(function, q, x, scale)
    lanes = _lanes(function, x, axes)
    ordered = op.sort(lanes, axis=-1)
    if is_floating and skip_nan:
        last = op.subtract(op.sum(op.logical_not(op.isnan(lanes)), [-1], dtype=_core.float64, keepdims=True), 1)
    else:
        last = lanes.shape[-1] - 1
    position = _positions(op.reshape(q, [1] * (lanes.ndim - 1) + [-1]), last, method)
    found = _between(ordered, position, last, method)
    if is_floating and not skip_nan:
        # NaN sorts last: where the last element is one, so is the result.
        top = op.slice(ordered, [-1], [-1], [None], [1])
        found = op.where(op.isnan(top), top, found)
    shape = [1 if keepdims and place in axes else x.shape[place] for place in range(x.ndim) if keepdims or place not in axes]
    return op.reshape(op.moveaxis(found, -1, 0), [*q.shape, *shape])


_in_pytorchs_word = takes_words([("interpolation", "method")])


def _medians(function):
    """Gives NumPy's median or nanmedian PyTorch's form: over dim a pair, of two middle elements the smaller."""

    @wraps(function)
    def median(*args, dim=None, keepdim=False, **more):
        if dim is None:
            return function(*args, **more, keepdims=True) if keepdim else function(*args, **more)
        if not args and "input" in more:
            args = (more.pop("input"),)
        if len(args) != 1 or more:
            raise _core.ArgumentTypeError(f"{function.__name__}: found other arguments beside dim, expected x, dim and keepdim alone")
        from ._lower_median import lower_median

        return lower_median(function.__name__, args[0], dim, keepdim)

    return median


@rounds_once
@_in_pytorchs_word
@takes_dim
@takes_tensor
def quantile(
    x: Tensor, q: Tensor | float | Sequence[Any], axis: int | Sequence[int] | None = None, *, method: str = "linear",
    keepdims: bool = False
) -> Tensor:
    """The q-quantiles of x over axes, with q's shape in front. method: any of NumPy's thirteen.

    linear, midpoint, averaged_inverted_cdf, interpolated_inverted_cdf, hazen, weibull, median_unbiased and normal_unbiased compute
    a number between two elements. lower, higher, nearest, inverted_cdf and closest_observation choose an element, and keep its
    dtype. NaN among the elements makes NaN. Differentiable in x, and where the number moves with q, in q.
    Source: Hyndman and Fan, Sample Quantiles in Statistical Packages, 1996.
    """
    return _quantile("quantile", x, q, axis, method, keepdims, False)


@rounds_once
@_in_pytorchs_word
@takes_dim
@takes_tensor
def percentile(
    x: Tensor, q: Tensor | float | Sequence[Any], axis: int | Sequence[int] | None = None, *, method: str = "linear",
    keepdims: bool = False
) -> Tensor:
    """quantile of q / 100."""
    return _quantile("percentile", x, q, axis, method, keepdims, False, 100)


@rounds_once
@_medians
@takes_tensor
def median(x: Tensor, axis: int | Sequence[int] | None = None, *, keepdims: bool = False) -> Tensor:
    """The middle element over axes, or the mean of the two middle ones; NaN where there is one.

    Over dim, PyTorch's word: the middle element or the smaller of the two, and its position, by the names values and indices.
    """
    return _quantile("median", x, 0.5, axis, "midpoint", keepdims, False)


@rounds_once
@_in_pytorchs_word
@takes_dim
@takes_tensor
def nanquantile(
    x: Tensor, q: Tensor | float | Sequence[Any], axis: int | Sequence[int] | None = None, *, method: str = "linear",
    keepdims: bool = False
) -> Tensor:
    """quantile of the elements that are not NaN; NaN if all are NaN."""
    return _quantile("nanquantile", x, q, axis, method, keepdims, True)


@rounds_once
@_in_pytorchs_word
@takes_tensor
def nanpercentile(
    x: Tensor, q: Tensor | float | Sequence[Any], axis: int | Sequence[int] | None = None, *, method: str = "linear",
    keepdims: bool = False
) -> Tensor:
    """nanquantile of q / 100."""
    return _quantile("nanpercentile", x, q, axis, method, keepdims, True, 100)


@rounds_once
@_medians
@takes_tensor
def nanmedian(x: Tensor, axis: int | Sequence[int] | None = None, *, keepdims: bool = False) -> Tensor:
    """median of the elements that are no NaN, NaN of none; over dim a pair, as median's."""
    return _quantile("nanmedian", x, 0.5, axis, "midpoint", keepdims, True)
