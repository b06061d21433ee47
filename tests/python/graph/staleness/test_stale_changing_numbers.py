"""Kinds of staleness: a number that changes at each call, in every place and in every use."""

import collections
import dataclasses
import fractions
import functools
import heapq
import math
import operator
import types

import backplane as bp
import backplane.nn.functional as F
import numpy as np
import pytest
from staleness_kinds import ANY, GUARDED, X, kind

FLOATS = (0.5, 0.25, 0.75, 1.5, -0.5, 0.0, -0.0, float("inf"), 0.1)
INTS = (1, 2, 3, 5, 0, -1, 7, 1000)


class Slotted:
    __slots__ = ("n",)


@dataclasses.dataclass
class Record:
    n: object


class Owner:
    n = 0


class Property:
    hidden = 0

    @property
    def n(self):
        return self.hidden


class Holder:
    """A place of a number: `put` sets it, `get` is code that a traced function runs."""

    def __init__(self, put, get):
        self.put, self.get = put, get


def of_getattr():
    o = Owner()
    return Holder(lambda n: setattr(o, "n", n), lambda: getattr(o, "n"))


def of_namespace():
    o = types.SimpleNamespace()
    return Holder(lambda n: setattr(o, "n", n), lambda: o.n)


def of_object(o):
    return Holder(lambda n: setattr(o, "n", n), lambda: o.n)


def of_property():
    o = Property()
    return Holder(lambda n: setattr(o, "hidden", n), lambda: o.n)


def of_key(container, key):
    return Holder(lambda n: operator.setitem(container, key, n), lambda: container[key])


def of_nested():
    o = types.SimpleNamespace(groups=[{"n": 0}, {"n": 1}])
    return Holder(lambda n: o.groups[1].__setitem__("n", n), lambda: o.groups[1]["n"])


def of_variable():
    n = 0

    def put(value):
        nonlocal n
        n = value

    return Holder(put, lambda: n)


def of_global():
    names = {}
    exec("def get(): return number", names)
    return Holder(lambda n: names.__setitem__("number", n), names["get"])


def of_default():
    def get(n=0):
        return n

    return Holder(lambda n: setattr(get, "__defaults__", (n,)), lambda: get())


def of_get():
    d = {}
    return Holder(lambda n: d.__setitem__("n", n), lambda: d.get("n"))


def of_class():
    owner = type("Owner", (Owner,), {})
    return Holder(lambda n: setattr(owner, "n", n), lambda: owner.n)


def of_instance_of_class():
    owner = type("Owner", (Owner,), {})
    o = owner()
    return Holder(lambda n: setattr(owner, "n", n), lambda: o.n)


PLACES = {
    "namespace": of_namespace,
    "slot": lambda: of_object(Slotted()),
    "dataclass": lambda: of_object(Record(0)),
    "object": lambda: of_object(Owner()),
    "getattr": of_getattr,
    "property": of_property,
    "module": lambda: of_object(types.ModuleType("settings")),
    "class": of_class,
    "class of an object": of_instance_of_class,
    "dict": lambda: of_key({}, "n"),
    "list": lambda: of_key([0, 1], 1),
    "list from behind": lambda: of_key([0, 1], -1),
    "deque": lambda: of_key(collections.deque([0, 1]), 1),
    "array": lambda: of_key(np.zeros(2), 1),
    "nested": of_nested,
    "variable": of_variable,
    "global": of_global,
    "default": of_default,
    "dict.get": of_get,
}

