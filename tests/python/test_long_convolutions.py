"""Convolutions whose matrix of windows would be larger than memory should hold: long signals under long kernels."""

import backplane as bp
import numpy as np
import pytest

# The matrix of windows of each has more than 200 MB: it is made in bands.
SHAPES = [  # images, kernels, stride, padding, dilation
    ((1, 1, 1, 150000), (1, 1, 1, 201), (1, 1), (0, 0), (1, 1)),
    ((1, 2, 1, 100000), (3, 2, 1, 301), (1, 2), (0, 7), (1, 3)),
    ((2, 3, 500, 600), (2, 3, 5, 7), (1, 1), (2, 3), (1, 1)),
]


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("x, w, stride, padding, dilation", SHAPES)
def test_results_are_products_of_windows_and_derivatives_are_adjoint(x, w, stride, padding, dilation, dtype):
    draw = np.random.default_rng(0)
    options = {"stride": stride, "padding": padding, "dilation": dilation}
    images, kernels = draw.standard_normal(x).astype(dtype), draw.standard_normal(w).astype(dtype)
    found = bp.conv2d(bp.asarray(images), bp.asarray(kernels), **options).numpy()
    padded = np.pad(images, ((0, 0), (0, 0), (padding[0],) * 2, (padding[1],) * 2)).astype("float64")
    height, width = (d * (k - 1) + 1 for d, k in zip(dilation, w[2:]))
    last = (found.shape[2] - 1, found.shape[3] - 1)
    for row, column in [(0, 0), last, *zip(draw.integers(0, last[0] + 1, 30), draw.integers(0, last[1] + 1, 30))]:
        y, z = row * stride[0], column * stride[1]
        window = padded[:, :, y : y + height : dilation[0], z : z + width : dilation[1]]
        expected = np.einsum("nchw,fchw->nf", window, kernels.astype("float64"))
        np.testing.assert_allclose(found[:, :, row, column], expected, rtol=0, atol=1e-3 if dtype == "float32" else 1e-11)
    cotangent = draw.standard_normal(found.shape).astype(dtype)
    of_images = bp.ops.bp.conv2d_input_grad(bp.asarray(cotangent), bp.asarray(kernels), x, **options).numpy()
    of_kernels = bp.ops.bp.conv2d_weight_grad(bp.asarray(cotangent), bp.asarray(images), w, **options).numpy()
    size = np.sqrt(np.sum(found.astype("float64") ** 2) * np.sum(cotangent.astype("float64") ** 2))
    products = [np.vdot(a.astype("float64"), b) for a, b in ((cotangent, found), (of_images, images), (of_kernels, kernels))]
    assert np.ptp(products) <= (1e-5 if dtype == "float32" else 1e-13) * size
