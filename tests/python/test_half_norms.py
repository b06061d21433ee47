"""Norms, deviations and distances of half floats are those of float32, rounded once: no square overflows or vanishes."""

import backplane as bp
import backplane.nn.functional as F
import numpy as np
import pytest

HALVES = [bp.float16, bp.bfloat16]
ROWS = [[300.0, 400.0, -350.0, 60.0], [1e-4, 2e-4, -1.5e-4, 3e-4]]  # whose squares float16 does not hold

NORMS = {
    **{f"vector_norm {order}": lambda x, order=order: bp.linalg.vector_norm(x, axis=1, ord=order) for order in (0, 1, 2, 3, 0.5, -2, float("inf"), float("-inf"))},
    "vector_norm with axes": lambda x: bp.linalg.vector_norm(x[0], keepdims=True),
    "norm": lambda x: bp.linalg.norm(x[1]),
    **{f"matrix_norm {order}": lambda x, order=order: bp.linalg.matrix_norm(x, ord=order) for order in ("fro", "nuc", 1, 2, float("inf"))},
    "matrix norm of small numbers": lambda x: bp.linalg.norm(x[1:], ord="fro"),
    **{f"normalize {p}": lambda x, p=p: F.normalize(x, p=p) for p in (1, 2, 3, float("inf"))},
    "cosine_similarity": lambda x: F.cosine_similarity(x, x[:, ::-1]),
    "cosine_similarity of large vectors": lambda x: F.cosine_similarity(x[0], x[0, ::-1], dim=0),
    **{f"pairwise_distance {p}": lambda x, p=p: F.pairwise_distance(x, x[:, ::-1], p=p, eps=0) for p in (1, 2, 3, float("inf"))},
    "triplet_margin_loss": lambda x: F.triplet_margin_loss(x, x[:, ::-1], x * 0.5, eps=0, reduction="none"),
    "std": lambda x: bp.std(x, axis=1),
    "std, corrected": lambda x: bp.std(x, axis=1, correction=1),
    "nanstd": lambda x: bp.nanstd(x, axis=1),
    "nanmean": lambda x: bp.nanmean(x * 100, axis=1),
    "var along rows": lambda x: bp.var(x * 0.5, axis=0),
    "rms_norm": lambda x: F.rms_norm(x, (4,)),
    "rms_norm along columns": lambda x: bp.rms_norm(x, axis=[0], eps=1e-7),
    "local_response_norm": lambda x: F.local_response_norm(x.reshape((1, 4, 2)), 3, alpha=1.0, k=1e-4),
    "batch_norm over rows": lambda x: bp.batch_norm(x[0].reshape((4, 1)))[0],
    "batch_norm, weighted": lambda x: bp.batch_norm(x.reshape((4, 2)), *bp.asarray([[1.0, 0.5], [2.0, 1.0]], dtype=x.dtype))[0],
    "rms_norm, weighted": lambda x: F.rms_norm(x, (4,), bp.asarray([1.0, 0.5, 2.0, 1.0], dtype=x.dtype)),
}  # fmt: skip
# For two rows, the gradient is the rest of a cancellation.
FORWARD = {**NORMS, "layer_norm along columns": lambda x: bp.layer_norm(x, axis=[0], eps=1e-7)}


def wide(x):
    return bp.astype(x, bp.float64).numpy()


def assert_near(found, expected, dtype, ulps):
    with np.errstate(over="ignore"):
        limits = bp.finfo(dtype)
        expected = wide(expected)
        expected = np.where(np.abs(expected) > limits.max, np.copysign(np.inf, expected), expected)
    assert found.dtype is dtype
    np.testing.assert_allclose(wide(found), expected, rtol=ulps * limits.eps, atol=float(limits.smallest_normal) * limits.eps * 2)


@pytest.mark.parametrize("name", FORWARD)
@pytest.mark.parametrize("dtype", HALVES, ids=str)
def test_norms_are_rounded_once(name, dtype):
    x = bp.asarray(ROWS, dtype=dtype)
    assert_near(FORWARD[name](x), FORWARD[name](bp.astype(x, bp.float32)), dtype, 0.51)


@pytest.mark.parametrize("name", NORMS)
@pytest.mark.parametrize("dtype", HALVES, ids=str)
def test_gradients_of_norms_are_those_of_float32(name, dtype):
    x = bp.asarray(ROWS, dtype=dtype)
    norm = NORMS[name]

    def summed(x):
        return bp.sum(bp.astype(norm(x), bp.float32))

    found, expected = (bp.grad(summed)(v) for v in (x, bp.astype(x, bp.float32)))
    assert_near(found, expected, dtype, 2)
    direction = bp.asarray([[1.0, -0.5, 0.25, 1.0], [0.5, 1.0, -1.0, 0.25]], dtype=dtype)
    found, expected = (bp.jvp(norm, (v,), (bp.astype(direction, v.dtype),))[1] for v in (x, bp.astype(x, bp.float32)))
    assert_near(found, expected, dtype, 4)


@pytest.mark.parametrize("dtype", HALVES, ids=str)
def test_the_unstated_eps_of_rms_norm_is_that_of_the_computation(dtype):
    x = bp.asarray([-1e-4, 2e-4, 2e-4, 2e-4], dtype=dtype)
    np.testing.assert_allclose(wide(F.rms_norm(x, (4,)))[:2], [-0.257, 0.514], atol=4e-3)  # PyTorch's


@pytest.mark.parametrize("dtype", HALVES, ids=str)
def test_a_number_beside_halves_leaves_their_dtype(dtype):
    x = bp.asarray([[1.0, 2.0, 4.0]], dtype=dtype)
    for found in (bp.pairwise_distance(x, 2.0, p=1, eps=0), bp.pairwise_distance(2, x, p=1, eps=0)):
        assert found.dtype is dtype and found.tolist() == [3]


def test_a_deviation_whose_variance_is_large():
    assert bp.std(bp.asarray([600.0, 0.0, 150.0], dtype=bp.float16)).item() == 255
    assert bp.std(bp.asarray([1000.0, 0.0, -1000.0], dtype=bp.float16)).item() == 816.5
