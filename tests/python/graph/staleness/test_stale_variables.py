"""Lost side effects: variables of modules and enclosing functions, and attributes of functions, that a call changes."""

import types

from staleness_kinds import X, kind


@kind
def test_global_statement(run):
    global calls
    calls = 0

    @run(state=lambda: calls)
    def f(x):
        global calls
        calls += 1  # here
        return x * calls

    for _ in range(3):
        yield f(X)
    calls = 10
    yield f(X)


@kind
def test_nonlocal_statement(run):
    calls = 0

    @run(state=lambda: calls)
    def f(x):
        nonlocal calls
        calls += 1  # here
        return x * calls

    for _ in range(3):
        yield f(X)
    calls = 10
    yield f(X)


@kind
def test_nonlocal_counter_that_is_not_used(run):
    calls = 0

    @run(state=lambda: calls)
    def f(x):
        nonlocal calls
        calls += 1  # here
        return x * 2

    for _ in range(3):
        yield f(X)


@kind
def test_attribute_of_a_function_as_a_counter(run):
    def counted(x):
        counted.calls += 1  # here
        return x * 2

    counted.calls = 0
    f = run(counted, state=lambda: counted.calls)
    for _ in range(3):
        yield f(X)


@kind
def test_store_of_a_nested_function(run):
    o = types.SimpleNamespace(calls=0)

    def note():
        o.calls += 1  # here

    f = run(lambda x: (note(), x * 2)[1], state=lambda: o.calls)
    for _ in range(3):
        yield f(X)
