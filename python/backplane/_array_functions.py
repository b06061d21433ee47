"""Functions of the array API standard that only shape arguments for ops, or that return tuples whose length follows from them."""

from . import _core
from ._ops import NAMESPACE, ops
from ._shape_functions import normalized_axis
from ._tensor_argument import require_tensor

op = getattr(ops, NAMESPACE)


def broadcast_shapes(*shapes):
    """The shape to which shapes broadcast; an unknown size (None) stays unknown beside 1 and itself, and gives way to others."""
    rank = max(map(len, shapes), default=0)
    result = []
    for sizes in zip(*((1,) * (rank - len(shape)) + tuple(shape) for shape in shapes)):
        known = {size for size in sizes if size is not None and size != 1}
        if len(known) > 1:
            raise _core.ShapeError(
                f"broadcast_shapes: found sizes {', '.join(map(str, sizes))} of axis {len(result) - rank}, "
                "expected one size, or 1"
            )
        result.append(known.pop() if known else None if None in sizes else 1)
    return tuple(result)


def broadcast_arrays(*arrays):
    """The tensors as views of the shape to which they broadcast."""
    shape = broadcast_shapes(*(x.shape for x in arrays))
    return tuple(op.broadcast_to(x, shape) for x in arrays)


def meshgrid(*arrays, indexing="xy"):
    """Coordinates on a grid: for each vector a tensor that varies along its axis alone; 'xy' exchanges the first two axes."""
    if indexing not in ("xy", "ij"):
        raise _core.ArgumentValueError(f"meshgrid: argument indexing: found {indexing!r}, expected 'xy' or 'ij'")
    for x in arrays:
        if x.ndim > 1:
            raise _core.ShapeError(f"meshgrid: found a tensor of {x.ndim} dimensions, expected vectors or numbers")
    places = list(range(len(arrays)))
    if indexing == "xy" and len(arrays) > 1:
        places[:2] = 1, 0
    rows = []
    for x, place in zip(arrays, places):
        shape = [1] * len(arrays)
        shape[place] = x.size
        rows.append(op.reshape(x, shape))
    return tuple(op.copy(x) for x in broadcast_arrays(*rows))


def round(x, /, decimals=0, *, out=None):
    """x to the nearest integer, or to so many decimal places; ties go to the even digit. Negative counts round before the point."""
    if decimals == 0:
        return op.round(x, out=out)
    require_tensor("round", "x", x)
    if not hasattr(decimals, "__index__"):
        raise _core.ArgumentTypeError(f"round: argument decimals: found {decimals!r}, expected an integer")
    scale = 10.0 ** abs(decimals)
    down, up = (op.divide, op.multiply) if decimals < 0 else (op.multiply, op.divide)
    if x.dtype.kind not in ("signed integer", "unsigned integer"):
        return up(op.round(down(x, scale)), scale, out=out)
    if decimals < 0:
        x = op.cast(up(op.round(down(op.cast(x, _core.float64), scale)), scale), x.dtype)
    return op.round(x, out=out)


def concat(arrays, /, axis=0):
    """Joins tensors along an axis; without one (None), their elements in row-major order."""
    if axis is None:
        return op.concat([op.reshape(x, (-1,)) for x in arrays], axis=0)
    return op.concat(arrays, axis=axis)


def unstack(x, /, *, axis=0):
    """The parts of x along axis, as views without that axis."""
    return parts_along(x, normalized_axis("unstack", axis, x.ndim))


def parts_along(x, axis):
    """The same for an axis that was checked."""
    return tuple(op.select(x, axis, position) for position in range(x.shape[axis]))


def nonzero(x, /):
    """The positions of the elements other than 0: for each axis a vector, together in row-major order."""
    if x.ndim == 0:
        raise _core.ShapeError("nonzero: found a tensor of no dimensions, expected one or more; use backplane.reshape(x, (1,))")
    return unstack(op.argwhere(x), axis=1)


def repeat(x, repeats, /, axis=None):
    """Each element along axis (of x flattened, without one) `repeats` times: a number, or one for each in a tensor.

    A tensor is read to know the result's size. Once each, a view of x.
    """
    if not isinstance(repeats, _core.Tensor):
        if hasattr(repeats, "__index__") and repeats < 0:
            raise _core.ArgumentValueError(f"repeat: argument repeats: found {repeats}, expected a count from 0 on")
        return op.repeat_all(x, repeats, axis=axis)
    if axis is None:
        x, axis = op.reshape(x, (-1,)), 0
    repeats = op.broadcast_to(repeats, (x.shape[axis],))
    if repeats.size and bool(op.any(op.less(repeats, 0))):
        raise _core.ArgumentValueError(f"repeat: argument repeats: found {int(op.min(repeats))}, expected counts from 0 on")
    total = int(op.sum(repeats))
    return op.repeat_each(x, repeats, total, axis=axis)


def reshape(x, /, shape, *, copy=None):
    """x's elements in row-major order at another shape; a view where strides allow, unless copy is True; False refuses a copy."""
    result = op.reshape(x, shape)
    if copy is None:
        return result
    shared = x.size == 0 or _core.shares_memory(x, result)
    if copy:
        return op.copy(result) if shared else result
    if not shared:
        raise _core.ArgumentValueError("reshape: argument copy: found False, but these strides need a copy")
    return result
