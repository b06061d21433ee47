"""Transposed operands give the same results as ordered ones, for every size of element."""

import backplane as bp
import numpy as np
import pytest

DTYPES = [np.bool_, np.uint8, np.int16, np.float32, np.float64, np.complex64, np.complex128]
CASES = [((5, 9), (1, 0)), ((8, 8), (1, 0)), ((65, 130), (1, 0)), ((3, 70, 33), (0, 2, 1)), ((70, 3, 33), (2, 1, 0)), ((33, 70, 3), (1, 0, 2)),
         ((4, 40, 50, 2), (2, 0, 3, 1)), ((40, 9, 4, 9), (3, 1, 2, 0))]


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: dtype.__name__)
@pytest.mark.parametrize("shape, order", CASES, ids=str)
def test_transposed_operands(shape, order, dtype):
    array = (np.random.default_rng(0).standard_normal(shape) * 50).astype(dtype)
    turned, x = array.transpose(order), bp.permute_dims(bp.asarray(array), order)
    straight = np.ascontiguousarray(turned)[..., ::-1].copy()
    y = bp.asarray(straight)
    wide = bp.complex128 if np.iscomplexobj(array) else bp.float64
    np.testing.assert_array_equal(bp.copy(x).numpy(), turned)
    np.testing.assert_array_equal(bp.astype(x, wide).numpy(), turned.astype(bp.zeros(0, dtype=wide).numpy().dtype))
    np.testing.assert_array_equal(bp.where(x != 0, x, y).numpy(), np.where(turned != 0, turned, straight))
    np.testing.assert_array_equal((x == y).numpy(), turned == straight)
    if dtype is not np.bool_:
        np.testing.assert_array_equal((x + y).numpy(), turned + straight)
        np.testing.assert_array_equal((y - x).numpy(), straight - turned)
        np.testing.assert_array_equal((x * x).numpy(), turned * turned)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("m, k", [(255, 9), (256, 33), (200, 95), (250, 200), (600, 50)])
def test_a_matrix_by_a_vector_whose_elements_lie_apart(m, k, dtype):
    rng = np.random.default_rng(m)
    matrix, wide = rng.standard_normal((m, k)).astype(dtype), rng.standard_normal((3, k, 2)).astype(dtype)
    apart = bp.asarray(wide)[..., :1]
    np.testing.assert_allclose((bp.asarray(matrix) @ apart).numpy(), matrix @ wide[..., :1], rtol=1e-4)
    np.testing.assert_allclose((bp.asarray(matrix) @ apart[0, :, 0]).numpy(), matrix @ wide[0, :, 0], rtol=1e-4)
