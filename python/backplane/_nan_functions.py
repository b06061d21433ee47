"""NumPy's reductions that leave NaN out and that no entry says: variances, running sums of what has no axis, and positions, which look at values."""

from __future__ import annotations

from . import _core
from ._data_type_functions import isdtype
from ._ops import NAMESPACE, ops
from ._tensor_argument import takes_tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ._core import Tensor

op = getattr(ops, NAMESPACE)

__all__ = ["nanargmax", "nanargmin", "nancumprod", "nancumsum", "nanstd", "nanvar"]


def _may_be_nan(x):
    return isdtype(x.dtype, ("real floating", "complex floating"))


def _filled(x, value):
    return op.where(op.isnan(x), value, x) if _may_be_nan(x) else x


def _axes(axis):
    return list(axis) if isinstance(axis, (tuple, list)) else axis


def _count(x, axis, keepdims, dtype):
    return op.sum(op.logical_not(op.isnan(x)), _axes(axis), dtype=dtype, keepdims=keepdims)


def _real_dtype(dtype):
    return {_core.complex64: _core.float32, _core.complex128: _core.float64}.get(dtype, dtype)


@takes_tensor
def nanvar(
    x: Tensor, /, axis: int | Sequence[int] | None = None, *, correction: float = 0, keepdims: bool = False
) -> Tensor:
    """Variance over axes of the elements that are no NaN, NaN where there are no more of them than correction."""
    if not _may_be_nan(x):
        return op.var(x, _axes(axis), correction=correction, keepdims=keepdims)
    # NaN that comes of an infinity less the mean stays.
    away = op.where(op.isnan(x), 0, op.subtract(x, op.nanmean(x, _axes(axis), keepdims=True)))
    squares = op.real(op.multiply(away, op.conj(away))) if isdtype(x.dtype, "complex floating") else op.square(away)
    left = op.subtract(_count(x, axis, keepdims, squares.dtype), correction)
    found = op.divide(op.sum(squares, _axes(axis), dtype=squares.dtype, keepdims=keepdims), left)
    return op.where(op.greater(left, 0), found, float("nan"))


@takes_tensor
def nanstd(
    x: Tensor, /, axis: int | Sequence[int] | None = None, *, correction: float = 0, keepdims: bool = False
) -> Tensor:
    """Standard deviation over axes of the elements that are no NaN, the square root of nanvar."""
    return op.sqrt(nanvar(x, axis, correction=correction, keepdims=keepdims))


def _nan_position(function, x, axis, keepdims, locate, extreme):
    if not _may_be_nan(x):
        return locate(x, axis, keepdims=keepdims)
    # Inside a transform there is no one value to look at.
    if _core.has_values(x) and bool(op.any(op.all(op.isnan(x), axis))):
        raise _core.ArgumentValueError(f"{function}: argument x: found NaN alone along axis {axis}, expected a number")
    # A comparison with NaN is false, so that an infinity is not taken for what would stand in NaN's place.
    hit = op.equal(x, extreme(x, axis, keepdims=True))
    return op.argmax(op.cast(hit, _core.int8), axis, keepdims=keepdims)


@takes_tensor
def nanargmax(x: Tensor, /, axis: int | None = None, *, keepdims: bool = False) -> Tensor:
    """Position of the first largest element that is no NaN. Errors: ValueError where all along axis are NaN."""
    return _nan_position("nanargmax", x, axis, keepdims, op.argmax, op.nanmax)


@takes_tensor
def nanargmin(x: Tensor, /, axis: int | None = None, *, keepdims: bool = False) -> Tensor:
    """Position of the first smallest element that is no NaN. Errors: ValueError where all along axis are NaN."""
    return _nan_position("nanargmin", x, axis, keepdims, op.argmin, op.nanmin)


@takes_tensor
def nancumsum(x: Tensor, /, axis: int | None = None) -> Tensor:
    """Running sums along axis (of x flattened, without one) with NaN taken for 0."""
    return op.cumsum(_filled(x, 0), axis=axis) if axis is not None else op.cumsum(op.reshape(_filled(x, 0), [-1]), axis=0)


@takes_tensor
def nancumprod(x: Tensor, /, axis: int | None = None) -> Tensor:
    """Running products along axis (of x flattened, without one) with NaN taken for 1."""
    return op.cumprod(_filled(x, 1), axis=axis) if axis is not None else op.cumprod(op.reshape(_filled(x, 1), [-1]), axis=0)
