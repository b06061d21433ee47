"""Batches of a function with in-place changes, indices of each row and a captured matrix, in and around the other
transforms: each is the loop over the rows."""

import backplane as bp
import numpy as np
import pytest

RNG = np.random.default_rng(0)
X, W = RNG.standard_normal((3, 4)), RNG.standard_normal((4, 4))
AT = np.array([0, 2, 1])


def f(x, w, i):
    z = bp.zeros((4,), dtype=bp.float64)
    z[1:] = x[:3]
    z[i] += bp.sum(bp.tanh(bp.matmul(x, w)))
    y = z[::-1]
    y[0] *= 2.0
    v = bp.expand_dims(z, [0])
    v += x
    return bp.sum(bp.where(x > 0, z * z, z)) + bp.take(z, i) + bp.logsumexp(z)


def of_x(x, i):
    return f(x, bp.asarray(W), i)


def along_sine(x, i):
    return bp.jvp(lambda y: of_x(y, i), (x,), (bp.sin(x),))[1]


gradient = bp.grad(of_x)


def loop(g):
    return np.stack([array(g(bp.asarray(x), bp.asarray(i))) for x, i in zip(X, AT)])


def array(tensor):
    return np.asarray(tensor.detach().numpy())


def same(found, expected):
    np.testing.assert_allclose(array(found), expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(
    "g",
    [of_x, gradient, along_sine, bp.grad(along_sine), bp.hessian(of_x)],
    ids=["value", "gradient", "tangent", "gradient of tangent", "hessian"],
)
def test_of_rows(g):
    same(bp.vmap(g)(bp.asarray(X), bp.asarray(AT)), loop(g))


def test_gradients_of_what_all_rows_share():
    of_w = bp.grad(f, argnums=1)
    w = bp.asarray(W)
    same(bp.vmap(of_w, in_axes=(0, None, 0))(bp.asarray(X), w, bp.asarray(AT)), loop(lambda x, i: of_w(x, w, i)))


def over_rows(g):
    return lambda x: bp.vmap(g)(x, bp.asarray(AT))


def test_around_a_batch():
    x = bp.asarray(X)
    same(bp.grad(lambda y: bp.sum(over_rows(of_x)(y)))(x), loop(gradient))
    same(bp.jvp(over_rows(of_x), (x,), (bp.sin(x),))[1], loop(along_sine))
    squared = bp.grad(lambda y, i: bp.sum(gradient(y, i) ** 2))
    same(bp.grad(lambda y: bp.sum(over_rows(gradient)(y) ** 2))(x), loop(squared))


def test_the_tape_under_a_batch():
    x = bp.asarray(X).requires_grad_()
    bp.sum(over_rows(of_x)(x)).backward()
    same(x.grad, loop(gradient))


def test_rows_by_rows():
    each = bp.vmap(bp.vmap(gradient, in_axes=(None, 0)), in_axes=(0, None))
    grid = [[array(gradient(bp.asarray(x), bp.asarray(i))) for i in AT] for x in X]
    same(each(bp.asarray(X), bp.asarray(AT)), np.array(grid))
