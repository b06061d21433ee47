"""Ops that move elements without computing: reshape, transpose, slices, joins, pads."""

import numpy as np

import backplane as bp
from backplane import Tensor

from ._table import on_host, op, refuse
from ._values import integers, is_plain, prod

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


def whole_axis(axis: int, rank: int) -> int:
    if not -rank <= axis < max(rank, 1):
        raise bp.OutOfRangeError(f"axis {axis} is out of range for {rank} axes")
    return axis + rank if axis < 0 else axis


def _reshaped_sizes(old, new, allowzero):
    """The shape that Reshape asks for, with 0 (the old size) and -1 (the rest) replaced. -1 stays where a dynamic size would divide."""
    sizes = [old[i] if is_plain(size) and size == 0 and not allowzero else size for i, size in enumerate(new)]
    if not any(is_plain(size) and size == -1 for size in sizes):
        return sizes
    rest = next(i for i, size in enumerate(sizes) if is_plain(size) and size == -1)
    total, known = list(old), []
    for size in sizes[:rest] + sizes[rest + 1 :]:
        same = [i for i, other in enumerate(total) if other is size]
        if is_plain(size) or not same:
            known.append(size)
        else:  # a dynamic size on both sides
            total.pop(same[0])
    if is_plain(*known):
        count = prod(known)
        sizes[rest] = prod(total) // count if count else 0
    return sizes


@op("Reshape", 5, static=(1,))
def reshape(x, shape, *, allowzero=0):
    return bp.reshape(x, _reshaped_sizes(x.shape, integers(shape), allowzero))


@on_host("Reshape")
def reshape_on_host(x, shape, *, allowzero=0):
    return x.reshape(_reshaped_sizes(x.shape, integers(shape), allowzero))


@op("Flatten", 1)
def flatten(x, *, axis=1):
    axis += x.ndim if axis < 0 else 0
    return bp.reshape(x, (prod(x.shape[:axis]), prod(x.shape[axis:])))


@op("Transpose", 1)
def transpose(x, *, perm=None):
    return bp.permute_dims(x, perm if perm is not None else tuple(reversed(range(x.ndim))))


@on_host("Transpose")
def transpose_on_host(x, *, perm=None):
    return np.transpose(x, perm)


@op("Squeeze", 1)
def squeeze_by_attribute(x, *, axes=None):
    return squeeze(x, axes)


@op("Squeeze", 13, static=(1,))
def squeeze(x, axes=None):
    axes = [axis for axis, size in enumerate(x.shape) if size == 1] if axes is None else [whole_axis(int(axis), x.ndim) for axis in axes]
    for axis in axes:
        if x.shape[axis] != 1:
            raise bp.ShapeError(f"axis {axis} has size {x.shape[axis]}, expected 1")
    return bp.reshape(x, [size for axis, size in enumerate(x.shape) if axis not in axes])


@on_host("Squeeze")
def squeeze_on_host(x, given=None, *, axes=None):
    axes = axes if given is None else integers(given)
    return np.squeeze(x, None if axes is None else tuple(axes))


@op("Unsqueeze", 1)
def unsqueeze_by_attribute(x, *, axes):
    return unsqueeze(x, axes)


@op("Unsqueeze", 13, static=(1,))
def unsqueeze(x, axes):
    axes = np.reshape(axes, -1)
    rank = x.ndim + len(axes)
    return bp.expand_dims(x, tuple(sorted(whole_axis(int(axis), rank) for axis in axes)))


@on_host("Unsqueeze")
def unsqueeze_on_host(x, given=None, *, axes=None):
    return np.expand_dims(x, tuple(integers(given)) if axes is None else tuple(axes))


@op("Concat", 4)
def concat(*inputs, axis):
    return bp.concat(list(inputs), axis=axis) if len(inputs) > 1 else inputs[0]


@on_host("Concat")
def concat_on_host(*inputs, axis):
    return np.concatenate(inputs, axis)


@op("Slice", 1)
def slice_by_attributes(x, *, starts, ends, axes=None):
    return slice_of(x, starts, ends, axes)


