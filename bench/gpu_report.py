"""Judges and shows what gpu.py found.

    gpu_report.py gpu.json [--write]: prints it; --write: its tables into bench/figures/ and docs/reference/performance.md
"""

import json
import pathlib
import sys

import gpu_cases
import report


def bandwidth_of_copy(*measured):
    """Bytes per second of the fastest copy."""
    case = next(case for case in gpu_cases.CASES if case.name == "copy")
    return max((case.bytes / seconds["copy"] for seconds in measured if "copy" in seconds), default=None)


def case_rows(found):
    """Moving cases against a copy's bandwidth, the others against the peer."""
    ours, peer = found["ours"]["seconds"], found.get("peer", {}).get("seconds", {})
    copied = bandwidth_of_copy(ours, peer)
    rows = []
    for case in gpu_cases.CASES:
        if case.name not in ours:
            continue
        beside = (peer[case.name] * 1e3, "torch") if case.name in peer else (None, "")
        rows.append(report.Row(case.name, ours[case.name] * 1e3, "ms", case.ratio, *beside))
        if case.bytes and copied and case.share:
            ideal = case.bytes / copied
            rows.append(report.Row(f"{case.name}: time, of its bytes at a copy's bandwidth", ours[case.name] * 1e3, "ms", 1 / case.share, ideal * 1e3, "copy"))
        if case.operations:
            rows.append(report.Row(f"{case.name}: rate", case.operations / ours[case.name] / 1e12, "TFLOP/s"))
    return rows


def small_rows(found):
    ours, peer = found["ours"].get("small", {}), found.get("peer", {}).get("small", {})
    limits = {"add, host": 0.4}
    rows = [report.Row(f"small calls: {name}", ours[name] * 1e6, "µs", limits.get(name) if name in peer else None,
                       peer[name] * 1e6 if name in peer else None, "torch" if name in peer else "") for name in ours]
    if "chain, compiled" in ours:
        rows.append(report.Row("six ops compiled, over one by one", ours["chain, compiled"] * 1e3, "ms", 1 / 3, ours["chain"] * 1e3, "one by one"))
    training = found["ours"].get("training")
    if training:
        other = found.get("peer", {}).get("training")
        rows.append(report.Row("a training step of a transformer, eager", training["seconds"] * 1e3, "ms", None,
                               other["seconds"] * 1e3 if other else None, "torch" if other else ""))
    return rows


def rows_of(found):
    return case_rows(found) + small_rows(found)


def failures(found):
    lines = []
    for part in found.get("conformance", {}).get("parts", []):
        if part["status"] != 0:
            lines.append(f"conformance {part['mode']} {part['pattern']}: status {part['status']}, {len(part['failures'])} failures, {part['seconds']:.0f} s")
            lines += [f"    {one['op']} {one['dtype']} sample {one['sample']} {one['check']}: {one['text']}"[:300] for one in part["failures"][:3]]
            lines += [f"    {part['said'][-400:]}"] if part["said"] else []
    for part in found.get("sanitizer", {}).get("parts", []):
        if part["status"] != 0:
            lines.append(f"compute-sanitizer {part['op']}: status {part['status']}: {part['said'][-400:]}")
    return lines


def text(found):
    parts = []
    if device := found.get("device"):
        parts.append(device["card"] or f"no GPU of NVIDIA's: {device['why']}. Fix: run it on a machine that has one, or `./dev gpu --pack` for another")
        parts += [device["text"]] if device["card"] and not device["passed"] else []
    for mode, counts in found.get("conformance", {}).get("modes", {}).items():
        parts.append(f"conformance {mode}: " + ", ".join(f"{count} {verdict}" for verdict, count in sorted(counts.items())))
    parts += failures(found)
    if "demo" in found:
        parts.append("demo: " + found["demo"]["said"][-900:])
    if "launch" in found:
        parts.append(f"launch: {found['launch']}")
    if "ours" in found:
        parts.append(report.text_table(rows_of(found)))
        for kind in ("ours", "peer"):
            parts += [f"absent, {kind}: {name}: {why[:300]}" for name, why in found.get(kind, {}).get("absent", {}).items()]
    return "\n".join(parts)


def main():
    found = json.loads(pathlib.Path(sys.argv[1]).read_text())
    print(text(found))
    if "--write" in sys.argv:
        import figures

        if missing := {"device", "conformance", "ours", "peer"} - set(found):
            sys.exit(f"gpu_report: {sys.argv[1]} lacks {', '.join(sorted(missing))}. Fix: ./dev gpu without --steps")

        modes = "; ".join(f"{mode} " + ", ".join(f"{count:,} {verdict}" for verdict, count in sorted(counts.items()))
                          for mode, counts in found["conformance"]["modes"].items())
        late = [f"{part['mode']} {part['pattern']}" for part in found["conformance"]["parts"] if part["status"] == 124]
        cut = f"; cut off by the clock: {', '.join(late)}" if late else ""
        measured = f"Measured on {found['device']['date']}: {found['device']['card']}; the peer is {found['peer']['device'].split(',')[0]}."
        tables = f"Conformance, cases: {modes}{cut}.\n\n{report.markdown_table(rows_of(found))}"
        figures.keep(found["device"]["card"].split(",")[0], "CUDA", measured, tables)


if __name__ == "__main__":
    main()
