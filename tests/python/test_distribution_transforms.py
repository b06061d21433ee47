"""distributions.transforms: inverses, and log_abs_det_jacobian against the determinant of the Jacobian that jacrev computes."""

import math

import numpy as np
import pytest

import backplane as bp
from backplane import distributions as dist
from backplane.distributions import transforms

X = bp.asarray(np.random.default_rng(0).uniform(-1.5, 1.5, 6))

# Transform, shape of an event, places of the numbers that y depends on (None: all).
VECTORS = {
    "cdf": (transforms.CumulativeDistributionTransform(dist.Normal(bp.asarray(0.5, dtype=bp.float64), 2.0)), (6,), 0),
    "independent": (transforms.IndependentTransform(transforms.TanhTransform(), 1), (6,), 1),
    "reshape": (transforms.ReshapeTransform((6,), (2, 3)), (6,), 1),
    "cat": (transforms.CatTransform([transforms.ExpTransform(), transforms.AffineTransform(1.0, -2.0)], dim=-1, lengths=[2, 4]), (6,), 0),
    "stack": (transforms.StackTransform([transforms.ExpTransform()] * 5 + [transforms.SigmoidTransform()], dim=0), (6,), 0),
    "correlations": (transforms.CorrCholeskyTransform(), (6,), 1),
    "identity": (transforms.identity_transform, (6,), 0),
}


def free(y):
    """The elements of y that determine it: those below the diagonal of a Cholesky factor of a correlation matrix."""
    if y.ndim == 2 and y.shape[0] == y.shape[1]:
        rows, columns = np.tril_indices(y.shape[0], -1)
        return y[bp.asarray(rows), bp.asarray(columns)]
    return y.reshape((-1,))


@pytest.mark.parametrize("name", VECTORS)
def test_a_transform_has_its_inverse_and_its_jacobian(name):
    transform, shape, event_dim = VECTORS[name]
    y = transform(X)
    assert bp.allclose(transform.inv(y), X, rtol=1e-9) and y.shape == transform.forward_shape(shape) and transform.inverse_shape(y.shape) == shape
    found = transform.log_abs_det_jacobian(X, y)
    assert found.shape == shape[: 1 - event_dim] if event_dim else found.shape in (shape, ())
    whole = bp.broadcast_to(found, shape).sum() if not event_dim else found
    expected = bp.linalg.slogdet(bp.jacrev(lambda x: free(transform(x)))(X))[1]
    assert math.isclose(whole.item(), expected.item() if name != "identity" else 0.0, rel_tol=1e-9, abs_tol=1e-12)
    both = bp.stack([X, X / 2])
    rows = bp.vmap(transform)(both)
    assert bp.allclose(rows[0], y) and bp.allclose(bp.compile(transform)(X), y)
    if event_dim:
        assert bp.allclose(transform(both), rows) and transform.log_abs_det_jacobian(both, rows).shape == (2,)


@pytest.mark.parametrize("transform", [transforms.LowerCholeskyTransform(), transforms.PositiveDefiniteTransform()])
def test_matrices(transform):
    rows, columns = (bp.asarray(i) for i in np.tril_indices(3))

    def lower(v):
        return bp.segment_sum(v, rows * 3 + columns, 9).reshape((3, 3))

    x = lower(X)
    y = transform(x)
    expected = bp.linalg.slogdet(bp.jacrev(lambda v: transform(lower(v))[rows, columns])(X))[1]
    assert bp.allclose(transform.inv(y), x) and bp.allclose(transform.log_abs_det_jacobian(x, y), expected, rtol=1e-9)
    assert bp.allclose(transform(x + bp.triu(bp.ones((3, 3)), 1)), y)  # what is above the diagonal is left out


def test_cholesky_factors_of_correlations():
    factor = transforms.CorrCholeskyTransform()(bp.stack([X, 20 * X]))
    assert bp.allclose(bp.linalg.vector_norm(factor, axis=-1), 1.0) and bp.all(bp.linalg.diagonal(factor) > 0)
    with pytest.raises(bp.ShapeError, match="found 5 numbers"):
        transforms.CorrCholeskyTransform()(X[:5])


def test_transforms_without_an_inverse():
    for transform in (transforms.AbsTransform(), transforms.SoftmaxTransform()):
        assert not transform.bijective
        y = transform(X)
        assert bp.allclose(transform(transform.inv(y)), y)
        with pytest.raises(NotImplementedError, match="log_abs_det_jacobian"):
            transform.log_abs_det_jacobian(X, y)
    assert bp.allclose(transforms.SoftmaxTransform()(X).sum(), 1.0)


