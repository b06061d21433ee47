"""Kinds of staleness: functions that wrap others. Decorators, partial functions, caches, dispatch."""

import contextlib
import functools
import operator
import types

import backplane as bp
from staleness_kinds import GUARDED, X, kind


@kind
def test_decorated_function(run):
    def scaling(function):
        @functools.wraps(function)
        def wrapper(*args, **kwargs):
            return function(*args, **kwargs) * wrapper.scale

        return wrapper

    decorated = scaling(lambda x: x + 1)
    f = run(decorated)
    for decorated.scale in (2.0, 3.0):
        yield f(X)
    decorated.__wrapped__ = None
    yield f(X)


@kind(GUARDED)
def test_partial_that_is_replaced(run):
    f = run(lambda x: scaled(x))
    for scaled in (functools.partial(operator.mul, 2.0), functools.partial(operator.mul, 3.0), functools.partial(operator.add, 3.0)):
        yield f(X)


@kind(GUARDED)
def test_keywords_of_a_partial(run):
    scaled = functools.partial(lambda x, scale: x * scale, scale=2.0)
    f, g = run(lambda x: scaled(x)), run(scaled)
    for scaled.keywords["scale"] in (2.0, 3.0):
        yield f(X), g(X)


@kind
def test_object_in_the_arguments_of_a_partial(run):
    scales = [2.0]
    scaled = functools.partial(lambda scales, x: x * scales[0], scales)
    f = run(lambda x: scaled(x))
    for scales[0] in (2.0, 3.0):
        yield f(X)


@kind
def test_cached_function(run):
    o, calls = types.SimpleNamespace(s=2.0), []

    @functools.lru_cache
    def scale(n):
        calls.append(n)
        return o.s * n

    f = run(lambda x, n: x * scale(n), state=lambda: calls)
    yield f(X, 1)
    o.s = 3.0
    yield f(X, 1), f(X, 2)
    scale.cache_clear()
    yield f(X, 1)


@kind
def test_cached_function_of_tensors(run):
    @functools.lru_cache
    def table(n):
        return bp.arange(float(n)) * 2

    f = run(lambda x: x * table(3), state=lambda: table.cache_info().misses)
    for _ in range(3):
        yield f(X)
    yield table(3)


@kind
def test_cache_in_a_dict(run):
    cache = {}

    def table(n):
        if n not in cache:
            cache[n] = bp.arange(float(n)) * 2
        return cache[n]

    f = run(lambda x: x * table(3), state=lambda: cache)
    for _ in range(3):
        yield f(X)


@kind(GUARDED)
def test_cached_number_that_was_there_before(run):
    @functools.cache
    def scale(n):
        return n * 2.0

    scale(3)
    f = run(lambda x: x * scale(3))
    for _ in range(3):
        yield f(X)


@kind
def test_dispatch_by_type(run):
    @functools.singledispatch
    def scaled(value, x):
        return x * 1.0

    @scaled.register
    def _(value: int, x):
        return x * 2.0

    f = run(lambda x, value: scaled(value, x))
    yield f(X, 1), f(X, 1.0), f(X, "a")
    scaled.register(float, lambda value, x: x * 3.0)
    yield f(X, 1), f(X, 1.0), f(X, "a")
    scaled.register(int, lambda value, x: x * 4.0)
    yield f(X, 1), f(X, 1.0)


@kind
def test_dispatching_method(run):
    class A:
        s = 2.0

        @functools.singledispatchmethod
        def scaled(self, value):
            return 1.0

        @scaled.register
        def _(self, value: int):
            return self.s * value

    o = A()
    f = run(lambda x, value: x * o.scaled(value))
    for o.s in (2.0, 3.0):
        yield f(X, 2), f(X, "a")


@kind(GUARDED)
def test_ordering_that_is_derived(run):
    @functools.total_ordering
    class A:
        def __init__(self, s):
            self.s = s

        def __eq__(self, other):
            return self.s == other.s

        def __lt__(self, other):
            return self.s < other.s

        __hash__ = None

    a, b = A(1), A(2)
    f = run(lambda x: x * (2.0 if a >= b else 1.0))
    for a.s in (1, 3, 2):
        yield f(X)


@kind(GUARDED)
def test_function_under_a_context_manager(run):
    o = types.SimpleNamespace(s=2.0, active=1.0)

    @contextlib.contextmanager
    def scaling():
        had, o.active = o.active, o.s
        try:
            yield
        finally:
            o.active = had

    f = run(scaling()(lambda x: x * o.active))
    g = run(lambda x: x * o.active)
    for o.s in (2.0, 3.0):
        yield f(X), o.active
        with scaling():
            yield g(X)


@kind(GUARDED)
def test_exceptions_that_are_suppressed(run):
    table = {}

    def body(x):
        with contextlib.suppress(KeyError):
            return x * table["k"]
        return x

    f = run(body)
    yield f(X)
    table["k"] = 2.0
    yield f(X)
    table.clear()
    yield f(X)


@kind(GUARDED)
def test_functions_that_are_composed(run):
    def composed(*functions):
        return functools.reduce(lambda f, g: lambda x: g(f(x)), functions)

    layers = [lambda x: x * 2.0, lambda x: x + 1.0]
    f = run(lambda x: composed(*layers)(x))
    yield f(X)
    layers.append(lambda x: x * 3.0)
    yield f(X)


@kind(GUARDED)
def test_function_that_makes_functions(run):
    o = types.SimpleNamespace(s=2.0)

    def make(n):
        def layer(x):
            return x * n * o.s

        layer.n = n
        return layer

    f = run(lambda x: sum(layer(x) + layer.n for layer in map(make, range(3))))
    for o.s in (2.0, 3.0):
        yield f(X)
