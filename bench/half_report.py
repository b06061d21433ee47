"""Judges what half_times.py measured: the rows with their limit, the cases above it, and the page's table by groups."""

import collections
import math

import report

DTYPES = ("float16", "bfloat16")


def ratio(cell, dtype):
    return cell["seconds"][dtype] / cell["seconds"]["float32"]


def ranked(cells):
    """(ratio, cell, dtype), the worst first."""
    return sorted(((ratio(cell, dtype), cell, dtype) for cell in cells for dtype in DTYPES), key=lambda found: -found[0])


def as_row(cell, dtype, limit=None):
    seconds = cell["seconds"]
    return report.Row(f"{cell['group']}: {cell['name']}, {dtype}", seconds[dtype] * 1e6, "µs", limit, seconds["float32"] * 1e6, "float32")


def rows_of(cells):
    order = ranked(cells)
    if not order:  # the words chose none
        return []
    above = sum(found > report.HALF_LIMIT for found, _, _ in order)
    worst = as_row(*order[0][1:], limit=report.HALF_LIMIT)
    return [report.Row(f"half floats: cases above {report.HALF_LIMIT} of float32, of {len(order)}", above, "cases", 0), worst]


def rows_above(cells):
    return [as_row(cell, dtype) for found, cell, dtype in ranked(cells) if found > report.HALF_LIMIT]


def markdown(cells):
    """One line per group: how many cases, the means of their ratios, how many are above the limit."""
    groups = collections.defaultdict(list)
    for cell in cells:
        groups[cell["group"]].append(cell)
    lines = ["| group | cases | float16, geometric mean | bfloat16, geometric mean | above the limit |", "| --- | --- | --- | --- | --- |"]
    for group, found in groups.items():
        means = [math.exp(sum(math.log(ratio(cell, dtype)) for cell in found) / len(found)) for dtype in DTYPES]
        above = len(rows_above(found))
        lines.append(f"| {group} | {2 * len(found)} | {means[0]:.2f} | {means[1]:.2f} | {above} |")
    return "\n".join(lines)
