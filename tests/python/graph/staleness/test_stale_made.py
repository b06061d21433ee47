"""Kinds of staleness: objects that the function makes anew at each call, and stores or returns. Each call has its own."""

import array
import collections
import dataclasses
import types

import backplane as bp
import numpy as np
from staleness_kinds import X, kind


class Plain:
    def __init__(self):
        self.v = [1, 2]


@dataclasses.dataclass
class Config:
    seen: list = dataclasses.field(default_factory=list)


def counter():
    n = [0]

    def count():
        n[0] += 1
        return n[0]

    return count


def linked():
    a = []
    a.append({"back": a})
    return a


# A value, and what its owner does to it.
MADE = {
    "list": (lambda: [1, 2], lambda v: v.append(9)),
    "list of lists": (lambda: [[1], [2]], lambda v: v[0].append(9)),
    "dict": (lambda: {"a": [1]}, lambda v: v["a"].append(9)),
    "set": (lambda: {1, 2}, lambda v: v.add(9)),
    "deque": (lambda: collections.deque([1]), lambda v: v.append(9)),
    "Counter": (lambda: collections.Counter("a"), lambda v: v.update("z")),
    "defaultdict": (lambda: collections.defaultdict(list), lambda v: v["k"].append(9)),
    "OrderedDict": (lambda: collections.OrderedDict(a=1), lambda v: v.update(z=9)),
    "bytearray": (lambda: bytearray(b"ab"), lambda v: v.append(9)),
    "array": (lambda: array.array("d", [1.0]), lambda v: v.append(9.0)),
    "array of NumPy": (lambda: np.zeros(2), lambda v: v.fill(9.0)),
    "tuple": (lambda: (1, [2]), lambda v: v[1].append(9)),
    "namespace": (lambda: types.SimpleNamespace(q=1), lambda v: setattr(v, "q", 9)),
    "object": (Plain, lambda v: v.v.append(9)),
    "dataclass": (Config, lambda v: v.seen.append(9)),
    "loop": (linked, lambda v: v[0].update(z=9)),
    "comprehension": (lambda: [i for i in range(3)], lambda v: v.append(9)),
    "product": (lambda: [0] * 2, lambda v: v.append(9)),
}
CALLED = {
    "closure": counter,
    "default": lambda: lambda c=[0]: (c.append(1), len(c))[1],
    "keyword default": lambda: lambda *, c={}: (c.update({len(c): 1}), len(c))[1],
    "in a dict": lambda: {"f": counter()}["f"],
}
STORES = {
    "attribute": lambda o, v: setattr(o, "v", v),
    "entry": lambda o, v: o.table.__setitem__("v", v),
    "appended": lambda o, v: o.seen.append(v),
    "inside a new list": lambda o, v: setattr(o, "v", [v]),
}


def pytest_generate_tests(metafunc):
    for name, table in (("made", MADE), ("called", CALLED), ("store", STORES)):
        if name in metafunc.fixturenames:
            metafunc.parametrize(name, table)


def owner():
    return types.SimpleNamespace(table={}, seen=[], v=None)


@kind
def test_object_that_is_stored(run, made):
    make, change = MADE[made]
    o = owner()
    f = run(lambda x: (setattr(o, "v", make()), x * 1)[1], state=lambda: o.v)
    held = []
    for _ in range(3):
        yield f(X)
        held.append(o.v)
        change(o.v)
    yield held, len({id(v) for v in held})


@kind
def test_way_in_which_a_list_is_stored(run, store):
    o = owner()
    f = run(lambda x: (STORES[store](o, [1, 2]), x * 1)[1], state=lambda: (o.v, o.table, o.seen))
    for _ in range(3):
        yield f(X)
        for v in (o.v, o.table.get("v"), *o.seen):
            if v:
                v.append(9)


@kind
def test_function_that_is_stored(run, called):
    o = owner()
    f = run(lambda x: (setattr(o, "v", CALLED[called]()), x * 1)[1])
    for _ in range(3):
        f(X)
        yield o.v(), o.v()


@kind
def test_function_that_is_returned(run, called):
    f = run(lambda x: (x * 1, CALLED[called]()))
    for _ in range(3):
        made = f(X)[1]
        yield made(), made()


@kind
def test_object_that_is_stored_twice(run):
    o = owner()

    def f(x):
        o.v = {"k": []}
        o.table["v"] = o.v["k"]
        return x * 1

    f = run(f)
    for _ in range(3):
        f(X)
        o.table["v"].append(1)
        yield o.v, o.table


@kind
def test_object_that_is_stored_and_returned(run):
    o = owner()

    def f(x):
        o.v = [1]
        return x * 1, o.v

    f = run(f)
    for _ in range(3):
        returned = f(X)[1]
        returned.append(2)
        yield o.v, returned is o.v


@kind
def test_old_object_in_a_new_one(run):
    """An object from before the call is the same object in each copy."""
    o, old = owner(), Plain()
    f = run(lambda x: (setattr(o, "v", [old, old.v]), x * 1)[1])
    for _ in range(3):
        f(X)
        yield o.v[0] is old, o.v[1] is old.v


@kind
def test_class_that_is_made(run):
    def f(x):
        class Made:
            v = [1]

        return x * 1, Made

    f = run(f)
    for _ in range(3):
        made = f(X)[1]
        made.v.append(2)
        yield made.v


@kind
def test_tensor_in_an_object_that_is_stored(run):
    o, w = owner(), bp.ones((3,))
    f = run(lambda x: (setattr(o, "v", [w]), x * 1)[1])
    for _ in range(2):
        f(X)
        yield o.v[0] is w
