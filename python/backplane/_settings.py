"""Settings of the process or a thread: where and of which dtype tensors are made, threads, fallbacks, how tensors are printed.

What a setting returns, or a word of its own (`device`, `printoptions`), sets it for a block in a `with`.
"""

from __future__ import annotations

from . import _core
from ._members import extend

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, overload

    from ._core import Device, DType

__all__ = [
    "DtypeSetting",
    "PrintOptions",
    "allow_batch_loop",
    "allow_host_fallback",
    "default_device",
    "default_dtype",
    "get_default_dtype",
    "get_num_threads",
    "get_printoptions",
    "host_fallback",
    "printoptions",
    "set_default_device",
    "set_default_dtype",
    "set_num_threads",
    "set_printoptions",
]


class Setting(int):
    """What a setting was before it was changed, True or False; `with` sets it back at the end of the block."""

    _restore: Any

    def __enter__(self) -> Setting:
        return self

    def __exit__(self, *failure: object) -> None:
        self._restore(bool(self))

    def __repr__(self):
        return repr(bool(self))


def changed(function, argument, change, allowed):
    if not isinstance(allowed, int):
        raise _core.ArgumentTypeError(f"{function}: argument {argument}: found a value of type {type(allowed).__name__}, expected a bool")
    before = Setting(change(bool(allowed)))
    before._restore = change
    return before


def allow_host_fallback(allowed: bool = True) -> Setting:
    """Whether an op without a kernel may run on the host, this process over; returns the old setting.

    `with allow_host_fallback(False): ...` sets it for a block.
    """
    return changed("allow_host_fallback", "allowed", _core.allow_host_fallback, allowed)


class FallbackSetting(str):
    """What host_fallback found, 'allow', 'warn' or 'forbid'; `with` sets the thread's policy back at the end of the block."""

    _before: str | None

    def __enter__(self) -> FallbackSetting:
        return self

    def __exit__(self, *failure: object) -> None:
        _core.set_thread_host_fallback(self._before)


def host_fallback(policy: str | None = None) -> FallbackSetting:
    """What becomes of this thread's calls of ops that a device has no kernel for and that may run on the host: 'allow', 'warn' (once per
    op, as long as nothing else is said) or 'forbid' (an error). Sets the thread's policy where one is given; returns the old one.

    `with host_fallback('forbid'): ...` sets it for a block. The environment variable BACKPLANE_HOST_FALLBACK sets that of threads
    without a policy of their own.
    """
    if not isinstance(policy, (str, type(None))):
        raise _core.ArgumentTypeError(f"host_fallback: argument policy: found a value of type {type(policy).__name__}, expected 'allow', 'warn' or 'forbid'")
    old = FallbackSetting(_core.host_fallback())
    old._before = _core.set_thread_host_fallback(policy)
    if policy is None:
        _core.set_thread_host_fallback(old._before)
    return old


def allow_batch_loop(allowed: bool = True) -> Setting:
    """Whether vmap may run an op without a batch rule row by row, this process over; returns the old setting.

    `with allow_batch_loop(False): ...` sets it for a block.
    """
    return changed("allow_batch_loop", "allowed", _core.allow_batch_loop, allowed)


def default_device() -> Device:
    """Where tensors are made that name no device. `with backplane.device("cpu"): ...` sets it for a block, this process over."""
    return _core.default_device()


def set_default_device(device: Device | str) -> None:
    """From now on tensors that name no device are made there, this process over."""
    _core.set_default_device(device)


_outer_devices: list[Device] = []


def _enter_device(self: Device) -> Device:
    """Makes it the default device until the block's end, this process over."""
    before = _core.default_device()
    _core.set_default_device(self)
    _outer_devices.append(before)
    return self


def _exit_device(self: Device, *failure: object) -> None:
    _core.set_default_device(_outer_devices.pop())


def get_num_threads() -> int:
    """How many threads the host computes with: what set_num_threads or BACKPLANE_NUM_THREADS says, else the processors."""
    return _core.get_num_threads()


def set_num_threads(count: int) -> None:
    """The host computes with so many threads from now on, 1 to 1024; waits for running calls."""
    if not hasattr(count, "__index__"):
        raise _core.ArgumentTypeError(f"set_num_threads: argument count: found a value of type {type(count).__name__}, expected an int from 1 to 1024")
    count = count.__index__()
    if not 1 <= count <= 1024:
        raise _core.ArgumentValueError(f"set_num_threads: argument count: found {count}, expected 1 to 1024")
    _core.set_num_threads(count)


class DtypeSetting:
    """What default_dtype(dtype) returns: `with` sets the default back at the end of the block."""

    def __init__(self, before: DType) -> None:
        self.before = before

    def __enter__(self) -> DtypeSetting:
        return self

    def __exit__(self, *failure: object) -> None:
        _core.set_default_float(self.before)

    def __repr__(self):
        return f"<default_dtype was {self.before.name}>"


