"""Which ops and fused kernels a program runs, how long they take, and how near the machine's limits they come."""

from __future__ import annotations

from .. import _core

TYPE_CHECKING = False
if TYPE_CHECKING:
    from os import PathLike

    from typing import Any

__all__ = ["profile"]

_SORTS = {"calls": 1, "total": 2, "self": 3, "device": 5}
_FIELDS = ("name", "kind", "device", "depth", "begin", "end", "device_time", "line", "bytes", "flops", "memory")


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


def _amount(number, unit):
    if number is None:
        return "-"
    for prefix, size in (("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if number >= size:
            return f"{number / size:.1f} {prefix}{unit}"
    return f"{number} {unit}"


class profile:
    """`with bp.profile() as p: ...; print(p)`: what this thread runs in the block, as a table by op and fused kernel.

    Compiled functions run as they do without it, fused; each of their kernels is an event. Other ops are those that the program and
    its backward passes call, not the parts that these are composed of. Of each the table has the number of calls, the host's time (in
    total, and without what was called inside of it), the device's time where its backend has a clock, the bytes read and written,
    the floating-point operations, the share of the roofline (below) and the line of the program. On an asynchronous device a call's
    time on the host is that of recording it. `p.range(name)` marks a part of the program. Backends that have a profiler of their own
    see the op's names there.

    The share of the roofline is the time that the device needs at least, for these operations at its peak and these bytes at its
    bandwidth, over the time taken. Both limits are measured once per device, by a matrix product and a copy.
    lines: False leaves out the lines of calls outside of compiled functions, which takes less time per call.
    """

    __slots__ = ("_core", "_events", "_lines")
    _core: Any
    _events: Any

    def __init__(self, lines: bool = True) -> None:
        self._core, self._events, self._lines = None, None, bool(lines)

    def __enter__(self) -> profile:
        self._core, self._events = _core.CoreProfile(self._lines), None
        return self

    def __exit__(self, *failure: object) -> None:
        self._core.end()
        self._events = [dict(zip(_FIELDS, row)) for row in self._core.events()]
        for event in self._events:
            for field in ("bytes", "flops", "memory"):
                event[field] = None if event[field] < 0 else event[field]

    def range(self, name: str) -> _Range:
        """`with p.range("forward"): ...` shows as an event of that name around the calls inside."""
        if self._core is None or self._events is not None:
            raise _core.ArgumentValueError("profile.range: the profile is not running. Fix: call it inside the block of the profile")
        return _Range(self._core, name)

    @property
    def events(self) -> list[dict[str, Any]]:
        """In the order of their begins: name, kind ("op", a call; "kernel" or "region", fused, of a compiled function; "range"),
        device, depth, begin and end (nanoseconds from the profile's start), device_time (nanoseconds; -1 where it is not known), line
        ("file:line", "" where it is not known), bytes, flops, and memory (allocated on the device at the end); None where unknown."""
        if self._events is None:
            raise _core.ArgumentValueError("profile.events: the profile is still running. Fix: read the events after its block")
        return self._events

    def _rows(self):
        """By name: (events, total, self, device), the times in nanoseconds."""
        rows: dict[str, list[Any]] = {}
        outer: list[list[Any]] = []  # of each depth the row of the event that is open there
        for event in self.events:
            row = rows.setdefault(event["name"], [[], 0, 0, 0])
            took = event["end"] - event["begin"]
            del outer[event["depth"]:]
            if outer:
                outer[-1][2] -= took
            outer.append(row)
            row[0].append(event)
            row[1] += took
            row[2] += took
            row[3] += max(event["device_time"], 0)
        return rows

    def totals(self, sort_by: str = "total") -> list[tuple[str, int, int, int, int, int]]:
        """By name: (name, calls, total, self, mean, device), the times in nanoseconds, the most first. sort_by: "calls", "total",
        "self" or "device"."""
        if sort_by not in _SORTS:
            raise _core.ArgumentValueError(f"profile.totals: argument sort_by: found {sort_by!r}, expected one of {', '.join(map(repr, _SORTS))}")
        found = [(name, len(events), total, own, total // len(events), device) for name, (events, total, own, device) in self._rows().items()]
        return sorted(found, key=lambda row: row[_SORTS[sort_by]], reverse=True)

    def costs(self) -> dict[str, dict[str, Any]]:
        """By name: {"bytes", "flops", "roofline", "lines"}. roofline: the share that the class describes; None where it is not known."""
        found = {}
        for name, (events, total, _, device) in self._rows().items():
            sums = [None if any(e[field] is None for e in events) else sum(e[field] for e in events) for field in ("bytes", "flops")]
            lines = list(dict.fromkeys(e["line"] for e in events if e["line"]))
            found[name] = {"bytes": sums[0], "flops": sums[1], "roofline": _roofline(*sums, device or total, events[0]["device"]), "lines": lines}
        return found

    def memory_timeline(self, device: str = "cpu") -> list[tuple[int, int]]:
        """(nanoseconds from the profile's start, bytes allocated on the device) after each event there."""
        return sorted((e["end"], e["memory"]) for e in self.events if e["memory"] is not None and e["device"] == str(_core.Device(device)))

    def table(self, sort_by: str = "total", limit: int | None = None) -> str:
        """The totals and costs as text, one op or fused kernel per line; at most `limit` lines."""
        rows, costs = self.totals(sort_by)[:limit], self.costs()
        cells = [("op", "calls", "total", "self", "mean", "device", "bytes", "FLOP", "roofline", "line")]
        for name, calls, total, own, mean, device in rows:
            cost = costs[name]
            share = "-" if cost["roofline"] is None else f"{cost['roofline']:.0%}"
            line = _short_line(cost["lines"])
            cells.append((name, str(calls), *map(_time, (total, own, mean)), _time(device) if device else "-",
                          _amount(cost["bytes"], "B"), _amount(cost["flops"], "FLOP"), share, line))  # fmt: skip
        widths = [max(map(len, column)) for column in zip(*cells)]
        lines = ["  ".join([row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:-1], widths[1:-1])), row[-1]]).rstrip() for row in cells]
        return "\n".join(lines)

    def export_chrome_trace(self, path: str | PathLike[str]) -> None:
        """Writes the events, and the memory of each device over time, as JSON that Perfetto (ui.perfetto.dev) and chrome://tracing read."""
        import json
        import os

        def spans(e):
            arguments = {field: e[field] for field in ("device", "line", "bytes", "flops") if e[field] not in ("", None)}
            arguments["device_us"] = e["device_time"] / 1e3 if e["device_time"] >= 0 else None
            return {"name": e["name"], "ph": "X", "ts": e["begin"] / 1e3, "dur": (e["end"] - e["begin"]) / 1e3, "pid": os.getpid(), "tid": 0,
                    "cat": e["kind"], "args": arguments}  # fmt: skip

        counters = [
            {"name": f"memory of {e['device']}", "ph": "C", "ts": e["end"] / 1e3, "pid": os.getpid(), "args": {"bytes": e["memory"]}}
            for e in self.events if e["memory"] is not None
        ]  # fmt: skip
        with open(path, "w", encoding="utf-8") as file:
            json.dump({"traceEvents": [spans(e) for e in self.events] + counters, "displayTimeUnit": "ms"}, file)

    export_perfetto = export_chrome_trace

    def __str__(self) -> str:
        return repr(self) if self._events is None else self.table()


def _short_line(lines):
    if not lines:
        return "-"
    folder, _, name = lines[0].rpartition("/")
    return name if len(lines) == 1 else f"{name}, and {len(lines) - 1} more"


# ---- the machine's limits -------------------------------------------------------------------------------------------------

_limits: dict[str, Any] = {}  # of a device: (operations, bytes) per nanosecond


def _roofline(size, flops, took, device):
    """The least time for these bytes and operations, over the time taken."""
    if size is None or flops is None or not took or not device or not (size or flops):
        return None
    if device not in _limits:
        _limits[device] = _measured(device)
    if _limits[device] is None:
        return None
    peak, bandwidth = _limits[device]
    return min(max(flops / peak, size / bandwidth) / took, 1.0)


def _measured(device):
    """The operations of a float32 matrix product, and the bytes of a copy, per nanosecond; None where the device takes neither."""
    from .._transforms._grad import no_grad
    from .._calls._ops import NAMESPACE, ops
    from .._runtime._system import synchronize

    ones = getattr(ops, NAMESPACE).ones

    side = 768
    try:
        with no_grad():
            square, row = ones((side, side), dtype=_core.float32, device=device), ones((1 << 23,), dtype=_core.float32, device=device)
            product = _best(lambda: square @ square, device, synchronize)
            copied = _best(lambda: row + 1, device, synchronize)
    except _core.BackplaneError:
        return None
    return 2 * side**3 / product, 8 * row.size / copied


def _best(run, device, synchronize):
    import time

    best = float("inf")
    for _ in range(4):
        start = time.perf_counter_ns()
        run()
        synchronize(device)
        best = min(best, time.perf_counter_ns() - start)
    return best
