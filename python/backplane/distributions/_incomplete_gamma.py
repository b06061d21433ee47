"""The regularised incomplete gamma functions P(a, x) and Q(a, x), their derivatives in both arguments, and their inverses.

The smaller of P and Q is computed, so that neither loses its digits in its tail:

    P = p · Σ x ** k / ((a) (a + 1) … (a + k))                                  for small x, with p = x ** a · exp(-x) / Γ(a)
    P = p · ∫ u ** (a - 1) · exp(x (1 - u)) du over 0 to 1, Q = the same over 1 to ∞, by Gauss-Legendre quadrature over log u

in float64, with relative errors of some 1e-13. The number of steps is fixed, so that the functions can be traced.
"""

from __future__ import annotations

import math
from typing import Any

import backplane as bp
from backplane import Tensor

from ._distribution import HALF_LOG_2PI
from ._gamma_gradient import legendre, slope
from ._ratios import deviance, stirling

__all__ = ["gammainc", "gammaincc"]

_SMALL, _TERMS, _NODES = 4.0, 64, 64
_NEWTON = 12


def log_density(a: Tensor, z: Tensor, log_z: Tensor) -> Tensor:
    """The logarithm of the density of log z, for a gamma variable z of concentration a and rate 1."""
    return 0.5 * bp.log(a) - HALF_LOG_2PI - stirling(a) - deviance(a, z, log_z)


def _column(numbers, like):
    return bp.asarray(numbers, dtype=like.dtype, device=like.device).reshape((-1,) + (1,) * like.ndim)


def _series(a, z):
    k = _column([float(k) for k in range(1, _TERMS)], a)
    return (1 + bp.sum(bp.cumulative_prod(z / (a + k), axis=0), axis=0)) / a


def _integral(a, z, below):
    """∫ exp(a w - z expm1(w)) dw from 0 to -∞ if below, else to ∞."""
    # Where the exponent has fallen by 40, from bounds of exp; the bound of the upper side becomes smaller with each step.
    far = bp.where(below, (40 + z) / a, 40 / bp.maximum(z - a, 1e-9))
    width = bp.minimum(far, bp.where(below, bp.where(z > 120, bp.sqrt(120 / z), far), bp.sqrt(80 / z)))
    for _ in range(4):
        width = bp.where(below, width, bp.log1p((40 + a * width) / z))
    nodes, weights = legendre(_NODES)
    w = bp.where(below, -width, width) * _column(nodes, a)
    return width * bp.sum(_column(weights, a) * bp.exp(a * w - z * bp.expm1(w)), axis=0)


def _parts(a, z, log_z):
    """(P without its factor p, Q without it, is P the one that is computed, log p), of positive numbers in float64."""
    by_series = (z < _SMALL) & ((z < a) | (z < 0.5))
    below = by_series | (z < a)
    series = _series(a, bp.where(by_series, z, 1.0))
    safe_z = bp.where(by_series, bp.where(a < _SMALL, 2 * _SMALL, 2 * a), z)
    integral = _integral(a, safe_z, below & ~by_series)
    return bp.where(by_series, series, integral), below, log_density(a, z, log_z)


def log_tails(a: Tensor, log_z: Tensor) -> tuple[Tensor, Tensor]:
    """(log P, log Q), of float64."""
    part, below, log_p = _parts(a, bp.exp(log_z), log_z)
    log = bp.minimum(bp.log(part) + log_p, 0.0)
    rest = bp.log(-bp.expm1(log))
    return bp.where(below, log, rest), bp.where(below, rest, log)


def _tails(a, x):
    a, x = a.astype(bp.float64), x.astype(bp.float64)
    inside = (a > 0) & (x > 0) & (a < bp.inf) & (x < bp.inf)
    safe_a, safe_x = bp.where(inside, a, 1.0), bp.where(inside, x, 1.0)
    part, below, log_p = _parts(safe_a, safe_x, bp.log(safe_x))
    found = bp.clip(part * bp.exp(log_p), 0.0, 1.0)
    # Limits: P(a, 0) = 0, P(0, x) = 1, P(a, inf) = 1; no value for negative numbers, nor where both are 0 or infinite.
    none = ~((a >= 0) & (x >= 0)) | ((a == 0) & (x == 0)) | ((a == bp.inf) & (x == bp.inf))
    limit = bp.where(none, bp.nan, bp.where((a == 0) | (x == bp.inf), 1.0, 0.0))
    return bp.where(inside, bp.where(below, found, 1 - found), limit), bp.where(inside, bp.where(below, 1 - found, found), 1 - limit)


def _slopes(a, x):
    """(dP/da, dP/dx)."""
    wide, z = a.astype(bp.float64), x.astype(bp.float64)
    inside = (wide > 0) & (z > 0) & (wide < bp.inf) & (z < bp.inf)
    wide, z = bp.where(inside, wide, 1.0), bp.where(inside, z, 1.0)
    log = bp.log(z)
    density = bp.exp(log_density(wide, z, log))
    at_zero = bp.where((x == 0) & (a <= 1), bp.where(a < 1, bp.inf, 1.0), 0.0)
    return bp.where(inside, -density * slope(wide, log), 0.0), bp.where(inside, density / z, at_zero)


@bp.custom_function
def _lower(a, x):
    return _tails(a, x)[0].astype(x.dtype)


@bp.custom_function
def _upper(a, x):
    return _tails(a, x)[1].astype(x.dtype)


