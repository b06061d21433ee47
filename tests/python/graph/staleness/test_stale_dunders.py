"""Kinds of staleness: special methods that are replaced on a class after a call that used them, and their reads."""

import copy

from staleness_kinds import GUARDED, X, kind


class Plain:
    s = 1.0


# What uses the method of `o`, and two bodies for it.
USES = {
    "__add__": (lambda x, o: o + x, lambda o, x: x + 2.0, lambda o, x: x + 3.0),
    "__radd__": (lambda x, o: 1.0 + o, lambda o, x: x + 2.0, lambda o, x: x + 3.0),
    "__iadd__": (lambda x, o: x * add_in_place(o, 1.0), lambda o, x: x + 2.0, lambda o, x: x + 3.0),
    "__mul__": (lambda x, o: x * (o * 1.0), lambda o, x: 2.0, lambda o, x: 3.0),
    "__neg__": (lambda x, o: x * -o, lambda o: 2.0, lambda o: 3.0),
    "__abs__": (lambda x, o: x * abs(o), lambda o: 2.0, lambda o: 3.0),
    "__matmul__": (lambda x, o: x * (o @ o), lambda o, x: 2.0, lambda o, x: 3.0),
    "__call__": (lambda x, o: o(x), lambda o, x: x * 2.0, lambda o, x: x * 3.0),
    "__len__": (lambda x, o: x * len(o), lambda o: 2, lambda o: 3),
    "__bool__": (lambda x, o: x * (2.0 if o else 3.0), lambda o: True, lambda o: False),
    "__iter__": (lambda x, o: x * sum(o), lambda o: iter([2.0]), lambda o: iter([2.0, 1.0])),
    "__contains__": (lambda x, o: x * (2.0 if 1 in o else 3.0), lambda o, k: True, lambda o, k: False),
    "__getitem__": (lambda x, o: x * o["k"], lambda o, k: 2.0, lambda o, k: 3.0),
    "__eq__": (lambda x, o: x * (2.0 if o == 1 else 3.0), lambda o, k: True, lambda o, k: False),
    "__ne__": (lambda x, o: x * (2.0 if o != 1 else 3.0), lambda o, k: True, lambda o, k: False),
    "__lt__": (lambda x, o: x * (2.0 if o < 1 else 3.0), lambda o, k: True, lambda o, k: False),
    "__hash__": (lambda x, o: x * hash(o), lambda o: 2, lambda o: 3),
    "__index__": (lambda x, o: x * [2.0, 3.0][o], lambda o: 0, lambda o: 1),
    "__float__": (lambda x, o: x * float(o), lambda o: 2.0, lambda o: 3.0),
    "__int__": (lambda x, o: x * int(o), lambda o: 2, lambda o: 3),
    "__round__": (lambda x, o: x * round(o), lambda o: 2, lambda o: 3),
    "__format__": (lambda x, o: x * len(f"{o}"), lambda o, spec: "ab", lambda o, spec: "abc"),
    "__str__": (lambda x, o: x * len(str(o)), lambda o: "ab", lambda o: "abc"),
    "__repr__": (lambda x, o: x * len("%r" % o), lambda o: "ab", lambda o: "abc"),
    "__enter__": (lambda x, o: x * entered(o), lambda o: 2.0, lambda o: 3.0),
    "__reversed__": (lambda x, o: x * next(reversed(o)), lambda o: iter([2.0]), lambda o: iter([3.0])),
    "__copy__": (lambda x, o: x * copy.copy(o), lambda o: 2.0, lambda o: 3.0),
    "__init__": (lambda x, o: x * type(o)().s, lambda o: setattr(o, "s", 2.0), lambda o: setattr(o, "s", 3.0)),
    "__getattr__": (lambda x, o: x * o.t, lambda o, name: 2.0, lambda o, name: 3.0),
    "__class_getitem__": (lambda x, o: x * type(o)["k"], classmethod(lambda c, k: 2.0), classmethod(lambda c, k: 3.0)),
    "__set_name__": (lambda x, o: x * type("B", (), {"a": o}).a.s, lambda o, c, name: setattr(o, "s", 2.0), lambda o, c, name: setattr(o, "s", 3.0)),
}  # fmt: skip


def add_in_place(o, value):
    o += value
    return o


def entered(o):
    with o as value:
        return value


# Those whose use may be refused.
RARE = ("__round__", "__format__", "__str__", "__repr__", "__hash__", "__reversed__", "__copy__", "__class_getitem__", "__set_name__", "__matmul__", "__iadd__", "__ne__", "__index__")


def pytest_generate_tests(metafunc):
    if "method" in metafunc.fixturenames:
        metafunc.parametrize("method", [name for name in USES if name not in RARE])
    if "rare" in metafunc.fixturenames:
        metafunc.parametrize("rare", RARE)


@kind(GUARDED)
def test_special_method_that_is_replaced(run, method):
    yield from replaced(run, method)


@kind
def test_rare_special_method_that_is_replaced(run, rare):
    yield from replaced(run, rare)


def replaced(run, method):
    use, first, second = USES[method]
    o = type("A", (Plain,), {"__exit__": lambda *_: None})()
    f = run(lambda x: use(x, o))
    for body in (first, second, first):
        setattr(type(o), method, body)
        yield f(X)


@kind(GUARDED)
def test_special_method_that_reads_an_attribute(run):
    class Schedule:
        def __init__(self):
            self.rate, self.rates = 2.0, [1.0]

        def __call__(self, x):
            return x * self.rate

        def __float__(self):
            return self.rate

        def __len__(self):
            return len(self.rates)

        def __getitem__(self, index):
            return self.rates[index]

    s = Schedule()
    f = run(lambda x: s(x) + float(s) * len(s) - s[-1] + sum(s))
    yield f(X)
    s.rate = 3.0
    yield f(X)
    s.rates.append(5.0)
    yield f(X)


@kind(GUARDED)
def test_missing_of_a_dict(run):
    class Table(dict):
        fallback = 2.0

        def __missing__(self, key):
            return self.fallback

    table = Table()
    f = run(lambda x: x * table["k"])
    yield f(X)
    table.fallback = 3.0
    yield f(X)
    table["k"] = 4.0
    yield f(X)


@kind(GUARDED)
def test_reflected_operator_of_an_object(run):
    class Scale:
        s = 2.0

        def __rmul__(self, x):
            return x * self.s

        __array_priority__ = 1000

    o = Scale()
    f = run(lambda x: x * o)
    for o.s in (2.0, 3.0):
        yield f(X)
    Scale.__rmul__ = lambda self, x: x + 1.0
    yield f(X)


@kind(GUARDED)
def test_context_manager_with_state(run):
    class Scaling:
        active = 1.0

        def __enter__(self):
            Scaling.active = self.s

        def __exit__(self, *_):
            Scaling.active = 1.0

    o = Scaling()

    @run
    def f(x):
        with o:
            return x * Scaling.active

    for o.s in (2.0, 3.0):
        yield f(X), Scaling.active
