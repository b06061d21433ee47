"""PyTorch's special functions that the registry does not have: orthogonal polynomials, incomplete gamma functions and their kin."""

from __future__ import annotations

import math

from .. import _core
from ._calls import op

__all__ = ["gammainc", "gammaincc", "mvlgamma", "orthogonal", "spherical_bessel_j0"]


def _floats(x):
    x = _core.asarray(x)
    return x if x.dtype.kind == "real floating" else op.cast(x, _core.default_float())


# Of each family: the polynomial of degree 1, and the next one from the last two, of x and the degree k of the last.
_FAMILIES = {
    "chebyshev_polynomial_t": (lambda x: x, lambda x, k, p, q: 2 * x * p - q),
    "chebyshev_polynomial_u": (lambda x: 2 * x, lambda x, k, p, q: 2 * x * p - q),
    "chebyshev_polynomial_v": (lambda x: 2 * x - 1, lambda x, k, p, q: 2 * x * p - q),
    "chebyshev_polynomial_w": (lambda x: 2 * x + 1, lambda x, k, p, q: 2 * x * p - q),
    "hermite_polynomial_h": (lambda x: 2 * x, lambda x, k, p, q: 2 * x * p - 2 * k * q),
    "hermite_polynomial_he": (lambda x: x, lambda x, k, p, q: x * p - k * q),
    "laguerre_polynomial_l": (lambda x: 1 - x, lambda x, k, p, q: ((2 * k + 1 - x) * p - k * q) / (k + 1)),
    "legendre_polynomial_p": (lambda x: x, lambda x, k, p, q: ((2 * k + 1) * x * p - k * q) / (k + 1)),
}


def orthogonal(name, x, n):
    """The polynomial of degree n at x; 0 for a negative degree. n is an int, or a tensor of degrees."""
    x = _floats(x)
    if name.startswith("shifted_"):
        name, x = name.removeprefix("shifted_"), 2 * x - 1
    first, following = _FAMILIES[name]
    degrees = _core.asarray(n)
    most = int(op.max(degrees)) if degrees.size else -1
    shape = op.add(x, op.cast(degrees, x.dtype)).shape
    found, before, last = op.full(shape, 0, dtype=x.dtype, device=x.device), op.full_like(x, 1), first(x)
    for k in range(most + 1):
        value = before if k == 0 else last
        found = op.where(op.equal(degrees, k), value, found)
        if k:
            before, last = last, following(x, k, last, before)
    return found


def spherical_bessel_j0(x):
    """sin(x) / x."""
    x = _floats(x)
    small = op.less(op.abs(x), 0.5)
    square = op.square(op.where(small, x, 0))
    series = 1 - square / 6 * (1 - square / 20 * (1 - square / 42 * (1 - square / 72 * (1 - square / 110 * (1 - square / 156)))))
    return op.where(small, series, op.where(op.isinf(x), 0.0, op.divide(op.sin(op.where(op.isinf(x), 1.0, x)), op.where(small, 1, x))))


def mvlgamma(x, p):
    """The logarithm of the multivariate gamma function of dimension p."""
    x = _floats(x)
    if p < 1:
        raise _core.ArgumentValueError(f"mvlgamma: argument p: found {p}, expected 1 or more")
    if _core.has_values(x) and x.size and bool(op.any(op.less_equal(x, (p - 1) / 2))):
        raise _core.ArgumentValueError(f"mvlgamma: argument input: expected elements above {(p - 1) / 2}")
    found = op.lgamma(x)
    for step in range(1, p):
        found = found + op.lgamma(x - step / 2)
    return found + p * (p - 1) / 4 * math.log(math.pi)


_STEPS, _MOST = 16, 200_000  # steps between two looks at what has converged, and as many as a call may take


def _steps(name):
    """The numbers from 1 on; a call that does not converge raises."""
    yield from range(1, _MOST)
    raise _core.ArgumentValueError(f"{name}: found an argument beyond 1e9, for which the sum takes more than {_MOST} terms")


def _series(a, x, log_scale):
    """P(a, x) by its power series, for x < a + 1."""
    term = op.reciprocal(a)
    total, n = term, a
    for step in _steps("gammainc"):
        n = n + 1
        term = term * x / n
        total = total + term
        if step % _STEPS == 0 and bool(op.all(op.less_equal(term, total * 1e-17))):
            break
    return total * op.exp(log_scale)


