"""CUDA's kernels that take several elements at a time, or a line per block: at the sizes and places where they take another way (tails, lines
that begin off a pack, lines longer than a block holds, matrices turned around), they give what the CPU gives."""

import backplane as bp
import numpy as np
import pytest
from device_calls import RNG, normal

# Of float32 a pack is 4 elements, and a block of 512 threads holds 8,192.
LENGTHS = [1, 3, 31, 127, 1000, 4099, 8200]


def same(function, device, *arrays, rtol=0.0, atol=0.0):
    def of(device):
        result = function(*(bp.asarray(array, device=device) for array in arrays))
        return (bp.astype(result, bp.float32) if result.dtype == bp.bfloat16 else result).numpy()

    np.testing.assert_allclose(of(device), of("cpu"), rtol=rtol, atol=atol, strict=True)


def whole(*shape):
    """Numbers whose sums are exact in any order."""
    return RNG.integers(-9, 9, shape).astype(np.float32)


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "int32", "bool", "complex64"])
def test_lines_are_summed(cuda, length, dtype):
    x = (RNG.integers(-2, 3, (3, length)) * (RNG.random((3, length)) < 0.05)).astype(np.float32)  # few, so that halves hold the sums

    same(lambda x: bp.sum(bp.astype(x, getattr(bp, dtype)), axis=1), cuda, x)
    if dtype != "complex64":
        same(lambda x: bp.max(bp.astype(x, getattr(bp, dtype)), axis=1), cuda, x)


def test_a_line_that_begins_off_a_pack_has_the_same_sum(cuda):
    x = normal(2 * 4099)
    aligned = bp.sum(bp.asarray(x[1:4098], device=cuda))
    assert bp.sum(bp.asarray(x, device=cuda)[1:4098]).item() == aligned.item()
    assert bp.sum(bp.flip(bp.asarray(x[1:4098][::-1].copy(), device=cuda))).item() == aligned.item()


@pytest.mark.parametrize("length", [*LENGTHS, 64, 4096, 16416])
@pytest.mark.parametrize("dtype, rtol", [("float32", 2e-6), ("float64", 1e-12), ("float16", 2e-3), ("bfloat16", 2e-2)])
def test_normalised_lines(cuda, length, dtype, rtol):
    x, w, b, g = normal(3, length), normal(length), normal(length), normal(3, length)

    def alike(function, *operands, atol=4 * rtol):
        def called(*operands):
            return bp.astype(function(*(bp.astype(x, getattr(bp, dtype)) for x in operands)), bp.float64)

        same(called, cuda, *operands, rtol=rtol, atol=atol)

    alike(bp.softmax, 3 * x)
    alike(bp.log_softmax, 3 * x)
    alike(lambda x: bp.softmax(x[:, 1:] if length > 1 else x), x)
    alike(bp.rms_norm, x, w)
    alike(bp.layer_norm, x)
    alike(bp.layer_norm, x, w, b)
    slack = 1000 if length == 1 else 30  # of one element it is a rounding error, times 1 / sqrt(eps)
    alike(bp.layer_norm_grad, g, x, w, atol=slack * rtol)


def test_lines_keep_what_is_not_finite(cuda):
    x = np.array([[-np.inf, -np.inf, -np.inf], [-np.inf, 1, 2], [np.nan, 1, 2], [np.inf, 1, np.inf]], np.float32)
    same(bp.softmax, cuda, x, rtol=1e-6)
    same(bp.log_softmax, cuda, x, rtol=1e-6)
    same(bp.layer_norm, cuda, x, rtol=1e-6)


