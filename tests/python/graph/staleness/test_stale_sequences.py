"""Kinds of staleness: lists, tuples, deques and strings, read in every way."""

import array
import bisect
import collections
import copy
import ctypes
import functools
import heapq
import itertools
import json
import math
import statistics

import backplane as bp
from staleness_kinds import GUARDED, X, kind

# How a list of numbers is read: a number of it.
READS = {
    "subscript": lambda a: a[0],
    "last": lambda a: a[-1],
    "len": len,
    "bool": lambda a: 2.0 if a else 1.0,
    "slice": lambda a: sum(a[1:]),
    "step": lambda a: sum(a[::2]),
    "in": lambda a: 2.0 if 7.0 in a else 1.0,
    "count": lambda a: 1 + a.count(7.0),
    "index": lambda a: a.index(1.0),
    "unpacked": lambda a: (lambda first, *rest: first + len(rest))(*a),
    "starred": lambda a: starred(a),
    "sum": sum,
    "min and max": lambda a: min(a) + 2 * max(a),
    "any and all": lambda a: 2.0 if any(v > 5 for v in a) else 3.0 if all(a) else 1.0,
    "loop": lambda a: looped(a),
    "enumerate": lambda a: sum(i * v for i, v in enumerate(a)),
    "zip": lambda a: sum(i * v for i, v in zip(itertools.count(1), a)),
    "map and filter": lambda a: sum(map(abs, filter(None, a))),
    "reversed": lambda a: next(reversed(a)),
    "sorted": lambda a: sorted(a)[0],
    "copy": lambda a: list(a)[0] + copy.copy(a)[-1] + copy.deepcopy(a)[-1],
    "comparison": lambda a: 2.0 if a == [2.0, 1.0] else 3.0 if a > [2.0] else 1.0,
    "concatenated": lambda a: sum(a + [1.0]) + sum([*a, 1.0]) + sum(a * 2),
    "tuple and set": lambda a: tuple(a)[0] + len(set(a)),
    "dict of pairs": lambda a: dict(enumerate(a))[0],
    "math": lambda a: math.prod(a) + math.fsum(a) + math.hypot(*a),
    "statistics": lambda a: statistics.mean(a),
    "reduce": lambda a: functools.reduce(lambda p, q: p - q, a),
    "itertools": lambda a: sum(itertools.accumulate(a)) + sum(itertools.chain(a, a)) + next(itertools.islice(a, 1, None)),
    "heapq": lambda a: heapq.nsmallest(1, a)[0],
    "bisect": lambda a: 1 + bisect.bisect(a, 2.5),
    "join": lambda a: len(", ".join(map(str, a))),
    "format": lambda a: len(f"{a[0]:.1f}{a}"),
    "json": lambda a: len(json.dumps(a)),
    "match": lambda a: matched(a),
    "an iterator of its own": lambda a: next(iter(a)),
    "asarray": lambda a: bp.asarray(a).sum(),
    "stack": lambda a: bp.stack([bp.asarray(v) for v in a]).sum(),
}

# Other sequences of numbers that change.
MAKES = {
    "deque": collections.deque,
    "UserList": collections.UserList,
    "list subclass": type("Row", (list,), {}),
    "array": lambda a: array.array("d", a),
    "bytearray": lambda a: bytearray(map(int, a)),
    "memoryview": lambda a: memoryview(bytearray(map(int, a))),
    "memoryview of an array": lambda a: memoryview(array.array("d", a)),
    "ctypes array": lambda a: (ctypes.c_double * len(a))(*a),
}


def starred(a):
    first, *rest, last = a
    return first + 2 * last + len(rest)


def looped(a):
    total = 0.0
    for value in a:
        if value > 6:
            break
        total += value
    else:
        total -= 1
    return total


def matched(a):
    match a:
        case [2.0, *rest]:
            return 1.0 + len(rest)
        case _:
            return 5.0


def pytest_generate_tests(metafunc):
    for name, table in (("read", READS), ("make", MAKES)):
        if name in metafunc.fixturenames:
            metafunc.parametrize(name, table)


@kind(GUARDED)
def test_list(run, read):
    a = [2.0, 1.0]
    f = run(lambda x: x * READS[read](a))
    yield f(X)
    a[0] = 3.0
    yield f(X)
    a.append(7.0)
    yield f(X)
    a.reverse()
    yield f(X)
    a[:] = [2.0, 1.0]
    yield f(X)


@kind
def test_other_sequence(run, make):
    a = MAKES[make]([2.0, 1.0])
    f, g = run(lambda x: x * a[0] + len(a)), run(lambda x, a: x * a[0] + sum(a))
    for a[0] in (2, 3, 2):
        yield f(X), g(X, a)


@kind(GUARDED)
def test_long_deque(run):
    window = collections.deque([1.0, 2.0], maxlen=3)
    f = run(lambda x: x * sum(window) / len(window))
    for value in (3.0, 4.0, 5.0):
        window.append(value)
        yield f(X)
    window.rotate(1)
    yield f(X) + window[0]


@kind(GUARDED)
def test_list_in_a_tuple(run):
    t = ([2.0], {"k": 1.0})
    f = run(lambda x: x * t[0][0] + t[1]["k"])
    for t[0][0], t[1]["k"] in ((2.0, 1.0), (3.0, 1.0), (3.0, 5.0)):
        yield f(X)
    t = ([7.0], {"k": 2.0})
    yield f(X)


@kind(GUARDED)
def test_list_that_a_called_function_fills(run):
    a = [2.0]

    def fill():
        a.append(1.0)

    f = run(lambda x: x * len(a))
    yield f(X)
    fill()
    yield f(X)


@kind(GUARDED)
def test_layers_in_a_list(run):
    layers = [lambda x: x * 2.0, lambda x: x + 1.0]
    f = run(lambda x: functools.reduce(lambda x, layer: layer(x), layers, x))
    yield f(X)
    layers.reverse()
    yield f(X)
    layers.append(lambda x: x * 5.0)
    yield f(X)
    layers[0] = abs
    yield f(X)


@kind(GUARDED)
def test_string(run):
    f = run(lambda x: x * len(name) + (2.0 if name == "ab" else 1.0) + name.count("a") + ord(name[0]))
    for name in ("ab", "aab", "b", "".join(["a", "b"])):
        yield f(X)


@kind
def test_identity_of_equal_strings(run):
    one, other = "".join(["a", "b"]), "".join(["a", "b"])
    f = run(lambda x: x * (2.0 if name is one else 3.0))
    for name in (one, other, one):
        yield f(X)


@kind(GUARDED)
def test_slice_and_range(run):
    values = [1.0, 2.0, 3.0]
    f = run(lambda x: x[cut] * sum(values[cut]) + sum(steps))
    for cut, steps in ((slice(0, 2), range(3)), (slice(1, 3), range(3)), (slice(1, 3), range(4))):
        yield f(X)


@kind(GUARDED)
def test_number_of_any_kind(run):
    f = run(lambda x: (x * n, n, -n))
    for n in (0.0, -0.0, float("nan"), -1, 2**40, True, 1, 1.0, 1j, float("inf")):
        yield f(X)
