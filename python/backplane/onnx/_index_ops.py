"""Ops that read and write elements by index."""

import numpy as np

import backplane as bp

from ._shape_ops import whole_axis
from ._table import op, refuse
from ._values import host_array, prod, to_tensor


def _from_end(indices, size):
    """Indices where negative ones count from the end."""
    if bp.isdtype(indices.dtype, "unsigned integer"):
        return bp.cast(indices, bp.int64)
    indices = bp.cast(indices, bp.int64)
    return bp.where(indices < 0, indices + size, indices)


@op("Gather", 1)
def gather(x, indices, *, axis=0):
    axis = whole_axis(axis, x.ndim)
    flat = bp.reshape(_from_end(indices, x.shape[axis]), (-1,))
    return bp.reshape(bp.take(x, flat, axis=axis), (*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :]))


@op("GatherElements", 11)
def gather_elements(x, indices, *, axis=0):
    axis = whole_axis(axis, x.ndim)
    for other in range(x.ndim):
        if other != axis and x.shape[other] != indices.shape[other]:
            x = bp.slice(x, [other], [0], [indices.shape[other]], [1])
    return bp.take_along_axis(x, _from_end(indices, x.shape[axis]), axis=axis)


def _flat_places(indices, sizes):
    """The place of each index tuple (last axis) in the first axes, counted row by row."""
    flat = None
    for i, size in enumerate(sizes):
        part = _from_end(indices[..., i], size)
        flat = part if flat is None else flat * size + part
    return flat


@op("GatherND", 11)
def gather_nd(x, indices, *, batch_dims=0):
    depth, b = indices.shape[-1], batch_dims
    batch, inner = x.shape[:b], x.shape[b : b + depth]
    rest, middle = x.shape[b + depth :], indices.shape[b:-1]
    flat = bp.reshape(_flat_places(indices, inner), (prod(batch), prod(middle)))
    flat = flat + bp.expand_dims(bp.arange(prod(batch), device=x.device) * prod(inner), axis=1)
    rows = bp.reshape(x, (prod(batch) * prod(inner), prod(rest)))
    return bp.reshape(bp.take(rows, bp.reshape(flat, (-1,)), axis=0), (*batch, *middle, *rest))


_COMBINE = {"add": bp.scatter_add, "mul": bp.scatter_prod, "max": bp.scatter_max, "min": bp.scatter_min}


@op("Scatter", 9)
@op("ScatterElements", 11)
def scatter_elements(x, indices, updates, *, axis=0, reduction="none"):
    axis = whole_axis(axis, x.ndim)
    places = _from_end(indices, x.shape[axis])
    if all(a == b for i, (a, b) in enumerate(zip(x.shape, indices.shape)) if i != axis):
        return _scattered(x, places, updates, axis, reduction)
    # Fewer rows than x has: the same on flat elements.
    flat = None
    for i, size in enumerate(x.shape):
        here = places if i == axis else bp.reshape(bp.arange(indices.shape[i], device=x.device), (-1,) + (1,) * (x.ndim - 1 - i))
        flat = bp.broadcast_to(here, indices.shape) if flat is None else flat * size + here
    found = _scattered(bp.reshape(x, (-1,)), bp.reshape(flat, (-1,)), bp.reshape(updates, (-1,)), 0, reduction)
    return bp.reshape(found, x.shape)


def _scattered(x, places, updates, axis, reduction):
    if reduction == "none":
        return bp.put_along_axis(x, places, updates, axis=axis)
    if reduction == "add":
        return bp.put_along_axis(x, places, updates, axis=axis, accumulate=True)
    if reduction not in _COMBINE:
        refuse(f"the reduction {reduction} is not supported")
    return _COMBINE[reduction](x, places, updates, axis=axis)


@op("ScatterND", 11)
def scatter_nd(x, indices, updates, *, reduction="none"):
    depth = indices.shape[-1]
    inner, rest = x.shape[:depth], x.shape[depth:]
    flat = bp.reshape(_flat_places(indices, inner), (-1, 1))
    columns = prod(rest)
    rows = bp.reshape(x, (prod(inner) * columns,))
    places = bp.reshape(flat * columns + bp.reshape(bp.arange(columns, device=x.device), (1, -1)), (-1,))
    return bp.reshape(_scattered(rows, places, bp.reshape(updates, (-1,)), 0, reduction), x.shape)


