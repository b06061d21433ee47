"""Where elements other than 0 are, and the first largest of many: of all strides, in one block and in several pieces."""

import backplane as bp
import numpy as np
import pytest

SHAPES = [(0,), (1,), (7,), (512,), (513,), (200_001,), (3, 0), (1, 5), (300, 700), (70_000, 3), (3, 70_001), (2, 3, 5, 7), (5, 1, 40_000)]


def variants(x):
    yield x
    yield x.T
    yield x[::2]
    yield x[..., ::-1]


@pytest.mark.parametrize("dtype", ["bool", "int8", "int64", "float32", "complex64"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_positions_agree_with_numpy(shape, dtype):
    values = np.random.default_rng(3).integers(0, 3, shape).astype(dtype)
    for array, tensor in zip(variants(values), variants(bp.asarray(values))):
        for found, expected in zip(bp.nonzero(tensor), np.nonzero(array), strict=True):
            np.testing.assert_array_equal(found.numpy(), expected)
        np.testing.assert_array_equal(bp.argwhere(tensor).numpy(), np.argwhere(array))
        np.testing.assert_array_equal(bp.flatnonzero(tensor).numpy(), np.flatnonzero(array))


def test_positions_of_no_axes():
    assert bp.argwhere(bp.asarray(2)).shape == (1, 0) and bp.argwhere(bp.asarray(0)).shape == (0, 0)
    assert bp.flatnonzero(bp.asarray(2)).tolist() == [0]


@pytest.mark.parametrize("dtype", ["bool", "int16", "float16", "float32"])
@pytest.mark.parametrize("shape", [shape for shape in SHAPES if 0 not in shape], ids=str)
def test_extremes_agree_with_numpy(shape, dtype):
    values = np.random.default_rng(4).integers(0, 2 if dtype == "bool" else 1000, shape).astype(dtype)
    if dtype.startswith("float") and values.size > 100:
        values.flat[values.size // 2] = np.nan
    for array, tensor in zip(variants(values), variants(bp.asarray(values))):
        for axis in (None, *range(array.ndim)):
            np.testing.assert_array_equal(bp.argmax(tensor, axis=axis).numpy(), np.argmax(array, axis=axis))
            np.testing.assert_array_equal(bp.argmin(tensor, axis=axis).numpy(), np.argmin(array, axis=axis))
