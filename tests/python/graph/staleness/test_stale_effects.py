"""Lost side effects: what a call leaves in attributes, variables and containers must be there after each call, as after an eager one."""

import collections
import io
import types

import backplane as bp
import numpy as np
from staleness_kinds import X, kind


class Plain:
    s = 1.0


# What a call does to a container, and the container.
CHANGES = {
    "append": (lambda a, x: a.append(len(a)), list),
    "append a constant": (lambda a, x: a.append("called"), list),
    "extend": (lambda a, x: a.extend([1, 2]), list),
    "extend by +=": (lambda a, x: a.__iadd__([1]), list),
    "insert": (lambda a, x: a.insert(0, len(a)), list),
    "element": (lambda a, x: a.__setitem__(0, a[0] + 1), lambda: [1.0]),
    "slice": (lambda a, x: a.__setitem__(slice(0, 1), [a[0] + 1, 2]), lambda: [1.0]),
    "del": (lambda a, x: a.__delitem__(0), lambda: [1, 2, 3, 4, 5]),
    "pop": (lambda a, x: a.pop(), lambda: [1, 2, 3, 4, 5]),
    "remove": (lambda a, x: a.remove(min(a)), lambda: [1, 2, 3, 4, 5]),
    "sort": (lambda a, x: a.sort(key=lambda v: -v), lambda: [1, 2, 3]),
    "reverse": (lambda a, x: a.reverse(), lambda: [1, 2, 3]),
    "clear": (lambda a, x: a.clear(), lambda: [1, 2, 3]),
    "dict entry": (lambda d, x: d.__setitem__("n", d.get("n", 0) + 1), dict),
    "dict update": (lambda d, x: d.update(n=len(d), m=2), dict),
    "dict update of a new key": (lambda d, x: d.update({len(d): 1}), dict),
    "dict pop": (lambda d, x: d.pop(len(d) - 1), lambda: dict(enumerate("abcde"))),
    "dict popitem": (lambda d, x: d.popitem(), lambda: dict(enumerate("abcde"))),
    "dict or": (lambda d, x: d.__ior__({len(d): 1}), dict),
    "set add": (lambda s, x: s.add(len(s)), set),
    "set discard": (lambda s, x: s.discard(max(s)), lambda: {1, 2, 3, 4, 5}),
    "deque append": (lambda q, x: q.append(len(q)), collections.deque),
    "deque popleft": (lambda q, x: q.popleft(), lambda: collections.deque(range(9))),
    "deque rotate": (lambda q, x: q.rotate(1), lambda: collections.deque(range(9))),
    "Counter": (lambda c, x: c.update("ab"), collections.Counter),
    "defaultdict": (lambda d, x: d["k"].append(1), lambda: collections.defaultdict(list)),
    "defaultdict entry by a read": (lambda d, x: d[len(d)], lambda: collections.defaultdict(int)),
    "bytearray": (lambda b, x: b.append(len(b)), bytearray),
    "shape": (lambda a, x: a.append(x.shape[0]), list),
    "tensor": (lambda a, x: a.append(x * 2), list),
    "tensor in a dict": (lambda d, x: d.__setitem__("y", x * 2), dict),
    "argument": (lambda a, x: a.append(x), list),
    "array element": (lambda k, x: k.__setitem__(0, k[0] + 1), lambda: np.zeros(3)),
    "array +=": (lambda k, x: k.__iadd__(1), lambda: np.zeros(3)),
    "array fill": (lambda k, x: k.fill(k[0] + 1), lambda: np.zeros(3)),
    "array sort": (lambda k, x: k.sort(), lambda: np.array([3.0, 1.0, 2.0])),
    "array out": (lambda k, x: np.add(k, 1, out=k), lambda: np.zeros(3)),
    "array copyto": (lambda k, x: np.copyto(k, k + 1), lambda: np.zeros(3)),
    "array put": (lambda k, x: np.put(k, [0], k[0] + 1), lambda: np.zeros(3)),
    "array shape": (lambda k, x: setattr(k, "shape", (-1, 1)), lambda: np.zeros(3)),
}
# What a call leaves in an attribute `t` that has been 1.
STORES = {
    "counter": lambda o, x: o.t + 1,
    "number": lambda o, x: 2.5,
    "string": lambda o, x: o.mode + "a",
    "tuple": lambda o, x: (o.t, "a"),
    "None": lambda o, x: None,
    "bool": lambda o, x: not o.t,
    "another object": lambda o, x: o.other,
    "new list": lambda o, x: [1],
    "new dict": lambda o, x: {"shape": x.shape},
    "function": lambda o, x: len,
    "array": lambda o, x: np.ones(2) * 3,
    "shape": lambda o, x: x.shape[0],
    "dtype": lambda o, x: x.dtype,
    "number of NumPy": lambda o, x: np.float32(o.n),
    "tensor": lambda o, x: x * 2,
    "argument": lambda o, x: x,
    "view of the argument": lambda o, x: x[1:],
    "captured tensor": lambda o, x: o.w,
}


def pytest_generate_tests(metafunc):
    for name, table in (("change", CHANGES), ("store", STORES)):
        if name in metafunc.fixturenames:
            metafunc.parametrize(name, table)


@kind
def test_change_of_a_container(run, change):
    do, make = CHANGES[change]
    held = make()

    @run(state=lambda: held)
    def f(x):
        do(held, x)
        return x * 2

    for _ in range(3):
        yield f(X), len(held)


