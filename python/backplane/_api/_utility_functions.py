"""Questions about whole tensors: their kind and size, and whether they are equal."""

from __future__ import annotations

from .._core import ShapeError, Tensor, asarray
from ._data_type_functions import isdtype
from ._elementwise_functions import as_tensors
from ._manipulation_functions import normalized_axis
from .._calls._ops import NAMESPACE, ops
from .._calls._tensor_argument import known, require_tensor, takes_operands, takes_tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .._core import Operand

op = getattr(ops, NAMESPACE)

__all__ = [
    "allclose",
    "array_equal",
    "array_equiv",
    "is_complex",
    "is_floating_point",
    "is_tensor",
    "isscalar",
    "ndim",
    "numel",
    "shape",
    "size",
    "to_numpy",
]


def is_tensor(x: object) -> bool:
    """Is x a Tensor?"""
    return isinstance(x, Tensor)


@takes_tensor
def is_floating_point(x: Tensor) -> bool:
    """Is x of a real floating dtype?"""
    return x.dtype.kind == "real floating"


@takes_tensor
def is_complex(x: Tensor) -> bool:
    """Is x of a complex dtype?"""
    return x.dtype.kind == "complex floating"


@takes_tensor
def numel(x: Tensor) -> int:
    """The count of x's elements."""
    return x.size


def ndim(x: Any) -> int:
    """The number of axes of a tensor, of nested sequences or of a number."""
    return asarray(x).ndim


def shape(x: Any) -> tuple[int, ...]:
    """The shape of a tensor, of nested sequences or of a number."""
    return asarray(x).shape


def size(x: Any, axis: int | None = None) -> int:
    """The count of elements of a tensor, of nested sequences or of a number; the size of one axis where it is named."""
    x = asarray(x)
    return x.size if axis is None else x.shape[normalized_axis("size", axis, x.ndim)]


@takes_operands
def allclose(x: Operand, y: Operand, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> bool:
    """Are all elements close, by isclose? A Python bool; inside compile and vmap, which know no values, a tensor."""
    return _answer(op.all(op.isclose(x, y, rtol, atol, equal_nan)))


@takes_operands
def array_equal(x: Operand, y: Operand, equal_nan: bool = False) -> bool:
    """Have x and y one shape and equal elements? A Python bool, or a tensor as of allclose; equal_nan: NaN equals NaN."""
    x, y = as_tensors(x, y)
    if x.shape != y.shape:
        return False
    same = op.equal(x, y)
    if equal_nan:
        both = [op.isnan(v) if isdtype(v.dtype, "numeric") else op.not_equal(v, v) for v in (x, y)]
        same = op.logical_or(same, op.logical_and(*both))
    return _answer(op.all(same))


def array_equiv(x: Operand, y: Operand) -> bool:
    """Do x and y broadcast to one another, with equal elements? A Python bool, or a tensor as of allclose."""
    x, y = as_tensors(x, y)
    try:
        return _answer(op.all(op.equal(x, y)))
    except ShapeError:
        return False


def _answer(x):
    return known(x, x)


def isscalar(x: object) -> bool:
    """True if x is a Python or NumPy number or string. A tensor is not a scalar."""
    return isinstance(x, (int, float, complex, str, bytes)) or (hasattr(x, "dtype") and hasattr(x, "item") and not hasattr(x, "__setitem__"))


def to_numpy(x: Tensor) -> Any:
    """x as a NumPy array, over the same memory on the host."""
    require_tensor("to_numpy", "x", x)
    return x.numpy()
