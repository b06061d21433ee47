"""NumPy's histograms of one, two and more variables."""

from __future__ import annotations

import math

from .. import _core
from .._api._bin_counts import bin_count
from .._api._statistical_functions import histogram as histogram_of
from ._calls import float64, op

__all__ = ["histogram", "histogram2d", "histogramdd"]


def histogram(a, bins, range, density, weights):
    bins = _core.asarray(bins) if isinstance(bins, (list, tuple)) else bins
    a = _core.asarray(a)
    bins = bin_count(bins, a, range, weights) if isinstance(bins, str) else bins
    weights = None if weights is None else _core.asarray(weights)
    return histogram_of(op.cast(a, _core.float64) if a.dtype.kind != "real floating" else a, bins, range, bool(density), weights)


def histogram2d(x, y, bins, range, density, weights):
    """The counts of pairs in cells of two rows of edges."""
    x, y = _core.asarray(x), _core.asarray(y)
    of_axes = bins if isinstance(bins, (list, tuple)) and len(bins) == 2 else [bins, bins]
    limits = [None, None] if range is None else range
    edges = [histogram(one, count, limit, None, None)[1] for one, count, limit in zip((x, y), of_axes, limits)]
    places = [op.subtract(op.searchsorted(edge, one, side="right"), 1) for edge, one in zip(edges, (x, y))]
    places = [op.where(op.equal(one, edge[-1]), edge.size - 2, place) for edge, one, place in zip(edges, (x, y), places)]
    inside = op.logical_and(*(op.logical_and(op.greater_equal(place, 0), op.less(place, edge.size - 1)) for edge, place in zip(edges, places)))
    shape = [edge.size - 1 for edge in edges]
    cell = op.where(inside, op.add(op.multiply(places[0], shape[1]), places[1]), 0)
    weights = op.full(x.shape, 1.0, dtype=_core.float64) if weights is None else _core.asarray(weights, dtype=_core.float64)
    counts = op.reshape(op.segment_sum(op.where(inside, weights, 0.0), cell, shape[0] * shape[1]), shape)
    if density:
        counts = op.divide(counts, op.multiply(op.sum(counts), op.outer(op.diff(edges[0]), op.diff(edges[1]))))
    return counts, *edges


def histogramdd(sample, bins, range, density, weights):
    """The counts of points in the cells of a grid, and the edges along each axis."""
    with float64:
        columns = [_core.asarray(one) for one in sample] if isinstance(sample, (list, tuple)) and isinstance(sample[0], _core.Tensor) else None
        sample = op.stack(columns, axis=-1) if columns else _core.asarray(sample)
    sample = op.expand_dims(sample, -1) if sample.ndim == 1 else sample
    count = sample.shape[1]
    of_axes = list(bins) if isinstance(bins, (list, tuple)) else [bins] * count
    limits = [None] * count if range is None else list(range)
    if len(of_axes) != count or len(limits) != count:
        raise _core.ArgumentValueError(f"histogramdd: found bins for {len(of_axes)} axes and ranges for {len(limits)}, expected {count}")
    inside, cell, edges = None, 0, []
    for axis, (of_axis, limit) in enumerate(zip(of_axes, limits)):
        x = sample[:, axis]
        edge = histogram(x, of_axis, limit, None, None)[1]
        place = op.subtract(op.searchsorted(edge, x, side="right"), 1)
        place = op.where(op.equal(x, edge[-1]), edge.size - 2, place)
        held = op.logical_and(op.greater_equal(place, 0), op.less(place, edge.size - 1))
        inside = held if inside is None else op.logical_and(inside, held)
        cell = op.add(op.multiply(cell, edge.size - 1), place)
        edges.append(edge)
    shape = [edge.size - 1 for edge in edges]
    weights = op.full([sample.shape[0]], 1.0, dtype=_core.float64) if weights is None else _core.asarray(weights, dtype=_core.float64)
    counts = op.reshape(op.segment_sum(op.where(inside, weights, 0.0), op.where(inside, cell, 0), math.prod(shape)), shape)
    if density:
        volume = op.full([], 1.0, dtype=_core.float64)
        for edge in edges:
            volume = op.multiply(op.expand_dims(volume, -1), op.diff(edge))
        counts = op.divide(counts, op.multiply(op.sum(counts), volume))
    return counts, edges
