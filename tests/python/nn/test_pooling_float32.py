"""Pooling in float32 is pooling in float64, window by window: rows that vectors divide, edges, equal elements, NaN."""

import backplane as bp
import numpy as np
import pytest

# size, kernel, stride, padding
SHAPES = [((8, 8), (2, 2), (2, 2), (0, 0)), ((9, 37), (3, 3), (2, 2), (1, 1)), ((5, 70), (3, 2), (1, 1), (1, 0)), ((7, 40), (2, 5), (3, 3), (0, 2)),
          ((6, 33), (1, 1), (1, 2), (0, 0)), ((4, 19), (2, 1), (2, 2), (1, 0)), ((3, 3), (2, 2), (2, 2), (1, 1)), ((4, 64), (4, 4), (4, 4), (0, 0)),
          ((1, 5), (3, 3), (1, 1), (1, 1)), ((6, 6), (6, 6), (1, 1), (0, 0)), ((30, 31), (2, 2), (2, 2), (1, 1)), ((2, 300), (2, 3), (1, 7), (0, 1))]


@pytest.mark.parametrize("size, kernel, stride, padding", SHAPES)
@pytest.mark.parametrize("numbers", ["few values", "with NaN", "infinite"])
def test_float32_is_float64(size, kernel, stride, padding, numbers):
    draw = np.random.default_rng(0)
    x = draw.integers(-2, 3, (2, 3, *size)).astype(np.float32)
    if numbers != "few values":
        x[draw.random(x.shape) < 0.1] = np.nan if numbers == "with NaN" else -np.inf
    single, double = bp.asarray(x), bp.asarray(x.astype(np.float64))
    got, expected = (bp.max_pool2d_with_indices(a, kernel, stride, padding) for a in (single, double))
    np.testing.assert_array_equal(got.values.numpy(), expected.values.numpy())
    np.testing.assert_array_equal(got.indices.numpy(), expected.indices.numpy())
    np.testing.assert_array_equal(bp.max_pool2d(single, kernel, stride, padding).numpy(), got.values.numpy())
    got, expected = (bp.avg_pool2d(a, kernel, stride, padding).numpy() for a in (single, double))
    np.testing.assert_allclose(got, expected, rtol=1e-6)
