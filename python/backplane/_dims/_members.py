"""The operators and methods of DimTensor: those of Tensor, batched over the named axes."""

from __future__ import annotations

import operator

from .. import _core
from ._calls import batched, call, elementwise
from ._index import get_of_named
from ._product import product_of, scaled, summed
from ._tensor import Dim, DimTensor, _no_value, is_among, made

__all__ = []

_ELEMENTWISE = "add sub truediv floordiv mod pow and_ or_ xor lshift rshift".split()
_COMPARING = "lt le eq ne gt ge".split()
_OF_VALUES = "item tolist numpy backward".split()
# Methods that treat all elements alike, whatever the axes mean.
_OF_WHOLE = set("astype bfloat16 bool clone contiguous copy detach double float half int long pin_memory requires_grad_ short to to_device type_as".split())


def _operand(x):
    """The value as an operand beside a DimTensor. Arrays of other libraries and lists become tensors."""
    if isinstance(x, (DimTensor, _core.Tensor, int, float, complex)):
        return x
    if isinstance(x, (list, tuple)) or hasattr(x, "__dlpack__") or hasattr(x, "__array__"):
        return _core.asarray(x)
    return NotImplemented


def _binary(function):
    def forward(x, y):
        y = _operand(y)
        return y if y is NotImplemented else elementwise(function, (x, y), {})

    def reflected(x, y):
        y = _operand(y)
        return y if y is NotImplemented else elementwise(function, (y, x), {})

    return forward, reflected


def _multiplied(x, y):
    y = _operand(y)
    if y is NotImplemented:
        return y
    found = product_of(x, y) if isinstance(y, (DimTensor, _core.Tensor)) else scaled(x, y, operator.mul)
    return elementwise(operator.mul, (x, y), {}) if found is None else found


def _divided(x, y):
    y = _operand(y)
    if y is NotImplemented:
        return y
    found = scaled(x, y, operator.truediv) if isinstance(y, (int, float)) else None
    return elementwise(operator.truediv, (x, y), {}) if found is None else found


def _product(function):
    def product(x, y):
        x, y = _operand(x), _operand(y)
        if x is NotImplemented or y is NotImplemented:
            return NotImplemented
        if all(isinstance(side, (DimTensor, _core.Tensor)) and side.ndim >= 2 for side in (x, y)):
            return elementwise(function, (x, y), {})
        return batched(function, (x, y), {})

    return product


def _attribute(x, name):
    """Methods and properties of Tensor."""
    if name.startswith("_") or not hasattr(_core.Tensor, name):
        raise AttributeError(f"'{type(x).__name__}' object has no attribute '{name}'", name=name, obj=x)
    found = getattr(_core.Tensor, name)
    if not callable(found):
        return batched(lambda array: getattr(array, name), (x,), {})
    if name in _OF_WHOLE:
        return lambda *args, **kwargs: made(getattr(x._value(), name)(*args, **kwargs), x.dims)
    return lambda *args, **kwargs: call(found, (x, *args), kwargs)


def _reduction(name):
    """sum and mean: of products that wait they are contractions. Dims may stand one after the other."""
    function = getattr(_core.Tensor, name)

    def reduced(x, *args, **kwargs):
        dims = args[0] if len(args) == 1 and type(args[0]) is tuple else args
        if dims and all([type(dim) is Dim for dim in dims]):
            if x._product is not None and not kwargs and all([is_among(dim, x.dims) for dim in dims]):
                found = summed(x, dims, name == "mean")
                if found is not None:
                    return found
            args = (dims,)
        return call(function, (x, *args), kwargs)

    return reduced


def _refusing(name):
    def refused(x, *args, **kwargs):
        raise _no_value(name.strip("_"), x)

    return refused


def add_to(cls: type) -> None:
    for name in _ELEMENTWISE:
        plain = name.strip("_")
        forward, reflected = _binary(getattr(operator, name))
        setattr(cls, f"__{plain}__", forward)
        setattr(cls, f"__r{plain}__", reflected)
    for name in _COMPARING:
        setattr(cls, f"__{name}__", _binary(getattr(operator, name))[0])
    for name in ("neg", "pos", "abs", "invert"):
        setattr(cls, f"__{name}__", lambda x, function=getattr(operator, name): elementwise(function, (x,), {}))
    for name in _OF_VALUES:
        setattr(cls, name, _refusing(name))
    cls.sum, cls.mean = _reduction("sum"), _reduction("mean")
    cls.__truediv__ = _divided
    cls.__mul__ = cls.__rmul__ = _multiplied
    cls.__matmul__ = _product(operator.matmul)
    cls.__rmatmul__ = lambda x, y: _product(operator.matmul)(y, x)
    cls.__getitem__ = get_of_named
    cls.__getattr__ = _attribute
    cls.__hash__ = object.__hash__
    cls.__array_ufunc__ = None  # NumPy's operators leave arrays beside it to the methods here
