"""Averages, covariances and counts in NumPy's forms: average, cov, corrcoef, bincount, digitize, histogram."""

from __future__ import annotations

import math
import operator

from .. import _core
from ._data_type_functions import floating_type, isdtype, result_type
from .._calls._half_floats import rounds_once
from .._calls._ops import NAMESPACE, ops
from .._calls._tensor_argument import given_tensor, known, require_real, require_room, takes_dim, takes_tensor, tensor_like
from .._runtime._wraps import named_tuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from .._core import Tensor

op = getattr(ops, NAMESPACE)

__all__ = ["aminmax", "average", "bincount", "corrcoef", "cov", "digitize", "histogram", "std_mean", "var_mean"]


@rounds_once
@takes_dim
@takes_tensor
def average(
    x: Tensor, axis: int | Sequence[int] | None = None, weights: Tensor | None = None, returned: bool = False, *,
    keepdims: bool = False
) -> Any:
    """Mean over axes, weighted; weights have x's shape, or are a vector along the one axis. returned: also the sum of the weights."""
    axes = list(axis) if isinstance(axis, (tuple, list)) else axis
    if weights is None:
        found = op.mean(x, axes, keepdims=keepdims)
        share = op.full_like(found, x.size / found.size if found.size else 0)
    else:
        weights = given_tensor("average", "weights", weights, (x,))
        if weights.shape != x.shape:
            if not hasattr(axis, "__index__") or weights.shape != (x.shape[axis],):
                raise _core.ShapeError(
                    f"average: argument weights: found shape {tuple(weights.shape)}, expected {tuple(x.shape)}, or a vector along one axis"
                )
            weights = op.moveaxis(op.broadcast_to(weights, [*_without(x.shape, axis % x.ndim), x.shape[axis]]), -1, axis)
        dtype = floating_type(x, weights)
        x, weights = op.cast(x, dtype), op.cast(weights, dtype)
        share = op.sum(weights, axes, dtype=dtype, keepdims=keepdims)
        found = op.divide(op.sum(op.multiply(x, weights), axes, dtype=dtype, keepdims=keepdims), share)
    return (found, share) if returned else found


@takes_tensor
def aminmax(x: Tensor, *, dim: int | None = None, keepdim: bool = False) -> Any:
    """PyTorch's pair of the least and the greatest element, along dim where it is named."""
    return named_tuple("aminmax", ("min", "max"))(op.min(x, dim, keepdims=keepdim), op.max(x, dim, keepdims=keepdim))


@rounds_once
@takes_tensor
def std_mean(
    x: Tensor, dim: int | Sequence[int] | None = None, *, unbiased: bool = True, correction: float | None = None,
    keepdim: bool = False
) -> tuple[Tensor, Tensor]:
    """PyTorch's pair of the standard deviation, unbiased unless the word or correction says otherwise, and the mean, over dim."""
    correction = int(unbiased) if correction is None else correction
    return op.std(x, dim=dim, correction=correction, keepdim=keepdim), op.mean(x, dim=dim, keepdims=keepdim)


@rounds_once
@takes_tensor
def var_mean(
    x: Tensor, dim: int | Sequence[int] | None = None, *, unbiased: bool = True, correction: float | None = None,
    keepdim: bool = False
) -> tuple[Tensor, Tensor]:
    """PyTorch's pair of the variance, unbiased unless the word or correction says otherwise, and the mean, over dim."""
    correction = int(unbiased) if correction is None else correction
    return op.var(x, dim=dim, correction=correction, keepdim=keepdim), op.mean(x, dim=dim, keepdims=keepdim)


def _without(shape, axis):
    return [size for place, size in enumerate(shape) if place != axis]


def _variables(function, x, y, rowvar, dtype):
    """The variables as rows, in the dtype."""
    rows = []
    for v in (x,) if y is None else (x, y):
        if v.ndim > 2:
            raise _core.ShapeError(f"{function}: found {v.ndim} dimensions, expected at most 2")
        v = op.cast(v, dtype)
        if v.ndim < 2:
            rows.append(op.reshape(v, [1, v.size]))
        else:
            rows.append(v if rowvar else op.matrix_transpose(v))
    return rows[0] if y is None else op.concat(rows, axis=0)


def _check_weights(name, weights, count):
    """Relative weights, or how often each observation counts. The check is skipped inside a transform, where the value cannot be read."""
    require_real("cov", name, weights)
    if weights.shape != (count,):
        raise _core.ShapeError(f"cov: argument {name}: found shape {tuple(weights.shape)}, expected ({count},)")
    weights = op.cast(weights, _core.float64)
    if known(op.any(op.less(weights, 0)), False):
        raise _core.ArgumentValueError(f"cov: argument {name}: found a negative weight, expected 0 or more")
    if name == "fweights" and known(op.any(op.not_equal(weights, op.round(weights))), False):
        raise _core.ArgumentValueError("cov: argument fweights: found a fraction, expected whole numbers; aweights are relative weights")


