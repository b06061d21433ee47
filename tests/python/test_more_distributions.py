"""VonMises, F, continuous Bernoulli, relaxed and one-hot categories, matrices and low-rank vectors: densities of PyTorch (recorded), samples, gradients."""

import math

import numpy as np
import pytest

import backplane as bp
from backplane import distributions as dist

ROOT = "[[1.5, 0.0, 0.0], [0.3, 1.2, 0.0], [-0.5, 0.4, 0.9]]"
# (distribution, value, log_prob, entropy), by torch.distributions and SciPy in float64; of ContinuousBernoulli near 1/2 and of large logits by mpmath.
CASES = [
    ("VonMises(0.5, 2.0)", 1.25, -1.1984928701446596, 1.2663212919642852),
    ("VonMises(0.5, 30.0)", 1.25, -7.271912433366653, -0.2731081613788007),
    ("FisherSnedecor(5.0, 7.0)", 1.5, -1.3005786616560266, None),
    ("ContinuousBernoulli(logits=-3.0)", 0.25, 0.3996814696108113, -0.3068685590845791),
    ("ContinuousBernoulli(logits=0.001)", 0.25, -0.0002500416666663194, -4.166666562500003e-08),
    ("ContinuousBernoulli(logits=40.0)", 0.25, -26.311120545886062, -2.6888794541139367),
    ("ContinuousBernoulli(0.3)", 0.75, -0.24156058834867633, -0.02938620223212912),
    ("RelaxedBernoulli(0.5, 0.3)", 0.75, -0.8579549680382184, None),
    ("LogitRelaxedBernoulli(0.5, 0.3)", 0.75, -2.4317752663591112, None),
    ("RelaxedOneHotCategorical(0.5, [0.2, 0.3, 0.5])", [0.125, 0.625, 0.25], -0.2921265506502966, None),
    ("OneHotCategorical([0.2, 0.3, 0.5])", [0.0, 1.0, 0.0], -1.2039728043259361, 1.0296530140645737),
    ("LogisticNormal([0.2, 0.3], [1.0, 0.5])", [0.125, 0.625, 0.25], 0.9761209924923624, None),
    ("GeneralizedPareto(0.5, 2.0, 0.1)", 1.5, -1.2298389864236974, 1.7931471805599453),
    ("GeneralizedPareto(0.5, 2.0, -0.25)", 1.5, -1.0937413584335132, 1.4431471805599454),
    ("LowRankMultivariateNormal([0.0, 1.0, 2.0], [[1.0], [0.5], [-1.0]], [0.5, 1.0, 1.5])", [0.5, 0.25, -1.0], -5.947190784030008, 4.795595039349157),
    (f"Wishart(5.5, scale_tril=asarray({ROOT}))", [[2.0, 0.5, 0.25], [0.5, 3.0, -0.5], [0.25, -0.5, 1.5]], -12.083370520414459, 15.342177811038269),
    ("LKJCholesky(3, 1.5)", [[1.0, 0.0, 0.0], [0.5, 0.8660254037844386, 0.0], [0.2, 0.23094010767585033, 0.9521904571390466]], -1.3636191268248996, None),
]


def made(text):
    return eval(text, {**vars(dist), "asarray": bp.asarray})


@pytest.mark.parametrize(("text", "value", "log_prob", "entropy"), CASES)
def test_densities(text, value, log_prob, entropy):
    with bp.default_dtype(bp.float64):
        one, x = made(text), bp.asarray(value)
        assert math.isclose(one.log_prob(x).item(), log_prob, rel_tol=1e-9)
        assert entropy is None or math.isclose(one.entropy().item(), entropy, rel_tol=1e-9)
        assert math.isclose(bp.compile(lambda x: made(text).log_prob(x))(x).item(), log_prob, rel_tol=1e-9)
        rows = bp.vmap(one.log_prob)(bp.stack([x, x]))
        assert bp.allclose(rows, one.log_prob(x), rtol=1e-12)


@pytest.mark.parametrize("text", [row[0] for row in CASES if "LKJ" not in row[0] and "Relaxed" not in row[0] and "VonMises" not in row[0] and "LogisticNormal" not in row[0]])
def test_samples_have_the_mean_and_the_variance(text):
    one = made(text)
    x = one.sample((20000,), generator=bp.Generator(1))
    assert x.shape == (20000, *one.batch_shape, *one.event_shape)
    assert bp.all(bp.abs(x.mean(0) - one.mean) < 5 * one.stddev / math.sqrt(20000) + 1e-6) and bp.allclose(x.var(0), one.variance, rtol=0.2, atol=1e-6)
    one.log_prob(x)  # refuses what lies outside of the support