@op("OneHot", 9, static=(1,))
def one_hot(indices, depth, values, *, axis=-1):
    size = int(depth.reshape(-1)[0])
    axis = whole_axis(axis, indices.ndim + 1)
    if bp.isdtype(indices.dtype, "real floating"):
        indices = bp.cast(indices, bp.int64)
    places = bp.expand_dims(_from_end(indices, size), axis=axis)
    positions = bp.reshape(bp.arange(size, device=indices.device), (-1,) + (1,) * (indices.ndim - axis))
    return bp.where(bp.equal(places, positions), values[1], values[0])


@op("NonZero", 9)
def nonzero(x):
    array = host_array(x, "the result's shape")
    return to_tensor(np.stack(np.nonzero(np.atleast_1d(array))).astype(np.int64), x.device)


@op("Compress", 9, static=(1,))
def compress(x, condition, *, axis=None):
    places = np.flatnonzero(condition).astype(np.int64)
    if axis is None:
        return bp.take(bp.reshape(x, (-1,)), to_tensor(places, x.device), axis=0)
    return bp.take(x, to_tensor(places, x.device), axis=whole_axis(axis, x.ndim))


@op("ReverseSequence", 10)
def reverse_sequence(x, lengths, *, batch_axis=1, time_axis=0):
    size = x.shape[time_axis]
    times = bp.reshape(bp.arange(size, device=x.device), (-1, 1) if time_axis == 0 else (1, -1))
    lengths = bp.reshape(bp.cast(lengths, bp.int64), (1, -1) if time_axis == 0 else (-1, 1))
    places = bp.where(times < lengths, lengths - 1 - times, times)
    places = bp.broadcast_to(bp.reshape(places, (*places.shape,) + (1,) * (x.ndim - 2)), x.shape)
    return bp.take_along_axis(x, places, axis=time_axis)


@op("TensorScatter", 24)
def tensor_scatter(cache, update, write_indices=None, *, axis=-2, mode="linear"):
    axis = whole_axis(axis, cache.ndim)
    length = update.shape[axis]
    places = bp.reshape(bp.arange(length, device=cache.device), (1, -1))
    if write_indices is not None:
        places = places + bp.reshape(bp.cast(write_indices, bp.int64), (-1, 1))
    if mode == "circular":
        places = bp.remainder(places, cache.shape[axis])
    places = bp.reshape(places, (places.shape[0],) + (1,) * (axis - 1) + (length,) + (1,) * (cache.ndim - 1 - axis))
    return bp.put_along_axis(cache, bp.broadcast_to(places, update.shape), update, axis=axis)


@op("TfIdfVectorizer", 9)
def tf_idf(
    x, *, max_gram_length, max_skip_count, min_gram_length, mode, ngram_counts, ngram_indexes, pool_int64s=None, pool_strings=None, weights=None
):
    """Counts n-grams of integers. It reads the values, so it cannot be traced."""
    if pool_strings is not None:
        refuse("n-grams of strings are not supported")
    rows = np.atleast_2d(host_array(x, "the counts"))
    grams = _grams(ngram_counts, pool_int64s)
    counts = np.zeros((len(rows), max(ngram_indexes) + 1), np.float32)
    for row, out in zip(rows, counts):
        for length in range(min_gram_length, max_gram_length + 1):
            for skip in range(max_skip_count + 1 if length > 1 else 1):
                for start in range(len(row) - (length - 1) * (skip + 1)):
                    gram = tuple(int(v) for v in row[start : start + (length - 1) * (skip + 1) + 1 : skip + 1])
                    if gram in grams:
                        out[ngram_indexes[grams[gram]]] += 1
    factors = np.ones(counts.shape[1], np.float32)
    if weights is not None:
        factors[np.array(ngram_indexes)] = weights
    found = {"TF": counts, "IDF": (counts > 0) * factors, "TFIDF": counts * factors}[mode].astype(np.float32)
    return to_tensor(found if x.ndim > 1 else found[0], x.device)


def _grams(starts, pool):
    """The number of each n-gram in the pool; starts: where the n-grams of each length begin."""
    grams = {}
    for length, start in enumerate(starts, 1):
        end = starts[length] if length < len(starts) else len(pool)
        for at in range(start, end, length):
            grams[tuple(pool[at : at + length])] = len(grams)
    return grams


