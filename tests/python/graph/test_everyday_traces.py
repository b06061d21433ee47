"""What layers and models do every day works in transforms and compiled functions as it does outside."""

import backplane as bp
import numpy as np
import pytest


@pytest.mark.parametrize("make", [
    lambda x: x.new_zeros(3), lambda x: x.new_ones((3,)), lambda x: x.new_full((3,), 2.0), lambda x: bp.zeros(3, requires_grad=False),
])  # fmt: skip
def test_tensors_made_without_a_gradient_are_made_in_transforms_too(make):
    x = bp.ones(3)
    expected = (x + make(x)).tolist()
    assert bp.compile(lambda x: x + make(x))(x).tolist() == expected
    assert bp.grad(lambda x: (x + make(x)).sum())(x).tolist() == [1, 1, 1]


def test_attention_of_one_tensor_compiles():
    layer, x = bp.nn.MultiheadAttention(4, 2, batch_first=True), bp.asarray(np.random.default_rng(0).normal(size=(2, 3, 4)).astype("float32"))
    compiled = bp.compile(layer)
    for parts in ((x, x, x), (x, x + 1, x)):
        np.testing.assert_allclose(compiled(*parts)[0].detach().numpy(), layer(*parts)[0].detach().numpy(), atol=1e-6)