def _fraction(a, x, log_scale):
    """Q(a, x) by Lentz's continued fraction, for x >= a + 1."""
    tiny = 1e-300
    b = x + 1 - a
    c, d = op.full_like(x, 1 / tiny), op.reciprocal(b)
    h = d
    for step in _steps("gammaincc"):
        factor = step * (a - step)
        b = b + 2
        d = factor * d + b
        d = op.reciprocal(op.where(op.less(op.abs(d), tiny), tiny, d))
        c = b + factor / c
        c = op.where(op.less(op.abs(c), tiny), tiny, c)
        h = h * d * c
        if step % _STEPS == 0 and bool(op.all(op.less_equal(op.abs(d * c - 1), 1e-16))):
            break
    return h * op.exp(log_scale)


def _log_scale(a, x):
    """log(x**a * exp(-x) / gamma(a)); for large a by Stirling's series, whose terms do not cancel."""
    large = op.greater(a, 20.0)
    b = op.where(large, a, 20.0)
    excess = (op.where(large, x, 20.0) - b) / b
    r = op.reciprocal(b)
    stirling = r / 12 * (1 - op.square(r) / 30 * (1 - op.square(r) * (2 / 7) * (1 - op.square(r) * 0.75)))
    by_series = 0.5 * op.log(b / (2 * math.pi)) - b * (excess - op.log1p(excess)) - stirling
    small_a, small_x = op.where(large, 1.0, a), op.where(large, 1.0, x)
    return op.where(large, by_series, small_a * op.log(small_x) - small_x - op.lgamma(small_a))


def _both(a, x):
    """P(a, x) and Q(a, x) in float64."""
    inside = op.logical_and(op.logical_and(op.greater(a, 0), op.greater(x, 0)), op.logical_and(op.isfinite(a), op.isfinite(x)))
    safe_a, safe_x = op.where(inside, a, 1.0), op.where(inside, x, 1.0)
    log_scale = _log_scale(safe_a, safe_x)
    below = op.less(safe_x, safe_a + 1)
    p = _series(op.where(below, safe_a, 1.0), op.where(below, safe_x, 0.5), op.where(below, log_scale, 0.0))
    q = _fraction(op.where(below, 1.0, safe_a), op.where(below, 3.0, safe_x), op.where(below, 0.0, log_scale))
    p, q = op.where(below, p, 1 - q), op.where(below, 1 - p, q)
    # Limits: P(a, 0) = 0, P(0, x) = 1, P(a, inf) = 1; no value for negative numbers, nor where both are 0 or infinite.
    none = op.logical_or(op.logical_or(op.less(a, 0), op.less(x, 0)), op.logical_or(op.isnan(a), op.isnan(x)))
    none = op.logical_or(none, op.logical_or(op.logical_and(op.equal(a, 0), op.equal(x, 0)), op.logical_and(op.isinf(a), op.isinf(x))))
    at_zero, at_one = op.logical_or(op.equal(x, 0), op.isinf(a)), op.logical_or(op.equal(a, 0), op.isinf(x))
    limit = op.where(none, math.nan, op.where(at_zero, 0.0, op.where(at_one, 1.0, 0.0)))
    return op.where(inside, p, limit), op.where(inside, q, 1 - limit)


def _incomplete(name, place, a, x):
    a, x = _floats(a), _floats(x)
    dtype = _core.promote(a.dtype, x.dtype)
    if not (_core.has_values(a) and _core.has_values(x)):
        raise _core.ArgumentTypeError(f"{name}: found a call inside a transform, where its values are not known; call it outside of grad, vmap and compile")
    if a.requires_grad or x.requires_grad:
        raise _core.MissingRuleError(f"{name}: found a tensor that requires a gradient, expected none: it has no derivative; detach it")
    found = _both(*(op.cast(one, _core.float64) for one in (a, x)))[place]
    return op.cast(found, dtype)


def gammainc(a, x):
    """The lower incomplete gamma function, divided by gamma(a)."""
    return _incomplete("gammainc", 0, a, x)


def gammaincc(a, x):
    """The upper incomplete gamma function, divided by gamma(a)."""
    return _incomplete("gammaincc", 1, a, x)
