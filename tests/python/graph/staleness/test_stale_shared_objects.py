"""Kinds of staleness: one object that is reached by two ways, objects that contain themselves, chains of objects that break."""

import types

from staleness_kinds import GUARDED, X, kind


class Plain:
    s = 1.0


@kind(GUARDED)
def test_one_object_by_two_ways(run):
    a = b = [2.0]
    f = run(lambda x: x * a[0] + b[0] * 10)
    yield f(X)
    a = [3.0]
    yield f(X)
    b = a
    yield f(X)
    b[0] = 4.0
    yield f(X)


@kind(GUARDED)
def test_one_object_in_a_variable_and_an_attribute(run):
    shared = Plain()
    o, table = types.SimpleNamespace(sub=shared), {"k": shared}
    f = run(lambda x: x * o.sub.s + table["k"].s * 10 + shared.s * 100)
    yield f(X)
    shared.s = 2.0
    yield f(X)
    o.sub = types.SimpleNamespace(s=5.0)
    yield f(X)
    table["k"] = types.SimpleNamespace(s=7.0)
    yield f(X)
    shared = types.SimpleNamespace(s=9.0)
    yield f(X)


@kind(GUARDED)
def test_argument_that_is_also_a_variable(run):
    o = types.SimpleNamespace(s=2.0)
    f = run(lambda x, p: x * o.s + p.s * 10)
    yield f(X, o)
    yield f(X, types.SimpleNamespace(s=3.0))
    o.s = 4.0
    yield f(X, o)
    o = types.SimpleNamespace(s=5.0)
    yield f(X, o)


@kind(GUARDED)
def test_object_that_contains_itself(run):
    o = types.SimpleNamespace(s=2.0)
    o.self, o.list = o, []
    o.list.append(o.list)
    f = run(lambda x: x * o.self.self.s + len(o.list[0][0]))
    for o.s in (2.0, 3.0):
        yield f(X)
    o.list.append(1)
    yield f(X)


@kind(GUARDED)
def test_long_chain(run):
    root = node = types.SimpleNamespace()
    for _ in range(50):
        node.next = types.SimpleNamespace()
        node = node.next
    node.next, node.s = None, 2.0

    def body(x):
        at = root
        while at.next is not None:
            at = at.next
        return x * at.s

    f = run(body)
    for node.s in (2.0, 3.0):
        yield f(X)
    node.next = types.SimpleNamespace(next=None, s=7.0)
    yield f(X)


def outcome(f, *args):
    try:
        return f(*args)
    except (AttributeError, KeyError, IndexError, TypeError, NameError) as error:
        return type(error).__name__


@kind(GUARDED)
def test_chain_that_breaks(run):
    o = types.SimpleNamespace(sub=types.SimpleNamespace(list=[{"k": 2.0}]))
    f = run(lambda x: x * o.sub.list[0]["k"])
    yield f(X)
    del o.sub.list[0]["k"]
    yield outcome(f, X)
    o.sub.list.clear()
    yield outcome(f, X)
    del o.sub.list
    yield outcome(f, X)
    o.sub = None
    yield outcome(f, X)
    o.sub = types.SimpleNamespace(list=({"k": 3.0},))
    yield f(X)
    o = None
    yield outcome(f, X)
