"""Judges what compile_times.py and bench_graph measured: the rows with their limits, and the page's table.

A cell is one case at one number of threads. Limits are the project's promises for compiled functions.
"""

import report

PEERS = ("torch.compile", "jax.jit")  # those of which the limits speak
SHOWN = (*PEERS, "mlx.compile")
LOOP_LIMIT = 1.15
SHARES = {"memory": 1 / 3, "adam": 1 / 5, "compute": 1.0}  # of our eager time, per group
WORDS = {"memory": "memory-bound formulas", "adam": "Adam", "compute": "products, attention, steps"}


def cells_of(results):
    return [{**cell, "threads": result["threads"]} for result in results for cell in result["cells"]]


def label(cell):
    return f"{cell['name']}, {cell['threads']} thread{'s' if cell['threads'] > 1 else ''}"


def against(cell, *ways):
    """Our time over the best of these; None where the cell has none of them."""
    times = [cell["seconds"][way] for way in ways if way in cell["seconds"]]
    return cell["seconds"]["ours"] / min(times) if times else None


def worst(what, cells, limit, *ways):
    found = [cell for cell in cells if against(cell, *ways) is not None]
    if not found:
        return []
    cell = max(found, key=lambda cell: against(cell, *ways))
    way = min((way for way in ways if way in cell["seconds"]), key=cell["seconds"].get)
    return [report.Row(f"{what}: worst, {label(cell)}", cell["seconds"]["ours"] * 1e6, "µs", limit, cell["seconds"][way] * 1e6, way)]


def first_rows(cells):
    found = [cell for cell in cells if {"ours", "torch.compile"} <= cell["first"].keys()]
    if not found:
        return []
    cell = max(found, key=lambda cell: cell["first"]["ours"] / cell["first"]["torch.compile"])
    return [report.Row(f"time to the first result: worst, {label(cell)}", cell["first"]["ours"] * 1e3, "ms", 0.1,
                       cell["first"]["torch.compile"] * 1e3, "torch.compile")]


def besides_rows(results):
    rows = []
    for result in results:
        if "fifty ops" not in result:
            continue
        threads = f"{result['threads']} thread{'s' if result['threads'] > 1 else ''}"
        ours, fifty = result["one op"], result["fifty ops"]
        compiling = {way: (times["first"] - times["next"]) * 1e3 for way, times in fifty.items()}
        rows.append(report.Row(f"compiling a function of 50 ops, {threads}", compiling["ours"], "ms", 50))
        rows += [report.Row(f"the same, {threads}", compiling["ours"], "ms", None, compiling[way], way) for way in SHOWN if way in compiling]
        rows.append(report.Row(f"a call of one op, compiled over eager, {threads}", (ours["ours"] - ours["ours, eager"]) * 1e6, "µs", 2))
        rows += [report.Row(f"a call of one op, compiled, {threads}", ours["ours"] * 1e6, "µs", None, ours[way] * 1e6, way)
                 for way in SHOWN if way in ours]
    return rows


def graph_rows(graphs):
    """Of bench_graph: a node above its kernel, and each stage's time per node in the largest graph over that in the smallest."""
    rows = [report.Row("a node of a plan, above its kernel", graphs["above_kernel_ns"], "ns", 15)]
    small, large = graphs["graphs"][0], graphs["graphs"][-1]
    size = f"{large['nodes']:,} nodes".replace(",", " ")
    for stage in ("parse", "verify", "optimize", "plan", "run"):
        rows.append(report.Row(f"{size}: {stage}, seconds; per node against {small['nodes']} of them", large[stage] / large["nodes"] * 1e9, "ns", 2.5,
                               small[stage] / small["nodes"] * 1e9, "per node of the small one"))
    return rows


def rows_of(results, graphs):
    cells = cells_of(results)
    rows = []
    for group, share in SHARES.items():
        rows += worst(f"{WORDS[group]}, of our eager time", [c for c in cells if c["group"] == group], share, "ours, eager")
    ratios = [ratio for cell in cells if (ratio := against(cell, *PEERS)) is not None]
    if ratios:
        rows.append(report.Row(f"cells above the best of {' and '.join(PEERS)}, of {len(ratios)}", 100 * sum(r > 1 for r in ratios) / len(ratios), "%", 20))
    rows += worst("against the best of them", cells, 1.25, *PEERS)
    rows += worst("against a loop written by hand", cells, LOOP_LIMIT, "loop")
    return rows + first_rows(cells) + besides_rows(results) + (graph_rows(graphs) if graphs else [])


def milliseconds(cell, way):
    return f"{cell['seconds'][way] * 1e3:.3g}" if way in cell["seconds"] else ""


def markdown(cells):
    """A line per cell: times in ms, ours over the best peer's and over the loop's, and the first results."""
    ways = ["ours", "ours, eager", "torch, eager", *SHOWN, "loop"]
    headings = ["case", "threads", *ways, "of the best peer", "of the loop", "first result: ours", *SHOWN]
    lines = [headings, ["---"] * len(headings)]
    for cell in cells:
        ratios = [f"{ratio:.2f}" if (ratio := against(cell, *peers)) is not None else "" for peers in (PEERS, ("loop",))]
        first = [f"{cell['first'][way] * 1e3:.3g}" if way in cell["first"] else "" for way in ("ours", *SHOWN)]
        lines.append([cell["name"], str(cell["threads"]), *(milliseconds(cell, way) for way in ways), *ratios, *first])
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def text(cells):
    return markdown(cells).replace("|", " ")
