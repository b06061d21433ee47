"""Distributions where formulas cancel or overflow: tails, large parameters, and half floats. The numbers are by mpmath with 50 digits."""

import math

import mpmath as mp
import pytest

import backplane as bp
from backplane import distributions as dist

_EPS = {bp.float32: 2.0**-23, bp.float64: 2.0**-52}
_DTYPES = [bp.float32, bp.float64]


@pytest.fixture(autouse=True)
def fifty_digits():
    with mp.workdps(50):
        yield



def made(text, dtype):
    with bp.default_dtype(dtype):
        return eval(text, vars(dist))


def normal_cdf(z):
    return mp.erfc(-z / mp.sqrt(2)) / 2


def log_gamma_density(x, a, r):
    return a * mp.log(r) + (a - 1) * mp.log(x) - r * x - mp.loggamma(a)


def log_beta_density(x, a, b):
    return (a - 1) * mp.log(x) + (b - 1) * mp.log1p(-x) - mp.loggamma(a) - mp.loggamma(b) + mp.loggamma(a + b)


def log_student(z, df):
    return mp.loggamma((df + 1) / 2) - mp.loggamma(df / 2) - mp.log(df * mp.pi) / 2 - (df + 1) / 2 * mp.log1p(z * z / df)


def log_poisson(k, rate):
    return k * mp.log(rate) - rate - mp.loggamma(k + 1)


def log_binomial(k, n, p):
    return mp.log(mp.binomial(n, k)) + k * mp.log(p) + (n - k) * mp.log1p(-p)


CDFS = [
    ("Normal(0., 1.)", normal_cdf, [-30.0, -10.0, -5.0, 2.0]),
    ("Laplace(0., 1.)", lambda z: mp.exp(z) / 2 if z < 0 else 1 - mp.exp(-z) / 2, [-80.0, -20.0, -0.25, 0.0, 3.0]),
    ("Cauchy(0., 1.)", lambda z: mp.atan2(1, -z) / mp.pi, [-1e20, -1e5, -2.0, 0.0, 1e5]),
]


@pytest.mark.parametrize("dtype", _DTYPES)
@pytest.mark.parametrize(("text", "exact", "values"), CDFS)
def test_tails_of_cumulative_distributions(text, exact, values, dtype):
    one = made(text, dtype)
    for value in values:
        x = bp.asarray(value, dtype=dtype)
        expected = exact(mp.mpf(x.item()))
        if expected > bp.finfo(dtype).tiny:
            assert math.isclose(one.cdf(x).item(), float(expected), rel_tol=256 * _EPS[dtype]), value


@pytest.mark.parametrize("dtype", _DTYPES)
@pytest.mark.parametrize(("text", "exact"), [row[:2] for row in CDFS])
def test_tails_of_quantiles(text, exact, dtype):
    one = made(text, dtype)
    for value in (1e-30, 1e-12, 1e-6, 0.2, 0.5, 0.75, 0.999):
        q = bp.asarray(value, dtype=dtype)
        x = mp.mpf(one.icdf(q).item())
        margin = 32 * _EPS[dtype] * max(abs(x), 1)
        assert exact(x - margin) * (1 - 4 * _EPS[dtype]) <= mp.mpf(q.item()) <= exact(x + margin) * (1 + 4 * _EPS[dtype]), value


def test_slope_of_laplaces_distribution_at_its_centre():
    one = dist.Laplace(bp.asarray(0.0), bp.asarray(2.0))
    assert bp.grad(one.cdf)(bp.asarray(0.0)).item() == 0.25


