"""kl_divergence of pairs: against quadrature of p · (log p - log q), of means of samples for vectors, infinite beyond q's support; register_kl."""

import itertools
import math

import numpy as np
import pytest

import backplane as bp
from backplane import distributions as dist

T = np.linspace(-8, 8, 20001)
HALF_LINE, LINE, UNIT = np.exp(np.sinh(T / 2)), np.sinh(np.sinh(T / 2)), 1 / (1 + np.exp(-np.sinh(T / 2)))

# Name: two sets of parameters, and points of the support.
CONTINUOUS = {
    "Beta": ("2.0, 3.0", "1.7, 2.5", UNIT), "ContinuousBernoulli": ("0.3", "0.8", UNIT), "Exponential": ("1.5", "0.7", HALF_LINE),
    "Gamma": ("2.0, 1.5", "1.7, 3.0", HALF_LINE), "Gumbel": ("0.5, 2.0", "-1.0, 1.7", LINE), "Laplace": ("0.5, 2.0", "-1.0, 1.7", LINE),
    "Normal": ("0.5, 2.0", "-1.0, 1.7", LINE), "Pareto": ("1.5, 3.5", "1.25, 2.5", 1.5 + HALF_LINE), "Uniform": ("0.25, 0.75", "0.125, 0.875", 0.25 + 0.5 * UNIT),
    "Cauchy": ("0.5, 2.0", "-1.0, 1.7", LINE), "HalfCauchy": ("1.0", "2.0", HALF_LINE), "VonMises": ("0.5, 2.0", "-1.0, 3.0", math.pi * (2 * UNIT - 1)),
    "Chi2": ("3.0", "5.0", HALF_LINE), "LogNormal": ("0.5, 0.7", "0.0, 1.0", HALF_LINE), "HalfNormal": ("1.0", "2.0", HALF_LINE),
}  # fmt: skip
INFINITE = {
    "Exponential": "Beta ContinuousBernoulli Pareto Uniform", "Gamma": "Beta ContinuousBernoulli Pareto Uniform", "Chi2": "Beta ContinuousBernoulli Pareto Uniform",
    "Gumbel": "Beta ContinuousBernoulli Exponential Gamma Chi2 Pareto Uniform", "Laplace": "Beta ContinuousBernoulli Exponential Gamma Chi2 Pareto Uniform",
    "Normal": "Beta ContinuousBernoulli Exponential Gamma Chi2 Pareto Uniform", "Pareto": "Beta ContinuousBernoulli Uniform", "Beta": "Pareto Uniform",
    "ContinuousBernoulli": "Pareto Uniform", "Uniform": "Pareto",
}  # fmt: skip
FINITE = {
    "Beta": "ContinuousBernoulli Exponential Gamma Chi2 Normal", "ContinuousBernoulli": "Exponential Normal", "Exponential": "Gamma Chi2 Gumbel Normal",
    "Gamma": "Exponential Gumbel Normal Chi2", "Chi2": "Exponential Gumbel Normal Gamma", "Gumbel": "Normal", "Laplace": "Normal", "Normal": "Gumbel Laplace",
    "Pareto": "Exponential Gamma Chi2 Normal", "Uniform": "Beta ContinuousBernoulli Exponential Gamma Chi2 Gumbel Normal",
}  # fmt: skip


def made(name, which):
    with bp.default_dtype(bp.float64):
        return eval(f"{name}({CONTINUOUS[name][which]})", vars(dist))


def pairs(table):
    return [(p, q) for p, names in table.items() for q in names.split()]


