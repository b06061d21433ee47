"""Reductions, places and the softmax family over sizes around the vector loops' steps, with a NaN or an infinity somewhere."""

import backplane as bp
import numpy as np
import pytest

SPECIAL = [None, np.nan, np.inf, -np.inf]
LENGTHS = [1, 7, 63, 64, 65, 1000, 5000, 70_000, 200_001]
SHAPES = [(3, 8), (5, 37), (300, 261), (1025, 70), (17, 1000)]


def numbers(shape, special, dtype):
    draw = np.random.default_rng(0)
    x = 3 * draw.standard_normal(shape).astype(dtype)
    if special is not None:
        x[tuple(draw.integers(0, size) for size in x.shape)] = special
    return x


def close(found, expected, tolerance):
    return np.allclose(np.asarray(found), expected, rtol=tolerance, atol=tolerance, equal_nan=True)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("special", SPECIAL)
@pytest.mark.parametrize("n", LENGTHS)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_whole(n, special, dtype):
    x = numbers((n,), special, dtype)
    for name in ("max", "min", "argmax", "argmin"):
        assert np.array_equal(np.asarray(getattr(bp, name)(bp.asarray(x))), getattr(np, name)(x), equal_nan=True), name
    wide = x.astype(np.float64)
    scale = np.finfo(dtype).eps
    if special is None:
        assert abs(float(np.asarray(bp.sum(bp.asarray(x)))) - wide.sum()) <= 16 * scale * np.abs(wide).sum()
    assert close(bp.logsumexp(bp.asarray(x)), np.log(np.exp(wide).sum()), 64 * scale)


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("special", SPECIAL)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_along_an_axis(shape, special, axis):
    x = numbers(shape, special, np.float32)
    ours, wide = bp.asarray(x), x.astype(np.float64)
    for name in ("max", "min", "argmax", "argmin"):
        expected = getattr(np, name)(x, axis=axis)
        assert np.array_equal(np.asarray(getattr(bp, name)(ours, axis=axis)), expected, equal_nan=True), name
    shifted = wide - wide.max(axis, keepdims=True)
    total = np.exp(shifted).sum(axis, keepdims=True)
    assert close(bp.sum(ours, axis=axis), wide.sum(axis), 1e-4)
    assert close(bp.softmax(ours, axis=axis), np.exp(shifted) / total, 1e-6)
    assert close(bp.log_softmax(ours, axis=axis), shifted - np.log(total), 1e-5)
    assert close(bp.logsumexp(ours, axis=axis), np.log(np.exp(wide).sum(axis)), 1e-5)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_long_columns_with_stretches_of_nothing(dtype):
    x = numbers((1500, 37), None, dtype)
    x[:700, ::2] = -np.inf
    x[900:, ::3] = -np.inf
    x[:, 5] = -np.inf
    x[:600, 7] += 200  # the largest of the first rows counts to the last one
    x[600:, 8] += 200
    shifted = x.astype(np.float64) - x.max(0)
    total, tolerance = np.exp(shifted).sum(0), 64 * np.finfo(dtype).eps
    ours = bp.asarray(x)
    assert close(bp.softmax(ours, axis=0), np.exp(shifted) / total, tolerance)
    assert close(bp.log_softmax(ours, axis=0), shifted - np.log(total), tolerance)
    assert close(bp.logsumexp(ours, axis=0), np.where(x.max(0) == -np.inf, -np.inf, x.max(0) + np.log(total)), tolerance)


def running(join, values, dtype):
    """Of NumPy's scalars one after the other, as the running value itself takes them."""
    steps, before = [], None
    for value in np.asarray(values, dtype):
        before = value if before is None else join(before, value)
        steps.append(before)
    return np.array(steps)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_running_values_are_finite_wherever_each_step_is(dtype):
    huge, least = np.finfo(dtype).max, np.finfo(dtype).tiny
    up = np.sqrt(huge) * 4
    sums = [
        [0, -0.75 * huge, 0.625 * huge, 0.625 * huge],
        [0.5 * huge, -0.75 * huge, -0.75 * huge, 0.5 * huge],
        [0.5 * huge, 0, 0, 0, -huge, 0, 0.625 * huge, 0.625 * huge],
        [0, huge, huge, -huge],
        [1, np.inf, 2, 3, 4, 5, 6, 7],
    ]
    products = [
        [0, 1, up, up],
        [up, 0.5, 1 / up, 1 / up, 1 / up, 0.5, up, up],
        [1, least, 1, 1, up, up, 0.5, 0.25],
        [up, 1, 1, 1, 1 / up, up, up, 1 / up],
        [up, 1, 1, 1, 1 / up, 1 / up, up, up],
        [0.5, 0.5, 0.5, 0.5, np.nan, 1, 2, 3],
    ]
    cases = [(bp.cumulative_sum, np.add, row, 0) for row in sums] + [(bp.cumulative_prod, np.multiply, row, 1) for row in products]
    for function, join, row, identity in cases:
        for lead in (0, 3, 12):
            row = [identity] * lead + row + [identity] * 24
            expected = running(join, row, dtype)
            found = function(bp.asarray(np.asarray(row, dtype))).numpy()
            same = np.isclose(found, expected, rtol=8 * np.finfo(dtype).eps, equal_nan=True)
            if dtype == np.float32:  # its running value is a double, which goes on where this type would not
                same |= ~np.isfinite(expected) | (abs(expected) < least)
            assert same.all(), (row, found, expected)
