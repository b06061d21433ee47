"""distributions.constraints: a draw fulfils the support, transforms of numbers fulfil their constraint, and log_prob refuses exactly what the support refuses."""

import numpy as np
import pytest
from test_distribution_arguments import ALL, made

import backplane as bp
from backplane import distributions as dist
from backplane.distributions import constraints

X = bp.asarray(np.random.default_rng(0).uniform(-1.5, 1.5, (2, 6)))
M = bp.asarray(np.random.default_rng(1).uniform(-1.5, 1.5, (2, 3, 3)))
HIGH = bp.asarray(np.arange(6.0))

# Constraint, and the places of the numbers that determine a value of biject_to; None: all of them.
NUMBERS = {
    "real": constraints.real, "positive": constraints.positive, "nonnegative": constraints.nonnegative, "greater": constraints.greater_than(HIGH),
    "at least": constraints.greater_than_eq(-1.5), "less": constraints.less_than(HIGH), "interval": constraints.interval(HIGH - 3, HIGH),
    "half open": constraints.half_open_interval(-1.0, 2.5), "unit": constraints.unit_interval,
    "cat": constraints.cat([constraints.positive, constraints.interval(0.0, 2.0)], dim=-1, lengths=[2, 4]),
    "stack": constraints.stack([constraints.positive, constraints.real, constraints.unit_interval] * 2, dim=-1),
}  # fmt: skip
VECTORS = {
    "vector": constraints.real_vector, "independent": constraints.independent(constraints.positive, 1), "simplex": constraints.simplex,
    "correlations": constraints.corr_cholesky,
}  # fmt: skip


def determining(name, y):
    """The elements of a value that determine it."""
    if name == "simplex":
        return y[:-1]
    if name != "correlations":
        return y
    rows, columns = np.tril_indices(y.shape[0], -1)
    return y[bp.asarray(rows), bp.asarray(columns)]


