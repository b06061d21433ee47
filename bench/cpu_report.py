"""Judges what cpu_times.py measured: rows with their limits, the table of the page, and its plot.

In: one result per number of threads. The best peer of a cell is the fastest of the other libraries; a cell whose op is not there
counts as missed. A limit of a group that was not measured (a filter was given) is not judged.
"""

import collections
import math

import report

PEERS = ["numpy", "torch", "jax"]
LARGE = "16 Mi"  # beyond the caches: the memory sets the pace
NOT_MEMORY_BOUND = {"add transposed", "copy of a transposed"}


def cells_of(results):
    """Flat: each cell with the number of threads, the time of the best peer and its name."""
    found = []
    for result in results:
        for cell in result["cells"]:
            seconds = cell.get("seconds", {})
            peers = {library: seconds[library] for library in PEERS if library in seconds}
            best = min(peers, key=peers.get) if peers else None
            found.append({**cell, "seconds": seconds, "threads": result["threads"], "best": best,
                          "ratio": seconds["ours"] / peers[best] if best and "ours" in seconds else math.inf})
    return found


def against(cell, library):
    seconds = cell["seconds"]
    return seconds["ours"] / seconds[library] if "ours" in seconds and library in seconds else math.inf


def label(cell):
    return f"{cell['name']} [{cell['size']}], {cell['threads']} thread{'s' if cell['threads'] > 1 else ''}"


def geometric_mean(ratios):
    ratios = [ratio for ratio in ratios if math.isfinite(ratio)]
    return math.exp(sum(map(math.log, ratios)) / len(ratios)) if ratios else math.inf


def worst_row(what, cells, library, limit):
    """The cell with the highest ratio against this library ('best': the best peer of each)."""
    def ratio(cell):
        return cell["ratio"] if library == "best" else against(cell, library)

    cells = [cell for cell in cells if library in ("best", *cell["seconds"]) or cell.get("absent")]
    if not cells:
        return []
    cell = max(cells, key=ratio)
    if cell.get("absent"):
        return [report.Row(f"{what}: {label(cell)} ({cell['absent']})", math.inf, "", limit)]
    peer = cell["best"] if library == "best" else library
    seconds = cell["seconds"]
    return [report.Row(f"{what}: worst, {label(cell)}", seconds["ours"] * 1e6, "µs", limit, seconds[peer] * 1e6, peer)]


def rows_of(cells):
    groups = collections.defaultdict(list)
    for cell in cells:
        groups[cell["group"]].append(cell)
    rows = []
    if broad := groups["elementwise"]:
        what = "elementwise, reductions, softmax, norms, activations"
        above = sum(cell["ratio"] > 1 for cell in broad) / len(broad)
        rows.append(report.Row(f"{what}: cells above the best peer, of {len(broad)}", above * 100, "%", 10))
        rows += worst_row("the same", broad, "best", 1.25)
        rows.append(report.Row("the same: geometric mean against PyTorch", geometric_mean(against(c, "torch") for c in broad), "×", 0.45))
        large = [c for c in broad if c["size"] == LARGE and c["name"] not in NOT_MEMORY_BOUND]
        rows += worst_row("large elementwise against a plain loop", large, "floor", 1.1)
    rows += worst_row("small matmul", groups["small matmul"], "torch", 1 / 3)
    # A third of PyTorch's time comes from saving its overhead. Batches have no such overhead, so a third would exceed the
    # processor's peak rate.
    rows += worst_row("small matmul, batched", groups["batched small matmul"], "best", 1)
    rows += worst_row("matmul against OpenBLAS", groups["matmul"], "floor", 1.03)
    rows += worst_row("matmul against the best peer", groups["matmul"], "best", 1.05)
    for group, library, limit in (("conv2d", "torch", 1), ("attention", "torch", 1), ("recurrent cells", "torch", 1),
                                  ("linear", "torch", 1.25), ("sorting and indexing", "best", 1),
                                  ("training epoch", "torch", 0.5), ("training step", "torch", 0.8), ("creating", "best", 1)):
        rows += worst_row(group, groups[group], library, limit)
    return rows


def worst_cells(cells, count=25):
    ranked = sorted((cell for cell in cells if cell["ratio"] > 1 and not cell.get("absent")), key=lambda cell: -cell["ratio"])
    return [report.Row(label(cell), cell["seconds"]["ours"] * 1e6, "µs", None, cell["seconds"][cell["best"]] * 1e6, cell["best"])
            for cell in ranked[:count]]


def by_case(cells):
    """{(group, name): {(size, threads): cell}}, in the order of measuring."""
    table = collections.defaultdict(dict)
    for cell in cells:
        table[cell["group"], cell["name"]][cell["size"], cell["threads"]] = cell
    return table


def text_ratio(cell):
    if cell is None:
        return ""
    if cell.get("absent"):
        return "absent"
    times = [f"{cell['seconds']['ours'] * 1e6:.3g} µs", f"{cell['ratio']:.2f} {cell['best']}"]
    if "floor" in cell["seconds"]:
        times.append(f"{against(cell, 'floor'):.2f} floor")
    return ", ".join(times)


def markdown(cells):
    """One line per case and size, one column per number of threads."""
    threads = sorted({cell["threads"] for cell in cells})
    lines = ["| case | size | " + " | ".join(f"{n} thread{'s' if n > 1 else ''}" for n in threads) + " |",
             "| --- " * (2 + len(threads)) + "|"]
    for (_, name), found in by_case(cells).items():
        for size in dict.fromkeys(size for size, _ in found):
            entries = [text_ratio(found.get((size, n))) for n in threads]
            lines.append(f"| {name} | {size} | " + " | ".join(entries) + " |")
    return "\n".join(lines)


def plot(cells, path):
    """A map of the ratios against the best peer: one line per case, one column per size and number of threads."""
    import matplotlib

    matplotlib.use("svg")
    import matplotlib.pyplot as plt
    import numpy as np

    matplotlib.rcParams["svg.hashsalt"] = "backplane"
    sizes = [size for size in ("1", "1 Ki", "64 Ki", "1 Mi", "16 Mi") if any(cell["size"] == size for cell in cells)]
    threads = sorted({cell["threads"] for cell in cells})
    table = {key: found for key, found in by_case(cells).items() if any(size in sizes for size, _ in found)}
    columns = [(size, n) for n in threads for size in sizes]
    values = np.array([[found[column]["ratio"] if column in found else np.nan for column in columns] for found in table.values()])
    values[~np.isfinite(values)] = np.nan
    figure, axes = plt.subplots(figsize=(2 + 0.55 * len(columns), 1.2 + 0.2 * len(table)), layout="constrained")
    image = axes.imshow(np.log2(values), cmap="RdBu_r", vmin=-2, vmax=2, aspect="auto")
    axes.set_xticks(range(len(columns)), [f"{size}\n{n} thr." for size, n in columns], fontsize=7)
    axes.set_yticks(range(len(table)), [name for _, name in table], fontsize=7)
    for (line, column), value in np.ndenumerate(values):
        if np.isfinite(value):
            axes.text(column, line, f"{value:.2f}", ha="center", va="center", fontsize=5.5)
    axes.set_title("our time over the best peer's", fontsize=9)
    colors = figure.colorbar(image, ax=axes, ticks=[-2, -1, 0, 1, 2], shrink=0.4)
    colors.ax.set_yticklabels(["≤ 1/4", "1/2", "1", "2", "≥ 4"], fontsize=7)
    figure.savefig(path, metadata={"Date": None})
