"""Tensors from data and from random numbers, and questions about them, under NumPy's and PyTorch's names."""

from . import _core
from ._data_type_functions import result_type
from ._core import Tensor, asarray
from ._ops import NAMESPACE, ops
from ._manipulation_functions import normalized_axis
from ._tensor_argument import takes_tensor

op = getattr(ops, NAMESPACE)

__all__ = [
    "array",
    "as_tensor",
    "from_numpy",
    "identity",
    "is_complex",
    "is_floating_point",
    "is_tensor",
    "ndim",
    "numel",
    "promote_types",
    "rand",
    "rand_like",
    "randn",
    "randn_like",
    "randperm",
    "shape",
    "size",
    "tensor",
]


def array(obj, /, dtype=None, *, copy=True, device=None):
    """A tensor of an array, of nested sequences of numbers or of a number, copied unless copy is None (where needed) or False."""
    return asarray(obj, dtype=dtype, copy=copy, device=device)


def tensor(data, *, dtype=None, device=None, requires_grad=False):
    """A copy of an array, of nested sequences of numbers or of a number as a tensor."""
    made = asarray(data, dtype=dtype, device=device, copy=True)
    return made.requires_grad_() if requires_grad else made


def as_tensor(data, dtype=None, device=None):
    """asarray with PyTorch's order of arguments: shares memory where dtype, device and layout allow."""
    return asarray(data, dtype=dtype, device=device)


def from_numpy(x, /):
    """A tensor over the memory of a NumPy array, never a copy."""
    if not hasattr(x, "__array_interface__"):
        raise _core.ArgumentTypeError(f"from_numpy: found a value of type {type(x).__name__}, expected a NumPy array; use backplane.asarray")
    try:
        return asarray(x, copy=False)
    except _core.ArgumentValueError:
        raise _core.ArgumentValueError(
            "from_numpy: found memory that no tensor takes as it is: strides that are negative or no whole elements, an address that is "
            "not aligned, or bools other than the bytes 0 and 1; use backplane.asarray, which copies"
        ) from None


def identity(n, /, dtype=None, *, device=None):
    """The n by n matrix of ones on the diagonal, zeros elsewhere."""
    return op.eye(n, dtype=dtype, device=device)


def promote_types(type1, type2, /):
    """The dtype to which two dtypes promote."""
    return result_type(type1, type2)


def rand(*size, generator=None, dtype=None, device=None):
    """Uniform random numbers in [0, 1): rand(2, 3) or rand((2, 3))."""
    return op.uniform(*size or ((),), generator=generator, dtype=dtype, device=device)


def randn(*size, generator=None, dtype=None, device=None):
    """Random numbers from the standard normal distribution: randn(2, 3) or randn((2, 3))."""
    return op.normal(*size or ((),), generator=generator, dtype=dtype, device=device)


@takes_tensor
def rand_like(x, /, *, generator=None, dtype=None, device=None):
    """Uniform random numbers in [0, 1) of x's shape and, unless stated, its dtype and device."""
    return op.uniform(x.shape, generator=generator, dtype=dtype or x.dtype, device=device or x.device)


@takes_tensor
def randn_like(x, /, *, generator=None, dtype=None, device=None):
    """Random numbers from the standard normal distribution, of x's shape and, unless stated, its dtype and device."""
    return op.normal(x.shape, generator=generator, dtype=dtype or x.dtype, device=device or x.device)


def randperm(n, *, generator=None, device=None):
    """The integers below n in random order."""
    return op.permutation(n, generator=generator, device=device)


def is_tensor(x, /):
    """Is x a Tensor?"""
    return isinstance(x, Tensor)


@takes_tensor
def is_floating_point(x, /):
    """Is x of a real floating dtype?"""
    return x.dtype.kind == "real floating"


@takes_tensor
def is_complex(x, /):
    """Is x of a complex dtype?"""
    return x.dtype.kind == "complex floating"


@takes_tensor
def numel(x, /):
    """The count of x's elements."""
    return x.size


def ndim(x, /):
    """The number of axes of a tensor, of nested sequences or of a number."""
    return asarray(x).ndim


def shape(x, /):
    """The shape of a tensor, of nested sequences or of a number."""
    return asarray(x).shape


def size(x, /, axis=None):
    """The count of elements of a tensor, of nested sequences or of a number; the size of one axis where it is named."""
    x = asarray(x)
    return x.size if axis is None else x.shape[normalized_axis("size", axis, x.ndim)]
