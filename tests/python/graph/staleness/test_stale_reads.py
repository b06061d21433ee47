"""Kinds of staleness: one setting, read in every way that Python has. By statements, by built-in functions, through the library."""

import ast
import contextlib
import copy
import dataclasses
import functools
import inspect
import itertools
import json
import operator
import pickle
import string
import types
import typing
import weakref

from staleness_kinds import GUARDED, X, kind


class Setting:
    t = 2.0

    def __init__(self, s=2.0):
        self.s = s

    def get(self):
        return self.s

    @property
    def doubled(self):
        return self.s * 2

    @classmethod
    def get_of_class(cls):
        return cls.t

    __match_args__ = ("s",)


@contextlib.contextmanager
def value_of(o):
    yield o.s


def generated(o):
    yield o.s


def matched(o):
    match o:
        case Setting(s=value):
            return value


def matched_by_position(o):
    match o:
        case Setting(3.0):
            return 7.0
        case Setting(_):
            return 1.0


def loaded(o):
    with value_of(o) as value:
        return value


def nested_class(o):
    class Inner:
        value = o.s

    return Inner.value


def walrus(o):
    return value if (value := o.s) > 1 else 0.0


def sent(o):
    generator = (yielded for yielded in [o.s])
    return generator.send(None)


# How the attribute `s` of an object is read.
OF_OBJECT = {
    "attribute": lambda o: o.s,
    "method": lambda o: o.get(),
    "method of the class": lambda o: Setting.get(o),
    "bound method": lambda o: (lambda get: get())(o.get),
    "property": lambda o: o.doubled,
    "fget": lambda o: Setting.doubled.fget(o),
    "getattr": lambda o: getattr(o, "s"),
    "getattr with a default": lambda o: getattr(o, "s", 1.0),
    "object.__getattribute__": lambda o: object.__getattribute__(o, "s"),
    "__getattribute__": lambda o: o.__getattribute__("s"),
    "__dict__": lambda o: o.__dict__["s"],
    "vars": lambda o: vars(o).get("s"),
    "values of vars": lambda o: sum(vars(o).values()),
    "unpacked vars": lambda o: {**vars(o)}["s"],
    "keywords of vars": lambda o: (lambda s: s)(**vars(o)),
    "copy of vars": lambda o: dict(o.__dict__)["s"],
    "attrgetter": lambda o: operator.attrgetter("s")(o),
    "methodcaller": lambda o: operator.methodcaller("get")(o),
    "map of getattr": lambda o: next(map(getattr, [o], ["s"])),
    "map of a lambda": lambda o: list(map(lambda p: p.s, [o]))[0],
    "filter": lambda o: 5.0 if list(filter(lambda p: p.s > 2.5, [o])) else 1.0,
    "key of max": lambda o: max([o, Setting(2.5)], key=lambda p: p.s).s,
    "key of sorted": lambda o: sorted([o, Setting(2.5)], key=operator.attrgetter("s"))[0].s,
    "reduce": lambda o: functools.reduce(getattr, ["o", "s"], types.SimpleNamespace(o=o)),
    "partial": lambda o: functools.partial(getattr, o, "s")(),
    "MethodType": lambda o: types.MethodType(lambda self: self.s, o)(),
    "format": lambda o: float("{0.s}".format(o)),
    "format_map": lambda o: float("{s}".format_map(vars(o))),
    "f-string": lambda o: float(f"{o.s}"),
    "percent": lambda o: float("%(s)s" % vars(o)),
    "match": matched,
    "match by position": matched_by_position,
    "context manager": loaded,
    "nullcontext": lambda o: contextlib.nullcontext(o).enter_result.s,
    "generator": lambda o: next(generated(o)),
    "generator expression": lambda o: sum(p.s for p in [o]),
    "generator that is sent to": sent,
    "list comprehension": lambda o: [p.s for p in [o]][0],
    "dict comprehension": lambda o: {"k": p.s for p in [o]}["k"],
    "nested comprehension": lambda o: [[p.s for _ in range(1)] for p in [o]][0][0],
    "lambda in a lambda": lambda o: (lambda: (lambda: o.s)())(),
    "default of a lambda": lambda o: (lambda s=o.s: s)(),
    "class body": nested_class,
    "walrus": walrus,
    "conditional": lambda o: 5.0 if o.s > 2.5 else 1.0,
    "chained comparison": lambda o: 5.0 if 2.5 < o.s < 10 else 1.0,
    "and, or": lambda o: (o.s > 2.5 and 5.0) or 1.0,
    "starred call": lambda o: max(*[o.s, 0.0]),
    "unpacking": lambda o: (lambda pair: pair[0])((o.s, *[1.0])),
    "slice": lambda o: len([1, 2, 3, 4][: int(o.s)]),
    "chain": lambda o: next(itertools.chain([o.s], [])),
    "starmap": lambda o: next(itertools.starmap(getattr, [(o, "s")])),
    "pow": lambda o: pow(o.s, 2),
    "divmod": lambda o: divmod(o.s, 2)[0],
    "operator": lambda o: operator.add(o.s, 1),
    "cast": lambda o: typing.cast(Setting, o).s,
}
# Ways in which few functions read a setting.
RARE = {
    "partialmethod": lambda o: type("P", (Setting,), {"read": functools.partialmethod(Setting.get)}).read(o),
    "copy": lambda o: copy.copy(o).s,
    "deepcopy": lambda o: copy.deepcopy(o).s,
    "pickle": lambda o: pickle.loads(pickle.dumps(o)).s,
    "reduce_ex": lambda o: o.__reduce_ex__(2)[2]["s"],
    "json": lambda o: json.loads(json.dumps(o.__dict__))["s"],
    "Template": lambda o: float(string.Template("$s").substitute(vars(o))),
    "literal_eval": lambda o: ast.literal_eval(repr(o.s)),
    "eval": lambda o: eval("o.s", {"o": o}),
    "exec": lambda o: (lambda names: (exec("s = o.s", names), names["s"])[1])({"o": o}),
    "getmembers": lambda o: dict(inspect.getmembers(o))["s"],
    "getattr_static": lambda o: inspect.getattr_static(o, "s"),
    "weak reference": lambda o: weakref.ref(o)().s,
    "weak method": lambda o: weakref.WeakMethod(o.get)()(),
    "cached function": lambda o: functools.lru_cache(lambda: o.s)(),
    "replace": lambda o: dataclasses.replace(dataclasses.make_dataclass("D", ["s"])(o.s)).s,
    "ExitStack": lambda o: contextlib.ExitStack().enter_context(value_of(o)),
}
# How the attribute `t` of a class is read, of the class or of an object of it.
OF_CLASS = {
    "attribute": lambda c, o: c.t,
    "of an object": lambda c, o: o.t,
    "type": lambda c, o: type(o).t,
    "__class__": lambda c, o: o.__class__.t,
    "classmethod": lambda c, o: c.get_of_class(),
    "classmethod of an object": lambda c, o: o.get_of_class(),
    "getattr": lambda c, o: getattr(c, "t"),
    "vars": lambda c, o: vars(c).get("t", 1.0),
    "__dict__": lambda c, o: c.__dict__["t"] if "t" in c.__dict__ else 1.0,
    "super": lambda c, o: super(c, o).t,
    "type.__getattribute__": lambda c, o: type.__getattribute__(c, "t"),
    "mro": lambda c, o: next(vars(b)["t"] for b in c.__mro__ if "t" in vars(b)),
    "getattr_static": lambda c, o: inspect.getattr_static(o, "t"),
    "getmembers": lambda c, o: dict(inspect.getmembers(c))["t"],
    "attrgetter": lambda c, o: operator.attrgetter("t")(c),
    "hasattr": lambda c, o: 2.0 if hasattr(c, "new") else 1.0,
    "dir": lambda c, o: 2.0 if "new" in dir(o) else 1.0,
    "in vars": lambda c, o: 2.0 if "new" in vars(c) else 1.0,
    "new object": lambda c, o: c().t,
    "subclass made inside": lambda c, o: type("Sub", (c,), {}).t,
}


