"""What the array API standard's `__array_namespace_info__()` returns: devices, dtypes and capabilities, by question."""

from __future__ import annotations

from .. import _core
from ._data_type_functions import DTYPES, KINDS, isdtype

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# The dtypes of the standard; float16 and bfloat16 are ours beside them.
_STANDARD = tuple(name for name in DTYPES if name not in ("float16", "bfloat16"))
_MAX_AXES = 64


class Info:
    """The inspection namespace; it holds nothing, so one may be kept."""

    def capabilities(self):
        """What of the standard's optional behaviour there is, and the largest number of axes."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": _MAX_AXES}

    def default_device(self):
        """Where creation functions put a tensor when no device is named."""
        return _core.default_device()

    def devices(self):
        """Every device that can be used, as creation functions take it."""
        return tuple(row["device"] for row in _core.devices())

    def default_dtypes(self, *, device=None):
        """The dtypes that numbers get where none is stated; they are those of every device."""
        _check_device("default_dtypes", device)
        return {
            "real floating": _core.default_float(),
            "complex floating": _core.default_complex(),
            "integral": _core.int64,
            "indexing": _core.int64,
        }

    def dtypes(self, *, device=None, kind=None):
        """The standard's dtypes by name: all dtypes, or only the dtypes of a kind or of a tuple of kinds."""
        _check_device("dtypes", device)
        for one in kind if isinstance(kind, tuple) else (kind,):
            if one is not None and one not in KINDS:
                raise _core.ArgumentValueError(
                    f"dtypes: argument kind: found {one!r}, expected one of {', '.join(KINDS)}, or a tuple of them"
                )
        every = {name: getattr(_core, name) for name in _STANDARD}
        return {name: dtype for name, dtype in every.items() if kind is None or isdtype(dtype, kind)}


def _check_device(who, device):
    """Raises if device is not a device. The answers are the same for all devices."""
    if device is not None and not isinstance(device, _core.Device):
        if not isinstance(device, str):
            raise _core.ArgumentTypeError(
                f"{who}: argument device: found a value of type {type(device).__name__}, expected a device"
            )
        _core.Device(device)


def __array_namespace_info__() -> Any:
    """The inspection namespace: capabilities, default_device, default_dtypes, devices, dtypes."""
    return Info()
