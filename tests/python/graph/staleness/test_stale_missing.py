"""Kinds of staleness: attributes that a class computes, and attributes that are missing at first."""

from staleness_kinds import GUARDED, X, kind


@kind(GUARDED)
def test_getattr_of_the_class(run):
    class A:
        def __init__(self):
            self.held = {"s": 2.0}

        def __getattr__(self, name):
            return self.held[name]

    o = A()
    f = run(lambda x: x * o.s)
    for o.held["s"] in (2.0, 3.0):
        yield f(X)
    o.s = 4.0
    yield f(X)


@kind
def test_getattribute(run):
    class A:
        def __init__(self):
            self.held = {"s": 2.0}

        def __getattribute__(self, name):
            held = object.__getattribute__(self, "held")
            return held[name] if name in held else object.__getattribute__(self, name)

    o = A()
    f = run(lambda x: x * o.s)
    for o.held["s"] in (2.0, 3.0):
        yield f(X)


@kind
def test_getattr_that_is_added_to_the_class(run):
    class A:
        pass

    o = A()
    f = run(lambda x: x * getattr(o, "s", 2.0))
    yield f(X)
    A.__getattr__ = lambda self, name: 3.0
    yield f(X)


@kind(GUARDED)
def test_missing_attribute(run):
    class A:
        pass

    o = A()

    @run
    def f(x):
        try:
            return x * o.s
        except AttributeError:
            return x

    yield f(X)
    o.s = 2.0
    yield f(X)
    del o.s
    yield f(X)
    A.s = 3.0
    yield f(X)


@kind(GUARDED)
def test_hasattr(run):
    class A:
        pass

    o = A()
    f = run(lambda x: x * (2.0 if hasattr(o, "s") else 1.0))
    yield f(X)
    o.s = 0
    yield f(X)
    del o.s
    yield f(X)
    A.s = 0
    yield f(X)
