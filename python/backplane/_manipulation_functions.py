"""NumPy's functions that arrange elements: transposes, flips, stacks, splits, diagonals. All are views or joins of ops."""

from . import _core
from ._ops import NAMESPACE, ops
from ._tensor_argument import takes_tensor

op = getattr(ops, NAMESPACE)

_MOST_EMPTY = 1 << 20  # pieces, as of the lists in formulas

__all__ = [
    "array_split",
    "atleast_1d",
    "atleast_2d",
    "atleast_3d",
    "chunk",
    "diag",
    "diagflat",
    "dstack",
    "fliplr",
    "flipud",
    "hstack",
    "ravel",
    "rot90",
    "split",
    "swapaxes",
    "transpose",
    "vstack",
]


def normalized_axis(function, axis, ndim, argument="axis"):
    """The axis counted from the front. Errors: IndexError where there is none."""
    if not hasattr(axis, "__index__"):
        raise _core.ArgumentTypeError(f"{function}: argument {argument}: found {axis!r}, expected an integer")
    axis = axis.__index__()
    if not -ndim <= axis < ndim:
        raise _core.OutOfRangeError(f"{function}: argument {argument}: found {axis}, expected an axis of {ndim} dimensions")
    return axis % ndim


def normalized_axes(function, axes, ndim, argument="axes"):
    """The axes, one or several, counted from the front."""
    if hasattr(axes, "__index__"):
        axes = (axes,)
    if not hasattr(axes, "__iter__"):
        raise _core.ArgumentTypeError(f"{function}: argument {argument}: found {axes!r}, expected an integer or several")
    return [normalized_axis(function, axis, ndim, argument) for axis in axes]


@takes_tensor
def transpose(x, /, axes=None):
    """x with its axes in reverse order, or in the order of axes; a view."""
    return op.permute_dims(x, list(range(x.ndim))[::-1] if axes is None else axes)


@takes_tensor
def swapaxes(x, /, axis1, axis2):
    """x with two axes exchanged; a view."""
    order = list(range(x.ndim))
    first, second = (normalized_axis("swapaxes", a, x.ndim, n) for a, n in ((axis1, "axis1"), (axis2, "axis2")))
    order[first], order[second] = second, first
    return op.permute_dims(x, order)


@takes_tensor
def ravel(x, /):
    """x's elements in row-major order as a vector; a view where strides allow."""
    return op.reshape(x, [-1])


def _each(function, arrays):
    found = tuple(function(x) for x in arrays)
    return found[0] if len(found) == 1 else found


def atleast_1d(*arrays):
    """Each tensor with at least one axis; a tuple where there are several."""
    return _each(lambda x: x if x.ndim else op.reshape(x, [1]), arrays)


def atleast_2d(*arrays):
    """Each tensor with at least two axes, new ones in front; a tuple where there are several."""
    return _each(lambda x: x if x.ndim > 1 else op.reshape(x, [1, *x.shape] if x.ndim else [1, 1]), arrays)


def _three_axes(x):
    if x.ndim > 2:
        return x
    if x.ndim == 2:
        return op.expand_dims(x, [2])
    return op.reshape(x, [1, x.shape[0] if x.ndim else 1, 1])


def atleast_3d(*arrays):
    """Each tensor with at least three axes: (n) becomes (1, n, 1), (n, m) becomes (n, m, 1); a tuple where there are several."""
    return _each(_three_axes, arrays)


def vstack(arrays, /):
    """Joins tensors of at least two axes along axis 0."""
    return op.concat([atleast_2d(x) for x in arrays], axis=0)


def hstack(arrays, /):
    """Joins tensors along axis 1; vectors along axis 0."""
    arrays = [atleast_1d(x) for x in arrays]
    return op.concat(arrays, axis=1 if arrays and arrays[0].ndim > 1 else 0)


def dstack(arrays, /):
    """Joins tensors of at least three axes along axis 2."""
    return op.concat([atleast_3d(x) for x in arrays], axis=2)


def _pieces(x, axis, bounds):
    return [op.slice(x, [axis], [start], [stop], [1]) for start, stop in zip(bounds, bounds[1:])]


