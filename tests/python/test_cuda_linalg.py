"""Linear algebra of the CUDA backend: by cuSOLVER where it is found, triangular systems by a kernel of its own, all else on the host.
`./dev test cuda` runs this on the emulated driver, without libraries and with stand-ins for them."""

import ctypes

import backplane as bp
import numpy as np
import pytest
from device_calls import RNG

DTYPES = ["float32", "float64", "complex64", "complex128"]


def made(dtype, *shape, definite=False):
    """Matrices; Hermitian and positive definite ones; no element is what its transpose has."""
    x = RNG.standard_normal(shape)
    if dtype.startswith("complex"):
        x = x + 1j * RNG.standard_normal(shape)
    if definite:
        x = x @ np.conj(np.swapaxes(x, -1, -2)) + shape[-1] * np.eye(shape[-1])
    return x.astype(dtype)


def routines():
    """How many routines the stand-in for cuSOLVER has run; None where there is none."""
    try:
        count = ctypes.CDLL("libcusolver.so.12").emulated_cusolver_routines
    except (OSError, AttributeError):
        return None
    count.restype = ctypes.c_uint64
    return count()


def close(found, expected, dtype):
    tolerance = 2e-4 if dtype in ("float32", "complex64") else 1e-10
    np.testing.assert_allclose(np.asarray(found.numpy()), expected, rtol=tolerance, atol=tolerance)


def adjoint(x):
    return np.conj(np.swapaxes(x, -1, -2))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize("shape", [(1, 1), (5, 5), (2, 3, 4, 4)])
def test_cholesky(cuda, shape, upper, dtype):
    x = made(dtype, *shape, definite=True)
    factor = bp.linalg.cholesky(bp.asarray(x, device=cuda), upper=upper)
    expected = np.linalg.cholesky(x)
    close(factor, adjoint(expected) if upper else expected, dtype)


# The stack of the left side, the right side, and how many routines of the library that takes.
SYSTEMS = [((3, 3), (3,), 2), ((3, 3), (3, 5), 2), ((4, 3, 3), (3,), 8), ((2, 1, 3, 3), (4, 3, 2), 10), ((3, 3), (2, 4, 3, 2), 2), ((2, 3, 3), (3, 0), 2)]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("left, right, calls", SYSTEMS)
def test_solve(cuda, left, right, calls, dtype):
    x, b = made(dtype, *left), made(dtype, *right)
    before = routines()
    found = bp.linalg.solve(bp.asarray(x, device=cuda), bp.asarray(b, device=cuda))
    close(found, np.linalg.solve(x, b[:, None])[..., 0] if len(right) == 1 else np.linalg.solve(x, b), dtype)
    assert before is None or routines() - before == calls


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("unit", [False, True])
@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize("left, right", [((3, 3), (3,)), ((40, 40), (40, 11)), ((2, 1, 3, 3), (4, 3, 2)), ((4, 3, 3), (3,))])
def test_solve_triangular(cuda, left, right, upper, unit, dtype):
    n = left[-1]
    x, b = made(dtype, *left) / n + 2 * np.eye(n, dtype=dtype), made(dtype, *right)
    found = bp.solve_triangular(bp.asarray(x, device=cuda), bp.asarray(b, device=cuda), upper=upper, unit_diagonal=unit)
    half = np.triu(x, 1) if upper else np.tril(x, -1)
    half = half + (np.eye(n) if unit else np.where(np.eye(n, dtype=bool), x, 0))
    close(found, np.linalg.solve(half, b[:, None])[..., 0] if len(right) == 1 else np.linalg.solve(half, b), dtype)


def test_a_triangular_system_does_not_see_the_other_triangle_and_runs_without_a_library(cuda):
    x = np.array([[2, np.nan], [1, 4]], np.float32)
    with bp.host_fallback("forbid"):
        found = bp.solve_triangular(bp.asarray(x, device=cuda), bp.asarray([2.0, 9.0], device=cuda))
    assert found.tolist() == [1, 2]


def test_infinity_in_a_triangular_system_stays_where_it_comes(cuda):
    x, b = np.array([[1, 0], [1, 1]], np.float32), np.array([1, np.inf], np.float32)
    assert bp.solve_triangular(bp.asarray(x, device=cuda), bp.asarray(b, device=cuda)).tolist() == [1, np.inf]


def test_a_triangular_system_is_captured(cuda):
    x, b = bp.asarray([[2.0, 0.0], [1.0, 4.0]], device=cuda), bp.asarray([2.0, 9.0], device=cuda)
    stack = bp.copy(bp.broadcast_to(x, (2, 3, 2, 2)))
    with bp.capture(cuda) as recording:
        y = bp.solve_triangular(stack, b)
    recording.replay()
    assert y[1, 2].tolist() == [1, 2]
    stack[1, 0, 1, 1] = 0
    recording.replay()
    with pytest.raises(bp.DataError, match=r"matrix \[1, 0\] of the stack is singular"):
        y.tolist()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(1, 1), (4, 4), (2, 3, 3, 3)])
