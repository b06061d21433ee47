"""Tensors from data, from random numbers, on grids and at even steps, under NumPy's and PyTorch's names."""

from __future__ import annotations

import math

from .. import _core
from .._core import asarray
from ._data_type_functions import isdtype
from .._calls._ops import NAMESPACE, ops
from .._calls._tensor_argument import given_tensor, require_room, takes_requires_grad, takes_tensor, takes_words
from .._runtime._wraps import wraps

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from .._core import DType, Device, Generator, Tensor

op = getattr(ops, NAMESPACE)

__all__ = [
    "array",
    "as_tensor",
    "empty",
    "empty_like",
    "from_numpy",
    "geomspace",
    "identity",
    "logspace",
    "meshgrid",
    "rand",
    "rand_like",
    "randn",
    "randn_like",
    "randperm",
    "tensor",
    "tri",
    "vander",
]


def meshgrid(
    *arrays: Tensor | Sequence[float], indexing: str = "xy", sparse: bool = False, copy: bool = True
) -> tuple[Tensor, ...]:
    """Coordinates on a grid: for each vector a tensor that varies along its axis alone; 'xy' exchanges the first two axes.

    sparse: of size 1 along all other axes, so that they broadcast to the grid. copy: False gives views of the vectors.
    """
    if indexing not in ("xy", "ij"):
        raise _core.ArgumentValueError(f"meshgrid: argument indexing: found {indexing!r}, expected 'xy' or 'ij'")
    arrays = tuple(given_tensor("meshgrid", "arrays", x) for x in arrays)
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
    sizes = [x.size for _, x in sorted(zip(places, arrays), key=lambda pair: pair[0])]
    found = rows if sparse else [op.broadcast_to(row, sizes) for row in rows]
    return tuple(op.copy(x) for x in found) if copy else tuple(found)


def array(
    obj: Any, dtype: DType | None = None, *, copy: bool | None = True, order: str | None = None, ndmin: int = 0,
    device: Device | str | None = None
) -> Tensor:
    """A tensor of an array, of nested sequences of numbers or of a number, copied unless copy is None (where needed) or False.

    order: as of asarray. ndmin: with so many axes at least, new ones in front.
    """
    made = asarray(obj, dtype=dtype, copy=copy, order=order, device=device)
    return made if made.ndim >= ndmin else op.reshape(made, [1] * (ndmin - made.ndim) + list(made.shape))


def tensor(
    data: Any, *, dtype: DType | None = None, device: Device | str | None = None, requires_grad: bool = False
) -> Tensor:
    """A copy of an array, of nested sequences of numbers or of a number as a tensor."""
    made = asarray(data, dtype=dtype, device=device, copy=True)
    return made.requires_grad_() if requires_grad else made


def as_tensor(data: Any, dtype: DType | None = None, device: Device | str | None = None) -> Tensor:
    """asarray with PyTorch's order of arguments: shares memory where dtype, device and layout allow."""
    return asarray(data, dtype=dtype, device=device)


def from_numpy(x: Any) -> Tensor:
    """A tensor over the memory of a NumPy array, never a copy."""
    if not hasattr(x, "__array_interface__"):
        raise _core.ArgumentTypeError(f"from_numpy: found a value of type {type(x).__name__}, expected a NumPy array; use backplane.asarray")
    try:
        return asarray(x, copy=False)
    except _core.ArgumentValueError:
        raise _core.ArgumentValueError(
            "from_numpy: a tensor cannot share this memory: its strides are negative or not whole elements, its address is "
            "not aligned, or its bools are not the bytes 0 and 1. Fix: use backplane.asarray, which copies"
        ) from None


def identity(n: int, dtype: DType | None = None, *, device: Device | str | None = None) -> Tensor:
    """The n by n matrix of ones on the diagonal, zeros elsewhere."""
    return op.eye(n, dtype=dtype, device=device)


def _takes_size(function):
    """Takes size= by name too."""

    @wraps(function)
    def made(*size, **more):
        return function(*size, more.pop("size"), **more) if "size" in more else function(*size, **more)

    return made


@_takes_size
@takes_requires_grad
def rand(
    *size: int | Sequence[int], generator: Generator | None = None, dtype: DType | None = None,
    device: Device | str | None = None
) -> Tensor:
    """Uniform random numbers in [0, 1): rand(2, 3) or rand((2, 3))."""
    return op.uniform(size[0] if len(size) == 1 else size, generator=generator, dtype=dtype, device=device)


@_takes_size
@takes_requires_grad
def randn(
    *size: int | Sequence[int], generator: Generator | None = None, dtype: DType | None = None,
    device: Device | str | None = None
) -> Tensor:
    """Random numbers from the standard normal distribution: randn(2, 3) or randn((2, 3))."""
    return op.normal(size[0] if len(size) == 1 else size, generator=generator, dtype=dtype, device=device)


@takes_requires_grad
@takes_tensor
def rand_like(
    x: Tensor, *, generator: Generator | None = None, dtype: DType | None = None, device: Device | str | None = None
) -> Tensor:
    """Uniform random numbers in [0, 1) of x's shape and, unless stated, its dtype and device."""
    return op.uniform(x.shape, generator=generator, dtype=dtype or x.dtype, device=device or x.device)


@takes_requires_grad
@takes_tensor
def randn_like(
    x: Tensor, *, generator: Generator | None = None, dtype: DType | None = None, device: Device | str | None = None
) -> Tensor:
    """Random numbers from the standard normal distribution, of x's shape and, unless stated, its dtype and device."""
    return op.normal(x.shape, generator=generator, dtype=dtype or x.dtype, device=device or x.device)


