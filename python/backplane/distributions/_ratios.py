"""Logarithms of ratios of gamma functions, without the cancellation of lgamma between large numbers.

The parts are the error of Stirling's formula and the deviance: Loader, "Fast and accurate computation of binomial probabilities", 2000.
"""

from __future__ import annotations

import backplane as bp
from backplane import Tensor

from ._distribution import HALF_LOG_2PI

__all__ = []

_LARGE = 16.0  # from here on, seven terms are exact to float64
_ERROR = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156)
_SLOPE = (-1 / 12, 1 / 120, -1 / 252, 1 / 240, -1 / 132, 691 / 32760, -1 / 12)
_NEAR = 0.1  # below it, eight terms of the deviance are exact to float64


def _series(x, factors):
    """factors[0] + factors[1] / x² + factors[2] / x⁴ + …"""
    step, total = 1 / (x * x), factors[-1]
    for factor in reversed(factors[:-1]):
        total = total * step + factor
    return total


def _split(x):
    """Whether x is large, and x for the formula of large and of small numbers."""
    is_large = x >= _LARGE
    return is_large, bp.where(is_large, x, _LARGE), bp.where(is_large, 1.0, x)


def stirling(x: Tensor) -> Tensor:
    """lgamma(x) - ((x - 1/2) log(x) - x + log(2π) / 2), for x > 0."""
    is_large, large, small = _split(x)
    return bp.where(is_large, _series(large, _ERROR) / large, bp.lgamma(small) - (small - 0.5) * bp.log(small) + small - HALF_LOG_2PI)


def stirling_slope(x: Tensor) -> Tensor:
    """The derivative of stirling: digamma(x) - log(x) + 1 / (2 x), for x > 0."""
    is_large, large, small = _split(x)
    return bp.where(is_large, _series(large, _SLOPE) / (large * large), bp.digamma(small) - bp.log(small) + 0.5 / small)


def deviance(x: Tensor, mean: Tensor, log_mean: Tensor) -> Tensor:
    """x log(x / mean) + mean - x, for x > 0 and mean >= 0."""
    finite = mean < bp.inf
    mean = bp.where(finite, mean, 1)
    ratio = (x - mean) / (x + mean)
    is_near = bp.abs(ratio) < _NEAR
    near = bp.where(is_near, ratio, 0)
    square = near * near
    total: Tensor | float = 1 / 17
    for k in range(15, 1, -2):
        total = total * square + 1 / k
    found = bp.where(is_near, (x - mean) * near + 2 * x * near * square * total, x * (bp.log(x) - log_mean) + mean - x)
    return bp.where(finite, found, bp.inf)


def divergence(x: Tensor, y: Tensor) -> Tensor:
    """x log(x / y) + y - x, for numbers from 0 on."""
    is_zero = x == 0
    mean = bp.where(is_zero, 1, y)
    return bp.where(is_zero, y, deviance(bp.where(is_zero, 1, x), mean, bp.log(mean)))


def gamma_divergence(a: Tensor, b: Tensor, ratio: Tensor) -> Tensor:
    """The divergence of gamma variables of concentrations a and b; ratio: the second rate by the first."""
    away = stirling(b) - stirling(a) - (b - a) * stirling_slope(a)
    return divergence(b, a * ratio) + 0.5 * divergence(bp.ones_like(a), b / a) + away


def log_beta(a: Tensor, b: Tensor) -> Tensor:
    """The logarithm of the beta function."""
    powers = -(a - 0.5) * bp.log1p(b / a) - b * bp.log1p(a / b)
    return powers - 0.5 * bp.log(b) + HALF_LOG_2PI + stirling(a) + stirling(b) - stirling(a + b)


