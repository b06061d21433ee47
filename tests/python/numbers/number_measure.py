"""Runs an op at its points, with its derivatives, and compares with the reference formula.

`measure(name, row, dtype, count, forced)` gives for each order (0: value, 1 and 2: derivatives along each argument) the largest error and the
point where it was found. At a point where two pieces of the formula meet, each value between the two sides' derivatives is right.
"""

from dataclasses import dataclass

import backplane as bp
import numpy as np
from backplane import _core
from mpmath import mp
from number_errors import error, evaluate, exact, to_format
from number_peers import PEERS
from number_points import FORMATS, points, vectors
from number_references import REFERENCES, Row
from number_vectors import LENGTH, VECTORS


@dataclass
class Worst:
    error: float = 0.0
    point: tuple = ()
    found: float = 0.0
    expected: float = 0.0
    along: int = 0

    def __str__(self):
        at = ", ".join(f"{x:.17g}" for x in self.point)
        return f"{self.error:.3g} at ({at}) along {self.along}: {self.found:.9g}, not {self.expected:.9g}"


def _function(name, row):
    op = getattr(bp.ops.bp, name)
    if row.call:
        return lambda *xs: row.call(op, *xs)
    return lambda *xs: op(*xs, **row.options)


def _tensor(values, dtype):
    return bp.asarray(values if dtype == "float64" else values.astype(np.float32), dtype=getattr(bp, dtype))


def _array(x):
    return bp.astype(x, bp.float64).numpy()


def results(name, row, arrays, dtype):
    """{(order, argument): array}; the value is (0, 0)."""
    function = _function(name, row)
    xs = [_tensor(a, dtype) for a in arrays]
    found = {(0, 0): _array(function(*xs))}
    for i in range(len(xs)) if row.orders else ():
        if i in row.constant:
            continue

        def first(x, i=i):
            return bp.grad(lambda v: bp.sum(function(*xs[:i], v, *xs[i + 1 :])))(x)

        found[1, i] = _array(first(xs[i]))
        if row.orders > 1:
            found[2, i] = _array(bp.grad(lambda v: bp.sum(first(v)))(xs[i]))
    return found


def _between_sides(row, arguments, along, order, found):
    """Is the formula in two pieces here, with the found derivative between those of both?"""
    sides = []
    with mp.workprec(4200):
        for sign in (-1, 1):
            moved = [mp.mpf(float(x)) for x in arguments]
            moved[along] += sign * mp.ldexp(abs(moved[along]) or 1, -2000)
            y = evaluate(row.formula, moved, along, 4200)
            if y is None:
                return False
            sides.append(y[order])
        low, high = min(sides), max(sides)
        slack = (high - low) / 1000
        return slack > 1e-9 * max(abs(low), abs(high)) and low - slack <= found <= high + slack


def checked(row, order, arguments, expected):
    """Values everywhere; derivatives at finite arguments, and where they are finite; at infinite ones where the row says so."""
    if expected is None:
        return False
    return order == 0 or row.ends or bool(np.isfinite(arguments).all())


def measure(name, row: Row, dtype, count, forced=False, seed=0):
    arrays = points(row.kinds, dtype, count, seed)
    before = _core.force_decomposition(forced)
    try:
        found = results(name, row, arrays, dtype)
    finally:
        _core.force_decomposition(before)
    return compare(row, arrays, found, dtype)


def compare(row, arrays, found, dtype):
    """The largest errors of what was found, {(order, argument): array}, per order."""
    worst = [Worst() for _ in range(row.orders + 1)]
    for k, arguments in enumerate(zip(*arrays)):
        if row.only and not row.only(*arguments):
            continue
        for along in sorted({i for _, i in found}):
            expected = exact(row.formula, arguments, along, dtype, row.constant, row.precisions)
            for order in range(row.orders + 1):
                if (order, along) not in found or not checked(row, order, arguments, expected[order]):
                    continue
                value = found[order, along][k]
                if order and np.isinf(to_format(expected[order], dtype)):
                    continue
                miss = error(value, expected[order], dtype, max(row.least[order], row.tail * 2.0 ** FORMATS[dtype].least))
                if miss > worst[order].error and not (order and miss > 1 and np.isfinite(arguments).all() and _between_sides(row, arguments, along, order, value)):
                    worst[order] = Worst(miss, tuple(map(float, arguments)), float(value), float(expected[order]), along)
    return worst


