"""Convolutions of backplane.nn.functional: what the Python side adds to the ops conv and conv_transpose."""

import backplane as bp
import backplane.nn.functional as F
import numpy as np
import pytest

CONVOLUTIONS = {1: F.conv1d, 2: F.conv2d, 3: F.conv3d}
TRANSPOSED = {1: F.conv_transpose1d, 2: F.conv_transpose2d, 3: F.conv_transpose3d}


def numbers(*shape, seed=0):
    return bp.asarray(np.random.default_rng(seed).normal(size=shape))


def operands(axes, kernel=3):
    return numbers(2, 4, *[7, 6, 5][:axes]), numbers(6, 4, *[kernel] * axes, seed=1)


def same(a, b):
    np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("axes", CONVOLUTIONS)
def test_same_keeps_sizes_and_pads_the_end_more(axes):
    x, w = operands(axes, kernel=4)
    y = CONVOLUTIONS[axes](x, w, padding="same", dilation=1)
    assert y.shape == (2, 6, *x.shape[2:])
    padded = bp.pad(x, [(0, 0)] * 2 + [(1, 2)] * axes)
    same(y, CONVOLUTIONS[axes](padded, w, padding="valid"))


@pytest.mark.parametrize("functions", [CONVOLUTIONS, TRANSPOSED], ids=["convolution", "transposed"])
@pytest.mark.parametrize("axes", CONVOLUTIONS)
def test_of_integers_and_complex_numbers_it_is_the_sum_of_products(axes, functions):
    x, w = operands(axes)
    w = w[:4]
    whole = [bp.round(t * 4) for t in (x, w)]
    of_integers = functions[axes](*(bp.cast(t, bp.int32) for t in whole))
    assert of_integers.dtype is bp.int32
    same(bp.cast(of_integers, bp.float64), functions[axes](*whole))
    z = functions[axes](x + 2j * bp.flip(x), w - 1j * bp.flip(w))
    f = functions[axes]
    same(bp.real(z), f(x, w) + 2 * f(bp.flip(x), bp.flip(w)))
    same(bp.imag(z), 2 * f(bp.flip(x), w) - f(x, bp.flip(w)))


@pytest.mark.parametrize("axes", CONVOLUTIONS)
def test_without_a_batch_is_a_batch_of_one(axes):
    x, w = operands(axes)
    bias = numbers(6, seed=2)
    same(CONVOLUTIONS[axes](x[0], w, bias), CONVOLUTIONS[axes](x[0:1], w, bias)[0])
    back = numbers(4, 6, *[3] * axes, seed=3)
    same(TRANSPOSED[axes](x[0], back, bias, 2), TRANSPOSED[axes](x[0:1], back, bias, 2)[0])


@pytest.mark.parametrize("axes", CONVOLUTIONS)
def test_bias_is_added_per_channel(axes):
    x, w = operands(axes)
    bias = numbers(6, seed=2)
    same(CONVOLUTIONS[axes](x, w, bias) - CONVOLUTIONS[axes](x, w), bp.broadcast_to(bias.reshape([6] + [1] * axes), (2, 6, *[s - 2 for s in x.shape[2:]])))


@pytest.mark.parametrize("axes", CONVOLUTIONS)
@pytest.mark.parametrize("how", [{}, {"stride": 2, "padding": 1}, {"groups": 2, "dilation": 2}])
def test_transposed_is_the_adjoint(axes, how):
    """⟨conv(x), y⟩ = ⟨x, conv_transpose(y)⟩, where the sizes come back with the output padding that the strides left over."""
    x = numbers(2, 4, *[9, 7, 5][:axes])
    w = numbers(6, 4 // how.get("groups", 1), *[3] * axes, seed=1)
    y = CONVOLUTIONS[axes](x, w, **how)
    g = numbers(*y.shape, seed=2)
    back = TRANSPOSED[axes](g, w, **how)
    assert back.shape == x.shape
    assert abs(float((y * g).sum()) - float((x * back).sum())) < 1e-9


@pytest.mark.parametrize(
    "call, error, text",
    [
        (lambda x, w: F.conv2d(x, w, padding="around"), ValueError, "argument padding: found 'around'"),
        (lambda x, w: F.conv2d(x, w, padding="same", stride=2), ValueError, "argument stride"),
        (lambda x, w: F.conv2d(x, w, stride=(1, 2, 3)), ValueError, "found 3 integers, expected 1 or 2"),
        (lambda x, w: F.conv2d(x, w, stride=1.5), TypeError, "argument stride: found 1.5"),
        (lambda x, w: F.conv1d(x, w), ValueError, "argument weight"),
        (lambda x, w: F.conv2d(x[0, 0], w), ValueError, "argument input"),
        (lambda x, w: F.conv_transpose2d(x, w, output_padding=1), ValueError, "argument output_padding"),
        (lambda x, w: F.conv_transpose2d(x, w), ValueError, "do not fit"),
    ],
)
def test_arguments_out_of_their_domain(call, error, text):
    x, w = operands(2)
    with pytest.raises(error, match=text):
        call(x, w)
