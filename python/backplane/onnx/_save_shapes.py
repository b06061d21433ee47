"""save's table: views, joins, creation, indices."""

import numpy as np

from ._table import refuse
from ._writer import Size, static, writes


@writes("reshape")
def reshape(w, node, x, shape):
    sizes = [-1 if isinstance(size, int) and size < 0 else size for size in node.shape]
    return w.emit("Reshape", [w.name(x), w.shape(sizes)], allowzero=1 if 0 in sizes else None)


@writes("permute_dims")
def permute_dims(w, node, x, axes):
    rank = len(w.shapes[x])
    return w.emit("Transpose", [w.name(x)], perm=[axis % rank for axis in axes])


@writes("broadcast_to")
def broadcast_to(w, node, x, shape):
    return w.emit("Expand", [w.name(x), w.shape(node.shape)])


@writes("squeeze")
def squeeze(w, node, x, axis):
    return w.emit("Squeeze", [w.name(x), w.shape(axis)])


@writes("expand_dims")
def expand_dims(w, node, x, axis):
    return w.emit("Unsqueeze", [w.name(x), w.shape(axis if isinstance(axis, list) else [axis])])


@writes("select")
def select(w, node, x, axis, index):
    return w.emit("Gather", [w.name(x), w.emit("Squeeze", [w.size(index)]) if isinstance(index, Size) else w.constant(np.int64(index))], axis=axis)


@writes("slice")
def slice_of(w, node, x, axes, starts, stops, steps):
    begins, ends = [], []
    for start, stop, step in zip(starts, stops, steps):
        least = -(2**62)
        begins.append((0 if step > 0 else 2**62) if start is None else start)
        ends.append((2**62 if step > 0 else least) if stop is None else stop)
    return w.emit("Slice", [w.name(x), w.shape(begins), w.shape(ends), w.shape(axes), w.shape(steps)])


@writes("concat")
def concat(w, node, arrays, axis=0):
    return w.emit("Concat", [w.operand(x, node.dtype) for x in arrays], axis=axis)


@writes("full")
def full(w, node, shape, fill_value, dtype=None, device=None):
    number = w.number(fill_value, node.dtype)
    return w.emit("Expand", [number, w.shape(shape)]) if shape else number


@writes("iota")
def iota(w, node, n, start=0, step=1, dtype=None, device=None):
    whole = node.dtype if node.dtype.endswith(("t32", "t64")) and node.dtype.startswith("float") else "int64"  # those that ONNX's Range takes
    count = w.cast(w.emit("Squeeze", [w.size(n)]), "int64", whole)
    steps = w.emit("Range", [w.number(0, whole), count, w.number(1, whole)])
    scaled = w.emit("Add", [w.emit("Mul", [steps, w.number(step, whole)]), w.number(start, whole)])
    return w.cast(scaled, whole, node.dtype)


@writes("pad")
def pad(w, node, x, before, after, value=0):
    return w.emit("Pad", [w.name(x), w.shape([*before, *after]), w.operand(value, node.dtype)])


@writes("pad_edges")
def pad_edges(w, node, x, before, after, mode="replicate"):
    names = {"replicate": "edge", "reflect": "reflect", "circular": "wrap"}
    if mode not in names:
        refuse(f"the mode {mode} is not supported")
    return w.emit("Pad", [w.name(x), w.shape([*before, *after])], mode=names[mode])


@writes("take")
def take(w, node, x, indices, axis=None):
    name = w.name(x)
    if axis is None:
        name, axis = w.emit("Reshape", [name, w.shape([-1])]), 0
    return w.emit("Gather", [name, w.operand(indices, "int64")], axis=axis)


@writes("embedding")
def embedding(w, node, weight, indices):
    return take(w, node, weight, indices, 0)


@writes("take_along_axis")
def take_along_axis(w, node, x, indices, axis=-1):
    return w.emit("GatherElements", [w.name(x), w.operand(indices, "int64")], axis=axis)