@rounds_once
@takes_tensor
def cov(
    x: Tensor, y: Tensor | None = None, rowvar: bool = True, bias: bool = False, ddof: int | None = None,
    fweights: Tensor | None = None, aweights: Tensor | None = None, *, correction: int | None = None
) -> Tensor:
    """Covariances of the variables, which are x's rows (columns without rowvar), and of y's.

    ddof, or PyTorch's correction: what the divisor is less than the number of observations, 1 unless stated, or 0 with bias.
    fweights: how often each observation counts, a whole number; aweights: its relative weight. Neither is negative.
    """
    y, fweights, aweights = (None if v is None else given_tensor("cov", name, v, (x,)) for name, v in (("y", y), ("fweights", fweights), ("aweights", aweights)))
    rows = _variables("cov", x, y, rowvar, floating_type(*(v for v in (x, y, fweights, aweights) if v is not None)))
    if ddof is not None and correction is not None:
        raise _core.ArgumentTypeError("cov: found ddof and correction, expected one of them")
    ddof = correction if ddof is None else ddof
    ddof = (0 if bias else 1) if ddof is None else ddof
    real = _core.float64 if rows.dtype in (_core.float64, _core.complex128) else _core.float32
    weights = None
    for name, given in (("fweights", fweights), ("aweights", aweights)):
        if given is not None:
            _check_weights(name, given, rows.shape[1])
            weights = op.cast(given, real) if weights is None else op.multiply(weights, op.cast(given, real))
    if weights is None:
        away = op.subtract(rows, op.mean(rows, [1], keepdims=True))
        weighted, divisor = away, op.full([], rows.shape[1] - ddof, dtype=real, device=rows.device)
    else:
        total = op.sum(weights, dtype=real)
        away = op.subtract(rows, op.divide(op.sum(op.multiply(rows, weights), [1], dtype=rows.dtype, keepdims=True), total))
        weighted = op.multiply(away, weights)
        if aweights is None:
            divisor = op.subtract(total, ddof)
        else:
            squares = op.sum(op.multiply(weights, op.cast(aweights, real)), dtype=real)
            divisor = op.subtract(total, op.divide(op.multiply(squares, ddof), total))
    divisor = op.maximum(divisor, 0)  # as NumPy: fewer observations than ddof are none, not a negative number
    usable = op.where(op.greater(divisor, 0), divisor, 1)  # divides before the products, whose sums would overflow earlier
    found = op.divide(op.row_products(op.divide(weighted, usable), away), op.divide(divisor, usable))
    return op.reshape(found, []) if found.shape == (1, 1) else found


@rounds_once
@takes_tensor
def corrcoef(x: Tensor, y: Tensor | None = None, rowvar: bool = True) -> Tensor:
    """Correlation coefficients of the variables, which are x's rows (columns without rowvar), and of y's."""
    y = None if y is None else given_tensor("corrcoef", "y", y, (x,))
    rows = _variables("corrcoef", x, y, rowvar, floating_type(*(v for v in (x, y) if v is not None)))
    away = op.subtract(rows, op.mean(rows, [1], keepdims=True))
    length = op.vector_norm(away, axis=[1], keepdims=True)
    if rows.shape[0] == 1:
        return op.cast(op.reshape(op.divide(length, length), []), rows.dtype)
    away = op.divide(away, length)
    ratio = op.matmul(away, op.conj(op.matrix_transpose(away)))
    return ratio if isdtype(ratio.dtype, "complex floating") else op.minimum(op.maximum(ratio, -1), 1)


def _greatest(function, x):
    """The largest element as an int, -1 of none. Errors: ValueError of a negative one; inside a transform there is no one value."""
    if not isdtype(x.dtype, "integral") or x.ndim != 1:
        raise _core.ArgumentTypeError(f"{function}: argument x: found {x.dtype.name} of {x.ndim} dimensions, expected a vector of integers")
    if not _core.has_values(x):
        raise _core.ArgumentValueError(
            f"{function}: the length of the result is not known inside a transform. "
            "Fix: segment_sum(ones_like(x), x, n), which gives n counts, or nn.functional.one_hot(x, n).sum(0)"
        )
    if x.size and int(op.min(x)) < 0:
        raise _core.ArgumentValueError(f"{function}: argument x: found a negative number, expected positions")
    return int(op.max(x)) if x.size else -1


@rounds_once
@takes_tensor
def bincount(x: Tensor, weights: Tensor | None = None, minlength: int = 0) -> Tensor:
    """How often each integer from 0 on occurs in the vector x, or the sum of its weights; as long as the largest, or minlength."""
    if minlength < 0:
        raise _core.ArgumentValueError(f"bincount: argument minlength: found {minlength}, expected at least 0")
    if x.dtype is _core.bool:
        x = op.cast(x, _core.int64)
    size = max(_greatest("bincount", x) + 1, minlength)
    require_room("bincount", "x", size)
    if weights is None:
        return op.segment_sum(op.broadcast_to(op.full([], 1, dtype=_core.int64, device=x.device), x.shape), x, size)
    if weights.shape != x.shape:
        raise _core.ShapeError(f"bincount: argument weights: found shape {tuple(weights.shape)}, expected {tuple(x.shape)}")
    require_real("bincount", "weights", weights)
    return op.segment_sum(weights if isdtype(weights.dtype, "real floating") else op.cast(weights, _core.float64), x, size)


