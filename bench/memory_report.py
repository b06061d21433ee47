"""Judges what memory_peaks.py and growth_times.py measured: rows with their limits, and the tables of docs/reference/memory.md."""

import report

COMPILED_LIMIT = 1.1  # of the eager peak
GROWTH_LIMIT = 3  # a write of one element of the large tensor, over one of the small tensor: caches differ, work does not
PEER_LIMIT = 1.3  # of the faster of NumPy and PyTorch, where more than a call's overhead is measured
WAYS = ("eager", "compiled", "jax.jit", "torch")


def megabytes(bytes_):
    return f"{bytes_ / 1e6:.2f}" if bytes_ is not None else ""


def memory_rows(cells):
    return [report.Row(f"memory: {cell['name']}, compiled", cell["peaks"]["compiled"] / 1e6, "MB", COMPILED_LIMIT,
                       cell["peaks"]["eager"] / 1e6, "eager") for cell in cells]


def memory_table(cells):
    lines = ["| program | eager | compiled | compiled / eager | jax.jit | PyTorch |", "| --- | --- | --- | --- | --- | --- |"]
    for cell in cells:
        peaks = cell["peaks"]
        ratio = f"{peaks['compiled'] / peaks['eager']:.2f}"
        lines.append(f"| {cell['name']} | {megabytes(peaks['eager'])} | {megabytes(peaks['compiled'])} | {ratio} | "
                     f"{megabytes(peaks.get('jax.jit'))} | {megabytes(peaks.get('torch'))} |")
    return "\n".join(lines)


def best_peer(seconds):
    peers = {library: value for library, value in seconds.items() if library != "ours"}
    return min(peers, key=peers.get)


def growth_rows(results):
    rows = []
    for cell in results["growth"]:
        if cell["touched"] == 1 and cell["small"]:
            rows.append(report.Row(f"growth: {cell['name']}, 1 of 10^7 elements", cell["seconds"]["ours"] * 1e6, "µs", GROWTH_LIMIT,
                                   cell["small"] * 1e6, "1 of 2*10^5"))
    for cell in [*results["growth"], *results["whole"]]:
        if cell.get("touched") == 1:
            continue
        peer = best_peer(cell["seconds"])
        what = f"growth: {cell['name']}" + (f", {cell['touched']} elements" if "touched" in cell else "")
        rows.append(report.Row(what, cell["seconds"]["ours"] * 1e6, "µs", PEER_LIMIT, cell["seconds"][peer] * 1e6, peer))
    return rows


def microseconds(value):
    return f"{value * 1e6:.4g}" if value is not None else ""


def growth_table(results):
    lines = ["| what | touched | ours, of 10^7 | ours, of 2·10^5 | NumPy, of 10^7 | PyTorch, of 10^7 |", "| --- | --- | --- | --- | --- | --- |"]
    for cell in results["growth"]:
        s = cell["seconds"]
        lines.append(f"| `{cell['name']}` | {cell['touched']} | {microseconds(s['ours'])} | {microseconds(cell['small'])} | "
                     f"{microseconds(s.get('numpy'))} | {microseconds(s.get('torch'))} |")
    return "\n".join(lines)


def whole_table(results):
    lines = ["| what | ours | NumPy | PyTorch |", "| --- | --- | --- | --- |"]
    for cell in results["whole"]:
        s = cell["seconds"]
        lines.append(f"| {cell['name']} | {microseconds(s['ours'])} | {microseconds(s.get('numpy'))} | {microseconds(s.get('torch'))} |")
    return "\n".join(lines)
