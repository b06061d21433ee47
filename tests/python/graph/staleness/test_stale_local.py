"""What a call makes and changes for itself is no state: no function is refused for it, and none of it is guarded by its value in the trace."""

import array
import collections
import contextlib
import contextvars
import copy
import dataclasses
import functools
import io
import itertools
import math
import operator
import random
import sys
import types

import backplane as bp
import numpy as np
from staleness_kinds import GUARDED, X, kind


class Counter:
    def __init__(self, s):
        self.s, self.calls = s, 0

    def add(self):
        self.calls += 1
        return self.s


@dataclasses.dataclass
class Config:
    s: float
    seen: list = dataclasses.field(default_factory=list)


class Layer:
    def __init__(self, s):
        self.children = {"scale": s}
        self.built = False

    def __call__(self, x):
        if not self.built:
            self.built, self.bias = True, 1.0
        return x * self.children["scale"] + self.bias


def nested_counter(s):
    calls = 0

    def count():
        nonlocal calls
        calls += 1
        return s * calls

    return count() + count()


def function_attribute(s):
    def inner():
        inner.calls += 1
        return s * inner.calls

    inner.calls = 0
    return inner() + inner()


def with_context(s):
    held = []

    @contextlib.contextmanager
    def entered():
        held.append(s)
        yield held
        held.clear()

    with entered() as values:
        return sum(values) + len(held)


def sorted_in_place(s):
    values = [3.0, s, 1.0]
    values.sort()
    values.reverse()
    del values[0]
    return values[0] + values.pop()


def removed(s):
    d = {"a": s, "b": 1.0}
    del d["b"]
    return sum(d.values()) + d.pop("a")


def array_in_place(s):
    k = np.zeros(3)
    k[0] = s
    k += 1
    k[k > 1.5] *= 2
    return float(k.sum())


def raised(s):
    try:
        raise ValueError(s)
    except ValueError as error:
        error.seen = True
        return error.args[0]


def drained(s):
    queue, total = collections.deque([s, 1.0]), 0.0
    while queue:
        total += queue.popleft()
    return total


def memoized(s):
    @functools.cache
    def power(n):
        return 1.0 if n == 0 else s * power(n - 1)

    return power(3)


def partly_consumed(s):
    numbers = iter([s, 2.0, 3.0])
    return next(numbers) + sum(numbers)


def graph_search(s):
    edges, seen, stack = {"a": ["b", "c"], "b": ["c"], "c": []}, set(), ["a"]
    while stack:
        node = stack.pop()
        if node not in seen:
            seen.add(node)
            stack.extend(edges[node])
    return s * len(seen)


def text_built(s):
    file = io.StringIO()
    print(s, file=file)
    return float(file.getvalue())


def local_variable(s):
    variable = contextvars.ContextVar("v")
    variable.set(s)
    return variable.get()


def class_changed(s):
    class Local:
        t = 0.0

    Local.t += s
    return Local().t


def copied(s):
    held = copy.deepcopy({"k": [s]})
    held["k"].append(1.0)
    return sum(held["k"])


