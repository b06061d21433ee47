"""erfinv, digamma and polygamma against series in decimal arithmetic of 60 digits, remainder and floor_divide against
fractions: the bounds of docs/reference/accuracy.md.

Errors are in units in the last place of the exact result; of digamma and polygamma, whose results have zeros, in those of
1 where the result is smaller. Both ways: on the kernels and on primitives alone.
"""

from decimal import Decimal, getcontext
from fractions import Fraction
from math import comb, factorial

import backplane as bp
import numpy as np
import pytest

getcontext().prec = 60
PI = Decimal("3.14159265358979323846264338327950288419716939937510582097494")
SHIFT = 40  # arguments are moved up by this, where the asymptotic series have 50 digits


def bernoulli(count):
    found = [Fraction(1)]
    for n in range(1, count):
        found.append(-sum(comb(n + 1, k) * found[k] for k in range(n)) / (n + 1))
    return [Decimal(b.numerator) / b.denominator for b in found]


BERNOULLI = bernoulli(61)


def digamma(x):
    y = x + SHIFT
    series = sum(BERNOULLI[k] / (k * y**k) for k in range(2, 61, 2))
    return y.ln() - 1 / (2 * y) - series - sum(1 / (x + k) for k in range(SHIFT))


def polygamma(n, x):
    y, s = x + SHIFT, n + 1
    rest = 1 / (n * y**n) + 1 / (2 * y**s)
    rest += sum(BERNOULLI[k] * factorial(s + k - 2) / (factorial(k) * factorial(n) * y ** (n + k)) for k in range(2, 41, 2))
    return (-1) ** (n + 1) * factorial(n) * (sum(1 / (x + k) ** s for k in range(SHIFT)) + rest)


def erf(z):
    term, total, n = z, z, 0
    while abs(term) > Decimal(10) ** -55:
        n += 1
        term *= -z * z / n
        total += term / (2 * n + 1)
    return 2 * total / PI.sqrt()


def erfinv(x):
    z = Decimal(float(bp.ops.bp.erfinv(bp.asarray(float(x), dtype=bp.float64))))
    for _ in range(3):
        z -= (erf(z) - x) * PI.sqrt() / 2 * (z * z).exp()
    return z


def units(found, expected, least):
    """The error of one element in units in the last place of its dtype."""
    rounded = found.dtype.type(float(expected))
    unit = Decimal(float(np.spacing(max(abs(rounded), found.dtype.type(least)))))
    return float(abs(Decimal(float(found)) - expected) / unit)


def worst(function, reference, values, dtype, least, forced):
    values = np.asarray(values, dtype)
    before = bp._core.force_decomposition(forced)
    try:
        found = function(bp.asarray(values)).numpy()
    finally:
        bp._core.force_decomposition(before)
    assert np.isfinite(found).all(), f"{values[~np.isfinite(found)]} gives {found[~np.isfinite(found)]}"
    errors = [units(a, reference(Decimal(float(x))), least) for a, x in zip(found, values)]
    return max(zip(errors, values))


def off_integers(low, high, count):
    drawn = np.random.default_rng(5).uniform(low, high, count)
    return drawn[abs(drawn - np.round(drawn)) > 0.01]


ERFINV = np.concatenate([np.linspace(-0.999, 0.999, 201), np.linspace(0.9985, 0.9988, 61), [1e-30, -1e-12, 1e-6, 0.9999, -0.99999, 0.9999995, 0.1, 0.5]])
GAMMA = np.concatenate([off_integers(-8, 40, 200), [1e-3, 1e-8, 0.5, 1, 2, 1.4616321449683622, 1e3, 1e6, -0.5, -7.5]])
POSITIVE = np.concatenate([np.random.default_rng(6).uniform(0.02, 40, 120), [1e-3, 0.5, 1, 2, 1e3]])


