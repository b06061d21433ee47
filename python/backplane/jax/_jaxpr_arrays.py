"""to_graph's table: shapes, joins, slices, indices."""

import backplane as bp

from ._jaxpr_table import computes, dtype_of


@computes("broadcast_in_dim")
def broadcast_in_dim(x, *dynamic, shape, broadcast_dimensions, sharding=None):
    sizes = [1] * len(shape)
    for axis, place in enumerate(broadcast_dimensions):
        sizes[place] = x.shape[axis]
    return bp.broadcast_to(bp.reshape(x, sizes), shape)


@computes("reshape")
def reshape(x, *dynamic, new_sizes, dimensions, sharding=None):
    return bp.reshape(x if dimensions is None else bp.permute_dims(x, dimensions), new_sizes)


@computes("transpose")
def transpose(x, *, permutation):
    return bp.permute_dims(x, permutation)


@computes("squeeze")
def squeeze(x, *, dimensions):
    return bp.reshape(x, [size for axis, size in enumerate(x.shape) if axis not in dimensions])


@computes("expand_dims")
def expand_dims(x, *, dimensions):
    return bp.expand_dims(x, tuple(dimensions))


@computes("rev")
def reverse(x, *, dimensions):
    return bp.flip(x, tuple(dimensions)) if dimensions else x


@computes("concatenate")
def concatenate(*inputs, dimension):
    return bp.concat(list(inputs), axis=dimension)


@computes("stack")
def stack(*inputs, axis):
    return bp.stack(list(inputs), axis=axis)


@computes("unstack")
def unstack(x, *, axis):
    return list(bp.unstack(x, axis=axis))


@computes("tile")
def tile(x, *, reps):
    return bp.tile(x, reps)


@computes("split")
def split(x, *, sizes, axis):
    found, start = [], 0
    for size in sizes:
        found.append(bp.slice(x, [axis], [start], [start + size], [1]))
        start += size
    return found


@computes("iota")
def iota(*dynamic, device, dtype, shape, dimension, sharding=None):
    row = bp.cast(bp.arange(shape[dimension], device=device), dtype_of(dtype))
    return bp.broadcast_to(bp.reshape(row, [-1 if axis == dimension else 1 for axis in range(len(shape))]), shape)


@computes("slice")
def slice_of(x, *, start_indices, limit_indices, strides):
    axes = list(range(x.ndim))
    return bp.slice(x, axes, list(start_indices), list(limit_indices), list(strides or [1] * x.ndim)) if axes else x


@computes("pad")
def pad(x, value, *, padding_config):
    """Values between the elements first; then around them, where negative counts remove elements."""
    for axis, (low, high, interior) in enumerate(padding_config):
        size = x.shape[axis]
        if interior and size > 1:
            gap = bp.broadcast_to(bp.reshape(value, (1,) * (x.ndim + 1)), (*x.shape[: axis + 1], interior, *x.shape[axis + 1 :]))
            x = bp.concat([bp.expand_dims(x, axis=axis + 1), gap], axis=axis + 1)
            x = bp.reshape(x, (*x.shape[:axis], size * (interior + 1), *x.shape[axis + 2 :]))
            x = bp.slice(x, [axis], [0], [size * (interior + 1) - interior], [1])
        x = bp.slice(x, [axis], [max(0, -low)], [x.shape[axis] - max(0, -high)], [1])
        parts = [x]
        for count, place in ((low, 0), (high, len(parts) + 1)):
            if count > 0:
                block = bp.broadcast_to(bp.reshape(value, (1,) * x.ndim), (*x.shape[:axis], count, *x.shape[axis + 1 :]))
                parts.insert(place, block)
        x = bp.concat(parts, axis=axis) if len(parts) > 1 else x
    return x


def _positions(start, size, whole):
    """The places of a slice that begins at a computed index, moved so that it lies within the axis."""
    start = bp.minimum(bp.maximum(bp.cast(start, bp.int64), 0), whole - size)
    return start + bp.arange(size, device=start.device)


@computes("dynamic_slice")
def dynamic_slice(x, *starts, slice_sizes):
    for axis, (start, size) in enumerate(zip(starts, slice_sizes)):
        if size != x.shape[axis]:
            x = bp.take(x, _positions(start, size, x.shape[axis]), axis=axis)
    return x


@computes("dynamic_update_slice")
def dynamic_update_slice(x, update, *starts):
    if x.ndim == 0:
        return update
    flat = bp.zeros((), dtype=bp.int64, device=x.device)
    for axis, start in enumerate(starts):
        row = _positions(start, update.shape[axis], x.shape[axis])
        flat = flat * x.shape[axis] + bp.reshape(row, [-1 if i == axis else 1 for i in range(x.ndim)])
    found = bp.put_along_axis(bp.reshape(x, (-1,)), bp.reshape(flat, (-1,)), bp.reshape(update, (-1,)), axis=0)
    return bp.reshape(found, x.shape)