def pytest_generate_tests(metafunc):
    for name, table in (("of_object", OF_OBJECT), ("rare", RARE), ("of_class", OF_CLASS)):
        if name in metafunc.fixturenames:
            metafunc.parametrize(name, table)


@kind(GUARDED)
def test_attribute_of_a_variable(run, of_object):
    o = Setting()
    f = run(lambda x: x * OF_OBJECT[of_object](o))
    for o.s in (2.0, 3.0, 2.0):
        yield f(X)


@kind
def test_attribute_read_in_a_rare_way(run, rare):
    o, p = Setting(), Setting()
    f, g = run(lambda x: x * RARE[rare](o)), run(lambda x, p: x * RARE[rare](p))
    for o.s, p.s in ((2.0, 2.0), (3.0, 3.0), (2.0, 3.0)):
        yield f(X), g(X, p)


@kind(GUARDED)
def test_attribute_of_an_argument(run, of_object):
    o = Setting()
    f = run(lambda x, o: x * OF_OBJECT[of_object](o))
    for o.s in (2.0, 3.0, 2.0):
        yield f(X, o)


@kind(GUARDED)
def test_attribute_of_a_class(run, of_class):
    base = type("Base", (Setting,), {"t": 2.0})
    c = type("C", (base,), {})
    f = run(lambda x: x * OF_CLASS[of_class](c, o))
    o = c()
    yield f(X)
    base.t = 3.0
    yield f(X)
    c.t = c.new = 4.0
    yield f(X)
    del c.t, c.new
    yield f(X)
