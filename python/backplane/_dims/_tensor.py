"""Dim and DimTensor: their data, the conversion of named axes to positional ones, and their public attributes."""

from __future__ import annotations

import math
import sys
from typing import Any

from .. import _core
from .._calls._ops import NAMESPACE, ops
from ._names import assigned_names

__all__ = ["Dim", "DimTensor", "dims"]

op = getattr(ops, NAMESPACE)


class DimTensor:
    """A tensor some of whose axes have names: `dims` are its Dims; `shape` and `ndim` are of the other, positional axes.

    Functions of backplane, operators and methods of Tensor take it. They match named axes by their Dim and broadcast those that an
    operand lacks. Axis arguments may be Dims. `order(i, j)` gives a Tensor with i and j as its first axes.
    The product of two tensors with named axes is computed when it is used. Its sum over named axes is one contraction, as in einsum.
    """

    __slots__ = ("_array", "_product", "dims", "is_free", "__weakref__")
    named_dims = True  # what functions that check their arguments know it by

    def __init__(self, array: Any, dims: tuple[Dim, ...], product: Any = None, is_free: bool = False) -> None:
        self._array, self.dims, self._product = array, dims, product  # the array has the axes of dims first
        self.is_free = is_free  # computed of Dims and numbers alone, so that it may move to any device

    def _value(self) -> _core.Tensor:
        """The tensor, with the named axes first, as dims lists them."""
        return self._ordered(self.dims) if self._array is None else self._array

    def _ordered(self, dims: tuple[Dim, ...]) -> _core.Tensor:
        """The tensor with the named axes first, in this order."""
        if self._array is not None or self._product is None:
            return permuted(self._value(), self.dims, dims)
        array, self_contained = self._product.value(dims)
        if self_contained:
            self._array, self.dims = array, dims
        return array

    def order(self, *dims: Dim | tuple[Dim, ...]) -> Any:
        """The tensor with these named axes as its first axes, in this order, before the positional ones.

        A tuple of Dims becomes one axis of all their elements, the last Dim the fastest. Named axes that are not listed stay named.
        Returns a Tensor if none stays. Errors: ShapeError for a Dim that the tensor does not have, or one that stands twice.
        """
        groups = [tuple(dim) if isinstance(dim, (tuple, list)) else (dim,) for dim in dims]
        listed = [dim for group in groups for dim in group]
        for place, dim in enumerate(listed):
            require_dim("order", dim, self)
            if any(dim is other for other in listed[:place]):
                raise _core.ShapeError(f"order: found {dim} twice, expected each dimension once")
        rest = without(self.dims, listed)
        array = self._ordered((*rest, *listed))
        if any(len(group) != 1 for group in groups):
            sizes = [math.prod(dim.size for dim in group) for group in groups]
            array = op.reshape(array, (*(dim.size for dim in rest), *sizes, *array.shape[len(rest) + len(listed) :]))
        return made(array, rest)

    def index(self, dims: Any, indices: Any) -> Any:
        """The tensor with named axes replaced: x.index(i, 0), x.index((i, j), (k, slice(2))), or x.index((i, j), k), which flattens i
        and j into k. An index is anything that stands between the brackets of x[...]."""
        if not isinstance(dims, (tuple, list)):
            return self.order(dims)[(indices,)]
        if isinstance(indices, (tuple, list)) and len(indices) == len(dims):
            return self.order(*dims)[tuple(indices)]
        return self.order(tuple(dims))[(indices,)]

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes of the positional axes."""
        if self._array is None and self._product is not None:
            return self._product.shape
        return tuple(self._value().shape[len(self.dims) :])

    @property
    def ndim(self) -> int:
        """The number of positional axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements per place of the named axes."""
        return math.prod(self.shape)

    @property
    def dtype(self) -> _core.DType:
        return self._product.dtype if self._array is None and self._product is not None else self._value().dtype

    @property
    def device(self) -> _core.Device:
        return self._product.device if self._array is None and self._product is not None else self._value().device

    @property
    def requires_grad(self) -> bool:
        return self._value().requires_grad

    def __bool__(self) -> bool:
        raise _no_value("bool", self)

    def __repr__(self) -> str:
        sizes = ", ".join(f"{dim}={dim.size}" for dim in self.dims)
        return f"DimTensor(dims=({sizes}), {self._value()!r})"


class Dim(DimTensor):
    """A name for axes. Its size is that of the first axis that it names; as a tensor it holds the indices 0, 1, … of that axis.

    `dim.size = n` sets the size before, `dim.is_bound` says whether it is set.
    Errors: ShapeError where it names an axis of another size, or is used as a tensor before it has a size.
    """

    __slots__ = ("name", "_size")

    def __init__(self, name: str = "d", size: int | None = None) -> None:
        super().__init__(None, (self,), is_free=True)
        self.name, self._size = name, None
        if size is not None:
            self.size = size

    def _value(self) -> _core.Tensor:
        return op.arange(0, self.size, 1, dtype=_core.int64)

    @property
    def is_bound(self) -> bool:
        return self._size is not None

    @property
    def size(self) -> int:
        if self._size is None:
            raise _core.ShapeError(f"dims: {self.name} has no size. Fix: name an axis with it, x[{self.name}], or set {self.name}.size")
        return self._size

    @size.setter
    def size(self, size: int) -> None:
        check_size(self, size)
        self._size = size

    shape = property(lambda self: ())
    dtype = property(lambda self: _core.int64)
    device = property(lambda self: _core.default_device())
    requires_grad = property(lambda self: False)

    def __repr__(self) -> str:
        return self.name


def dims(n: Any = None, sizes: Any = None) -> Any:
    """n new dimensions, as a tuple; of one, the Dim itself: `i = bp.dims(1)`, `i, j = bp.dims(2)`.

    sizes: an int or None for each, as in dims(sizes=(2, None)); then n may be left out. Without both, as many as the statement
    assigns to: `i, j = bp.dims()`. They have the names of the variables.
    Errors: ArgumentValueError if n and the number of sizes differ.
    """
    try:
        names = assigned_names(sys._getframe(1))
    except (AttributeError, TypeError, ValueError):
        names = None
    if isinstance(n, (tuple, list)) and sizes is None:
        n, sizes = None, n
    count = n if n is not None else len(sizes) if sizes is not None else len(names) if names else 1
    if not isinstance(count, int) or isinstance(count, bool) or count < 1:
        raise _core.ArgumentValueError(f"dims: argument n: found {count!r}, expected a number of dimensions, 1 or more")
    if sizes is not None and len(sizes) != count:
        raise _core.ArgumentValueError(f"dims: argument sizes: found {len(sizes)} sizes, expected {count}")
    names = names if names and len(names) == count else [f"d{place}" for place in range(count)]
    found = tuple(Dim(name, size) for name, size in zip(names, sizes or [None] * count))
    return found[0] if count == 1 else found


# ---- what the other files compute with ---------------------------------------------------------------------------------


def made(array: _core.Tensor, dims: tuple[Dim, ...], is_free: bool = False) -> Any:
    """The tensor, whose first axes are these dims; without any, it is itself."""
    return DimTensor(array, tuple(dims), is_free=is_free) if dims else array


def is_among(dim: Dim, dims: Any) -> bool:
    for other in dims:  # noqa: SIM110
        if other is dim:
            return True
    return False


def without(dims: Any, removed: Any) -> tuple[Dim, ...]:
    return tuple([dim for dim in dims if not is_among(dim, removed)])


def union_of(operands: Any) -> tuple[Dim, ...]:
    """The dims of all; in the order of the operand with the most."""
    by_count = sorted([x.dims for x in operands], key=len, reverse=True)
    found = list(by_count[0]) if by_count else []
    for dims in by_count[1:]:
        found += [dim for dim in dims if not is_among(dim, found)]
    return tuple(found)


def permuted(array: _core.Tensor, dims: Any, order: Any) -> _core.Tensor:
    """The array, whose first axes are dims, with these in another order."""
    if all(map(_is, dims, order)):
        return array
    places = [next(place for place, dim in enumerate(dims) if dim is wanted) for wanted in order]
    return op.permute_dims(array, (*places, *range(len(dims), array.ndim)))


def _is(a, b):
    return a is b


def check_size(dim: Dim, size: int) -> None:
    if not isinstance(size, int) or isinstance(size, bool) or size < 0:
        raise _core.ArgumentTypeError(f"dims: argument size of {dim.name}: found {size!r}, expected an int of at least 0")
    if dim._size is not None and dim._size != size:
        raise _core.ShapeError(f"dims: {dim.name} has size {dim._size}, found an axis of size {size}. Fix: use another dimension for it")


def require_dim(function: str, dim: Any, x: DimTensor) -> None:
    if not isinstance(dim, Dim):
        raise _core.ArgumentTypeError(f"{function}: found a value of type {type(dim).__name__}, expected dimensions of the tensor, {listed(x)}")
    if not is_among(dim, x.dims):
        raise _core.ShapeError(f"{function}: found {dim}, expected dimensions of the tensor, {listed(x)}")


def listed(x: DimTensor) -> str:
    return f"({', '.join(dim.name for dim in x.dims)})"


def _no_value(function, x):
    return _core.ArgumentTypeError(f"{function}: found a tensor with the dimensions {listed(x)}, expected one without. Fix: x.order{listed(x)}")