# (distribution, value, the exact log_prob)
LARGE = [
    ("Gamma(1e3, 10.)", 100.0, lambda x: log_gamma_density(x, mp.mpf(1000), mp.mpf(10))),
    ("Gamma(1e6, 1e6)", 1.0, lambda x: log_gamma_density(x, mp.mpf(10) ** 6, mp.mpf(10) ** 6)),
    ("InverseGamma(1e6, 1e6)", 1.0, lambda x: log_gamma_density(1 / x, mp.mpf(10) ** 6, mp.mpf(10) ** 6) - 2 * mp.log(x)),
    ("Chi2(5e4)", 5e4, lambda x: log_gamma_density(x, mp.mpf(25000), mp.mpf(1) / 2)),
    ("Beta(1e5, 1e5)", 0.5, lambda x: log_beta_density(x, mp.mpf(10) ** 5, mp.mpf(10) ** 5)),
    ("Beta(1e6, 0.5)", 0.75, lambda x: log_beta_density(x, mp.mpf(10) ** 6, mp.mpf(1) / 2)),
    ("StudentT(1e4)", 0.0, lambda x: log_student(x, mp.mpf(10) ** 4)),
    ("StudentT(1e8)", 3.0, lambda x: log_student(x, mp.mpf(10) ** 8)),
    ("StudentT(1.)", 1e25, lambda x: log_student(x, mp.mpf(1))),
    ("Cauchy(0., 1.)", -1e25, lambda x: -mp.log(mp.pi) - mp.log1p(x * x)),
    ("HalfCauchy(1.)", 1e25, lambda x: mp.log(2 / mp.pi) - mp.log1p(x * x)),
    ("Poisson(1e6)", 1e6, lambda x: log_poisson(x, mp.mpf(10) ** 6)),
    ("Poisson(1e4)", 9500.0, lambda x: log_poisson(x, mp.mpf(10) ** 4)),
    ("Binomial(1000000, 0.5)", 500300.0, lambda x: log_binomial(x, mp.mpf(10) ** 6, mp.mpf(1) / 2)),
    ("NegativeBinomial(1e5, 0.5)", 1e5, lambda x: log_binomial(x, 2 * mp.mpf(10) ** 5, mp.mpf(1) / 2) - mp.log(2)),
    ("Geometric(logits=20.)", 3.0, lambda x: -x * mp.log1p(mp.exp(20)) - mp.log1p(mp.exp(-20))),
    ("Bernoulli(logits=-40.)", 1.0, lambda x: -mp.log1p(mp.exp(40))),
]


@pytest.mark.parametrize("dtype", _DTYPES)
@pytest.mark.parametrize(("text", "value", "exact"), LARGE)
def test_densities_of_large_parameters_and_values(text, value, exact, dtype):
    x = bp.asarray(value, dtype=dtype)
    expected = float(exact(mp.mpf(x.item())))
    assert math.isclose(made(text, dtype).log_prob(x).item(), expected, rel_tol=128 * _EPS[dtype], abs_tol=64 * _EPS[dtype])


def test_a_rare_event_keeps_its_digits():
    p = bp.asarray(1e-12, dtype=bp.float64)
    assert math.isclose(dist.Bernoulli(p).log_prob(0.0).item(), -1e-12, rel_tol=1e-11)
    assert math.isclose(dist.Binomial(1000, p).log_prob(0.0).item(), -1e-9, rel_tol=1e-11)
    assert math.isclose(dist.Bernoulli(logits=bp.asarray(30.0)).entropy().item(), 31 * math.exp(-30), rel_tol=1e-5)


@pytest.mark.parametrize(("text", "expected"), [("Gamma(1e6, 1.)", 0.5 * math.log(2 * math.pi * math.e * 1e6)), ("Beta(1e6, 1e6)", 0.5 * math.log(2 * math.pi * math.e / 8e6)),
                                               ("Dirichlet([1e6, 1e6])", 0.5 * math.log(2 * math.pi * math.e / 8e6)), ("StudentT(1e8)", 0.5 * math.log(2 * math.pi * math.e))])  # fmt: skip
@pytest.mark.parametrize("dtype", _DTYPES)
def test_entropies_approach_the_normal_distributions(text, expected, dtype):
    assert abs(made(text, dtype).entropy().item() - expected) < 2e-6


