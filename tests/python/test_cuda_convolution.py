"""Convolutions on CUDA, whose columns nobody writes out: at sizes of several tiles, with tails, slices of the inner dimension, strides that leave
elements out, dilation and groups, they give what the CPU gives. The numbers are whole, so that every order of additions has the same sums."""

import backplane as bp
import numpy as np
import pytest
from device_calls import RNG, recorded_by


def by_cudnn():
    return recorded_by("libcudnn.so.9", "emulated_cudnn_convolutions")


# images, groups, channels and filters of a group, image, kernel, and what follows conv2d's operands
CASES = {
    "a tile's part": (2, 1, 3, 5, (7, 6), (3, 3), {}),
    "rows of two tiles, columns of many": (3, 1, 9, 70, (13, 12), (3, 2), {"padding": (1, 1)}),
    "columns that lie in fours": (2, 1, 5, 33, (12, 16), (3, 3), {"padding": (1, 1)}),
    "a long inner dimension": (1, 1, 300, 40, (5, 5), (3, 3), {}),
    "strides": (2, 1, 6, 20, (17, 22), (3, 5), {"stride": (2, 3), "padding": (1, 2)}),
    "strides beyond the kernel": (2, 1, 4, 9, (20, 21), (2, 1), {"stride": (3, 4)}),
    "dilation": (2, 1, 4, 12, (19, 18), (3, 3), {"dilation": (3, 2), "padding": (2, 4), "stride": (1, 2)}),
    "groups": (3, 4, 5, 7, (11, 9), (3, 3), {"padding": (1, 0), "stride": (2, 1)}),
    "one channel for each group": (2, 12, 1, 1, (10, 12), (3, 3), {"padding": (1, 1)}),
    "nothing but padding beside the kernel": (1, 1, 2, 3, (1, 2), (2, 3), {"padding": (3, 4), "stride": (2, 2)}),
    "kernels of one element": (4, 1, 130, 66, (6, 7), (1, 1), {}),
    "many images": (70, 1, 2, 3, (6, 6), (3, 3), {"padding": (1, 1)}),
}
DTYPES = [bp.float32, bp.float64, bp.float16, bp.bfloat16]


def whole(*shape, dtype):
    few = 0.04 if dtype in (bp.float16, bp.bfloat16) else 1  # so that halves hold the sums
    return (RNG.integers(-3, 4, shape) * (RNG.random(shape) < few)).astype(np.float32)


def alike(function, cuda, dtype, *arrays):
    def of(device):
        return [x.astype(bp.float32).numpy() for x in function(*(bp.asarray(array, device=device).astype(dtype) for array in arrays))]

    for found, expected in zip(of(cuda), of("cpu")):
        np.testing.assert_array_equal(found, expected, strict=True)


def operands(case, dtype):
    images, groups, channels, filters, image, kernel, options = CASES[case]
    x = whole(images, groups * channels, *image, dtype=dtype)
    w = whole(groups * filters, channels, *kernel, dtype=dtype)
    return x, w, {**options, "groups": groups}


def all_passes(x, w, g, options):
    y = bp.conv2d(x, w, **options)
    return [y, bp.conv2d_input_grad(g, w, x.shape, **options), bp.conv2d_weight_grad(g, x, w.shape, **options)]


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_convolutions_and_their_adjoints(cuda, case, dtype):
    x, w, options = operands(case, dtype)
    g = whole(*bp.conv2d(bp.asarray(x), bp.asarray(w), **options).shape, dtype=dtype)
    alike(lambda x, w, g: all_passes(x, w, g, options), cuda, dtype, x, w, g)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_operands_in_other_layouts(cuda, dtype):
    x, w = whole(9, 8, 6, 3, dtype=dtype), whole(3, 4, 6, 9, dtype=dtype)

    def convolved(x, w):
        return [bp.conv2d(bp.permute_dims(x, (3, 2, 1, 0)), bp.permute_dims(w, (3, 2, 1, 0))), bp.conv2d(bp.permute_dims(x, (3, 2, 1, 0))[:, :, 1:, 2:], bp.flip(bp.permute_dims(w, (3, 2, 1, 0))))]

    alike(convolved, cuda, dtype, x, w)


