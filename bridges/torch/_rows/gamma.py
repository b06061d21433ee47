"""What rows of aten.txt call for the regularized incomplete gamma functions: P by its series below x = a, Q by its continued fraction above."""

from __future__ import annotations

import math

import backplane as bp

__all__ = ["igamma", "igammac"]

_STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680)  # of log Gamma, in odd powers of 1 / a
# log Gamma(1 + a) near 0: minus Euler's constant, and zeta(k) / k of either sign.
_NEAR_ONE = (-0.5772156649015329, 0.8224670334241132, -0.40068563438653143, 0.27058080842778454, -0.207385551028674, 0.16955717699740822, -0.14404989676884614)
_LARGE = 20.0  # from here on these are exact in float64


def _minus_log(m, ratio):
    """m - log(ratio) for m = ratio - 1, accurate near 0."""
    s = bp.where(bp.abs(m) < 0.5, m, bp.zeros_like(m))
    s = s / (2 + s)
    squared, series = s * s, bp.zeros_like(m)
    for k in reversed(range(1, 18)):
        series = series * squared + 1 / (2 * k + 1)
    return bp.where(bp.abs(m) < 0.5, m * s - 2 * s * squared * series, m - bp.log(ratio))


def _log_gamma_of_next(a):
    """log Gamma(1 + a), accurate near 0."""
    series, small = bp.zeros_like(a), bp.where(a < 0.005, a, bp.zeros_like(a))
    for c in reversed(_NEAR_ONE):
        series = (series + c) * small
    return bp.where(a < 0.005, series, bp.lgamma(a + 1))


def _factor(a, x):
    """x^a exp(-x) / Gamma(a + 1)."""
    is_large = a > _LARGE
    large = bp.where(is_large, a, bp.full((), _LARGE, dtype=a.dtype))
    inverse = 1 / large
    correction = bp.zeros_like(a)
    for c in reversed(_STIRLING):
        correction = correction * inverse * inverse + c
    by_ratio = bp.exp(-large * _minus_log((x - large) / large, x / large) - correction * inverse) / bp.sqrt(2 * math.pi * large)
    small = bp.where(is_large, bp.ones_like(a), a)
    return bp.where(is_large, by_ratio, bp.exp(small * bp.log(x) - x - bp.lgamma(small + 1)))


def _series(a, x, epsilon):
    """The sum of x^k / ((a + 1) ... (a + k))."""

    def advance(carried):
        k, term, total = carried
        term = term * x / (a + k)
        return [k + 1, term, total + term]

    one = bp.full((), 1.0, dtype=a.dtype)
    return bp.while_loop(lambda carried: bp.any(carried[1] > epsilon * carried[2]), advance, [one, bp.ones_like(a), bp.ones_like(a)])[2]


def _fraction(a, x, epsilon):
    """The continued fraction of Gamma(a, x) exp(x) / x^a, by the algorithm of Lentz."""
    tiny = float(bp.finfo(a.dtype).smallest_normal) / epsilon

    def apart_from_zero(y):
        return bp.where(bp.abs(y) < tiny, bp.full((), tiny, dtype=a.dtype), y)

    def advance(carried):
        k, c, d, found, _ = carried
        numerator, b = k * (a - k), x + 1 - a + 2 * k
        d = 1 / apart_from_zero(numerator * d + b)
        c = apart_from_zero(b + numerator / c)
        return [k + 1, c, d, found * c * d, c * d]

    first = 1 / apart_from_zero(x + 1 - a)
    start = [bp.full((), 1.0, dtype=a.dtype), bp.full(a.shape, 1 / tiny, dtype=a.dtype), first, first, bp.zeros_like(a)]
    return bp.while_loop(lambda carried: bp.any(bp.abs(carried[4] - 1) > epsilon), advance, start)[3]


def _small_upper(a, x):
    """Q for x up to 1.1, where P is near 1."""
    exponent = a * bp.log(x) - _log_gamma_of_next(a)
    power, total = bp.ones_like(x), bp.zeros_like(x)
    for k in range(1, 22):
        power = power * -x / k
        total = total + power / (a + k)
    return -bp.expm1(exponent) - bp.exp(exponent) * a * total


def _both(a, x):
    """(P, Q)."""
    dtype = a.dtype if a.dtype.kind == "real floating" else bp.get_default_dtype()
    a, x = bp.broadcast_arrays(bp.ops.bp.cast(a, dtype), bp.ops.bp.cast(x, dtype))
    if a.size == 0:
        return a, a
    if dtype in (bp.float16, bp.bfloat16):
        return tuple(bp.ops.bp.cast(y, dtype) for y in _both(bp.ops.bp.cast(a, bp.float32), bp.ops.bp.cast(x, bp.float32)))
    is_plain = bp.logical_and(bp.logical_and(a > 0, x > 0), bp.logical_and(bp.isfinite(a), bp.isfinite(x)))
    one = bp.ones_like(a)
    plain_a, plain_x = bp.where(is_plain, a, one), bp.where(is_plain, x, one)
    epsilon = float(bp.finfo(dtype).eps)
    is_upper = bp.logical_and(plain_x > 1.1, plain_x > plain_a)
    factor = _factor(plain_a, plain_x)
    below_a, below_x = bp.where(is_upper, one, plain_a), bp.where(is_upper, one, plain_x)
    above_a, above_x = bp.where(is_upper, plain_a, one), bp.where(is_upper, plain_x, 2 * one)
    lower = bp.minimum(factor * _series(below_a, below_x, epsilon), one)
    upper = factor * plain_a * _fraction(above_a, above_x, epsilon)
    log_x = bp.log(bp.where(below_x <= 0.5, below_x, 0.5 * one))
    is_small = bp.where(below_x <= 0.5, below_a <= -0.4 / log_x, bp.logical_and(below_x <= 1.1, below_a <= 1.1 * below_x))
    rest = bp.where(is_small, _small_upper(bp.where(is_small, below_a, one), bp.where(is_small, below_x, one)), 1 - lower)
    p, q = bp.where(is_upper, 1 - upper, lower), bp.where(is_upper, upper, rest)
    is_wrong = bp.isnan(a) | bp.isnan(x) | (a < 0) | (x < 0) | ((a == 0) & (x == 0)) | (bp.isinf(a) & bp.isinf(x))
    is_one = (a == 0) | bp.logical_and(bp.isinf(x), bp.logical_not(bp.isinf(a)))
    edge = bp.where(is_wrong, bp.full((), bp.nan, dtype=dtype), bp.where(is_one, one, bp.zeros_like(a)))
    return bp.where(is_plain, p, edge), bp.where(is_plain, q, 1 - edge)


def igamma(a, x):
    """P(a, x): 0 at x = 0, 1 at infinity."""
    return _both(a, x)[0]


def igammac(a, x):
    """Q(a, x) = 1 - P(a, x)."""
    return _both(a, x)[1]
