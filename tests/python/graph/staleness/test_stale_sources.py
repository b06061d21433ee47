"""Kinds of staleness: what differs at each call or lies outside of Python. Random numbers, clocks, iterators, the system, contexts.

Where values cannot be equal in two runs, a program yields how they relate to each other.
"""

import contextvars
import datetime
import decimal
import io
import itertools
import locale
import os
import random
import secrets
import sys
import tempfile
import threading
import time
import uuid
import warnings

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
# What is never the same twice.
FRESH = {
    "urandom": lambda: int.from_bytes(os.urandom(6), "little"),
    "secrets": lambda: secrets.randbits(48),
    "uuid": lambda: uuid.uuid4().int >> 80,
    "SystemRandom": lambda: random.SystemRandom().random(),
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
    for name, table in (("draw", RANDOM), ("fresh", FRESH), ("clock", CLOCKS), ("iterator", ITERATORS)):
        if name in metafunc.fixturenames:
            metafunc.parametrize(name, table)


@kind
def test_random_numbers_of_others(run, draw):
    random.seed(3)
    np.random.seed(3)
    f = run(lambda x: x * RANDOM[draw]())
    for _ in range(3):
        yield f(X)


@kind
def test_random_generators_of_others(run):
    r, legacy, g = random.Random(3), np.random.RandomState(3), np.random.default_rng(3)
    functions = [run(lambda x: x * r.random()), run(lambda x: x * legacy.rand()), run(lambda x: x + g.normal(size=3))]
    for f in functions:
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
    f = run(lambda x: x * take(source))
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


@kind
def test_context_variable(run):
    v = contextvars.ContextVar("v", default=2.0)
    f = run(lambda x: x * v.get() + v.get(0.0))
    yield f(X)
    token = v.set(3.0)
    yield f(X)
    yield contextvars.Context().run(f, X)
    v.reset(token)
    yield f(X)


@kind
def test_variables_of_a_thread(run):
    local, found = threading.local(), []
    f = run(lambda x: x * getattr(local, "s", 1.0))
    for local.s in (2.0, 3.0):
        yield f(X)
    thread = threading.Thread(target=lambda: found.append(f(X)))
    thread.start()
    thread.join()
    yield found


@kind
def test_which_thread(run):
    found, names = [], {threading.current_thread().name: 2.0}
    f = run(lambda x: x * names.get(threading.current_thread().name, 3.0))
    yield f(X)
    thread = threading.Thread(target=lambda: found.append(f(X)), name="other")
    thread.start()
    thread.join()
    yield found


@kind
def test_environment(run):
    os.environ["STALE_SCALE"] = "2"
    functions = [run(lambda x: x * float(os.environ["STALE_SCALE"])), run(lambda x: x * float(os.getenv("STALE_SCALE", "1"))),
                 run(lambda x: x * (2.0 if "STALE_SCALE" in os.environ else 1.0))]  # fmt: skip
    yield [f(X) for f in functions[1:]], functions[0](X)
    os.environ["STALE_SCALE"] = "3"
    yield [f(X) for f in functions]
    del os.environ["STALE_SCALE"]
    yield [f(X) for f in functions[1:]]


@kind
def test_working_folder(run):
    f, had = run(lambda x: x * len(os.getcwd())), os.getcwd()
    try:
        for folder in ("/", "/usr", "/"):
            os.chdir(folder)
            yield f(X)
    finally:
        os.chdir(had)


@kind
def test_files(run):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "scale")

        def read(x):
            if not os.path.exists(path):
                return x
            with open(path) as file:
                return x * float(file.read())

        f = run(read)
        yield f(X)
        for scale in ("2", "3"):
            with open(path, "w") as file:
                file.write(scale)
            yield f(X)


@kind
def test_file_that_is_open(run):
    file = io.BytesIO(b"\1\2\3\4")
    f = run(lambda x: x * file.read(1)[0], state=file.tell)
    for _ in range(3):
        yield f(X)


@kind
def test_settings_of_the_interpreter(run):
    limit = sys.getrecursionlimit()
    f = run(lambda x: x * (sys.getrecursionlimit() - limit + 1))
    yield f(X)
    try:
        sys.setrecursionlimit(limit + 7)
        yield f(X)
    finally:
        sys.setrecursionlimit(limit)


@kind
def test_list_of_the_path(run):
    f = run(lambda x: x * (2.0 if "/stale" in sys.path else 1.0))
    yield f(X)
    sys.path.append("/stale")
    try:
        yield f(X)
    finally:
        sys.path.remove("/stale")


@kind
def test_context_of_decimals(run):
    f = run(lambda x: x * float(decimal.Decimal(1) / decimal.Decimal(3)) * decimal.getcontext().prec)
    yield f(X)
    with decimal.localcontext() as context:
        context.prec = 3
        yield f(X)


@kind
def test_locale(run):
    f = run(lambda x: x * len(locale.setlocale(locale.LC_NUMERIC)))
    try:
        for name in ("C", "C.UTF-8", "C"):
            locale.setlocale(locale.LC_NUMERIC, name)
            yield f(X)
    finally:
        locale.setlocale(locale.LC_NUMERIC, "C")


@kind
def test_filters_of_warnings(run):
    def warned(x):
        try:
            warnings.warn("stale", UserWarning)
        except UserWarning:
            return x * 2.0
        return x

    f = run(warned)
    with warnings.catch_warnings():
        for action in ("ignore", "error", "ignore"):
            warnings.simplefilter(action)
            yield f(X)


@kind
def test_identity_as_a_number(run):
    first, second = object(), object()
    f = run(lambda x: x * (2.0 if id(o) == id(first) else 3.0))
    for o in (first, second, first):
        yield f(X)


@kind
def test_count_of_references(run):
    o = object()
    f = run(lambda x: x * (2.0 if sys.getrefcount(o) > 10 else 1.0))
    yield f(X)
    kept = [o] * 20
    yield f(X), len(kept)


@kind
def test_process(run):
    parent = os.getpid()
    f = run(lambda x: x * (2.0 if os.getpid() == parent else 3.0))
    yield f(X)
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(write, str(f(X).tolist()).encode())
        except BaseException as error:
            os.write(write, type(error).__name__.encode())
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    yield os.read(read, 100).decode()
    os.close(read), os.close(write)