@op("Slice", 10, static=(1, 2, 3, 4))
def slice_of(x, starts, ends, axes=None, steps=None):
    starts, ends = integers(np.asarray(starts)), integers(np.asarray(ends))
    axes = list(range(len(starts))) if axes is None else [whole_axis(int(axis), x.ndim) for axis in axes]
    steps = [1] * len(starts) if steps is None else integers(steps)
    bounds = [_bounds(x.shape[axis], *row) for axis, *row in zip(axes, starts, ends, steps)]
    forward = [(axis, *bound, step) for axis, bound, step in zip(axes, bounds, steps) if step > 0]
    if forward:
        x = bp.slice(x, *[list(column) for column in zip(*forward)])
    for axis, (first, last), step in zip(axes, bounds, steps):
        if step < 0:
            x = x[(slice(None),) * axis + (slice(first, None if last < 0 else last, step),)]
    return x


def _bounds(size, start, end, step):
    """Bounds within the axis, as ONNX clamps them; from the end where they are negative."""
    start = start + size if start < 0 else start
    end = end + size if end < 0 else end
    if step > 0:
        start = size if start > size else 0 if start < 0 else start
        end = size if end > size else 0 if end < 0 else end
        return start, start if end < start else end
    start = size - 1 if start > size - 1 else -1 if start < 0 else start
    return start, -1 if end < 0 else size if end > size else end


@on_host("Slice")
def slice_on_host(x, starts=None, ends=None, axes=None, steps=None, **attributes):
    if attributes:
        return NotImplemented
    starts, ends = integers(starts), integers(ends)
    axes = range(len(starts)) if axes is None else integers(axes)
    places = [slice(None)] * x.ndim
    for axis, start, end, step in zip(axes, starts, ends, integers(steps) or [1] * len(starts)):
        first, last = _bounds(x.shape[axis], start, end, step)
        places[axis] = slice(first, None if last < 0 else last, step)
    return x[tuple(places)]


@op("Split", 2)
def split_by_attribute(node, x, *, axis=0, split=None):
    return split_of(node, x, split, axis=axis)


