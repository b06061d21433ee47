"""PyTorch's searches, and its functions that give a tensor with some elements replaced."""

from __future__ import annotations

from .. import _core
from .._api._indexing_functions import scatter as scatter_of
from .._api._manipulation_functions import normalized_axis, ravel, repeat
from .._calls._ops import NAMESPACE, ops
from .._api._searching_functions import nonzero as positions_of, true_places

op = getattr(ops, NAMESPACE)

__all__ = [
    "argsort", "index_put", "masked_scatter", "nonzero", "repeat_interleave", "scatter", "searchsorted", "select_scatter", "slice_scatter", "unique_consecutive",
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
