"""Kinds of staleness: dicts, sets and their relatives, read in every way."""

import collections
import types
import weakref

from staleness_kinds import GUARDED, X, kind

# How a dict is read: a number of it.
READS = {
    "subscript": lambda d: d["k"],
    "get": lambda d: d.get("k", 1.0),
    "get of a missing key": lambda d: d.get("new", 1.0),
    "in": lambda d: 2.0 if "new" in d else 1.0,
    "in keys": lambda d: 2.0 if "new" in d.keys() else 1.0,
    "in values": lambda d: 2.0 if 7.0 in d.values() else 1.0,
    "len": len,
    "bool": lambda d: 2.0 if d else 1.0,
    "first key": lambda d: len(next(iter(d))),
    "last key": lambda d: len(list(d)[-1]),
    "reversed": lambda d: len(next(reversed(d))),
    "values": lambda d: sum(d.values()),
    "items": lambda d: sum(len(k) * v for k, v in d.items()),
    "sorted": lambda d: d[sorted(d)[-1]],
    "max by key": lambda d: d[max(d, key=d.get)],
    "unpacked": lambda d: sum({**d, "more": 1.0}.values()),
    "keywords": lambda d: (lambda **kw: sum(kw.values()))(**d),
    "comparison": lambda d: 2.0 if d == {"k": 2.0, "longer": 1.0} else 1.0,
    "union": lambda d: sum((d | {"more": 1.0}).values()),
    "copy": lambda d: sum(d.copy().values()),
    "comprehension": lambda d: sum({k: v * 2 for k, v in d.items()}.values()),
    "missing": lambda d: caught(d),
    "match": lambda d: matched(d),
    "format": lambda d: len("{k}{longer}".format_map(d)) if "longer" in d else 1,
    "str": lambda d: len(str(d)),
}
MAKES = {
    "dict": dict,
    "OrderedDict": collections.OrderedDict,
    "ChainMap": lambda d: collections.ChainMap(d, {"low": 1.0}),
    "UserDict": collections.UserDict,
    "MappingProxyType": types.MappingProxyType,
    "defaultdict": lambda d: collections.defaultdict(float, d),
}


def caught(d):
    try:
        return d["new"]
    except KeyError:
        return 1.0


def matched(d):
    match d:
        case {"new": value}:
            return value
        case _:
            return 1.0


def pytest_generate_tests(metafunc):
    if "read" in metafunc.fixturenames:
        metafunc.parametrize("read", READS)
    if "make" in metafunc.fixturenames:
        metafunc.parametrize("make", [name for name in MAKES if name != "dict"])


def changes(below):
    """Changes of a dict, one before each step but the first."""
    yield
    below["k"] = 3.0
    yield
    below["new"] = 7.0
    yield
    below["k"] = below.pop("k")
    yield
    del below["longer"]
    yield
    below.clear()
    below["k"] = 2.0
    yield


@kind(GUARDED)
def test_dict(run, read):
    d = {"k": 2.0, "longer": 1.0}
    f = run(lambda x: x * READS[read](d))
    for _ in changes(d):
        yield f(X)


@kind
def test_other_mapping(run, make):
    base = {"k": 2.0, "longer": 1.0}
    d = MAKES[make](base)
    f = run(lambda x: x * (d["k"] + len(d)) + d.get("new", 1.0) + len(next(iter(d))) - sum(d.values()))
    for _ in changes(base if make == "MappingProxyType" else d):
        yield f(X)


@kind
def test_order_of_an_ordered_dict(run):
    d = collections.OrderedDict(a=1.0, b=2.0)
    f = run(lambda x: x * next(iter(d.values())))
    yield f(X)
    d.move_to_end("a")
    yield f(X)


@kind(GUARDED)
def test_counter(run):
    c = collections.Counter("aab")
    f = run(lambda x: x * c["a"] + c["z"] + c.most_common(1)[0][1] + c.total())
    yield f(X)
    c.update("bbbb")
    yield f(X)


@kind
def test_factory_of_a_defaultdict(run):
    d = collections.defaultdict(lambda: 2.0)
    f = run(lambda x: x * d["k"], state=lambda: dict(d))
    yield f(X)
    d["k"] = 3.0
    yield f(X)
    d.clear()
    d.default_factory = lambda: 4.0
    yield f(X)


@kind
def test_setdefault(run):
    d = {}
    f = run(lambda x: x * d.setdefault("k", 2.0), state=lambda: d)
    yield f(X)
    d["k"] = 3.0
    yield f(X)
    del d["k"]
    yield f(X)


@kind(GUARDED)
def test_dict_lookup_by_an_argument(run):
    table = {"a": 2.0, "b": 3.0}
    f = run(lambda x, key: x * table[key])
    yield f(X, "a"), f(X, "b")
    table["a"] = 5.0
    yield f(X, "a"), f(X, "b")


@kind(GUARDED)
def test_dict_in_dicts(run):
    config = {"model": {"layers": [{"scale": 2.0}]}}
    f = run(lambda x: x * config["model"]["layers"][0]["scale"])
    yield f(X)
    config["model"]["layers"][0]["scale"] = 3.0
    yield f(X)
    config["model"] = {"layers": [{"scale": 4.0}]}
    yield f(X)


@kind(GUARDED)
def test_keys_that_are_objects(run):
    first, second = object(), object()
    d = {first: 2.0, second: 3.0, (1, "a"): 4.0, None: 5.0}
    f = run(lambda x: x * d[key])
    for key in (first, second, (1, "a"), None):
        yield f(X)
    d[None] = 6.0
    yield f(X)


@kind(GUARDED)
def test_view_of_a_dict(run):
    d = {"k": 2.0}
    values, keys, items = d.values(), d.keys(), d.items()
    f = run(lambda x: x * sum(values) + len(keys) + sum(v for _, v in items))
    yield f(X)
    d["k"] = 3.0
    yield f(X)
    d["new"] = 1.0
    yield f(X)


@kind(GUARDED)
def test_set(run):
    s = {1.0, 2.0}
    f = run(lambda x: x * sum(s) + len(s) + (5.0 if 7.0 in s else 0.0) + (3.0 if s >= {1.0} else 1.0) + max(s))
    yield f(X)
    s.add(7.0)
    yield f(X)
    s.discard(1.0)
    yield f(X)


@kind(GUARDED)
def test_membership_in_a_set_of_names(run):
    frozen, layers = {"a"}, frozenset("ab")
    f = run(lambda x: x * (2.0 if "a" in frozen else 1.0) + ("c" in layers))
    yield f(X)
    frozen.clear()
    yield f(X)
    layers = frozenset("abc")
    yield f(X)


@kind
def test_weak_key_dictionary(run):
    class Key:
        pass

    key, other = Key(), Key()
    d = weakref.WeakKeyDictionary({key: 2.0})
    f = run(lambda x: x * d[key] + len(d) + d.get(other, 0.0))
    for d[key] in (2.0, 3.0):
        yield f(X)
    d[other] = 4.0
    yield f(X)


@kind
def test_weak_value_dictionary(run):
    class Value:
        s = 2.0

    value = Value()
    d = weakref.WeakValueDictionary(k=value)
    f = run(lambda x: x * (d["k"].s if "k" in d else 1.0))
    for value.s in (2.0, 3.0):
        yield f(X)
    del value
    yield f(X)
