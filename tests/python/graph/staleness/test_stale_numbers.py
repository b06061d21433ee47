"""Kinds of staleness: numbers as arguments. Their types, signs and sizes, and a learning rate that differs at each call."""

import types

import backplane as bp
import numpy as np
from staleness_kinds import GUARDED, X, kind


@kind(GUARDED)
def test_number(run):
    f = run(lambda x, n: (x * n, n))
    for n in (2, 2.0, True, 1, 1.0, False, 0, 0.0, -0.0, -0.0, float("nan"), float("inf"), -1, 2**40, 1e30, 2.0):
        yield f(X, n)


@kind(GUARDED)
def test_sign_of_zero(run):
    f = run(lambda x, n: x / bp.asarray(n))
    for n in (0.0, -0.0, 0.0, -0.0):
        yield f(X, n)


@kind(GUARDED)
def test_big_integers(run):
    f = run(lambda x, n: x * (n % 1009))
    for n in (2**70, 2**70 + 1, -(2**70), 2**63, 2**64):
        yield f(X, n)


@kind(GUARDED)
def test_learning_rate(run):
    f = run(lambda p, g, rate: p - rate * g)
    for rate in (0.1, 0.05, 0.025, 0.0125, 0.1, 0.0, 1.0):
        yield f(X, X, rate)


@kind(GUARDED)
def test_learning_rate_that_python_looks_at(run):
    f = run(lambda x, rate: x * rate if rate > 0.05 else x * int(rate * 100) + len(f"{rate:.3f}"))
    for rate in (0.1, 0.2, 0.05, 0.04, 0.03, 0.0375, 0.3):
        yield f(X, rate)


@kind(GUARDED)
def test_learning_rate_as_an_attribute(run):
    o = types.SimpleNamespace(rate=0.1)
    f = run(lambda x: x - o.rate * x)
    for step in range(6):
        o.rate = 0.1 / (1 + step)
        yield f(X)


@kind(GUARDED)
def test_learning_rate_of_another_type(run):
    f = run(lambda x, rate: (x * rate, type(rate).__name__))
    for rate in (0.5, 0.25, 1, 0.125, np.float32(0.5), True, 0.75):
        yield f(X, rate)


@kind(GUARDED)
def test_learning_rate_beside_integers(run):
    f = run(lambda x, rate: x * rate)
    for rate in (0.5, 0.25, 0.125):
        for dtype in (bp.int32, bp.float16, bp.float64, bp.complex64):
            yield f(bp.ones(2, dtype=dtype), rate)


@kind(GUARDED)
def test_learning_rate_as_a_key(run):
    f = run(lambda x, rate: x * {0.5: 2.0, 0.25: 3.0}.get(rate, 1.0) + (rate == 0.125) + hash(rate) % 7)
    for rate in (0.5, 0.25, 0.125, 0.0625):
        yield f(X, rate)


@kind(GUARDED)
def test_learning_rate_that_is_returned(run):
    f = run(lambda x, rate: (x * rate, rate, rate * 2, [rate]))
    for rate in (0.5, 0.25, 0.125, 0.0625):
        yield f(X, rate)


@kind(GUARDED)
def test_learning_rate_as_an_option(run):
    f = run(lambda x, rate: bp.clip(x, 0.0, rate) + bp.full((3,), rate) + bp.linspace(0.0, rate, 3))
    for rate in (0.5, 1.5, 2.5, 0.25):
        yield f(X, rate)


@kind(GUARDED)
def test_learning_rate_in_math(run):
    import math

    f = run(lambda x, rate: x * math.exp(-rate) + math.floor(rate) + round(rate, 1) + max(rate, 1.0) + rate**2)
    for rate in (0.5, 1.5, 2.5, 0.25):
        yield f(X, rate)


@kind(GUARDED)
def test_none_and_strings(run):
    f = run(lambda x, mode: x * {None: 1.0, "a": 2.0, "b": 3.0, "": 4.0}[mode])
    for mode in (None, "a", "b", "", "".join(["a"]), None):
        yield f(X, mode)