def test_a_copula_of_transforms():
    """A gamma variable from a normal one: through the cdf of one distribution and the icdf of the other."""
    to_gamma = [transforms.CumulativeDistributionTransform(dist.Normal(0.0, 1.0)), transforms.CumulativeDistributionTransform(dist.Gamma(bp.asarray(2.5, dtype=bp.float64), 1.5)).inv]
    made = dist.TransformedDistribution(dist.Normal(bp.asarray(0.0, dtype=bp.float64), 1.0), to_gamma)
    x = bp.asarray([0.1, 1.0, 4.0], dtype=bp.float64)
    exact = dist.Gamma(bp.asarray(2.5, dtype=bp.float64), 1.5)
    assert bp.allclose(made.log_prob(x), exact.log_prob(x), rtol=1e-9) and bp.allclose(made.cdf(x), exact.cdf(x), rtol=1e-9)


def test_what_is_refused():
    with pytest.raises(bp.ShapeError, match="equal numbers of elements"):
        transforms.ReshapeTransform((2, 3), (5,))
    with pytest.raises(bp.ShapeError, match="expected \\(\\*, 2, 3\\)"):
        transforms.ReshapeTransform((2, 3), (6,))(X)
    with pytest.raises(bp.ArgumentValueError, match="found 1 numbers, expected one per transform, 2"):
        transforms.CatTransform([transforms.ExpTransform()] * 2, lengths=[6])
    with pytest.raises(bp.ShapeError, match="found 6 elements on axis 0, expected 2"):
        transforms.CatTransform([transforms.ExpTransform()] * 2)(X)
    with pytest.raises(NotImplementedError, match="sign is not defined"):
        transforms.SoftmaxTransform().sign  # noqa: B018


CACHED = {
    "tanh": lambda: [transforms.TanhTransform(cache_size=1)],
    "of two": lambda: [transforms.AffineTransform(0.0, 3.0, cache_size=1), transforms.SigmoidTransform(cache_size=1)],
    "composed": lambda: [transforms.ComposeTransform([transforms.AffineTransform(0.0, 3.0), transforms.TanhTransform()], cache_size=1)],
    "independent": lambda: [transforms.IndependentTransform(transforms.TanhTransform(cache_size=1), 1)],
    "with_cache": lambda: [transforms.TanhTransform().with_cache()],
}


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("method", ["sample", "rsample"])
@pytest.mark.parametrize("name", CACHED)
def test_the_density_of_a_draw_that_is_rounded(name, method, compiled):
    """tanh and sigmoid of large numbers are 1: without the cache the density of such a draw is that of infinity."""
    base = dist.Normal(bp.full((6,), 30.0), bp.ones(6))

    def density(cached):
        parts = CACHED[name]() if cached else [part.with_cache(0) for part in CACHED["tanh"]()]
        d = dist.TransformedDistribution(base, parts, validate_args=False)
        y = getattr(d, method)()
        return y, d.log_prob(y), d.log_prob(bp.copy(y))

    y, found, forgotten = (bp.compile(density) if compiled else density)(True)
    assert bp.all(y == 1)
    assert bp.all(bp.isfinite(found)) and not bp.any(bp.isfinite(forgotten))


def test_a_cache_holds_one_value():
    transform = transforms.TanhTransform(cache_size=1)
    x = bp.asarray([1.0, 20.0])
    y = transform(x)
    assert transform(x) is y and transform.inv(y) is x
    assert transform.inv(bp.copy(y)).tolist()[1] == math.inf
    other = transform(bp.asarray([2.0, 3.0]))
    assert transform.inv(y) is not x and bp.allclose(transform.inv(other), bp.asarray([2.0, 3.0]))
    assert transform.with_cache(0).inv(y) is not x
    with pytest.raises(bp.ArgumentValueError, match="cache_size: found 2"):
        transforms.ExpTransform(2)


def test_gradients_go_through_a_remembered_value():
    """The loss of soft actor-critic: the log probability of a squashed draw."""

    def loss(loc, cache_size):
        d = dist.TransformedDistribution(dist.Normal(loc, bp.asarray([0.5])), transforms.TanhTransform(cache_size=cache_size))
        bp.manual_seed(0)
        return d.log_prob(d.rsample()).sum()

    exact = bp.grad(lambda loc: loss(loc, 0))(bp.asarray([0.3]))
    np.testing.assert_allclose(bp.grad(lambda loc: loss(loc, 1))(bp.asarray([0.3])).numpy(), exact.numpy(), rtol=1e-4)
    assert bool(bp.isfinite(bp.grad(lambda loc: loss(loc, 1))(bp.asarray([30.0]))).all())


class _Doubled(transforms.Transform):
    def _call(self, x):
        return 2 * x

    def _inverse(self, y):
        return y / 2

    def log_abs_det_jacobian(self, x, y):
        return bp.full_like(x, math.log(2))


def test_a_transform_of_ones_own_has_the_cache():
    transform, x = _Doubled(cache_size=1), bp.ones(3)

    def f(x):
        return transform.inv(transform(x)) + 1

    assert transform.inv(transform(x)) is x and bp.compile(f)(x).tolist() == [2.0, 2.0, 2.0] and transform.inv(transform(x)) is x
