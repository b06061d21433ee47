"""Jets of Bessel functions, the normal distribution's functions and Hurwitz's zeta function. See number_jets.py."""

import functools

from mpmath import mp
from number_jets import erfc, exp, log, log1p, unary

HALF = mp.mpf("0.5")
PRECISIONS = (120, 200, 400)  # Bessel functions are slow


def _second_kind(order, x):
    """bessely of orders 0 and 1 by its series (Abramowitz and Stegun, 9.1.11), which is much faster than mpmath's, for x to 20."""
    with mp.workprec(mp.prec + 60):
        q, h = x * x / 4, x / 2
        term, total, harmonic, k = (h if order else mp.mpf(1)), mp.mpf(0), mp.mpf(0), 0
        while k < 40 or abs(term) > mp.eps:
            digammas = 2 * harmonic - 2 * mp.euler + (mp.mpf(1) / (k + 1) if order else 0)
            total += digammas * term
            k += 1
            harmonic += mp.mpf(1) / k
            term *= -q / (k * (k + order))
        return (2 * mp.log(h) * mp.besselj(order, x) - total - (2 / x if order else 0)) / mp.pi


def _modified_second_kind(order, x):
    """besselk by the trapezoid sum of its integral (9.6.24), which converges as fast as mpmath's series do not."""
    nats = mp.prec * mp.log(2) + 10
    step = mp.pi**2 / nats
    count = int(mp.acosh(1 + nats / x) / step) + 2
    rows = (mp.cosh(k * step) for k in range(count))
    terms = [mp.exp(-x * c) * (c if order else 1) for c in rows]
    return step * (mp.fsum(terms) - terms[0] / 2)


def _kept(function):
    """The function with its values of each precision kept: a jet asks for each several times."""
    kept = functools.lru_cache(None)(lambda precision, *numbers: function(*numbers))
    return lambda *numbers: kept(mp.prec, *numbers)


def _bessel(function, sign, at_0, kept=1):
    """The functions of orders 0 and 1, whose derivatives are f0' = sign f1 and f1' = kept f0 - f1 / x; at_0 is the limit of f1 / x."""

    def zero(x):
        return function(0, x)

    def one(x):
        return function(1, x)

    def over_x(x):
        return one(x) / x if x else at_0

    def slope(x):
        return kept * zero(x) - over_x(x)

    def curve(x):
        return kept * sign * one(x) - (kept * zero(x) - 2 * over_x(x)) / x if x else mp.mpf(0)

    return unary(zero, lambda x: sign * one(x), lambda x: sign * slope(x)), unary(one, slope, curve)


i0, i1 = _bessel(mp.besseli, 1, HALF)
j0, j1 = _bessel(mp.besselj, -1, HALF)
y0, y1 = _bessel(_kept(_second_kind), -1, mp.ninf)
k0, k1 = _bessel(_kept(_modified_second_kind), -1, mp.inf, -1)


def i0e(x):
    return i0(x) * exp(-abs(x))


def i1e(x):
    return i1(x) * exp(-abs(x))


def k0e(x):
    return k0(x) * exp(x)


def k1e(x):
    return k1(x) * exp(x)


def erfcx(x):
    return exp(x * x) * erfc(x)


def ndtr(x):
    return erfc(-x / mp.sqrt(2)) * HALF


def log_ndtr(x):
    return log1p(-ndtr(-x)) if x > 0 else log(ndtr(x))


def ndtri(p):
    """By Newton's method on the logarithm of the probability."""

    def upper(q):
        z = mp.sqrt(-2 * mp.log(q)) if q < 0.1 else HALF
        for _ in range(100):
            tail = mp.erfc(z / mp.sqrt(2)) / 2
            step = (mp.log(tail) - mp.log(q)) * tail * mp.sqrt(2 * mp.pi) * mp.exp(z * z / 2)
            z += step
            if abs(step) <= abs(z) * mp.eps * 16:
                break
        return z

    def value(p):
        return mp.mpf(0) if p == HALF else -upper(p) if p < HALF else upper(1 - p)

    def slope(p):
        return mp.sqrt(2 * mp.pi) * mp.exp(value(p) ** 2 / 2)

    return unary(value, slope, lambda p: value(p) * slope(p) ** 2)(p)


@_kept
def _zeta(s, q):
    """Euler and Maclaurin's sum, with as many terms as the precision asks for."""
    count = mp.dps // 2 + int(abs(s))
    y = q + count
    total = mp.fsum((q + k) ** -s for k in range(count)) + y ** (1 - s) / (s - 1) + y**-s / 2
    term = s * y ** (-s - 1) / 2  # rising powers of s by factorials and powers of y
    for k in range(1, 4 * mp.dps):
        total += mp.bernoulli(2 * k) * term
        if abs(mp.bernoulli(2 * k) * term) <= abs(total) * mp.eps:
            break
        term *= (s + 2 * k - 1) * (s + 2 * k) / ((2 * k + 1) * (2 * k + 2) * y * y)
    return total


def zeta(s, q):
    """Of a number s: zeta has no derivative along it."""
    s = s.value
    return unary(lambda v: _zeta(s, v), lambda v: -s * _zeta(s + 1, v), lambda v: s * (s + 1) * _zeta(s + 2, v))(q)