def vector_results(name, row, arrays, dtype):
    """As `results`, of rows: derivatives are along the first number of each."""
    op = getattr(bp.ops.bp, name.partition(",")[0])
    xs = [_tensor(a, dtype) for a in arrays]
    found = {(0, 0): _array(row.call(op, *xs))}
    for i in range(len(xs)):

        def first(x, i=i):
            return bp.grad(lambda v: bp.sum(row.call(op, *xs[:i], v, *xs[i + 1 :])))(x)[:, 0]

        found[1, i] = _array(first(xs[i]))
        if row.orders > 1:
            found[2, i] = _array(bp.grad(lambda v: bp.sum(first(v)))(xs[i])[:, 0])
    return found


def vector_arrays(row, dtype, count, seed=0):
    arrays = [vectors(dtype, count, LENGTH, row.magnitude, seed + i) for i in range(row.arguments)]
    size = min(map(len, arrays))
    return [a[:size] for a in arrays]


def measure_vectors(name, row, dtype, count, forced=False, seed=0):
    arrays = vector_arrays(row, dtype, count, seed)
    before = _core.force_decomposition(forced)
    try:
        found = vector_results(name, row, arrays, dtype)
    finally:
        _core.force_decomposition(before)
    return compare_vectors(row, arrays, found, dtype)


def compare_vectors(row, arrays, found, dtype):
    worst = [Worst() for _ in range(row.orders + 1)]
    for k, rows in enumerate(zip(*arrays)):
        numbers = [float(v) for r in rows for v in r]
        for along in sorted({i for _, i in found}):
            sizes = [size(rows[along], *rows[:along], *rows[along + 1 :]) if size else 0 for size in row.sizes]

            def formula(*jets):
                return row.formula(*(list(jets[i * LENGTH : (i + 1) * LENGTH]) for i in range(len(rows))))

            expected = exact(formula, numbers, along * LENGTH, dtype)
            for order in range(row.orders + 1):
                if (order, along) not in found or expected[order] is None or order and np.isinf(to_format(expected[order], dtype)):
                    continue
                miss = error(found[order, along][k], expected[order], dtype, sizes[order])
                if miss > worst[order].error:
                    worst[order] = Worst(miss, tuple(numbers), float(found[order, along][k]), float(expected[order]), along)
    return worst


def row_of(name):
    return VECTORS[name] if name in VECTORS else REFERENCES[name]


def measure_row(name, dtype, count, forced=False, seed=0):
    return (measure_vectors if name in VECTORS else measure)(name, row_of(name), dtype, count, forced, seed)


def bound_of(name, dtype, order):
    row = row_of(name)
    return (row.bound if dtype in ("float32", "float64") else row.halves)[order]


def measure_peer(name, peer, count, seed=0):
    """The same of a peer's function in float32; None where it has none."""
    functions, run = PEERS[peer]
    function, row = functions().get(name), row_of(name)
    if function is None:
        return None
    is_vector = name in VECTORS
    arrays = vector_arrays(row, "float32", count, seed) if is_vector else points(row.kinds, "float32", count, seed)
    differentiable = range(len(arrays)) if is_vector else [i for i in range(len(arrays)) if i not in row.constant]
    found = run(function, [a.astype(np.float32) for a in arrays], differentiable, is_vector, row.orders)
    return (compare_vectors if is_vector else compare)(row, arrays, found, "float32")