if TYPE_CHECKING:

    @overload
    def default_dtype() -> DType: ...

    @overload
    def default_dtype(dtype: DType | str, /) -> DtypeSetting: ...


def default_dtype(dtype: DType | str | None = None) -> DType | DtypeSetting:
    """The dtype of floats that name none: of Python's numbers, of creation functions, and of what is computed from integers.

    Given float16, bfloat16, float32 (which it is at the start) or float64, makes it that, this process over; of complex
    numbers it is then complex128 beside float64, else complex64. `with default_dtype(bp.float64): ...` sets it for a block.
    """
    if dtype is None:
        return _core.default_float()
    return DtypeSetting(_core.set_default_float(dtype))


def get_default_dtype() -> DType:
    """The dtype of floats that name none: default_dtype()."""
    return _core.default_float()


def set_default_dtype(dtype: DType | str) -> None:
    """From now on floats that name no dtype are of this one, this process over: default_dtype(dtype)."""
    _core.set_default_float(dtype)


def get_printoptions() -> dict[str, Any]:
    """How tensors are printed: what set_printoptions takes."""
    from ._repr import options

    return options()


def _checked_options(precision, threshold, edgeitems, linewidth, sci_mode, suppress, profile):
    from ._repr import MOST_DIGITS, PROFILES

    if profile is not None and profile not in PROFILES:
        raise _core.ArgumentValueError(f"set_printoptions: argument profile: found {profile!r}, expected one of {', '.join(PROFILES)}")
    changed = {} if profile is None else dict(PROFILES[profile])
    counts = {"precision": precision, "threshold": threshold, "edgeitems": edgeitems, "linewidth": linewidth}
    for name, value in counts.items():
        if value is None:
            continue
        endless = name in ("threshold", "linewidth") and value == float("inf")
        if not endless and (not hasattr(value, "__index__") or value < 0):
            raise _core.ArgumentValueError(f"set_printoptions: argument {name}: found {value!r}, expected an integer from 0 on")
        if name == "precision" and value > MOST_DIGITS:
            raise _core.ArgumentValueError(f"set_printoptions: argument precision: found {value}, expected at most {MOST_DIGITS}, the digits that a float64 can have")
        changed[name] = value if endless else value.__index__()
    if sci_mode is not None or suppress is not None:
        changed["sci_mode"] = sci_mode if suppress is None else False if suppress else None
    return changed


def set_printoptions(
    precision: int | None = None, threshold: float | None = None, edgeitems: int | None = None, linewidth: float | None = None,
    *, sci_mode: bool | None = None, suppress: bool | None = None, profile: str | None = None
) -> None:
    """How tensors are printed from now on; what is None stays. `with printoptions(precision=2): ...` sets it for a block.

    precision: digits after the point. threshold: elements above which long axes are cut to edgeitems at both ends; infinity
    for never. linewidth: characters per line. sci_mode: always with an exponent, or (False, as NumPy's suppress=True) never.
    profile: 'default', 'short' (2 digits, 2 edge items) or 'full' (never cut), before the others.
    """
    from ._repr import change_options

    change_options(_checked_options(precision, threshold, edgeitems, linewidth, sci_mode, suppress, profile))


class PrintOptions:
    """What printoptions returns: `with` sets the options for a block."""

    def __init__(self, options: dict[str, Any]) -> None:
        self._options = options
        self._tokens: list[Any] = []

    def __enter__(self) -> dict[str, Any]:
        from ._repr import enter_block

        self._tokens.append(enter_block(_checked_options(**self._options)))
        return get_printoptions()

    def __exit__(self, *failure: object) -> None:
        from ._repr import exit_block

        exit_block(self._tokens.pop())


def printoptions(
    precision: int | None = None, threshold: float | None = None, edgeitems: int | None = None, linewidth: float | None = None,
    *, sci_mode: bool | None = None, suppress: bool | None = None, profile: str | None = None
) -> PrintOptions:
    """How tensors are printed in a block, by this thread: `with printoptions(precision=2): ...`; takes what set_printoptions takes."""
    return PrintOptions({"precision": precision, "threshold": threshold, "edgeitems": edgeitems, "linewidth": linewidth,
                         "sci_mode": sci_mode, "suppress": suppress, "profile": profile})  # fmt: skip


class DeviceMembers:
    """PyTorch's words for the parts of its name, and the block in which it is the default."""

    __enter__ = _enter_device
    __exit__ = _exit_device

    @property
    def type(self: Device) -> str:
        """The backend's name: PyTorch's word for it."""
        return self.backend

    @property
    def index(self: Device) -> int:
        """The ordinal: PyTorch's word for it."""
        return self.ordinal


extend(_core.Device, DeviceMembers)
