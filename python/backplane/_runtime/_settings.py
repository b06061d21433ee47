"""Settings of the process or a thread: where and of which dtype tensors are made, threads, fallbacks, how tensors are printed.

What a setting returns, or a word of its own (`device`, `printoptions`), sets it for a block in a `with`: in its context (PEP 567), so
that asyncio tasks with overlapping blocks each see their own, and in C, so that an exception of a signal's handler leaves none behind.
"""

from __future__ import annotations

from .. import _core
from .._tensors._members import extend

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, overload

    from .._core import Device, DType

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


# Setting of bindings/interpreter/context_settings.hpp.
RECORDING, _DEVICE, _FLOAT, _HOST_FALLBACK, _BATCH_LOOP, AUTOCAST = range(6)


def settings_now() -> tuple[Any, ...]:
    """What holds in this context: device, dtype of floats, fallbacks to the host, loops over batches, autocast."""
    return _core.default_device(), _core.default_float(), _core.host_fallback(), _core.batch_loop_allowed(), _core.autocast_now()


def under(settings: tuple[Any, ...], function: Callable[..., Any]) -> Callable[..., Any]:
    """function, called under what settings_now() found: another run of it does what the first did."""

    def call(*args: Any, **kwargs: Any) -> Any:
        now = settings_now()
        if now == settings:
            return function(*args, **kwargs)
        from contextlib import ExitStack  # needed seldom, and slow to import

        device, dtype, fallback, loop, autocast = settings
        values = (_core.float_value(dtype), _core.fallback_value(fallback), int(loop), autocast)
        with ExitStack() as blocks:
            if device != now[0]:
                blocks.enter_context(device)
            for setting, value in enumerate(values, _FLOAT):
                if settings[setting - _DEVICE] != now[setting - _DEVICE]:
                    blocks.enter_context(_core.SettingBlock(setting, value))
            return function(*args, **kwargs)

    return call


class Setting(int):
    """What a setting was before it was changed, True or False; `with` sets it back at the end of the block."""

    _applied: _core.AppliedSetting
    __enter__ = _core.enter_applied
    __exit__ = _core.exit_applied

    def __repr__(self):
        self._applied.settle()
        return repr(bool(self))


def changed(function, argument, setting, before, allowed, values=(0, 1)):
    """Changes a setting that is a bool; `values` are those of False and True."""
    if not isinstance(allowed, int):
        raise _core.ArgumentTypeError(f"{function}: argument {argument}: found a value of type {type(allowed).__name__}, expected a bool")
    return _core.apply_setting(Setting(before), setting, values[bool(allowed)], values[before], True)


def allow_host_fallback(allowed: bool = True) -> Setting:
    """Whether an op without a kernel may run on the host, this process over; returns the old setting.

    `with allow_host_fallback(False): ...` sets it for a block, in this context alone.
    """
    now = _core.host_fallback()
    permitted = _core.fallback_value("warn" if now == "forbid" else now)
    return changed("allow_host_fallback", "allowed", _HOST_FALLBACK, now != "forbid", allowed, (_core.fallback_value("forbid"), permitted))


class FallbackSetting(str):
    """What host_fallback found, 'allow', 'warn' or 'forbid'; `with` sets the policy back at the end of the block."""

    _applied: _core.AppliedSetting
    __enter__ = _core.enter_applied
    __exit__ = _core.exit_applied

    def __repr__(self):
        self._applied.settle()
        return str.__repr__(self)


class _Unchanged:
    """Stands for an AppliedSetting where none was asked for."""

    def enter(self):
        pass

    exit = settle = enter


def host_fallback(policy: str | None = None) -> FallbackSetting:
    """What becomes of this thread's calls of ops that a device has no kernel for and that may run on the host: 'allow', 'warn' (once per
    op, as long as nothing else is said) or 'forbid' (an error). Sets the thread's policy where one is given; returns the old one.

    `with host_fallback('forbid'): ...` sets it for a block, in this context. The environment variable BACKPLANE_HOST_FALLBACK sets that
    of threads without a policy of their own.
    """
    if not isinstance(policy, (str, type(None))):
        raise _core.ArgumentTypeError(f"host_fallback: argument policy: found a value of type {type(policy).__name__}, expected 'allow', 'warn' or 'forbid'")
    before = _core.host_fallback()
    if policy is None:
        old = FallbackSetting(before)
        old._applied = _Unchanged()
        return old
    return _core.apply_setting(FallbackSetting(before), _HOST_FALLBACK, _core.fallback_value(policy), _core.fallback_value(before), False)