@op("Split", 13, static=(1,))
def split_of(node, x, split=None, *, axis=0, num_outputs=None):
    axis = whole_axis(axis, x.ndim)
    if split is None:
        count = len(node.outputs)
        part = -(-x.shape[axis] // count) if num_outputs is not None else x.shape[axis] // count
        sizes = [part] * (count - 1) + [x.shape[axis] - part * (count - 1)]
    else:
        sizes = [int(size) for size in np.reshape(split, -1)]
        if sum(sizes) != x.shape[axis]:
            raise bp.ShapeError(f"split: the sizes {sizes} do not add up to {x.shape[axis]}, the size of axis {axis}")
    results, start = [], 0
    for size in sizes:
        results.append(bp.slice(x, [axis], [start], [start + size], [1]))
        start = start + size
    return tuple(results)


@on_host("Split")
def split_on_host(x, given=None, *, axis=0, split=None, num_outputs=None):
    sizes = integers(given) or split
    return tuple(np.split(x, np.cumsum(sizes)[:-1], axis)) if sizes and x.dtype != object else NotImplemented


@op("Expand", 8, static=(1,))
def expand(x, shape):
    return bp.broadcast_to(x, _joint_shape(x.shape, integers(shape)))


def _joint_shape(old: "Sequence[int]", new: "Sequence[int]") -> "list[int]":
    rank = max(len(old), len(new))
    old, new = [1] * (rank - len(old)) + list(old), [1] * (rank - len(new)) + list(new)
    return [a if is_plain(b) and b == 1 else b for a, b in zip(old, new)]


@on_host("Expand")
def expand_on_host(x, shape):
    sizes = integers(shape)
    if shape.dtype == object or prod(sizes) > 1024:
        return NotImplemented
    return x * np.ones(sizes, x.dtype) if x.dtype != bool else np.broadcast_to(x, _joint_shape(x.shape, sizes))


@op("Tile", 6, static=(1,))
def tile(x, repeats):
    return bp.tile(x, integers(repeats))


@on_host("Tile")
def tile_on_host(x, repeats):
    return NotImplemented if repeats.dtype == object or x.size * prod(integers(repeats)) > 1024 else np.tile(x, integers(repeats))


@op("Pad", 2)
def pad_by_attributes(x, *, pads, mode="constant", value=0.0):
    return _padded(x, pads, list(range(x.ndim)), mode, value)


@op("Pad", 11, static=(1, 3))
def pad(x, pads, value=None, axes=None, *, mode="constant"):
    axes = list(range(x.ndim)) if axes is None else [whole_axis(int(axis), x.ndim) for axis in axes]
    return _padded(x, integers(pads), axes, mode, value)


_PAD_MODES = ("edge", "reflect", "wrap")


def _padded(x, pads, axes, mode, value):
    half = len(pads) // 2
    widths = dict(zip(axes, zip(pads[:half], pads[half:])))
    for axis, (before, after) in widths.items():  # negative pads remove elements
        if before < 0 or after < 0:
            start = -before if before < 0 else 0
            x = bp.slice(x, [axis], [start], [x.shape[axis] + (after if after < 0 else 0)], [1])
    rows = [tuple(width if width > 0 else 0 for width in widths.get(axis, (0, 0))) for axis in range(x.ndim)]
    if mode == "constant":
        return pad_with(x, rows, 0 if value is None else value)
    if mode not in _PAD_MODES:
        refuse(f"the mode {mode} is not supported")
    return bp.pad(x, rows, mode=mode)


def pad_with(x: Tensor, rows: "Sequence[tuple[int, int]]", value: "Tensor | float") -> Tensor:
    """x between blocks of one value; rows: the sizes of the blocks before and after, by axis."""
    if not isinstance(value, Tensor):
        return bp.pad(x, list(rows), constant_values=value) if any(map(any, rows)) else x
    for axis, (before, after) in enumerate(rows):
        parts = [x]
        for place, size in ((0, before), (2, after)):
            if size:
                block = bp.broadcast_to(bp.reshape(bp.cast(value, x.dtype), (1,) * x.ndim), (*x.shape[:axis], size, *x.shape[axis + 1 :]))
                parts.insert(0 if place == 0 else len(parts), block)
        x = bp.concat(parts, axis=axis) if len(parts) > 1 else x
    return x


@op("CenterCropPad", 18, static=(1,))
def center_crop_pad(x, shape, *, axes=None):
    axes = list(range(x.ndim)) if axes is None else [whole_axis(axis, x.ndim) for axis in axes]
    rows = [(0, 0)] * x.ndim
    for axis, size in zip(axes, integers(shape)):
        old = x.shape[axis]
        if old > size:
            start = (old - size) // 2
            x = bp.slice(x, [axis], [start], [start + size], [1])
        elif old < size:
            rows[axis] = ((size - old) // 2, size - old - (size - old) // 2)
    return pad_with(x, rows, 0)


@op("DepthToSpace", 1)
def depth_to_space(x, *, blocksize, mode="DCR"):
    n, c, h, w = x.shape
    if mode == "DCR":
        x = bp.reshape(x, (n, blocksize, blocksize, c // blocksize**2, h, w))
        x = bp.permute_dims(x, (0, 3, 4, 1, 5, 2))
    else:
        x = bp.reshape(x, (n, c // blocksize**2, blocksize, blocksize, h, w))
        x = bp.permute_dims(x, (0, 1, 4, 2, 5, 3))
    return bp.reshape(x, (n, c // blocksize**2, h * blocksize, w * blocksize))


@op("SpaceToDepth", 1)
def space_to_depth(x, *, blocksize, mode="DCR"):
    n, c, h, w = x.shape
    x = bp.reshape(x, (n, c, h // blocksize, blocksize, w // blocksize, blocksize))
    order = (0, 3, 5, 1, 2, 4) if mode == "DCR" else (0, 1, 3, 5, 2, 4)
    return bp.reshape(bp.permute_dims(x, order), (n, c * blocksize**2, h // blocksize, w // blocksize))


@op("Trilu", 14, static=(1,))
def triangle(x, k=None, *, upper=1):
    k = 0 if k is None else int(k.reshape(-1)[0])
    return bp.triu(x, k=k) if upper else bp.tril(x, k=k)


@op("Optional", 15)
def optional(node, x=None, *, type=None):
    return (x,)


@op("OptionalHasElement", 15)
def has_element(node, x=None):
    from ._values import Host

    return Host(np.array(x is not None))


@op("OptionalGetElement", 15)
def get_element(x):
    if x is None:
        raise bp.ArgumentValueError("the optional value is empty")
    return x