def test_derivatives_of_densities_of_large_parameters():
    with bp.default_dtype(bp.float64):
        slope = bp.grad(lambda a: dist.Gamma(a, 1e6).log_prob(1.0))(bp.asarray(1e6)).item()
        assert math.isclose(slope, float(mp.log(10**6) - mp.digamma(10**6)), rel_tol=1e-8)
        slope = bp.grad(lambda rate: dist.Poisson(rate).log_prob(1003000.0))(bp.asarray(1e6)).item()
        assert math.isclose(slope, 0.003, rel_tol=1e-9)
    assert bp.grad(lambda p: dist.Bernoulli(p).log_prob(1.0))(bp.asarray(1.0)).item() == 1
    assert bp.grad(lambda p: dist.Binomial(5, p).log_prob(0.0))(bp.asarray(0.0)).item() == -5


def test_slope_of_tanh_near_zero():
    x = bp.asarray([1e-6, -1e-4, 0.5, 3.0], dtype=bp.float64)
    exact = [float(2 * mp.log(mp.sech(mp.mpf(v)))) for v in x.tolist()]
    found = dist.TanhTransform().log_abs_det_jacobian(x, bp.tanh(x)).tolist()
    assert all(math.isclose(a, b, rel_tol=1e-13) for a, b in zip(found, exact))


@pytest.mark.parametrize(("text", "mean", "variance"), [("Poisson(1e6)", 1e6, 1e6), ("Poisson(1e8)", 1e8, 1e8), ("Binomial(1000000, 0.5)", 5e5, 2.5e5), ("NegativeBinomial(1e6, 0.5)", 1e6, 2e6)])
def test_samples_of_large_counts(text, mean, variance):
    x = made(text, bp.float32).sample((40000,), generator=bp.Generator(2)).astype(bp.float64)
    assert abs(x.mean().item() - mean) < 5 * math.sqrt(variance / 40000)
    assert abs(x.var().item() / variance - 1) < 5 * math.sqrt(2 / 40000)


@pytest.mark.parametrize("dtype", [bp.float16, bp.bfloat16])
@pytest.mark.parametrize(("text", "mean", "variance"), [("Poisson(50.)", 50, 50), ("Poisson(200.)", 200, 200), ("Binomial(200, 0.5)", 100, 50), ("Gamma(100., 1.)", 100, 100), ("Exponential(1.)", 1, 1)])
def test_samples_of_half_floats(text, mean, variance, dtype):
    one = made(text, dtype)
    x = one.sample((40000,), generator=bp.Generator(3))
    assert x.dtype == dtype
    wide = x.astype(bp.float64)
    assert abs(wide.mean().item() / mean - 1) < 0.02 and abs(wide.var().item() / variance - 1) < 0.05
    assert text != "Exponential(1.)" or wide.max().item() > 9


def test_densities_of_half_floats_are_rounded_once():
    x = bp.asarray([180.0, 200.0, 230.0], dtype=bp.float16)
    found = dist.Poisson(bp.asarray(200.0, dtype=bp.float16)).log_prob(x)
    assert found.dtype == bp.float16
    assert found.tolist() == dist.Poisson(bp.asarray(200.0)).log_prob(x.astype(bp.float32)).astype(bp.float16).tolist()


def gamma_divergence(a, r, b, s):
    return mp.loggamma(b) - mp.loggamma(a) + (a - b) * mp.digamma(a) + b * mp.log(r / s) + a * (s / r - 1)