def test_inverse_and_determinants(cuda, shape, dtype):
    x = made(dtype, *shape)
    on_device = bp.asarray(x, device=cuda)
    close(bp.linalg.inv(on_device), np.linalg.inv(x), dtype)
    close(bp.linalg.det(on_device), np.linalg.det(x), dtype)
    sign, log = bp.linalg.slogdet(on_device)
    expected = np.linalg.slogdet(x)
    close(sign, expected[0], dtype)
    close(log, expected[1], dtype)


def test_determinants_of_singular_matrices(cuda):
    x = np.array([[[1, 2], [2, 4]], [[0, 0], [0, 3]], [[0, 2], [3, 0]]], np.float64)
    assert bp.linalg.det(bp.asarray(x, device=cuda)).tolist() == [0, 0, -6]
    sign, log = bp.linalg.slogdet(bp.asarray(x, device=cuda))
    assert sign.tolist() == [0, 0, -1] and log.tolist()[:2] == [-np.inf] * 2


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("mode", ["reduced", "complete"])
@pytest.mark.parametrize("shape", [(4, 4), (5, 3), (3, 5), (2, 4, 2), (1, 3)])
def test_qr(cuda, shape, mode, dtype):
    x = made(dtype, *shape)
    q, r = bp.linalg.qr(bp.asarray(x, device=cuda), mode=mode)
    cpu = bp.linalg.qr(bp.asarray(x, device="cpu"), mode=mode)
    close(q, cpu[0].numpy(), dtype)
    close(r, cpu[1].numpy(), dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("shape", [(4, 4), (5, 3), (3, 5), (2, 4, 2), (1, 3)])
def test_svd(cuda, shape, full, dtype):
    x = made(dtype, *shape)
    u, s, vh = (t.numpy() for t in bp.linalg.svd(bp.asarray(x, device=cuda), full_matrices=full))
    k = min(shape[-2:])
    assert u.shape[-1] == (shape[-2] if full else k) and vh.shape[-2] == (shape[-1] if full else k)
    expected = np.linalg.svd(x, compute_uv=False)
    close(bp.asarray(s), expected, dtype)
    close(bp.linalg.svdvals(bp.asarray(x, device=cuda)), expected, dtype)
    close(bp.asarray(u[..., :k] * s[..., None, :] @ vh[..., :k, :]), x, dtype)
    close(bp.asarray(adjoint(u) @ u), np.broadcast_to(np.eye(u.shape[-1]), u.shape[:-2] + (u.shape[-1],) * 2), dtype)
    close(bp.asarray(vh @ adjoint(vh)), np.broadcast_to(np.eye(vh.shape[-2]), vh.shape[:-2] + (vh.shape[-2],) * 2), dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(1, 1), (5, 5), (2, 3, 4, 4)])
def test_eigh(cuda, shape, dtype):
    x = made(dtype, *shape)  # of which the Hermitian part counts
    part = (x + adjoint(x)) / 2
    values, vectors = (t.numpy() for t in bp.linalg.eigh(bp.asarray(x, device=cuda)))
    close(bp.asarray(values), np.linalg.eigvalsh(part), dtype)
    close(bp.linalg.eigvalsh(bp.asarray(x, device=cuda)), np.linalg.eigvalsh(part), dtype)
    close(bp.asarray(vectors * values[..., None, :] @ adjoint(vectors)), part, dtype)


@pytest.mark.parametrize("shape", [(0, 0), (0, 3, 3), (2, 0, 0)])
def test_square_matrices_without_elements(cuda, shape):
    x = bp.zeros(shape, device=cuda)
    assert bp.linalg.cholesky(x).shape == bp.linalg.inv(x).shape == shape
    assert bp.linalg.eigh(x)[0].shape == shape[:-1]
    assert bp.linalg.det(x).numpy().shape == shape[:-2] and (bp.linalg.det(x).numpy() == 1).all()
    assert (bp.linalg.slogdet(x)[1].numpy() == 0).all()


@pytest.mark.parametrize("shape", [(0, 2), (2, 0), (2, 3, 0)])
def test_matrices_without_elements(cuda, shape):
    x = bp.zeros(shape, device=cuda)
    for found in (bp.linalg.svd(x), bp.linalg.svd(x, full_matrices=False), bp.linalg.qr(x), bp.linalg.qr(x, mode="complete")):
        q = found[0].numpy()
        assert (adjoint(q) @ q == np.eye(q.shape[-1])).all()


ILL = [[1.0, 2.0], [2.0, 1.0]]
SINGULAR = [[1.0, 1.0], [1.0, 1.0]]
NOT_FINITE = [[np.nan, 1.0], [2.0, 3.0]]