@takes_tensor
def digitize(x: Tensor, bins: Tensor | Sequence[float], right: bool = False) -> Tensor:
    """The bin of each element: how many edges lie at or below it (below it with right); of decreasing edges, above it.

    Of edges that a trace or a batch computes the first and the last say whether they decrease.
    """
    bins = tensor_like(bins, x)
    if bins.ndim != 1:
        raise _core.ShapeError(f"digitize: argument bins: found shape {tuple(bins.shape)}, expected a vector of edges")
    side = "left" if right else "right"
    try:
        edges = bins.tolist()  # a trace takes every op, and reads a tensor from outside
    except _core.ArgumentValueError:
        falling = op.greater(bins[:1], bins[-1:])
        place = op.searchsorted(op.where(falling, op.flip(bins), bins), x, side=side)
        return op.where(op.any(falling), op.subtract(bins.size, place), place)
    rising, falling = (all(map(in_order, edges, edges[1:])) for in_order in (operator.le, operator.ge))
    if not (rising or falling):
        raise _core.ArgumentValueError("digitize: argument bins: found edges that rise and fall, expected a monotonic vector")
    if rising:
        return op.searchsorted(bins, x, side=side)
    return op.subtract(bins.size, op.searchsorted(op.flip(bins), x, side=side))


def _edges(x, bins, limits, dtype):
    if not hasattr(bins, "__index__") or getattr(bins, "ndim", 0):  # an array has __index__, whatever its shape
        edges = bins if isinstance(bins, _core.Tensor) else _core.asarray(bins, dtype=dtype, device=x.device)
        if edges.ndim != 1 or (edges.size > 1 and not known(op.all(op.greater_equal(op.diff(edges), 0)), True)):
            raise _core.ArgumentValueError("histogram: argument bins: found edges that do not rise, expected a vector of rising edges")
        return edges
    if bins < 1:
        raise _core.ArgumentValueError(f"histogram: argument bins: found {bins}, expected at least 1")
    if limits is None and x.size and not _core.has_values(x):
        raise _core.ArgumentValueError("histogram: the least and the largest element are not known inside a transform. Fix: pass range=")
    low, high = limits if limits is not None else (float(op.min(x)), float(op.max(x))) if x.size else (0.0, 1.0)
    if not (math.isfinite(low) and math.isfinite(high)) or low > high:
        raise _core.ArgumentValueError(f"histogram: argument range: found {low} to {high}, expected finite numbers in order")
    if low == high:
        low, high = low - 0.5, high + 0.5
    require_room("histogram", "bins", bins)
    step = (high - low) / bins
    return _core.asarray([low + i * step for i in range(bins)] + [high], dtype=dtype, device=x.device)


def _counts(x, keys):
    """How many elements each bin holds: the elements in order, and where the edges would stand among them."""
    ordered = op.sort(x)
    cuts = op.concat([op.searchsorted(ordered, keys[:-1], side="left"), op.searchsorted(ordered, keys[-1:], side="right")])
    return op.diff(cuts)


def _place(x, keys):
    place = op.subtract(op.searchsorted(keys, x, side="right"), 1)
    count = keys.size - 1
    return op.where(op.equal(x, keys[-1]), count - 1, place) if count > 0 else place


@rounds_once
@takes_tensor
def histogram(
    x: Tensor, bins: int | str | Tensor | Sequence[float] = 10, range: tuple[float, float] | None = None,
    density: bool = False, weights: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """How many elements, or what weight, each bin holds, and the edges; the last bin includes its upper edge.

    bins: so many of one width from the smallest to the largest element, or over range; or the edges; or NumPy's name of a rule for their
        number: "auto", "doane", "fd", "rice", "scott", "sqrt", "stone", "sturges". density: divided by the
    total and by the widths.
    """
    require_real("histogram", "x", x)
    if isinstance(bins, str):
        from ._bin_counts import bin_count

        bins = bin_count(bins, x, range, weights)
    dtype = x.dtype if x.dtype in (_core.float32, _core.float64) else _core.float64
    x = op.reshape(op.cast(x, dtype), [-1])
    edges = _edges(x, bins, range, dtype)
    count = edges.size - 1
    keys = edges if edges.dtype is dtype else op.cast(edges, dtype)
    if weights is None:
        found = _counts(x, keys) if count > 0 else op.full([0], 0, dtype=_core.int64, device=x.device)
    elif weights.size != x.size:
        raise _core.ShapeError(f"histogram: argument weights: found {weights.size} elements, expected {x.size}")
    else:
        found = op.segment_sum(op.reshape(weights, [-1]), _place(x, keys), max(count, 0))
    if density:
        dtype = result_type(found, dtype)
        found = op.cast(found, dtype)
        found = op.divide(op.divide(found, op.diff(keys)), op.sum(found, dtype=dtype))
    return found, edges
