"""Compiled functions that use objects of the package (distributions, sparse matrices) see changes of their attributes."""

import pytest

import backplane as bp
from backplane import distributions as dist


def normal():
    one = dist.Normal(bp.asarray(0.0), bp.asarray(1.0))
    changes = [lambda: setattr(one, "loc", bp.asarray(1.0)), lambda: setattr(one, "scale", bp.asarray(0.5)), lambda: one.loc.fill_(3.0)]
    return one.log_prob, changes


def half_normal():
    one = dist.Normal(bp.asarray(0.0, dtype=bp.float16), bp.asarray(1.0, dtype=bp.float16))
    return one.cdf, [lambda: setattr(one, "loc", bp.asarray(1.0, dtype=bp.float16)), lambda: setattr(one, "loc", bp.asarray(2.0))]


def bernoulli():
    one = dist.Bernoulli(bp.asarray([0.25, 0.5, 0.75]))
    return lambda x: one.log_prob((x > 1.5) * 1.0), [lambda: setattr(one, "_is_logits", True)]


def independent():
    one = dist.Independent(dist.Normal(bp.zeros(3), bp.ones(3)), 1)
    return one.log_prob, [lambda: setattr(one, "base_dist", dist.Normal(bp.ones(3), bp.ones(3))), lambda: setattr(one.base_dist, "scale", bp.full((3,), 2.0))]


def transformed():
    affine = dist.AffineTransform(0.0, 2.0)
    one = dist.TransformedDistribution(dist.Normal(bp.asarray(0.0), bp.asarray(1.0)), [affine])
    return one.log_prob, [lambda: setattr(affine, "scale", 4.0), lambda: one.transforms.append(dist.ExpTransform())]


def product_with_csr():
    one = bp.sparse.csr(bp.asarray([[1.0, 0, 2], [0, 3, 0]]))
    return lambda x: one @ x, [lambda: setattr(one, "data", one.data * 2), lambda: setattr(one, "indices", bp.asarray([0, 1, 2]))]


def dense_csr():
    one = bp.sparse.csr(bp.asarray([[1.0, 0, 2], [0, 3, 0]]))
    return lambda x: one.to_dense() * x, [lambda: setattr(one, "data", one.data * 2)]


@pytest.mark.parametrize("make", [normal, half_normal, bernoulli, independent, transformed, product_with_csr, dense_csr], ids=lambda make: make.__name__)
def test_attributes_of_objects_of_the_package(make):
    (function, changes), (eager, eager_changes) = make(), make()
    compiled = bp.compile(function)
    x = bp.asarray([1.0, 2.0, 3.0])
    for change, eager_change in zip([None, *changes], [None, *eager_changes]):
        if change:
            change()
            eager_change()
        for _ in range(2):
            assert compiled(x).tolist() == eager(x).tolist()


def test_objects_that_stay_the_same_are_traced_once():
    one = dist.Normal(bp.asarray(0.0), bp.asarray(1.0))
    matrix = bp.sparse.csr(bp.eye(3))
    matrix @ bp.ones(3)  # the package finds its ops at their first use
    traces = []

    @bp.compile
    def function(x):
        bp.unguarded(traces.append, None)
        return one.log_prob(matrix @ x)

    for k in range(4):
        function(bp.full((3,), float(k)))
    assert len(traces) == 1