@pytest.mark.parametrize("forced", [False, True], ids=["kernel", "primitives"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_errors_stay_within_the_stated_units(dtype, forced):
    for name, function, reference, values, least, bound in (
        ("erfinv", bp.ops.bp.erfinv, erfinv, ERFINV, 0, 4),
        ("digamma", bp.ops.bp.digamma, digamma, GAMMA, 1, 8),
        *((f"polygamma {n}", lambda x, n=n: bp.ops.bp.polygamma(n, x), lambda x, n=n: polygamma(n, x), POSITIVE, 1, 4) for n in (1, 2, 5)),
    ):
        error, at = worst(function, reference, values, dtype, least, forced)
        assert error <= bound, f"{name}({at}): {error} units"


@pytest.mark.parametrize("forced", [False, True], ids=["kernel", "primitives"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_special_values(dtype, forced):
    inf, nan = np.inf, np.nan
    cases = (
        (bp.ops.bp.erfinv, [0, -0.0, 1, -1, 1.5, -2, inf, -inf, nan], [0, -0.0, inf, -inf, nan, nan, nan, nan, nan]),
        (bp.ops.bp.digamma, [0, -0.0, -1, -5, inf, nan], [-inf, inf, nan, nan, inf, nan]),
        (lambda x: bp.ops.bp.polygamma(1, x), [0, -1, -5, inf, nan], [inf, inf, inf, 0, nan]),
        (lambda x: bp.ops.bp.polygamma(2, x), [-1, -5, inf, nan], [nan, nan, 0, nan]),
    )
    before = bp._core.force_decomposition(forced)
    try:
        for function, values, expected in cases:
            found = function(bp.asarray(np.asarray(values, dtype))).numpy()
            np.testing.assert_array_equal(found, np.asarray(expected, dtype))
    finally:
        bp._core.force_decomposition(before)


def test_a_logit_near_a_half_keeps_its_digits():
    for dtype, bound in (("float32", 2**-22), ("float64", 2**-51)):
        x = (0.5 + np.concatenate([-np.logspace(-7, -1, 200), np.logspace(-7, -1, 200)])).astype(dtype)
        exact = [float((Decimal(float(v)) / (1 - Decimal(float(v)))).ln()) for v in x]
        np.testing.assert_allclose(bp.logit(bp.asarray(x)).numpy(), exact, rtol=bound)


def test_powers_that_have_loops_of_their_own_are_those_of_single_elements():
    """An exponent for all is read once; one per element goes through the general power."""
    x = np.concatenate([np.linspace(-3, 3, 41), [0.0, -0.0, np.inf, -np.inf, np.nan, 1e-30, 3e12]])
    for dtype, ulps in (("float16", 2), ("float32", 2), ("float64", 3)):
        with np.errstate(all="ignore"):
            t = bp.asarray(x.astype(dtype))
        for exponent in (-1, -0.5, 0.5, 1, 2, 3):
            found, each = (t**exponent).numpy(), (t ** bp.full(t.shape, exponent, dtype=t.dtype)).numpy()
            np.testing.assert_array_equal(np.signbit(found) | np.isnan(found), np.signbit(each) | np.isnan(each), err_msg=f"{dtype} {exponent}")
            np.testing.assert_allclose(found, each, rtol=ulps * np.finfo(dtype).eps, err_msg=f"{dtype} {exponent}")


def test_whole_powers_of_complex_numbers_are_products():
    z = bp.asarray([-2 + 0j, 1 + 1j, 0.5j, 3 - 4j], dtype=bp.complex128)
    assert (z**3).tolist() == [-8, -2 + 2j, -0.125j, -117 - 44j] and (z**4).tolist()[:2] == [16, -4]
    assert (z**-1).tolist()[0] == -0.5 and (z**0).tolist() == [1] * 4
    assert (z**0.5).tolist() == pytest.approx([1.4142135623730951j, 1.09868411346781 + 0.45508986056222733j, 0.5 + 0.5j, 2 - 1j])


def pairs(dtype):
    """Of all sizes, exact multiples among them, and neighbours of such."""
    rng = np.random.default_rng(7)
    x, y = np.ldexp(rng.uniform(-1, 1, (2, 3000)), rng.integers(-30, 30, (2, 3000))).astype(dtype)
    y[:500] = rng.integers(1, 50, 500)
    x[:500] = y[:500] * rng.integers(-1000, 1000, 500)
    x[250:500] = np.nextafter(x[250:500], np.asarray(np.inf, dtype))
    keep = y != 0
    return x[keep], y[keep]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_remainder_rounds_the_exact_result_and_floor_divide_is_within_two_units(dtype):
    x, y = pairs(dtype)
    remainders = bp.remainder(bp.asarray(x), bp.asarray(y)).numpy()
    quotients = bp.floor_divide(bp.asarray(x), bp.asarray(y)).numpy()
    for a, b, rest, quotient in zip(x.tolist(), y.tolist(), remainders, quotients):
        whole = Fraction(a) / Fraction(b) // 1
        exact = Fraction(a) - whole * Fraction(b)
        assert abs(Fraction(float(rest)) - exact) <= Fraction(float(np.spacing(np.abs(rest)))) / 2, (a, b)
        assert abs(Fraction(float(quotient)) - whole) <= 2 * Fraction(float(np.spacing(np.abs(quotient)))), (a, b)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_division_at_the_edges(dtype):
    inf, nan = np.inf, np.nan
    x, y = np.array([(1, 0), (-1, 0), (0, 0), (inf, 2), (-inf, 2), (inf, inf), (nan, 1), (1, nan), (0, 3), (-0.0, 3), (2, inf), (6, -3)], dtype).T
    found = bp.floor_divide(bp.asarray(x), bp.asarray(y)).numpy()
    np.testing.assert_array_equal(found, [inf, -inf, nan, inf, -inf, nan, nan, nan, 0, 0, 0, -2])
    found = bp.remainder(bp.asarray(x), bp.asarray(y)).numpy()
    np.testing.assert_array_equal(found, [nan, nan, nan, nan, nan, nan, nan, nan, 0, 0, 2, 0])
    assert np.signbit(found[-1]), "a zero has the sign of the divisor"
