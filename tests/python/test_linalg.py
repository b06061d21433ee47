"""backplane.linalg: what its functions add to the ops that the laws cover: forms of arguments and results, errors, gauges."""

import math
from fractions import Fraction

import backplane as bp
import numpy as np
import pytest

RNG = np.random.default_rng(3)


def tensor(*shape, dtype="float64"):
    drawn = RNG.standard_normal(shape)
    return bp.asarray((drawn + 1j * RNG.standard_normal(shape) if dtype.startswith("complex") else drawn).astype(dtype))


def close(found, expected, eps=1e-9):
    np.testing.assert_allclose(np.asarray(found.numpy()), expected, rtol=eps, atol=eps)


def adjoint(x):
    return bp.conj(bp.matrix_transpose(x))


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("shape", [(4, 4), (5, 3), (2, 3, 5)])
def test_factors_multiply_to_the_matrix(shape, dtype):
    eps = 1e-4 if dtype in ("float32", "complex64") else 1e-10
    x = tensor(*shape, dtype=dtype)
    for mode in ("reduced", "complete"):
        q, r = bp.linalg.qr(x, mode=mode)
        close(q @ r, x.numpy(), eps)
        close(adjoint(q) @ q, np.broadcast_to(np.eye(q.shape[-1]), (*q.shape[:-2], q.shape[-1], q.shape[-1])), eps)
    for full in (False, True):
        u, s, vh = bp.linalg.svd(x, full_matrices=full)
        k = s.shape[-1]
        close((u[..., :k] * bp.expand_dims(s, (-2,))) @ vh[..., :k, :], x.numpy(), eps)
        close(adjoint(u) @ u, np.broadcast_to(np.eye(u.shape[-1]), (*u.shape[:-2], u.shape[-1], u.shape[-1])), eps)
    square = x @ adjoint(x)
    w, v = bp.linalg.eigh(square)
    close((v * bp.expand_dims(w, (-2,))) @ adjoint(v), square.numpy(), 10 * eps)
    w, v = bp.linalg.eig(square)
    close((square + 0j if "complex" not in dtype else square) @ v - v * bp.expand_dims(w, (-2,)), 0, 100 * eps)


def test_results_are_named_as_the_standard_says():
    x = tensor(3, 3)
    assert bp.linalg.qr(x)._fields == ("Q", "R")
    assert bp.linalg.svd(x)._fields == ("U", "S", "Vh")
    assert bp.linalg.slogdet(x)._fields == ("sign", "logabsdet")
    assert bp.linalg.eigh(x)._fields == bp.linalg.eig(x)._fields == ("eigenvalues", "eigenvectors")


def test_a_singular_matrix_is_named():
    x = np.stack([np.eye(2), np.ones((2, 2))])
    for call in (bp.linalg.inv, lambda a: bp.linalg.solve(a, bp.ones(2, dtype=bp.float64))):
        with pytest.raises(bp.linalg.LinAlgError, match=r"matrix \[1\] of the stack is singular") as raised:
            call(bp.asarray(x))
        assert isinstance(raised.value, ValueError)
    with pytest.raises(bp.linalg.LinAlgError, match="the matrix is not positive definite"):
        bp.linalg.cholesky(bp.asarray(-np.eye(2)))


def test_bad_arguments_are_refused():
    x = tensor(2, 3)
    for call in (
        lambda: bp.linalg.qr(x, mode="full"),
        lambda: bp.linalg.matrix_norm(x, ord=3),
        lambda: bp.linalg.cross(x, tensor(2, 2)),
        lambda: bp.linalg.outer(x, x),
        lambda: bp.linalg.matrix_power(x, 2),
        lambda: bp.tensordot(x, tensor(2, 3), axes=1),
        lambda: bp.tensordot(x, x, axes=((0,), (0, 1))),
        lambda: bp.linalg.multi_dot([x]),
    ):
        with pytest.raises(ValueError):
            call()
    with pytest.raises(IndexError):
        bp.linalg.cross(tensor(3), tensor(3), axis=1)


def test_free_vectors_have_no_derivative():
    x = tensor(4, 2).requires_grad_()
    with pytest.raises(NotImplementedError, match="mode=reduced"):
        bp.linalg.qr(x, mode="complete").Q.sum().backward()
    with pytest.raises(NotImplementedError, match="full_matrices=False"):
        bp.linalg.svd(x).S.sum().backward()


