"""Convolutions whose matrix of windows would be larger than memory should hold: long signals under long kernels."""

import subprocess
import sys

import backplane as bp
import numpy as np
import pytest
from sanitized import SANITIZED

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


PEAK = """
import backplane as bp, resource
images, kernels = bp.ones({x}, dtype=bp.float32), bp.ones({w}, dtype=bp.float32)
small = [bp.ones((1, 1, 8, 8)), bp.ones((1, 1, 3, 3))]

def train(x, w):
    found = bp.conv2d(x, w)
    bp.ops.bp.conv2d_input_grad(found, w, x.shape), bp.ops.bp.conv2d_weight_grad(found, x, w.shape)

train(*small)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
train(images, kernels)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


@pytest.mark.skipif(SANITIZED, reason="the sanitizer keeps memory that was freed")
@pytest.mark.parametrize("x, w", [((1, 1, 1, 150000), (1, 1, 1, 2001)), ((1, 4, 500, 500), (4, 4, 15, 15))])
def test_their_memory_is_that_of_bands(x, w):
    """The matrix of windows would have 0.8 GB and more."""
    run = subprocess.run([sys.executable, "-c", PEAK.format(x=x, w=w)], capture_output=True, text=True, check=True)
    assert int(run.stdout) < 400 << 10
