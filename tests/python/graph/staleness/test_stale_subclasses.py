"""Kinds of staleness: numbers, strings, tuples and bytes of subclasses, which carry attributes or methods of their own."""

import enum
import types

import numpy as np
from staleness_kinds import GUARDED, X, kind


class Float(float):
    pass


class Scaled(float):
    def __mul__(self, other):
        return other * self.k

    __rmul__ = __mul__

    def __float__(self):
        return self.k


class Text(str):
    pass


class Whole(int):
    pass


class Pair(tuple):
    pass


class Raw(bytes):
    pass


class Complex(complex):
    pass


class Single(np.float64):
    pass


# Two equal values of a subclass.
MADE = {
    "float": lambda: Float(2.0),
    "int": lambda: Whole(2),
    "str": lambda: Text("q"),
    "bytes": lambda: Raw(b"q"),
    "tuple": lambda: Pair((1.0,)),
    "complex": lambda: Complex(1.0),
    "float of NumPy": lambda: Single(2.0),
}


class Color(str, enum.Enum):
    RED = "red"
    BLUE = "blue"


class Level(enum.IntEnum):
    LOW = 1


class Height(enum.IntEnum):
    LOW = 1


def pytest_generate_tests(metafunc):
    if "made" in metafunc.fixturenames:
        metafunc.parametrize("made", MADE)


def two(made):
    a, b = MADE[made](), MADE[made]()
    a.k, b.k = 2.0, 3.0
    return a, b


@kind
def test_argument_with_attributes(run, made):
    a, b = two(made)
    f = run(lambda x, v: x * v.k)
    yield f(X, a), f(X, b)
    a.k = 8.0
    yield f(X, a), f(X, b)


@kind
def test_attribute_of_an_attribute(run, made):
    a, b = two(made)
    o = types.SimpleNamespace(v=a)
    f = run(lambda x: x * o.v.k)
    yield f(X)
    o.v = b
    yield f(X)
    b.k = 9.0
    yield f(X)


@kind
def test_entry_with_attributes(run, made):
    a, b = two(made)
    table = {"k": a, "l": [a]}
    f, g = run(lambda x: x * getattr(table["k"], "k", 50.0)), run(lambda x: x * table["l"][0].k)
    yield f(X), g(X)
    table["k"] = table["l"][0] = b
    yield f(X), g(X)
    table["k"] = MADE[made]()
    yield f(X)


@kind
def test_attribute_that_comes_later(run, made):
    a = MADE[made]()
    f = run(lambda x, v: x * getattr(v, "k", 50.0))
    yield f(X, a)
    a.k = 2.0
    yield f(X, a), f(X, MADE[made]())


@kind
def test_number_with_own_arithmetic(run):
    a, b = Scaled(2.0), Scaled(2.0)
    a.k, b.k = 5.0, 7.0
    f, g = run(lambda x, v: v * x), run(lambda x, v: x * float(v))
    yield f(X, a), f(X, b), f(X, 2.0), g(X, a), g(X, b)
    a.k = 6.0
    yield f(X, a), g(X, a)


@kind(GUARDED)
def test_member_of_an_enum(run):
    f = run(lambda x, v: x * (2.0 if v is Color.RED else 3.0))
    g = run(lambda x, v: x * (2.0 if isinstance(v, Level) else 3.0))
    yield f(X, Color.RED), f(X, "red"), f(X, Color.BLUE)
    yield g(X, Level.LOW), g(X, Height.LOW), g(X, 1)


@kind(GUARDED)
def test_equal_value_of_a_subclass(run):
    o = types.SimpleNamespace(v=Float(2.0))
    f = run(lambda x: x * o.v)
    for value in (2.0, 3.0, 2.0):
        o.v = Float(value)
        yield f(X)