@pytest.mark.parametrize("length", [2048, 2050, 8320])
def test_warps_join_what_is_not_finite(cuda, length):
    """Whole warps of a line have nothing but -inf, or one of them a NaN."""
    x = normal(6, length)
    x[0, : length // 2] = x[1, length // 3 :] = x[2] = -np.inf
    x[3, 7], x[4, length - 1], x[5, length // 2] = np.nan, np.inf, -np.inf
    for dtype, rtol in ((bp.float32, 1e-5), (bp.float16, 2e-3), (bp.bfloat16, 1e-2)):
        for function in (bp.softmax, bp.log_softmax):
            same(lambda x: function(bp.astype(x, dtype)).astype(bp.float32), cuda, x, rtol=rtol, atol=rtol)


@pytest.mark.parametrize("length", [30, 2048, 2050, 8320])
def test_a_mean_far_from_0_costs_no_digits_of_the_variance(cuda, length):
    """Numbers that float32 holds exactly far from 0, too; in one line a warp's elements are far from the others'."""
    near = RNG.integers(-8, 9, (3, length)).astype(np.float32)
    near[2, :30] += 4096
    x = near + np.array([[0], [2.0**16], [-(2.0**16)]], np.float32)
    g, exact = normal(3, length), near.astype(np.float64)
    centred = exact - exact.mean(1, keepdims=True)
    scale = 1 / np.sqrt(np.mean(centred**2, 1, keepdims=True) + 1e-5)
    spread = np.array([[0], [2.0**-7], [2.0**-7]])  # what the mean is rounded by, over the deviation
    found = bp.layer_norm(bp.asarray(x, device=cuda)).numpy()
    assert (np.abs(found - centred * scale) <= 1e-5 + spread).all()
    # The distances between elements do not know the mean: they tell the variance alone.
    np.testing.assert_allclose(found - found[:, :1], (exact - exact[:, :1]) * scale, rtol=4e-5, atol=4e-6)
    normal_x = centred * scale
    expected = scale * (g - g.mean(1, keepdims=True) - normal_x * (g * normal_x).mean(1, keepdims=True))
    np.testing.assert_allclose(bp.layer_norm_grad(bp.asarray(g, device=cuda), bp.asarray(x, device=cuda)).numpy(), expected, rtol=1e-2, atol=2e-3)


@pytest.mark.parametrize("axes", [(1, 2), (2,), (0, 1, 2), (0,), (1,)])
def test_lines_over_several_axes(cuda, axes):
    same(lambda x: bp.softmax(x, axis=axes), cuda, normal(3, 4, 5), rtol=1e-5)
    same(lambda x: bp.layer_norm(x, axis=axes), cuda, normal(3, 4, 5), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("length", [*LENGTHS, 4096, 100003])
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "float64", "int8", "uint64", "bool"])
def test_places_of_extremes(cuda, length, dtype):
    """Of many elements that are alike, and of views that begin off a pack; a line of 100,003 is cut into chunks."""
    x = RNG.integers(0, 2 if dtype == "bool" else 100, (3, length)).astype(np.float32)
    x[1] = 0 if dtype in ("uint64", "bool") else -100
    x[2] = np.sort(x[2])

    def places(find):
        def of(x):
            x = bp.astype(x, getattr(bp, dtype))
            lines = [find(x, axis=1), find(x[:, length // 2 :], axis=1), find(x.T, axis=0), find(x[0]), find(x), find(x, axis=0)]
            return bp.concat([bp.reshape(line, (-1,)) for line in lines])

        return of

    same(places(bp.argmax), cuda, x)
    same(places(bp.argmin), cuda, x)


@pytest.mark.parametrize("dtype", [bp.float32, bp.float16, bp.float64])
@pytest.mark.parametrize("length", [5, 1000, 20000])
def test_places_of_what_is_not_finite(cuda, dtype, length):
    x = normal(6, length)
    x[0], x[1] = -np.inf, np.inf
    x[2, length // 2 :] = x[3, -1] = np.nan
    x[4, [1, length - 1]] = np.inf
    x[5, [2, length - 2]] = -np.inf
    for find in (bp.argmax, bp.argmin):
        same(lambda x: find(bp.astype(x, dtype), axis=1), cuda, x)
        same(lambda x: find(bp.astype(x.T, dtype), axis=0), cuda, x)
        same(lambda x: find(bp.astype(x, dtype)), cuda, x)


@pytest.mark.parametrize("length", [*LENGTHS, 4096, 16416])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float64", "int8", "uint16", "int64", "bool", "complex64", "complex128"])
def test_running_sums(cuda, length, dtype):
    """Of integers, which are exact in any order; of halves few."""
    x = (RNG.integers(-2, 3, (3, length)) * (RNG.random((3, length)) < 0.01)).astype(np.float32)

    def alike(function):
        same(lambda x: bp.astype(function(bp.astype(x, getattr(bp, dtype))), bp.complex128), cuda, x)

    alike(lambda x: bp.cumsum(x, axis=1))
    alike(lambda x: bp.cumsum(x[:, length // 2 :], axis=1))
    alike(lambda x: bp.cumsum(x.T, axis=0))
    alike(lambda x: bp.cumsum(x[1]))
    alike(lambda x: bp.cumsum(bp.broadcast_to(x[:, : length // 50, None], (3, length // 50, 300)), axis=1))  # a thread per line


@pytest.mark.parametrize("length", [3, 1000, 4096])
def test_running_sums_keep_zeros_and_what_is_not_finite(cuda, length):
    x = np.full((5, length), -0.0, np.float32)
    x[1, length // 2] = 0.0
    x[2, length // 2] = np.inf
    x[3, [length // 2, -1]] = np.inf, -np.inf
    x[4, 1] = np.nan
    for axes in ((0, 1), (1, 0)):
        function = lambda x: bp.cumsum(bp.copy(bp.permute_dims(x, axes)), axis=1 - axes[0])  # noqa: B023, E731
        same(function, cuda, x)
        same(lambda x: bp.signbit(function(x)), cuda, x[:2])  # noqa: B023


@pytest.mark.parametrize("length", [1000, 4099, 16416])
def test_running_sums_of_any_numbers(cuda, length):
    same(lambda x: bp.cumsum(x, axis=1), cuda, normal(3, length), rtol=1e-5, atol=2e-4)
    same(lambda x: bp.cumsum(bp.astype(x, bp.float16), axis=1), cuda, normal(3, length), rtol=1e-3, atol=4e-2)


@pytest.mark.parametrize("order", [(1, 0), (0, 2, 1), (2, 0, 1), (2, 1, 0), (0, 3, 1, 2), (3, 1, 2, 0)])
@pytest.mark.parametrize("dtype", ["int8", "float16", "float32", "float64", "complex128"])
def test_matrices_are_turned_around(cuda, order, dtype):
    x = RNG.integers(-9, 9, (33, 9, 41, 8)[: len(order)] if len(order) > 2 else (65, 97)).astype(dtype)
    same(lambda x: bp.copy(bp.permute_dims(x, order)), cuda, x)


@pytest.mark.parametrize("count", [1, 3, 4, 1000, 1023])
@pytest.mark.parametrize("start", [0, 1])
def test_elements_in_packs(cuda, count, start):
    x, c = whole(count + 1), RNG.random(count + 1) < 0.5
    for dtype in (bp.float64, bp.bfloat16, bp.int8, bp.bool, bp.complex64):
        same(lambda x: bp.astype(bp.astype(x[start:], dtype), bp.complex64), cuda, x)
    same(lambda c, x: bp.where(c[start:], x[start:], 7.0), cuda, c, x)
    same(lambda c, x: bp.where(c[start:], -x[start:], x[start:]), cuda, c, x)
    same(lambda x: bp.where(True, x[start:], 0.0), cuda, x)


@pytest.mark.parametrize("width", [1, 2, 3, 4, 8, 12, 33])
@pytest.mark.parametrize("dtype", ["int8", "float16", "float32", "complex128"])
def test_rows_move_in_wider_elements(cuda, width, dtype):
    x, at = RNG.integers(-9, 9, (50, width)).astype(dtype), RNG.integers(0, 50, (7, 3))
    same(lambda x, at: x[at], cuda, x, at)
    same(lambda x, at: bp.take(x[:, 1:], at[0] % width if width > 1 else at[0], axis=0), cuda, x, at)
    same(lambda x: bp.concat([x, x[:, :1], x], axis=1), cuda, x)


@pytest.mark.parametrize("inner", [1, 2, 4, 6, 7, 64])
@pytest.mark.parametrize("dtype", ["int8", "bfloat16", "float32", "float64", "complex64"])
def test_packs_of_operands_that_broadcast(cuda, inner, dtype):
    x, row, column = whole(3, 5, inner), whole(inner), whole(5, 1)

    def alike(function, *operands):
        same(lambda *operands: function(*(bp.astype(x, getattr(bp, dtype)) for x in operands)), cuda, *operands)

    alike(lambda x, row: x + row, x, row)
    alike(lambda x, column: column - x, x, column)
    alike(lambda row, column: row * column, row, column)
    alike(lambda x: x[:, :, 1:] + x[:, :, :-1], x)
    alike(lambda x: x[:, ::2] + 3, x)
    alike(lambda x, row: x == row, x, row)
    if dtype not in ("complex64",):
        alike(lambda x, column: x < column, x, column)


@pytest.mark.parametrize("kernel, stride, padding, dilation", [((2, 2), (2, 2), (0, 0), (1, 1)), ((3, 2), (1, 2), (1, 1), (1, 1)), ((1, 3), (2, 1), (0, 1), (2, 2))])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_windows_of_images(cuda, kernel, stride, padding, dilation, dtype):
    x = whole(2, 4, 9, 7)
    x[0, 1, 3, 3], x[1, 2, :4] = np.nan, -np.inf

    def alike(function):
        same(lambda x: function(bp.astype(x, getattr(bp, dtype))), cuda, x)

    alike(lambda x: bp.conv2d_columns(x, kernel, stride=stride, padding=padding, dilation=dilation, groups=2))
    alike(lambda x: bp.max_pool2d_with_indices(x, kernel, stride, padding)[0])
    alike(lambda x: bp.max_pool2d_with_indices(x, kernel, stride, padding)[1])


def test_windows_that_the_op_refuses_are_refused(cuda):
    def refused(function):
        for device in ("cpu", cuda):
            with pytest.raises((bp.ShapeError, ValueError)):
                function(device)

    refused(lambda device: bp.nn.functional.unfold(bp.zeros((1, 1, 2, 2), device=device), 3))
    refused(lambda device: bp.nn.functional.unfold(bp.zeros((1, 1, 4, 4), device=device), 2, dilation=0))
    refused(lambda device: bp.conv2d_columns(bp.zeros((2, 3, 4, 4), device=device), (2, 2), groups=2))


def test_windows_of_2_to_the_32_are_no_windows_of_none(cuda):
    """A call that a kernel cannot count is composed, and the memory does not suffice for that."""
    with pytest.raises(bp.OutOfMemoryError):
        bp.max_pool2d_with_indices(bp.zeros((1, 1, 4, 4), device=cuda), (2**32, 2), (1, 1), (2**31, 1))
    assert bp.conv2d_columns(bp.zeros((2**32, 0, 3, 3), device=cuda), (3, 3)).shape == (1, 2**32, 1, 1, 0, 3, 3)