@pytest.mark.parametrize("ord", [None, "fro", "nuc", 1, -1, 2, -2, math.inf, -math.inf, 0, 3])
@pytest.mark.parametrize("axis", [None, 0, (0, 1), (2, 0)])
@pytest.mark.parametrize("keepdims", [False, True])
def test_norm_is_numpys(ord, axis, keepdims):
    x = tensor(2, 3, 4)
    try:
        expected = np.linalg.norm(x.numpy(), ord, axis, keepdims)
    except ValueError:
        with pytest.raises((ValueError, TypeError)):
            bp.linalg.norm(x, ord, axis, keepdims)
        return
    close(bp.linalg.norm(x, ord, axis, keepdims), expected)


def test_the_gradient_of_a_norm_of_zeros_is_zero():
    x = bp.zeros((3,), dtype=bp.float64).requires_grad_()
    bp.linalg.vector_norm(x).backward()
    close(x.grad, np.zeros(3))


def test_products_are_numpys():
    a, b, c, v = tensor(3, 50), tensor(50, 4), tensor(4, 6), tensor(3)
    close(bp.linalg.multi_dot([a, b, c]), np.linalg.multi_dot([a.numpy(), b.numpy(), c.numpy()]))
    close(bp.linalg.multi_dot([v, a, b]), np.linalg.multi_dot([v.numpy(), a.numpy(), b.numpy()]))
    x, y = tensor(2, 3, 4), tensor(4, 3, 5)
    close(bp.tensordot(x, y, axes=((1, 2), (1, 0))), np.tensordot(x.numpy(), y.numpy(), ((1, 2), (1, 0))))
    close(bp.tensordot(x, v, axes=0), np.tensordot(x.numpy(), v.numpy(), 0))


@pytest.mark.parametrize("b_shape", [(5,), (5, 2)])
def test_least_squares_are_numpys(b_shape):
    a, b = tensor(5, 3), tensor(*b_shape)
    found, expected = bp.linalg.lstsq(a, b), np.linalg.lstsq(a.numpy(), b.numpy(), rcond=None)
    close(found.x, expected[0])
    close(found.residuals, expected[1])
    assert int(found.rank) == expected[2]
    close(found.s, expected[3])


def minors(x):
    """The adjugate by its definition."""
    n = x.shape[-1]
    rest = lambda i, j: np.delete(np.delete(x, i, 0), j, 1)
    return np.array([[(-1) ** (i + j) * np.linalg.det(rest(i, j)) for i in range(n)] for j in range(n)])


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize(("n", "rank"), [(1, 0), (2, 1), (3, 2), (3, 1), (4, 3), (4, 2), (6, 5), (6, 6), (5, 0)])
def test_the_determinant_has_a_gradient_at_a_singular_matrix(n, rank, dtype):
    rng = np.random.default_rng(10 * n + rank)
    left, right = rng.integers(-3, 4, (2, n, n)).astype(dtype)
    if dtype == "complex128":
        left = left + 1j * rng.integers(-3, 4, (n, n))
    left[:, rank:] = 0  # whole numbers: the product is of that rank exactly
    x = left @ (right + 4 * np.eye(n))
    expected = minors(x)
    scale = max(1, np.abs(expected).max())
    np.testing.assert_allclose(bp.ops.bp.adjugate(bp.asarray(x)).numpy(), expected, rtol=0, atol=1e-10 * scale)
    gradient = bp.grad(lambda y: bp.real(bp.linalg.det(y)))(bp.asarray(x)).numpy()
    np.testing.assert_allclose(gradient, np.conj(expected.T), rtol=0, atol=1e-10 * scale)
    direction = rng.standard_normal((n, n)).astype(dtype)
    _, slope = bp.jvp(bp.linalg.det, (bp.asarray(x),), (bp.asarray(direction),))
    np.testing.assert_allclose(slope.numpy(), np.trace(expected @ direction), rtol=0, atol=1e-9 * scale)


def test_a_zero_pivot_before_the_end_leaves_the_adjugate_exact():
    x = np.array([[0.0, 0, 1, 2], [0, 0, 3, 4], [0, 1, 5, 6], [0, 2, 7, 9]])
    np.testing.assert_allclose(bp.ops.bp.adjugate(bp.asarray(x)).numpy(), minors(x), rtol=0, atol=1e-12)


def test_the_third_derivative_of_the_determinant_refuses_singular_matrices():
    slope = lambda y: bp.sum(bp.grad(lambda z: bp.linalg.det(z))(y))
    with pytest.raises(bp.linalg.LinAlgError, match="singular"):
        bp.grad(lambda y: bp.sum(bp.grad(slope)(y)))(bp.asarray([[1.0, 2.0], [2.0, 4.0]], dtype=bp.float64))


