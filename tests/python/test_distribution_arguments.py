"""What all distributions have: validate_args, expand, mode, perplexity, enumerate_support."""

import math

import numpy as np
import pytest

import backplane as bp
from backplane import distributions as dist

ROOT = [[1.5, 0.0], [0.3, 1.2]]
# Text, and the mode by torch.distributions 2.13 or by the definition; None: not defined.
ALL = {
    "Bernoulli([0.25, 0.75])": [0, 1], "Beta([2.0, 0.5, 0.5, 1.0, 3.0], [3.0, 1.5, 0.5, 2.0, 1.0])": [1 / 3, 0, math.nan, 0, 1], "Binomial(5, [0.3, 0.9])": [1, 5],
    "Categorical([[0.2, 0.3, 0.5], [0.9, 0.05, 0.05]])": [2, 0], "Cauchy([0.5], 2.0)": [0.5], "Chi2([3.0, 0.5])": [1, 0], "ContinuousBernoulli([0.3])": None,
    "Dirichlet([[1.5, 2.0, 3.0], [0.5, 4.0, 0.25]])": [[0.5 / 3.5, 1 / 3.5, 2 / 3.5], [0, 1, 0]], "Exponential([1.5])": [0], "FisherSnedecor([5.0, 1.0], 7.0)": [3 / 5 * 7 / 9, math.nan],
    "Gamma([2.0, 0.5], 1.5)": [1 / 1.5, 0], "GeneralizedPareto([0.5], 2.0, 0.1)": [0.5], "Geometric([0.3])": [0], "Gumbel([0.5], 2.0)": [0.5], "HalfCauchy([1.0])": [0],
    "HalfNormal([1.0])": [0], "InverseGamma([3.5], 2.0)": [2 / 4.5], "Kumaraswamy([2.0, 0.5], [3.0, 0.5])": [math.sqrt(0.2), math.nan], "Laplace([0.5], 2.0)": [0.5],
    "LogNormal([0.5], 0.7)": [math.exp(0.01)], "LogisticNormal([[0.2, 0.3]], 1.0)": None, "LowRankMultivariateNormal([0.0, 1.0], [[1.0], [0.5]], [0.5, 1.0])": [0, 1],
    "MultivariateNormal([0.0, 1.0], scale_tril=asarray(ROOT))": [0, 1], "Multinomial(5, [0.2, 0.8])": None, "NegativeBinomial([5.0, 0.5], 0.25)": [1, 0],
    "Normal([0.5, 1.0], 2.0)": [0.5, 1], "OneHotCategorical([0.2, 0.3, 0.5])": [0, 0, 1], "Pareto([1.5], 3.5)": [1.5], "Poisson([3.5, 2.0])": [3, 2],
    "RelaxedBernoulli(0.5, [0.3])": None, "RelaxedOneHotCategorical(0.5, [0.2, 0.8])": None, "StudentT([5.0], 0.5, 2.0)": [0.5], "Uniform([0.2], 0.7)": [math.nan],
    "VonMises([0.5], 2.0)": [0.5], "Weibull([1.5, 1.5], [2.0, 0.5])": [1.5 * math.sqrt(0.5), 0], "Wishart(5.0, scale_tril=asarray(ROOT))": (2 * np.array(ROOT) @ np.array(ROOT).T).tolist(),
    "LKJCholesky(3, [1.5])": None, "Independent(Normal([0.5, 1.0], 2.0), 1)": [0.5, 1],
}  # fmt: skip


def made(text, **more):
    with bp.default_dtype(bp.float64):
        return eval(text[:-1] + "".join(f", {word}={value}" for word, value in more.items()) + ")", {**vars(dist), "asarray": bp.asarray, "ROOT": ROOT})


@pytest.mark.parametrize("text", ALL)
def test_modes(text):
    one = made(text)
    if ALL[text] is None:
        with pytest.raises(NotImplementedError, match="mode is not defined"):
            one.mode  # noqa: B018
        return
    assert one.mode.shape == (*one.batch_shape, *one.event_shape) and np.allclose(one.mode.numpy(), ALL[text], equal_nan=True)


