"""Ways to compute a number that make and change lists, objects and arrays of their own on the way, and nothing else."""

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
import types

import numpy as np


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


# A number of s, in ways that change only temporary objects.
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
