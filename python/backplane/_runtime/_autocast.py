"""Mixed precision: blocks in which products run in half floats, and what needs float32 in that."""

from __future__ import annotations

from .. import _core
from ._settings import AUTOCAST

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from .._core import Device, DType, Function

__all__ = ["autocast", "get_autocast_dtype", "is_autocast_enabled"]


OFF = _core.autocast_value(None, None)


class autocast(_core.SettingBlock):
    """Mixed precision for a block or a function: `with autocast("cpu"): ...`, `@autocast("cuda", dtype=bp.float16)`.

    Inside, products and convolutions get their float32 arguments in `dtype`; exponentials, logarithms, powers, sums, norms, losses and
    linear algebra get float16 and bfloat16 arguments in float32. Other ops take what they are given, and promote. The entry of
    each op says which (tag autocast). float64, integers and calls with out= are left alone.

    device_type: calls on devices of this backend alone; None: on all devices. A dtype here is `dtype`. dtype: float16 or bfloat16;
    None: bfloat16, on CUDA devices float16, as in PyTorch. enabled=False: calls inside run as they are. cache_enabled: accepted for
    PyTorch's sake; casts are not kept between calls, and a compiled function makes each once. Of nested blocks the innermost holds.
    Errors: ArgumentTypeError and DtypeError for another dtype, ArgumentValueError for a device that is not there.

    Example:
        >>> x = bp.ones((2, 2))
        >>> with bp.autocast("cpu"):
        ...     y = x @ x
        >>> y.dtype.name
        'bfloat16'
    """

    __slots__ = ("_given",)
    _given: tuple[Any, ...]

    def __new__(
        cls, device_type: Device | DType | str | None = None, dtype: DType | str | None = None, enabled: bool = True,
        cache_enabled: bool | None = None
    ) -> Any:
        device = device_type
        if isinstance(device, _core.DType):
            if dtype is not None:
                raise _core.ArgumentTypeError("autocast: found two dtypes, expected a device and a dtype")
            device, dtype = None, device
        if dtype is None:
            dtype = _default_dtype(device)
        value = _core.autocast_value(dtype, device)
        make: Any = super().__new__
        made: autocast = make(cls, AUTOCAST, value if enabled else _core.autocast_value(None, device))
        made._given = (device_type, dtype if device is device_type else None, enabled, cache_enabled)
        return made

    def __call__(self, function: Function) -> Function:
        from .._transforms._block_wrappers import in_block

        given = self._given
        return in_block(lambda: type(self)(*given), function)


def uncast(function: Callable[..., Any]) -> Callable[..., Any]:
    """function, whose calls run as they are, also in a block of autocast: a rule of an op has the dtypes that it states."""

    def call(*args: Any, **kwargs: Any) -> Any:
        with _core.SettingBlock(AUTOCAST, OFF):
            return function(*args, **kwargs)

    return call


def _default_dtype(device):
    name = device.backend if isinstance(device, _core.Device) else str(device).partition(":")[0]
    return _core.float16 if name == "cuda" else _core.bfloat16


def is_autocast_enabled(device_type: Device | str | None = None) -> bool:
    """Are calls on the device cast, in this context? device_type: None for any device."""
    return _core.autocast_dtype(device_type) is not None


def get_autocast_dtype(device_type: Device | str | None = None) -> DType | None:
    """The dtype of products on the device in the block of autocast that this context is in; None without one."""
    return _core.autocast_dtype(device_type)
