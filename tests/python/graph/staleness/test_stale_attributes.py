"""Kinds of staleness: attributes. Of instances, of classes, of their bases and metaclasses, and through descriptors."""

import types

from staleness_kinds import GUARDED, X, kind


class Plain:
    pass


@kind(GUARDED)
def test_attribute(run):
    o = Plain()
    f, g = run(lambda x: x * o.s), run(lambda x, o: x * o.s)
    for o.s in (2.0, 3.0, 2.0):
        yield f(X), g(X, o)


@kind(GUARDED)
def test_attribute_of_an_attribute(run):
    o = Plain()
    o.sub = Plain()
    o.sub.list = [Plain()]
    f = run(lambda x: x * o.sub.list[0].s)
    for o.sub.list[0].s in (2.0, 3.0, 2.0):
        yield f(X)
    o.sub = types.SimpleNamespace(list=[types.SimpleNamespace(s=5.0)])
    yield f(X)


@kind(GUARDED)
def test_class_attribute(run):
    class A:
        s = 2.0

    f = run(lambda x: x * A.s)
    for A.s in (2.0, 3.0, 2.0):
        yield f(X)


@kind(GUARDED)
def test_class_attribute_of_an_instance(run):
    class A:
        s = 2.0

    o = A()
    f, g = run(lambda x: x * o.s), run(lambda x, o: x * o.s)
    for A.s in (2.0, 3.0):
        yield f(X), g(X, o)
    o.s = 4.0
    yield f(X), g(X, o)
    del o.s
    yield f(X), g(X, o)


@kind(GUARDED)
def test_inherited_class_attribute(run):
    class A:
        s = 2.0

    class B(A):
        pass

    o = B()
    f, g = run(lambda x: x * B.s), run(lambda x: x * o.s)
    for A.s in (2.0, 3.0):
        yield f(X), g(X)
    B.s = 5.0
    yield f(X), g(X)


@kind(GUARDED)
def test_class_attribute_in_a_method(run):
    class A:
        s = 2.0

        @run
        def scaled(self, x):
            return x * self.s

    o = A()
    for A.s in (2.0, 3.0):
        yield o.scaled(X)


@kind
def test_attribute_of_the_metaclass(run):
    class Meta(type):
        s = 2.0

        @property
        def t(cls):
            return cls.u

    class A(metaclass=Meta):
        u = 1.0

    f = run(lambda x: x * A.s + A.t)
    for Meta.s, A.u in ((2.0, 1.0), (3.0, 1.0), (3.0, 2.0)):
        yield f(X)


@kind
def test_bases_of_a_class(run):
    class A:
        s = 2.0

    class B:
        s = 3.0

    class C(A):
        pass

    f = run(lambda x: x * C.s)
    yield f(X)
    C.__bases__ = (B,)
    yield f(X)


@kind
def test_class_of_an_object(run):
    class A:
        s = 2.0

    class B:
        s = 3.0

    o = A()
    f = run(lambda x: x * o.s)
    for o.__class__ in (A, B, A):
        yield f(X)


@kind(GUARDED)
def test_slots(run):
    class A:
        __slots__ = ("s",)

    o = A()
    f = run(lambda x: x * o.s)
    for o.s in (2.0, 3.0):
        yield f(X)


@kind(GUARDED)
def test_property(run):
    class A:
        @property
        def s(self):
            return self._s * 2

    o = A()
    f = run(lambda x: x * o.s)
    for o._s in (2.0, 3.0):
        yield f(X)
    A.s = property(lambda self: 7.0)
    yield f(X)


@kind
def test_descriptor(run):
    class Setting:
        value = 2.0

        def __get__(self, owner, cls):
            return self.value

    class A:
        s = Setting()

    o = A()
    f = run(lambda x: x * o.s)
    for A.__dict__["s"].value in (2.0, 3.0):
        yield f(X)


@kind
def test_data_descriptor_that_is_added_to_the_class(run):
    class A:
        pass

    o = A()
    o.s = 2.0
    f = run(lambda x: x * o.s)
    yield f(X)
    A.s = property(lambda self: 3.0)
    yield f(X)
