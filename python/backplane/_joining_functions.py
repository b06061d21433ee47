"""Joins, splits and reshapes under NumPy's and PyTorch's names, with their order of arguments."""

from . import _core
from ._array_functions import broadcast_arrays, concat, parts_along, repeat
from ._ops import NAMESPACE, ops
from ._manipulation_functions import array_split, atleast_1d, normalized_axis, ravel, split, swapaxes, vstack
from ._tensor_argument import takes_tensor, tensor_like

op = getattr(ops, NAMESPACE)

__all__ = [
    "append",
    "broadcast_tensors",
    "cat",
    "column_stack",
    "concatenate",
    "dsplit",
    "flatten",
    "hsplit",
    "narrow",
    "repeat_interleave",
    "row_stack",
    "squeeze",
    "swapdims",
    "t",
    "tensor_split",
    "unbind",
    "unflatten",
    "vsplit",
]

broadcast_tensors = broadcast_arrays
concatenate = concat
row_stack = vstack
swapdims = swapaxes


def cat(tensors, dim=0):
    """Joins tensors along dim."""
    return concat(tensors, axis=dim)


@takes_tensor
def append(x, values, /, axis=None):
    """x joined with values along axis; without one, the elements of both in row-major order."""
    return concat([x, tensor_like(values, x)], axis=axis)


def column_stack(arrays, /):
    """Joins tensors along axis 1, vectors as columns."""
    arrays = [atleast_1d(x) for x in arrays]
    return op.concat([op.expand_dims(x, [1]) if x.ndim == 1 else x for x in arrays], axis=1)


@takes_tensor
def squeeze(x, /, axis=None):
    """x without axes, all of size 1; without all of that size where none are named. A view."""
    return op.squeeze(x, [place for place, size in enumerate(x.shape) if size == 1] if axis is None else axis)


def _needs_axes(function, x, count):
    if x.ndim < count:
        raise _core.ShapeError(f"{function}: argument x: found {x.ndim} dimensions, expected at least {count}")


@takes_tensor
def hsplit(x, indices_or_sections, /):
    """split along axis 1, of a vector along axis 0."""
    _needs_axes("hsplit", x, 1)
    return split(x, indices_or_sections, axis=1 if x.ndim > 1 else 0)


@takes_tensor
def vsplit(x, indices_or_sections, /):
    """split along axis 0 of at least two axes."""
    _needs_axes("vsplit", x, 2)
    return split(x, indices_or_sections, axis=0)


@takes_tensor
def dsplit(x, indices_or_sections, /):
    """split along axis 2."""
    _needs_axes("dsplit", x, 3)
    return split(x, indices_or_sections, axis=2)


@takes_tensor
def tensor_split(x, indices_or_sections, dim=0):
    """Pieces of x along dim, views: so many, the first ones longer by one where sizes differ, or those between positions."""
    return array_split(x, indices_or_sections, axis=dim)


@takes_tensor
def unbind(x, dim=0):
    """The parts of x along dim, as views without that axis."""
    return parts_along(x, normalized_axis("unbind", dim, x.ndim, "dim"))


@takes_tensor
def flatten(x, start_dim=0, end_dim=-1):
    """x with its axes from start_dim to end_dim as one, in row-major order; a view where strides allow."""
    if x.ndim == 0:
        return ravel(x)
    first = normalized_axis("flatten", start_dim, x.ndim, "start_dim")
    last = normalized_axis("flatten", end_dim, x.ndim, "end_dim")
    if last < first:
        raise _core.ArgumentValueError(f"flatten: argument end_dim: found axis {last}, expected {first}, which is start_dim, or one after it")
    size = 1
    for one in x.shape[first : last + 1]:
        size *= one
    return op.reshape(x, [*x.shape[:first], size, *x.shape[last + 1 :]])


@takes_tensor
def unflatten(x, dim, sizes):
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
def narrow(x, dim, start, length):
    """The `length` elements of x along dim from start on, a view."""
    axis = normalized_axis("narrow", dim, x.ndim, "dim")
    size = x.shape[axis]
    first = start + size if start < 0 else start
    if not 0 <= first <= size or not 0 <= length <= size - first:
        raise _core.OutOfRangeError(f"narrow: found start {start} and length {length} for an axis of size {size}, expected a part of it")
    return op.slice(x, [axis], [first], [first + length], [1])


@takes_tensor
def repeat_interleave(x, repeats, dim=None):
    """Each element along dim (of x flattened, without one) `repeats` times: a number, or one for each in a tensor."""
    return repeat(x, repeats, axis=dim)


@takes_tensor
def t(x, /):
    """The transpose of a matrix; a vector or a number as it is. A view."""
    if x.ndim > 2:
        raise _core.ShapeError(f"t: argument x: found {x.ndim} dimensions, expected at most 2; use permute_dims or mT")
    return op.permute_dims(x, list(range(x.ndim))[::-1])