def log_poisson(count: Tensor, rate: Tensor, log_rate: Tensor | None = None) -> Tensor:
    """count log(rate) - rate - lgamma(count + 1), for counts from 0 on."""
    is_zero = count == 0
    k, mean = bp.where(is_zero, 1, count), bp.where(is_zero, 1, rate)
    log_mean = bp.log(mean) if log_rate is None else bp.where(is_zero, 0, log_rate)
    some = -deviance(k, mean, log_mean) - 0.5 * bp.log(k) - HALF_LOG_2PI - stirling(k)
    return bp.where(is_zero, -rate, some)


def log_binomial(hits: Tensor, misses: Tensor, log_p: Tensor, log_q: Tensor) -> Tensor:
    """The logarithm of the probability of so many hits and misses in any order, for numbers from 0 on; log_q: log(1 - exp(log_p))."""
    inside = (hits > 0) & (misses > 0)
    k, m = bp.where(inside, hits, 1), bp.where(inside, misses, 1)
    n, p, q = k + m, bp.where(inside, log_p, -1), bp.where(inside, log_q, -1)
    away = deviance(k, n * bp.exp(p), bp.log(n) + p) + deviance(m, n * bp.exp(q), bp.log(n) + q)
    found = stirling(n) - stirling(k) - stirling(m) - away + 0.5 * (bp.log(n) - bp.log(k) - bp.log(m)) - HALF_LOG_2PI
    return bp.where(inside, found, times(hits, log_p) + times(misses, log_q))


def times(x: Tensor, log: Tensor) -> Tensor:
    """x · log, which is 0 where x is 0, also if log is infinite."""
    return bp.where(x == 0, 0, x * bp.where(x == 0, 0, log))


def log1mexp(x: Tensor) -> Tensor:
    """log(1 - exp(x)), for x <= 0."""
    is_near = x > -0.5
    near, far = bp.where(is_near, x, -1), bp.where(is_near, -1, x)
    return bp.where(is_near, bp.log(-bp.expm1(near)), bp.log1p(-bp.exp(far)))


def log1p_square(x: Tensor) -> Tensor:
    """log(1 + x²), also where x² is too large for the dtype."""
    is_huge = bp.abs(x) > 1e8
    huge, rest = bp.where(is_huge, x, 1), bp.where(is_huge, 0, x)
    return bp.where(is_huge, 2 * bp.log(bp.abs(huge)), bp.log1p(rest * rest))


def log_dirichlet(a: Tensor, x: Tensor, log_x: Tensor) -> Tensor:
    """The logarithm of Dirichlet's density of concentrations a (*, n) at x, for positive elements of x."""
    total = bp.sum(a, axis=-1, keepdims=True)
    away = deviance(a, total * x, bp.log(total) + log_x)
    parts = 0.5 * bp.log(a) - stirling(a) - log_x - away - HALF_LOG_2PI
    n = total[..., 0]
    return bp.sum(parts, axis=-1) - 0.5 * bp.log(n) + stirling(n) + HALF_LOG_2PI + n * (bp.sum(x, axis=-1) - 1)


def dirichlet_entropy(a: Tensor) -> Tensor:
    """The entropy of Dirichlet's distribution of concentrations a (*, n)."""
    n, count = bp.sum(a, axis=-1), a.shape[-1]
    logs = -0.5 * bp.log(n) - 0.5 * bp.sum(bp.log(n[..., None] / a), axis=-1) - (0.5 * count - 1) * bp.log(n)
    parts = stirling(a) - (a - 1) * (stirling_slope(a) - 0.5 / a) + HALF_LOG_2PI
    whole = stirling(n) - (n - count) * (stirling_slope(n) - 0.5 / n) + HALF_LOG_2PI
    return logs + bp.sum(parts, axis=-1) - whole


def gamma_entropy(a: Tensor) -> Tensor:
    """The entropy of a gamma variable of concentration a and rate 1: a + lgamma(a) + (1 - a) digamma(a)."""
    return 0.5 * bp.log(a) + 0.5 + HALF_LOG_2PI - 0.5 / a + stirling(a) + (1 - a) * stirling_slope(a)


