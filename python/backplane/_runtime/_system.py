"""Devices, plugins and what the dispatcher reports of itself."""

from __future__ import annotations

from .. import _core
from .._calls import _ops
from .._files._file_names import file_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from os import PathLike

    from .._core import Device, Generator, Op

__all__ = [
    "CallCounts",
    "DeviceInfo",
    "PlacementReport",
    "PlacementRow",
    "PluginInfo",
    "add_plugin_path",
    "call_counts",
    "devices",
    "empty_cache",
    "explain",
    "load_plugin",
    "manual_seed",
    "memory_stats",
    "placement",
    "plugins",
    "reset_call_counts",
    "reset_peak_memory_stats",
    "set_memory_limit",
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
    """Loads a plugin's file now and registers all of its contents, or nothing."""
    return PluginInfo(_core.load_plugin(file_name("load_plugin", path)))


def unload_plugin(name: str) -> None:
    """Withdraws a plugin; BusyError with the list where tensors, graphs or calls still hold it."""
    if not isinstance(name, str):
        raise _core.ArgumentTypeError(f"unload_plugin: argument name: found {type(name).__name__}, expected a plugin's name")
    _core.unload_plugin(name)


def add_plugin_path(folder: str | PathLike[str]) -> None:
    """Reads the manifests (*.backplane.json) of a folder; the files open when they are first needed."""
    _core.add_plugin_path(file_name("add_plugin_path", folder, "folder"))


def reset_call_counts() -> None:
    """Counts calls anew."""
    _core.reset_call_counts()


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
    """Resets peak_bytes to the bytes that are allocated now."""
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
