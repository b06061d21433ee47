"""Kinds of staleness: objects of the library's kinds of classes. Data classes, named tuples, enumerations."""

import dataclasses
import enum
import typing

from staleness_kinds import GUARDED, X, kind


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