# A number of s, in ways that change only what is made on the way.
LOCAL = {
    "list": lambda s: (lambda a: (a.append(s), a.append(1.0), sum(a))[2])([]),
    "dict": lambda s: (lambda d: (d.update(k=s), d.setdefault("m", 1.0), sum(d.values()))[2])({}),
    "set": lambda s: (lambda a: (a.add(s), sum(a))[1])({1.0}),
    "deque": drained,
    "sorted in place": sorted_in_place,
    "removed": removed,
    "object": lambda s: Counter(s).add() + (lambda c: (c.add(), c.add(), c.calls)[2])(Counter(s)),
    "namespace": lambda s: (lambda o: (setattr(o, "t", s), o.t)[1])(types.SimpleNamespace()),
    "dataclass": lambda s: (lambda c: (c.seen.append(c.s), sum(c.seen))[1])(Config(s)),
    "defaultdict": lambda s: (lambda d: (d["k"].append(s), d["k"][0])[1])(collections.defaultdict(list)),
    "Counter": lambda s: collections.Counter("aab")["a"] * s,
    "nested counter": nested_counter,
    "attribute of a function": function_attribute,
    "context manager": with_context,
    "iterator": partly_consumed,
    "generator": lambda s: sum(s * i for i in range(3)),
    "count": lambda s: s * sum(itertools.islice(itertools.count(1), 3)),
    "zip": lambda s: sum(a * b for a, b in zip([s, 1.0], itertools.repeat(2.0))),
    "array of NumPy": array_in_place,
    "array": lambda s: (lambda a: (a.append(s), sum(a))[1])(array.array("d")),
    "bytearray": lambda s: (lambda b: (b.extend(b"ab"), len(b) * s)[1])(bytearray()),
    "exception": raised,
    "cache": memoized,
    "search": graph_search,
    "text": text_built,
    "context variable": local_variable,
    "class": class_changed,
    "copy": copied,
    "reduce": lambda s: functools.reduce(operator.add, [s, 1.0, 2.0]),
    "math": lambda s: math.sqrt(s) + max(s, 2.0) + round(s),
    "dict of dicts": lambda s: (lambda d: (d["a"].__setitem__("b", s), d["a"]["b"])[1])({"a": {}}),
    "swapped variables": lambda s: (lambda a, b: a - b)(*reversed([s, 1.0])),
    "comprehension": lambda s: sum([i * s for i in range(3)]) + {i: s for i in range(2)}[1],
}


def pytest_generate_tests(metafunc):
    if "way" in metafunc.fixturenames:
        metafunc.parametrize("way", LOCAL)


@kind(GUARDED)
def test_local_change(run, way):
    o = types.SimpleNamespace(s=2.0)
    f = run(lambda x: x * LOCAL[way](o.s))
    for o.s in (2.0, 3.0, 2.0):
        yield f(X)


@kind(GUARDED)
def test_local_change_by_a_number_argument(run, way):
    f = run(lambda x, s: x * LOCAL[way](s))
    for s in (2.0, 3.0, 4.0, 2.0):
        yield f(X, s)


@kind(GUARDED)
def test_model_that_is_made_within(run):
    o = types.SimpleNamespace(s=2.0)
    f = run(lambda x: Layer(o.s)(Layer(1.0)(x)))
    for o.s in (2.0, 3.0):
        yield f(X)


@kind(GUARDED)
def test_tensors_in_local_containers(run):
    def body(x):
        found, table = [], {}
        for i in range(3):
            found.append(x * i)
            table[i] = found[-1] + 1
        o = types.SimpleNamespace(last=None)
        for t in table.values():
            o.last = t if o.last is None else o.last + t
        cache = {id(t): t for t in found}
        return o.last + sum(found), [t for t in found if id(t) in cache]

    f = run(body)
    for x in (X, X + 1):
        yield f(x)


@kind(GUARDED)
def test_value_that_was_just_stored(run):
    """What the function overwrites before it reads it is no input."""
    o = types.SimpleNamespace(s=1.0, list=[0.0])

    def body(x):
        held = dict(s=o.s)
        held["s"] = 5.0
        return x * held["s"] + o.s

    f = run(body)
    for o.s in (1.0, 2.0):
        yield f(X)


@kind
def test_scratch_attribute(run):
    o = types.SimpleNamespace(scratch=0.0)

    def body(x):
        o.scratch = 3.0
        return x * o.scratch

    f = run(body, state=lambda: o.scratch)
    for o.scratch in (0.0, 1.0, 2.0):
        yield f(X)


@kind
def test_seeded_generator_that_is_made_within(run):
    f = run(lambda x: x * random.Random(3).random() + np.random.default_rng(3).random() + np.random.RandomState(3).rand())
    for _ in range(2):
        yield f(X)


@kind(GUARDED)
def test_generator_of_backplane_that_is_made_within(run):
    f = run(lambda x: x * bp.uniform((3,), generator=bp.Generator(3)))
    for _ in range(3):
        yield f(X)


def test_printing_is_allowed_and_happens_at_the_trace(capsys):
    """A print is no state that a program reads back."""
    f = bp.compile(lambda x: (print("traced"), sys.stdout.write("once\n"), x * 2)[2])
    for _ in range(3):
        assert f(X).tolist() == [2, 4, 6]
    assert capsys.readouterr().out == "traced\nonce\n"
