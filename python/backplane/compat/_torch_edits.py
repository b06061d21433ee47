"""PyTorch's searches, and its functions that give a tensor with some elements replaced."""

from __future__ import annotations

from .. import _core
from .._api._indexing_functions import scatter as scatter_of
from .._api._manipulation_functions import normalized_axis, ravel, repeat
from .._calls._ops import NAMESPACE, ops
from .._api._searching_functions import nonzero as positions_of, true_places

op = getattr(ops, NAMESPACE)

__all__ = [
    "argsort", "index_put", "index_reduce", "masked_scatter", "nonzero", "put", "repeat_interleave", "scatter", "searchsorted", "select_scatter", "slice_scatter", "strided_copy", "segment_reduce", "unique_consecutive",
]  # fmt: skip


def argsort(x, dim, descending):
    return op.argsort(x, dim, descending=descending) if x.ndim else op.full([], 0, dtype=_core.int64)


def nonzero(x, as_tuple):
    """The positions of the elements other than 0, as rows of one tensor; as_tuple: a vector for each axis."""
    if as_tuple:
        return positions_of(x if x.ndim else op.reshape(x, [1]))
    return op.argwhere(x)


def searchsorted(ordered, x, out_int32, right, side, sorter):
    """Where elements of x would stand among ordered ones; rows of x in rows of them."""
    if side is not None and right and side != "right":
        raise _core.ArgumentValueError("searchsorted: found right=True and side='left', expected the same side")
    side = ("right" if right else "left") if side is None else side
    if side not in ("left", "right"):
        raise _core.ArgumentValueError(f"searchsorted: argument side: found {side!r}, expected 'left' or 'right'")
    if ordered.ndim == 1:
        found = op.searchsorted(ordered, x, side=side, sorter=sorter)
    else:
        if sorter is not None:
            ordered = op.take_along_axis(ordered, sorter, axis=-1)
        before = op.less if side == "left" else op.less_equal
        found = op.sum(before(op.expand_dims(ordered, -2), op.expand_dims(x, -1)), -1, dtype=_core.int64)
    return op.cast(found, _core.int32) if out_int32 else found


def unique_consecutive(x, return_inverse, return_counts, dim):
    """The elements (slices along dim) without those that equal the one before."""
    axis = None if dim is None else normalized_axis("unique_consecutive", dim, x.ndim, "dim")
    rows = ravel(x) if axis is None else op.moveaxis(x, axis, 0)
    size = rows.shape[0]
    if size == 0:
        raise _core.ArgumentValueError("unique_consecutive: argument input: found no elements, expected at least one")
    differs = op.not_equal(rows[1:], rows[:-1])
    differs = op.any(op.reshape(differs, [size - 1, -1]), 1) if rows.ndim > 1 else differs
    starts = op.concat([op.full([1], True, dtype=_core.bool), differs], axis=0)
    places = true_places(starts)
    found = op.take(rows, places, axis=0)
    results = [found if axis is None else op.moveaxis(found, 0, axis)]
    if return_inverse:
        inverse = op.subtract(op.cumsum(op.cast(starts, _core.int64), 0), 1)
        results.append(op.reshape(inverse, x.shape) if axis is None else inverse)
    if return_counts:
        results.append(op.diff(op.concat([places, op.full([1], size, dtype=_core.int64)], axis=0)))
    return tuple(results) if len(results) > 1 else results[0]


def repeat_interleave(x, repeats, dim):
    """Each element repeated; of one argument the positions, each as often as it says."""
    if repeats is None:
        return repeat(op.iota(x.shape[0]), x, axis=0)
    return repeat(x, repeats, axis=dim)


def masked_scatter(x, mask, source):
    """x with the elements of source, one after the other, where the mask is true."""
    places = true_places(ravel(op.broadcast_to(mask, x.shape)))
    flat = op.copy(ravel(x))
    if source.size < places.size:
        raise _core.ShapeError(f"masked_scatter: argument source: found {source.size} elements, expected at least {places.size}")
    flat[places] = ravel(source)[: places.size]
    return op.reshape(flat, x.shape)


def index_put(x, indices, values, accumulate):
    """x with values at the positions, or with them added."""
    found = op.copy(x)
    if not accumulate:
        found[tuple(indices)] = values
        return found
    shape = x[tuple(indices)].shape
    places = op.reshape(op.iota(x.size), x.shape)[tuple(indices)]
    flat = op.index_add(ravel(x), 0, ravel(places), ravel(op.broadcast_to(values, shape)))
    return op.reshape(flat, x.shape)