@pytest.mark.parametrize(("p", "q"), [(name, name) for name in CONTINUOUS] + pairs(FINITE))
def test_a_divergence_is_its_integral(p, q):
    x = CONTINUOUS[p][2]
    one, other = made(p, 0), made(q, 1)
    with np.errstate(all="ignore"):
        width = np.gradient(x, T)
        inside = (width > 0) & (np.abs(x) < 1e30) & ((x > 0) | (x is LINE) | (p == "VonMises")) & ((x < 1) | (x is not UNIT))
        x, width = x[inside], width[inside]
        first, second = (one.log_prob(bp.asarray(x)).numpy(), other.log_prob(bp.asarray(x)).numpy())
        terms = np.where(np.isfinite(first) & (first > -600), np.exp(first) * (first - second), 0) * width
    expected = np.nansum(terms) * (T[1] - T[0])
    tolerance = 1e-4 if p in ("Cauchy", "Pareto", "HalfCauchy") else 1e-6
    found = dist.kl_divergence(one, other)
    assert found.shape == () and math.isclose(found.item(), expected, rel_tol=tolerance, abs_tol=1e-9)
    assert math.isclose(bp.compile(lambda: dist.kl_divergence(made(p, 0), made(q, 1)))().item(), found.item(), rel_tol=1e-12)


@pytest.mark.parametrize(("p", "q"), pairs(INFINITE))
def test_a_divergence_is_infinite_where_q_has_no_values(p, q):
    assert dist.kl_divergence(made(p, 0), made(q, 1)).item() == math.inf


def test_supports_that_depend_on_parameters():
    with bp.default_dtype(bp.float64):
        inside, outside = dist.Uniform(0.0, 1.0), dist.Uniform(-0.5, 1.0)
        for q in (dist.Exponential(1.0), dist.Gamma(2.0, 1.0), dist.Beta(2.0, 2.0), dist.ContinuousBernoulli(0.3)):
            assert math.isfinite(dist.kl_divergence(inside, q).item()) and dist.kl_divergence(outside, q).item() == math.inf
        assert math.isfinite(dist.kl_divergence(dist.Beta(2.0, 2.0), inside).item()) and dist.kl_divergence(dist.ContinuousBernoulli(0.3), inside).item() < 1
        assert dist.kl_divergence(dist.Pareto(1.0, 2.0), dist.Pareto(2.0, 2.0)).item() == math.inf
        assert dist.kl_divergence(dist.Uniform(2.0, 3.0), dist.Pareto(1.5, 2.0)).item() == pytest.approx(3 * (3 * math.log(3) - 2 * math.log(2) - 1) - math.log(2 * 1.5**2))
        assert dist.kl_divergence(dist.Pareto(1.5, 1.5), dist.Normal(0.0, 1.0)).item() == math.inf  # the variance of p is infinite
        slope = bp.grad(lambda low: dist.kl_divergence(dist.Uniform(low, 1.0), dist.Gamma(2.0, 1.0)))(bp.asarray(-0.5))
        assert slope.item() == 0


def test_divergences_of_integers():
    with bp.default_dtype(bp.float64):
        k = np.arange(6)
        p, q = dist.Binomial(5, 0.3), dist.Binomial(5, 0.6)
        first, second = (one.log_prob(bp.asarray(k)).numpy() for one in (p, q))
        assert math.isclose(dist.kl_divergence(p, q).item(), (np.exp(first) * (first - second)).sum(), rel_tol=1e-10)
        assert dist.kl_divergence(p, dist.Binomial(4, 0.6)).item() == math.inf
        with pytest.raises(bp.ArgumentValueError, match="at most the total_count of p"):
            dist.kl_divergence(p, dist.Binomial(6, 0.6))
        rare = dist.Bernoulli(0.3)
        first, second = (one.log_prob(bp.asarray([0.0, 1.0])).numpy() for one in (rare, dist.Poisson(2.0)))
        assert math.isclose(dist.kl_divergence(rare, dist.Poisson(2.0)).item(), (np.exp(first) * (first - second)).sum(), rel_tol=1e-10)
        assert dist.kl_divergence(dist.Poisson(2.0), rare).item() == dist.kl_divergence(dist.Poisson(2.0), p).item() == math.inf
        probs = [0.2, 0.3, 0.5], [0.1, 0.1, 0.8]
        assert dist.kl_divergence(*(dist.OneHotCategorical(x) for x in probs)) == dist.kl_divergence(*(dist.Categorical(x) for x in probs))


