"""Kinds of staleness: names that code reads that was compiled at run time, and scopes within a function."""

import collections
import types

from staleness_kinds import GUARDED, X, kind


@kind
def test_locals_as_a_dict(run):
    scale = 2.0
    f = run(lambda x: x * scale * len(locals()) + locals()["scale"])
    for scale in (2.0, 3.0):
        yield f(X)


@kind
def test_name_of_a_module_in_an_eval(run):
    global gain
    f = run(lambda x: x * eval("gain * 2"))
    for gain in (2.0, 3.0):
        yield f(X)


@kind
def test_name_of_a_module_in_an_exec(run):
    global gain

    @run
    def f(x):
        found = {"x": x}
        exec("y = x * gain", globals(), found)
        return found["y"]

    for gain in (2.0, 3.0):
        yield f(X)


@kind
def test_code_without_a_file(run):
    names = {"gain": 2.0}
    exec(compile("def f(x):\n  return x * gain", "<stale>", "exec"), names)
    f = run(names["f"])
    for names["gain"] in (2.0, 3.0):
        yield f(X)


@kind
def test_class_body_that_reads_a_closure(run):
    gain = 2.0

    @run
    def f(x):
        class Settings:
            scale = gain

        return x * Settings.scale

    yield f(X)
    gain = 3.0
    yield f(X)


@kind
def test_sign_of_an_object(run):
    class Held:
        def __init__(self):
            self.parts = [2.0]

        def __pos__(self):
            return self.parts[0]

    held, counts = Held(), collections.Counter(a=2, b=-1)
    f = run(lambda x: x * +held + (+counts).total())
    yield f(X)
    held.parts[0] = 3.0
    yield f(X)
    counts["b"] = 4
    yield f(X)


@kind
def test_class_body_that_reads_a_global(run):
    global gain

    @run
    def f(x):
        class Settings:
            scale = gain

        return x * Settings.scale

    for gain in (2.0, 3.0):
        yield f(X)


@kind(GUARDED)
def test_comprehensions_that_read_variables(run):
    global gain
    f = run(lambda x: x * sum([gain * shift for _ in range(2)]) + sum({k: gain for k in range(2)}.values()) + max({shift for _ in range(2)}))
    for gain, shift in ((2.0, 1.0), (3.0, 1.0), (3.0, 2.0)):
        yield f(X)


@kind(GUARDED)
def test_generator_within_the_function(run):
    o = types.SimpleNamespace(s=2.0)

    def numbers():
        yield o.s
        yield from (o.s * i for i in range(2))

    f = run(lambda x: x * sum(numbers()))
    for o.s in (2.0, 3.0):
        yield f(X)


@kind
def test_asynchronous_generator(run):
    o = types.SimpleNamespace(s=2.0)

    async def numbers():
        for i in range(3):
            yield o.s * i

    async def total():
        return sum([v async for v in numbers()])

    def body(x):
        try:
            total().send(None)
        except StopIteration as stop:
            return x * stop.value

    f = run(body)
    for o.s in (2.0, 3.0):
        yield f(X)


@kind(GUARDED)
def test_function_that_is_defined_within(run):
    global gain

    @run
    def f(x):
        def inner(x, scale=gain):
            return x * scale + (lambda: shift)()

        return inner(x)

    for gain, shift in ((2.0, 1.0), (3.0, 1.0), (3.0, 2.0)):
        yield f(X)


@kind(GUARDED)
def test_variable_that_is_assigned_in_a_walrus(run):
    o = types.SimpleNamespace(s=2.0)
    f = run(lambda x: x * scale if (scale := o.s) > 2.5 else x + scale)
    for o.s in (2.0, 3.0, 1.0):
        yield f(X)


@kind(GUARDED)
def test_star_import_within_exec(run):
    names = {}
    exec(compile("from math import *\ndef f(x):\n  return x * floor(gain)", "<stale>", "exec"), names)
    f = run(names["f"])
    for names["gain"] in (2.5, 3.5):
        yield f(X)


@kind
def test_code_object_that_is_made_anew(run):
    o = types.SimpleNamespace(text="x * 2.0")
    f = run(lambda x: eval(o.text, {"x": x}))
    for o.text in ("x * 2.0", "x * 3.0"):
        yield f(X)


@kind
def test_code_object_that_is_changed(run):
    def scaled(x):
        return x * 2.0

    f = run(lambda x: scaled(x))
    yield f(X)
    scaled.__code__ = scaled.__code__.replace(co_consts=tuple(3.0 if c == 2.0 else c for c in scaled.__code__.co_consts))
    yield f(X)


@kind(GUARDED)
def test_code_that_is_shared_by_two_functions(run):
    def make(scale):
        return lambda x: x * scale

    first, second = make(2.0), make(3.0)
    f = run(lambda x: first(x) + second(x))
    yield f(X)
    second.__closure__[0].cell_contents = 4.0
    yield f(X)
    first, second = second, first
    yield f(X)


@kind(GUARDED)
def test_loop_whose_length_is_state(run):
    o = types.SimpleNamespace(n=2)

    def body(x):
        i = 0
        while i < o.n:
            x, i = x * 2.0, i + 1
            if i > o.most:
                break
        else:
            x = x + 1.0
        return x

    f = run(body)
    for o.n, o.most in ((2, 9), (3, 9), (3, 1), (0, 9)):
        yield f(X)


@kind(GUARDED)
def test_assertion_and_debug(run):
    o = types.SimpleNamespace(s=2.0)

    def body(x):
        assert o.s < 3, "too large"
        return x * o.s

    f = run(body)
    for o.s in (2.0, 2.5, 3.5, 2.0):
        try:
            yield f(X)
        except AssertionError as error:
            yield str(error)
