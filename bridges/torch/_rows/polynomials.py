"""What rows of aten.txt call for orthogonal polynomials: the polynomial of degree n, a number or a tensor, at x. It is 0 for negative n."""

from __future__ import annotations

import backplane as bp

__all__ = [
    "chebyshev_polynomial_t", "chebyshev_polynomial_u", "chebyshev_polynomial_v", "chebyshev_polynomial_w", "hermite_polynomial_h", "hermite_polynomial_he",
    "laguerre_polynomial_l", "legendre_polynomial_p", "shifted_chebyshev_polynomial_t", "shifted_chebyshev_polynomial_u", "shifted_chebyshev_polynomial_v",
    "shifted_chebyshev_polynomial_w",
]  # fmt: skip

# PyTorch's polynomials of Hermite are NaN beyond these degrees.
_HERMITE_LIMITS = {bp.float32: 128, bp.float64: 512}
_LARGE = 8  # degrees from which Chebyshev's polynomials are computed by angles, between -1 and 1


def _operands(x, n):
    """(x in its floating dtype, n in int64), of one shape."""
    dtype = next(y.dtype for y in (x, n) if isinstance(y, bp.Tensor))
    dtype = dtype if dtype.kind == "real floating" else bp.get_default_dtype()
    x = bp.ops.bp.cast(x, dtype) if isinstance(x, bp.Tensor) else bp.full((), x, dtype=dtype)
    n = bp.ops.bp.cast(n, bp.int64) if isinstance(n, bp.Tensor) else bp.full((), int(n), dtype=bp.int64)
    return bp.broadcast_arrays(x, n)


def _by_recurrence(x, n, first, step):
    """p(n) from p(0) = 1, p(1) = first and p(k + 1) = step(k, p(k), p(k - 1))."""
    if x.size == 0:
        return x
    last = bp.max(n)

    def advance(carried):
        k, now, before = carried
        following = step(bp.ops.bp.cast(k, x.dtype), now, before)
        goes_on = n > k
        return [k + 1, bp.where(goes_on, following, now), bp.where(goes_on, now, before)]

    _, found, _ = bp.while_loop(lambda carried: carried[0] < last, advance, [bp.full((), 1, dtype=bp.int64), first, bp.ones_like(x)])
    return bp.where(n > 0, found, bp.where(n == 0, bp.ones_like(x), bp.zeros_like(x)))


def _chebyshev(x, n, first, of_angle):
    x, n = _operands(x, n)
    by_angle = bp.logical_and(bp.abs(x) < 1, n > _LARGE)
    found = _by_recurrence(x, bp.where(by_angle, 0, n), first(x), lambda k, now, before: 2 * x * now - before)
    angle = bp.acos(bp.where(by_angle, x, bp.zeros_like(x)))
    return bp.where(by_angle, of_angle(bp.ops.bp.cast(n, x.dtype), angle), found)


def chebyshev_polynomial_t(x, n):
    return _chebyshev(x, n, lambda x: x, lambda n, angle: bp.cos(n * angle))


def chebyshev_polynomial_u(x, n):
    return _chebyshev(x, n, lambda x: 2 * x, lambda n, angle: bp.sin((n + 1) * angle) / bp.sin(angle))


def chebyshev_polynomial_v(x, n):
    return _chebyshev(x, n, lambda x: 2 * x - 1, lambda n, angle: bp.cos((n + 0.5) * angle) / bp.cos(angle / 2))


def chebyshev_polynomial_w(x, n):
    return _chebyshev(x, n, lambda x: 2 * x + 1, lambda n, angle: bp.sin((n + 0.5) * angle) / bp.sin(angle / 2))


def _shifted(polynomial):
    def shifted(x, n):
        x, n = _operands(x, n)
        return polynomial(2 * x - 1, n)

    return shifted


shifted_chebyshev_polynomial_t = _shifted(chebyshev_polynomial_t)
shifted_chebyshev_polynomial_u = _shifted(chebyshev_polynomial_u)
shifted_chebyshev_polynomial_v = _shifted(chebyshev_polynomial_v)
shifted_chebyshev_polynomial_w = _shifted(chebyshev_polynomial_w)


def _hermite(x, n, factor):
    x, n = _operands(x, n)
    limit = _HERMITE_LIMITS.get(x.dtype, _HERMITE_LIMITS[bp.float32])
    found = _by_recurrence(x, bp.minimum(n, limit), factor * x, lambda k, now, before: factor * (x * now - k * before))
    return bp.where(n > limit, bp.full((), bp.nan, dtype=x.dtype), found)


def hermite_polynomial_h(x, n):
    return _hermite(x, n, 2)


def hermite_polynomial_he(x, n):
    return _hermite(x, n, 1)


def laguerre_polynomial_l(x, n):
    x, n = _operands(x, n)
    return _by_recurrence(x, n, 1 - x, lambda k, now, before: ((2 * k + 1 - x) * now - k * before) / (k + 1))


def legendre_polynomial_p(x, n):
    x, n = _operands(x, n)
    return _by_recurrence(x, n, x, lambda k, now, before: ((2 * k + 1) * x * now - k * before) / (k + 1))
