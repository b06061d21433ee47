"""Which ops a program calls, and how long they take."""

from __future__ import annotations

from . import _core

TYPE_CHECKING = False
if TYPE_CHECKING:
    from os import PathLike

    from typing import Any

__all__ = ["profile"]

_SORTS = {"calls": 1, "total": 2, "self": 3, "device": 5}


class _Range:
    __slots__ = ("_core", "_name")

    def __init__(self, core, name):
        self._core, self._name = core, name

    def __enter__(self) -> None:
        self._core.begin_range(self._name)

    def __exit__(self, *failure: object) -> None:
        self._core.end_range()


def _time(nanoseconds):
    for unit, size in (("s", 1e9), ("ms", 1e6), ("us", 1e3)):
        if nanoseconds >= size:
            return f"{nanoseconds / size:.3f} {unit}"
    return f"{nanoseconds:.0f} ns"


class profile:
    """`with bp.profile() as p: ...; print(p)`: what this thread calls in the block, as a table by op.

    Of each op the number of calls, the host's time (in total, and without what was called inside of it, as by a custom op), and the
    device's time where its backend has a clock; on an asynchronous device a call's time on the host is that of recording it. Ops are
    those that the program and its backward passes call, not the parts that these are composed of. `p.range(name)` marks a part of
    the program. Backends that have a profiler of their own see the op's names there.
    """

    __slots__ = ("_core", "_events")
    _core: Any
    _events: Any

    def __init__(self) -> None:
        self._core, self._events = None, None

    def __enter__(self) -> profile:
        self._core, self._events = _core.CoreProfile(), None
        return self

    def __exit__(self, *failure: object) -> None:
        self._core.end()
        self._events = [
            dict(zip(("name", "device", "depth", "begin", "end", "device_time"), row)) for row in self._core.events()
        ]

    def range(self, name: str) -> _Range:
        """`with p.range("forward"): ...` shows as an event of that name around the calls inside."""
        if self._core is None or self._events is not None:
            raise _core.ArgumentValueError("profile.range: the profile does not run. Fix: use it inside of its block")
        return _Range(self._core, name)

    @property
    def events(self) -> list[dict[str, Any]]:
        """In the order of their begins: name, device, depth, begin and end (nanoseconds from the profile's start), and device_time
        (nanoseconds; -1 where it is not known)."""
        if self._events is None:
            raise _core.ArgumentValueError("profile.events: the profile has not ended. Fix: read them after its block")
        return self._events

    def totals(self, sort_by: str = "total") -> list[tuple[str, int, int, int, int, int]]:
        """By name: (name, calls, total, self, mean, device), the times in nanoseconds, the most first. sort_by: "calls", "total",
        "self" or "device"."""
        if sort_by not in _SORTS:
            raise _core.ArgumentValueError(f"profile.totals: argument sort_by: found {sort_by!r}, expected one of {', '.join(map(repr, _SORTS))}")
        rows: dict[str, list[int]] = {}
        outer: list[list[int]] = []  # of each depth the row of the event that is open there
        for event in self.events:
            row = rows.setdefault(event["name"], [0, 0, 0, 0])
            took = event["end"] - event["begin"]
            del outer[event["depth"]:]
            if outer:
                outer[-1][2] -= took
            outer.append(row)
            row[0] += 1
            row[1] += took
            row[2] += took
            row[3] += max(event["device_time"], 0)
        found = [(name, calls, total, own, total // calls, device) for name, (calls, total, own, device) in rows.items()]
        return sorted(found, key=lambda row: row[_SORTS[sort_by]], reverse=True)

    def table(self, sort_by: str = "total", limit: int | None = None) -> str:
        """The totals as text, one op per line; at most `limit` lines."""
        rows = self.totals(sort_by)[:limit]
        cells = [("op", "calls", "total", "self", "mean", "device")]
        cells += [(name, str(calls), *map(_time, (total, own, mean)), _time(device) if device else "-") for name, calls, total, own, mean, device in rows]
        widths = [max(map(len, column)) for column in zip(*cells)]
        lines = ["  ".join([row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:]))]) for row in cells]
        return "\n".join(lines)

    def export_chrome_trace(self, path: str | PathLike[str]) -> None:
        """Writes the events as JSON that chrome://tracing and Perfetto read."""
        import json
        import os

        events = [
            {"name": e["name"], "ph": "X", "ts": e["begin"] / 1e3, "dur": (e["end"] - e["begin"]) / 1e3, "pid": os.getpid(), "tid": 0,
             "cat": "op", "args": {"device": e["device"], "device_us": e["device_time"] / 1e3 if e["device_time"] >= 0 else None}}
            for e in self.events
        ]
        with open(path, "w", encoding="utf-8") as file:
            json.dump({"traceEvents": events, "displayTimeUnit": "ms"}, file)

    def __str__(self) -> str:
        return repr(self) if self._events is None else self.table()
