"""`./dev test numbers`: every reference at 2,000 points, by kernels and by decompositions, and the table of docs/reference/accuracy.md.

    report.py [--points N] [--dtypes A,B] [--op NAME]... [--peers] [--write] [--seed S]

It prints per op, dtype and order the largest error in units in the last place, and its point where that is beyond the bound; the status is 1
where one is.
"""

import argparse
import multiprocessing
import os
import sys
from pathlib import Path

from number_measure import OURS, bound_of, measure, row_of
from number_peers import PEERS
from number_references import REFERENCES
from number_vectors import VECTORS

DTYPES = ("float32", "float64", "float16", "bfloat16")
PAGE = Path(__file__).resolve().parents[3] / "docs" / "reference" / "accuracy.md"
BEGIN, END = "<!-- numbers: begin -->", "<!-- numbers: end -->"


def run(job):
    name, dtype, ways, count, seed = job
    return job, measure(name, dtype, count, ways, seed)


def shown(error):
    return f"{error:.2f}" if error < 10 else f"{error:.0f}" if error < 1e4 else f"{error:.0e}"


def cell(orders):
    return " / ".join(shown(max(w.error for w in ways)) for ways in zip(*orders))


def table(found, dtypes, peers):
    """Per op the bound, for each dtype the larger error of kernel and decomposition (value / first / second derivative), and peers' in float32."""
    heads = [*dtypes, *peers]
    lines = ["| op | bound | " + " | ".join(heads) + " |", "| --- | --- |" + " --- |" * len(heads)]
    for name, rows in found.items():
        row = row_of(name)
        cells = [cell([rows[dtype][way] for way in OURS]) for dtype in dtypes]
        cells += [cell([rows["float32"][peer]]) if peer in rows["float32"] else "" for peer in peers]
        lines.append(f"| `{name}` | {' / '.join(map(str, row.bound[: row.orders + 1]))} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def write(text):
    page = PAGE.read_text()
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    PAGE.write_text(f"{before}{BEGIN}\n{text}\n{END}{after}")


def main():
    options = argparse.ArgumentParser(prog="./dev test numbers")
    options.add_argument("--points", type=int, default=2000)
    options.add_argument("--dtypes", default=",".join(DTYPES))
    options.add_argument("--op", action="append")
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--peers", action="store_true")
    options.add_argument("--write", action="store_true")
    given = options.parse_args()
    dtypes = given.dtypes.split(",")
    names = given.op or [*REFERENCES, *VECTORS]
    peers = tuple(PEERS) if given.peers else ()
    jobs = [(name, dtype, OURS + (peers if dtype == "float32" else ()), given.points, given.seed) for name in names for dtype in dtypes]
    found, beyond = {name: {} for name in names}, 0
    with multiprocessing.get_context("spawn").Pool(os.cpu_count()) as pool:
        for (name, dtype, *_), measured in pool.imap(run, jobs):
            found[name][dtype] = measured
            for way, orders in measured.items():
                print(f"{name} {dtype} {way}:", *(shown(w.error) for w in orders), flush=True)
                for order, w in enumerate(orders):
                    if way in OURS and not w.error <= bound_of(name, dtype, order):
                        beyond += 1
                        print(f"    beyond {bound_of(name, dtype, order)}, order {order}: {w}", flush=True)
    if given.write:
        write(table(found, dtypes, peers))
    print(f"{len(names)} ops, {len(jobs)} measurements, {beyond} beyond their bound")
    sys.exit(1 if beyond else 0)


if __name__ == "__main__":
    main()
