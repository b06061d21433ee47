"""Distributions: densities are those of PyTorch (recorded), samples have the stated means, and rsample carries gradients."""

import math

import numpy as np
import pytest

import backplane as bp
from backplane import distributions as dist

# (distribution, value, log_prob, entropy), the numbers by torch.distributions in float64.
CASES = [
    ("Normal(0.5, 2.0)", 1.5, -1.737085713764618, 2.112085713764618),
    ("LogNormal(0.5, 0.7)", 1.5, -0.9768479277669628, 1.5622635892659402),
    ("Laplace(0.5, 2.0)", -1.0, -2.136294361119891, 2.386294361119891),
    ("Gumbel(0.5, 2.0)", 1.5, -1.7996778402725786, 2.270362845461478),
    ("Cauchy(0.5, 2.0)", 1.5, -2.061020617723555, 3.224171427529236),
    ("HalfNormal(2.0)", 1.5, -1.2001885332046727, 1.4189385332046727),
    ("Exponential(2.0)", 1.5, -2.3068528194400546, 0.3068528194400547),
    ("Uniform(0.5, 2.0)", 1.5, -0.4054651081081644, 0.4054651081081644),
    ("Bernoulli(0.3)", 1.0, -1.2039728043259361, 0.6108643020548935),
    ("Bernoulli(logits=0.4)", 0.0, -0.9130152523999526, 0.6735401883549719),
    ("Geometric(0.3)", 2.0, -1.9173226922034008, 2.0362143401829784),
    ("Gamma(2.5, 1.5)", 0.7, -0.8560325161106066, 1.32448280139689),
    ("Gamma(0.4, 1.5)", 0.7, -1.4704868080952784, -0.7456180171574497),
    ("Chi2(3.0)", 1.5, -1.4662059791505906, 2.0541199559354117),
    ("InverseGamma(3.5, 2.0)", 0.7, -0.027064079805827035, 0.42991590000342583),
    ("Beta(2.0, 0.5)", 0.3, -1.313317404808351, -0.7652789553347761),
    ("Beta(3.0, 1.0)", 1.0, 1.0986122886681096, -0.43194562200144304),
    ("StudentT(5.0, 0.5, 2.0)", 1.5, -1.8081372621229654, 2.3206498529743413),
    ("Poisson(3.5)", 2.0, -1.6876212435692093, None),
    ("Poisson(25.0)", 30.0, -3.0919616027841386, None),
    ("Binomial(10, 0.3)", 4.0, -1.6088333502186707, None),
    ("Binomial(100, 0.7)", 75.0, -3.0045727806935645, None),
    ("Binomial(10, logits=0.4)", 4.0, -2.183044993282058, None),
    ("NegativeBinomial(5.0, 0.3)", 2.0, -1.483270127243324, None),
    ("Weibull(1.5, 2.0)", 0.7, -0.6922357573728938, 1.0009257599989856),
    ("Pareto(1.5, 3.5)", 2.5, -1.4514174465597547, 0.4384164253270819),
    ("Kumaraswamy(2.0, 3.0)", 0.4, 0.5267619630643445, -0.2084261358947218),
    ("HalfCauchy(2.0)", 1.5, -1.5910169884778194, 2.5310242469692907),
]


@pytest.mark.parametrize(("made", "value", "log_prob", "entropy"), CASES)
def test_densities(made, value, log_prob, entropy):
    with bp.default_dtype(bp.float64):
        one = eval(made, vars(dist))
        assert math.isclose(one.log_prob(value).item(), log_prob, rel_tol=1e-9)
        assert entropy is None or math.isclose(one.entropy().item(), entropy, rel_tol=1e-9)


@pytest.mark.parametrize("made", [row[0] for row in CASES if "Cauchy" not in row[0] and row[0] not in ("Pareto(1.5, 3.5)", "InverseGamma(3.5, 2.0)")])
def test_samples_have_the_mean_and_the_variance(made):
    one = eval(made, vars(dist))
    x = one.sample((40000,), generator=bp.Generator(1))
    assert abs(x.mean().item() - one.mean.item()) < 5 * one.stddev.item() / 200
    assert abs(x.var().item() / one.variance.item() - 1) < 0.15 and not x.requires_grad


