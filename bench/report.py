"""What the project promises about speed, and how measurements are judged and shown.

A Row holds one figure, its peer's (or none), and the limit on the figure or on their ratio. Rows come out as a table for
people; `passed` says whether each limit was kept.
"""

import dataclasses

HALF_LIMIT = 1.3  # of the time of float32, for float16 and bfloat16


@dataclasses.dataclass(frozen=True)
class Row:
    what: str
    value: float
    unit: str
    limit: float | None = None  # on the ratio where there is a peer, else on the value
    peer: float | None = None
    peer_name: str = ""

    @property
    def judged(self):
        return self.value / self.peer if self.peer else self.value

    @property
    def passed(self):
        return self.limit is None or self.judged <= self.limit

    def cells(self):
        peer = f"{self.peer:.4g} ({self.peer_name})" if self.peer else ""
        ratio = f"{self.judged:.3g}" if self.peer else ""
        limit = "" if self.limit is None else f"≤ {self.limit:g}{'' if self.peer else ' ' + self.unit}"
        mark = "" if self.limit is None else ("pass" if self.passed else "FAIL")
        return [self.what, f"{self.value:.4g} {self.unit}", peer, ratio, limit, mark]


HEADINGS = ["what", "ours", "peer", "ratio", "limit", ""]


def overhead_rows(cpp, node_bytes, python, import_ms, import_mb):
    """`cpp` and `python` map case -> library -> nanoseconds."""
    def versus(what, table, case, peer, limit):
        row = table[case]
        return Row(what, row["backplane"], "ns", limit, row[peer], peer)

    direct = cpp["direct"]["backplane"]
    torch_share = cpp["noop"]["torch"] - cpp["direct"]["torch"]
    return [
        Row("C++: a direct call of the no-op kernel", direct, "ns"),
        Row("C++: no-op op through the dispatcher, over direct", cpp["noop"]["backplane"] - direct, "ns", 5),
        Row("C++: the same of PyTorch", torch_share, "ns"),
        versus("C++: add, 1 element", cpp, "add", "torch", 0.14),
        versus("C++: add, 1 element, recording", cpp, "add_recording", "torch", None),
        versus("C++: x += y, 1 element", cpp, "inplace", "torch", 0.14),
        versus("C++: reshape", cpp, "view", "torch", None),
        versus("C++: (a*b).sum().backward()", cpp, "backward", "torch", None),
        versus("Python: a + b, 1 element", python, "add", "numpy", 0.45),
        versus("Python: a + b, 1 element", python, "add", "torch", 0.15),
        versus("Python: view (reshape)", python, "view", "numpy", 1.0),
        versus("Python: view (M[0])", python, "select", "numpy", 1.0),
        versus("Python: view (M[0:1])", python, "slice", "numpy", 1.0),
        versus("Python: view (M.T)", python, "transpose", "numpy", 1.0),
        Row("Python: a + b, recording against not", python["add_recording"]["backplane"], "ns", 1.8,
            python["add"]["backplane"], "ours, not recording"),
        versus("Python: a + b, recording", python, "add_recording", "torch", None),
        versus("Python: (a*b).sum().backward()", python, "backward", "torch", 0.2),
        Row("import backplane, over bare Python", import_ms, "ms", 45),
        Row("import backplane, memory over bare Python", import_mb, "MB", 45),
        Row("bytes per autograd node", node_bytes, "bytes"),
    ]


def transform_rows(python, cpp):
    """`python` as of transform_calls.py, `cpp` as of overhead: both map case -> library -> nanoseconds."""
    def versus(case, limit, peer="torch"):
        row = python[case]
        return Row(case, row["backplane"] / 1e3, "µs", limit, row[peer] / 1e3, peer)

    limits = {"vmap(add)": 0.12, "grad of sum(mul)": 0.1, "vmap(grad)": 0.11, "per-sample gradients": 1.0}
    rows = []
    for case, limit in limits.items():
        rows.append(versus(case, limit))
        if "jax" in python[case]:
            rows.append(versus(case, None, "jax"))
    samples, loop = python["per-sample gradients"]["backplane"] / 1e3, python["per-sample gradients, loop"]
    rows.append(Row("per-sample gradients, of a loop's time", samples, "µs", 1 / 20, loop["torch"] / 1e3, "torch, in a loop"))
    # Our own loop is within a small factor of what writing the gradients takes, so no batch can be 20 times faster.
    rows.append(Row("per-sample gradients, of a loop's time", samples, "µs", None, loop["backplane"] / 1e3, "ours, in a loop"))
    rows.append(Row("per-sample gradients, of writing as many bytes", samples, "µs", None,
                    python["per-sample gradients, bytes"]["numpy"] / 1e3, "numpy.fill"))
    for case in ("add", "mul"):
        cost = cpp[f"{case}_recording"]["backplane"] - cpp[case]["backplane"]
        rows.append(Row(f"C++: recording {case}, over not recording", cost, "ns", 60 if case == "add" else None))
    return rows


def bridge_rows(times):
    """`times` as of bridge_times.py: case -> library -> nanoseconds."""
    limits = {"torch.ops: add": 1.0, "torch.ops: add, recorded": 1.2, "torch.ops: multiply, forward and backward": 1.2, "torch.compile: training step, 4 layers, 128 wide": 0.8}
    return [Row(case, row["backplane"] / 1e3, "µs", limits.get(case, 1.05), row["torch"] / 1e3, "torch") for case, row in times.items()]


def source_rows(seconds, library_mb):
    return [
        Row("compile a plugin source in C++", seconds["cpp"], "s", 2),
        Row("compile a plugin source in C", seconds["c"], "s", 0.3),
        Row("libbackplane.so, stripped", library_mb, "MB", 3),
    ]


def instruction_rows(counts, kept, tolerance):
    return [Row(f"instructions: {case}", count, "instr.", 1 + tolerance if case in kept else None, kept.get(case), "kept")
            for case, count in counts.items()]


def text_table(rows):
    table = [HEADINGS, *(row.cells() for row in rows)]
    widths = [max(len(line[column]) for line in table) for column in range(len(HEADINGS))]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip() for line in table)


def markdown_table(rows):
    lines = [HEADINGS, ["---"] * len(HEADINGS), *(row.cells() for row in rows)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def collective_rows(results):
    """The smallest size by what a call adds to MPI's, 1 MiB by the ratio; the others for information."""
    rows = []
    for result in results:
        size, limit = result["bytes"], 1.05 if result["bytes"] == 1 << 20 else None
        for way, name in (("op", "C++"), ("python", "Python")):
            what = f"{name}: all_reduce of {size:,} bytes on 2 ranks"
            if size == 4:
                rows.append(Row(what + ", over MPI_Allreduce", (result[way] - result["mpi"]) * 1e9, "ns", 1000))
            rows.append(Row(what, result[way] * 1e6, "µs", limit, result["mpi"] * 1e6, "MPI_Allreduce"))
    return rows
