"""Objects that a call makes and changes are not state: no function is refused for them, and they are not guarded by their value in the trace."""

import random
import sys
import types

import backplane as bp
import numpy as np
from staleness_kinds import GUARDED, X, kind
from staleness_local import LOCAL


class Layer:
    def __init__(self, s):
        self.children = {"scale": s}
        self.built = False

    def __call__(self, x):
        if not self.built:
            self.built, self.bias = True, 1.0
        return x * self.children["scale"] + self.bias


def pytest_generate_tests(metafunc):
    if "way" in metafunc.fixturenames:
        metafunc.parametrize("way", LOCAL)


@kind(GUARDED)
def test_local_change(run, way):
    o = types.SimpleNamespace(s=2.0)
    f = run(lambda x: x * LOCAL[way](o.s))
    for o.s in (2.0, 3.0, 2.0):
        yield f(X)


@kind(GUARDED)
def test_local_change_by_a_number_argument(run, way):
    f = run(lambda x, s: x * LOCAL[way](s))
    for s in (2.0, 3.0, 4.0, 2.0):
        yield f(X, s)


@kind(GUARDED)
def test_model_that_is_made_within(run):
    o = types.SimpleNamespace(s=2.0)
    f = run(lambda x: Layer(o.s)(Layer(1.0)(x)))
    for o.s in (2.0, 3.0):
        yield f(X)


@kind(GUARDED)
def test_tensors_in_local_containers(run):
    def body(x):
        found, table = [], {}
        for i in range(3):
            found.append(x * i)
            table[i] = found[-1] + 1
        o = types.SimpleNamespace(last=None)
        for t in table.values():
            o.last = t if o.last is None else o.last + t
        cache = {id(t): t for t in found}
        return o.last + sum(found), [t for t in found if id(t) in cache]

    f = run(body)
    for x in (X, X + 1):
        yield f(x)


@kind(GUARDED)
def test_value_that_was_just_stored(run):
    """A place that the function overwrites before it reads it is not an input."""
    o = types.SimpleNamespace(s=1.0, list=[0.0])

    def body(x):
        held = dict(s=o.s)
        held["s"] = 5.0
        return x * held["s"] + o.s

    f = run(body)
    for o.s in (1.0, 2.0):
        yield f(X)


@kind
def test_scratch_attribute(run):
    o = types.SimpleNamespace(scratch=0.0)

    def body(x):
        o.scratch = 3.0
        return x * o.scratch

    f = run(body, state=lambda: o.scratch)
    for o.scratch in (0.0, 1.0, 2.0):
        yield f(X)


@kind
def test_seeded_generator_that_is_made_within(run):
    f = run(lambda x: x * random.Random(3).random() + np.random.default_rng(3).random() + np.random.RandomState(3).rand())
    for _ in range(2):
        yield f(X)


@kind(GUARDED)
def test_generator_of_backplane_that_is_made_within(run):
    f = run(lambda x: x * bp.uniform((3,), generator=bp.Generator(3)))
    for _ in range(3):
        yield f(X)


def test_printing_is_allowed_and_happens_at_the_trace(capsys):
    """A print is not state that a program reads back."""
    f = bp.compile(lambda x: (print("traced"), sys.stdout.write("once\n"), x * 2)[2])
    for _ in range(3):
        assert f(X).tolist() == [2, 4, 6]
    assert capsys.readouterr().out == "traced\nonce\n"