def test_rsample_carries_gradients():
    found = bp.grad(lambda loc, scale: dist.Normal(loc, scale).rsample((1000,), generator=bp.Generator(0)).mean(), argnums=(0, 1))(1.0, 2.0)
    assert abs(found[0].item() - 1) < 1e-5 and abs(found[1].item()) < 0.2
    with pytest.raises(NotImplementedError, match="Bernoulli"):
        dist.Bernoulli(0.5).rsample()


# (concentration, logarithm of the sample, its derivative), by mpmath with 40 digits.
SLOPES = [
    (0.01, -120.0, 11943.911454213132), (0.01, 0.5, 42.53142050441885), (0.5, -1.0, 3.0800577189803007), (1.0, 0.0, 1.1735630272247268),
    (1.0, 1.7, 0.44477936969808896), (3.0, 1.5, 0.2863699353704555), (3.0, 2.5, 0.16094634367413246), (20.0, 2.5, 0.0639390813415675),
    (20.0, 3.4, 0.04091065474019085), (1000.0, 6.8, 0.0010550208083970932), (1000.0, 7.0, 0.0009547456989402221),
]  # fmt: skip


def test_gamma_samples_move_with_their_concentration():
    from backplane.distributions import _gamma_gradient

    a, log, expected = (bp.asarray(column, dtype=bp.float64) for column in zip(*SLOPES))
    np.testing.assert_allclose(_gamma_gradient.slope(a, log).numpy(), expected.numpy(), rtol=1e-11)
    np.testing.assert_allclose(_gamma_gradient.slope(a.astype(bp.float32), log.astype(bp.float32)).numpy(), expected.numpy(), rtol=2e-5)


@pytest.mark.parametrize(
    ("made", "parameters", "moment"),
    [
        (lambda a, r: dist.Gamma(a, r), (2.5, 1.5), lambda x: x**2),
        (lambda a, r: dist.Gamma(a, r), (0.4, 0.7), lambda x: x),
        (lambda a, r: dist.InverseGamma(a, r), (5.0, 1.5), lambda x: x),
        (lambda a, b: dist.Beta(a, b), (1.5, 0.8), lambda x: x**2),
        (lambda a, b: dist.Dirichlet(bp.stack([a, b, a + b])), (1.5, 0.8), lambda x: x[..., 0] * x[..., 1]),
        (lambda df, s: dist.StudentT(df, 0.5, s), (9.0, 1.5), lambda x: x**2),
    ],
    ids=["gamma", "small gamma", "inverse gamma", "beta", "dirichlet", "student"],
)
def test_reparametrised_samples_have_the_gradient_of_the_mean(made, parameters, moment):
    """The mean of the samples' gradients is the derivative of the exact moment, here by differences of importance-free formulas."""
    given = [bp.asarray(x, dtype=bp.float64) for x in parameters]

    def estimate(*parameters):
        return moment(made(*parameters).rsample((40000,), generator=bp.Generator(3))).mean()

    def exact(*parameters):
        one = made(*parameters)
        mean, variance = one.mean, one.variance
        if mean.ndim:  # Dirichlet: E[x y] = covariance + means
            return mean[0] * mean[1] * (1 - 1 / (bp.sum(one.concentration) + 1))
        return mean if moment(bp.asarray(3.0)).item() == 3 else variance + mean**2

    found, expected = (bp.grad(f, argnums=(0, 1))(*given) for f in (estimate, exact))
    for x, y in zip(found, expected):
        assert abs(x.item() - y.item()) < 0.04 * max(1, abs(y.item()))
    assert made(*given).has_rsample and not made(*given).sample((3,)).requires_grad


def test_vectors_and_categories():
    covariance = bp.asarray([[2.0, 0.5], [0.5, 1.0]])
    one = dist.MultivariateNormal(bp.zeros(2), covariance)
    x = one.sample((50000,), generator=bp.Generator(0))
    np.testing.assert_allclose(np.cov(x.numpy().T), covariance.numpy(), atol=0.05)
    expected = -0.5 * np.log((2 * np.pi) ** 2 * 1.75) - 0.5 * np.array([1, 1]) @ np.linalg.inv(covariance.numpy()) @ np.array([1, 1])
    assert math.isclose(one.log_prob(bp.ones(2)).item(), expected, rel_tol=1e-5)
    categories = dist.Categorical(logits=bp.asarray([[0.0, math.log(3)], [0.0, 0.0]]))
    assert np.allclose(categories.log_prob(bp.asarray([1, 0])).numpy(), np.log([0.75, 0.5]))
    drawn = categories.sample((20000,), generator=bp.Generator(2))
    assert np.allclose(drawn.astype(bp.float32).mean(axis=0).numpy(), [0.75, 0.5], atol=0.02)
    both = dist.Independent(dist.Normal(bp.zeros(3), bp.ones(3)), 1)
    assert both.event_shape == (3,) and math.isclose(both.log_prob(bp.zeros(3)).item(), -1.5 * math.log(2 * math.pi), rel_tol=1e-6)


