"""Long lines and many index positions on the CUDA backend, which both go through its radix sort: against NumPy's stable
order, and against a loop in the order of positions, bit by bit."""

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


def put_in_turn(x, indices, values, accumulate):
    x = x.copy()
    for p in range(len(values)):
        at = tuple(index[p] for index in indices)
        x[at] = x[at] + values[p] if accumulate else values[p]
    return x


@pytest.mark.parametrize("accumulate", [False, True])
@pytest.mark.parametrize("dtype", ["int8", "int64", "uint32", "complex64", "complex128", *FLOATS])
def test_many_positions_are_put_in_their_order(cuda, dtype, accumulate):
    x, values = ((RNG.standard_normal(shape) * 50).astype(dtype) for shape in ((7, 3, 5), (600, 5)))
    indices = [RNG.integers(-7, 7, 600), RNG.integers(0, 3, 600)]
    indices[0][100:300] = 4  # long runs too
    on_device = [bp.asarray(index, device=cuda) for index in indices]
    found = bp.index_put(bp.asarray(x, device=cuda), on_device, bp.asarray(values, device=cuda), accumulate=accumulate)
    assert found.numpy().tobytes() == put_in_turn(x, indices, values, accumulate).tobytes()


@pytest.mark.parametrize("kept", [1, 33, 300])
@pytest.mark.parametrize("count", [32, 33, 5000])
def test_rows_are_added_where_many_meet(cuda, count, kept):
    count = min(count, 6000 // kept)
    x, values = RNG.standard_normal((300, kept)).astype(np.float32), RNG.standard_normal((count, kept)).astype(np.float32)
    index = RNG.integers(0, 300, count)
    index[: count // 2] = RNG.integers(0, 4, count // 2)
    tensors = [bp.asarray(array, device=cuda) for array in (x, index, values)]
    found = bp.index_add(tensors[0], 0, tensors[1], tensors[2])
    assert found.numpy().tobytes() == put_in_turn(x, [index], values, True).tobytes()


def test_places_that_take_more_than_one_digit(cuda):
    """70,000 rows: three digits. Into columns of a view, in place."""
    x, index, values = np.zeros((70_000, 2), np.int32), RNG.integers(0, 70_000, 3000), RNG.integers(-9, 9, 3000, dtype=np.int32)
    index[::2] = index[0]
    on_device = bp.asarray(x, device=cuda)
    on_device[bp.asarray(index, device=cuda), 1] = bp.asarray(values, device=cuda)
    expected = x.copy()
    expected[:, 1] = put_in_turn(x[:, 1], [index], values, False)
    np.testing.assert_array_equal(on_device.numpy(), expected)


def test_kept_elements_that_lie_apart(cuda):
    x, index, values = RNG.standard_normal((40, 70)), RNG.integers(-70, 70, 90), RNG.standard_normal((40, 90))
    x, values = x.astype(np.float32), values.astype(np.float32)
    tensors = [bp.asarray(array, device=cuda) for array in (x, index, values)]
    found = bp.index_add(tensors[0], 1, tensors[1], tensors[2])
    assert found.numpy().tobytes() == put_in_turn(x.T, [index], values.T, True).T.tobytes()


def test_a_position_out_of_range_among_many(cuda):
    index = RNG.integers(0, 9, 100)
    index[60] = 9
    x = bp.zeros(9, device=cuda)
    with pytest.raises(bp.DataError, match="index_put: found index 9 along axis 0"):
        bp.index_put(x, [bp.asarray(index, device=cuda)], bp.ones(100, device=cuda), accumulate=True).numpy()
    assert bp.index_put(x, [bp.asarray(index % 9, device=cuda)], 1.0, accumulate=True).sum().tolist() == 100


def test_a_replay_sorts_and_adds_anew(cuda):
    x, index = bp.zeros(3000, device=cuda), bp.zeros(100, dtype=bp.int64, device=cuda)
    with bp.capture(cuda) as recording:
        order, added = bp.argsort(x), bp.index_put(x, [index], x[:100], accumulate=True)
    for _ in range(2):
        new, places = elements("float32", 3000), RNG.integers(0, 50, 100)
        x.copy_(bp.asarray(new, device=cuda)), index.copy_(bp.asarray(places, device=cuda))
        recording.replay()
        np.testing.assert_array_equal(order.numpy(), expected_order(new, False))
        np.testing.assert_array_equal(added.numpy(), put_in_turn(new, [places], new[:100], True))
