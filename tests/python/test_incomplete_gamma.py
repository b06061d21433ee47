"""gammainc and gammaincc against mpmath: both tails, both derivatives, and their inverses; in transforms and compiled."""

import math

import mpmath as mp
import pytest

import backplane as bp
from backplane.distributions import _incomplete_gamma

CONCENTRATIONS = [1e-3, 0.4, 1.0, 3.9, 4.1, 30.0, 1000.0]


@pytest.fixture(autouse=True)
def forty_digits():
    with mp.workdps(40), bp.default_dtype(bp.float64):
        yield


def points(a):
    around = [a * (1 + k / math.sqrt(a)) for k in (-8, -3, -1, 1e-3, 1, 3, 8)]
    return [x for x in (1e-20, 1e-3, 0.49, 0.51, 3.99, 4.01, 30.0, *around) if 0 < x < a + 100 * math.sqrt(a + 1)]


@pytest.mark.parametrize("a", CONCENTRATIONS)
def test_both_tails_keep_their_digits(a):
    for x in points(a):
        lower, upper = (mp.gammainc(a, *ends, regularized=True) for ends in ((0, x), (x, mp.inf)))
        for found, exact in ((bp.gammainc(a, x), lower), (bp.gammaincc(a, x), upper)):
            if exact > 1e-290:
                assert math.isclose(found.item(), float(exact), rel_tol=2e-12), (x, exact)


@pytest.mark.parametrize("a", CONCENTRATIONS[1:])
def test_derivatives_in_both_arguments(a):
    x = bp.asarray(0.8 * a)
    for function, sign in ((bp.gammainc, 1), (bp.gammaincc, -1)):
        by_a, by_x = bp.grad(function, argnums=(0, 1))(bp.asarray(a), x)
        exact = mp.diff(lambda t: mp.gammainc(t, 0, mp.mpf(x.item()), regularized=True), mp.mpf(a))
        assert math.isclose(by_a.item(), sign * float(exact), rel_tol=1e-9)
        density = mp.exp((a - 1) * mp.log(x.item()) - x.item() - mp.loggamma(a))
        assert math.isclose(by_x.item(), sign * float(density), rel_tol=1e-11)
    compiled = bp.compile(bp.grad(bp.gammainc, argnums=0))(bp.asarray(a), x)
    assert math.isclose(compiled.item(), bp.grad(bp.gammainc)(bp.asarray(a), x).item(), rel_tol=1e-12)
    rows = bp.vmap(bp.gammainc, in_axes=(None, 0))(bp.asarray(a), bp.stack([x, 2 * x]))
    assert bp.allclose(rows, bp.gammainc(a, bp.stack([x, 2 * x])), rtol=1e-13)


@pytest.mark.parametrize("a", CONCENTRATIONS)
def test_inverses_of_both_tails(a):
    p = bp.asarray([1e-250, 1e-20, 1e-5, 0.1, 0.4999, 0.5001, 0.9])
    for inverse, function in ((_incomplete_gamma.quantile, bp.gammainc), (_incomplete_gamma.upper_quantile, bp.gammaincc)):
        x = inverse(bp.asarray(a), p)
        for value, found in zip(p.tolist(), function(a, x).tolist()):
            # The last digit of x moves P by the number of its digits that the density takes.
            assert found in (0, 1) or math.isclose(math.log(found), math.log(value), rel_tol=1e-11, abs_tol=1e-13 * max(1.0, math.sqrt(a))), value


def test_the_ends_and_what_has_no_value():
    assert bp.gammainc([2.0, 0.0, bp.inf, 2.0], [0.0, 3.0, 1.0, bp.inf]).tolist() == [0, 1, 0, 1]
    assert bp.gammaincc([2.0, 0.0, bp.inf, 2.0], [0.0, 3.0, 1.0, bp.inf]).tolist() == [1, 0, 1, 0]
    assert bp.isnan(bp.gammainc([-1.0, 1.0, 0.0, bp.inf, bp.nan], [1.0, -1.0, 0.0, bp.inf, 1.0])).all()
    assert bp.gammainc(bp.asarray(1, dtype=bp.int64), 2).dtype == bp.float64 and bp.gammainc(bp.asarray(1.0, dtype=bp.float32), 2.0).dtype == bp.float32
    assert _incomplete_gamma.quantile(bp.asarray(2.0), bp.asarray([0.0, 1.0])).tolist() == [0, bp.inf]
    assert bp.isnan(_incomplete_gamma.quantile(bp.asarray(2.0), bp.asarray([-0.1, 1.1]))).all()
