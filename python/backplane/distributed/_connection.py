"""init and finalize: how a process becomes one of several ranks, and how it leaves them."""

from __future__ import annotations

import atexit
import io
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Generic, TypeVar

import backplane as bp

from .._runtime._entry_points import plugin_folders

from ._groups import world_group
from ._world import World, here, process, world

__all__ = ["finalize", "init", "is_initialized", "rank", "run_threads", "size", "timeout"]

T = TypeVar("T")
# What the launchers set for each process: the number of ranks.
_LAUNCHED = ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMIX_RANK", "MV2_COMM_WORLD_SIZE")
_PROVIDER = "BACKPLANE_COLLECTIVES"
_DEVICES = "BACKPLANE_COLLECTIVES_DEVICES"
_TIMEOUT = "BACKPLANE_COLLECTIVES_TIMEOUT"
_SECONDS = 600.0  # that a rank waits for another, unless the program says otherwise
_FIXES = {
    "mpi": "pip install backplane-mpi, or build Backplane with MPI there (Debian: libopenmpi-dev, openmpi-bin), or give the path of a provider",
    "nccl": "pip install backplane-cuda, or give the path of a device provider",
}


def ops() -> Any:
    """The ops of the collectives' plugin."""
    return bp.ops.collective


def _on_host(op: str, *args: Any, **words: Any) -> Any:
    """Calls an op without operands, whose result is made on the default device."""
    with bp.device("cpu"):
        return getattr(ops(), op)(*args, **words)


def _provider_file(name: str, argument: str = "provider") -> str:
    """The file of a provider: `name` itself where it is a path, else collectives/NAME.so beside this package's plugins or in a package
    of the entry points `backplane.plugins`."""
    if os.sep in name:
        return os.path.abspath(name)
    plugin = next((p for p in bp.plugins() if p.name == "backplane_collectives"), None)
    if plugin is None:
        raise bp.DeviceError("init: the plugin backplane_collectives is not there; it is built with Backplane")
    folders = [os.path.dirname(os.path.dirname(plugin.path)), *plugin_folders()]
    files = [os.path.join(folder, "collectives", f"{name}.so") for folder in folders]
    found = next(filter(os.path.exists, files), None)
    if found is None:
        raise bp.DeviceError(f"init: argument {argument}: {files[0]} does not exist. Fix: {_FIXES.get(name, 'give the path of a shared object')}")
    return found


def _devices_file(devices: str | None) -> str:
    chosen = devices if devices is not None else os.environ.get(_DEVICES, "")
    return "" if chosen in ("", "none") else _provider_file(chosen, "devices")


def init(provider: str | None = None, *, devices: str | None = None, timeout: float | None = None) -> Any:
    """Connects this process to the other ranks of the program; returns the group of all ranks.

    provider: "mpi", the path of a provider's shared object, or "none" for a single process. Left out: "mpi" in a process that mpirun,
    srun or `backplane launch` has started, else "none"; the variable BACKPLANE_COLLECTIVES says otherwise.
    devices: "nccl", or the path of a device provider: the ranks' CUDA tensors then travel from device to device, on their streams. Left out
    or "none": tensors of devices travel through the host's memory; the variable BACKPLANE_COLLECTIVES_DEVICES says otherwise.
    timeout: how many seconds a rank waits for another that is running but late, before all of them raise an error; 600 unless given here
    or in the variable BACKPLANE_COLLECTIVES_TIMEOUT. After 5, 10, 20, … seconds a line on the error stream says which rank is late. A rank
    that has ended, or calls something else, is an error within 5 seconds. Calls after the first one return the same group.
    Errors: DeviceError where the provider is not there or cannot connect, and for tasks of srun without MPI; ArgumentValueError for a second
    provider.
    """
    if here.world is not None:
        return world_group()
    chosen = provider or os.environ.get(_PROVIDER) or _provider_of_launcher()
    if process:
        if provider is not None and provider != process[0].provider:
            raise bp.ArgumentValueError(f"init: argument provider: found {provider!r}, but this process is connected by {process[0].provider!r}")
        if timeout is not None:
            set_timeout(timeout)
        return world_group()
    seconds = _seconds(timeout if timeout is not None else _timeout_of_environment())
    file = "threads" if chosen in ("none", "threads") else _provider_file(chosen)
    device_file = _devices_file(devices)
    rank, size = _on_host("join", file, timeout=seconds, devices=device_file).tolist()
    process.append(World(rank, size, chosen, bool(device_file)))
    atexit.register(_at_exit)
    if size > 1:
        _watch()
        _write_whole_lines()
    return world_group()


def _provider_of_launcher() -> str:
    if any(name in os.environ for name in _LAUNCHED):
        return "mpi"
    tasks = os.environ.get("SLURM_STEP_NUM_TASKS", "1")
    if tasks != "1":  # each of them would be a program of one rank
        raise bp.DeviceError(
            f"init: srun has started {tasks} tasks, but not as ranks of MPI. Fix: srun --mpi=pmix (`srun --mpi=list` shows what this Slurm "
            f"offers), or mpirun in the batch script. For tasks that compute alone: {_PROVIDER}=none"
        )
    return "none"


