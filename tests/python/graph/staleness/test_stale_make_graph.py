"""Lost side effects and sources in make_graph: a graph has no guards, so a function whose calls differ or change state is refused.

What a graph reads of variables stays as it was when it was made (docs/guides/compile.md); that is no kind here.
"""

import itertools
import random
import time
import types

import backplane as bp
import numpy as np
from staleness_kinds import GUARDED, X, kind


def graph_of(function):
    """Traced at the first call."""
    made = []

    def call(*args):
        if not made:
            made.append(bp.make_graph(function)(*args))
        return made[0](*args)

    return call


class World:
    def __init__(self):
        self.t, self.list, self.dict, self.array, self.w = 0, [], {}, np.zeros(2), bp.zeros(3)
        self.numbers, self.random, self.generator = itertools.count(1), random.Random(3), np.random.default_rng(3)


def counted(w, x):
    w.t += 1
    return x * 2


def used(w, x):
    w.t += 1
    return x * w.t


def augmented_array(w, x):
    w.array += 1
    return x * 2


def updated(w, x):
    w.w += x
    return w.w * 1


def replaced(w, x):
    w.w = w.w + x
    return w.w * 1


STORES = {
    "counter": counted,
    "counter that is used": used,
    "append": lambda w, x: (w.list.append(1), x * 2)[1],
    "append of a tensor": lambda w, x: (w.list.append(x * 2), x * 2)[1],
    "dict": lambda w, x: (w.dict.update({len(w.dict): 1}), x * 2)[1],
    "array": augmented_array,
    "setattr": lambda w, x: (setattr(w, "t", w.t + 1), x * 2)[1],
    "new attribute": lambda w, x: (setattr(w, "shape", x.shape), x * 2)[1],
    "tensor that is replaced": replaced,
    "tensor in place": updated,
}
SOURCES = {
    "next": lambda w, x: x * next(w.numbers),
    "random": lambda w, x: x * random.random(),
    "random object": lambda w, x: x * w.random.random(),
    "NumPy": lambda w, x: x * np.random.rand(),
    "generator of NumPy": lambda w, x: x * w.generator.random(),
}


def pytest_generate_tests(metafunc):
    for name, table in (("store", STORES), ("source", SOURCES)):
        if name in metafunc.fixturenames:
            metafunc.parametrize(name, table)


@kind
def test_store(run, store):
    w = World()
    f = run(lambda x: STORES[store](w, x), make=graph_of, state=lambda: (w.t, w.list, w.dict, w.array, w.w, getattr(w, "shape", None)))
    for _ in range(3):
        yield f(X)


@kind
def test_source(run, source):
    random.seed(3)
    np.random.seed(3)
    w = World()
    f = run(lambda x: SOURCES[source](w, x), make=graph_of)
    for _ in range(3):
        yield f(X)


@kind
def test_clock(run):
    f = run(lambda x: x * 0 + bp.asarray(time.perf_counter(), dtype=bp.float64), make=graph_of)
    before = f(X).tolist()
    time.sleep(0.002)
    yield f(X).tolist() == before


@kind(GUARDED)
def test_changes_of_what_is_made_within(run):
    def body(x):
        o, found = types.SimpleNamespace(t=0), []
        for _ in range(3):
            o.t += 1
            found.append(x * o.t)
        return sum(found)

    f = run(body, make=graph_of)
    for x in (X, X + 1):
        yield f(x)
