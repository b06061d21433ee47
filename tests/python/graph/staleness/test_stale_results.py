"""Kinds of staleness: results that are, or share memory with, an argument or a captured object, and mutable ones."""

import collections
import types

import backplane as bp
import numpy as np
from staleness_kinds import GUARDED, NO_LINE, X, kind


def vector():
    return bp.asarray([1.0, 2.0, 3.0])


# A result, and its relation to the argument x, the captured tensor w and the object o.
RESULTS = {
    "the argument": lambda x, w, o: x,
    "in a list": lambda x, w, o: [x, x],
    "detach": lambda x, w, o: x.detach(),
    "data": lambda x, w, o: x.data,
    "view of a detached tensor": lambda x, w, o: x.detach()[1:],
    "transpose of a tensor detached twice": lambda x, w, o: x.detach().reshape(3, 1).detach().T,
    "detached view": lambda x, w, o: x[1:].detach(),
    "detached and whole": lambda x, w, o: (x, x.detach(), x[:2].detach()),
    "detached result": lambda x, w, o: (lambda y: (y, y.detach(), y.detach()[1:]))(x * 2),
    "view": lambda x, w, o: x[1:],
    "reshape": lambda x, w, o: x.reshape(3, 1),
    "row and whole": lambda x, w, o: (x, x[0]),
    "asarray": lambda x, w, o: bp.asarray(x),
    "copy": lambda x, w, o: bp.copy(x),
    "times one": lambda x, w, o: x * 1,
    "captured tensor": lambda x, w, o: w,
    "view of a captured tensor": lambda x, w, o: w[:2],
    "detached captured tensor": lambda x, w, o: w.detach(),
    "result and its view": lambda x, w, o: (lambda y: (y, y[1:]))(x * 2),
    "one result twice": lambda x, w, o: (lambda y: (y, y))(x * 2),
    "two equal results": lambda x, w, o: (x * 2, x * 2),
    "constant": lambda x, w, o: bp.ones(3),
    "constant beside": lambda x, w, o: (x * 2, bp.zeros(3)),
}


def pytest_generate_tests(metafunc):
    for name, table in (("result", RESULTS), ("mutable", MUTABLE)):
        if name in metafunc.fixturenames:
            metafunc.parametrize(name, table)


@kind(GUARDED)
def test_result_that_is_an_alias(run, result):
    x, w, o = vector(), vector() * 2, types.SimpleNamespace()
    f = run(lambda x: RESULTS[result](x, w, o))
    for _ in range(2):
        found = bp.tree.leaves(f(x))
        for t in found:
            t += 1
        yield x.tolist(), w.tolist(), [t.tolist() for t in found]
        x += 1
        w += 1
        yield [t.tolist() for t in found]


@kind
def test_result_that_is_an_object_of_the_caller(run, result):
    x, w, o = vector(), vector() * 2, types.SimpleNamespace()
    f = run(lambda x: RESULTS[result](x, w, o))
    for _ in range(2):
        found = bp.tree.leaves(f(x))
        yield [t is x for t in found], [t is w for t in found], [t is found[0] for t in found]


# A mutable result: a fresh object at every call, or the captured one.
MUTABLE = {
    "list": lambda o: [1, 2],
    "dict": lambda o: {"k": [1]},
    "set": lambda o: {1, 2},
    "array": lambda o: np.zeros(2),
    "object": lambda o: types.SimpleNamespace(s=1),
    "deque": lambda o: collections.deque([1]),
    "bytearray": lambda o: bytearray(2),
    "dict subclass": lambda o: collections.Counter("ab"),
    "function": lambda o: lambda: o,
    "captured list": lambda o: o.list,
    "captured object": lambda o: o,
    "captured array": lambda o: o.array,
    "captured set": lambda o: o.set,
    "class": lambda o: type(o),
}


@kind
def test_mutable_result(run, mutable):
    o = types.SimpleNamespace(list=[1], array=np.ones(2), set={1})
    f = run(lambda x: (x * 2, MUTABLE[mutable](o)))
    first, second = f(X)[1], f(X)[1]
    yield first is second, first is o, any(first is held for held in vars(o).values())
    if isinstance(first, list):
        first.append(9)
    elif isinstance(first, dict):
        first["new"] = 9
    elif isinstance(first, (set, collections.deque, bytearray)):
        getattr(first, "add", getattr(first, "append", None))(9)
    elif isinstance(first, np.ndarray):
        first[0] = 9
    yield f(X)[1] if mutable not in ("function", "class") else None


@kind(NO_LINE)
def test_result_that_holds_a_tensor(run):
    f = run(lambda x: types.SimpleNamespace(y=x * 2))
    for x in (X, X + 1):
        yield f(x).y


@kind
def test_results_that_are_numbers_of_state(run):
    o = types.SimpleNamespace(s=2.0, name="a")
    f = run(lambda x: (x * 2, o.s, o.name, x.shape, x.dtype, str(x.shape)))
    yield f(X)
    o.s, o.name = 3.0, "b"
    yield f(X)
