"""The modes of pad that compute the padding from the tensor: statistics, ramps, odd reflections, and functions of the caller."""

from .. import _core
from ._data_type_functions import isdtype
from .._calls._ops import NAMESPACE, ops
from ._quantiles import median

op = getattr(ops, NAMESPACE)


def _rounded(value, dtype):
    """A statistic in the dtype of the padded tensor; of integers the nearest one."""
    if value.dtype is dtype:
        return value
    return op.cast(op.round(value) if isdtype(dtype, "integral") else value, dtype)


def _mean(x, axis):
    return op.mean(x if isdtype(x.dtype, ("real floating", "complex floating")) else op.cast(x, _core.float64), [axis], keepdims=True)


_STATISTICS = {
    "maximum": lambda x, axis: op.max(x, [axis], keepdims=True),
    "minimum": lambda x, axis: op.min(x, [axis], keepdims=True),
    "mean": _mean,
    "median": lambda x, axis: median(x, axis, keepdims=True),
}  # fmt: skip


def _part(x, axis, start, stop, step=1):
    return op.slice(x, [axis], [start], [stop], [step])


def _joined(before, x, after, axis):
    return op.concat([piece for piece in (before, x, after) if piece is not None and piece.shape[axis]], axis=axis)


def _repeated(piece, axis, count):
    return op.broadcast_to(piece, [count if place == axis else size for place, size in enumerate(piece.shape)])


def by_statistic(x, axis, counts, mode, lengths):
    """The statistic of the `lengths` elements at each end; of all of them where a length is None."""
    size = x.shape[axis]
    first, last = (size if length is None else min(length, size) for length in lengths)
    if not first or not last:
        raise _core.ArgumentValueError(f"pad: argument stat_length: found 0 with mode {mode!r}, expected at least 1")
    ends = _part(x, axis, None, first), _part(x, axis, size - last, None)
    before, after = (_repeated(_rounded(_STATISTICS[mode](end, axis), x.dtype), axis, n) if n else None for end, n in zip(ends, counts))
    return _joined(before, x, after, axis)


def by_ramp(x, axis, counts, values):
    """Numbers from each end value, which is the outermost, to the edge in equal steps; of integers rounded down."""
    pieces = []
    for count, value, place in zip(counts, values, (0, x.shape[axis] - 1)):
        edge = _part(x, axis, place, place + 1)
        wide = edge if isdtype(x.dtype, ("real floating", "complex floating")) else op.cast(edge, _core.float64)
        shape = [count if at == axis else 1 for at in range(x.ndim)]
        part = op.divide(op.reshape(op.arange(0, count, dtype=op.real(wide).dtype, device=x.device), shape), max(count, 1))
        ramp = op.add(op.multiply(op.subtract(wide, value), part), value)
        ramp = ramp if ramp.dtype is x.dtype else op.cast(op.floor(ramp), x.dtype)
        pieces.append(op.flip(ramp, [axis]) if place or pieces else ramp)
    return _joined(pieces[0], x, pieces[1], axis)


def by_odd_reflection(x, axis, counts, with_edge):
    """Mirrored about the point of each edge, twice the edge less the element; with_edge: the edge is mirrored too."""
    size = x.shape[axis]
    period = 2 * size if with_edge else 2 * (size - 1)
    if size == 1:
        return _joined(_repeated(x, axis, counts[0]), x, _repeated(x, axis, counts[1]), axis)
    first, last = _part(x, axis, 0, 1), _part(x, axis, size - 1, size)

    def at(positions):
        rest = [position % period for position in positions]
        mirrored = [r >= size for r in rest]
        source = [period - (1 if with_edge else 0) - r if turned else r for r, turned in zip(rest, mirrored)]
        values = op.take(x, _core.asarray(source, dtype=_core.int64, device=x.device), axis=axis)
        shape = [len(positions) if place == axis else 1 for place in range(x.ndim)]

        def row(numbers):
            return op.reshape(_core.asarray(numbers, dtype=x.dtype, device=x.device), shape)

        turned = op.where(row(mirrored) != 0, op.subtract(op.multiply(last, 2), values), values)
        return op.add(turned, op.multiply(row([2 * (p // period) for p in positions]), op.subtract(last, first)))

    before = at(list(range(-counts[0], 0))) if counts[0] else None
    after = at(list(range(size, size + counts[1]))) if counts[1] else None
    return _joined(before, x, after, axis)


def by_function(x, before, after, function, options):
    """NumPy's form: function(vector, (before, after), axis, options) writes into each vector of the padded tensor. Its padding starts as 0."""
    padded = op.pad(x, before, after)
    for axis in range(padded.ndim):
        lanes = op.moveaxis(padded, axis, -1)
        for index in _indices(lanes.shape[:-1]):
            function(lanes[index], (before[axis], after[axis]), axis, options)
    return padded


def _indices(shape):
    found = [()]
    for size in shape:
        found = [(*index, place) for index in found for place in range(size)]
    return found
