"""Judges what vulkan_times.py measured."""

import report

STEP_LIMIT = 12  # of the CPU backend's time for a step of the demo
HOST_LIMIT = 3  # µs
COPY_SHARE = 0.85  # of a copy's bandwidth, for an elementwise op on a GPU


def rows_of(found):
    """On a software driver the rates have no limit: it is the processor that computes, lane by lane."""
    on_gpu, steps = not found["software"], found["steps"]
    copy, add = (found["bandwidths"][name] / 1e9 for name in ("copy", "add"))
    (name,) = set(steps) - {"cpu"}
    host = f"{found['device']}: host time of a small op, the driver's recording included"
    small = found["small ops"]
    rows = [report.Row("100 small ops, each of the one before", small["submissions"], "submissions", 2),
            report.Row("the same", small["recorded_commands"], "commands", 100),
            report.Row("the same", small["recorded_barriers"], "barriers", 100),
            report.Row("the same, after warm-up", small["driver_objects_made"], "Vulkan objects made", 0),
            report.Row(host, found["host"] * 1e6, "µs", HOST_LIMIT),
            report.Row("bandwidth of a copy, over an addition's", copy, "GB/s", 1 / COPY_SHARE if on_gpu else None, add, "add"),
            report.Row("five elementwise ops in a compiled function", found["chain"]["dispatches"], "dispatches", 1),
            report.Row("time of these ops, compiled", found["chain"]["fused"] * 1e3, "ms", 1, found["chain"]["one by one"] * 1e3, "one by one"),
            report.Row("rate of a float32 product (its share of the peak is not known)", found["product"] / 1e9, "GFLOP/s")]
    for how in ("eager", "compiled"):
        counts = steps[name][how]["counts"]
        rows += [report.Row(f"a step of the demo, {how}", counts["recorded_commands"], "commands"),
                 report.Row(f"a step of the demo, {how}", counts["submissions"], "submissions"),
                 report.Row(f"a step of the demo, {how}, after warm-up", counts["driver_objects_made"], "Vulkan objects made", 0)]
        for clock, limit in (("processor", None if on_gpu else STEP_LIMIT), ("wall", None)):
            rows.append(report.Row(f"a step of the demo, {how}, {clock} time", steps[name][how][clock] * 1e3, "ms", limit,
                                   steps["cpu"][how][clock] * 1e3, f"cpu, {how}"))
    return rows
