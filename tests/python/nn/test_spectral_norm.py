"""nn.utils.spectral_norm: the weight is divided by its largest singular value, and the vectors are state."""

import pytest

import backplane as bp
from backplane import nn, optim

LAYERS = [
    (lambda: nn.Linear(3, 4), lambda w: w),
    (lambda: nn.Conv2d(2, 3, 3), lambda w: w.reshape((3, -1))),
    (lambda: nn.ConvTranspose2d(2, 3, 3), lambda w: bp.moveaxis(w, 1, 0).reshape((3, -1))),
]


@pytest.mark.parametrize(("make", "matrix"), LAYERS)
def test_the_weight_is_divided_by_the_largest_singular_value(make, matrix):
    layer = nn.utils.spectral_norm(make(), n_power_iterations=40)
    assert sorted(layer.state_dict()) == ["bias", "weight_orig", "weight_u", "weight_v"]
    assert [name for name, _ in layer.named_parameters()] == ["bias", "weight_orig"]
    layer(bp.ones((1, 3)) if isinstance(layer, nn.Linear) else bp.ones((1, 2, 5, 5)))
    largest = bp.linalg.svdvals(matrix(layer.weight_orig.detach()))[0]
    assert bp.allclose(layer.weight * largest, layer.weight_orig, rtol=1e-4)
    weight = layer.weight.detach()
    nn.utils.remove_spectral_norm(layer)
    assert sorted(layer.state_dict()) == ["bias", "weight"] and bp.allclose(layer.weight, weight, rtol=1e-5)


def test_the_vectors_move_in_training_alone():
    bp.manual_seed(0)
    layer, x = nn.utils.spectral_norm(nn.Linear(6, 5)), bp.ones((2, 6))
    first = bp.copy(layer.weight_u)
    layer.eval()(x)
    assert bp.all(layer.weight_u == first)
    bp.value_and_grad(lambda layer: layer(x).sum())(layer.train())
    assert not bp.allclose(layer.weight_u, first)


def test_the_gradient_takes_the_vectors_as_constants():
    bp.manual_seed(0)
    layer, x = nn.utils.spectral_norm(nn.Linear(3, 4, dtype=bp.float64)).eval(), bp.normal((2, 3), dtype=bp.float64)
    w, u, v = layer.weight_orig.detach(), layer.weight_u, layer.weight_v
    expected = bp.grad(lambda w: ((x @ (w / (u @ w @ v)).mT + layer.bias.detach()) ** 2).sum())(w)
    (layer(x) ** 2).sum().backward()
    assert bp.allclose(layer.weight_orig.grad, expected, rtol=1e-12)


def test_a_compiled_step_moves_weights_and_vectors_as_an_eager_one():
    layers, x = [nn.utils.spectral_norm(nn.Linear(3, 3, dtype=bp.float64)) for _ in range(2)], bp.normal((4, 3), dtype=bp.float64)
    layers[1].load_state_dict(layers[0].state_dict())

    def step(layer, optimizer):
        loss, gradients = bp.value_and_grad(lambda layer: ((layer(x) - 1) ** 2).sum())(layer)
        optimizer.update(layer, gradients)
        return loss

    optimizers = [optim.SGD(layer.parameters(), lr=0.1) for layer in layers]
    compiled = bp.compile(lambda: step(layers[1], optimizers[1]), state=[layers[1], optimizers[1]])
    for _ in range(3):
        assert bp.allclose(step(layers[0], optimizers[0]), compiled(), rtol=1e-12)
    for name, tensor in layers[0].state_dict().items():
        assert bp.allclose(tensor, layers[1].state_dict()[name], rtol=1e-10), name


def test_what_is_refused():
    layer = nn.utils.spectral_norm(nn.Linear(2, 2))
    with pytest.raises(bp.ArgumentValueError, match="has a spectral norm already"):
        nn.utils.spectral_norm(layer)
    with pytest.raises(bp.ArgumentValueError, match="n_power_iterations: found 0"):
        nn.utils.spectral_norm(nn.Linear(2, 2), n_power_iterations=0)
    with pytest.raises(bp.ArgumentValueError, match="has no spectral norm"):
        nn.utils.remove_spectral_norm(nn.Linear(2, 2))
