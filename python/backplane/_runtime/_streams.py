"""Streams, events, recordings of work, and memory of the host that devices read on their own."""

from __future__ import annotations


from .. import _core
from .._tensors._members import extend

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from typing import Any

    from .._core import Device, DType, Tensor

__all__ = ["Event", "Recording", "Stream", "capture", "current_stream", "empty_in", "memory_kinds", "pin", "stream_priorities"]

_kept = {}


def _scopes():
    """A thread's own; .open: what its `with` blocks entered, the innermost last."""
    if "scopes" not in _kept:
        from threading import local

        _kept.setdefault("scopes", local())
    return _kept["scopes"]


def _device(device):
    return _core.default_device() if device is None else device


class Stream:
    """Work in the order in which it is given, beside that of other streams of its device (the default one where none is named).

    `with stream:` makes it the current one of this thread; tensors need no care, since a use on another stream is ordered behind the
    work that it depends on. priority: a greater one goes first; `stream_priorities` says which there are. backward() runs on the
    stream that is current where it is called. On a device without streams, as the CPU, all work is done when a call returns.
    """

    __slots__ = ("_core",)
    _core: Any

    def __init__(self, device: Device | str | None = None, *, priority: int = 0) -> None:
        if not hasattr(priority, "__index__"):
            raise _core.ArgumentTypeError(f"Stream: argument priority: found a value of type {type(priority).__name__}, expected an int")
        self._core = _core.new_stream(_device(device), priority.__index__())

    @classmethod
    def from_handle(cls, device: Device | str, handle: int) -> Stream:
        """The stream over one that the vendor's own calls made: `handle` as an int. The handle outlives it."""
        return _wrapped(_core.stream_of_handle(device, handle))

    @property
    def device(self) -> Device:
        """Its device."""
        return self._core.device()

    @property
    def priority(self) -> int:
        """What it was made with."""
        return self._core.priority()

    @property
    def handle(self) -> int:
        """The vendor's stream, as an int."""
        return self._core.handle()

    def query(self) -> bool:
        """Is all of its work done?"""
        return self._core.query()

    def synchronize(self) -> None:
        """Waits until its work is done; raises what the work failed with."""
        self._core.synchronize()

    def wait(self, other: Event | Stream, /) -> None:
        """Makes later work on this stream wait for the event, or for the other stream's work so far."""
        if isinstance(other, Stream):
            self._core.wait_stream(other._core)
        elif isinstance(other, Event):
            self._core.wait_event(other._core)
        else:
            raise _core.ArgumentTypeError(f"Stream.wait: found a value of type {type(other).__name__}, expected an Event or a Stream")

    def record(self, event: Event | None = None) -> Event:
        """The event (a new one where none is given), now at the end of the work so far."""
        event = Event() if event is None else event
        event._core.record(self._core)
        return event

    def on_complete(self, function: Callable[[], object]) -> None:
        """Calls `function()` on another thread when the work so far has ended or failed. It calls no op of the device."""
        if not callable(function):
            raise _core.ArgumentTypeError(f"Stream.on_complete: found a value of type {type(function).__name__}, expected a function")
        self._core.on_complete(lambda: function())

    def __enter__(self) -> Stream:
        scopes = _scopes()
        if not hasattr(scopes, "open"):
            scopes.open = []
        scopes.open.append(self._core.scope())
        return self

    def __exit__(self, *failure: object) -> None:
        _scopes().open.pop().close()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stream) and self._core.same(other._core)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self):
        return f"<Stream of {self.device}, priority {self.priority}>"


def _wrapped(core):
    stream = Stream.__new__(Stream)
    stream._core = core
    return stream


class Event:
    """A position on a stream, and when the device came there. One that was not recorded counts as done."""

    __slots__ = ("_core",)
    _core: Any

    def __init__(self) -> None:
        self._core = _core.CoreEvent()

    def record(self, stream: Stream | None = None) -> Event:
        """Records the event after the stream's work so far. stream defaults to the default device's current stream."""
        self._core.record((current_stream() if stream is None else stream)._core)
        return self

    def query(self) -> bool:
        """Has the stream come to it?"""
        return self._core.query()

    def synchronize(self) -> None:
        """Waits until the stream has come to it."""
        self._core.synchronize()

    def elapsed(self, end: Event, /) -> float:
        """Milliseconds on the device's clock from this event to `end`; waits for both. NotImplementedError where it has none."""
        if not isinstance(end, Event):
            raise _core.ArgumentTypeError(f"Event.elapsed: found a value of type {type(end).__name__}, expected an Event")
        return self._core.elapsed(end._core)


def current_stream(device: Device | str | None = None) -> Stream:
    """The stream to which this thread's work on a device goes (the default device where none is named)."""
    return _wrapped(_core.current_stream(_device(device)))


