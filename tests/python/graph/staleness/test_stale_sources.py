"""Kinds of staleness: what differs at each call. Random numbers, clocks, iterators.

Where values cannot be equal in two runs, a program yields how they relate to each other.
"""

import datetime
import io
import itertools
import operator
import os
import random
import secrets
import time
import uuid

import backplane as bp
import numpy as np
from staleness_kinds import GUARDED, X, kind

# Random numbers of others, after a seed.
RANDOM = {
    "random": lambda: random.random(),
    "uniform": lambda: random.uniform(1, 2),
    "randint": lambda: random.randint(1, 1000),
    "choice": lambda: random.choice([1.0, 2.0, 3.0, 4.0, 5.0, 6.0]),
    "sample": lambda: random.sample(range(1000), 2)[0],
    "gauss": lambda: random.gauss(0, 1),
    "np.random": lambda: np.random.rand(),
    "np.random array": lambda: np.random.standard_normal(3),
    "np.random permutation": lambda: float(np.random.permutation(100)[0]),
}

# A generator from outside, a draw from it, and where it stands.
GENERATORS = {
    "Random": (lambda: random.Random(3), lambda g: g.random(), lambda g: g.getstate()[1][-1]),
    "shuffle of Random": (lambda: random.Random(3), lambda g: (lambda a: (g.shuffle(a), a[0])[1])(list(range(9))), lambda g: g.getstate()[1][-1]),
    "RandomState": (lambda: np.random.RandomState(3), lambda g: g.rand(), lambda g: g.get_state()[2]),
    "Generator": (lambda: np.random.default_rng(3), lambda g: g.normal(), lambda g: g.bit_generator.state["state"]["state"]),
    "Generator of an array": (lambda: np.random.default_rng(3), lambda g: g.normal(size=3), lambda g: g.bit_generator.state["state"]["state"]),
    "method": (lambda: random.Random(3), lambda g: (lambda draw: draw())(g.random), lambda g: g.getstate()[1][-1]),
}
# Sources that are never the same twice.
FRESH = {
    "urandom": lambda: int.from_bytes(os.urandom(6), "little"),
    "secrets": lambda: secrets.randbits(48),
    "uuid": lambda: uuid.uuid4().int >> 80,
    "SystemRandom": lambda: random.SystemRandom().random(),
    "Random": lambda: random.Random().random(),
    "Random of None": lambda: random.Random(None).gauss(0, 1),
    "subclass of Random": lambda: type("Mine", (random.Random,), {})().random(),
    "RandomState": lambda: np.random.RandomState().rand(),
    "RandomState of None": lambda: np.random.RandomState(None).rand(),
    "default_rng": lambda: np.random.default_rng().random(),
}

CLOCKS = {
    "time": lambda: time.time(),
    "time_ns": lambda: time.time_ns() % 10**12,
    "perf_counter": lambda: time.perf_counter(),
    "monotonic_ns": lambda: time.monotonic_ns() % 10**12,
    "datetime.now": lambda: datetime.datetime.now().timestamp(),
    "utcnow": lambda: datetime.datetime.now(datetime.timezone.utc).timestamp(),
}


def looped(iterator):
    for value in iterator:
        return value


def numbers():
    yield from range(1, 100)


