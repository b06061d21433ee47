"""Devices, plugins and what the dispatcher reports of itself."""

from __future__ import annotations

from . import _core, _ops

TYPE_CHECKING = False
if TYPE_CHECKING:
    from os import PathLike

    from typing import Any

    from ._core import Device, DType, Generator, Op

__all__ = [
    "CallCounts",
    "DeviceInfo",
    "PlacementReport",
    "PlacementRow",
    "PluginInfo",
    "add_plugin_path",
    "allow_batch_loop",
    "allow_host_fallback",
    "call_counts",
    "default_device",
    "default_dtype",
    "devices",
    "empty_cache",
    "explain",
    "get_default_dtype",
    "get_num_threads",
    "get_printoptions",
    "host_fallback",
    "load_plugin",
    "manual_seed",
    "memory_stats",
    "placement",
    "plugins",
    "reset_call_counts",
    "reset_peak_memory_stats",
    "set_default_device",
    "set_default_dtype",
    "set_memory_limit",
    "set_num_threads",
    "set_printoptions",
    "synchronize",
    "unload_plugin",
]


class _Record:
    """Named facts, read-only, compared by value."""

    __slots__ = ()

    def __init__(self, facts):
        for name in self.__slots__:
            object.__setattr__(self, name, facts[name])

    def __setattr__(self, name, value):
        raise AttributeError(f"{type(self).__name__}.{name} is read-only")

    def __eq__(self, other):
        return type(self) is type(other) and all(getattr(self, n) == getattr(other, n) for n in self.__slots__)

    def __repr__(self):
        return f"{type(self).__name__}({', '.join(f'{name}={getattr(self, name)!r}' for name in self.__slots__)})"


class DeviceInfo(_Record):
    """A device that can be used: its Device, name, description, plugin, total memory in bytes, and how many ops reach it how.

    ops: of the ops that are registered how many have a kernel there ("kernel"), are computed by other ops ("decomposition"), are
    views ("view"), call functions ("function"), run on the host instead ("host fallback"), or do not run ("none").
    """

    __slots__ = ("device", "name", "description", "plugin", "total_memory", "ops")
    device: Device
    name: str
    description: str
    plugin: str
    total_memory: int
    ops: dict[str, int]


class PluginInfo(_Record):
    """A plugin: state is 'found', 'loaded', 'parked' or 'refused' (then `why`); leases hold it against unloading.

    waits_for: backends and keys that its kernels are for and that no plugin brings, so that nothing calls them.
    """

    __slots__ = ("name", "version", "path", "state", "why", "backends", "ops", "leases", "waits_for")
    name: str
    version: str
    path: str
    state: str
    why: str
    backends: list[str]
    ops: list[str]
    leases: int
    waits_for: list[str]


class CallCounts(_Record):
    """How calls reached devices: by kernels, by decomposition, by falling back to the host; and those that vmap ran row by row."""

    __slots__ = ("kernels", "decompositions", "host_fallbacks", "batch_loops")
    kernels: int
    decompositions: int
    host_fallbacks: int
    batch_loops: int


def devices() -> list[DeviceInfo]:
    """Every device of every backend that is loaded or can be found."""
    return [DeviceInfo(row) for row in _core.devices()]


def plugins() -> list[PluginInfo]:
    """The plugins found (docs/reference/manifest.md says where), and those loaded."""
    return [PluginInfo(row) for row in _core.plugins()]


def load_plugin(path: str | PathLike[str]) -> PluginInfo:
    """Loads a plugin's file now and registers what it brings, all of it or nothing."""
    import os

    return PluginInfo(_core.load_plugin(os.fsencode(path)))


def unload_plugin(name: str) -> None:
    """Withdraws a plugin; BusyError with the list where tensors, graphs or calls still hold it."""
    if not isinstance(name, str):
        raise _core.ArgumentTypeError(f"unload_plugin: argument name: found {type(name).__name__}, expected a plugin's name")
    _core.unload_plugin(name)


def add_plugin_path(folder: str | PathLike[str]) -> None:
    """Reads the manifests (*.backplane.json) of a folder; the files open when they are first needed."""
    import os

    _core.add_plugin_path(os.fsencode(folder))


def reset_call_counts() -> None:
    """Counts calls anew."""
    _core.reset_call_counts()


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


class PlacementRow(_Record):
    """How an op's calls on a device were served: how is 'kernel' (of the plugin), 'decomposition' (by other ops, which have rows of
    their own) or 'host fallback'; calls is their number."""

    __slots__ = ("op", "device", "how", "plugin", "calls")
    op: str
    device: str
    how: str
    plugin: str
    calls: int


class PlacementReport:
    """What ran where in a block: `with placement() as report: ...`. It prints as a table."""

    def __enter__(self) -> PlacementReport:
        self._scope = _core.PlacementScope()
        return self

    def __exit__(self, *failure: object) -> None:
        self._scope.end()

    @property
    def rows(self) -> list[PlacementRow]:
        """A row per op, device and way, in that order; inside the block so far."""
        return [PlacementRow(dict(zip(PlacementRow.__slots__, row))) for row in self._scope.rows()]

    def __str__(self):
        cells = [("op", "device", "how", "plugin", "calls"), *((r.op, r.device, r.how, r.plugin, str(r.calls)) for r in self.rows)]
        widths = [max(len(row[i]) for row in cells) for i in range(5)]
        return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in cells)


