"""cdf and icdf: against formulas in mpmath in both tails, as inverses of each other, with the density as slope."""

import math

import mpmath as mp
import pytest

import backplane as bp
from backplane import distributions as dist

PROBABILITIES = [1e-12, 1e-4, 0.2, 0.5, 0.8, 0.999]


def normal(z):
    return mp.erfc(-z / mp.sqrt(2)) / 2


CASES = {
    "LogNormal(0.5, 0.75)": lambda x: normal((mp.log(x) - 0.5) / mp.mpf(0.75)),
    "HalfNormal(2.0)": lambda x: mp.erf(x / (2 * mp.sqrt(2))),
    "HalfCauchy(2.0)": lambda x: 2 / mp.pi * mp.atan(x / 2),
    "Weibull(1.5, 2.0)": lambda x: -mp.expm1(-((x / mp.mpf(1.5)) ** 2)),
    "Pareto(1.5, 3.5)": lambda x: 1 - (mp.mpf(1.5) / x) ** mp.mpf(3.5),
    "GeneralizedPareto(0.5, 2.0, 0.25)": lambda x: 1 - (1 + (x - 0.5) / 8) ** -4,
    "GeneralizedPareto(0.5, 2.0, -0.25)": lambda x: 1 - (1 - (x - 0.5) / 8) ** 4,
    "GeneralizedPareto(0.5, 2.0, 0.0)": lambda x: -mp.expm1(-(x - 0.5) / 2),
    "Kumaraswamy(2.0, 3.0)": lambda x: 1 - (1 - x**2) ** 3,
    "Gamma(2.5, 1.5)": lambda x: mp.gammainc(2.5, 0, 1.5 * x, regularized=True),
    "Gamma(0.5, 1.5)": lambda x: mp.gammainc(0.5, 0, 1.5 * x, regularized=True),
    "Chi2(3.0)": lambda x: mp.gammainc(1.5, 0, x / 2, regularized=True),
    "InverseGamma(3.5, 2.0)": lambda x: mp.gammainc(3.5, 2 / x, mp.inf, regularized=True),
    "ContinuousBernoulli(logits=2.0)": lambda x: mp.expm1(2 * x) / mp.expm1(2),
    "ContinuousBernoulli(logits=-30.0)": lambda x: mp.expm1(-30 * x) / mp.expm1(-30),
    "ContinuousBernoulli(logits=0.0009765625)": lambda x: mp.expm1(x / 1024) / mp.expm1(mp.mpf(1) / 1024),
    "ContinuousBernoulli(logits=80.0)": lambda x: mp.expm1(80 * x) / mp.expm1(80),
    "TransformedDistribution(Normal(0.0, 1.0), [AffineTransform(1.0, 2.0), ExpTransform()])": lambda x: normal((mp.log(x) - 1) / 2),
    "TransformedDistribution(Exponential(2.0), AffineTransform(1.0, 3.0))": lambda x: -mp.expm1(-2 * (x - 1) / 3),
}


def made(text, dtype=bp.float64):
    with bp.default_dtype(dtype):
        return eval(text, vars(dist))


@pytest.mark.parametrize("text", CASES)
@pytest.mark.parametrize("dtype", [bp.float32, bp.float64])
def test_cdf_and_icdf_are_the_formulas(text, dtype):
    eps, one, exact = bp.finfo(dtype).eps, made(text, dtype), CASES[text]
    with mp.workdps(50):
        for value in PROBABILITIES:
            p = bp.asarray(value, dtype=dtype)
            x = one.icdf(p)
            assert x.dtype == dtype
            number = mp.mpf(x.item())
            margin = 16 * eps * max(abs(number), mp.mpf(10) ** -30)
            ends = sorted((exact(number - margin), exact(number + margin)))
            assert ends[0] * (1 - 256 * eps) <= mp.mpf(p.item()) <= ends[1] * (1 + 256 * eps), value
            assert math.isclose(one.cdf(x).item(), float(exact(number)), rel_tol=64 * eps, abs_tol=8 * eps * (value > 0.1)), value