def test_no_channels_and_no_images_have_zeros(cuda):
    for device in (bp.device("cpu"), cuda):
        x, w = bp.zeros((2, 0, 5, 5), device=device), bp.zeros((3, 0, 3, 3), device=device)
        assert bp.conv2d(x, w).numpy().tolist() == np.zeros((2, 3, 3, 3)).tolist()
        g, x = bp.zeros((0, 3, 3, 3), device=device), bp.zeros((0, 2, 5, 5), device=device)
        assert bp.conv2d_weight_grad(g, x, (3, 2, 3, 3)).numpy().tolist() == np.zeros((3, 2, 3, 3)).tolist()


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_a_convolution_takes_no_memory_for_columns(cuda, dtype):
    x, w = bp.zeros((8, 16, 40, 40), device=cuda, dtype=dtype), bp.zeros((16, 16, 3, 3), device=cuda, dtype=dtype)
    bp.reset_peak_memory_stats(cuda)
    before = bp.memory_stats(cuda)["peak_bytes"]
    y = bp.conv2d(x, w, padding=(1, 1))
    assert bp.memory_stats(cuda)["peak_bytes"] - before < y.nbytes * 1.5


def test_what_the_kernel_cannot_count_is_composed(cuda):
    x, w = whole(1, 1, 3, 4, dtype=bp.float32), whole(2, 1, 1, 1, dtype=bp.float32)
    alike(lambda x, w: [bp.conv2d(x, w, stride=(2**31, 1))], cuda, bp.float32, x, w)


def test_sizes_of_no_convolution_are_refused(cuda):
    def refused(call):
        for device in (bp.device("cpu"), cuda):
            with pytest.raises((bp.ShapeError, ValueError)):
                call(lambda *shape: bp.zeros(shape, device=device))  # noqa: B023

    refused(lambda zeros: bp.conv2d(zeros(1, 3, 4, 4), zeros(2, 2, 3, 3)))
    refused(lambda zeros: bp.conv2d(zeros(1, 3, 4, 4), zeros(2, 3, 5, 3)))
    refused(lambda zeros: bp.conv2d(zeros(1, 3, 4, 4), zeros(2, 3, 3, 3), stride=(0, 1)))
    refused(lambda zeros: bp.conv2d_input_grad(zeros(1, 2, 2, 2), zeros(2, 3, 3, 3), (1, 3, 4, 5)))
    refused(lambda zeros: bp.conv2d_input_grad(zeros(1, 2, 2, 2), zeros(2, 3, 3, 3), (1, 3, 4, 4), groups=2))
    refused(lambda zeros: bp.conv2d_weight_grad(zeros(1, 2, 2, 2), zeros(1, 3, 4, 4), (2, 3, 3, 2)))
    refused(lambda zeros: bp.conv2d_weight_grad(zeros(1, 2, 2), zeros(1, 3, 4, 4), (2, 3, 3, 2)))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_what_the_library_computes(cuda, dtype):
    before = by_cudnn()
    x, w, options = operands("groups", dtype)
    g = whole(*bp.conv2d(bp.asarray(x), bp.asarray(w), **options).shape, dtype=dtype)
    alike(lambda x, w, g: all_passes(x, w, g, options), cuda, dtype, x, w, g)
    assert by_cudnn() - before == 3


def test_a_gradient_goes_to_the_library_too(cuda):
    before = by_cudnn()
    x, w = whole(2, 3, 6, 5, dtype=bp.float32), whole(4, 3, 3, 2, dtype=bp.float32)
    alike(lambda x, w: bp.grad(lambda x, w: bp.sum(bp.nn.functional.conv2d(x, w, stride=2, padding=1) ** 2), argnums=(0, 1))(x, w), cuda, bp.float32, x, w)
    assert by_cudnn() - before == 3


@pytest.mark.parametrize("refuses", ["all", "deterministic"])
def test_what_the_library_has_no_algorithm_for_goes_to_the_own_kernel(cuda, monkeypatch, refuses):
    before = by_cudnn()
    monkeypatch.setenv("BACKPLANE_EMULATED_CUDNN_REFUSES", refuses)
    x, w = whole(1, 3, 7, len(refuses), dtype=bp.float32), whole(4, 3, 3, 2, dtype=bp.float32)
    alike(lambda x, w: all_passes(x, w, bp.conv2d(x, w), {}), cuda, bp.float32, x, w)
    assert by_cudnn() == before


def test_empty_sums_are_no_matter_of_the_library(cuda):
    before = by_cudnn()
    test_no_channels_and_no_images_have_zeros(cuda)
    assert by_cudnn() == before


def test_a_capture_takes_the_own_kernel(cuda):
    x, w = bp.asarray(whole(1, 3, 7, 6, dtype=bp.float32), device=cuda), bp.asarray(whole(4, 3, 3, 2, dtype=bp.float32), device=cuda)
    before, expected = by_cudnn(), bp.conv2d(x, w)
    assert by_cudnn() - before == 1
    with bp.capture(cuda) as recording:
        y = bp.conv2d(x, w)
    recording.replay()
    assert by_cudnn() - before == 1
    np.testing.assert_array_equal(y.numpy(), expected.numpy())