def allow_batch_loop(allowed: bool = True) -> Setting:
    """Whether vmap may run an op without a batch rule row by row, this process over; returns the old setting.

    `with allow_batch_loop(False): ...` sets it for a block, in this context alone.
    """
    return changed("allow_batch_loop", "allowed", _BATCH_LOOP, _core.batch_loop_allowed(), allowed)


def default_device() -> Device:
    """Where tensors are made that name no device. `with backplane.device("cpu"): ...` sets it for a block, in this context alone."""
    return _core.default_device()


def set_default_device(device: Device | str) -> None:
    """From now on tensors that name no device are made there, this process over; inside a block of a device, until its end."""
    _core.set_default_device(device)


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

    __enter__ = _core.enter_applied
    __exit__ = _core.exit_applied

    _applied: _core.AppliedSetting

    def __init__(self, before: DType) -> None:
        self.before = before

    def __repr__(self):
        self._applied.settle()
        return f"<default_dtype was {self.before.name}>"


if TYPE_CHECKING:

    @overload
    def default_dtype() -> DType: ...

    @overload
    def default_dtype(dtype: DType | str, /) -> DtypeSetting: ...


def default_dtype(dtype: DType | str | None = None) -> DType | DtypeSetting:
    """The dtype of floats that name none: of Python's numbers, of creation functions, and of what is computed from integers.

    Given float16, bfloat16, float32 (which it is at the start) or float64, makes it that, this process over; of complex
    numbers it is then complex128 beside float64, else complex64. `with default_dtype(bp.float64): ...` sets it for a block, in this
    context alone. While the returned object is kept and not entered, other threads do not see the change yet: drop it.
    """
    if dtype is None:
        return _core.default_float()
    before = _core.default_float()
    return _core.apply_setting(DtypeSetting(before), _FLOAT, _core.float_value(dtype), _core.float_value(before), True)


def get_default_dtype() -> DType:
    """The dtype of floats that name none: default_dtype()."""
    return _core.default_float()


def set_default_dtype(dtype: DType | str) -> None:
    """From now on floats that name no dtype are of this one, this process over; inside a block of default_dtype, until its end."""
    _core.set_default_float(dtype)


def get_printoptions() -> dict[str, Any]:
    """How tensors are printed: what set_printoptions takes."""
    from .._tensors._repr import options

    return options()


def _checked_options(precision, threshold, edgeitems, linewidth, sci_mode, suppress, profile):
    from .._tensors._repr import MOST_DIGITS, PROFILES

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
    from .._tensors._repr import change_options

    change_options(_checked_options(precision, threshold, edgeitems, linewidth, sci_mode, suppress, profile))


class PrintOptions(_core.VariableBlock):
    """What printoptions returns: `with` sets the options for a block, and gives all of them as a dict."""

    def __new__(cls, options: dict[str, Any]) -> Any:
        from .._tensors._repr import block_of

        return super().__new__(cls, *block_of(lambda: _checked_options(**options)))


def printoptions(
    precision: int | None = None, threshold: float | None = None, edgeitems: int | None = None, linewidth: float | None = None,
    *, sci_mode: bool | None = None, suppress: bool | None = None, profile: str | None = None
) -> PrintOptions:
    """How tensors are printed in a block, by this thread: `with printoptions(precision=2): ...`; takes what set_printoptions takes."""
    return PrintOptions({"precision": precision, "threshold": threshold, "edgeitems": edgeitems, "linewidth": linewidth,
                         "sci_mode": sci_mode, "suppress": suppress, "profile": profile})  # fmt: skip


class DeviceMembers:
    """PyTorch's words for the parts of its name."""

    @property
    def type(self: Device) -> str:
        """The backend's name: PyTorch's word for it."""
        return self.backend

    @property
    def index(self: Device) -> int:
        """The ordinal: PyTorch's word for it."""
        return self.ordinal


extend(_core.Device, DeviceMembers)
