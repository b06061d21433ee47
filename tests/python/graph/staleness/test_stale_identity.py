"""Kinds of staleness: which object is which. Arguments, captured tensors and results that are the same object, alias one another, or are fresh."""

import collections
import types

import backplane as bp
import numpy as np
from staleness_kinds import GUARDED, X, kind


def vector():
    return bp.asarray([1.0, 2.0, 3.0])


@kind
def test_identity_of_arguments(run):
    f, a, b = run(lambda a, b: a * (2.0 if a is b else 3.0)), vector(), vector()
    for pair in ((a, b), (a, a), (b, b), (b, a)):
        yield f(*pair)


@kind
def test_identity_of_an_argument_and_a_captured_tensor(run):
    w = vector()
    f = run(lambda x: x * (2.0 if x is w else 3.0))
    for x in (X, w, X):
        yield f(x)


@kind
def test_argument_in_a_list_of_tensors(run):
    w, v = vector(), vector()
    tensors = [w]
    f = run(lambda x: x * (2.0 if any(t is x for t in tensors) else 3.0))
    for x in (v, w):
        yield f(x)
    tensors.append(v)
    yield f(v)


@kind
def test_id_of_an_argument(run):
    a, b = vector(), vector()
    names = {id(a): 2.0, id(b): 3.0}
    f = run(lambda x: x * names[id(x)])
    yield f(a), f(b)


@kind
def test_tensor_as_a_key(run):
    a, b = vector(), vector()
    state = {a: 2.0, b: 3.0}
    f = run(lambda x: x * state[x])
    yield f(a), f(b)


@kind(GUARDED)
def test_one_tensor_twice_then_two(run):
    def change(a, b):
        a += 1
        return a + b

    a, b = vector(), vector()
    f = run(change, state=lambda: (a, b))
    yield f(a, a)
    yield f(a, b)
    yield f(b, b)


@kind
def test_arguments_that_share_memory(run):
    def change(a, b):
        a += 1
        return a.sum() + b.sum()

    base = bp.arange(6.0)
    f = run(change, state=lambda: base)
    yield f(base[:3], base[3:])
    yield f(base[:4], base[2:])
    yield f(base, base[1:])


@kind
def test_identity_of_objects_in_an_argument(run):
    f, a, b = run(lambda x, pair: x * (2.0 if pair[0] is pair[1] else 3.0)), [1], [1]
    yield f(X, (a, b)), f(X, (a, a))


@kind(GUARDED)
def test_identity_of_captured_objects(run):
    a, b = [1], [1]
    f = run(lambda x: x * (2.0 if first is second else 3.0) + (first == second))
    for first, second in ((a, b), (a, a), (b, a), (None, None)):
        yield f(X)


@kind(GUARDED)
def test_captured_tensor_that_is_replaced(run):
    f = run(lambda x: x * w)
    for w in (vector(), vector() + 1, bp.ones(()), bp.ones((2, 1)), bp.ones(3, dtype=bp.int32), bp.ones(3, dtype=bp.float64)):
        yield f(X)


@kind(GUARDED)
def test_captured_tensor_in_place(run):
    w, table = vector(), {"w": vector()}
    f = run(lambda x: x * w + table["w"])
    yield f(X)
    w += 1
    yield f(X)
    table["w"][0] = 9.0
    yield f(X)
    table["w"] = vector() * 5
    yield f(X)


@kind(GUARDED)
def test_captured_tensor_whose_values_are_read(run):
    w = vector()
    f = run(lambda x: x * w.tolist()[0] + float(w.tolist()[1]) + len(w))
    yield f(X)
    w[0] = 5.0
    yield f(X)
    w = vector() * 2
    yield f(X)


@kind(GUARDED)
def test_gradients_that_are_required(run):
    w = vector()
    f = run(lambda x: x * (2.0 if w.requires_grad else 3.0))
    yield f(X)
    w.requires_grad = True
    yield f(X)


@kind
def test_gradient_of_a_captured_tensor(run):
    w = vector().requires_grad_()
    f = run(lambda x: x if w.grad is None else x * 2)
    yield f(X)
    (w * w).sum().backward()
    yield f(X)


@kind
def test_attribute_of_a_tensor(run):
    w = vector()
    f = run(lambda x: x * getattr(w, "scale", 1.0))
    yield f(X)
    try:
        w.scale = 2.0
    except AttributeError:
        pass
    yield f(X)


# A result, and what it has to do with the argument x, the captured tensor w and the object o.
RESULTS = {
    "the argument": lambda x, w, o: x,
    "in a list": lambda x, w, o: [x, x],
    "detach": lambda x, w, o: x.detach(),
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


def pytest_generate_tests(metafunc):
    for name, table in (("result", RESULTS), ("mutable", MUTABLE)):
        if name in metafunc.fixturenames:
            metafunc.parametrize(name, table)


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


@kind
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