@pytest.mark.parametrize("text", CASES)
def test_the_slope_of_cdf_is_the_density(text):
    one, p = made(text), bp.asarray([0.2, 0.5, 0.8], dtype=bp.float64)
    x = one.icdf(p)
    density = bp.exp(one.log_prob(x))
    assert bp.allclose(bp.grad(lambda x: one.cdf(x).sum())(x), density, rtol=1e-9)
    assert bp.allclose(bp.grad(lambda p: one.icdf(p).sum())(p), 1 / density, rtol=1e-9)
    assert bp.allclose(bp.compile(one.cdf)(x), p, rtol=1e-9) and bp.allclose(bp.vmap(one.icdf)(p), x, rtol=1e-12)


PARAMETERS = [
    ("Gamma", (2.5, 1.5), 0.7), ("InverseGamma", (3.5, 2.0), 0.7), ("Chi2", (3.0,), 0.7), ("Weibull", (1.5, 2.0), 0.7), ("Pareto", (1.5, 3.5), 2.0),
    ("GeneralizedPareto", (0.5, 2.0, 0.0), 1.5), ("GeneralizedPareto", (0.5, 2.0, 0.3), 1.5), ("Kumaraswamy", (2.0, 3.0), 0.4),
    ("ContinuousBernoulli", (0.5,), 0.3), ("ContinuousBernoulli", (0.9,), 0.3), ("LogNormal", (0.5, 0.7), 1.5), ("HalfCauchy", (2.0,), 1.5),
]  # fmt: skip


@pytest.mark.parametrize(("name", "parameters", "value"), PARAMETERS)
@pytest.mark.parametrize("method", ["cdf", "icdf", "log_prob"])
def test_gradients_for_parameters_are_differences(name, parameters, value, method):
    at = 0.3 if method == "icdf" else value

    def function(*parameters):
        return getattr(getattr(dist, name)(*parameters), method)(bp.asarray(at, dtype=bp.float64))

    numbers = [bp.asarray(x, dtype=bp.float64) for x in parameters]
    found = bp.grad(function, argnums=tuple(range(len(numbers))))(*numbers)
    for i, slope in enumerate(found):
        ends = [function(*(x + step if k == i else x for k, x in enumerate(numbers))).item() for step in (-1e-5, 1e-5)]
        assert math.isclose(slope.item(), (ends[1] - ends[0]) / 2e-5, rel_tol=1e-6, abs_tol=1e-8), i


def test_values_outside_of_the_support():
    for text in CASES:
        if "Continuous" not in text and "Kumaraswamy" not in text:
            assert made(text).cdf(bp.asarray([-1.0, 0.0], dtype=bp.float64)).tolist() == [0, 0], text
    assert made("Kumaraswamy(2.0, 3.0)").cdf(bp.asarray([-1.0, 0.0, 1.0, 2.0], dtype=bp.float64)).tolist() == [0, 0, 1, 1]
    assert made("ContinuousBernoulli(0.3)").cdf(bp.asarray([-1.0, 0.0, 1.0, 2.0], dtype=bp.float64)).tolist() == [0, 0, 1, 1]
    assert made("GeneralizedPareto(0.5, 2.0, -0.5)").cdf(bp.asarray([0.0, 5.0], dtype=bp.float64)).tolist() == [0, 1]


def test_a_falling_transform_turns_the_tails():
    one = made("TransformedDistribution(LogNormal(0.0, 1.0), [AffineTransform(1.0, -2.0)])")
    x = bp.asarray([-5.0, 0.5, 1.0, 3.0], dtype=bp.float64)
    expected = 1 - made("LogNormal(0.0, 1.0)").cdf((1 - x) / 2)
    assert bp.allclose(one.cdf(x), expected, rtol=1e-12) and bp.allclose(one.icdf(one.cdf(x[:2])), x[:2])


def test_a_mixture_has_the_mean_of_its_components():
    two = dist.MixtureSameFamily(dist.Categorical(bp.asarray([0.25, 0.75])), dist.Normal(bp.asarray([-1.0, 1.0]), bp.ones(2)))
    x = bp.asarray([-1.0, 0.5])
    expected = 0.25 * dist.Normal(-1.0, 1.0).cdf(x) + 0.75 * dist.Normal(1.0, 1.0).cdf(x)
    assert bp.allclose(two.cdf(x), expected)


def test_what_has_no_cdf_says_so():
    for one in (dist.Beta(1.0, 2.0), dist.Categorical(bp.ones(3)), dist.LogisticNormal(bp.zeros(2), bp.ones(2))):
        with pytest.raises(NotImplementedError, match=f"{type(one).__name__}: cdf"):
            one.cdf(bp.asarray(0.5))
