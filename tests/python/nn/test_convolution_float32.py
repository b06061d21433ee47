"""conv2d and its adjoints in float32 are those in float64, however the backend computes them: shapes that its ways divide.

The bounds are in units of the largest result: F(4 x 4, 3 x 3) of Winograd, the least exact way, is within 5e-6 of it. The
gradient of the kernels adds up to 25,088 products, on a processor without AVX-512 one after another: 7.5e-6 were found there.
"""

import backplane as bp
import numpy as np
import pytest

# images, channels, size, filters, kernel, stride, padding, dilation, groups
SHAPES = {
    "first layer": (2, 3, (40, 36), 64, 7, 2, 3, 1, 1),
    "tiles": (8, 64, (56, 56), 64, 3, 1, 1, 1, 1),
    "tiles of one image": (1, 128, (28, 29), 128, 3, 1, 1, 1, 1),
    "tiles without padding": (3, 32, (30, 25), 48, 3, 1, 0, 1, 1),
    "strided, an odd number of images": (5, 64, (28, 28), 128, 3, 2, 1, 1, 1),
    "pointwise and strided": (3, 64, (28, 28), 128, 1, 2, 0, 1, 1),
    "heavy kernels": (3, 512, (7, 7), 256, 3, 1, 1, 1, 1),
    "small images": (50, 16, (8, 8), 32, 3, 1, 1, 1, 1),
    "depthwise": (7, 64, (24, 24), 64, 3, 1, 1, 1, 64),
    "depthwise, channels that fill no block": (7, 40, (40, 24), 40, 3, 1, 1, 1, 40),
    "depthwise, one image": (1, 64, (60, 40), 64, 3, 1, 1, 1, 64),
    "groups": (2, 32, (64, 64), 48, 3, 3, 0, 1, 2),
    "groups and dilation": (3, 64, (30, 24), 96, 3, 1, 2, 2, 4),
    "odd channels": (5, 17, (33, 21), 19, 5, 2, 1, 2, 1),
    "odd channels into blocks": (5, 17, (33, 31), 64, 3, 1, 1, 1, 1),
    "filters that do not divide": (4, 32, (30, 30), 80, 3, 1, (2, 0), 1, 1),
}


def pair(value):
    return value if isinstance(value, tuple) else (value, value)


@pytest.mark.parametrize("name", SHAPES)
def test_float32_is_float64(name):
    images, channels, size, filters, kernel, stride, padding, dilation, groups = SHAPES[name]
    options = {"stride": pair(stride), "padding": pair(padding), "dilation": pair(dilation), "groups": groups}
    draw = np.random.default_rng(0)
    x = draw.standard_normal((images, channels, *size), dtype=np.float32)
    w = draw.standard_normal((filters, channels // groups, kernel, kernel), dtype=np.float32)

    def results(dtype):
        a, b = bp.asarray(x.astype(dtype)), bp.asarray(w.astype(dtype))
        y = bp.conv2d(a, b, **options)
        g = bp.asarray(np.random.default_rng(1).standard_normal(y.shape).astype(dtype))
        return y, bp.conv2d_input_grad(g, b, x.shape, **options), bp.conv2d_weight_grad(g, a, w.shape, **options)

    for what, got, expected in zip(("result", "gradient of images", "gradient of kernels"), results(np.float32), results(np.float64)):
        difference = np.abs(got.numpy() - expected.numpy()).max() / np.abs(expected.numpy()).max()
        limit = 1e-5 if what == "gradient of kernels" else 5e-6
        assert difference < limit, f"{name}: {what} is off by {difference} of its largest element"


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("name", ["tiles of one image", "groups", "odd channels"])
def test_half_floats_are_float32_rounded_once(name, dtype):
    images, channels, size, filters, kernel, stride, padding, dilation, groups = SHAPES[name]
    options = {"stride": pair(stride), "padding": pair(padding), "dilation": pair(dilation), "groups": groups}
    draw, half = np.random.default_rng(0), getattr(bp, dtype)
    x = bp.astype(bp.asarray(draw.standard_normal((images, channels, *size), dtype=np.float32)), half)
    w = bp.astype(bp.asarray(draw.standard_normal((filters, channels // groups, kernel, kernel), dtype=np.float32)), half)
    g = bp.conv2d(x, w, **options)

    def check(op, first, second, *shape):
        expected = bp.astype(op(bp.astype(first, bp.float32), bp.astype(second, bp.float32), *shape, **options), half)
        assert bp.all(bp.equal(op(first, second, *shape, **options), expected)).item()

    check(bp.conv2d, x, w)
    check(bp.conv2d_input_grad, g, w, x.shape)
    check(bp.conv2d_weight_grad, g, x, w.shape)
