"""NumPy's iterators (ndindex, ndenumerate, nditer, flat), broadcast objects and windows over an array."""

from __future__ import annotations

import itertools
import math

from .. import _core
from .._api._manipulation_functions import broadcast_arrays, broadcast_shapes, normalized_axis
from ._calls import float64, op

__all__ = ["Broadcast", "apply_over_axes", "einsum_path", "ndenumerate", "ndindex", "nditer", "sliding_window_view", "strided_copy"]


class ndindex:
    """The indices of an array of this shape, the last one fastest."""

    def __init__(self, *shape):
        sizes = shape[0] if len(shape) == 1 and not hasattr(shape[0], "__index__") else shape
        self._indices = itertools.product(*map(range, sizes))

    def __iter__(self):
        return self

    def __next__(self):
        return next(self._indices)


class ndenumerate:
    """Pairs of an index and the element there, a tensor without dimensions."""

    def __init__(self, arr):
        with float64:
            self._array = _core.asarray(arr)
        self._indices = ndindex(self._array.shape)

    def __iter__(self):
        return self

    def __next__(self):
        index = next(self._indices)
        return index, self._array[index]


def _refuse(name, **arguments):
    for word, value in arguments.items():
        if value:
            raise _core.ArgumentTypeError(f"{name}: argument {word}: found {value!r}, expected it left out; use operations on whole arrays")


class nditer:
    """The elements of an array, or tuples of those of several that are broadcast, in row-major order; each is a tensor without dimensions.

    With flags=['multi_index'] the attribute multi_index is the index of the element. With op_flags=['readwrite'] (of one array) each element is a
    view, and `x[...] = value` writes it.
    """

    def __init__(self, op, flags=(), op_flags=None, op_dtypes=None, order="K", casting="safe", **more):
        _refuse("nditer", op_dtypes=op_dtypes, **more)
        several = isinstance(op, (list, tuple)) and any(isinstance(one, _core.Tensor) for one in op)
        unknown = set(flags or ()) - {"multi_index", "zerosize_ok", "refs_ok"}
        if unknown or order not in ("K", "C", "A"):
            raise _core.ArgumentValueError(f"nditer: found flags {list(flags)} and order {order!r}, expected 'multi_index' and row-major order")
        words = {word for one in op_flags or () for word in ([one] if isinstance(one, str) else one)}
        if words & {"readwrite", "writeonly"} and (several or not isinstance(op, _core.Tensor)):
            raise _core.ArgumentValueError("nditer: argument op_flags: found operands to write among several, expected one tensor")
        with float64:
            arrays = [_core.asarray(one) for one in op] if several else [_core.asarray(op)]
        self.operands = tuple(broadcast_arrays(*arrays)) if several else tuple(arrays)
        self.shape, self.multi_index = self.operands[0].shape, ()
        self._indices = ndindex(self.shape)

    def __iter__(self):
        return self

    def __next__(self):
        self.multi_index = next(self._indices)
        found = tuple(one[self.multi_index] for one in self.operands)
        return found if len(found) > 1 else found[0]

    def __enter__(self):
        return self

    def __exit__(self, *failure):
        return None


class Broadcast:
    """numpy.broadcast: the shape to which arrays broadcast, and tuples of their elements."""

    def __init__(self, *args):
        with float64:
            self._arrays = [_core.asarray(one) for one in args]
        self.shape = broadcast_shapes(*(one.shape for one in self._arrays))
        self.ndim = self.nd = len(self.shape)
        self.size, self.numiter = math.prod(self.shape), len(args)

    def __iter__(self):
        return zip(*(op.reshape(one, [-1]) for one in broadcast_arrays(*self._arrays)))


def sliding_window_view(x, window_shape, axis, subok, writeable):
    """The windows of the size along the axes (all axes unless stated), as further axes at the end; a view."""
    if writeable:
        raise _core.ArgumentValueError("sliding_window_view: argument writeable: found True, expected False: the windows overlap")
    with float64:
        x = _core.asarray(x)
    sizes = (window_shape,) if hasattr(window_shape, "__index__") else tuple(window_shape)
    axes = tuple(range(x.ndim)) if axis is None else (axis,) if hasattr(axis, "__index__") else tuple(axis)
    if len(axes) != len(sizes):
        raise _core.ArgumentValueError(f"sliding_window_view: found {len(sizes)} window sizes and {len(axes)} axes, expected as many")
    for one, size in zip(axes, sizes):
        one = normalized_axis("sliding_window_view", one, x.ndim)
        if not 0 <= size <= x.shape[one]:
            raise _core.ArgumentValueError(f"sliding_window_view: argument window_shape: found {size}, expected at most {x.shape[one]}, the size of axis {one}")
        x = x.unfold(one, size, 1)
    return x


def strided_copy(x, shape, strides):
    """as_strided: a copy of the elements at the strides, in bytes, from the first element of x on."""
    with float64:
        x = _core.asarray(x)
    shape = x.shape if shape is None else (shape,) if hasattr(shape, "__index__") else tuple(shape)
    strides = x.strides if strides is None else (strides,) if hasattr(strides, "__index__") else tuple(strides)
    if len(shape) != len(strides):
        raise _core.ArgumentValueError(f"as_strided: found {len(shape)} sizes and {len(strides)} strides, expected as many")
    if not x.is_contiguous:
        raise _core.ArgumentValueError("as_strided: argument x: found a view with other strides, expected an array in row-major order; use ascontiguousarray(x)")
    places = op.full([], 0, dtype=_core.int64)
    for size, step in zip(shape, strides):
        if step % x.itemsize:
            raise _core.ArgumentValueError(f"as_strided: argument strides: found {step}, expected multiples of {x.itemsize}, the bytes of an element")
        places = op.add(op.expand_dims(places, -1), op.multiply(op.iota(size), step // x.itemsize))
    if places.size and not 0 <= int(op.min(places)) <= int(op.max(places)) < x.size:
        raise _core.OutOfRangeError(f"as_strided: found positions outside of the {x.size} elements of x, expected shape and strides within them")
    return op.take(op.reshape(x, [-1]), places, axis=0)


def apply_over_axes(func, a, axes):
    """func(a, axis) for each axis in turn; a result with an axis less gets it back with size 1."""
    with float64:
        a = _core.asarray(a)
    for axis in (axes,) if hasattr(axes, "__index__") else axes:
        axis = normalized_axis("apply_over_axes", axis, a.ndim)
        found = func(a, axis)
        if found.ndim != a.ndim:
            found = op.expand_dims(found, axis)
        if found.ndim != a.ndim:
            raise _core.ShapeError(f"apply_over_axes: argument func: found a result of {found.ndim} dimensions, expected {a.ndim}, or one less")
        a = found
    return a


def einsum_path(operands, optimize):
    """The order of products that NumPy chooses for these shapes, and its report."""
    import numpy

    shapes = [numpy.broadcast_to(numpy.zeros(()), one.shape) if isinstance(one, _core.Tensor) else one for one in operands]
    return numpy.einsum_path(*shapes, optimize=optimize)
