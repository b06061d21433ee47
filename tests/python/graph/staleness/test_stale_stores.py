"""Lost side effects: what a call stores in attributes must be there after each call, as after an eager one."""

import types

import backplane as bp
import numpy as np
from staleness_kinds import X, kind


class Plain:
    s = 1.0


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
    if "store" in metafunc.fixturenames:
        metafunc.parametrize("store", STORES)


@kind
def test_store_into_an_attribute(run, store):
    o = types.SimpleNamespace(t=1, mode="", n=3, other=Plain(), w=bp.ones(2))

    @run(state=lambda: (o.t, o.t is o.other, o.t is o.w, o.t is X))
    def f(x):
        o.t = STORES[store](o, x)  # here
        return x * 2

    for o.n in (3, 4, 4):
        yield f(X)


@kind
def test_counter_that_is_used(run):
    class Adam:
        def __init__(self):
            self.t, self.m, self.v = 0, bp.zeros(3), bp.zeros(3)

        def step(self, g):
            self.t += 1  # here
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
            self.h = bp.tanh(self.h + x)  # here
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
            A.calls += 1  # here
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
            self._s = value  # here

    o = A()

    @run(state=lambda: vars(o))
    def f(x):
        o.s *= 2  # here
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
        o.s += 1  # here
        return x * o.s

    for _ in range(3):
        yield f(X)


@kind
def test_deletion_of_an_attribute(run):
    o = Plain()

    @run(state=lambda: sorted(vars(o)))
    def f(x):
        if "t" in vars(o):
            del o.t  # here
            return x
        return x * 2

    for _ in range(3):
        o.t = 1
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
