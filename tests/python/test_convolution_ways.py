"""Convolutions that a kernel may compute in several ways: by their sizes, groups, and images of one row or column."""

import backplane as bp
import numpy as np
import pytest

# images, kernels, stride, padding, dilation, groups
CASES = {
    "pointwise, one small image": ((1, 24, 5, 5), (8, 24, 1, 1), (1, 1), (0, 0), (1, 1), 1),
    "pointwise, small images": ((4, 64, 5, 5), (96, 64, 1, 1), (1, 1), (0, 0), (1, 1), 1),
    "pointwise, large images": ((2, 20, 33, 41), (50, 20, 1, 1), (1, 1), (0, 0), (1, 1), 1),
    "pointwise with a stride": ((1, 64, 41, 43), (48, 64, 1, 1), (2, 3), (0, 0), (1, 1), 1),
    "pointwise with padding": ((1, 40, 30, 31), (40, 40, 1, 1), (1, 1), (1, 2), (1, 1), 1),
    "pointwise in groups": ((1, 36, 20, 20), (72, 12, 1, 1), (1, 1), (0, 0), (1, 1), 3),
    "a channel a group, few": ((1, 16, 5, 5), (16, 1, 3, 3), (1, 1), (1, 1), (1, 1), 16),
    "a channel a group": ((1, 70, 20, 20), (70, 1, 5, 5), (1, 1), (2, 2), (1, 1), 70),
    "a channel a group, strides": ((3, 33, 21, 24), (33, 1, 3, 3), (2, 1), (1, 0), (1, 2), 33),
    "a channel a group, two filters": ((1, 40, 12, 9), (80, 1, 3, 3), (1, 1), (1, 1), (1, 1), 40),
    "a channel a group, narrow": ((1, 512, 3, 12), (512, 1, 5, 5), (1, 1), (2, 2), (1, 1), 512),
    "a channel a group, 3 x 3": ((2, 19, 21, 37), (19, 1, 3, 3), (1, 1), (1, 1), (1, 1), 19),
    "a channel a group, wide rows": ((1, 5, 40, 80), (5, 1, 3, 3), (1, 1), (1, 1), (1, 1), 5),
    "a channel a group, one plane more": ((1, 2, 2, 16), (2, 1, 3, 3), (1, 1), (1, 1), (1, 1), 2),
    "a channel a group, tall padding": ((1, 6, 9, 11), (6, 1, 3, 3), (1, 1), (3, 1), (1, 1), 6),
    "a channel a group, no padding": ((2, 6, 20, 35), (6, 1, 3, 3), (1, 1), (0, 0), (1, 1), 6),
    "a channel a group, wide padding": ((1, 6, 9, 33), (6, 1, 3, 3), (1, 1), (2, 4), (1, 1), 6),
    "a channel a group, dilated": ((1, 6, 30, 33), (6, 1, 3, 3), (1, 1), (2, 2), (2, 2), 6),
    "a channel a group, strides of 2": ((2, 7, 40, 80), (7, 1, 3, 3), (2, 2), (1, 1), (1, 1), 7),
    "a channel a group, strides of 2, odd": ((1, 7, 37, 75), (14, 1, 3, 3), (2, 2), (1, 1), (1, 1), 7),
    "a channel a group, strides of 2, no padding": ((1, 3, 35, 67), (3, 1, 3, 3), (2, 2), (0, 0), (1, 1), 3),
    "a channel a group, strides of 2, more padding": ((1, 3, 34, 64), (3, 1, 3, 3), (2, 2), (2, 2), (1, 1), 3),
    "a channel a group, strides of 2, narrow": ((1, 9, 20, 20), (9, 1, 3, 3), (2, 2), (1, 1), (1, 1), 9),
    "a channel a group, strides of 2, 5 x 5": ((1, 9, 28, 45), (9, 1, 5, 5), (2, 2), (2, 2), (1, 1), 9),
    "a channel a group, strides of 2, dilated": ((1, 9, 28, 45), (9, 1, 3, 3), (2, 2), (2, 3), (2, 3), 9),
    "groups": ((2, 64, 10, 10), (64, 16, 3, 3), (1, 1), (1, 1), (1, 1), 4),
    "one column": ((2, 48, 96, 1), (32, 48, 5, 1), (1, 1), (0, 0), (1, 1), 1),
    "one column, strides": ((1, 48, 300, 1), (32, 48, 5, 1), (3, 2), (4, 0), (2, 3), 1),
    "one column in groups": ((1, 64, 300, 1), (64, 1, 7, 1), (1, 1), (3, 0), (1, 1), 64),
    "one column, padded": ((1, 8, 60, 1), (8, 8, 3, 3), (1, 1), (1, 1), (1, 1), 1),
    "one result a row": ((1, 8, 60, 3), (8, 8, 3, 3), (1, 1), (1, 0), (1, 1), 1),
    "one row": ((2, 48, 1, 96), (32, 48, 1, 5), (1, 1), (0, 0), (1, 1), 1),
}