@writes("put_along_axis")
def put_along_axis(w, node, x, indices, values, axis=-1, accumulate=False):
    inputs = [w.name(x), w.operand(indices, "int64"), w.operand(values, node.dtype)]
    return w.emit("ScatterElements", inputs, axis=axis, reduction="add" if accumulate else None)


def _positions(w, x, indices):
    """Index tensors of the first axes as one tensor of index tuples."""
    if any(index is None for index in indices):
        refuse("indices of axes that are not the first ones are not supported")
    parts = [w.operand(index, "int64") for index in indices]
    total = parts[0]
    for part in parts[1:]:
        total = w.emit("Add", [total, part])
    shape = w.emit("Shape", [total])
    rows = [w.emit("Unsqueeze", [w.emit("Expand", [part, shape]), w.shape([-1])]) for part in parts]
    return rows[0] if len(rows) == 1 else w.emit("Concat", rows, axis=-1)


@writes("index")
def index(w, node, x, indices):
    given = [i for i, one in enumerate(indices) if one is not None]
    if len(given) == 1:
        return w.emit("Gather", [w.name(x), w.operand(indices[given[0]], "int64")], axis=given[0])
    return w.emit("GatherND", [w.name(x), _positions(w, x, indices)])


@writes("index_put")
def index_put(w, node, x, indices, values, accumulate=False):
    places = _positions(w, x, indices)
    rest = static(w.shapes[x][len(indices) :], "index_put")
    found = w.emit("Slice", [w.emit("Shape", [places]), w.shape([0]), w.shape([-1])])
    updates = w.emit("Expand", [w.operand(values, node.dtype), w.emit("Concat", [found, w.shape(rest)], axis=0) if rest else found])
    return w.emit("ScatterND", [w.name(x), places, updates], reduction="add" if accumulate else None)


def _places(w, x):
    """The place of each element of x in a flat copy, as a NumPy array of x's shape."""
    sizes = static(w.shapes[x], "this op")
    return np.arange(int(np.prod(sizes)), dtype=np.int64).reshape(sizes)


def _gathered(w, x, places):
    flat = w.emit("Reshape", [w.name(x), w.shape([-1])])
    return w.emit("Gather", [flat, w.constant(np.ascontiguousarray(places))], axis=0)


@writes("diagonal")
def diagonal(w, node, x, offset=0, axis1=0, axis2=1):
    return _gathered(w, x, np.diagonal(_places(w, x), offset, axis1, axis2))


@writes("unfold")
def unfold(w, node, x, axis, size, step=1, dilation=1):
    rank = len(w.shapes[x])
    axis %= rank
    count = static([node.shape[axis]], "unfold")[0]
    places = np.arange(count)[:, None] * step + np.arange(size) * dilation
    wide = w.emit("Gather", [w.name(x), w.constant(places.astype(np.int64))], axis=axis)  # (..., windows, taps, ...)
    order = [i for i in range(rank + 1) if i != axis + 1] + [axis + 1]
    return w.emit("Transpose", [wide], perm=order)


@writes("slice_put")
def slice_put(w, node, x, value, axes, starts, stops, steps):
    places = _places(w, x)
    rows = [slice(None)] * places.ndim
    for axis, *bounds in zip(axes, starts, stops, steps):
        rows[axis] = slice(*bounds)
    return _scattered(w, node, x, value, places[tuple(rows)])


def _scattered(w, node, x, value, places):
    flat = w.emit("Reshape", [w.name(x), w.shape([-1])])
    updates = w.emit("Expand", [w.operand(value, node.dtype), w.shape(places.shape)])
    updates = w.emit("Reshape", [updates, w.shape([-1])])
    found = w.emit("ScatterElements", [flat, w.constant(places.reshape(-1)), updates], axis=0)
    return w.emit("Reshape", [found, w.shape(node.shape)])


def _triangle(upper):
    def write(w, node, x, k=0):
        if not (node.dtype.startswith(("float", "int64", "bool")) and node.dtype != "bfloat16"):
            refuse(f"tensors of {node.dtype} are not supported")
        return w.emit("Trilu", [w.name(x), w.constant(np.int64(k))], upper=upper)

    return write


writes("tril")(_triangle(0))
writes("triu")(_triangle(1))