# What the CPU says, too.
@pytest.mark.parametrize(
    "op, bad, said",
    [
        (bp.linalg.cholesky, ILL, "is not positive definite, as was expected"),
        (bp.linalg.inv, SINGULAR, "is singular; a regular one was expected"),
        (lambda x: bp.linalg.solve(x, bp.ones((2, 1), device=x.device)), SINGULAR, "is singular; a regular one was expected"),
        (lambda x: bp.solve_triangular(x, bp.ones((2, 1), device=x.device)), [[0.0, 1.0], [1.0, 1.0]], "is singular; a regular one was expected"),
        (bp.linalg.eigh, NOT_FINITE, "holds NaN or infinity; finite elements were expected"),
        (bp.linalg.svdvals, NOT_FINITE, "holds NaN or infinity; finite elements were expected"),
        (bp.linalg.svd, NOT_FINITE, "holds NaN or infinity; finite elements were expected"),
    ],
)
def test_wrong_data_is_named_as_the_cpu_names_it(cuda, op, bad, said):
    good = [[2.0, 0.0], [0.0, 3.0]]
    for values, name in ((bad, "the matrix"), ([[good, good, good], [good, bad, bad]], r"matrix \[1, 1\] of the stack")):
        for device in ("cpu", cuda):
            with pytest.raises(bp.DataError, match=f"{name} {said}"):
                found = op(bp.asarray(values, device=device))
                bp.sum(found[-1] if isinstance(found, tuple) else found).item()
    found = op(bp.asarray(good, device=cuda))  # the device goes on
    assert np.isfinite((found[0] if isinstance(found, tuple) else found).numpy()).all()


@pytest.mark.parametrize("op", [bp.linalg.cholesky, bp.linalg.inv, bp.linalg.det, bp.linalg.eigh])
def test_matrices_that_are_not_square_are_refused_at_the_call(cuda, op):
    with pytest.raises(bp.ShapeError, match="found 2 x 3 matrices, expected square ones"):
        op(bp.ones((2, 3), device=cuda))


def test_operands_in_any_layout(cuda):
    x = made("float32", 6, 6, definite=True)
    for view in (lambda t: t.T, lambda t: t[1:, 1:], lambda t: t[::2, ::2], lambda t: t[::-1, ::-1]):
        expected = np.linalg.inv(view(x))
        close(bp.linalg.inv(view(bp.asarray(x, device=cuda))), expected, "float32")


def test_gradients_go_through_the_library(cuda):
    x = made("float64", 4, 4, definite=True)

    def total(t):
        return bp.sum(bp.linalg.cholesky(t)) + bp.sum(bp.linalg.inv(t)) + bp.linalg.slogdet(t)[1]

    close(bp.grad(total)(bp.asarray(x, device=cuda)), bp.grad(total)(bp.asarray(x, device="cpu")).numpy(), "float64")


def test_work_on_two_streams_has_memory_of_its_own(cuda):
    x, y = made("float64", 8, 8, definite=True), made("float64", 8, 8, definite=True)
    a, b = bp.asarray(x, device=cuda), bp.asarray(y, device=cuda)
    first, second = bp.Stream(cuda), bp.Stream(cuda)
    found = []
    for _ in range(3):
        with first:
            found.append((bp.linalg.inv(a), x))
        with second:
            found.append((bp.linalg.inv(b), y))
    for result, matrix in found:
        close(result, np.linalg.inv(matrix), "float64")


# One core has factorised many small matrices sooner than the library is called for each.
@pytest.mark.parametrize("count, n, calls", [(64, 2, 64), (65, 2, 0), (65, 64, 65)])
def test_stacks_of_many_small_matrices_go_to_the_host(cuda, count, n, calls):
    before = routines()
    if before is None:
        pytest.skip("no stand-in for cuSOLVER")
    x = np.broadcast_to(np.eye(n, dtype=np.float32) * 2, (count, n, n))
    assert (bp.linalg.det(bp.asarray(x, device=cuda)).numpy() == 2.0**n).all()
    assert routines() - before == calls


def test_why_a_factorisation_runs_on_the_host(cuda):
    missing = "not found" in cuda.properties["cusolver"]
    reason = "declined: libcusolver.so.12 not found, so factorisations of matrices run on the host" if missing else "declined: found 70 matrices of at most 2"
    with bp.host_fallback("forbid"), pytest.raises(NotImplementedError, match=reason):
        bp.linalg.inv(bp.ones((70, 2, 2), device=cuda))


def test_general_eigenvalues_are_the_hosts(cuda):
    x = made("float32", 3, 3)
    close(bp.linalg.eigvals(bp.asarray(x, device=cuda)), bp.linalg.eigvals(bp.asarray(x)).numpy(), "float32")
