"""Guards fail only where something changed: a call whose state is as it was replays, whatever way it read that."""

import itertools
import sys
import types

import backplane as bp
import pytest
from staleness_bodies import BODIES, READS, World
from staleness_kinds import X
from staleness_local import LOCAL
from test_stale_dicts import READS as OF_DICT
from test_stale_forms import TRANSFORMS
from test_stale_reads import OF_CLASS, OF_OBJECT, Setting
from test_stale_sequences import READS as OF_LIST

Sub = type("Sub", (Setting,), {})
# A function of a tensor that reads state of its own, by the way in which it reads.
STEADY = {
    **{f"{body}, {name}": lambda body=body, name=name: TRANSFORMS[name](lambda x, w=World(): BODIES[body][0](w, x)) for body in READS for name in TRANSFORMS if name not in ("compile", "make_graph")},
    **{f"object, {name}": lambda read=read: lambda x, o=Setting(): x * read(o) for name, read in OF_OBJECT.items()},
    **{f"class, {name}": lambda read=read: lambda x, c=Sub, o=Sub(): x * read(c, o) for name, read in OF_CLASS.items()},
    **{f"dict, {name}": lambda read=read: lambda x, d={"k": 2.0, "longer": 1.0}: x * read(d) for name, read in OF_DICT.items()},
    **{f"local, {name}": lambda way=way: lambda x, o=Setting(): x * way(o.s) for name, way in LOCAL.items()},
    **{f"list, {name}": lambda read=read: lambda x, a=[2.0, 1.0]: x * read(a) for name, read in OF_LIST.items()},
}  # fmt: skip


NUMBERS = itertools.count()


def counted(function):
    """The function, compiled, and a counter of its traces. The log keeps only the latest lines, so the name must be unique."""

    def steady(*args):
        return function(*args)

    steady.__name__ = steady.__qualname__ = name = f"steady_{next(NUMBERS)}_"
    return bp.compile(steady), lambda: sum(f"{name}: traced" in line for line in bp.compile_log())


@pytest.mark.parametrize("name", STEADY)
def test_a_call_is_traced_once(name):
    if name == "class, getattr_static" and sys.version_info >= (3, 13):
        pytest.skip("from 3.13 on inspect looks at a weak reference in a cache of its own: each call is traced")
    f, traces = counted(STEADY[name]())
    for _ in range(3):
        f(X)
    assert traces() == 1, bp.compile_log()[-1]


def test_a_learning_rate_that_changes_is_traced_twice_at_most():
    f, traces = counted(lambda p, rate: p - rate * p)
    for step in range(1, 7):
        f(X, 1.0 / step)
    assert 1 <= traces() <= 2, bp.compile_log()[-1]


@pytest.mark.parametrize("use", ["none", "factor", "bias correction", "modulo"])
def test_a_counter_is_state(use):
    o = types.SimpleNamespace(t=0)

    def step(x):
        o.t += 1
        return x * {"none": 2, "factor": o.t, "bias correction": 1 / (1 - 0.9**o.t), "modulo": o.t % 3}[use]

    f, traces = counted(step)
    for _ in range(6):
        f(X)
    assert o.t == 6 and type(o.t) is int and traces() <= 2, bp.compile_log()[-1]


@pytest.mark.parametrize("place", ["attribute", "dict", "list", "nested", "variable"])
def test_a_number_that_changes_is_traced_twice_at_most(place):
    o, table, numbers, rate = types.SimpleNamespace(rate=1.0), {"rate": 1.0}, [1.0], 1.0
    groups = [{"rate": 1.0}]
    reads = {"attribute": lambda: o.rate, "dict": lambda: table["rate"], "list": lambda: numbers[0], "nested": lambda: groups[0]["rate"], "variable": lambda: rate}
    f, traces = counted(lambda x: x - reads[place]() * x)
    for step in range(1, 7):
        o.rate = table["rate"] = numbers[0] = groups[0]["rate"] = rate = 1.0 / step
        assert f(X).tolist() == (X - rate * X).tolist()
    assert traces() <= 2, bp.compile_log()[-1]


def test_a_comparison_makes_a_kind_for_each_outcome():
    f, traces = counted(lambda x, n: x * n if n > 3 else x + n)
    for n in range(9):
        f(X, n)
    assert traces() <= 3, bp.compile_log()[-1]


def test_an_equal_value_is_no_other_value():
    """Numbers, strings and tuples are guarded by value, objects by identity."""
    o = types.SimpleNamespace()
    f, traces = counted(lambda x: x * o.number + len(o.text) + sum(o.pair))
    for _ in range(4):
        o.number, o.text, o.pair = float("1234.5"), "".join(["ab", "c"]), tuple([1000, float("2.5")])
        f(X)
    assert traces() == 1, bp.compile_log()[-1]


def test_what_is_not_read_is_not_guarded():
    o, table = types.SimpleNamespace(s=2.0, other=0), {"k": 2.0, "other": 0}
    f, traces = counted(lambda x: x * o.s + table["k"])
    for value in range(4):
        o.other, table["other"], o.new = value, value, [value]
        f(X)
    assert traces() == 1, bp.compile_log()[-1]
