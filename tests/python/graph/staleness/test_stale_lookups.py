"""Kinds of staleness: attributes that are looked up by computed names, in the dict of an object, or by a function of operator."""

import operator
import types

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
