"""Tensors arranged anew under the names of the array API, NumPy and PyTorch: shapes, axes, diagonals, padding. Most are views."""

from __future__ import annotations

from .. import _core
from .._calls._integer_argument import given_ints
from .._calls._ops import NAMESPACE, ops
from .._calls._tensor_argument import given_tensor, takes_dim, takes_tensor, takes_words

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from .._core import Operand, Tensor

op = getattr(ops, NAMESPACE)

__all__ = [
    "ascontiguousarray",
    "atleast_1d",
    "atleast_2d",
    "atleast_3d",
    "broadcast_arrays",
    "broadcast_shapes",
    "broadcast_tensors",
    "diag",
    "diagflat",
    "expand",
    "flatten",
    "narrow",
    "ravel",
    "repeat",
    "repeat_interleave",
    "reshape",
    "rollaxis",
    "rot90",
    "squeeze",
    "swapaxes",
    "swapdims",
    "t",
    "transpose",
    "unflatten",
]


def broadcast_shapes(*shapes: int | Sequence[int | None]) -> tuple[int | None, ...]:
    """The shape to which shapes broadcast, of which an int is one of one axis; an unknown size (None) stays unknown beside 1 and itself, and gives way to others."""
    shapes = [shape if hasattr(shape, "__len__") else given_ints("broadcast_shapes", "shapes", shape) for shape in shapes]
    rank = max(map(len, shapes), default=0)
    result = []
    for sizes in zip(*((1,) * (rank - len(shape)) + tuple(shape) for shape in shapes)):
        known = []  # not a set: a trace for any size follows comparisons of sizes, and no hashes
        for size in sizes:
            if size is not None and size != 1 and size not in known:
                known.append(size)
        if len(known) > 1:
            raise _core.ShapeError(
                f"broadcast_shapes: found sizes {', '.join(map(str, sizes))} of axis {len(result) - rank}, "
                "expected one size, or 1"
            )
        result.append(known[0] if known else None if None in sizes else 1)
    return tuple(result)


def broadcast_arrays(*arrays: Operand) -> tuple[Tensor, ...]:
    """The tensors, lists, arrays or numbers as views of the shape to which they broadcast."""
    arrays = tuple(given_tensor("broadcast_arrays", "arrays", x, arrays) for x in arrays)
    shape = broadcast_shapes(*(x.shape for x in arrays))
    return tuple(op.broadcast_to(x, shape) for x in arrays)


broadcast_tensors = broadcast_arrays


@takes_tensor
def repeat(x: Tensor, repeats: int | Sequence[int] | Tensor, axis: int | None = None) -> Tensor:
    """Each element along axis (of x flattened, without one) `repeats` times: a number, or one for each in a tensor or list.

    A tensor is read to know the result's size: in a trace one from outside. Once each, a view of x. What has no axes counts as a vector of one element.
    """
    if x.ndim == 0:
        x = op.reshape(x, (1,))
    if hasattr(repeats, "__len__"):
        repeats = given_tensor("repeat", "repeats", repeats, (x,))
    if not isinstance(repeats, _core.Tensor):
        if hasattr(repeats, "__index__") and repeats < 0:
            raise _core.ArgumentValueError(f"repeat: argument repeats: found {repeats}, expected a count from 0 on")
        return op.repeat_all(x, repeats, axis=axis)
    x, axis = (op.reshape(x, (-1,)), 0) if axis is None else (x, normalized_axis("repeat", axis, x.ndim))
    least, total = _least_and_total(repeats, op.broadcast_to(repeats, (x.shape[axis],)))
    if least < 0:
        raise _core.ArgumentValueError(f"repeat: argument repeats: found {least}, expected counts from 0 on")
    if total >= 2**53:
        raise _core.OutOfMemoryError(f"repeat: argument repeats: found counts of {total:.0f} in all, which no memory holds")
    return op.repeat_each(x, repeats, int(total), axis=axis)