def _window_places(indices, x, numbers, sizes, clamps):
    """(places in flat x of each window's elements: batch sizes, then window sizes; whether each window lies within x)."""
    indices = bp.cast(indices, bp.int64)
    inside, flat = None, bp.zeros(indices.shape[:-1] + (1,) * x.ndim, dtype=bp.int64, device=x.device)
    starts = {axis: indices[..., i] for i, axis in enumerate(numbers)}
    for axis in range(x.ndim):
        offsets = bp.reshape(bp.arange(sizes[axis], device=x.device), [-1 if i == axis else 1 for i in range(x.ndim)])
        place = offsets
        if axis in starts:
            start = starts[axis]
            within = (start >= 0) & (start <= x.shape[axis] - sizes[axis])
            inside = within if inside is None else inside & within
            start = bp.minimum(bp.maximum(start, 0), x.shape[axis] - sizes[axis])
            place = bp.reshape(start, start.shape + (1,) * x.ndim) + offsets
        flat = flat * x.shape[axis] + place
    if inside is None:
        inside = bp.ones(indices.shape[:-1], dtype=bp.bool, device=x.device)
    return bp.broadcast_to(flat, indices.shape[:-1] + tuple(sizes)), inside


def _spread(index_numbers, batching, indices, sizes_of_batching):
    """The indices with a column for each batching dimension of the operand."""
    rank = indices.ndim - 1
    columns = [indices]
    for place, size in zip(batching, sizes_of_batching):
        row = bp.reshape(bp.arange(size, dtype=indices.dtype, device=indices.device), [-1 if i == place else 1 for i in range(rank)] + [1])
        columns.append(bp.broadcast_to(row, (*indices.shape[:-1], 1)))
    return bp.concat(columns, axis=-1)


@computes("gather")
def gather(x, indices, *, dimension_numbers, slice_sizes, mode, fill_value, indices_are_sorted, unique_indices):
    n = dimension_numbers
    numbers = [*n.start_index_map, *n.operand_batching_dims]
    if n.operand_batching_dims:
        indices = _spread(n, n.start_indices_batching_dims, indices, [x.shape[axis] for axis in n.operand_batching_dims])
    places, inside = _window_places(indices, x, numbers, slice_sizes, True)
    found = bp.reshape(bp.take(bp.reshape(x, (-1,)), bp.reshape(places, (-1,)), axis=0), places.shape)
    if "FILL" in str(mode).upper():
        fill = float("nan") if fill_value is None and bp.isdtype(x.dtype, "real floating") else 0 if fill_value is None else fill_value
        if fill_value is None and bp.isdtype(x.dtype, "integral"):
            info = bp.iinfo(x.dtype)
            fill = int(info.max) if int(info.min) == 0 else int(info.min)
        found = bp.where(bp.reshape(inside, inside.shape + (1,) * x.ndim), found, bp.full((), fill, dtype=x.dtype, device=x.device))
    dropped = [len(inside.shape) + axis for axis in (*n.collapsed_slice_dims, *n.operand_batching_dims)]
    found = bp.reshape(found, [size for axis, size in enumerate(found.shape) if axis not in dropped])
    rank, n_batch = found.ndim, inside.ndim
    order, batch, window = [], 0, n_batch
    for axis in range(rank):
        if axis in n.offset_dims:
            order.append(window)
            window += 1
        else:
            order.append(batch)
            batch += 1
    return bp.permute_dims(found, order) if order else found


def _scatter(combine):
    def scatter(x, indices, updates, *, dimension_numbers, indices_are_sorted, unique_indices, mode, update_jaxpr=None, update_consts=()):
        n = dimension_numbers
        numbers = [*n.scatter_dims_to_operand_dims, *n.operand_batching_dims]
        if n.operand_batching_dims:
            indices = _spread(n, n.scatter_indices_batching_dims, indices, [x.shape[axis] for axis in n.operand_batching_dims])
        window = [axis for axis in range(x.ndim) if axis not in (*n.inserted_window_dims, *n.operand_batching_dims)]
        sizes = [1] * x.ndim
        for axis, place in zip(window, n.update_window_dims):
            sizes[axis] = updates.shape[place]
        places, inside = _window_places(indices, x, numbers, sizes, False)
        batch = [axis for axis in range(updates.ndim) if axis not in n.update_window_dims]
        updates = bp.reshape(bp.permute_dims(updates, [*batch, *n.update_window_dims]) if updates.ndim else updates, places.shape)
        flat = bp.reshape(x, (-1,))
        if "CLIP" not in str(mode).upper() and "PROMISE" not in str(mode).upper():  # updates outside are dropped: written behind the end
            places = bp.where(bp.reshape(inside, inside.shape + (1,) * x.ndim), places, flat.shape[0])
        flat = bp.concat([flat, bp.zeros((1,), dtype=x.dtype, device=x.device)])
        found = combine(flat, bp.reshape(places, (-1,)), bp.reshape(updates, (-1,)))
        return bp.reshape(bp.slice(found, [0], [0], [found.shape[0] - 1], [1]), x.shape)

    return scatter


computes("scatter")(_scatter(lambda x, places, values: bp.put_along_axis(x, places, values, axis=0)))
computes("scatter-add", "scatter_add")(_scatter(lambda x, places, values: bp.put_along_axis(x, places, values, axis=0, accumulate=True)))
computes("scatter-sub", "scatter_sub")(_scatter(lambda x, places, values: bp.put_along_axis(x, places, bp.zeros_like(values) - values, axis=0, accumulate=True)))
computes("scatter-max", "scatter_max")(_scatter(lambda x, places, values: bp.scatter_max(x, places, values, axis=0)))
computes("scatter-min", "scatter_min")(_scatter(lambda x, places, values: bp.scatter_min(x, places, values, axis=0)))
computes("scatter-mul", "scatter_mul")(_scatter(lambda x, places, values: bp.scatter_prod(x, places, values, axis=0)))