@pytest.mark.parametrize("text", ALL)
def test_a_larger_batch_has_the_same_parameters(text):
    one = made(text)
    value = one.sample((2,), generator=bp.Generator(0))
    for shape in ((4, *one.batch_shape), (2, 3, *one.batch_shape)):
        larger = one.expand(shape)
        assert type(larger) is type(one) and larger.batch_shape == shape and larger.event_shape == one.event_shape
        assert larger.sample((5,)).shape == (5, *shape, *one.event_shape)
        rows = value.reshape((2, *(1,) * (len(shape) - len(one.batch_shape)), *value.shape[1:]))
        found, expected = larger.log_prob(rows), one.log_prob(rows)
        assert found.shape == (2, *shape) and bp.allclose(found, expected, rtol=1e-9)
        assert larger.expand((7, *shape)).sample().shape == (7, *shape, *one.event_shape)
    if one.batch_shape == (1,):
        assert one.expand((6,)).sample().shape == (6, *one.event_shape)


def test_a_batch_that_does_not_fit():
    with pytest.raises(bp.ShapeError, match="expand: argument batch_shape: found \\(4,\\)"):
        dist.Normal(bp.zeros(3), 1.0).expand((4,))


@pytest.mark.parametrize("text", ALL)
def test_checks_may_be_left_out(text):
    one = made(text, validate_args=False)
    value = made(text).sample(generator=bp.Generator(0))
    assert bp.allclose(one.log_prob(value), made(text).log_prob(value), equal_nan=True)
    assert not one.expand((2, *one.batch_shape))._checks


def test_what_the_checks_refuse():
    assert bp.isnan(dist.Normal(bp.nan, 1.0, validate_args=False).log_prob(1.0))
    assert dist.Exponential(1.0, validate_args=False).log_prob(-1.0) == -bp.inf
    assert dist.RelaxedBernoulli(-1.0, 0.5, validate_args=False).temperature == -1
    assert dist.InverseGamma(-1.0, 1.0, validate_args=False).concentration == -1
    dist.Distribution.set_default_validate_args(False)
    try:
        dist.Normal(0.0, -1.0)
        with pytest.raises(bp.ArgumentValueError, match="scale: found -1"):
            dist.Normal(0.0, -1.0, validate_args=True)
    finally:
        dist.Distribution.set_default_validate_args(True)
    with pytest.raises(bp.ArgumentValueError, match="scale: found -1"):
        dist.Normal(0.0, -1.0)


def test_values_are_enumerated():
    assert dist.Bernoulli(bp.asarray([0.3, 0.6])).enumerate_support().tolist() == [[0, 0], [1, 1]]
    assert dist.Bernoulli(bp.asarray([0.3, 0.6])).enumerate_support(expand=False).shape == (2, 1)
    assert dist.Categorical(bp.ones(3)).enumerate_support().tolist() == [0, 1, 2]
    assert dist.Binomial(2, bp.asarray([0.3])).enumerate_support().tolist() == [[0], [1], [2]]
    hot = dist.OneHotCategorical(bp.ones((2, 3)))
    assert hot.enumerate_support().shape == (3, 2, 3) and hot.enumerate_support(expand=False).shape == (3, 1, 3)
    for one in (dist.Bernoulli(0.3), dist.Categorical(bp.asarray([0.2, 0.8])), dist.Binomial(4, 0.3), dist.OneHotCategorical(bp.asarray([0.2, 0.8]))):
        assert bp.allclose(bp.exp(one.log_prob(one.enumerate_support())).sum(0), 1.0)
    with pytest.raises(NotImplementedError, match="total_count differs"):
        dist.Binomial(bp.asarray([2.0, 3.0]), 0.5).enumerate_support()
    with pytest.raises(NotImplementedError, match="not finitely many"):
        dist.Poisson(1.0).enumerate_support()
    assert bp.allclose(dist.Categorical(bp.ones(4)).perplexity(), 4.0)
