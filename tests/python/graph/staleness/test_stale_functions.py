"""Kinds of staleness: functions. Cells, defaults, code, attributes, and functions that are passed."""

import operator
import types

from staleness_kinds import GUARDED, X, kind


def make_scaled(scale):
    """A function, and what changes the variable that it closes over."""

    def change(value):
        nonlocal scale
        scale = value

    return lambda x: x * scale, change


@kind(GUARDED)
def test_variable_of_the_enclosing_function(run):
    f = run(lambda x: x * scale)
    for scale in (2.0, 3.0, 2.0):
        yield f(X)


@kind(GUARDED)
def test_variable_two_functions_out(run):
    f = run(lambda x: (lambda: (lambda: x * scale)())())
    for scale in (2.0, 3.0):
        yield f(X)


@kind(GUARDED)
def test_variable_that_a_called_function_closes_over(run):
    scaled, change = make_scaled(2.0)
    f = run(lambda x: scaled(x))
    yield f(X)
    change(3.0)
    yield f(X)


@kind(GUARDED)
def test_variable_that_a_passed_function_closes_over(run):
    scaled, change = make_scaled(2.0)
    f = run(lambda x, function: function(x))
    yield f(X, scaled)
    change(3.0)
    yield f(X, scaled)


@kind(GUARDED)
def test_variable_that_a_function_in_a_passed_container_closes_over(run):
    scaled, change = make_scaled(2.0)
    f = run(lambda x, functions: functions["layers"][0](x))
    yield f(X, {"layers": [scaled]})
    change(3.0)
    yield f(X, {"layers": [scaled]})


@kind(GUARDED)
def test_variable_that_a_function_in_an_attribute_closes_over(run):
    scaled, change = make_scaled(2.0)
    layer = types.SimpleNamespace(act=scaled)
    f = run(lambda x, layer: layer.act(x))
    yield f(X, layer)
    change(3.0)
    yield f(X, layer)


@kind(GUARDED)
def test_another_function_of_the_same_code(run):
    f = run(lambda x, function: function(x))
    for scale in (2.0, 3.0):
        yield f(X, make_scaled(scale)[0])


@kind(GUARDED)
def test_cell_contents(run):
    scaled, _ = make_scaled(2.0)
    f = run(lambda x: scaled(x))
    yield f(X)
    scaled.__closure__[0].cell_contents = 3.0
    yield f(X)


@kind
def test_cell_that_is_read_as_an_object(run):
    scaled, change = make_scaled(2.0)
    f = run(lambda x: x * scaled.__closure__[0].cell_contents)
    yield f(X)
    change(3.0)
    yield f(X)


@kind
def test_empty_cell(run):
    def read(x):
        try:
            return x * scale
        except NameError:
            return x

    f = run(read)
    yield f(X)
    scale = 2.0
    yield f(X)
    del scale
    yield f(X)


@kind(GUARDED)
def test_defaults(run):
    def scaled(x, scale=2.0):
        return x * scale

    f = run(lambda x: scaled(x))
    yield f(X)
    scaled.__defaults__ = (3.0,)
    yield f(X)


@kind(GUARDED)
def test_defaults_of_the_function_itself(run):
    def scaled(x, scale=2.0):
        return x * scale

    f = run(scaled)
    yield f(X)
    scaled.__defaults__ = (3.0,)
    yield f(X)


@kind(GUARDED)
def test_defaults_of_keywords(run):
    def scaled(x, *, scale=2.0):
        return x * scale

    f, g = run(lambda x: scaled(x)), run(scaled)
    yield f(X), g(X)
    scaled.__kwdefaults__["scale"] = 3.0
    yield f(X), g(X)
    scaled.__kwdefaults__ = {"scale": 4.0}
    yield f(X), g(X)


@kind(GUARDED)
def test_default_that_is_mutable(run):
    def scaled(x, scales=[2.0], table={"k": 1.0}):  # noqa: B006
        return x * scales[0] + table["k"]

    f, g = run(lambda x: scaled(x)), run(scaled)
    for scaled.__defaults__[0][0], scaled.__defaults__[1]["k"] in ((2.0, 1.0), (3.0, 1.0), (3.0, 2.0)):
        yield f(X), g(X)


@kind(GUARDED)
def test_default_of_a_lambda(run):
    layers = [lambda x, k=k: x * k for k in (2.0, 3.0)]
    f = run(lambda x: layers[0](layers[1](x)))
    yield f(X)
    layers[0].__defaults__ = (5.0,)
    yield f(X)


@kind(GUARDED)
def test_code(run):
    def scaled(x):
        return x * 2.0

    f, g = run(lambda x: scaled(x)), run(scaled)
    yield f(X), g(X)
    scaled.__code__ = (lambda x: x * 3.0).__code__
    yield f(X), g(X)


@kind(GUARDED)
def test_attribute_of_a_function(run):
    def scaled(x):
        return x * scaled.scale

    f, g = run(lambda x: scaled(x)), run(scaled)
    for scaled.scale in (2.0, 3.0, 2.0):
        yield f(X), g(X)


@kind
def test_name_of_a_function(run):
    def scaled(x):
        return x * len(scaled.__name__) + len(scaled.__doc__ or "")

    f = run(scaled)
    yield f(X)
    scaled.__name__ = "other"
    yield f(X)
    scaled.__doc__ = "Text."
    yield f(X)


@kind(GUARDED)
def test_variable_that_is_another_function(run):
    f = run(lambda x: act(x))
    for act in (lambda x: x * 2.0, lambda x: x * 3.0, abs, operator.neg):
        yield f(X)


@kind(GUARDED)
def test_depth_of_a_recursion(run):
    def power(x, n):
        return x if n == 0 else x * power(x, n - 1)

    f = run(lambda x: power(x, depth))
    for depth in (2, 4, 2):
        yield f(X)
