"""Runs an op at its points, with its derivatives, and compares with the reference formula.

`measure(name, dtype, count, ways)` gives per way ("kernel", "primitives", a peer) and order (0: value, 1 and 2: derivatives along each argument)
the largest error and its point. The exact results are computed once for all ways. At a point where two pieces of the formula meet, each
value between both sides' derivatives is right.
"""

import contextlib
from dataclasses import dataclass

import backplane as bp
import numpy as np
from backplane import _core
from mpmath import mp
from number_errors import error, evaluate, exact, to_format
from number_peers import PEERS
from number_points import FORMATS, points, vectors
from number_references import REFERENCES
from number_vectors import LENGTH, VECTORS

OURS = ("kernel", "primitives")


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


class Elementwise:
    """A row of REFERENCES: its arguments are numbers."""

    is_vector = False

    def __init__(self, name):
        self.name, self.row = name, REFERENCES[name]
        self.differentiable = [i for i in range(len(self.row.kinds)) if i not in self.row.constant]

    def arrays(self, dtype, count, seed):
        return points(self.row.kinds, dtype, count, seed)

    def function(self):
        op = getattr(bp.ops.bp, self.name)
        return (lambda *xs: self.row.call(op, *xs)) if self.row.call else op

    def measured(self, arguments):
        return not self.row.only or self.row.only(*arguments)

    def exact(self, arguments, along, dtype):
        found = exact(self.row.formula, arguments, along, dtype, self.row.constant, self.row.precisions)
        # Derivatives at infinite arguments are measured where the row says so.
        return found if self.row.ends or np.isfinite(arguments).all() else (found[0], None, None)

    def least(self, order, arguments, along, dtype):
        return max(self.row.least[order], self.row.tail * 2.0 ** FORMATS[dtype].least)

    def between_sides(self, arguments, along, order, found):
        """Is the formula in two pieces here, with the found derivative between those of both?"""
        if not np.isfinite(arguments).all():
            return False
        sides = []
        with mp.workprec(4200):
            for sign in (-1, 1):
                moved = [mp.mpf(float(x)) for x in arguments]
                moved[along] += sign * mp.ldexp(abs(moved[along]) or 1, -2000)
                y = evaluate(self.row.formula, moved, along, 4200)
                if y is None:
                    return False
                sides.append(y[order])
            low, high = min(sides), max(sides)
            slack = (high - low) / 1000
            return slack > 1e-9 * max(abs(low), abs(high)) and low - slack <= found <= high + slack


class Rows:
    """A row of VECTORS: its arguments are rows of numbers; the first one is the variable."""

    is_vector = True

    def __init__(self, name):
        self.name, self.row = name, VECTORS[name]
        self.differentiable = range(self.row.arguments)

    def arrays(self, dtype, count, seed):
        drawn = [vectors(dtype, count, LENGTH, self.row.magnitude, seed + i) for i in range(self.row.arguments)]
        size = min(map(len, drawn))
        return [a[:size] for a in drawn]

    def function(self):
        op = getattr(bp.ops.bp, self.name.partition(",")[0])
        return lambda *xs: self.row.call(op, *xs)

    def measured(self, arguments):
        return True

    def exact(self, arguments, along, dtype):
        def formula(*jets):
            return self.row.formula(*(list(jets[i * LENGTH : (i + 1) * LENGTH]) for i in range(len(arguments))))

        return exact(formula, [float(v) for row in arguments for v in row], along * LENGTH, dtype)

    def least(self, order, arguments, along, dtype):
        size = self.row.sizes[order]
        return size(arguments[along], *arguments[:along], *arguments[along + 1 :]) if size else 0

    def between_sides(self, arguments, along, order, found):
        return False


def row_of(name):
    return VECTORS[name] if name in VECTORS else REFERENCES[name]


def bound_of(name, dtype, order):
    row = row_of(name)
    return (row.bound if dtype in ("float32", "float64") else row.halves)[order]


def _tensor(values, dtype):
    return bp.asarray(values if dtype == "float64" else values.astype(np.float32), dtype=getattr(bp, dtype))


def _array(x):
    return bp.astype(x, bp.float64).numpy()


@contextlib.contextmanager
def decomposed(forced):
    before = _core.force_decomposition(forced)
    try:
        yield
    finally:
        _core.force_decomposition(before)


def results(subject, arrays, dtype):
    """{(order, argument): array}; the value is (0, 0)."""
    function, xs = subject.function(), [_tensor(a, dtype) for a in arrays]

    def part(gradient):
        return gradient[:, 0] if subject.is_vector else gradient

    found = {(0, 0): _array(function(*xs))}
    for i in subject.differentiable if subject.row.orders else ():

        def first(x, i=i):
            return part(bp.grad(lambda v: bp.sum(function(*xs[:i], v, *xs[i + 1 :])))(x))

        found[1, i] = _array(first(xs[i]))
        if subject.row.orders > 1:
            found[2, i] = _array(part(bp.grad(lambda v: bp.sum(first(v)))(xs[i])))
    return found


def results_of_way(subject, way, arrays, dtype):
    if way in OURS:
        with decomposed(way == "primitives"):
            return results(subject, arrays, dtype)
    functions, run = PEERS[way]
    function = functions().get(subject.name)
    return None if function is None else run(function, [a.astype(np.float32) for a in arrays], subject.differentiable, subject.is_vector, subject.row.orders)


def measure(name, dtype, count, ways=OURS, seed=0):
    """{way: [Worst per order]}; a peer without the function is left out."""
    subject = Rows(name) if name in VECTORS else Elementwise(name)
    arrays = subject.arrays(dtype, count, seed)
    given = {way: results_of_way(subject, way, arrays, dtype) for way in ways}
    given = {way: found for way, found in given.items() if found is not None}
    worst = {way: [Worst() for _ in range(subject.row.orders + 1)] for way in given}
    for k, arguments in enumerate(zip(*arrays)):
        if not subject.measured(arguments):
            continue
        if len(arguments) == 1 and np.isnan(arguments[0]).any():
            for way, found in given.items():
                if not np.isnan(found[0, 0][k]):
                    worst[way][0] = Worst(np.inf, tuple(np.ravel(arguments).tolist()), float(found[0, 0][k]), np.nan)
            continue
        for along in sorted({i for found in given.values() for _, i in found}):
            expected = subject.exact(arguments, along, dtype)
            for order in range(subject.row.orders + 1):
                if expected[order] is None or order and np.isinf(to_format(expected[order], dtype)):
                    continue
                least = subject.least(order, arguments, along, dtype)
                for way, found in given.items():
                    if (order, along) not in found:
                        continue
                    value = found[order, along][k]
                    miss = error(value, expected[order], dtype, least)
                    if miss > worst[way][order].error and not (order and miss > 1 and subject.between_sides(arguments, along, order, value)):
                        worst[way][order] = Worst(miss, tuple(np.ravel(arguments).tolist()), float(value), float(expected[order]), along)
    return worst
