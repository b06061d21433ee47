"""Kinds of staleness: classes and their methods. Replaced, bound, inherited and registered ones."""

import abc
import functools

from staleness_kinds import GUARDED, X, kind


class Plain:
    s = 1.0


@kind(GUARDED)
def test_monkeypatched_method(run):
    class A:
        def scaled(self, x):
            return x * 2.0

    o = A()
    f = run(lambda x: o.scaled(x))
    yield f(X)
    A.scaled = lambda self, x: x * 3.0
    yield f(X)
    o.scaled = lambda x: x * 4.0
    yield f(X)


@kind(GUARDED)
def test_bound_method(run):
    class A:
        s = 2.0

        def scaled(self, x):
            return x * self.s

    o = A()
    scaled = o.scaled
    f, g, h = run(lambda x: scaled(x)), run(o.scaled), run(lambda x, function: function(x))
    for o.s in (2.0, 3.0):
        yield f(X), g(X), h(X, o.scaled)
    p = A()
    p.s = 7.0
    yield h(X, p.scaled)
    scaled = p.scaled
    yield f(X)


@kind(GUARDED)
def test_super(run):
    class A:
        s = 2.0

        def scaled(self, x):
            return x * self.s

        @property
        def shift(self):
            return 1.0

    class B(A):
        def scaled(self, x):
            return super().scaled(x) + super().shift

    o = B()
    f = run(lambda x: o.scaled(x))
    for A.s in (2.0, 3.0):
        yield f(X)
    A.shift = 5.0
    yield f(X)
    A.scaled = lambda self, x: x
    yield f(X)


@kind(GUARDED)
def test_classmethod_and_staticmethod(run):
    class A:
        s = 2.0

        @classmethod
        def scaled(cls, x):
            return x * cls.s

        @staticmethod
        def shifted(x):
            return x + 1.0

    f, g = run(lambda x: A.scaled(A.shifted(x))), run(A.scaled)
    for A.s in (2.0, 3.0):
        yield f(X), g(X)
    A.shifted = staticmethod(lambda x: x + 2.0)
    yield f(X)


@kind
def test_abstract_class_that_registers(run):
    class Scaled(abc.ABC):
        pass

    o = Plain()
    f = run(lambda x: x * (2.0 if isinstance(o, Scaled) else 1.0))
    yield f(X)
    Scaled.register(Plain)
    yield f(X)


@kind(GUARDED)
def test_type_of_an_object(run):
    f = run(lambda x: x * (2.0 if type(o) is Plain else 3.0 if isinstance(o, list) else 4.0))
    for o in (Plain(), [], (), Plain()):
        yield f(X)


@kind
def test_subclasses(run):
    class A:
        pass

    f = run(lambda x: x * (1 + len(A.__subclasses__())))
    yield f(X)
    kept = [type("B", (A,), {})]
    yield f(X), len(kept)


@kind
def test_name_and_order_of_a_class(run):
    class A:
        pass

    class B(A):
        pass

    f = run(lambda x: x * len(A.__name__) + len(B.__mro__) + len(A.__doc__ or ""))
    yield f(X)
    A.__name__ = "Other"
    yield f(X)
    A.__doc__ = "Text."
    yield f(X)
    B.__bases__ = (type("C", (A,), {}),)
    yield f(X)


@kind
def test_cached_property(run):
    class A:
        base = 2.0

        @functools.cached_property
        def s(self):
            return self.base * 2

    o = A()
    f = run(lambda x: x * o.s, state=lambda: "s" in vars(o))
    yield f(X)
    o.base = 3.0
    yield f(X)
    del o.s
    yield f(X)


@kind
def test_registry_of_a_class(run):
    class A:
        registry = {}

        def __init_subclass__(cls, **options):
            A.registry[cls.__name__] = cls

    f = run(lambda x: x * (1 + len(A.registry)))
    yield f(X)
    kept = [type("B", (A,), {})]
    yield f(X), len(kept)