@kind
def test_change_of_a_container_that_is_an_argument(run):
    held, table = [1], {"n": 0}

    @run(state=lambda: (held, table))
    def f(x, held, table):
        held.append(len(held))
        table["n"] += 1
        return x * table["n"]

    for _ in range(3):
        yield f(X, held, table)


@kind
def test_store_into_an_attribute(run, store):
    o = types.SimpleNamespace(t=1, mode="", n=3, other=Plain(), w=bp.ones(2))

    @run(state=lambda: (o.t, o.t is o.other, o.t is o.w, o.t is X))
    def f(x):
        o.t = STORES[store](o, x)
        return x * 2

    for o.n in (3, 4, 4):
        yield f(X)


@kind
def test_counter_that_is_used(run):
    class Adam:
        def __init__(self):
            self.t, self.m, self.v = 0, bp.zeros(3), bp.zeros(3)

        def step(self, g):
            self.t += 1
            self.m[...] = 0.9 * self.m + 0.1 * g
            self.v[...] = 0.99 * self.v + 0.01 * g * g
            return self.m / (1 - 0.9**self.t) / (bp.sqrt(self.v / (1 - 0.99**self.t)) + 1e-8)

    o = Adam()
    f = run(o.step, state=lambda: (o.t, o.m, o.v))
    for _ in range(4):
        yield f(X)


@kind
def test_state_of_a_recurrent_cell(run):
    class Cell:
        h = bp.zeros(3)

        def step(self, x):
            self.h = bp.tanh(self.h + x)
            return self.h

    o = Cell()
    f = run(o.step, state=lambda: o.h)
    for _ in range(3):
        yield f(X)


@kind
def test_store_by_setattr_and_dicts(run):
    o, p, q = Plain(), Plain(), Plain()
    q.s = 1.0

    @run(state=lambda: (o.s, p.s, q.s))
    def f(x):
        setattr(o, "s", o.s + 1)
        vars(p).update(s=p.s + 1)
        q.__dict__["s"] += 1
        return x * o.s + p.s

    for _ in range(3):
        yield f(X)


@kind
def test_store_into_a_class(run):
    class A:
        calls = 0

        def __call__(self, x):
            A.calls += 1
            return x * A.calls

    f = run(A(), state=lambda: A.calls)
    for _ in range(3):
        yield f(X)


@kind
def test_store_through_a_property(run):
    class A:
        def __init__(self):
            self._s = 1.0

        @property
        def s(self):
            return self._s

        @s.setter
        def s(self, value):
            self._s = value

    o = A()

    @run(state=lambda: vars(o))
    def f(x):
        o.s *= 2
        return x * o.s

    for _ in range(3):
        yield f(X)


@kind
def test_store_into_slots(run):
    class A:
        __slots__ = ("s",)

    o = A()
    o.s = 1.0

    @run(state=lambda: o.s)
    def f(x):
        o.s += 1
        return x * o.s

    for _ in range(3):
        yield f(X)


@kind
def test_deletion_of_an_attribute(run):
    o = Plain()

    @run(state=lambda: sorted(vars(o)))
    def f(x):
        if "t" in vars(o):
            del o.t
            return x
        return x * 2

    for _ in range(3):
        o.t = 1
        yield f(X)


@kind
def test_global_statement(run):
    global calls
    calls = 0

    @run(state=lambda: calls)
    def f(x):
        global calls
        calls += 1
        return x * calls

    for _ in range(3):
        yield f(X)
    calls = 10
    yield f(X)


@kind
def test_nonlocal_statement(run):
    calls = 0

    @run(state=lambda: calls)
    def f(x):
        nonlocal calls
        calls += 1
        return x * calls

    for _ in range(3):
        yield f(X)
    calls = 10
    yield f(X)


@kind
def test_nonlocal_counter_that_is_not_used(run):
    calls = 0

    @run(state=lambda: calls)
    def f(x):
        nonlocal calls
        calls += 1
        return x * 2

    for _ in range(3):
        yield f(X)


@kind
def test_attribute_of_a_function_as_a_counter(run):
    def counted(x):
        counted.calls += 1
        return x * 2

    counted.calls = 0
    f = run(counted, state=lambda: counted.calls)
    for _ in range(3):
        yield f(X)


@kind
def test_store_of_a_nested_function(run):
    o = types.SimpleNamespace(calls=0)

    def note():
        o.calls += 1

    f = run(lambda x: (note(), x * 2)[1], state=lambda: o.calls)
    for _ in range(3):
        yield f(X)


@kind
def test_store_of_a_callback_argument(run):
    seen = []
    f = run(lambda x, callback: (callback("step"), x * 2)[1], state=lambda: seen)
    for _ in range(3):
        yield f(X, seen.append)


@kind
def test_text_that_is_written(run):
    file = io.StringIO()

    @run(state=file.getvalue)
    def f(x):
        file.write("called\n")
        return x * 2

    for _ in range(3):
        yield f(X)


@kind
def test_last_result_as_a_number(run):
    o = types.SimpleNamespace(last=0.0)

    @run(state=lambda: o.last)
    def f(x, rate):
        o.last = rate * 2
        return x * rate

    for rate in (1.0, 2.0, 1.0):
        yield f(X, rate)
