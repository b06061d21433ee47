"""Reductions over the first axes, compiled: the bits of eager mode, whatever the shape and however many threads share the rows."""

import backplane as bp
import numpy as np
import pytest

SHAPES = [(2, 3), (16, 8), (17, 33), (4096, 256), (513, 300), (6, 50, 40), (4, 32, 2, 65), (70, 1025), (5000, 2), (64, 9000), (8, 64, 512)]


def tensor(shape, dtype, seed):
    return bp.asarray(np.random.default_rng(seed).normal(1, 40, shape).astype(dtype))


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_the_bits_are_those_of_eager_mode(shape):
    for seed, dtype in enumerate(("float32", "float64")):
        x, y = tensor(shape, dtype, seed), tensor(shape[::-1], dtype, seed + 9).T if len(shape) == 2 else tensor(shape, dtype, 7)
        for axes in range(1, len(shape)):
            over = tuple(range(axes))

            def function(x, y, over=over):
                product = x * y + 1
                return bp.sum(product, axis=over), bp.max(product, axis=over, keepdims=True), bp.mean(bp.tanh(product), axis=over), product

            compiled = bp.compile(function)
            for found, expected in zip(compiled(x, y), function(x, y), strict=True):
                assert found.numpy().tobytes() == expected.numpy().tobytes(), (shape, dtype, over)
            assert "1 regions" in bp.explain_plan(function)(x, y)


def test_gradients_of_a_layer_norm_share_a_region():
    def loss(x, weight, bias):
        centred = x - bp.mean(x, axis=-1, keepdims=True)
        scale = 1 / bp.sqrt(bp.mean(centred * centred, axis=-1, keepdims=True) + 1e-5)
        return bp.sum(centred * scale * weight + bias)

    arguments = tensor((300, 64), "float32", 1), tensor((64,), "float32", 2), tensor((64,), "float32", 3)
    gradients = bp.grad(loss, argnums=(0, 1, 2))
    for found, expected in zip(bp.compile(gradients)(*arguments), gradients(*arguments), strict=True):
        np.testing.assert_array_equal(found.numpy(), expected.numpy())
