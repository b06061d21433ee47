"""scatter: values written to, or combined with, the elements at positions along an axis, in PyTorch's form."""

from . import _core
from ._data_type_functions import iinfo, isdtype
from ._ops import NAMESPACE, ops
from ._manipulation_functions import normalized_axis
from ._tensor_argument import takes_tensor

op = getattr(ops, NAMESPACE)

__all__ = ["scatter"]

_SAME = {"add": "sum", "multiply": "prod"}
_REDUCTIONS = ("sum", "prod", "mean", "amax", "amin")


def _neutral(reduce, dtype):
    """What leaves every value as it is."""
    if reduce in ("sum", "mean", "prod"):
        return 1 if reduce == "prod" else 0
    if isdtype(dtype, "integral"):
        return iinfo(dtype).min if reduce == "amax" else iinfo(dtype).max
    return -float("inf") if reduce == "amax" else float("inf")


def _combined(x, index, src, axis, reduce):
    if reduce is None:
        return op.put_along_axis(x, index, src, axis=axis)
    if reduce in ("sum", "mean"):
        return op.put_along_axis(x, index, src, axis=axis, accumulate=True)
    by_name = {"prod": op.scatter_prod, "amax": op.scatter_max, "amin": op.scatter_min}
    return by_name[reduce](x, index, src, axis=axis)


def _mean(total, index, axis, include_self):
    ones = op.full(index.shape, 1, dtype=_core.int64, device=total.device)
    start = op.full(total.shape, 1 if include_self else 0, dtype=_core.int64, device=total.device)
    count = op.maximum(op.put_along_axis(start, index, ones, axis=axis, accumulate=True), 1)
    if isdtype(total.dtype, "integral"):
        return op.floor_divide(total, op.cast(count, total.dtype))
    return op.divide(total, op.cast(count, total.dtype))


@takes_tensor
def scatter(x, dim, index, src, reduce=None, *, include_self=True):
    """x with src[i, j, ...] put at position index[i, j, ...] of dim and at i, j, ... of the others; src may be a number.

    reduce: None writes; 'sum', 'prod', 'mean', 'amax', 'amin' combine with what is there, or without include_self with one
    another alone. index has x's number of axes, and is nowhere longer than src, nor, but along dim, than x. Differentiable in
    x and src.
    """
    axis = normalized_axis("scatter", dim, x.ndim, "dim")
    reduce = _SAME.get(reduce, reduce)
    if reduce is not None and reduce not in _REDUCTIONS:
        raise _core.ArgumentValueError(f"scatter: argument reduce: found {reduce!r}, expected None or one of {', '.join(_REDUCTIONS)}")
    fits = index.ndim == x.ndim and all(n <= m or place == axis for place, (n, m) in enumerate(zip(index.shape, x.shape)))
    if not fits:
        raise _core.ShapeError(f"scatter: argument index: found shape {tuple(index.shape)}, expected at most {tuple(x.shape)} but along dim")
    if not isinstance(src, _core.Tensor) or src.ndim == 0:
        src = op.full(index.shape, src, dtype=x.dtype, device=x.device) if not isinstance(src, _core.Tensor) else op.broadcast_to(src, index.shape)
    if src.ndim != x.ndim or any(n > m for n, m in zip(index.shape, src.shape)):
        raise _core.ShapeError(f"scatter: argument src: found shape {tuple(src.shape)}, expected at least {tuple(index.shape)}, that of index")
    places = list(range(x.ndim))
    src = op.slice(src, places, [0] * x.ndim, list(index.shape), [1] * x.ndim)
    stops = [x.shape[axis] if place == axis else n for place, n in enumerate(index.shape)]
    whole = list(stops) == list(x.shape)
    part = x if whole else op.slice(x, places, [0] * x.ndim, stops, [1] * x.ndim)
    start = part if reduce is None or include_self else op.put_along_axis(part, index, _neutral(reduce, x.dtype), axis=axis)
    found = _combined(start, index, src, axis, reduce)
    if reduce == "mean":
        found = _mean(found, index, axis, include_self)
    return found if whole else op.slice_put(x, found, places, [0] * x.ndim, stops, [1] * x.ndim)