@pytest.mark.parametrize("name", [*NUMBERS, *VECTORS])
def test_biject_to_is_an_invertible_function_to_the_constraint(name):
    one = {**NUMBERS, **VECTORS}[name]
    transform = dist.biject_to(one)
    y = transform(X)
    assert bp.all(one.check(y)) and bp.allclose(transform.inv(y), X, rtol=1e-9) and bp.allclose(bp.compile(transform)(X), y)
    assert bp.all(transform.codomain.check(y)) and bp.all(transform.domain.check(X))
    found = transform.log_abs_det_jacobian(X, y)
    assert found.shape == ((2,) if name in VECTORS else (2, 6))
    for i in range(2):
        slopes = bp.linalg.slogdet(bp.jacrev(lambda x: determining(name, transform(x)))(X[i]))[1]
        assert bp.allclose(found[i].sum(), slopes, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", [*NUMBERS, *VECTORS])
def test_transform_to_has_values_of_the_constraint_and_gradients(name):
    one = {**NUMBERS, **VECTORS}[name]
    transform = dist.transform_to(one)
    weights = bp.asarray(np.random.default_rng(2).uniform(0.5, 1.5, transform(X).shape))
    slopes = bp.grad(lambda x: (transform(x) * weights).sum())(X)
    assert bp.all(one.check(transform(X))) and bp.all(bp.isfinite(slopes)) and bp.any(slopes != 0)
    step = 1e-6 * bp.cos(3 * X)
    central = ((transform(X + step) - transform(X - step)) * weights).sum() / 2
    assert bp.allclose(central, (slopes * step).sum(), rtol=1e-5)
    if name in VECTORS:
        assert bp.all(one.check(bp.vmap(transform)(X)))


@pytest.mark.parametrize("name", ["lower_cholesky", "positive_definite", "positive_semidefinite"])
def test_matrices(name):
    one = getattr(constraints, name)
    y = dist.transform_to(one)(M)
    assert one.check(y).tolist() == [True, True] and not bp.any(one.check(-y)) and bp.compile(one.check)(y).tolist() == [True, True]
    assert one.check(bp.concat([y, M], axis=0)).tolist() == [True, True, False, False]  # one matrix does not decide about another
    with pytest.raises(NotImplementedError, match=r"biject_to: found no transform to .*; add one with biject_to\.register"):
        dist.biject_to(one)
    assert constraints.square.check(M).tolist() == [True, True] and constraints.square.check(M[:, :2]).tolist() == [False, False]
    assert one.check(M[:, :2]).tolist() == [False, False]


@pytest.mark.parametrize("text", ALL)
def test_draws_fulfil_the_support(text):
    one = made(text)
    drawn = one.sample((7,), generator=bp.Generator(0))
    good = one.support.check(drawn)
    assert good.shape == (7, *one.batch_shape) and bp.all(good) and one.support.event_dim == len(one.event_shape)


@pytest.mark.parametrize("text", ALL)
def test_parameters_fulfil_their_constraints(text):
    one = made(text)
    for name, constraint in one.arg_constraints.items():
        value = getattr(one, name, None)
        assert constraints.is_dependent(constraint) or value is None or bp.all(constraint.check(value)), name


PROBES = bp.asarray([-1.5, -0.5, 0.0, 0.25, 0.5, 1.0, 1.5, 2.0, 3.25, 7.0], dtype=bp.float64)


@pytest.mark.parametrize("text", [text for text in ALL if not made(text).event_shape])
def test_log_prob_refuses_what_the_support_refuses(text):
    one = made(text)
    name = type(one).__name__
    for value in PROBES:
        inside = bool(bp.all(one.support.check(bp.broadcast_to(value, one.batch_shape))))
        try:
            one.log_prob(value)
        except bp.ArgumentValueError:
            assert not inside or (name in ("Kumaraswamy", "RelaxedBernoulli") and value in (0, 1)), value  # the edges of the closed interval
        else:
            assert inside, value


@pytest.mark.parametrize("name", ["Normal", "Gamma", "StudentT", "Beta", "Weibull", "Laplace", "Gumbel", "Poisson"])
def test_transforms_make_parameters_from_numbers(name):
    kind = getattr(dist, name)
    numbers = bp.asarray([-30.0, -1.0, 0.0, 3.0], dtype=bp.float64)
    one = kind(**{parameter: dist.transform_to(constraint)(numbers) for parameter, constraint in kind.arg_constraints.items()})
    assert one.batch_shape == (4,)


def test_checks():
    values = bp.asarray([0.0, 1.0, -1.0, 0.5, bp.nan, bp.inf])
    expected = {
        "boolean": [1, 1, 0, 0, 0, 0], "nonnegative_integer": [1, 1, 0, 0, 0, 0], "positive_integer": [0, 1, 0, 0, 0, 0], "real": [1, 1, 1, 1, 0, 1],
        "positive": [0, 1, 0, 1, 0, 1], "nonnegative": [1, 1, 0, 1, 0, 1], "unit_interval": [1, 1, 0, 1, 0, 0],
    }  # fmt: skip
    for name, good in expected.items():
        assert getattr(constraints, name).check(values).tolist() == [bool(x) for x in good], name
    rows = bp.asarray([[0.0, 1.0], [0.25, 0.75], [1.0, 1.0], [-0.5, 1.5]])
    assert constraints.one_hot.check(rows).tolist() == [True, False, False, False] and constraints.simplex.check(rows).tolist() == [True, True, False, False]
    assert constraints.multinomial(1).check(rows).tolist() == [True, False, False, False] and constraints.integer_interval(1, 2).check(rows).tolist()[2] == [True, True]
    parts = constraints.cat([constraints.simplex, constraints.real_vector], dim=-2, lengths=[1, 3])
    assert parts.event_dim == 1 and parts.check(rows).tolist() == [True] * 4 and parts.check(rows[::-1]).tolist() == [False, True, True, True]
    stacked = constraints.stack([constraints.positive, constraints.real], dim=0)
    assert stacked.check(rows[2:]).tolist() == [[True, True], [True, True]]


def test_supports_that_depend_on_parameters():
    uniform = dist.Uniform(bp.asarray([0.0, 1.0]), 2.0)
    assert constraints.is_dependent(dist.Uniform.support) and dist.Uniform.support.event_dim == 0 and not constraints.is_dependent(uniform.support)
    assert uniform.support.check(bp.asarray([0.5, 0.5])).tolist() == [True, False]
    with pytest.raises(bp.ArgumentValueError, match="read it from the distribution"):
        dist.Uniform.support.check(bp.ones(2))
    with pytest.raises(NotImplementedError, match="biject_to: found no transform to Dependent.*not from its class"):
        dist.biject_to(dist.Uniform.support)
    d = dist.TransformedDistribution(dist.Normal(bp.zeros(3), 1.0).expand((2, 3)), dist.transforms.StickBreakingTransform())
    assert repr(d.support) == "Simplex()" and bp.all(d.support.check(d.sample()))
    mixture = dist.MixtureSameFamily(dist.Categorical(bp.asarray([0.3, 0.7])), dist.Uniform(bp.asarray([0.0, 1.0]), 2.0))
    assert mixture.support.check(bp.asarray([0.5, 1.5, 2.5])).tolist() == [False, True, False]
    with pytest.raises(bp.ShapeError, match="found a value of 0 axes, expected at least 1"):
        constraints.real_vector.check(bp.asarray(1.0))


def test_own_constraints_and_transforms():
    class Even(constraints.Constraint):
        is_discrete = True

        def check(self, value):
            return value % 2 == 0

    class Double(dist.Transform):
        domain = codomain = constraints.real_vector

        def _call(self, x):
            return 2 * x

        def _inverse(self, y):
            return y / 2

        def log_abs_det_jacobian(self, x, y):
            return bp.full(x.shape[:-1], x.shape[-1] * np.log(2.0))

    with pytest.raises(NotImplementedError, match="no transform to Even"):
        dist.transform_to(Even())
    dist.transform_to.register(Even, lambda constraint: Double())
    assert dist.transform_to(Even())(bp.ones(2)).tolist() == [2.0, 2.0]
    moved = dist.TransformedDistribution(dist.Normal(bp.zeros(3), 1.0), Double())
    assert moved.event_shape == (3,) and moved.batch_shape == ()  # the counts of axes are those of the constraints
    assert bp.allclose(moved.log_prob(bp.ones(3)), dist.Normal(0.0, 2.0).log_prob(bp.ones(3)).sum())
    with pytest.raises(bp.ArgumentTypeError, match="register: argument constraint: found 3"):
        dist.transform_to.register(3, lambda constraint: Double())