def test_vectors_of_probabilities_and_counts():
    with bp.default_dtype(bp.float64):
        one = dist.Dirichlet([1.5, 2.0, 0.5])
        assert math.isclose(one.log_prob([0.2, 0.5, 0.3]).item(), 0.4442970293245727, rel_tol=1e-9)
        assert math.isclose(one.entropy().item(), -1.5068434306052663, rel_tol=1e-9)
        other = dist.Dirichlet([1.0, 1.0, 2.0])
        assert math.isclose(dist.kl_divergence(one, other).item(), 2.934711655830434, rel_tol=1e-9)
        counts = dist.Multinomial(4, [0.2, 0.5, 0.3])
        assert math.isclose(counts.log_prob([1, 2, 1]).item(), -1.7147984280919268, rel_tol=1e-9)
    drawn = one.sample((20000,), generator=bp.Generator(0))
    assert bp.allclose(drawn.sum(axis=-1), bp.ones(20000, dtype=drawn.dtype)) and bp.allclose(drawn.mean(axis=0), one.mean, atol=0.01)
    drawn = counts.sample((20000,), generator=bp.Generator(0))
    assert bp.all(drawn.sum(axis=-1) == 4) and bp.allclose(drawn.mean(axis=0), counts.mean, atol=0.05)
    with pytest.raises(bp.ArgumentValueError, match="Dirichlet.log_prob"):
        one.log_prob([0.2, 0.5, 0.5])


@pytest.mark.parametrize(("p", "q"), [("Normal(0.0, 1.0)", "Normal(0.5, 2.0)"), ("Laplace(0.0, 1.0)", "Laplace(0.5, 2.0)"),
                                      ("Exponential(2.0)", "Exponential(1.0)"), ("Bernoulli(0.3)", "Bernoulli(0.6)"), ("Gamma(2.5, 1.5)", "Gamma(2.0, 1.0)"),
                                      ("Beta(2.0, 1.5)", "Beta(1.5, 2.0)"), ("Poisson(3.5)", "Poisson(3.0)")])  # fmt: skip
def test_divergences_are_means_of_differences(p, q):
    p, q = eval(p, vars(dist)), eval(q, vars(dist))
    x = p.sample((100000,), generator=bp.Generator(3))
    assert abs((p.log_prob(x) - q.log_prob(x)).mean().item() - dist.kl_divergence(p, q).item()) < 0.02


@pytest.mark.parametrize("made", [
    "Normal(0, -1)", "Normal(math.nan, 1)", "Normal(0, math.nan)", "HalfNormal(0)", "Exponential(-1.0)", "Uniform(1, 1)", "Bernoulli(2.0)", "Bernoulli(-0.1)",
    "Bernoulli(logits=math.nan)", "Categorical([-0.5, 1.0])", "Categorical([0.0, 0.0])", "Categorical(logits=[math.nan, 0.0])", "Categorical([math.inf, 1.0])",
    "Geometric(-1.0)", "Geometric(0.0)", "Geometric(1.5)", "MultivariateNormal([0, 0], scale_tril=bp.ones((2, 2)))",
    "MultivariateNormal([0, 0], scale_tril=-bp.eye(2))", "MultivariateNormal([0, 0], bp.asarray([[2.0, 1.0], [0.0, 2.0]]))",
])  # fmt: skip
def test_parameters_of_no_distribution_are_refused(made):
    name = made.split("(")[0]
    with pytest.raises(bp.ArgumentValueError, match=f"{name}: argument [a-z_]+: found .*, expected"):
        eval(made, {**vars(dist), "math": math, "bp": bp})


OUTSIDE = [("Normal(0, 1)", [math.nan]), ("Cauchy(0, 1)", [math.nan]), ("LogNormal(0, 1)", [-1.0, 0.0]), ("HalfNormal(1)", [-1.0]), ("Exponential(1)", [-1.0]),
           ("Uniform(0, 1)", [-0.1, 1.1]), ("Bernoulli(0.3)", [-1.0, 0.5, 2.0]), ("Bernoulli(logits=0.3)", [-1.0]), ("Geometric(0.3)", [-1.0, 0.5, math.inf]),
           ("Categorical([0.2, 0.3, 0.5])", [-1.0, 3.0, 0.5, math.nan])]  # fmt: skip