EXTREMES = {
    "float32": [[[1e-39]], [1e20, 1e20], [1e-20, 1e-20, 1], [1e30, 1e30, 1e-30], [1e-30, 1e-30, 1e30], [3e38, 1e-3], [1e-39, 1e-39]],
    "float64": [[[1e-310]], [1e-200, 1e-200], [1e200, 1e200], [1e200, 1e200, 1e-200], [1e-160, 1e-160, 1e300], [1e-200, 1, 1e200, 1e-200]],
}
EXTREMES["complex64"], EXTREMES["complex128"] = EXTREMES["float32"], EXTREMES["float64"]


def without_limits(values):
    """The adjugate's diagonal, by exact products."""
    whole = [Fraction(float(value)) for value in values]
    products = [math.prod(whole[:i] + whole[i + 1 :]) for i in range(len(whole))]
    return [float(product) if product <= np.finfo(np.float64).max else math.inf for product in products]


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64"])
def test_the_inverse_of_a_matrix_with_a_nan_is_nan(dtype):
    x = np.stack([np.eye(3), [[1, 2, 3], [np.nan, 4, 5], [7, 8, 10]], np.full((3, 3), np.nan)]).astype(dtype)
    found = bp.linalg.inv(bp.asarray(x)).numpy()
    assert (found[0] == np.eye(3)).all() and np.isnan(found[1:]).all()


@pytest.mark.parametrize("dtype", EXTREMES)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_the_adjugate_is_there_where_the_determinant_or_the_inverse_is_not(dtype):
    for values in EXTREMES[dtype]:
        real = np.diag(np.ravel(values)).astype(dtype).real
        expected = np.diag(without_limits(real.diagonal())).astype(real.dtype)
        x = bp.asarray(real.astype(dtype))
        np.testing.assert_allclose(bp.ops.bp.adjugate(x).numpy(), expected, rtol=1e-6, err_msg=str(values))
        gradient = bp.grad(lambda y: bp.real(bp.linalg.det(y)))(x).numpy()
        finite = np.isfinite(expected)  # an infinity times a complex number has a NaN in it
        np.testing.assert_allclose(gradient[finite], expected[finite], rtol=1e-6, err_msg=str(values))


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("exponent", [-500, -200, 200, 400])
@pytest.mark.parametrize("rank", [3, 2])
def test_the_adjugate_scales_with_its_matrix(dtype, exponent, rank):
    """adj(R x C) of powers of two on the diagonals of R and C, which round nothing."""
    rng = np.random.default_rng(exponent + 1000)
    left, right = rng.integers(-5, 6, (2, 3, 3)) + 6 * np.eye(3)
    left[:, rank:] = 0
    x = (left @ right).astype(dtype) * (1 if dtype == "float64" else 1 + 1j)
    rows, cols = rng.integers(-20, 20, (2, 3)) + [[exponent], [0]]
    found = bp.ops.bp.adjugate(bp.asarray(x * 2.0 ** rows[:, None] * 2.0**cols)).numpy()
    expected = minors(x)
    powers = (rows.sum() + cols.sum()) - rows[None, :] - cols[:, None]
    with np.errstate(over="ignore"):
        expected = np.ldexp(expected.real, powers) + 1j * np.ldexp(expected.imag, powers)
        tolerance = np.ldexp(1e-12 * abs(minors(x)).max(), powers) + 1e-322
    finite = np.isfinite(expected)
    assert finite.any()
    assert (abs(found - expected)[finite] <= tolerance[finite]).all()


SHEAR = [[0.0, 1.0], [1.0, 0.0]]
APART = [[1.0, 0.0], [0.0, 2.0]]


def test_vectors_of_equal_values_have_no_derivative():
    """Q f(L) Q^H, the polar factor and second derivatives of the values would silently be wrong without it."""
    one, weights = bp.eye(2, dtype=bp.float64), bp.asarray([[1.0, 2.0], [3.0, 4.0]], dtype=bp.float64)

    def root(x):
        values, vectors = bp.linalg.eigh(x)
        return (vectors * bp.sqrt(values)) @ vectors.mT

    def polar(x):
        u, _, vh = bp.linalg.svd(x, full_matrices=False)
        return u @ vh

    def again(x):
        u, s, vh = bp.linalg.svd(x, full_matrices=False)
        return (u * s) @ vh

    for function in (root, polar, again):
        assert bp.isnan(bp.grad(lambda x: bp.sum(function(x) * weights))(one)).any()
    for function in (root, polar):
        assert bp.isnan(bp.jvp(function, (one,), (bp.asarray(SHEAR, dtype=bp.float64) + weights,))[1]).any()
    assert bp.isnan(bp.hessian(lambda x: bp.sum(bp.linalg.eigvalsh(x) ** 2))(one)).any()