def _least_and_total(counts, each):
    if not each.size:
        return 0, 0
    if _core.has_values(counts) or _core.transforms_of(counts):
        return int(op.min(counts)), float(op.sum(op.cast(each, _core.float64)))  # an integer would wrap
    known = counts.tolist() if counts.ndim else [counts.tolist()]
    return min(known), sum(known) * (each.size // len(known))


def reshape(x: Tensor, shape: int | Sequence[int], *, order: str = "C", copy: bool | None = None) -> Tensor:
    """x's elements in row-major order at another shape; a view where strides allow, unless copy is True; False refuses a copy.

    order 'F': both read and written in column-major order.
    """
    if order != "C":
        return reshape_by_columns(x, shape, order, copy)
    result = op.reshape(x, shape)
    if copy is None:
        return result
    shared = x.size == 0 or _core.shares_memory(x, result)
    if not shared and not _core.shares_memory(result, result):  # a tensor of a trace has no memory, but strides
        shared = _merge(x.shape, x.strides, result.shape)
    if copy:
        return op.copy(result) if shared else result
    if not shared:
        raise _core.ArgumentValueError("reshape: argument copy: found False, but these strides need a copy")
    return result


def _merge(shape, strides, sizes):
    """Are elements of this shape and these strides seen at other sizes without a copy?"""
    runs = []  # [elements, stride] of axes that follow on each other in memory
    for size, stride in ((size, stride) for size, stride in zip(shape, strides) if size != 1):
        merged = runs and runs[-1][1] == size * stride
        runs.append([runs.pop()[0] * size if merged else size, stride])
    left = iter([size for size in sizes if size != 1])
    for count, _ in runs:
        while count != 1:
            size = next(left)
            if count % size:
                return False
            count //= size
    return True


def reshape_by_columns(x, shape, order, copy=None):
    """reshape with order 'F'; refuses other words but 'C'."""
    if _is_row_major("reshape", order):
        return reshape(x, shape, copy=copy)
    sizes = list(shape)[::-1] if hasattr(shape, "__iter__") else shape
    return transpose(reshape(transpose(x), sizes, copy=copy))


@takes_tensor
def squeeze(x: Tensor, axis: int | Sequence[int] | None = None, *, dim: int | Sequence[int] | None = None) -> Tensor:
    """x without axes, all of size 1; without all of that size where none are named. A view.

    dim, PyTorch's word, leaves axes of another size.
    """
    if dim is not None:
        if axis is not None:
            raise _core.ArgumentTypeError("squeeze: found dim and axis, expected one of them")
        axis = [one for one in normalized_axes("squeeze", dim, max(x.ndim, 1), "dim") if x.shape[one : one + 1] == (1,)]
    return op.squeeze(x, [place for place, size in enumerate(x.shape) if size == 1] if axis is None else axis)


def expand(x: Tensor, /, *shape: int | Sequence[int]) -> Tensor:
    """x seen at a larger shape, of which -1 keeps the size of an axis; its elements repeat without being copied."""
    sizes = shape[0] if len(shape) == 1 and isinstance(shape[0], (tuple, list)) else shape
    return op.broadcast_to(x, _kept(x, list(sizes)) if -1 in sizes else sizes)


def _kept(x, sizes):
    """The sizes, where -1 means x's size along that axis."""
    new = len(sizes) - x.ndim
    for place, size in enumerate(sizes):
        if size == -1:
            if place < new:
                raise _core.ShapeError(f"expand: argument shape: found -1 for the new axis {place}, expected its size")
            sizes[place] = x.shape[place - new]
    return sizes


@takes_tensor
def flatten(x: Tensor, start_dim: int | str = 0, end_dim: int = -1, *, order: str | None = None) -> Tensor:
    """x with its axes from start_dim to end_dim as one, in row-major order; a view where strides allow.

    order: NumPy's 'C' or 'F' (also by position), of a copy as a vector; 'F' has the first axis fastest.
    """
    order = start_dim if isinstance(start_dim, str) else order
    if order is not None:
        return op.copy(ravel(x, "C" if order in ("A", "K") else order))
    x = x if x.ndim else ravel(x)
    first = normalized_axis("flatten", start_dim, x.ndim, "start_dim")
    last = normalized_axis("flatten", end_dim, x.ndim, "end_dim")
    if last < first:
        raise _core.ArgumentValueError(f"flatten: argument end_dim: found axis {last}, expected {first}, which is start_dim, or one after it")
    size = 1
    for one in x.shape[first : last + 1]:
        size *= one
    return op.reshape(x, [*x.shape[:first], size, *x.shape[last + 1 :]])


@takes_tensor
def unflatten(x: Tensor, dim: int, sizes: Sequence[int]) -> Tensor:
    """x with the axis dim as several, of the given sizes, of which one may be -1; a view where strides allow."""
    axis = normalized_axis("unflatten", dim, x.ndim, "dim")
    sizes = [size.__index__() for size in sizes]
    known = 1
    for size in sizes:
        known *= size if size != -1 else 1
    whole = x.shape[axis]
    if sizes.count(-1) == 1 and known > 0 and whole % known == 0:
        sizes[sizes.index(-1)] = whole // known
    elif -1 in sizes or known != whole or any(size < 0 for size in sizes):
        raise _core.ShapeError(f"unflatten: argument sizes: found {tuple(sizes)}, expected sizes whose product is {whole}")
    return op.reshape(x, [*x.shape[:axis], *sizes, *x.shape[axis + 1 :]])


@takes_tensor
def narrow(x: Tensor, dim: int, start: int, length: int) -> Tensor:
    """The `length` elements of x along dim from start on, a view."""
    axis = normalized_axis("narrow", dim, x.ndim, "dim")
    size = x.shape[axis]
    first = start + size if start < 0 else start
    if not 0 <= first <= size or not 0 <= length <= size - first:
        raise _core.OutOfRangeError(f"narrow: found start {start} and length {length} for an axis of size {size}, expected a part of it")
    return op.slice(x, [axis], [first], [first + length], [1])


@takes_tensor
def repeat_interleave(x: Tensor, repeats: int | Tensor, dim: int | None = None) -> Tensor:
    """Each element along dim (of x flattened, without one) `repeats` times: a number, or one for each in a tensor."""
    return repeat(x, repeats, axis=dim)


@takes_tensor
def t(x: Tensor) -> Tensor:
    """The transpose of a matrix; a vector or a number as it is. A view."""
    if x.ndim > 2:
        raise _core.ShapeError(f"t: argument x: found {x.ndim} dimensions, expected at most 2; use permute_dims or mT")
    return op.permute_dims(x, list(range(x.ndim))[::-1])


def normalized_axis(function, axis, ndim, argument="axis"):
    """The axis counted from the front. Errors: IndexError if the axis is out of range."""
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


@takes_words([("dim0", "axes"), ("dim1", "second")])
@takes_tensor
def transpose(x: Tensor, axes: Any = None, second: int | None = None) -> Tensor:
    """x with its axes in reverse order, or in the order of axes; a view. transpose(x, 1, 2) exchanges two axes, as PyTorch's does."""
    if second is not None:
        return swapaxes(x, axes, second)
    return op.permute_dims(x, list(range(x.ndim))[::-1] if axes is None else axes)


@takes_tensor
def swapaxes(x: Tensor, axis1: int, axis2: int) -> Tensor:
    """x with two axes exchanged; a view."""
    order = list(range(x.ndim))
    first, second = (normalized_axis("swapaxes", a, x.ndim, n) for a, n in ((axis1, "axis1"), (axis2, "axis2")))
    order[first], order[second] = second, first
    return op.permute_dims(x, order)


swapdims = swapaxes


@takes_tensor
def rollaxis(x: Tensor, axis: int, start: int = 0) -> Tensor:
    """x with an axis moved before the one at start; a view. moveaxis says it more plainly."""
    axis = normalized_axis("rollaxis", axis, x.ndim)
    start = start if start == x.ndim else normalized_axis("rollaxis", start, x.ndim, "start")
    order = [place for place in range(x.ndim) if place != axis]
    order.insert(start - (axis < start), axis)
    return op.permute_dims(x, order)


@takes_tensor
def ascontiguousarray(x: Tensor) -> Tensor:
    """x itself where its elements lie in row-major order without gaps, else a copy that does; with at least one axis."""
    x = x if x.ndim else op.reshape(x, [1])
    return row_major(x)


def row_major(x):
    if not x.is_contiguous:
        return op.copy(x)
    # The layout of a traced function's argument is not known: as one axis and back, it is a view or a copy.
    is_given = not _core.has_values(x) and _core.transforms_of(x) and _core.may_share_outside_memory(x)
    return op.reshape(op.reshape(x, (-1,)), x.shape) if is_given else x


@takes_tensor
def ravel(x: Tensor, order: str = "C") -> Tensor:
    """x's elements in row-major order ('C'), or in column-major order ('F'), as a vector; a view where strides allow."""
    return op.reshape(x if _is_row_major("ravel", order) else transpose(x), [-1])


def _is_row_major(function, order):
    if order not in ("C", "F"):
        raise _core.ArgumentValueError(f"{function}: argument order: found {order!r}, expected 'C' or 'F'")
    return order == "C"


def _each(name, function, arrays):
    found = tuple(function(given_tensor(name, "arrays", x)) for x in arrays)
    return found[0] if len(found) == 1 else found


def atleast_1d(*arrays: Tensor) -> Any:
    """Each tensor with at least one axis; a tuple where there are several."""
    return _each("atleast_1d", lambda x: x if x.ndim else op.reshape(x, [1]), arrays)


def atleast_2d(*arrays: Tensor) -> Any:
    """Each tensor with at least two axes, new ones in front; a tuple where there are several."""
    return _each("atleast_2d", lambda x: x if x.ndim > 1 else op.reshape(x, [1, *x.shape] if x.ndim else [1, 1]), arrays)


def _three_axes(x):
    if x.ndim > 2:
        return x
    if x.ndim == 2:
        return op.expand_dims(x, [2])
    return op.reshape(x, [1, x.shape[0] if x.ndim else 1, 1])


def atleast_3d(*arrays: Tensor) -> Any:
    """Each tensor with at least three axes: (n) becomes (1, n, 1), (n, m) becomes (n, m, 1); a tuple where there are several."""
    return _each("atleast_3d", _three_axes, arrays)


@takes_dim
@takes_tensor
def rot90(x: Tensor, k: int = 1, axes: Sequence[int] = (0, 1)) -> Tensor:
    """x turned by k quarters in the plane of axes, from the first towards the second."""
    plane = normalized_axes("rot90", axes, x.ndim)
    if len(plane) != 2 or plane[0] == plane[1]:
        raise _core.ArgumentValueError(f"rot90: argument axes: found {axes!r}, expected two different axes")
    first, second = plane
    if not hasattr(k, "__index__"):
        raise _core.ArgumentTypeError(f"rot90: argument k: found {k!r}, expected an integer")
    k %= 4
    if k == 0:
        return x[...]
    if k == 2:
        return op.flip(x, [first, second])
    return swapaxes(op.flip(x, [second]), first, second) if k == 1 else op.flip(swapaxes(x, first, second), [second])


@takes_words([("diagonal", "k")])
@takes_tensor
def diag(x: Tensor, k: int = 0) -> Tensor:
    """The k-th diagonal of a matrix, a copy (diagonal is a view); of a vector the matrix that has it there, 0 elsewhere."""
    if x.ndim == 2:
        return op.copy(op.diagonal(x, offset=k))
    if x.ndim != 1:
        raise _core.ShapeError(f"diag: argument x: found {x.ndim} dimensions, expected 1 or 2")
    size = x.shape[0] + abs(k)
    return op.diagonal_put(op.full([size, size], 0, dtype=x.dtype, device=x.device), x, offset=k)


@takes_words([("offset", "k")])
@takes_tensor
def diagflat(x: Tensor, k: int = 0) -> Tensor:
    """The matrix that has x's elements, in row-major order, as its k-th diagonal, 0 elsewhere."""
    return diag(ravel(x), k)
