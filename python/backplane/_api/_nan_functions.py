"""NumPy's positions that leave NaN out, which no entry says: they look at values."""

from __future__ import annotations

from .. import _core
from ._data_type_functions import isdtype
from .._calls._ops import NAMESPACE, ops
from .._calls._tensor_argument import takes_tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .._core import Tensor

op = getattr(ops, NAMESPACE)

__all__ = ["nanargmax", "nanargmin"]


def _may_be_nan(x):
    return isdtype(x.dtype, ("real floating", "complex floating"))


def _nan_position(function, x, axis, keepdims, locate, extreme):
    if not _may_be_nan(x):
        return locate(x, axis, keepdims=keepdims)
    # Skipped inside a transform, where the value cannot be read.
    if _core.has_values(x) and bool(op.any(op.all(op.isnan(x), axis))):
        raise _core.ArgumentValueError(f"{function}: argument x: found only NaN along axis {axis}, expected a number")
    # A comparison with NaN is false, so that an infinity is not taken for what would stand in NaN's place.
    hit = op.equal(x, extreme(x, axis, keepdims=True))
    return op.argmax(op.cast(hit, _core.int8), axis, keepdims=keepdims)


@takes_tensor
def nanargmax(x: Tensor, axis: int | None = None, *, keepdims: bool = False) -> Tensor:
    """Position of the first largest element that is not NaN. Errors: ValueError if all elements along axis are NaN."""
    return _nan_position("nanargmax", x, axis, keepdims, op.argmax, op.nanmax)


@takes_tensor
def nanargmin(x: Tensor, axis: int | None = None, *, keepdims: bool = False) -> Tensor:
    """Position of the first smallest element that is not NaN. Errors: ValueError if all elements along axis are NaN."""
    return _nan_position("nanargmin", x, axis, keepdims, op.argmin, op.nanmin)