@pytest.mark.parametrize("concentration", [1e-6, 0.5, 4.0, 1e4])
def test_angles_have_the_circular_moments(concentration):
    one = dist.VonMises(bp.asarray(3.0, dtype=bp.float64), concentration)
    x = one.sample((20000,), generator=bp.Generator(2)).numpy()
    assert x.min() >= -math.pi and x.max() <= math.pi
    spread = np.std(np.cos(x - 3.0)) / math.sqrt(20000)
    assert abs(np.mean(np.cos(x - 3.0)) - (1 - one.variance.item())) < 5 * spread and abs(np.mean(np.sin(x - 3.0))) < 5 * np.std(np.sin(x - 3.0)) / math.sqrt(20000)
    assert math.isclose(one.variance.item(), 1 / (2 * concentration), rel_tol=0.2) or concentration < 1
    grid = np.linspace(-math.pi, math.pi, 20001)
    assert math.isclose(np.trapezoid(np.exp(one.log_prob(bp.asarray(grid)).numpy()), grid), 1, rel_tol=1e-6)


def test_near_one_half_and_large_logits_of_the_continuous_bernoulli():
    logits = bp.asarray([-800.0, -2.5, -1.9, -1e-3, -1e-8, 0.0, 1e-8, 1e-3, 1.9, 2.5, 800.0], dtype=bp.float64)
    one = dist.ContinuousBernoulli(logits=logits)
    x = np.linspace(0, 1, 4001)[:, None]
    density = np.exp(one.log_prob(bp.asarray(x)).numpy())
    middle = slice(1, 10)
    assert np.allclose(np.trapezoid(density, x, axis=0)[middle], 1, rtol=1e-6)
    assert np.allclose(np.trapezoid(x * density, x, axis=0)[middle], one.mean.numpy()[middle], rtol=1e-6)
    assert np.allclose(np.trapezoid((x - one.mean.numpy()) ** 2 * density, x, axis=0)[middle], one.variance.numpy()[middle], rtol=1e-5)
    assert bp.allclose(one.mean[[0, -1]], bp.asarray([1 / 800, 1 - 1 / 800], dtype=bp.float64)) and bp.allclose(one.variance[0], 1 / 800**2, rtol=1e-9)
    slope = bp.grad(lambda t: dist.ContinuousBernoulli(logits=t).mean)(bp.asarray(0.0, dtype=bp.float64))
    assert math.isclose(slope.item(), 1 / 12, rel_tol=1e-12)


@pytest.mark.parametrize("concentration", [0.5, 1.0, 3.0])
def test_correlations_are_exchangeable(concentration):
    """Each correlation has the variance 1 / (2 concentration + dim - 1), whatever its place."""
    one = dist.LKJCholesky(4, bp.asarray(concentration, dtype=bp.float64))
    factors = one.sample((20000,), generator=bp.Generator(3))
    correlations = factors @ factors.mT
    assert bp.allclose(bp.linalg.diagonal(correlations), 1.0) and one.log_prob(factors).shape == (20000,)
    squares = (correlations**2).mean(0)[bp.asarray([0, 0, 0, 1, 1, 2]), bp.asarray([1, 2, 3, 2, 3, 3])]
    assert bp.allclose(squares, 1 / (2 * concentration + 3), rtol=0.05)


@pytest.mark.parametrize(("text", "parameter"), [
    ("FisherSnedecor({}, 7.0)", 5.0), ("FisherSnedecor(5.0, {})", 7.0), ("ContinuousBernoulli(logits={})", 0.4), ("RelaxedBernoulli(0.5, logits={})", 0.3),
    ("GeneralizedPareto(0.0, 1.0, {})", 0.1),
])  # fmt: skip
def test_reparametrised_samples_move_with_the_parameter(text, parameter):
    """With the same random numbers, the gradient of a mean is the difference of means."""

    def mean(p):
        return _drawn(text, p).mean()

    p = bp.asarray(parameter, dtype=bp.float64)
    if text.startswith("Fisher"):  # the number of rounds of rejection may differ between neighbours
        one = bp.grad(lambda p: bp.log(_drawn(text, p, 20000)).mean())(p).item()
        exact = 0.5 * _trigamma(parameter / 2) - 1 / parameter
        assert math.isclose(one, exact if "{}, 7" in text else -exact, rel_tol=0.1)
        return
    found = bp.grad(mean)(p).item()
    assert math.isclose(found, (mean(p + 1e-6).item() - mean(p - 1e-6).item()) / 2e-6, rel_tol=1e-5)


def _drawn(text, p, count=2000):
    return eval(text.replace("{}", "p"), {**vars(dist), "p": p}).rsample((count,), generator=bp.Generator(4))


def _trigamma(x):
    return bp.polygamma(1, bp.asarray(x, dtype=bp.float64)).item()


def test_straight_through_samples_have_the_gradient_of_the_probabilities():
    logits, weights = bp.asarray([0.1, 0.5, -0.3]), bp.asarray([1.0, 2.0, 3.0])
    found = bp.grad(lambda t: (dist.OneHotCategoricalStraightThrough(logits=t).rsample(generator=bp.Generator(0)) * weights).sum())(logits)
    assert bp.allclose(found, bp.grad(lambda t: (bp.softmax(t) * weights).sum())(logits), atol=1e-6)
    hard = dist.OneHotCategoricalStraightThrough(logits=logits).rsample((5,))
    assert bp.allclose(hard.sum(-1), 1.0) and bp.allclose(hard.max(-1), 1.0)


