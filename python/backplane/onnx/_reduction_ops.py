"""Reductions over axes, positions of extremes, sorting, and losses."""

import numpy as np

import backplane as bp

from ._elementwise_ops import is_floating
from ._table import op
from ._values import integers, is_plain


def _reductions(name, function, static_since):
    def by_attribute(x, *, axes=None, keepdims=1):
        return function(x, tuple(range(x.ndim)) if axes is None else tuple(axes), bool(keepdims))

    def by_input(x, axes=None, *, keepdims=1, noop_with_empty_axes=0):
        axes = integers(axes)
        if not axes and noop_with_empty_axes:
            return function(x, (), True) if name not in ("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd") else x
        return function(x, tuple(axes) or tuple(range(x.ndim)), bool(keepdims))

    op(name, 1)(by_attribute)
    op(name, static_since, static=(1,))(by_input)


def _over(function):
    """The reduction in the dtype of x."""

    def reduce(x, axes, keepdims):
        return x if x.ndim == 0 else bp.cast(function(x, axes, keepdims), x.dtype)

    return reduce


def _sum(x, axes, keepdims):
    return bp.sum(x, axis=axes, keepdims=keepdims, dtype=x.dtype) if axes else x


def _mean(x, axes, keepdims):
    if is_floating(x):
        return bp.mean(x, axis=axes, keepdims=keepdims)
    count = 1
    for axis in axes:
        count = count * x.shape[axis]
    from ._elementwise_ops import truncated_quotient

    return truncated_quotient(_sum(x, axes, keepdims), bp.full((), count, dtype=x.dtype, device=x.device))


def _extreme(function, of_bools, is_greatest):
    def reduce(x, axes, keepdims):
        if x.dtype == bp.bool:
            return of_bools(x, axis=axes, keepdims=keepdims)
        if any(is_plain(x.shape[axis]) and x.shape[axis] == 0 for axis in axes):  # of nothing: the dtype's end
            if is_floating(x):
                end = float("-inf") if is_greatest else float("inf")
            else:
                end = bp.iinfo(x.dtype).min if is_greatest else bp.iinfo(x.dtype).max
            return bp.full_like(bp.sum(x, axis=axes, keepdims=keepdims, dtype=x.dtype), end)
        return function(x, axis=axes, keepdims=keepdims)

    return reduce


def _log_sum_exp(x, axes, keepdims):
    return bp.logsumexp(x if is_floating(x) else bp.cast(x, bp.float64), axis=axes, keepdims=keepdims)


def _wide(x):
    return x if is_floating(x) else bp.cast(x, bp.float64)


_reductions("ReduceSum", _over(_sum), 13)
_reductions("ReduceMean", _over(_mean), 18)
_reductions("ReduceProd", _over(lambda x, axes, keepdims: bp.prod(x, axis=axes, keepdims=keepdims, dtype=x.dtype)), 18)
_reductions("ReduceMax", _over(_extreme(bp.amax, bp.any, True)), 18)
_reductions("ReduceMin", _over(_extreme(bp.amin, bp.all, False)), 18)
_reductions("ReduceL1", lambda x, axes, keepdims: _sum(bp.abs(x), axes, keepdims), 18)
_reductions("ReduceSumSquare", lambda x, axes, keepdims: _sum(x * x, axes, keepdims), 18)
_reductions("ReduceL2", lambda x, axes, keepdims: bp.cast(bp.sqrt(_sum(_wide(x) * _wide(x), axes, keepdims)), x.dtype), 18)
_reductions("ReduceLogSum", lambda x, axes, keepdims: bp.cast(bp.log(_sum(_wide(x), axes, keepdims)), x.dtype), 18)
_reductions("ReduceLogSumExp", lambda x, axes, keepdims: bp.cast(_log_sum_exp(x, axes, keepdims), x.dtype) if axes else x, 18)


def _place_of_extreme(function):
    def place(x, *, axis=0, keepdims=1, select_last_index=0):
        axis += x.ndim if axis < 0 else 0
        if not select_last_index:
            return function(x, axis=axis, keepdims=bool(keepdims))
        return x.shape[axis] - 1 - function(bp.flip(x, axis), axis=axis, keepdims=bool(keepdims))

    return place


op("ArgMax", 1)(_place_of_extreme(bp.argmax))
op("ArgMin", 1)(_place_of_extreme(bp.argmin))


@op("TopK", 1)
def top_by_attribute(x, *, axis=-1, k):
    return _top(x, k, axis, True)


@op("TopK", 10, static=(1,))
def top(x, k, *, axis=-1, largest=1, sorted=1):
    return _top(x, integers(k)[0], axis, bool(largest))


def _top(x, k, axis, largest):
    axis += x.ndim if axis < 0 else 0
    if k > x.shape[axis]:
        raise bp.ArgumentValueError(f"k is {k}, which exceeds {x.shape[axis]}, the size of axis {axis}")
    places = bp.argsort(x, axis=axis, descending=largest, stable=True)
    places = bp.slice(places, [axis], [0], [k], [1])
    return bp.take_along_axis(x, places, axis=axis), places


@op("NegativeLogLikelihoodLoss", 12)
def negative_log_likelihood(log_probs, labels, weight=None, *, ignore_index=None, reduction="mean"):
    labels = bp.cast(labels, bp.int64)
    is_kept = None if ignore_index is None else bp.not_equal(labels, ignore_index)
    safe = labels if is_kept is None else bp.where(is_kept, labels, bp.zeros_like(labels))
    loss = -bp.squeeze(bp.take_along_axis(log_probs, bp.expand_dims(safe, axis=1), axis=1), axis=1)
    factors = None if weight is None else bp.reshape(bp.take(weight, bp.reshape(safe, (-1,)), axis=0), safe.shape)
    if is_kept is not None:
        kept = bp.cast(is_kept, log_probs.dtype)
        factors = kept if factors is None else factors * kept
        loss = bp.where(is_kept, loss, bp.zeros_like(loss))
    if factors is not None:
        loss = loss * factors
    if reduction == "none":
        return loss
    if reduction == "sum" or factors is None:
        return bp.sum(loss) if reduction == "sum" else bp.mean(loss)
    return bp.sum(loss) / bp.sum(factors)


@op("SoftmaxCrossEntropyLoss", 12)
def softmax_cross_entropy(scores, labels, weight=None, *, ignore_index=None, reduction="mean"):
    log_probs = bp.log_softmax(scores, axis=1)
    return negative_log_likelihood(log_probs, labels, weight, ignore_index=ignore_index, reduction=reduction), log_probs


@op("Unique", 11)
def unique(node, x, *, axis=None, sorted=1):
    """Values first in order, or in the order of their first places. It reads the values, so it cannot be traced."""
    from ._values import host_array, to_tensor

    array = host_array(x, "the result's shape")
    if axis is None:
        array, axis_here = array.reshape(-1), 0
    else:
        axis_here = axis
    values, first, inverse, counts = np.unique(array, return_index=True, return_inverse=True, return_counts=True, axis=axis_here)
    inverse = inverse.reshape(-1)
    if not sorted:
        order = np.argsort(first)
        rank = np.argsort(order)
        values, first, inverse, counts = np.take(values, order, axis_here), first[order], rank[inverse], counts[order]
    return tuple(to_tensor(part, x.device) for part in (values, first.astype(np.int64), inverse.astype(np.int64), counts.astype(np.int64)))