def reference(x, w, stride, padding, dilation, groups):
    x = np.pad(x, ((0, 0), (0, 0), (padding[0],) * 2, (padding[1],) * 2))
    reach = [d * (k - 1) + 1 for d, k in zip(dilation, w.shape[2:])]
    windows = np.lib.stride_tricks.sliding_window_view(x, reach, axis=(2, 3))[:, :, :: stride[0], :: stride[1], :: dilation[0], :: dilation[1]]
    windows = windows.reshape(x.shape[0], groups, -1, *windows.shape[2:])
    kernels = w.reshape(groups, -1, *w.shape[1:])
    return np.einsum("ngchwij,gfcij->ngfhw", windows, kernels).reshape(x.shape[0], w.shape[0], *windows.shape[3:5])


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
@pytest.mark.parametrize("name", CASES)
def test_every_way_gives_the_products_of_windows_and_adjoint_derivatives(name, dtype):
    x_shape, w_shape, stride, padding, dilation, groups = CASES[name]
    options = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}
    draw = np.random.default_rng(0)
    x, w = (draw.standard_normal(shape).astype(dtype) for shape in (x_shape, w_shape))
    expected = reference(x.astype("float64"), w.astype("float64"), **options)
    size = np.abs(expected).max()
    bound = {"float32": 1e-5, "float64": 1e-14, "float16": 1e-3}[dtype] * size
    found = bp.conv2d(bp.asarray(x), bp.asarray(w), **options).numpy()
    np.testing.assert_allclose(found.astype("float64"), expected, rtol=0, atol=bound)
    if dtype == "float16":
        return
    cotangent = draw.standard_normal(expected.shape).astype(dtype)
    of_x = bp.ops.bp.conv2d_input_grad(bp.asarray(cotangent), bp.asarray(w), x_shape, **options).numpy()
    of_w = bp.ops.bp.conv2d_weight_grad(bp.asarray(cotangent), bp.asarray(x), w_shape, **options).numpy()
    product = np.vdot(cotangent.astype("float64"), expected)
    scale = np.linalg.norm(cotangent) * np.linalg.norm(expected)
    for value in (np.vdot(of_x.astype("float64"), x), np.vdot(of_w.astype("float64"), w)):
        assert abs(value - product) <= (1e-5 if dtype == "float32" else 1e-13) * scale


@pytest.mark.parametrize("dtype", ["uint8", "int16", "float32", "float64", "complex128"])
@pytest.mark.parametrize("shape, axis", [((3, 4, 7), 2), ((3, 4, 7), 1), ((2, 300, 5), 1), ((2, 3, 5, 6), 2), ((40, 50), 1), ((7, 1, 9), 1)])
def test_take_behind_other_axes_gives_numpys_elements(shape, axis, dtype):
    draw = np.random.default_rng(0)
    x = draw.integers(0, 100, shape).astype(dtype)
    for positions in (draw.integers(-shape[axis], shape[axis], 23), draw.integers(0, shape[axis], (4, 300)), np.zeros(0, "int64")):
        found = bp.take(bp.asarray(x), bp.asarray(positions), axis=axis).numpy()
        np.testing.assert_array_equal(found, np.take(x, positions, axis=axis))
        found = bp.asarray(x)[(slice(None),) * axis + (bp.asarray(positions),)].numpy()
        np.testing.assert_array_equal(found, np.take(x, positions, axis=axis))