# Uses of the number beside a tensor.
USES = {
    "product": lambda x, n: x * n,
    "sum on the left": lambda x, n: n + x,
    "difference": lambda x, n: (x - n, n - x),
    "quotient": lambda x, n: x / (n * n + 1),
    "power": lambda x, n: x**n,
    "base": lambda x, n: (n * n + 2) ** x,
    "in place": lambda x, n: operator.imul(x * 1, n),
    "comparison of tensors": lambda x, n: (x < n, x == n, n >= x),
    "where": lambda x, n: bp.where(x > n, n, x),
    "maximum": lambda x, n: bp.maximum(x, n),
    "clip": lambda x, n: bp.clip(x, n, 2.5),
    "keyword": lambda x, n: bp.add(x=x, y=n),
    "slope": lambda x, n: F.leaky_relu(x - 2, n),
    "eps": lambda x, n: F.layer_norm(x, (3,), eps=0.1 + n * n),
    "lerp": lambda x, n: bp.lerp(x, x * 2, n),
    "full": lambda x, n: x + bp.full((3,), n),
    "asarray": lambda x, n: x + bp.asarray(n),
    "list of numbers": lambda x, n: x + bp.asarray([n, 1, n]),
    "sizes": lambda x, n: x + len([n] * 2),
    "arithmetic": lambda x, n: x * (n * 2 + 1 - n / 4 + 3 // (n * n + 1) + n % 3 - (-n)),
    "arithmetic with numbers on the left": lambda x, n: x * (2.5 + n) * (True + n) * (2 - n) * (0.5 < n) + (7.5 // (n * n + 1)),
    "bias correction": lambda x, n: x / (1.5 - 0.9 ** (n * n + 1)),
    "absolute": lambda x, n: x * abs(n) + x * +n,
    "math": lambda x, n: x * math.exp(-n * n) + math.sqrt(n * n) + math.floor(n * n / (1 + n * n)),
    "minimum of numbers": lambda x, n: x * min(n, 0.3) + max(n, 1, 0.2),
    "round": lambda x, n: x * round(n * 10 / (1 + n * n)) + round(n / (1 + n * n), 1),
    "operator": lambda x, n: x * operator.mul(n, 3) + operator.add(0.5, n),
    "branch": lambda x, n: x * n if n > 0.3 else x + n,
    "chain of comparisons": lambda x, n: x * 2 if 0 <= n < 1 else x,
    "truth": lambda x, n: x if n else x * 5,
    "not": lambda x, n: x * (not n),
    "equality": lambda x, n: x * 3 if n == 0.25 or n == 2 else x,
    "match": lambda x, n: x * of_match(n),
    "text": lambda x, n: x + len(f"{n}") + len(str(n)) + len("%s" % n) + len("{:8.3f}".format(n)),
    "repr in a list": lambda x, n: x + len(repr([n])),
    "hash": lambda x, n: x + hash(n) % 5,
    "key": lambda x, n: x + {0.5: 1, 0.25: 2, 2: 4, 3: 9}.get(n, 3),
    "set": lambda x, n: x * len({n, 0.5, 2}),
    "search": lambda x, n: x * (n in (0.5, 2, 3)) + (n in [0.25]),
    "search among them": lambda x, n: x * (2 in [n, 1.5]),
    "type": lambda x, n: x * (2 if type(n) is float else 3) * isinstance(n, int) + (n.__class__ is int),
    "attribute": lambda x, n: x * n.real + n.imag + n.conjugate(),
    "bool": lambda x, n: x * bool(n),
    "complex": lambda x, n: x * abs(n * 0.5 + 0j),
    "fraction": lambda x, n: x * float(fractions.Fraction(1, 3) * round(n / (1 + n * n))),
    "sum of a list": lambda x, n: x * sum([n, 0.5, 1]),
    "sum of a generator": lambda x, n: x * sum(n * w for w in (1, 0.5, 2)),
    "sum of a map": lambda x, n: x * sum(map(lambda w: w * n, (1, 0.5, 2))),
    "reduce": lambda x, n: x * functools.reduce(lambda a, b: a + b * n, (1, 2.5, 3)),
    "minimum over an iterator": lambda x, n: x * min(iter([n, 1.2])) + heapq.nsmallest(1, [n, 1.2])[0],
    "maximum over values of a dict": lambda x, n: x * max({"n": n, "m": 0.4}.values()),
    "sorted": lambda x, n: x * sorted([n, 0.3, 2])[0],
    "sorted by a key": lambda x, n: x * sorted([1, 2, 3], key=lambda i: abs(i - n))[0],
    "map of a function of C": lambda x, n: x * list(map(abs, [n, -1.5]))[0],
    "fsum": lambda x, n: x * math.fsum(w for w in (n * n / (1 + n * n), 0.5)),
    "NumPy": lambda x, n: x * float(np.abs(n)),
    "array of NumPy": lambda x, n: x * float(np.asarray([n, 1.0])[0]),
    "tuple": lambda x, n: (lambda a, b: x * a + b)(*(n, n)),
    "unpacked": lambda x, n: operator.add(*[x, n]),
    "keywords": lambda x, n: (lambda **words: x * words["n"])(n=n),
    "partial": lambda x, n: functools.partial(lambda a, b: a * b, n)(x),
    "partial of a function of C": lambda x, n: x * functools.partial(math.hypot, n)(1.0),
    "own object": lambda x, n: x * Record(n).n,
    "own dict": lambda x, n: x * {"n": n}["n"],
    "own list that is changed": lambda x, n: (lambda a: (a.append(n), a.insert(0, 2), x * a[-1])[2])([]),
    "named tuple": lambda x, n: x * collections.namedtuple("P", "n")(n).n,
    "generator": lambda x, n: [x * v for v in (lambda: (yield from (n, n * 2)))()],
    "closure": lambda x, n: (lambda: x * n)(),
    "gradient": lambda x, n: bp.grad(lambda y: (y * n).sum())(x),
    "argument of a gradient": lambda x, n: bp.grad(lambda y, m: (y * m).sum())(x, n),
    "vmap": lambda x, n: bp.vmap(lambda y: y * n)(x),
    "cond": lambda x, n: bp.cond(x.sum() > 3, lambda y: y * n, lambda y: y - n, x),
    "scan": lambda x, n: bp.scan(lambda c, y: (c + y * n, c), bp.asarray(0.0), x),
    "returned": lambda x, n: (n, [n * 2], {"n": n}, x),
    "returned in an object": lambda x, n: (x * n, frozenset([n])),
    "text of a size": lambda x, n: x * len("a" * (abs(int(n)) if abs(n) < 1e6 else 1)),
    "index": lambda x, n: x[int(n) % 3] if abs(n) < 1e6 else x[0],
    "range": lambda x, n: x + len(range(int(n) % 4 if abs(n) < 1e6 else 1)),
    "half": lambda x, n: (x.astype(bp.float16) * n, (n - x.astype(bp.bfloat16)).astype(bp.float32)),
    "double": lambda x, n: x.astype(bp.float64) * n + n,
    "integers": lambda x, n: x.astype(bp.int32) * n,
    "bools": lambda x, n: (x > 1) * n,
    "complex tensors": lambda x, n: x.astype(bp.complex64) * n,
}


def of_match(n):
    match n:
        case 0.5 | 2:
            return 1
        case float(m):
            return m
        case _:
            return 4


@pytest.mark.parametrize("place", PLACES)
@kind(GUARDED)
def test_number_that_changes(run, place):
    holder = PLACES[place]()
    f = run(lambda x: x * holder.get() + holder.get())
    for n in (*FLOATS[:5], *INTS, 0.5, True, 2):
        holder.put(n)
        yield f(X)


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("numbers", ["floats", "ints", "both"])
@kind(ANY)
def test_use_of_a_number(run, use, numbers):
    f = run(lambda x, n: USES[use](x, n))
    for n in {"floats": FLOATS, "ints": INTS, "both": (0.5, 2, 1.5, 3, True, 0.25, 2, 2.0)}[numbers]:
        try:
            yield f(X, n)
        except (OverflowError, ValueError, ZeroDivisionError) as error:
            if isinstance(error, bp.BackplaneError):
                raise
            yield type(error).__name__


def counts():
    o = types.SimpleNamespace(t=0, history=[], totals={"t": 0}, pair=[0, 0.5])
    return o, lambda: (o.t, type(o.t), list(o.history), dict(o.totals), list(o.pair))


STEPS = {
    "counter": lambda o, x: (setattr(o, "t", o.t + 1), x * o.t)[1],
    "counter that is not used": lambda o, x: (setattr(o, "t", o.t + 1), x)[1],
    "counter in a dict": lambda o, x: (operator.setitem(o.totals, "t", o.totals["t"] + 2), x / o.totals["t"])[1],
    "counter in a list": lambda o, x: (operator.setitem(o.pair, 0, o.pair[0] + 1), x * o.pair[0] ** o.pair[1])[1],
    "history": lambda o, x: (setattr(o, "t", o.t + 1), o.history.append(o.t), x * o.t)[2],
    "history of tuples": lambda o, x: (setattr(o, "t", o.t + 1), o.history.append((o.t, "step")), x)[2],
    "decay": lambda o, x: (operator.setitem(o.pair, 1, o.pair[1] * 0.9), x * o.pair[1])[1],
    "counter that wraps": lambda o, x: (setattr(o, "t", (o.t + 1) % 3), x + o.t)[1],
    "counter with a branch": lambda o, x: (setattr(o, "t", o.t + 1), x if o.t % 2 else -x)[1],
    "reset": lambda o, x: (setattr(o, "t", 0 if o.t > 2 else o.t + 1), x * o.t)[1],
    "constant store, then read": lambda o, x: (x * o.t, setattr(o, "t", 0), x + o.t, setattr(o, "t", 1))[2],
    "object in the history": lambda o, x: (setattr(o, "t", o.t + 1), o.history.append([o.t]), x * o.t)[2],
    "swap": lambda o, x: (o.pair.reverse(), x * o.pair[0])[1],
}


@pytest.mark.parametrize("step", STEPS)
@kind(GUARDED)
def test_number_that_the_function_advances(run, step):
    o, state = counts()
    f = run(lambda x: STEPS[step](o, x), state=state)
    for _ in range(7):
        yield f(X)
    o.t = 1
    yield f(X)


@kind(GUARDED)
def test_adam(run):
    class Adam:
        def __init__(self):
            self.m, self.v, self.t, self.rate = bp.zeros(3), bp.zeros(3), 0, 0.1

        def step(self, p, g):
            self.t += 1
            self.m[...] = 0.9 * self.m + 0.1 * g
            self.v[...] = 0.99 * self.v + 0.01 * g * g
            return p - self.rate * (self.m / (1 - 0.9**self.t)) / ((self.v / (1 - 0.99**self.t)) ** 0.5 + 1e-8)

    o = Adam()
    f = run(o.step, state=lambda: (o.t, type(o.t), o.m.tolist(), o.v.tolist()))
    p = X
    for k in range(6):
        o.rate = 0.1 / (k + 1)
        p = f(p, p * 2)
        yield p


@kind(GUARDED)
def test_number_with_a_tape(run):
    f = run(lambda w, n: (w * n) ** n)
    for n in (0.5, 0.25, 2.0, 3, 1.5):
        w = bp.asarray([1.0, 2.0, 3.0])
        w.requires_grad = True
        f(w, n).sum().backward()
        yield w.grad


def test_a_number_beyond_the_dtype_is_refused_as_eagerly():
    def plus(x, n):
        return x + n

    f, small = bp.compile(plus), bp.asarray([1, 2], dtype=bp.int8)
    for n in (1, 2, 3, 100, 4, 300, 5, -200, 2**70, 6):
        if n in (300, -200, 2**70):
            with pytest.raises(OverflowError) as eager:
                plus(small, n)
            with pytest.raises(type(eager.value)):
                f(small, n)
        else:
            assert f(small, n).tolist() == plus(small, n).tolist()
