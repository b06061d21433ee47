"""Kinds of staleness: what the interpreter looks up in classes by itself, and methods that a class gets later."""

import operator
import types

import backplane as bp
import numpy as np
from staleness_kinds import GUARDED, X, kind


def tried(call, otherwise=2.0):
    try:
        return call()
    except (TypeError, KeyError, AttributeError):
        return otherwise


# A special method, its effect, and a program of an object that calls it.
METHODS = {
    "__len__": (lambda s: 5, lambda o: tried(lambda: len(o))),
    "__bool__": (lambda s: False, lambda o: 2.0 if o else 3.0),
    "__eq__": (lambda s, other: True, lambda o: 2.0 if o == 5 else 3.0),
    "__ne__": (lambda s, other: False, lambda o: 2.0 if o != 5 else 3.0),
    "__lt__": (lambda s, other: True, lambda o: tried(lambda: 3.0 if o < 1 else 4.0)),
    "__getattr__": (lambda s, name: 5.0, lambda o: getattr(o, "absent", 2.0)),
    "__getitem__": (lambda s, key: 5.0, lambda o: tried(lambda: o[0])),
    "__iter__": (lambda s: iter([5.0]), lambda o: tried(lambda: sum(o))),
    "__contains__": (lambda s, value: True, lambda o: tried(lambda: 3.0 if 1 in o else 4.0)),
    "__call__": (lambda s: 5.0, lambda o: tried(lambda: o())),
    "__enter__": (lambda s: 5.0, lambda o: tried(lambda: entered(o))),
    "__add__": (lambda s, other: 5.0, lambda o: tried(lambda: o + 1)),
    "__radd__": (lambda s, other: 5.0, lambda o: tried(lambda: 1 + o)),
    "__iadd__": (lambda s, other: 5.0, lambda o: tried(lambda: operator.iadd(o, 1))),
    "__neg__": (lambda s: 5.0, lambda o: tried(lambda: -o)),
    "__float__": (lambda s: 5.0, lambda o: tried(lambda: float(o))),
    "__int__": (lambda s: 5, lambda o: tried(lambda: int(o))),
    "__index__": (lambda s: 1, lambda o: tried(lambda: [3.0, 4.0][o])),
    "__round__": (lambda s: 5, lambda o: tried(lambda: round(o))),
    "__hash__": (lambda s: 5, lambda o: 2.0 if hash(o) == 5 else 3.0),
    "__str__": (lambda s: "ab", lambda o: 2.0 if str(o) == "ab" else 3.0),
    "__repr__": (lambda s: "ab", lambda o: 2.0 if f"{o!r}" == "ab" else 3.0),
    "__format__": (lambda s, form: "ab", lambda o: 2.0 if f"{o}" == "ab" else 3.0),
    "__length_hint__": (lambda s: 5, lambda o: operator.length_hint(o) + 1.0),
    "__array__": (lambda s, dtype=None, copy=None: np.full(3, 5.0), lambda o: tried(lambda: float(np.asarray(o).sum()))),
}
# Of what Python has a class for already, a method that a subclass gets.
OF_SUBCLASSES = {
    "dict item": (lambda c: c(a=1.0), dict, "__getitem__", lambda s, key: 5.0, lambda o: o["a"]),
    "dict missing": (lambda c: c(), dict, "__missing__", lambda s, key: 5.0, lambda o: tried(lambda: o["a"])),
    "dict contains": (lambda c: c(), dict, "__contains__", lambda s, key: True, lambda o: 2.0 if "q" in o else 3.0),
    "dict get": (lambda c: c(a=1.0), dict, "get", lambda s, key: 5.0, lambda o: o.get("a")),
    "list item": (lambda c: c([1.0]), list, "__getitem__", lambda s, i: 5.0, lambda o: o[0]),
    "list iteration": (lambda c: c([1.0]), list, "__iter__", lambda s: iter([5.0]), lambda o: sum(o)),
    "list length": (lambda c: c([1.0]), list, "__len__", lambda s: 5, lambda o: len(o)),
    "list equality": (lambda c: c([1.0]), list, "__eq__", lambda s, other: True, lambda o: 2.0 if o == [9] else 3.0),
    "float sum": (lambda c: c(1.0), float, "__add__", lambda s, other: 5.0, lambda o: o + 1),
    "float conversion": (lambda c: c(1.0), float, "__float__", lambda s: 5.0, lambda o: float(o)),
    "str length": (lambda c: c("ab"), str, "__len__", lambda s: 5, lambda o: len(o)),
}
CONSTRUCTION = {
    "__init__": lambda s: setattr(s, "k", 7.0),
    "__new__": lambda c: types.SimpleNamespace(k=9.0),
    "__setattr__": lambda s, name, value: object.__setattr__(s, name, value * 2),
}
# Methods of a class of classes.
OF_METACLASSES = {
    "__call__": (lambda c: types.SimpleNamespace(k=9.0), lambda A: A().k),
    "__getattr__": (lambda c, name: 5.0, lambda A: getattr(A, "absent", 1.0)),
    "__len__": (lambda c: 5, lambda A: tried(lambda: len(A))),
    "__iter__": (lambda c: iter([5.0]), lambda A: tried(lambda: sum(A))),
    "__getitem__": (lambda c, key: 5.0, lambda A: tried(lambda: A[0])),
    "__contains__": (lambda c, value: True, lambda A: tried(lambda: 3.0 if 1 in A else 4.0)),
    "__eq__": (lambda c, other: True, lambda A: 2.0 if A == 5 else 3.0),
    "__instancecheck__": (lambda c, value: True, lambda A: 2.0 if isinstance(5, A) else 3.0),
    "__subclasscheck__": (lambda c, value: True, lambda A: 2.0 if issubclass(int, A) else 3.0),
}
OF_TENSORS = {
    "method": ("mean", lambda s: s.sum(), lambda x: x.mean()),
    "new method": ("foo", lambda s: s * 3, lambda x: x.foo()),
    "operator": ("__add__", lambda s, other: s * 50, lambda x: x + 1),
    "property": ("T", property(lambda s: s * 7), lambda x: x.T),
    "__len__": ("__len__", lambda s: 9, lambda x: x * len(x)),
}


