"""Maxima, means and norms of windows, and the way back from maxima."""

import backplane as bp

from ._linear_ops import windows
from ._shape_ops import pad_with
from ._table import op
from ._values import integers, prod


class _Windows:
    """The windows of a pooling op: x padded so that each window lies within it."""

    def __init__(self, x, kernel, strides, dilations, pads, auto_pad, ceil_mode, value):
        self.kernel, rank = kernel, len(kernel)
        self.strides, self.dilations, self.before, after = windows(x.shape, kernel, strides, dilations, pads, auto_pad)
        self.sizes, self.ends, rows = x.shape[2:], [], [(0, 0), (0, 0)]
        self.counts = []
        for i in range(rank):
            size, stride, extent = self.sizes[i], self.strides[i], (kernel[i] - 1) * self.dilations[i] + 1
            room = size + self.before[i] + after[i] - extent
            count = room // stride + 1
            if ceil_mode and auto_pad in ("NOTSET", ""):
                count = (room + stride - 1) // stride + 1
                if (count - 1) * stride >= size + self.before[i]:  # no window begins in the padding at the end
                    count = count - 1
            self.counts.append(count)
            self.ends.append(size + self.before[i] + after[i])
            more = (count - 1) * stride + extent - size - self.before[i]
            rows.append((self.before[i], more if more > 0 else 0))
        self.x = pad_with(x, rows, value)
        self.is_padded = any(map(any, rows))

    def taps_inside(self, include_pads):
        """How many elements each window counts, as a list per axis; None where each counts all."""
        if not self.is_padded:
            return None
        result = []
        for i, k in enumerate(self.kernel):
            low, high = (0, self.ends[i]) if include_pads else (self.before[i], self.before[i] + self.sizes[i])
            starts = [at * self.strides[i] for at in range(self.counts[i])]
            result.append([sum(low <= start + tap * self.dilations[i] < high for tap in range(k)) for start in starts])
        return None if all(n == k for row, k in zip(result, self.kernel) for n in row) else result

    def sums(self):
        """The sum of each window."""
        if all(d == 1 for d in self.dilations):
            x = bp.avg_pool(self.x, self.kernel, self.strides, [0] * len(self.kernel))
            return x * prod(self.kernel)
        x = self.x
        for i, k in enumerate(self.kernel):
            x = bp.sum(bp.unfold(x, 2 + i, k, self.strides[i], self.dilations[i]), axis=-1, dtype=x.dtype)
        return x


@op("AveragePool", 7)
def average_pool(x, *, auto_pad="NOTSET", ceil_mode=0, count_include_pad=0, dilations=None, kernel_shape, pads=None, strides=None):
    found = _Windows(x, kernel_shape, strides, dilations, pads, auto_pad, ceil_mode, 0)
    counts = found.taps_inside(count_include_pad)
    if counts is None:
        if all(d == 1 for d in found.dilations):
            return bp.avg_pool(found.x, kernel_shape, found.strides, [0] * len(kernel_shape))
        return found.sums() / prod(kernel_shape)
    sums = found.sums()
    for i, row in enumerate(counts):
        sums = sums / bp.reshape(bp.asarray(row, dtype=x.dtype, device=x.device), (-1,) + (1,) * (len(counts) - 1 - i))
    return sums


@op("MaxPool", 1)
def max_pool(node, x, *, auto_pad="NOTSET", ceil_mode=0, dilations=None, kernel_shape, pads=None, storage_order=0, strides=None):
    is_floating = bp.isdtype(x.dtype, "real floating")
    least = float("-inf") if is_floating else bp.iinfo(x.dtype).min
    found = _Windows(x, kernel_shape, strides, dilations, pads, auto_pad, ceil_mode, least)
    zeros = [0] * len(kernel_shape)
    if not node.wants(1):
        plain = len(kernel_shape) == 2 and is_floating and all(d == 1 for d in found.dilations)
        if plain and not ceil_mode and list(found.before) == list((pads or [0] * 4)[2:]) and auto_pad in ("NOTSET", ""):
            if all(2 * p <= k for p, k in zip(found.before, kernel_shape)):
                return bp.max_pool2d(x, kernel_shape, found.strides, found.before)
        if plain:
            return bp.max_pool2d(found.x, kernel_shape, found.strides, zeros)
        y = found.x
        for i, k in enumerate(kernel_shape):
            y = bp.amax(bp.unfold(y, 2 + i, k, found.strides[i], found.dilations[i]), axis=-1)
        return y
    values, places = bp.max_pool_with_indices(
        found.x if is_floating else bp.cast(found.x, bp.float32), kernel_shape, found.strides, zeros, found.dilations, False
    )
    return bp.cast(values, x.dtype), _flat_places(places, x, found, storage_order)


def _flat_places(places, x, found, storage_order):
    """Places within the padded planes, as places within all of x."""
    sizes, padded = found.sizes, found.x.shape[2:]
    parts = []
    for axis in reversed(range(len(sizes))):
        parts.insert(0, bp.remainder(places, padded[axis]) - found.before[axis])
        places = bp.floor_divide(places, padded[axis])
    flat = bp.zeros_like(places)
    order = range(len(sizes)) if not storage_order else reversed(range(len(sizes)))
    for axis in order:
        flat = flat * sizes[axis] + parts[axis]
    planes = bp.arange(prod(x.shape[:2]), device=x.device) * prod(sizes)
    return flat + bp.reshape(planes, (*x.shape[:2],) + (1,) * len(sizes))


@op("MaxUnpool", 9, static=(2,))
def max_unpool(x, places, output_shape=None, *, kernel_shape, pads=None, strides=None):
    rank = len(kernel_shape)
    strides, pads = strides or [1] * rank, pads or [0] * 2 * rank
    sizes = [(x.shape[2 + i] - 1) * strides[i] - pads[i] - pads[rank + i] + kernel_shape[i] for i in range(rank)]
    shape = [*x.shape[:2], *sizes]
    zeros = bp.zeros((prod(shape),), dtype=x.dtype, device=x.device)
    y = bp.reshape(bp.put_along_axis(zeros, bp.reshape(places, (-1,)), bp.reshape(x, (-1,)), axis=0), shape)
    if output_shape is None:
        return y
    return pad_with(y, [(0, wanted - size) for wanted, size in zip(integers(output_shape), shape)], 0)


@op("LpPool", 2)
def lp_pool(x, *, auto_pad="NOTSET", ceil_mode=0, dilations=None, kernel_shape, p=2, pads=None, strides=None):
    found = _Windows(bp.pow(bp.abs(x), p), kernel_shape, strides, dilations, pads, auto_pad, ceil_mode, 0)
    return bp.pow(found.sums(), 1 / p)


def _spatial(x):
    return tuple(range(2, x.ndim))


op("GlobalAveragePool", 1)(lambda x: bp.mean(x, axis=_spatial(x), keepdims=True))
op("GlobalMaxPool", 1)(lambda x: bp.amax(x, axis=_spatial(x), keepdims=True))


@op("GlobalLpPool", 2)
def global_lp_pool(x, *, p=2):
    return bp.pow(bp.sum(bp.pow(bp.abs(x), p), axis=_spatial(x), keepdims=True), 1 / p)