def scatter(x, dim, index, src, value, reduce):
    """x with the elements of src, or one number, at the positions along dim."""
    if (src is None) == (value is None):
        raise _core.ArgumentTypeError("scatter: expected one of src and value")
    src = value if src is None else src
    if not isinstance(src, _core.Tensor):
        src = op.full(index.shape, src, dtype=x.dtype, device=x.device)
    reduce = {"add": "sum", "multiply": "prod"}.get(reduce, reduce)
    return scatter_of(x, dim, index, src) if reduce is None else scatter_of(x, dim, index, src, reduce)


def select_scatter(x, src, dim, index):
    """x with src at one position along dim."""
    return op.select_put(x, src, dim, index)


def slice_scatter(x, src, dim, start, end, step):
    """x with src in a slice along dim."""
    return op.slice_put(x, src, [dim], [start], [end], [step])


def put(x, index, source, accumulate):
    """x with the values of source at positions of x taken for a vector; they are added with accumulate."""
    flat, places, values = ravel(x), ravel(index), ravel(source)
    if places.size != values.size:
        raise _core.ShapeError(f"put: found {places.size} positions and {values.size} values, expected as many")
    if accumulate:
        return op.reshape(op.index_add(flat, 0, places, op.cast(values, x.dtype)), x.shape)
    flat = op.copy(flat)
    flat[places] = op.cast(values, x.dtype)
    return op.reshape(flat, x.shape)


def index_reduce(x, dim, index, source, reduce, include_self):
    """x with slices of source reduced into those at the positions of index along dim."""
    if reduce not in ("prod", "mean", "amax", "amin"):
        raise _core.ArgumentValueError(f"index_reduce: argument reduce: found {reduce!r}, expected 'prod', 'mean', 'amax' or 'amin'")
    axis = normalized_axis("index_reduce", dim, x.ndim, "dim")
    places = op.reshape(index, [-1 if one == axis else 1 for one in range(x.ndim)])
    return scatter_of(x, axis, op.broadcast_to(places, source.shape), source, reduce, include_self=include_self)


def strided_copy(x, size, stride, offset):
    """as_strided: a copy of the elements of a contiguous tensor at the strides, counted in elements from the offset on."""
    if not x.is_contiguous:
        raise _core.ArgumentValueError("as_strided: argument input: found a view with other strides, expected a contiguous tensor")
    if len(size) != len(stride):
        raise _core.ArgumentValueError(f"as_strided: found {len(size)} sizes and {len(stride)} strides, expected as many")
    places = op.full([], offset or 0, dtype=_core.int64, device=x.device)
    for count, step in zip(size, stride):
        places = op.add(op.expand_dims(places, -1), op.multiply(op.iota(count, device=x.device), step))
    if places.size and not 0 <= int(op.min(places)) <= int(op.max(places)) < x.size:
        raise _core.OutOfRangeError(f"as_strided: found positions outside of the {x.size} elements of input, expected sizes and strides within them")
    return op.take(ravel(x), places, axis=0)


def segment_reduce(x, reduce, lengths, offsets, axis, initial):
    """The reduction of each run of slices along axis, of these lengths."""
    if axis != 0 or (lengths is None) == (offsets is None):
        raise _core.ArgumentValueError(f"segment_reduce: found axis {axis}, expected 0, and one of lengths and offsets")
    if reduce not in ("sum", "mean", "max", "min", "prod"):
        raise _core.ArgumentValueError(f"segment_reduce: argument reduce: found {reduce!r}, expected 'sum', 'mean', 'max', 'min' or 'prod'")
    counts = (lengths if lengths is not None else op.subtract(offsets[1:], offsets[:-1])).tolist()
    start, parts = 0 if offsets is None else int(offsets[0]), []
    empty = {"sum": 0.0, "prod": 1.0, "mean": float("nan"), "max": float("-inf"), "min": float("inf")}[reduce] if initial is None else initial
    for count in counts:
        rows = x[start : start + count]
        start += count
        if not count:
            parts.append(op.full(x.shape[1:], empty, dtype=x.dtype))
            continue
        if initial is not None:
            rows = op.concat([rows, op.full([1, *x.shape[1:]], initial, dtype=x.dtype)], axis=0)
        found = getattr(op, reduce)(rows, 0)
        parts.append(op.divide(op.sum(rows, 0), count) if reduce == "mean" else found)
    return op.stack(parts) if parts else x[:0]