def _vectors():
    with bp.default_dtype(bp.float64):
        a = bp.normal((3, 3), generator=bp.Generator(0))
        covariance = a @ a.mT + bp.eye(3)
        factor = bp.asarray([[1.0, 0.5], [0.0, 1.0], [-1.0, 0.3]])
        return [
            dist.MultivariateNormal([0.0, 1.0, 2.0], covariance), dist.MultivariateNormal([1.0, 0.0, 0.0], covariance + bp.eye(3)),
            dist.LowRankMultivariateNormal([0.0, 1.0, 2.0], factor[:, :1], [0.5, 1.0, 1.5]), dist.LowRankMultivariateNormal([1.0, 0.0, 0.0], factor, [1.5, 1.0, 0.5]),
        ]  # fmt: skip


@pytest.mark.parametrize(("i", "j"), itertools.product(range(4), range(4)))
def test_divergences_of_normal_vectors(i, j):
    p, q = _vectors()[i], _vectors()[j]
    ratio = bp.linalg.solve(q.covariance_matrix, p.covariance_matrix)
    away = q.loc - p.loc
    expected = 0.5 * (bp.trace(ratio) - 3 - bp.linalg.slogdet(ratio)[1] + away @ bp.linalg.solve(q.covariance_matrix, away))
    assert math.isclose(dist.kl_divergence(p, q).item(), expected.item(), rel_tol=1e-9, abs_tol=1e-12)


def test_divergence_of_wishart_matrices():
    p, q = (dist.Wishart(bp.asarray(df, dtype=bp.float64), one.covariance_matrix) for df, one in zip((5.0, 7.5), _vectors()))
    x = p.sample((20000,), generator=bp.Generator(1))
    terms = p.log_prob(x) - q.log_prob(x)
    assert abs(terms.mean().item() - dist.kl_divergence(p, q).item()) < 5 * terms.std().item() / math.sqrt(20000)
    assert abs(dist.kl_divergence(p, p).item()) < 1e-12


def test_divergences_of_distributions_made_of_others():
    normals = dist.Normal(0.0, 1.0), dist.Normal(1.0, 2.0)
    plain = dist.kl_divergence(*normals)
    for transform in (dist.ExpTransform(), [dist.AffineTransform(1.0, bp.asarray(2.0)), dist.TanhTransform()]):
        assert dist.kl_divergence(*(dist.TransformedDistribution(one, transform) for one in normals)) == plain
    with pytest.raises(bp.ArgumentTypeError, match="different transforms"):
        dist.kl_divergence(*(dist.TransformedDistribution(one, dist.AffineTransform(1.0, scale)) for one, scale in zip(normals, (2.0, 3.0))))
    with pytest.raises(bp.ArgumentTypeError, match="Independent of 1 and of 2 axes"):
        dist.kl_divergence(*(dist.Independent(dist.Normal(bp.zeros((2, 2)), 1.0), count) for count in (1, 2)))
    logistic = [dist.LogisticNormal(bp.asarray([loc, 0.5]), bp.ones(2)) for loc in (0.0, 1.0)]
    assert dist.kl_divergence(*logistic) == 0.5


def test_formulas_of_users():
    class Mine(dist.Normal):
        pass

    @dist.register_kl(Mine, dist.Normal)
    def formula(p, q):
        return bp.asarray(7.0)

    assert dist.kl_divergence(Mine(0.0, 1.0), dist.Normal(0.0, 1.0)) == 7 and dist.kl_divergence(Mine(0.0, 1.0), Mine(0.0, 1.0)) == 7
    assert dist.kl_divergence(dist.Normal(0.0, 1.0), Mine(0.0, 1.0)) == 0
    with pytest.raises(bp.ArgumentTypeError, match="expected a class of distributions"):
        dist.register_kl(int, Mine)
    with pytest.raises(bp.ArgumentTypeError, match="StudentT and Normal, which have no formula"):
        dist.kl_divergence(dist.StudentT(3.0), dist.Normal(0.0, 1.0))