def placement() -> PlacementReport:
    """Counts what runs where, in all threads: `with placement() as report: ...`, then report.rows, or print(report).

    Ops that are made of other ops, and views, have no rows of their own. Calls are slower meanwhile.
    """
    return PlacementReport()


def allow_batch_loop(allowed: bool = True) -> Setting:
    """Whether vmap may run an op without a batch rule row by row, this process over; returns the old setting.

    `with allow_batch_loop(False): ...` sets it for a block.
    """
    return changed("allow_batch_loop", "allowed", _core.allow_batch_loop, allowed)


def default_device() -> Device:
    """Where tensors are made that name no device. `with backplane.device("cpu"): ...` sets it for a block, this process over."""
    return _core.default_device()


def set_default_device(device: Device | str, /) -> None:
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


def default_dtype() -> DType:
    """The dtype of floats that name none: float32."""
    return _core.float32


get_default_dtype = default_dtype


def set_default_dtype(dtype: DType | str, /) -> None:
    """Takes float32, which it is; another is refused: name dtype= where tensors are made."""
    if dtype not in (_core.float32, "float32", float):
        raise _core.ArgumentValueError(
            f"set_default_dtype: found {dtype}, expected float32, which floats without a dtype are; name dtype= where tensors are made"
        )


def get_printoptions() -> dict[str, Any]:
    """How tensors are printed: what set_printoptions takes."""
    from ._repr import OPTIONS

    return dict(OPTIONS)


def set_printoptions(
    precision: int | None = None, threshold: int | None = None, edgeitems: int | None = None, linewidth: int | None = None,
    *, sci_mode: bool | None = None, suppress: bool | None = None
) -> None:
    """How tensors are printed from now on; what is None stays.

    precision: digits after the point. threshold: elements above which long axes are cut to edgeitems at both ends. linewidth:
    characters per line. sci_mode: always with an exponent, or (False, as NumPy's suppress=True) never.
    """
    from ._repr import MOST_DIGITS, OPTIONS

    counts = {"precision": precision, "threshold": threshold, "edgeitems": edgeitems, "linewidth": linewidth}
    for name, value in counts.items():
        if value is None:
            continue
        if not hasattr(value, "__index__") or value < 0:
            raise _core.ArgumentValueError(f"set_printoptions: argument {name}: found {value!r}, expected an integer from 0 on")
        if name == "precision" and value > MOST_DIGITS:
            raise _core.ArgumentValueError(f"set_printoptions: argument precision: found {value}, expected at most {MOST_DIGITS}, the digits that a float64 can have")
        OPTIONS[name] = value.__index__()
    if sci_mode is not None or suppress is not None:
        OPTIONS["sci_mode"] = sci_mode if suppress is None else False if suppress else None


def call_counts() -> CallCounts:
    """Calls since the process started or the last reset_call_counts()."""
    return CallCounts(_core.call_counts())


def synchronize(device: Device | str | None = None) -> None:
    """Waits until the work given to a device (the default one where none is named) is done."""
    _core.synchronize(_core.default_device() if device is None else device)


def memory_stats(device: Device | str | None = None) -> dict[str, int | None]:
    """The memory of a device (the default one where none is named), as its allocator counts it: a dict of allocated_bytes (now),
    peak_bytes (the most since the start or the last reset_peak_memory_stats), reserved_bytes (held from the system, allocated or
    kept for reuse), limit_bytes (None without a limit), allocations, and cache_hits (those served from what was kept)."""
    return _core.memory_stats(_core.default_device() if device is None else device)


def reset_peak_memory_stats(device: Device | str | None = None) -> None:
    """From now on peak_bytes counts anew, from what is allocated."""
    _core.reset_peak_memory_stats(_core.default_device() if device is None else device)


def empty_cache(device: Device | str | None = None) -> None:
    """Gives memory that a device keeps for reuse back to the system."""
    _core.empty_cache(_core.default_device() if device is None else device)


def set_memory_limit(bytes: int | None, device: Device | str | None = None) -> None:
    """A device holds at most `bytes` from now on (None: no limit). What would exceed it raises MemoryError, once the memory kept
    for reuse has been given back in vain; tensors that exist stay."""
    _core.set_memory_limit(bytes, _core.default_device() if device is None else device)


def explain(op: Op | str) -> str:
    """For every slot of an op (an Op, 'add' or 'bp::add'): the rule, what filled it, and the losers."""
    if isinstance(op, str) and "::" not in op:
        op = f"{_ops.NAMESPACE}::{op}"
    return _core.explain(op)


def manual_seed(seed: int) -> Generator:
    """Starts the default generator's sequence of `seed`; returns the generator."""
    return _core.default_generator.manual_seed(seed)


def add_methods():
    from ._entry_points import offer

    offer()
    _core.Device.__enter__, _core.Device.__exit__ = _enter_device, _exit_device
