"""Norms of lines and attention, which are kernels on the Vulkan backend: at the sizes and places where they take another way they give
what the CPU gives."""

import backplane as bp
import numpy as np
import pytest
from device_calls import RNG, normal

PRECISIONS = {"float32": 2e-6, "float64": 1e-12, "float16": 2e-3, "bfloat16": 2e-2}


def compare(function, device, *arrays, dtype="float32", rtol=0.0, atol=0.0, composed=False):
    """Of arrays in dtype, the results on the device, which are the work of kernels alone unless they are composed, and on the CPU."""

    def of(device):
        operands = [x if x is None else bp.asarray(x, device=device).astype(getattr(bp, dtype)) for x in arrays]
        bp.reset_call_counts()
        results = function(*operands)
        assert composed or bp.call_counts().decompositions == 0
        results = results if isinstance(results, (tuple, list)) else [results]
        return [result.astype(bp.float64).numpy() for result in results]

    for ours, expected in zip(of(device), of("cpu"), strict=True):
        np.testing.assert_allclose(ours, expected, rtol=rtol, atol=atol, strict=True)


# An invocation takes a line where there are at least 16 or they are short, else a workgroup of 256; elements are read by two where
# the length is even and lines begin at whole words.
@pytest.mark.parametrize("length", [1, 2, 33, 64, 127, 514, 1000, 20001])
@pytest.mark.parametrize("lines", [3, 20])
@pytest.mark.parametrize("dtype", PRECISIONS)
def test_lines_are_normalised(vulkan, lines, length, dtype):
    x, g, w, b = normal(lines, length), normal(lines, length), normal(length), normal(length)
    rtol = PRECISIONS[dtype]

    def check(function, *arrays, atol=8 * rtol):
        compare(function, vulkan, *arrays, dtype=dtype, rtol=rtol, atol=atol)

    check(bp.rms_norm, x)
    check(bp.rms_norm, x, w)
    check(bp.layer_norm, x)
    check(lambda x, b: bp.layer_norm(x, None, b), x, b)
    check(bp.layer_norm, x, w, b)
    check(bp.layer_norm_grad, g, x, atol=60 * rtol)  # of one element it is a rounding error, times 1 / sqrt(eps)
    check(bp.layer_norm_grad, g, x, w, atol=60 * rtol)


VIEWS = {
    "several axes": lambda x: bp.layer_norm(x, axis=(1, 2)),
    "several axes, with a weight": lambda x: bp.rms_norm(x, x[0] + 2, axis=(-1, -2)),
    "lines that begin between words": lambda x: bp.layer_norm(x.reshape((-1,))[1:1121].reshape((40, 28))),
    "a weight that begins between words": lambda x: bp.layer_norm(x, bp.concat([x[0, 0, :1], x[1, 1]])[1:]),
    "a transposed operand": lambda x: bp.layer_norm_grad(x.mT, 2 - x.mT, eps=0.1),
    "every second element": lambda x: bp.rms_norm(x[..., ::2]),
}


@pytest.mark.parametrize("name", VIEWS)
def test_views_are_normalised(vulkan, name):
    def result(device):
        return VIEWS[name](bp.asarray(x, device=device)).numpy()

    x = normal(5, 9, 28)
    np.testing.assert_allclose(result(vulkan), result("cpu"), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("lines", [3, 20])
@pytest.mark.parametrize("outlier", [0, -40])  # the first element, which is no better an origin than others
def test_a_mean_far_from_0_costs_no_digits(vulkan, lines, outlier):
    x = RNG.integers(-3, 4, (lines, 600)).astype(np.float32) + 2.0**16
    x[:, 0] += outlier
    distances = x.astype(np.float64) - np.mean(x, axis=1, keepdims=True, dtype=np.float64)
    expected = distances / np.sqrt(np.mean(distances**2, axis=1, keepdims=True) + 1e-5)
    np.testing.assert_allclose(bp.layer_norm(bp.asarray(x, device=vulkan)).numpy(), expected, rtol=2e-6, atol=2e-6)


def test_gradients_of_norms(vulkan):
    def gradients(x, w, b):
        x, w, b = (tensor.detach().requires_grad_() for tensor in (x, w, b))
        bp.sum(bp.sin(bp.layer_norm(x, w, b))).backward()
        return x.grad, w.grad, b.grad

    compare(gradients, vulkan, normal(4, 30, 32), normal(32), normal(32), rtol=1e-4, atol=1e-4, composed=True)


def test_norms_over_other_axes_are_composed(vulkan):
    x = normal(20, 7)
    compare(lambda x: bp.layer_norm(x, axis=0), vulkan, x, rtol=1e-5, atol=1e-5, composed=True)
    compare(bp.layer_norm, vulkan, x, x, rtol=1e-5, atol=1e-5, composed=True)
