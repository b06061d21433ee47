"""Kinds of staleness: objects. Attributes by computed names and dicts, data classes, enumerations, methods, kinds of classes."""

import abc
import dataclasses
import enum
import functools
import operator
import types
import typing

from staleness_kinds import GUARDED, X, kind


class Plain:
    s = 1.0


@kind(GUARDED)
def test_getattr_by_a_computed_name(run):
    o, p = Plain(), Plain()
    f = run(lambda x: x * getattr(o, "".join(["s", str(p.index)])))
    o.s1, o.s2, p.index = 2.0, 3.0, 1
    yield f(X)
    p.index = 2
    yield f(X)
    o.s2 = 4.0
    yield f(X)


@kind(GUARDED)
def test_attrgetter(run):
    o = Plain()
    o.sub = Plain()
    read = operator.attrgetter("sub.s")
    f = run(lambda x: x * read(o))
    for o.sub.s in (2.0, 3.0):
        yield f(X)


@kind(GUARDED)
def test_itemgetter(run):
    table, row = {"k": 2.0}, [1.0]
    f = run(lambda x: x * operator.itemgetter("k")(table) + operator.itemgetter(0)(row))
    for table["k"], row[0] in ((2.0, 1.0), (3.0, 1.0), (3.0, 2.0)):
        yield f(X)


@kind(GUARDED)
def test_methodcaller(run):
    table = {"k": 2.0}
    f = run(lambda x: x * operator.methodcaller("get", "k")(table))
    for table["k"] in (2.0, 3.0):
        yield f(X)


@kind(GUARDED)
def test_dict_of_an_object(run):
    o = Plain()
    f = run(lambda x: x * vars(o)["s"] + o.__dict__["s"])
    for o.s in (2.0, 3.0):
        yield f(X)


@kind
def test_dict_of_an_object_that_is_replaced(run):
    o = Plain()
    f = run(lambda x: x * o.s)
    for o.__dict__ in ({"s": 2.0}, {"s": 3.0}, {}):
        yield f(X)


@kind
def test_names_of_an_object(run):
    o = Plain()
    f = run(lambda x: x * len(vars(o)) + sum(name.startswith("w") for name in dir(o)))
    yield f(X)
    o.w = 1
    yield f(X)
    del o.w
    yield f(X)


@kind(GUARDED)
def test_object_that_is_replaced(run):
    f = run(lambda x: x * o.s)
    for s in (2.0, 3.0):
        o = types.SimpleNamespace(s=s)
        yield f(X)


@kind(GUARDED)
def test_dataclass(run):
    @dataclasses.dataclass
    class Config:
        scale: float = 2.0
        sizes: list = dataclasses.field(default_factory=lambda: [1])

    c = Config()
    f = run(lambda x, c: x * c.scale + len(c.sizes))
    yield f(X, c)
    c.scale = 3.0
    yield f(X, c)
    c.sizes.append(2)
    yield f(X, c)
    yield f(X, dataclasses.replace(c, scale=5.0))


@kind(GUARDED)
def test_fields_of_a_dataclass(run):
    @dataclasses.dataclass
    class Config:
        a: float = 2.0
        b: float = 3.0

    c = Config()
    f = run(lambda x: x * sum(getattr(c, field.name) for field in dataclasses.fields(c)) + dataclasses.asdict(c)["a"] + dataclasses.astuple(c)[1])
    for c.a, c.b in ((2.0, 3.0), (4.0, 3.0), (4.0, 5.0)):
        yield f(X)


@kind(GUARDED)
def test_frozen_dataclass(run):
    @dataclasses.dataclass(frozen=True)
    class Config:
        scale: float

    f = run(lambda x: x * c.scale)
    for scale in (2.0, 3.0):
        c = Config(scale)
        yield f(X)
    object.__setattr__(c, "scale", 4.0)
    yield f(X)


@kind(GUARDED)
def test_named_tuple(run):
    class Config(typing.NamedTuple):
        scale: float
        shift: float = 1.0

    f, g = run(lambda x: x * c.scale + c.shift), run(lambda x, c: x * c[0])
    for c in (Config(2.0), Config(3.0), Config(3.0, 2.0)):
        yield f(X), g(X, c)


@kind
def test_enumeration(run):
    class Mode(enum.Enum):
        train = 2.0
        test = 3.0

    f, g = run(lambda x: x * mode.value), run(lambda x, mode: x * (1 if mode is Mode.train else 5) * len(Mode))
    for mode in (Mode.train, Mode.test, Mode["train"], Mode(3.0)):
        yield f(X), g(X, mode)
    Mode.test._value_ = 4.0
    yield f(X)


@kind(GUARDED)
def test_flags_of_an_enumeration(run):
    class Flag(enum.IntFlag):
        a = 1
        b = 2

    f = run(lambda x: x * (2.0 if flags & Flag.b else 1.0))
    for flags in (Flag.a, Flag.a | Flag.b, Flag.b, Flag(0)):
        yield f(X)


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
