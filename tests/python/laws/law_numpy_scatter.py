"""NumPy's form of scattering with a reduction, of segments, and of scans other than sums."""

import numpy as np


def scattered(ufunc):
    def found(x, indices, values, axis=-1):
        out = np.array(x)
        shape = list(out.shape)
        shape[axis] = indices.shape[axis]
        key = list(np.indices(shape, sparse=True))
        key[axis] = np.broadcast_to(indices, shape)
        ufunc.at(out, tuple(key), np.broadcast_to(values, shape))
        return out

    return found


def scatter_prod_others(x, indices, values, axis=-1):
    shape = list(x.shape)
    shape[axis] = indices.shape[axis]
    at, given = np.broadcast_to(indices, shape) % max(x.shape[axis], 1), np.broadcast_to(values, shape)
    out = np.array(np.take_along_axis(x, at, axis=axis), np.result_type(x, values))
    for place in np.ndindex(*shape):
        for i in range(shape[axis]):
            other = list(place)
            other[axis] = i
            if i != place[axis] and at[tuple(other)] == at[place]:
                out[place] *= given[tuple(other)]
    return out


def index_add(x, axis, index, source, alpha=1):
    out = np.array(x)
    np.add.at(out, (slice(None),) * (axis % x.ndim) + (index,), alpha * source)
    return out


def segments(reduce, empty):
    """reduce: of the slices of one segment; empty: dtype -> the value of none."""

    def found(data, segment_ids, num_segments):
        rows = [data[segment_ids == i] for i in range(num_segments)]
        whole = [reduce(row, axis=0) if len(row) else np.full(data.shape[1:], empty(data.dtype), data.dtype) for row in rows]
        return np.array(whole, data.dtype).reshape(num_segments, *data.shape[1:])

    return found


def least(dtype):
    return np.iinfo(dtype).min if dtype.kind in "iu" else -np.inf


def greatest(dtype):
    return np.iinfo(dtype).max if dtype.kind in "iu" else np.inf


def with_indices(locate):
    def pair(x, axis, keepdims=False):
        y = np.atleast_1d(x)
        at = locate(y, axis, keepdims=True)
        values = np.take_along_axis(y, at, axis)
        return (values, at) if keepdims and x.ndim else (values.squeeze(axis), at.squeeze(axis))

    return pair


def running(ufunc):
    def found(x, axis=-1):
        y = np.atleast_1d(x)
        values = ufunc.accumulate(y, axis=axis) if y.size else y
        shape = [1] * y.ndim
        shape[axis] = y.shape[axis]
        here = np.where(y == values, np.arange(y.shape[axis]).reshape(shape), 0)
        at = np.maximum.accumulate(here, axis=axis) if y.size else here
        return values.reshape(np.shape(x)), at.reshape(np.shape(x))

    return found


def logcumsumexp(x, axis=-1):
    return np.logaddexp.accumulate(np.atleast_1d(x), axis=axis).reshape(np.shape(x)) if np.size(x) else x


SCATTERS = {
    "scatter_max": scattered(np.maximum),
    "scatter_min": scattered(np.minimum),
    "scatter_prod": scattered(np.multiply),
    "scatter_prod_others": scatter_prod_others,
    "index_add": index_add,
    "segment_sum": segments(np.sum, lambda dtype: 0),
    "segment_prod": segments(np.prod, lambda dtype: 1),
    "segment_mean": segments(np.mean, lambda dtype: 0),
    "segment_max": segments(np.max, least),
    "segment_min": segments(np.min, greatest),
    "cummax": running(np.maximum),
    "max_with_indices": with_indices(np.argmax),
    "min_with_indices": with_indices(np.argmin),
    "cummin": running(np.minimum),
    "logcumsumexp": logcumsumexp,
}