CLOSE = [
    ("Normal(1., 1.)", "Normal(1., 1.0009765625)", lambda: -(mp.log(mp.mpf(1) / (1 + mp.mpf(2) ** -10) ** 2) + 1 - 1 / (1 + mp.mpf(2) ** -10) ** 2) / 2),
    ("Gamma(1e6, 1.)", "Gamma(1.01e6, 1.)", lambda: gamma_divergence(mp.mpf(10) ** 6, 1, mp.mpf(101) * 10**4, 1)),
    ("InverseGamma(0.5, 1.)", "InverseGamma(3., 2.)", lambda: gamma_divergence(mp.mpf("0.5"), mp.mpf(1), mp.mpf(3), mp.mpf(2))),
    ("Chi2(4e4)", "Chi2(4.1e4)", lambda: gamma_divergence(mp.mpf(20000), 1, mp.mpf(20500), 1)),
    ("Beta(1e5, 1e5)", "Beta(1.01e5, 1.01e5)", lambda: 2 * gamma_divergence(mp.mpf(10) ** 5, 1, mp.mpf(101) * 1000, 1) - gamma_divergence(mp.mpf(2) * 10**5, 1, mp.mpf(202) * 1000, 1)),
    ("Poisson(1e6)", "Poisson(1.001e6)", lambda: mp.mpf(10) ** 6 * mp.log(mp.mpf(1000) / 1001) + 1000),
    ("Bernoulli(0.5)", "Bernoulli(0.5009765625)", lambda: -mp.log(4 * (mp.mpf(1) / 2 + mp.mpf(2) ** -10) * (mp.mpf(1) / 2 - mp.mpf(2) ** -10)) / 2),
    ("Geometric(0.5)", "Geometric(0.5009765625)", lambda: -mp.log(4 * (mp.mpf(1) / 2 + mp.mpf(2) ** -10) * (mp.mpf(1) / 2 - mp.mpf(2) ** -10))),
    ("Exponential(1.)", "Exponential(1.0009765625)", lambda: mp.mpf(2) ** -10 - mp.log1p(mp.mpf(2) ** -10)),
]


@pytest.mark.parametrize("dtype", _DTYPES)
@pytest.mark.parametrize(("first", "second", "exact"), CLOSE)
def test_divergences_of_close_distributions(first, second, exact, dtype):
    found = dist.kl_divergence(made(first, dtype), made(second, dtype)).item()
    assert math.isclose(found, float(exact()), rel_tol=2e4 * _EPS[dtype])
    assert dist.kl_divergence(made(first, dtype), made(first, dtype)).item() == 0


EXTREME = [
    "Beta(0.01, 0.01)", "Beta(500., 0.05)", "Gamma(0.001, 1.)", "InverseGamma(0.05, 1.)", "Chi2(0.01)", "Kumaraswamy(0.1, 0.1)", "Kumaraswamy(0.05, 5.)",
    "Weibull(1., 0.05)", "LogNormal(0., 30.)", "Uniform(0., 1.)", "Uniform(1024., 1028.)", "Dirichlet([0.01, 0.01, 0.01])", "Geometric(1.)", "Poisson(0.)",
]  # fmt: skip


@pytest.mark.parametrize("dtype", [bp.float16, bp.float32, bp.float64])
@pytest.mark.parametrize("text", EXTREME)
def test_samples_lie_in_the_support(text, dtype):
    one = made(text, dtype)
    x = one.sample((4000,), generator=bp.Generator(4))
    found = one.log_prob(x)
    assert x.dtype == found.dtype == dtype
    # A density of a half float may exceed its range, as may a sample.
    assert bool((bp.isfinite(found) | ~bp.isfinite(x.reshape((4000, -1)).sum(1)) | (dtype == bp.float16) & (found > 0)).all())


def test_kumaraswamys_density_next_to_one():
    x = bp.asarray(1 - 2.0**-24)
    exact = mp.log(mp.mpf("0.1") ** 2) + mp.mpf("-0.9") * (mp.log(mp.mpf(x.item())) + mp.log(1 - mp.mpf(x.item()) ** mp.mpf("0.1")))
    assert math.isclose(dist.Kumaraswamy(bp.asarray(0.1), bp.asarray(0.1)).log_prob(x).item(), float(exact), rel_tol=1e-6)