@pytest.mark.parametrize(("made", "values"), OUTSIDE)
def test_values_outside_of_the_support_are_refused(made, values):
    one = eval(made, vars(dist))
    for value in values:
        with pytest.raises(bp.ArgumentValueError, match=r"log_prob: argument value: found [-\d.naif]+, expected"):
            one.log_prob(bp.asarray(value))
        with pytest.raises(bp.ArgumentValueError, match="log_prob"):
            one.log_prob(value)
    # Where a value cannot be read its probability is 0.
    assert bp.vmap(one.log_prob)(bp.asarray(values)).tolist() == [-math.inf] * len(values)


def test_the_ends_of_a_support():
    assert dist.Uniform(0, 1).log_prob(1.0).item() == -math.inf and dist.Uniform(0, 1).log_prob(0.0).item() == 0
    assert dist.Geometric(1.0).log_prob(0).item() == 0 and dist.Geometric(1.0).log_prob(1).item() == -math.inf
    assert dist.Bernoulli(1.0).log_prob(True).item() == 0 and dist.Categorical([1.0, 0.0]).log_prob(1).item() == -math.inf
    assert dist.Categorical([0.2, 0.8]).log_prob(bp.asarray([True, False])).shape == (2,)


# (distribution, value, log_prob), the numbers by torch.distributions in float64.
MADE_OF_OTHERS = [
    ("TransformedDistribution(Normal(0.5, 0.7), ExpTransform())", 1.5, -0.9768479277669628),
    ("TransformedDistribution(Normal(0.5, 0.7), [AffineTransform(1.5, -2.0), SigmoidTransform()])", 0.3, -0.15782718600099732),
    ("TransformedDistribution(Normal(0.5, 0.7), [TanhTransform()])", -0.4, -1.2584483105372697),
    ("TransformedDistribution(Normal(0.5, 0.7), [SoftplusTransform(), PowerTransform(tensor(0.5))])", 0.9, 0.5348915013305323),
    ("TransformedDistribution(Uniform(0.0, 1.0), [SigmoidTransform().inv, AffineTransform(1.0, 2.0)])", 0.4, -2.1018576694969995),
    ("TransformedDistribution(Independent(Normal(tensor([0.1, -0.5]), tensor([1.0, 2.0])), 1), [StickBreakingTransform()])", [0.2, 0.5, 0.3], 0.5332713701278582),
    ("TransformedDistribution(Normal(tensor([0.1, -0.5]), tensor([1.0, 2.0])), [StickBreakingTransform()])", [0.2, 0.5, 0.3], 0.5332713701278582),
    ("MixtureSameFamily(Categorical(tensor([0.2, 0.8])), Normal(tensor([0.1, -0.5]), tensor([1.0, 2.0])))", 0.7, -1.6097641569706633),
    ("MixtureSameFamily(Categorical(tensor([0.2, 0.8])), Independent(Normal(tensor([[0.1, -0.5], [1.0, 2.0]]), tensor([[1.0, 2.0], [0.5, 0.7]])), 1))", [0.7, 0.2], -3.7446996259669207),
]


@pytest.mark.parametrize(("made", "value", "log_prob"), MADE_OF_OTHERS)
def test_densities_of_distributions_made_of_others(made, value, log_prob):
    with bp.default_dtype(bp.float64):
        one = eval(made, {**vars(dist), "tensor": bp.asarray})
        value = bp.asarray(value)
        np.testing.assert_allclose(one.log_prob(value).numpy(), log_prob, rtol=1e-9)
        np.testing.assert_allclose(bp.compile(one.log_prob)(value).numpy(), log_prob, rtol=1e-9)
        drawn = one.sample((3,), generator=bp.Generator(0))
        assert drawn.shape == (3, *one.batch_shape, *one.event_shape) and bool(bp.isfinite(one.log_prob(drawn)).all())