def _check_count(function, argument, count, size):
    """Of pieces: a list of so many is made, whose last ones are empty where they are more than `size`."""
    if count <= 0:
        raise _core.ArgumentValueError(f"{function}: argument {argument}: found {count}, expected more than 0")
    if count > max(size, _MOST_EMPTY):
        raise _core.ArgumentValueError(
            f"{function}: argument {argument}: found {count} pieces of an axis of size {size}, expected at most its size or {_MOST_EMPTY}"
        )


def _at(x, axis, places):
    """The pieces between positions, which count from the end where they are negative, as in a slice."""
    bounds = [0, *(place.__index__() for place in places), x.shape[axis]]
    return _pieces(x, axis, bounds)


@takes_tensor
def array_split(x, indices_or_sections, /, axis=0):
    """Pieces of x along axis, views: so many, the first ones longer by one where sizes differ, or those between positions."""
    axis = normalized_axis("array_split", axis, x.ndim)
    if not hasattr(indices_or_sections, "__index__"):
        return _at(x, axis, indices_or_sections)
    count = indices_or_sections.__index__()
    _check_count("array_split", "indices_or_sections", count, x.shape[axis])
    least, longer = divmod(x.shape[axis], count)
    bounds = [i * least + min(i, longer) for i in range(count + 1)]
    return _pieces(x, axis, bounds)


@takes_tensor
def split(x, indices_or_sections, /, axis=0):
    """Pieces of x along axis, views: so many of one size, or those between positions."""
    axis = normalized_axis("split", axis, x.ndim)
    if hasattr(indices_or_sections, "__index__"):
        count = indices_or_sections.__index__()
        if count <= 0 or x.shape[axis] % count:
            raise _core.ArgumentValueError(
                f"split: argument indices_or_sections: found {count} for an axis of size {x.shape[axis]}, expected a divisor of it"
            )
    return array_split(x, indices_or_sections, axis=axis)


@takes_tensor
def chunk(x, chunks, /, dim=0):
    """At most `chunks` pieces of x along dim, views, all of one size but for the last."""
    axis = normalized_axis("chunk", dim, x.ndim, "dim")
    size = x.shape[axis]
    _check_count("chunk", "chunks", chunks if size == 0 else min(chunks, size), size)
    step = -(-size // chunks)
    return tuple(_pieces(x, axis, [*range(0, size, step), size] if size else [0] * (chunks + 1)))


@takes_tensor
def rot90(x, /, k=1, axes=(0, 1)):
    """x turned by k quarters in the plane of axes, from the first towards the second."""
    plane = normalized_axes("rot90", axes, x.ndim)
    if len(plane) != 2 or plane[0] == plane[1]:
        raise _core.ArgumentValueError(f"rot90: argument axes: found {axes!r}, expected two different axes")
    first, second = plane
    k %= 4
    if k == 0:
        return x[...]
    if k == 2:
        return op.flip(x, [first, second])
    return swapaxes(op.flip(x, [second]), first, second) if k == 1 else op.flip(swapaxes(x, first, second), [second])


@takes_tensor
def fliplr(x, /):
    """x in reverse order along axis 1."""
    if x.ndim < 2:
        raise _core.ShapeError(f"fliplr: argument x: found {x.ndim} dimensions, expected at least 2")
    return op.flip(x, [1])


@takes_tensor
def flipud(x, /):
    """x in reverse order along axis 0."""
    if x.ndim < 1:
        raise _core.ShapeError("flipud: argument x: found no dimensions, expected at least 1")
    return op.flip(x, [0])


@takes_tensor
def diag(x, /, k=0):
    """The k-th diagonal of a matrix, a view; of a vector the matrix that has it there, 0 elsewhere."""
    if x.ndim == 2:
        return op.diagonal(x, offset=k)
    if x.ndim != 1:
        raise _core.ShapeError(f"diag: argument x: found {x.ndim} dimensions, expected 1 or 2")
    size = x.shape[0] + abs(k)
    return op.diagonal_put(op.full([size, size], 0, dtype=x.dtype, device=x.device), x, offset=k)


@takes_tensor
def diagflat(x, /, k=0):
    """The matrix that has x's elements, in row-major order, as its k-th diagonal, 0 elsewhere."""
    return diag(ravel(x), k)