def test_equal_values_have_derivatives_and_so_have_vectors_that_nobody_parts():
    one = bp.eye(2)
    assert bp.grad(lambda x: bp.sum(bp.linalg.eigh(x).eigenvalues ** 2))(one).tolist() == [[2, 0], [0, 2]]
    assert bp.grad(lambda x: bp.sum(bp.linalg.svd(x).S))(one).tolist() == [[1, 0], [0, 1]]
    assert bp.grad(lambda x: bp.linalg.matrix_norm(x, ord="nuc"))(one).tolist() == [[1, 0], [0, 1]]
    assert bp.jvp(bp.linalg.eigh, (one,), (bp.asarray(APART),))[1].eigenvectors.tolist() == [[0, 0], [0, 0]]
    # The vector of the value that stands alone is a function of the matrix.
    x = bp.asarray([[1.0, 0, 0], [0, 1, 0], [0, 0, 3]])
    found = bp.grad(lambda x: bp.sum(bp.linalg.eigh(x).eigenvectors[:, 2] * bp.asarray([1.0, 2, 3])) ** 2)(x)
    np.testing.assert_allclose(found.numpy(), [[0, 0, 1.5], [0, 0, 3], [1.5, 3, 0]], rtol=1e-6)


def test_powers_of_integers_are_exact():
    x = np.asarray([[1, 1], [1, 0]])
    for n in (0, 1, 2, 7, 80):
        for ours in (bp.linalg.matrix_power, bp.matrix_power):
            found = ours(bp.asarray(np.stack([x, x])), n)
            assert found.dtype is bp.int64 and found.tolist() == np.linalg.matrix_power(np.stack([x, x]), n).tolist()
    inverse = bp.linalg.matrix_power(bp.asarray(x), -3)
    assert inverse.dtype is bp.float32
    np.testing.assert_allclose(np.asarray(inverse), np.linalg.matrix_power(x, -3), rtol=1e-5)
    with pytest.raises(bp.ShapeError, match="matrix_power"):
        bp.linalg.matrix_power(bp.asarray([[1, 2]]), 2)


@pytest.mark.parametrize("p", [1, -1, "fro", float("inf")])
def test_a_singular_matrix_has_no_bound_of_its_condition(p):
    x = np.asarray([[[1.0, 2.0], [2.0, 4.0]], [[2.0, 1.0], [0.0, 3.0]], [[0.0, 0.0], [0.0, 0.0]]])
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(np.asarray(bp.linalg.cond(bp.asarray(x), p)), np.linalg.cond(x, p), rtol=1e-12)
        assert bp.linalg.cond(bp.asarray(x[0]), p).item() == np.linalg.cond(x[0], p) == float("inf")


@pytest.mark.parametrize("shape", [(0,), (0, 0), (0, 3), (3, 0), (2, 0)])
def test_norms_of_no_elements_are_0(shape):
    x = bp.zeros(shape)
    for order in (1, 2, float("inf")):
        assert bp.linalg.norm(x, order).item() == 0 and bp.compile(lambda x, order=order: bp.linalg.norm(x, order))(x).item() == 0
        assert bp.grad(lambda x, order=order: bp.linalg.norm(x, order))(x).shape == shape
        assert not bp.linalg.vector_norm(x, ord=order, axis=0).any()
    assert bp.linalg.matrix_norm(bp.zeros((2, 0, 3)), ord=2).tolist() == [0, 0]


@pytest.mark.parametrize("shape", [(3, 3), (2, 4, 3), (3, 5), (0, 3), (4, 0)])
def test_the_factors_of_lu_give_the_matrix(shape):
    x = bp.asarray(np.random.default_rng(3).standard_normal(shape))
    p, lower, upper = bp.linalg.lu(x)
    np.testing.assert_allclose((p @ lower @ upper).numpy(), x.numpy(), atol=1e-14)
    factors, _, permutation = bp.linalg.lu_factor(x)
    np.testing.assert_allclose(np.take_along_axis(x.numpy(), permutation.numpy()[..., None], -2), (lower @ upper).numpy(), atol=1e-14)
    assert factors.shape == x.shape


def test_lu_of_a_singular_matrix_has_a_zero_on_the_diagonal():
    factors, _, _ = bp.linalg.lu_factor(bp.ones(3, 3))
    assert factors[1, 1].item() == 0
    with pytest.raises(bp.linalg.LinAlgError, match="singular"):
        bp.grad(lambda x: bp.linalg.lu_factor(x).LU.sum())(bp.ones(3, 3))
