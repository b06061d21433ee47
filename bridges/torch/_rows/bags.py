"""What rows of aten.txt call for embedding bags: sums, means and maxima over groups of rows of a table.

Bag b is made of the places of `indices` from offsets[b] to the next offset. Modes are PyTorch's numbers: 0 sum, 1 mean, 2 max.
"""

from __future__ import annotations

import backplane as bp

__all__ = ["embedding_bag", "embedding_bag_backward", "embedding_bag_weights_backward"]

op = bp.ops.bp
_MEAN, _MAX = 1, 2


def _bag_of_each(offsets, count):
    return bp.searchsorted(offsets, bp.arange(count, dtype=offsets.dtype), side="right") - 1


def _counted(indices, padding_idx):
    """(places,): is this a place that counts?"""
    return bp.ones(indices.shape, dtype=bp.bool) if padding_idx < 0 else indices != padding_idx


def _sums(values, bags, count):
    return op.index_add(bp.zeros([count, *values.shape[1:]], dtype=values.dtype), 0, bags, values)


def embedding_bag(weight, indices, offsets, mode, weights, include_last_offset, padding_idx):
    """(bags, the bag of each place, the places that each bag counts, of a maximum the row that it came from)."""
    places, count = indices.shape[0], offsets.shape[0] - (1 if include_last_offset else 0)
    bags = _bag_of_each(offsets[:count], places)
    counted = _counted(indices, padding_idx)
    sizes = _sums(op.cast(counted, indices.dtype), bags, count)
    rows = bp.take(weight, indices, axis=0)
    if weights is not None:
        rows = rows * bp.expand_dims(weights, [1])
    if mode == _MAX:
        found, chosen = _maxima(rows, indices, bags, counted, count)
        return found, op.cast(bags, indices.dtype), sizes, chosen
    found = _sums(bp.where(bp.expand_dims(counted, [1]), rows, 0), bags, count)
    if mode == _MEAN:
        found = found / bp.expand_dims(op.cast(bp.maximum(sizes, 1), found.dtype), [1])
    return found, op.cast(bags, indices.dtype), sizes, bp.zeros((0,), dtype=indices.dtype)


def _maxima(rows, indices, bags, counted, count):
    """(the maxima of each bag, 0 of an empty one; the first row of the table that has each, -1 of an empty bag)."""
    shape = [count, rows.shape[1]]
    if not rows.shape[0]:
        return bp.zeros(shape, dtype=rows.dtype), bp.full(shape, -1, dtype=indices.dtype)
    counted = bp.expand_dims(counted, [1])
    targets = bp.broadcast_to(bp.expand_dims(bags, [1]), rows.shape)
    lowest = bp.full(shape, -bp.inf, dtype=rows.dtype)
    highest = bp.scatter(lowest, 0, targets, bp.where(counted, rows, -bp.inf), "max")
    places = bp.expand_dims(bp.arange(rows.shape[0]), [1])
    is_highest = bp.logical_and(counted, rows == bp.take(highest, bags, axis=0))
    first = bp.scatter(bp.full(shape, rows.shape[0], dtype=places.dtype), 0, targets, bp.where(is_highest, places, rows.shape[0]), "min")
    is_empty = first == rows.shape[0]
    chosen = bp.take(indices, bp.minimum(first, rows.shape[0] - 1), axis=0)
    return bp.where(is_empty, 0, highest), bp.where(is_empty, -1, chosen)


def embedding_bag_backward(cotangent, indices, bags, sizes, chosen, count, scale_by_frequency, mode, weights, padding_idx):
    """The gradient of the table of `count` rows."""
    table = bp.zeros([count, cotangent.shape[1]], dtype=cotangent.dtype)
    if mode == _MAX:
        padded = bp.where(chosen < 0, count, chosen)  # an extra row takes what belongs to empty bags
        taller = bp.zeros([count + 1, cotangent.shape[1]], dtype=cotangent.dtype)
        return op.put_along_axis(taller, padded, cotangent, axis=0, accumulate=True)[:count]
    rows = bp.take(cotangent, bags, axis=0)
    if mode == _MEAN:
        rows = rows / bp.expand_dims(op.cast(bp.maximum(bp.take(sizes, bags, axis=0), 1), rows.dtype), [1])
    if weights is not None:
        rows = rows * bp.expand_dims(weights, [1])
    if scale_by_frequency:
        uses = _sums(bp.ones(indices.shape, dtype=rows.dtype), indices, count)
        rows = rows / bp.expand_dims(bp.take(uses, indices, axis=0), [1])
    return op.index_add(table, 0, indices, bp.where(bp.expand_dims(_counted(indices, padding_idx), [1]), rows, 0))


def embedding_bag_weights_backward(cotangent, weight, indices, offsets, bags, padding_idx):
    """The gradient of the weight of each place, in a sum."""
    if not bags.shape[0]:
        bags = _bag_of_each(offsets, indices.shape[0])
    found = bp.sum(bp.take(cotangent, bags, axis=0) * bp.take(weight, indices, axis=0), [1])
    return bp.where(_counted(indices, padding_idx), found, 0)