def _rule(function, sign):
    def rule(primals, tangents):
        found = function(*primals)
        total = bp.zeros_like(found)
        for tangent, one in zip(tangents, _slopes(*primals)):
            if tangent is not None:
                total = total + sign * one.astype(found.dtype) * tangent
        return found, total

    return rule


_lower.defjvp(_rule(_lower, 1))
_upper.defjvp(_rule(_upper, -1))


def _arguments(a, x):
    a, x = (t if isinstance(t, (Tensor, int, float)) else bp.asarray(t) for t in (a, x))
    dtype = bp.result_type(a, x) if isinstance(a, Tensor) or isinstance(x, Tensor) else bp.default_dtype()
    dtype = dtype if dtype.kind == "real floating" else bp.default_dtype()
    device = next((t.device for t in (a, x) if isinstance(t, Tensor)), None)
    a, x = bp.broadcast_arrays(*(t.astype(dtype) if isinstance(t, Tensor) else bp.asarray(t, dtype=dtype, device=device) for t in (a, x)))
    return a, x


def gammainc(a: Any, x: Any) -> Tensor:
    """The regularised lower incomplete gamma function P(a, x), for a >= 0 and x >= 0, elementwise. Real floating dtypes; else NaN.

    P is the probability that a gamma variable of concentration a and rate 1 is at most x. Derivatives in a and in x.

    Example:
        >>> bp.gammainc(1.0, 2.0)
        tensor(0.8647)
    """
    return _lower(*_arguments(a, x))


def gammaincc(a: Any, x: Any) -> Tensor:
    """The regularised upper incomplete gamma function Q(a, x) = 1 - P(a, x), which keeps its digits where it is small. See gammainc.

    Example:
        >>> bp.gammaincc(1.0, 2.0)
        tensor(0.1353)
    """
    return _upper(*_arguments(a, x))


def _start(a, log_p, log_q, is_lower):
    """A first log x: by Wilson and Hilferty (1931) where a is not small, else from a bound on the side that Newton's method goes on from."""
    z = bp.where(is_lower, bp.ndtri(bp.exp(bp.where(is_lower, log_p, -1.0))), -bp.ndtri(bp.exp(bp.where(is_lower, -1.0, log_q))))
    cube = 1 - 1 / (9 * a) + z / (3 * bp.sqrt(a))
    bound = bp.where(is_lower, (log_p + bp.lgamma(a + 1)) / a, bp.log(bp.maximum(-log_q, 1e-3)))
    usable = (a >= 1) & (cube > 0.2)
    return bp.where(usable, bp.log(a) + 3 * bp.log(bp.where(usable, cube, 1.0)), bound)


def log_inverse(a: Tensor, log_p: Tensor, log_q: Tensor) -> Tensor:
    """log x with P(a, x) = p, of float64. log P and log Q are concave in log x, so Newton's method converges from one side."""
    is_lower = bp.where(a < 1, log_q > bp.log(0.3 * a), log_p < math.log(0.5))  # of small a: is x below about 1?
    y = _start(a, log_p, log_q, is_lower)
    for _ in range(_NEWTON):
        lower, upper = log_tails(a, y)
        log = bp.where(is_lower, lower, upper)
        away = log - bp.where(is_lower, log_p, log_q)
        step = away * bp.exp(log - log_density(a, bp.exp(y), y))
        step = bp.where(is_lower, step, -step)
        y = y - bp.where(bp.isfinite(step), bp.clip(step, -8.0, 8.0), 0.0)
    return y


def _inverse(a, p, q):
    """x with P(a, x) = p, of the smaller of p and q."""
    a, p, q = (t.astype(bp.float64) for t in (a, p, q))
    inside = (a > 0) & (a < bp.inf) & (p > 0) & (q > 0)
    safe_p, safe_q = bp.where(inside, p, 0.5), bp.where(inside, q, 0.5)
    found = bp.exp(log_inverse(bp.where(inside, a, 1.0), bp.log(safe_p), bp.log(safe_q)))
    none = ~((a > 0) & (a < bp.inf) & (p >= 0) & (q >= 0))
    return bp.where(inside, found, bp.where(none, bp.nan, bp.where(p == 0, 0.0, bp.inf)))


@bp.custom_function
def _quantile(a, p):
    return _inverse(a, p, 1 - p.astype(bp.float64)).astype(p.dtype)


@bp.custom_function
def _upper_quantile(a, q):
    return _inverse(a, 1 - q.astype(bp.float64), q).astype(q.dtype)


def _inverse_rule(function, sign):
    def rule(primals, tangents):
        a, x = primals[0].astype(bp.float64), function(*primals)
        z = x.astype(bp.float64)
        inside = (z > 0) & (z < bp.inf)
        z = bp.where(inside, z, 1.0)
        log, total = bp.log(z), bp.zeros_like(x)
        for tangent, one in zip(tangents, (z * slope(a, log), sign * z * bp.exp(-log_density(a, z, log)))):
            if tangent is not None:
                total = total + bp.where(inside, one, 0.0).astype(x.dtype) * tangent
        return x, total

    return rule


_quantile.defjvp(_inverse_rule(_quantile, 1))
_upper_quantile.defjvp(_inverse_rule(_upper_quantile, -1))


def quantile(a: Tensor, p: Tensor) -> Tensor:
    """x with P(a, x) = p, for p from 0 to 1; else NaN. Derivatives in both arguments."""
    return _quantile(*_arguments(a, p))


def upper_quantile(a: Tensor, q: Tensor) -> Tensor:
    """x with Q(a, x) = q, for q from 0 to 1; else NaN. Derivatives in both arguments."""
    return _upper_quantile(*_arguments(a, q))
