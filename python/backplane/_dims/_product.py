"""Products that wait for their sum: (A[i, k] * B[k, j]).sum(k) becomes one contraction."""

from __future__ import annotations

import functools
import operator

from .. import _core
from .._api._einsum import einsum
from .._transforms._grad import is_grad_enabled, set_grad_enabled
from ._align import aligned
from ._tensor import DimTensor, union_of, without

__all__ = []

_LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"


class Product:
    """The product of factors, summed over some of their dims, and divided by a number."""

    __slots__ = ("factors", "versions", "summed", "divisor", "grad_mode")

    def __init__(self, factors, summed=(), divisor=1):
        self.factors, self.summed, self.divisor = factors, summed, divisor
        self.versions = [x._value().version for x in factors]
        self.grad_mode = is_grad_enabled()

    @property
    def shape(self):
        return max((x.shape for x in self.factors), key=len)

    @property
    def dtype(self):
        return self.factors[0].dtype

    @property
    def device(self):
        return self.factors[0].device

    def value(self, order):
        """(the tensor whose first axes are these dims, whether it may be kept for the next use)."""
        self._check_versions()
        if is_grad_enabled() == self.grad_mode:
            array = self._computed(order)
        else:
            with set_grad_enabled(self.grad_mode):
                array = self._computed(order)
        # A tensor of a trace or a transform does not outlive it.
        return array, _is_plain(array) or not all(_is_plain(x._value()) for x in self.factors)

    def _check_versions(self):
        if any(x._value().version != version for x, version in zip(self.factors, self.versions)):
            raise _core.ArgumentValueError(
                "dims: a factor of a product was changed in place before the product was used. Fix: use the product first, or change a copy"
            )

    def _computed(self, order):
        if not self.summed:
            arrays, dims = aligned(self.factors, order)
            return functools.reduce(operator.mul, arrays)
        letters = dict(zip(map(id, union_of(self.factors)), _LETTERS))
        ndims = [x.ndim for x in self.factors]
        positional = _LETTERS[len(letters) : len(letters) + max(ndims)]
        terms = ["".join([letters[id(dim)] for dim in x.dims]) + positional[len(positional) - n :] for x, n in zip(self.factors, ndims)]
        out = "".join([letters[id(dim)] for dim in order]) + positional
        found = einsum(f"{','.join(terms)}->{out}", *[x._value() for x in self.factors])
        return found if self.divisor == 1 else found / self.divisor


def _is_plain(array):
    return _core.has_values(array) and not _core.transforms_of(array)


def product_of(a, b):
    """The product of two operands as one that waits, or None: it is computed at once then."""
    factors = [*_factors(a), *_factors(b)]
    if any(x is None for x in factors):
        return None
    arrays = [x._array for x in factors]
    dtype, device = arrays[0].dtype, arrays[0].device
    if "floating" not in dtype.kind or any(x.dtype is not dtype or x.device != device for x in arrays[1:]):
        return None
    shapes = [tuple(array.shape[len(x.dims) :]) for x, array in zip(factors, arrays)]
    shape = max(shapes, key=len)
    if any(own != shape[len(shape) - len(own) :] for own in shapes):
        return None  # positional axes broadcast
    union = union_of(factors)
    return DimTensor(None, union, Product(factors)) if len(union) + len(shape) <= len(_LETTERS) else None


def _factors(x):
    if isinstance(x, _core.Tensor):
        return [DimTensor(x, ())]
    if not isinstance(x, DimTensor) or x.is_free:
        return [None]
    if x._array is None and not x._product.summed:
        return x._product.factors
    return [x if x._array is not None else DimTensor(x._value(), x.dims)]


def scaled(x, number, by):
    """A product that waits, times or over a number: by the factor with the fewest elements. None: x is no such product."""
    if x._array is not None or x._product is None or x._product.summed or isinstance(number, complex):
        return None
    factors = list(x._product.factors)
    place = min(range(len(factors)), key=lambda place: factors[place]._value().size)
    factors[place] = DimTensor(by(factors[place]._value(), number), factors[place].dims)
    return DimTensor(None, x.dims, Product(factors)) if factors[place].dtype == x.dtype else None


def summed(x, dims, is_mean):
    """A product that waits, summed over dims. None: x is no such product."""
    if x._array is not None or x._product is None or x._product.summed and (is_mean or x._product.divisor != 1):
        return None
    x._product._check_versions()
    divisor = 1
    for dim in dims if is_mean else ():
        divisor *= dim.size
    product = Product(x._product.factors, (*x._product.summed, *dims), divisor if is_mean else 1)
    product.grad_mode = x._product.grad_mode
    rest = without(x.dims, dims)
    return DimTensor(None, rest, product) if rest else product.value(())[0]