def stream_priorities(device: Device | str | None = None) -> tuple[int, int]:
    """The least and the greatest priority of a device's streams; (0, 0) where there is one alone."""
    return _core.stream_priorities(_device(device))


class Recording:
    """Work that `capture` recorded: `replay()` runs all of it again, over the same memory."""

    __slots__ = ("_core", "_stream")
    _core: Any

    def __init__(self, core: Any, stream: Stream | None) -> None:
        self._core, self._stream = core, stream

    def replay(self, stream: Stream | None = None) -> None:
        """Puts the work on a stream: the one that is named here, or was named to `capture`, or the current one."""
        stream = stream or self._stream
        self._core.replay(None if stream is None else stream._core)


class capture:
    """`with bp.capture(device) as recording:` records what this thread calls on a device, and runs nothing of it.

    target: a Stream or a device (the default one where none is named). After the block `recording.replay()` runs the work as one
    piece: results of the block's calls have their values then, and anew after each replay; new inputs are copied into the tensors
    that the block read (`x.copy_(new)`). The memory is held as long as the recording. Random numbers are those of the block each
    time. Reading values inside the block is an error, and so is an op whose kernel cannot be captured.
    """

    __slots__ = ("_recording", "_target")
    _recording: Any
    _target: Any

    def __init__(self, target: Stream | Device | str | None = None, /) -> None:
        self._target = target

    def __enter__(self) -> Recording:
        stream = self._target if isinstance(self._target, Stream) else None
        self._recording = Recording(_core.begin_capture(stream.device if stream else _device(self._target)), stream)
        return self._recording

    def __exit__(self, kind: object, *failure: object) -> None:
        recording, self._recording = self._recording, None
        if kind is None:
            recording._core.end()
        else:
            recording._core.give_up()


def _pinning_device():
    """Of the devices that are loaded the first that takes pinned memory."""
    for row in _core.devices():
        if _core.has_feature(row["device"], "pinned"):
            return row["device"]
    raise _core.MissingRuleError('pin_memory: no device that is loaded offers pinned memory. Fix: name the device, x.pin_memory("NAME")')


def pin(x: Tensor, device: Device | str | None = None) -> Tensor:
    """A copy on the host that a device reads and writes on its own (the first one that offers that, where none is named); x itself
    where it is one. `x.to(device, non_blocking=True)` of it returns before the copy has run; x is left alone until then."""
    return _core.pin(x, _pinning_device() if device is None else device)


def memory_kinds(device: Device | str | None = None) -> list[str]:
    """The kinds of memory that a device (the default one where none is named) has, the usual one first; [] where there is one alone."""
    return _core.memory_kinds(_device(device))


def empty_in(
    kind: str, shape: Sequence[int], *, dtype: DType | str | None = None, device: Device | str | None = None, alignment: int = 0
) -> Tensor:
    """As empty(shape), in memory of a kind that `memory_kinds` lists, at a multiple of `alignment` bytes (a power of two).

    NotImplementedError where the device has one kind alone; MemoryError where there is too little of it.
    """
    return _core.empty_in(kind, list(shape), _core.default_float() if dtype is None else dtype, _device(device), alignment)


def _is_pinned(x: Tensor) -> bool:
    """Does it lie in memory of the host that a device reads on its own?"""
    return _core.is_pinned(x)


class TensorMembers:
    """Pinned memory."""

    pin_memory = pin
    is_pinned = _is_pinned


class DeviceMembers:
    """What a device is and can do."""

    def has(self: Device, name: str, /) -> bool:
        """Does the device have a feature: a dtype that it computes in ("float16", "f16"), an extension ("capture", "pinned"), or a word
        of its backend's? `features` lists them."""
        if not isinstance(name, str):
            raise _core.ArgumentTypeError(f"Device.has: found a value of type {type(name).__name__}, expected a str")
        return _core.has_feature(self, name)

    @property
    def features(self: Device) -> list[str]:
        """What the device can do, by name: what `has` is true for."""
        return _core.features(self)

    @property
    def properties(self: Device) -> dict[str, bool | int | float | str]:
        """What the device is: name, backend, ordinal, plugin, total_memory, alignment, and what its backend adds."""
        return _core.properties(self)

    def set_wait_timeout(self: Device, seconds: float | None) -> None:
        """How long a wait for the device may take; None: any time, as at the start. A device whose work has not ended by then is lost:
        every thread that waits for it raises DeviceLostError, and `reset` makes it usable again."""
        _core.set_wait_timeout(self, seconds)

    def reset(self: Device) -> None:
        """Makes a lost device usable again, where its backend can: its work and its memory are dropped, and tensors of before raise
        DeviceLostError from then on. Compiled functions are compiled anew. Other devices go on."""
        _core.reset_device(self)


extend(_core.Tensor, TensorMembers)
extend(_core.Device, DeviceMembers)