def entered(o):
    with o as value:
        return value


def pytest_generate_tests(metafunc):
    tables = {"method": METHODS, "of": OF_SUBCLASSES, "construction": CONSTRUCTION, "of_meta": OF_METACLASSES, "of_tensor": OF_TENSORS}
    for name, table in tables.items():
        if name in metafunc.fixturenames:
            metafunc.parametrize(name, table)


@kind(GUARDED)
def test_special_method_that_comes_later(run, method):
    class A:
        def __exit__(self, *failure):
            pass

    function, program = METHODS[method]
    o = A()
    f = run(lambda x: x * program(o))
    yield f(X)
    setattr(A, method, function)
    yield f(X)
    delattr(A, method)
    yield f(X)


@kind(GUARDED)
def test_method_of_a_subclass_that_comes_later(run, of):
    make, base, name, function, program = OF_SUBCLASSES[of]
    A = type("A", (base,), {})
    o = make(A)
    f = run(lambda x: x * program(o))
    yield f(X)
    setattr(A, name, function)
    yield f(X)


@kind(GUARDED)
def test_construction_that_changes(run, construction):
    class A:
        k = 1.0

    def f(x):
        o = A()
        o.j = 2.0
        return x * o.k * getattr(o, "j", 3.0)

    f = run(f)
    yield f(X)
    setattr(A, construction, CONSTRUCTION[construction])
    yield f(X)


@kind(GUARDED)
def test_method_of_a_metaclass_that_comes_later(run, of_meta):
    class M(type):
        __hash__ = type.__hash__

    class A(metaclass=M):
        k = 1.0

    function, program = OF_METACLASSES[of_meta]
    f = run(lambda x: x * program(A))
    yield f(X)
    setattr(M, of_meta, function)
    yield f(X)


@kind(GUARDED)
def test_method_of_tensors(run, of_tensor):
    name, function, program = OF_TENSORS[of_tensor]
    had = bp.Tensor.__dict__.get(name)
    f = run(program)
    if had is not None:
        yield f(X)
    try:
        for made in (function, had):
            if made is not None:
                setattr(bp.Tensor, name, made)
                yield f(X)
        if had is None:
            bp.Tensor.foo = lambda s: s * 5
            yield f(X)
    finally:
        if had is None:
            delattr(bp.Tensor, name)
        else:
            setattr(bp.Tensor, name, had)


@kind(GUARDED)
def test_bases_that_change(run):
    class P:
        def m(self):
            return 2.0

    class Q:
        def m(self):
            return 3.0

    class A(P):
        def m(self):
            return super().m()

    a = A()
    f, g = run(lambda x: x * a.m()), run(lambda x: x * (2.0 if isinstance(a, P) else 3.0))
    yield f(X), g(X)
    A.__bases__ = (Q,)
    yield f(X), g(X)


@kind(GUARDED)
def test_class_that_an_operand_gets(run):
    class A:
        def __neg__(self):
            return 2.0

    class B:
        def __neg__(self):
            return 3.0

    a = A()
    f = run(lambda x: x * -a)
    yield f(X)
    a.__class__ = B
    yield f(X)


@kind(GUARDED)
def test_descriptor_that_becomes_one_of_data(run):
    class D:
        def __get__(self, obj, of=None):
            return 2.0

    class A:
        d = D()

    a = A()
    a.__dict__["d"] = 5.0
    f = run(lambda x: x * a.d)
    yield f(X)
    D.__set__ = lambda self, obj, value: None
    yield f(X)


@kind(GUARDED)
def test_attributes_that_a_module_makes(run):
    m = types.ModuleType("stale_module")
    m.__getattr__ = lambda name: 2.0
    f = run(lambda x: x * m.absent)
    yield f(X)
    m.__getattr__ = lambda name: 3.0
    yield f(X)
    m.absent = 4.0
    yield f(X)