# An iterator from outside, and what takes from it.
ITERATORS = {
    "iterator of a list": (lambda: iter([2.0, 3.0, 4.0, 5.0]), next),
    "count": (lambda: itertools.count(1), next),
    "cycle": (lambda: itertools.cycle([2.0, 3.0]), next),
    "generator": (numbers, next),
    "generator in a loop": (numbers, looped),
    "generator that is sent to": (numbers, lambda g: g.send(None)),
    "zip": (lambda: zip([2.0, 3.0, 4.0], [1.0, 1.0, 1.0]), lambda z: next(z)[0]),
    "map": (lambda: map(float, range(1, 9)), next),
    "filter": (lambda: filter(None, range(9)), next),
    "enumerate": (lambda: enumerate("abcde", 1), lambda e: next(e)[0]),
    "reversed": (lambda: reversed([1.0, 2.0, 3.0, 4.0]), next),
    "islice": (lambda: itertools.islice(range(1, 100), 50), next),
    "chain": (lambda: itertools.chain([1.0, 2.0], [3.0, 4.0]), next),
    "iter of a function": (lambda: iter([1.0, 2.0, 3.0, 0.0].pop, None), next),
    "file": (lambda: io.StringIO("1\n2\n3\n4\n"), lambda file: float(next(file))),
    "readline": (lambda: io.StringIO("1\n2\n3\n4\n"), lambda file: float(file.readline())),
    "unpacked": (lambda: iter([1.0, 2.0, 3.0, 4.0]), lambda i: sum([*i]) + 1),
    "in": (lambda: iter([1.0, 2.0, 3.0, 4.0]), lambda i: 2.0 if 2.0 in i else 1.0),
    "method": (lambda: iter([1.0, 2.0, 3.0, 4.0]), lambda i: i.__next__()),
}


def pytest_generate_tests(metafunc):
    for name, table in (("draw", RANDOM), ("generator", GENERATORS), ("fresh", FRESH), ("clock", CLOCKS), ("iterator", ITERATORS)):
        if name in metafunc.fixturenames:
            metafunc.parametrize(name, table)


@kind
def test_random_numbers_of_others(run, draw):
    random.seed(3)
    np.random.seed(3)
    f = run(lambda x: x * RANDOM[draw](), state=lambda: (random.getstate()[1][-1], np.random.get_state()[2]))
    for _ in range(3):
        yield f(X)


@kind
def test_random_generator_of_others(run, generator):
    make, take, look = GENERATORS[generator]
    g = make()
    f = run(lambda x: x * take(g), state=lambda: look(g))
    for _ in range(3):
        yield f(X)


@kind
def test_random_generator_of_numpy_as_an_argument(run):
    f = run(lambda x, rng: x * rng.random())
    for _ in range(2):
        yield f(X, np.random.default_rng(3))
    rng = np.random.default_rng(3)
    for _ in range(3):
        yield f(X, rng)


@kind
def test_shuffle(run):
    order = list(range(20))
    random.seed(3)
    f = run(lambda x: x * (random.shuffle(order), order[0])[1], state=lambda: order)
    for _ in range(3):
        yield f(X)


@kind(GUARDED)
def test_random_numbers_of_backplane(run):
    g = bp.Generator(3)
    f = run(lambda x: bp.normal((3,)) + x + bp.uniform((3,), generator=g))
    for _ in range(3):
        yield f(X)


@kind
def test_what_is_never_the_same(run, fresh):
    f = run(lambda x: bp.asarray(FRESH[fresh](), dtype=bp.float64) + x.sum())
    seen = [f(X).item() for _ in range(3)]
    yield len(set(seen))


@kind
def test_clock(run, clock):
    f = run(lambda x: bp.asarray(CLOCKS[clock](), dtype=bp.float64) + x.sum())
    before = f(X).item()
    time.sleep(0.002)
    yield f(X).item() == before


@kind
def test_iterator_from_outside(run, iterator):
    make, take = ITERATORS[iterator]
    source = make()
    f = run(lambda x: x * take(source), state=lambda: (operator.length_hint(source, -1), repr(source) if isinstance(source, itertools.count) else ""))
    for _ in range(3):
        try:
            yield f(X)
        except (StopIteration, TypeError, ValueError) as error:
            yield type(error).__name__


@kind
def test_iterator_as_an_argument(run):
    f = run(lambda x, i: x * next(i))
    i = iter([1.0, 2.0, 3.0])
    for _ in range(3):
        yield f(X, i)
    yield f(X, (v for v in [7.0, 8.0]))


@kind
def test_iterator_in_an_attribute(run):
    class Loader:
        def __init__(self):
            self.batches = iter([1.0, 2.0, 3.0, 4.0])

    o = Loader()
    f = run(lambda x, o: x * next(o.batches))
    for _ in range(3):
        yield f(X, o)
