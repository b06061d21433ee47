"""astype, which casts a tensor to another dtype."""

from __future__ import annotations

from .. import _core
from .._calls._tensor_argument import given_tensor
from .._core import DType
from .._tensors._tensor import cast

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .._core import Device, Tensor

__all__ = ["astype"]


def astype(x: Tensor, dtype: DType, *, copy: bool = True, device: Device | str | None = None) -> Tensor:
    """x in another dtype, and on another device where one is named; x itself where nothing changes and copy is False."""
    if not isinstance(x, _core.Tensor):
        x = given_tensor("astype", "x", x)
    if device is None and x.dtype is not dtype and type(dtype) is DType:
        return cast(x, dtype)
    return x.astype(dtype, copy=copy, device=device)