def test_relaxed_samples_come_near_to_categories():
    soft = dist.RelaxedOneHotCategorical(0.01, probs=bp.asarray([0.2, 0.3, 0.5])).rsample((20000,), generator=bp.Generator(5))
    assert bp.allclose(soft.mean(0), bp.asarray([0.2, 0.3, 0.5]), atol=0.02) and bp.allclose(soft.sum(-1), 1.0)
    zero_one = dist.RelaxedBernoulli(0.01, probs=0.3).rsample((20000,), generator=bp.Generator(6))
    assert abs(zero_one.mean().item() - 0.3) < 0.02
    assert dist.RelaxedBernoulli(0.5, probs=0.3).temperature == 0.5 and dist.RelaxedOneHotCategorical(0.5, logits=bp.zeros(3)).probs.shape == (3,)


def test_matrices_of_low_rank_vectors():
    with bp.default_dtype(bp.float64):
        one = made("LowRankMultivariateNormal([0.0, 1.0, 2.0], [[1.0], [0.5], [-1.0]], [0.5, 1.0, 1.5])")
        full = dist.MultivariateNormal(one.loc, one.covariance_matrix)
        x = bp.normal((5, 3))
        assert bp.allclose(one.log_prob(x), full.log_prob(x)) and bp.allclose(one.entropy(), full.entropy())
        assert bp.allclose(one.precision_matrix @ one.covariance_matrix, bp.eye(3)) and bp.allclose(one.scale_tril, full.scale_tril)
        drawn = one.rsample((20000,), generator=bp.Generator(7))
        assert bp.allclose(bp.cov(drawn.mT), one.covariance_matrix, atol=0.08)
        # A covariance of nearly rank one: the squared distance is a sum, in which nothing cancels.
        steep = dist.LowRankMultivariateNormal(bp.zeros(2), bp.asarray([[1e6], [1e6]]), bp.ones(2))
        assert math.isclose(steep.log_prob(bp.asarray([1.0, -1.0])).item(), -1 - math.log(2 * math.pi) - 0.5 * math.log(2e12 + 1), rel_tol=1e-9)


@pytest.mark.parametrize("dtype", [bp.float16, bp.bfloat16])
@pytest.mark.parametrize("text", ["LogisticNormal([0.2, 0.3], 1.0)", "LKJCholesky(3, 1.5)", "RelaxedOneHotCategorical(0.5, [0.2, 0.8])", "RelaxedBernoulli(0.5, 0.3)", "VonMises(0.5, 2.0)"])
def test_samples_of_half_floats_lie_in_the_support(text, dtype):
    with bp.default_dtype(dtype):
        one = made(text)
    x = one.sample((50,), generator=bp.Generator(8))
    assert x.dtype == one.log_prob(x).dtype == dtype


WRONG = [
    ("VonMises(0.0, 0.0)", "concentration"), ("FisherSnedecor(0.0, 1.0)", "df1"), ("ContinuousBernoulli(1.5)", "probs"), ("RelaxedBernoulli(0.0, 0.5)", "temperature"),
    ("RelaxedOneHotCategorical(-1.0, [0.5, 0.5])", "temperature"), ("LKJCholesky(1)", "dim: found 1"), ("LKJCholesky(3, 0.0)", "concentration"),
    ("Wishart(1.0, asarray([[1.0, 0.0], [0.0, 1.0]]))", "df: found 1"), ("GeneralizedPareto(0.0, -1.0, 0.1)", "scale"),
    ("LowRankMultivariateNormal([0.0, 1.0], [[1.0], [0.5]], [0.5, -1.0])", "cov_diag"), ("Wishart(3.0)", "expected one of covariance_matrix"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "match"), WRONG)
def test_parameters_of_no_distribution_are_refused(text, match):
    with pytest.raises(bp.ArgumentValueError, match=match):
        made(text)


def test_values_outside_of_the_support_are_refused():
    for text, value in (
        ("FisherSnedecor(3.0, 4.0)", -1.0), ("ContinuousBernoulli(0.3)", 1.5), ("OneHotCategorical([0.5, 0.5])", [1.0, 1.0]),
        ("LKJCholesky(2)", [[1.0, 0.0], [0.5, 0.5]]), ("Wishart(3.0, asarray([[1.0, 0.0], [0.0, 1.0]]))", [[1.0, 0.5], [0.0, 1.0]]), ("GeneralizedPareto(0.0, 1.0, -0.5)", 2.5),
    ):  # fmt: skip
        with pytest.raises(bp.ArgumentValueError, match="log_prob: argument value"):
            made(text).log_prob(bp.asarray(value))