def randperm(n: int, *, generator: Generator | None = None, device: Device | str | None = None) -> Tensor:
    """The integers below n in random order."""
    return op.permutation(n, generator=generator, device=device)


def tri(
    n: int, m: int | None = None, k: int = 0, dtype: DType | None = None, *, device: Device | str | None = None
) -> Tensor:
    """The n by m matrix (m is n unless stated) of ones at and below diagonal k, zeros above."""
    ones = op.full([n, n if m is None else m], 1, dtype=_core.default_float() if dtype is None else dtype, device=device)
    return op.tril(ones, k=k)


@takes_tensor
def vander(x: Tensor, n: int | None = None, increasing: bool = False, *, N: int | None = None) -> Tensor:
    """The Vandermonde matrix of the vector x: its powers as n columns (NumPy's N), from the highest down, or from 0 up.

    Bools and integers of fewer than 64 bits count in int64, as in NumPy.
    """
    if x.ndim != 1:
        raise _core.ShapeError(f"vander: argument x: found {x.ndim} dimensions, expected a vector")
    n = N if n is None else n
    n = x.shape[0] if n is None else n
    if n < 0:
        raise _core.ArgumentValueError(f"vander: argument n: found {n}, expected at least 0")
    if not isdtype(x.dtype, ("real floating", "complex floating", _core.int64, _core.uint64)):
        x = op.cast(x, _core.int64)
    if n == 0:
        return op.full([x.shape[0], 0], 0, dtype=x.dtype, device=x.device)
    factors = op.concat([op.full([x.shape[0], 1], 1, dtype=x.dtype, device=x.device),
                         op.broadcast_to(op.expand_dims(x, [1]), [x.shape[0], n - 1])], axis=1)  # fmt: skip
    powers = op.cumprod(factors, 1, dtype=x.dtype)
    return powers if increasing else op.flip(powers, [1])


def _spaced(values, dtype, device):
    return _core.asarray(values, dtype=_core.default_float() if dtype is None else dtype, device=device)


def _steps(function, start, stop, num, endpoint):
    require_room(function, "num", num)
    parts = max(num - 1 if endpoint else num, 1)
    return [start + (stop - start) * i / parts for i in range(num)]


def _power(base, exponent):
    try:
        return base**exponent
    except OverflowError:  # what Python refuses of floats is an infinity elsewhere
        return math.inf


@takes_words([("end", "stop")])
@takes_requires_grad
def logspace(
    start: float, stop: float, num: int = 50, endpoint: bool = True, base: float = 10.0, dtype: DType | None = None, *,
    device: Device | str | None = None, steps: int | None = None
) -> Tensor:
    """num (PyTorch's steps) powers of base, with exponents evenly spaced from start to stop, which endpoint includes."""
    num = num if steps is None else steps
    return _spaced([_power(base, exponent) for exponent in _steps("logspace", start, stop, num, endpoint)], dtype, device)


def geomspace(
    start: float, stop: float, num: int = 50, *, endpoint: bool = True, dtype: DType | None = None,
    device: Device | str | None = None
) -> Tensor:
    """num numbers, each the same multiple of the one before, from start to stop, which endpoint includes."""
    number = complex if isinstance(start, complex) or isinstance(stop, complex) else float
    if start == 0 or stop == 0 or (number is float and (start < 0) != (stop < 0)):
        raise _core.ArgumentValueError(f"geomspace: found {start} to {stop}, expected numbers of one sign, not 0")
    if isinstance(start, _core.Tensor) or isinstance(stop, _core.Tensor):
        return _spaced([start * (stop / start) ** part for part in _steps("geomspace", 0.0, 1.0, num, endpoint)], dtype, device)
    sign = start / abs(start)
    ratio = stop / sign
    if number is complex:
        import cmath

        last = cmath.log10(ratio)
    else:
        last = math.log10(ratio)
    found = [sign * 10.0**power for power in _steps("geomspace", math.log10(abs(start)), last, num, endpoint)]  # exact at powers of ten
    if found:
        found[0] = number(start)
        if endpoint and num > 1:
            found[-1] = number(stop)
    return _spaced(found, _core.default_complex() if dtype is None and number is complex else dtype, device)


def empty(
    shape: int | Sequence[int] | None = None, *sizes: int | DType, dtype: DType | None = None, device: Device | str | None = None,
    requires_grad: bool = False, size: int | Sequence[int] | None = None
) -> Tensor:
    """A tensor whose elements are whatever its memory holds: empty((2, 3)) or empty(2, 3), or with NumPy's dtype in second place empty((2, 3), "int32"). size: PyTorch's word for shape."""
    if size is not None:
        if shape is not None:
            raise _core.ArgumentTypeError("empty: found size and shape, expected one of them")
        shape = size
    if len(sizes) == 1 and dtype is None and not hasattr(type(sizes[0]), "__index__"):
        sizes, dtype = (), sizes[0]
    made = _core.empty((shape, *sizes) if sizes else shape, dtype, device)
    return made.requires_grad_() if requires_grad else made


@takes_requires_grad
@takes_tensor
def empty_like(
    x: Tensor, dtype: DType | None = None, *, device: Device | str | None = None, shape: int | Sequence[int] | None = None
) -> Tensor:
    """An uninitialised tensor of x's shape and dtype and on its device, unless stated."""
    return empty(x.shape if shape is None else shape, dtype=x.dtype if dtype is None else dtype, device=x.device if device is None else device)
