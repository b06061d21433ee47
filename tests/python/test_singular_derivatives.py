"""Derivatives of products with zeros and large factors, of determinants of singular matrices, and at equal values."""

import itertools
import math
from fractions import Fraction

import backplane as bp
import numpy as np
import pytest

PRODUCTS = [
    [0.0, 3.0, -2.0],
    [0.0, 0.0, 2.0],
    [1e30, 1e30, 0.0, 5.0],
    [1e30, 1e30, 1.0, 0.0],
    [1e30, 1e30, 1.0, 1e-30, 1e-30],
    [1e-30, 1e-30, 2.0, 1e30, 1e30],
]


def others(x):
    """By Python's integers, exactly."""
    exact = [Fraction(float(v)) for v in x]
    found = []
    for i in range(len(exact)):
        product = Fraction(1)
        for k, v in enumerate(exact):
            product *= v if k != i else 1
        found.append(float(product) if abs(product) <= np.finfo(np.float64).max else math.inf if product > 0 else -math.inf)
    return np.array(found)


@pytest.mark.parametrize("scale", [1, 6])
@pytest.mark.parametrize("values", PRODUCTS)
def test_gradient_of_prod(values, scale):
    dtype = bp.float32 if scale == 1 else bp.float64
    x = bp.asarray(values, dtype=dtype)
    x = bp.sign(x) * bp.abs(x) ** scale if scale > 1 else x
    wide = np.asarray(x).astype(np.float64)
    with np.errstate(over="ignore"):
        expected = others(wide).astype(np.asarray(x).dtype)
    np.testing.assert_allclose(np.asarray(bp.grad(bp.prod)(x)), expected, rtol=1e-6)
    _, forward = bp.jvp(bp.prod, (x,), (bp.asarray(np.eye(len(values))[1], dtype=dtype),))
    np.testing.assert_allclose(np.asarray(forward), expected[1], rtol=1e-6)


def test_gradient_of_cumprod_behind_an_overflow():
    x = bp.asarray([1e30, 1e30, 1.0, 0.0, 2.0])
    gradient = np.asarray(bp.grad(lambda x: bp.cumulative_prod(x)[-1])(x))
    assert (gradient[[0, 1, 2, 4]] == 0).all() and np.isinf(gradient[3])


def mixed_differences(x):
    """The second derivatives of det, which is affine in each element, at a matrix of small integers: exactly."""
    n = len(x)
    found = np.zeros((n, n, n, n))
    for a, b in itertools.product(np.ndindex(n, n), repeat=2):
        if a[0] == b[0] or a[1] == b[1]:
            continue
        terms = []
        for da, db in ((1, 1), (1, 0), (0, 1), (0, 0)):
            y = np.array(x, float)
            y[a] += da
            y[b] += db
            terms.append(round(np.linalg.det(y)))
        found[(*a, *b)] = terms[0] - terms[1] - terms[2] + terms[3]
    return found


SINGULAR = [
    np.zeros((2, 2)),
    [[1, 2], [2, 4]],
    [[1, 2, 3], [2, 4, 6], [0, 1, 5]],
    [[1, 2, 3], [2, 4, 6], [3, 6, 9]],
    np.zeros((3, 3)),
    [[1, 0, 2, 1], [0, 0, 0, 0], [3, 1, 0, 2], [1, 1, 1, 1]],
    [[2, 0, 1], [1, 3, 0], [0, 1, 1]],
    np.eye(3),
]


@pytest.mark.parametrize("dtype", [bp.float64, bp.complex128])
@pytest.mark.parametrize("x", SINGULAR)
def test_second_derivatives_of_det(x, dtype):
    x = np.array(x, float)
    expected = mixed_differences(x)
    if dtype is bp.float64:
        found = np.asarray(bp.hessian(bp.linalg.det)(bp.asarray(x)))
        np.testing.assert_allclose(found, expected, atol=1e-10)
        found = np.asarray(bp.jacfwd(bp.jacfwd(bp.linalg.det))(bp.asarray(x)))
        np.testing.assert_allclose(found, expected, atol=1e-10)
    rng = np.random.default_rng(0)
    direction = rng.standard_normal(x.shape) + 1j * rng.standard_normal(x.shape)
    direction = direction if dtype is bp.complex128 else direction.real
    slope = np.asarray(bp.ops.bp.adjugate_slope(bp.asarray(x, dtype=dtype), bp.asarray(direction, dtype=dtype)))
    np.testing.assert_allclose(slope, np.einsum("ijkl,kl->ji", expected, direction), atol=1e-10)


def test_third_derivatives_of_det():
    x = bp.asarray([[2.0, 0.5, 1.0], [1.0, 3.0, 0.25], [0.5, 1.0, 1.5]], dtype=bp.float64)
    third = np.asarray(bp.jacrev(bp.hessian(bp.linalg.det))(x))
    for a, b, c in itertools.product(np.ndindex(3, 3), repeat=3):
        sign = np.linalg.det(np.array([[r == k[0] for k in (a, b, c)] for r in range(3)], float))
        sign *= np.linalg.det(np.array([[r == k[1] for k in (a, b, c)] for r in range(3)], float))
        assert abs(third[(*a, *b, *c)] - sign) < 1e-10


def rebuilt(x):
    values, vectors = bp.linalg.eigh(x)
    return (vectors * values) @ bp.conj(bp.matrix_transpose(vectors))


def rebuilt_from_svd(x):
    u, s, vh = bp.linalg.svd(x, full_matrices=False)
    return (u * s) @ vh


@pytest.mark.parametrize("function", [rebuilt, rebuilt_from_svd])
def test_a_function_that_tells_equal_values_apart_is_not_silently_wrong(function):
    """Of a matrix put together again the gradient is the weights: found, or NaN where two values are equal."""
    weights = np.random.default_rng(1).standard_normal((3, 3))
    weights = weights + weights.T
    turn = np.linalg.qr(np.random.default_rng(2).standard_normal((3, 3)))[0]
    for values in ([3.0, 2.0, 1.0], [2.0, 1.0, 1.0], [1.0, 0.0, 0.0], [1.0, 1.0, 1.0]):
        for basis in (np.eye(3), turn):
            x = bp.asarray((basis * values) @ basis.T)
            gradient = np.asarray(bp.grad(lambda x: bp.sum(function(x) * weights))(x))
            right = abs(gradient - weights) < 1e-9
            assert (right | np.isnan(gradient)).all(), (values, gradient)
            assert right.all() or len(set(values)) < 3


def test_equal_values_that_nothing_asks_for_have_their_derivative():
    x = np.diag([3.0, 1.0, 1.0, 0.0, 0.0])

    def first(x):
        vectors = bp.linalg.eigh(x).eigenvectors[:, -1:]
        return bp.sum((vectors @ bp.matrix_transpose(vectors))[0])

    gradient = np.asarray(bp.grad(first)(bp.asarray(x)))
    step = 1e-6
    for i, j in itertools.product(range(5), repeat=2):
        moved = np.zeros((5, 5))
        moved[i, j] = moved[j, i] = step
        difference = (float(first(bp.asarray(x + moved))) - float(first(bp.asarray(x - moved)))) / (2 * step)
        assert abs((gradient * (moved != 0)).sum() - difference) < 1e-6
    total = np.asarray(bp.grad(lambda x: bp.sum(bp.linalg.eigh(x).eigenvalues))(bp.asarray(x)))
    np.testing.assert_allclose(total, np.eye(5), atol=1e-12)