def _timeout_of_environment() -> float:
    text = os.environ.get(_TIMEOUT) or str(_SECONDS)
    try:
        return float(text)
    except ValueError:
        raise bp.ArgumentValueError(f"init: variable {_TIMEOUT}: found {text!r}, expected a positive number of seconds") from None


def is_initialized() -> bool:
    """Is the caller a rank of a program?"""
    return here.world is not None or bool(process)


def rank() -> int:
    """The number of the calling process among the ranks, from 0 on."""
    return world("rank").rank


def size() -> int:
    """How many ranks there are."""
    return world("size").size


def finalize() -> None:
    """Leaves the other ranks, which do the same; it happens by itself at the end of a program. MPI cannot be started again."""
    if process:
        atexit.unregister(_at_exit)
        _leave()


def _leave() -> None:
    process.clear()
    _on_host("control", "leave")


def _at_exit() -> None:
    """After a failure of the ranks the processes end together; else each leaves once its program has ended."""
    if not process:
        return
    if _on_host("control", "failed").item():
        sys.stdout.flush()
        sys.stderr.flush()
        _on_host("control", "abort")
    _leave()


# ---- faults ---------------------------------------------------------------------------------------------------------


def _watch() -> None:
    """Launchers end all ranks by SIGTERM where one is lost: each then says which one. An error that ends the program ends all ranks."""
    if threading.current_thread() is not threading.main_thread():
        return
    before = signal.getsignal(signal.SIGTERM)
    if before in (signal.SIG_DFL, None):
        signal.signal(signal.SIGTERM, _on_term)
    _hook_errors()


def _write_whole_lines() -> None:
    """Under `backplane launch`, whose mark before each line would else come before each piece that the program writes."""
    if os.environ.get("BACKPLANE_LAUNCH") == "1":
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, io.TextIOWrapper):
                stream.reconfigure(line_buffering=True, write_through=False)


def _on_term(number: int, frame: Any) -> None:
    signal.signal(number, signal.SIG_DFL)
    if process and _on_host("control", "inquire").item():  # raises where a rank is lost
        return  # this rank reports the failure now, and ends
    os.kill(os.getpid(), number)


def _hook_errors() -> None:
    before = sys.excepthook

    def hook(kind: Any, error: Any, trace: Any) -> None:
        before(kind, error, trace)
        if process and issubclass(kind, Exception):
            rank = process[0].rank
            sys.stdout.flush()
            print(f"rank {rank} ended by the {kind.__name__} above", file=sys.stderr, flush=True)

    sys.excepthook = hook


def _seconds(value: float) -> float:
    if not isinstance(value, (int, float)) or isinstance(value, bool) or not value > 0:
        raise bp.ArgumentValueError(f"timeout: found {value!r}, expected a positive number of seconds")
    return float(value)


def set_timeout(seconds: float) -> float:
    """Sets the timeout of this rank; returns the one before."""
    before: float = _on_host("control", "timeout", value=_seconds(seconds)).item()
    return before


@contextmanager
def timeout(seconds: float) -> Iterator[None]:
    """Within the block this rank waits so many seconds for others. Use it around work of one rank for which the others wait."""
    world("timeout")
    before = set_timeout(seconds)
    try:
        yield
    finally:
        set_timeout(before)


# ---- ranks as threads -----------------------------------------------------------------------------------------------

_worlds = iter(range(2**62))


class _Rank(Generic[T]):
    def __init__(self) -> None:
        self.result: T | None = None
        self.error: BaseException | None = None


def run_threads(n: int, fun: Callable[[], T], *, devices: str | None = None, timeout: float = _SECONDS) -> list[T]:
    """Runs fun on n ranks that are threads of this process; returns what each gave, in the order of ranks.

    Within fun, all of bp.distributed works as in n processes. The first error of a rank is raised. devices: as for init; each rank then
    computes on a device of its own.
    """
    if not isinstance(n, int) or isinstance(n, bool) or n < 1:
        raise bp.ArgumentValueError(f"run_threads: argument n: found {n!r}, expected a positive integer")
    device_file = _devices_file(devices)
    name = f"threads {os.getpid()} {next(_worlds)}"
    ranks = [_Rank[T]() for _ in range(n)]

    def main(number: int) -> None:
        try:
            _on_host("join", "threads", rank=number, size=n, world=name, timeout=_seconds(timeout), devices=device_file)
            here.world = World(number, n, "threads", bool(device_file))
            ranks[number].result = fun()
        except BaseException as error:
            ranks[number].error = error
        finally:
            if here.world is not None:
                here.world = None
                _on_host("control", "leave")

    threads = [threading.Thread(target=main, args=(i,), name=f"rank {i}") for i in range(n)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    errors = [r.error for r in ranks if r.error is not None]
    for error in sorted(errors, key=lambda e: isinstance(e, bp.DeviceError)):  # what led to the others' first
        raise error
    return [r.result for r in ranks]  # type: ignore[misc]
