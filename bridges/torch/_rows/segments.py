"""What rows of aten.txt call for results whose parts or positions depend on values: segments, runs, bins and fractional pooling."""

from __future__ import annotations

import math

import backplane as bp
from backplane.nn._fractional_pooling import pooled as fractional_max_pool

op = bp.ops.bp

__all__ = ["fractional_max_pool", "histogram", "nonzero_static", "segment_reduce", "unique_consecutive"]

_SCATTERED = {"sum": ("sum", 0), "mean": ("sum", 0), "prod": ("prod", 1), "max": ("amax", -math.inf), "min": ("amin", math.inf)}


def segment_reduce(x, reduce, lengths, offsets, axis, initial):
    """x (*batch, n, *rest) reduced over each segment of the axis (*batch, segments), given by lengths, or by offsets with a last end."""
    axis = axis % x.ndim
    batch, n, rest = list(x.shape[:axis]), x.shape[axis], list(x.shape[axis + 1 :])
    if lengths is not None:
        ends = bp.cumsum(lengths, -1)
        starts = ends - lengths
    else:
        starts, ends = offsets[..., :-1], offsets[..., 1:]
    count, places = ends.shape[-1], bp.arange(n)
    how, neutral = _SCATTERED[reduce]
    start = bp.full([*batch, count + 1, *rest], neutral if initial is None else initial, dtype=x.dtype)  # the last one takes what is in no segment
    segment = bp.sum(op.cast(bp.expand_dims(ends, [-2]) <= bp.expand_dims(places, [-1]), bp.int64), -1)
    segment = bp.where(places < starts[..., :1], count, segment)
    index = bp.broadcast_to(bp.reshape(segment, [*batch, n, *[1] * len(rest)]), x.shape)
    found = bp.narrow(bp.scatter(start, axis, index, x, how, include_self=True) if n else start, axis, 0, count)
    if reduce != "mean":
        return found
    sizes = bp.reshape(ends - starts, [*batch, count, *[1] * len(rest)])
    empty = bp.full((), bp.nan, dtype=x.dtype) if initial is None else found
    return bp.where(sizes == 0, empty, found / op.cast(bp.maximum(sizes, 1), x.dtype))


def unique_consecutive(x, return_inverse, return_counts, dim):
    """(values, inverse, counts); empty tensors in place of those that are not asked for."""
    import backplane.compat.torch as spelled

    nothing = bp.zeros((0,), dtype=bp.int64)
    if x.size == 0 and dim is None:
        return bp.zeros((0,), dtype=x.dtype), nothing, nothing
    flat = bp.reshape(x, [1]) if x.ndim == 0 else x
    values, inverse, counts = spelled.unique_consecutive(flat, return_inverse=True, return_counts=True, dim=None if x.ndim == 0 else dim)
    return values, bp.reshape(inverse, x.shape if dim is None else inverse.shape) if return_inverse else nothing, counts if return_counts else nothing


def histogram(x, bins, limits, weight, density):
    """(counts in the dtype of x, the edges)."""
    import backplane.compat.torch as spelled

    bins = bins[0] if isinstance(bins, (list, tuple)) else bins
    return tuple(spelled.histogram(x, bins, range=limits, weight=weight, density=density))


def nonzero_static(x, size, fill_value):
    """The first `size` positions that are not 0, (size, axes), and fill_value in the rows beyond."""
    import backplane.compat.torch as spelled

    found = spelled.nonzero(x)[:size]
    return bp.concat([found, bp.full([size - found.shape[0], x.ndim], fill_value, dtype=bp.int64)], axis=0)
