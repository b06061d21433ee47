"""Kinds of staleness that guards themselves may cause: objects whose memory is used again, values that are equal, methods that a guard would call."""

import types

from staleness_kinds import GUARDED, X, kind


class Plain:
    s = 1.0


@kind(GUARDED)
def test_object_whose_memory_is_used_again(run):
    f = run(lambda x: x * o.s)
    for s in range(12):
        o = None
        o = types.SimpleNamespace(s=float(s))
        yield f(X)


@kind(GUARDED)
def test_function_whose_memory_is_used_again(run):
    def make(k):
        return lambda x: x * k

    f = run(lambda x: act(x))
    for k in range(12):
        act = None
        act = make(float(k))
        yield f(X)


@kind(GUARDED)
def test_list_whose_memory_is_used_again(run):
    o = Plain()
    f = run(lambda x: x * o.list[0] + len(o.list))
    for k in range(12):
        o.list = None
        o.list = [float(k)] * (k + 1)
        yield f(X)


@kind(GUARDED)
def test_class_whose_memory_is_used_again(run):
    f = run(lambda x: x * (2.0 if isinstance(o, c) else 3.0) + c.s)
    o = None
    for k in range(12):
        c = None
        c = type("C", (), {"s": float(k)})
        o = c() if k % 2 else 1
        yield f(X)


@kind(GUARDED)
def test_bound_methods_that_are_made_anew(run):
    class A:
        s = 2.0

        def scaled(self, x):
            return x * self.s

    f = run(lambda x, function: function(x))
    for k in range(4):
        o = A()
        o.s = float(k)
        yield f(X, o.scaled), f(X, o.scaled)


@kind(GUARDED)
def test_more_values_than_are_kept(run):
    o = Plain()
    f = run(lambda x: x * o.s)
    for _ in range(2):
        for k in range(12):
            o.s = float(k)
            yield f(X)


def outcome(f, *args):
    try:
        return f(*args)
    except (AttributeError, KeyError, IndexError, TypeError, NameError) as error:
        return type(error).__name__


@kind(GUARDED)
def test_guards_call_no_comparison_of_the_program(run):
    """What the function does not call, a guard does not call either."""
    seen = []

    class Noted:
        s = 2.0

        def __eq__(self, other):
            seen.append("eq")
            return True

        def __bool__(self):
            seen.append("bool")
            return True

        def __hash__(self):
            seen.append("hash")
            return 1

        def __len__(self):
            seen.append("len")
            return 1

    o = types.SimpleNamespace(held=Noted())
    f = run(lambda x: x * o.held.s, state=lambda: seen)
    yield f(X), f(X)
    o.held = Noted()
    o.held.s = 3.0
    yield f(X)


@kind
def test_keys_with_methods_of_the_program(run):
    class Key:
        def __init__(self, name):
            self.name = name

        def __hash__(self):
            return 1

        def __eq__(self, other):
            return self.name == other.name

    a, b = Key("a"), Key("b")
    d = {a: 2.0, b: 3.0}
    f = run(lambda x: x * d[Key("a")] + d[b])
    for d[a] in (2.0, 3.0):
        yield f(X)
    a.name, b.name = "b", "a"
    yield outcome(f, X)


@kind(GUARDED)
def test_value_that_is_equal_but_another_object(run):
    o = types.SimpleNamespace(s=2.0)
    f = run(lambda x: x * o.s + len(o.name))
    for text in ("2.5", "2.5", "3.5"):
        o.s, o.name = float(text), "".join(["n", text])
        yield f(X)


@kind(GUARDED)
def test_state_that_differs_between_two_compiled_functions(run):
    o = types.SimpleNamespace(s=2.0)

    def body(x):
        return x * o.s

    f, g = run(body), run(body)
    yield f(X), g(X)
    o.s = 3.0
    yield f(X)
    o.s = 4.0
    yield g(X), f(X)