@pytest.mark.parametrize(
    "transform",
    [
        dist.ExpTransform(), dist.SigmoidTransform(), dist.TanhTransform(), dist.SoftplusTransform(), dist.AffineTransform(1.0, -2.0),
        dist.ComposeTransform([dist.ExpTransform(), dist.PowerTransform(0.5), dist.AffineTransform(1.0, 3.0)]), dist.ExpTransform().inv,
    ],
    ids=repr,
)  # fmt: skip
def test_transforms_have_their_inverse_and_their_slope(transform):
    x = bp.asarray([0.2, 0.7, 1.3], dtype=bp.float64)
    y = transform(x)
    np.testing.assert_allclose(transform.inv(y).numpy(), x.numpy(), rtol=1e-9)
    slope = bp.grad(lambda x: transform(x).sum())(x)
    np.testing.assert_allclose(transform.log_abs_det_jacobian(x, y).numpy(), np.log(np.abs(slope.numpy())), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(transform.inv.log_abs_det_jacobian(y, x).numpy(), -np.log(np.abs(slope.numpy())), rtol=1e-9, atol=1e-12)


def test_stick_breaking_is_a_simplex_with_its_jacobian():
    transform = dist.StickBreakingTransform()
    x = bp.asarray([0.3, -1.0, 0.8], dtype=bp.float64)
    y = transform(x)
    assert math.isclose(y.sum().item(), 1) and np.allclose(transform.inv(y).numpy(), x.numpy())
    jacobian = bp.jacrev(lambda x: transform(x)[:-1])(x).numpy()
    assert math.isclose(transform.log_abs_det_jacobian(x, y).item(), np.log(abs(np.linalg.det(jacobian))), rel_tol=1e-9)
    assert np.allclose(transform(bp.zeros(3)).numpy(), 0.25)


def test_values_outside_of_a_transform():
    one = dist.TransformedDistribution(dist.Normal(0.0, 1.0), dist.ExpTransform())
    with pytest.raises(bp.ArgumentValueError, match="found -1.0"):
        one.log_prob(-1.0)
    found = bp.compile(one.log_prob)(bp.asarray([-1.0, 2.0]))
    assert found[0].item() == -math.inf and math.isclose(found[1].item(), dist.LogNormal(0.0, 1.0).log_prob(2.0).item(), rel_tol=1e-6)
    slope = bp.grad(lambda mean: dist.TransformedDistribution(dist.Normal(mean, bp.ones(())), dist.ExpTransform()).rsample((20000,), generator=bp.Generator(0)).mean())
    assert math.isclose(slope(bp.asarray(0.0)).item(), math.exp(0.5), rel_tol=0.05)


def test_a_transform_that_broadcasts_needs_a_base_of_its_shape():
    one = dist.TransformedDistribution(dist.Normal(0.0, 1.0), dist.AffineTransform(bp.zeros(3), bp.ones(3)))
    assert one.batch_shape == (3,)
    with pytest.raises(bp.ShapeError, match="broadcasts"):
        one.sample()
    with pytest.raises(bp.ArgumentTypeError, match="function"):
        dist.TransformedDistribution(dist.Normal(0.0, 1.0), [math.exp, lambda x: x])


def test_mixtures_have_their_moments_and_refuse_other_components():
    means = np.random.default_rng(0).standard_normal((2, 3, 4))
    parts = dist.Independent(dist.Normal(bp.asarray(means), bp.ones((2, 3, 4), dtype=bp.float64)), 1)
    weights = np.array([[0.2, 0.3, 0.5], [0.1, 0.1, 0.8]])
    one = dist.MixtureSameFamily(dist.Categorical(bp.asarray(weights)), parts)
    assert (one.batch_shape, one.event_shape) == ((2,), (4,))
    mean = (weights[..., None] * means).sum(1)
    np.testing.assert_allclose(one.mean.numpy(), mean)
    np.testing.assert_allclose(one.variance.numpy(), (weights[..., None] * (1 + (means - mean[:, None]) ** 2)).sum(1))
    drawn = one.sample((20000,), generator=bp.Generator(1)).numpy()
    np.testing.assert_allclose(drawn.mean(0), mean, atol=0.06)
    np.testing.assert_allclose(drawn.var(0), one.variance.numpy(), rtol=0.1)
    with pytest.raises(bp.ShapeError, match="expected 2 components"):
        dist.MixtureSameFamily(dist.Categorical(bp.ones(2)), dist.Normal(bp.zeros(3), bp.ones(3)))
    with pytest.raises(bp.ArgumentTypeError, match="Normal"):
        dist.MixtureSameFamily(dist.Normal(0.0, 1.0), dist.Normal(bp.zeros(3), bp.ones(3)))
