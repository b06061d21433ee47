"""Long lines on the CUDA backend, which its radix sort takes: against NumPy's stable order."""

import backplane as bp
import numpy as np
import pytest

RNG = np.random.default_rng(7)
INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
FLOATS = ["float16", "float32", "float64"]


def elements(dtype, count):
    """With repetitions, the extremes and, of floats, NaNs of both signs, infinities and zeros of both signs."""
    if dtype == "bool":
        return RNG.integers(0, 2, count).astype(bool)
    if dtype in INTEGERS:
        info = np.iinfo(dtype)
        x = RNG.integers(info.min, info.max, count, dtype=dtype, endpoint=True)
        x[::3] = RNG.integers(0, 9, len(x[::3]))
        x[:4] = [info.max, info.min, info.max, 0]
    else:
        x = (RNG.standard_normal(count) * 100).astype(dtype)
        x[::3] = np.round(x[::3])
        x[::7] = RNG.choice(np.asarray([np.nan, -np.nan, 0.0, -0.0, np.inf, -np.inf, np.finfo(dtype).tiny / 4], dtype), len(x[::7]))
    return RNG.permutation(x)


def expected_order(x, descending):
    """Along the last axis. Reversed lines sorted and reversed again descend, with equals in their order."""
    if not descending:
        return np.argsort(x, axis=-1, kind="stable")
    return x.shape[-1] - 1 - np.flip(np.argsort(np.flip(x, -1), axis=-1, kind="stable"), -1)


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("dtype", ["bool", *INTEGERS, *FLOATS])
def test_long_lines_of_every_dtype(cuda, dtype, descending):
    x = elements(dtype, 5000)
    found = bp.argsort(bp.asarray(x, device=cuda), descending=descending)
    assert found.dtype == bp.int64
    np.testing.assert_array_equal(found.numpy(), expected_order(x, descending))


@pytest.mark.parametrize("descending", [False, True])
def test_a_long_line_of_bfloat16(cuda, descending):
    x = bp.asarray(elements("float32", 5000)).astype(bp.bfloat16)
    found = bp.argsort(x.to(cuda), descending=descending).numpy()
    np.testing.assert_array_equal(found, expected_order(x.astype(bp.float32).numpy(), descending))


# One tile, its last key and one more; several, so that digits are counted.
@pytest.mark.parametrize("count", [1025, 4096, 4097, 20_000])
def test_lines_that_end_anywhere_in_a_tile(cuda, count):
    x = elements("float32", count)
    np.testing.assert_array_equal(bp.argsort(bp.asarray(x, device=cuda)).numpy(), expected_order(x, False))
    np.testing.assert_array_equal(bp.sort(bp.asarray(x, device=cuda)).numpy(), np.sort(x))


def test_more_tiles_than_a_warp_sums_at_a_time(cuda):
    x = RNG.integers(0, 2, 257 * 4096 + 5).astype(bool)
    np.testing.assert_array_equal(bp.argsort(bp.asarray(x, device=cuda)).numpy(), expected_order(x, False))


@pytest.mark.parametrize("count", [2000, 9000])
@pytest.mark.parametrize("scale", [0, 1, 1 << 8, 1 << 24, 1 << 40, (1 << 40) + 1, (1 << 56) + 256])
def test_digits_that_all_keys_share(cuda, count, scale):
    """Of some lines; each has other digits that differ."""
    x = RNG.integers(0, 99, (3, count)) * np.asarray([[1], [scale], [-scale]])
    np.testing.assert_array_equal(bp.argsort(bp.asarray(x, device=cuda)).numpy(), expected_order(x, False))


@pytest.mark.parametrize("view", [lambda x: x[1:, ::2], lambda x: x[::-1, ::-1], lambda x: x], ids=["steps", "backward", "whole"])
@pytest.mark.parametrize("axis", [0, 1])
def test_several_lines_of_views(cuda, view, axis):
    shape = (4, 9000) if axis == 1 else (5000, 4)
    x = elements("float32", shape[0] * shape[1]).reshape(shape)
    found = bp.argsort(view(bp.asarray(x, device=cuda)), axis=axis, descending=True).numpy()
    np.testing.assert_array_equal(np.moveaxis(found, axis, -1), expected_order(np.moveaxis(view(x), axis, -1), True))
