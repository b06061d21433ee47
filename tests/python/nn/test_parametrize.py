"""Parametrisations: the tensor is computed from its originals, with gradients, under PyTorch's names, and an inverse sets the originals."""

import numpy as np
import pytest

import backplane as bp
from backplane import nn
from backplane.nn.utils import parametrizations, parametrize

SHAPES = [(4, 4), (5, 3), (3, 5)]
MAPS = ["matrix_exp", "cayley", "householder"]


class Doubled(nn.Module):
    calls = 0

    def forward(self, x):
        type(self).calls += 1
        return x * 2

    def right_inverse(self, value):
        return value / 2


def _orthonormal(shape):
    tall = np.linalg.qr(np.random.default_rng(0).standard_normal((max(shape), min(shape))))[0]
    return bp.asarray(tall if shape[0] >= shape[1] else tall.T)


def test_a_parametrisation_and_its_inverse():
    layer = nn.Linear(3, 2)
    weight = bp.copy(layer.weight.detach())
    parametrize.register_parametrization(layer, "weight", Doubled())
    assert sorted(layer.state_dict()) == ["bias", "parametrizations.weight.original"] and parametrize.is_parametrized(layer, "weight")
    np.testing.assert_array_equal(layer.weight.detach().numpy(), weight.numpy())
    layer.weight = bp.ones((2, 3))
    assert layer.parametrizations.weight.original.tolist() == [[0.5] * 3] * 2
    layer(bp.ones((4, 3))).sum().backward()
    assert layer.parametrizations.weight.original.grad.tolist() == [[8.0] * 3] * 2
    parametrize.register_parametrization(layer, "weight", Doubled())
    assert layer.parametrizations.weight.original.tolist() == [[0.25] * 3] * 2 and layer.weight.tolist() == [[1.0] * 3] * 2
    parametrize.remove_parametrizations(layer, "weight")
    assert type(layer) is nn.Linear and sorted(layer.state_dict()) == ["bias", "weight"] and layer.weight.tolist() == [[1.0] * 3] * 2


def test_a_call_computes_the_tensor_once():
    layer = parametrize.register_parametrization(nn.Linear(3, 2), "weight", Doubled())
    Doubled.calls = 0
    layer(bp.ones((4, 3)))
    assert Doubled.calls == 1
    with parametrize.cached():
        assert layer.weight is layer.weight
        layer(bp.ones((4, 3)))
    assert Doubled.calls == 2 and layer.weight is not layer.weight


def test_errors():
    layer = nn.Linear(3, 2)
    with pytest.raises(bp.ArgumentValueError, match="'other'"):
        parametrize.register_parametrization(layer, "other", Doubled())
    with pytest.raises(bp.ShapeError, match=r"\(3, 2\)"):
        parametrize.register_parametrization(layer, "weight", type("T", (nn.Module,), {"forward": lambda self, x: x.mT})())
    with pytest.raises(bp.DtypeError, match="float64"):
        parametrize.register_parametrization(layer, "weight", type("D", (nn.Module,), {"forward": lambda self, x: x.astype(bp.float64)})())
    with pytest.raises(bp.ArgumentValueError, match="remove_parametrizations"):
        parametrize.remove_parametrizations(layer, "weight")
    assert sorted(layer.state_dict()) == ["bias", "weight"]


def test_a_weight_norm_is_lengths_times_directions():
    layer = parametrizations.weight_norm(nn.Linear(3, 2))
    names = parametrizations.weight_norm(nn.Linear(3, 2)).state_dict()
    assert sorted(names) == ["bias", "parametrizations.weight.original0", "parametrizations.weight.original1"]
    before = layer.weight.detach().numpy()
    with bp.no_grad():
        layer.parametrizations.weight.original0 *= 3
        layer.parametrizations.weight.original1 *= 7
    np.testing.assert_allclose(layer.weight.detach().numpy(), 3 * before, rtol=1e-5)


@pytest.mark.parametrize("layer", [lambda: nn.Linear(5, 4), lambda: nn.Conv2d(2, 3, 3), lambda: nn.ConvTranspose1d(3, 2, 3)])
def test_a_spectral_norm_divides_by_the_largest_singular_value(layer):
    layer = parametrizations.spectral_norm(layer(), n_power_iterations=30)
    weight = layer.weight.detach().numpy()
    rows = np.moveaxis(weight, 1, 0) if isinstance(layer, nn.ConvTranspose1d) else weight
    assert abs(np.linalg.svd(rows.reshape(rows.shape[0], -1))[1][0] - 1) < 1e-4
    assert {name.rsplit(".", 1)[-1] for name in layer.state_dict()} == {"bias", "original", "_u", "_v"}
    layer.eval()
    u, v = layer.parametrizations.weight[0]._u, layer.parametrizations.weight[0]._v
    layer.weight.sum().backward()
    original = layer.parametrizations.weight.original
    dim = layer.parametrizations.weight[0].dim

    def explicit(w):
        return (w / (u @ bp.moveaxis(w, dim, 0).reshape((w.shape[dim], -1)) @ v)).sum()

    np.testing.assert_allclose(original.grad.numpy(), bp.grad(explicit)(original.detach()).numpy(), rtol=1e-4, atol=1e-5)


def test_a_spectral_norm_moves_on_in_training_alone():
    layer = parametrizations.spectral_norm(nn.Linear(8, 8))
    start = layer.parametrizations.weight[0]._v.numpy()
    layer.eval()(bp.ones((2, 8)))
    np.testing.assert_array_equal(layer.parametrizations.weight[0]._v.numpy(), start)
    layer.train()(bp.ones((2, 8)))
    assert not np.array_equal(layer.parametrizations.weight[0]._v.numpy(), start)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("how", MAPS)
def test_orthogonal_matrices_stay_orthogonal(how, shape):
    layer = parametrizations.orthogonal(nn.Linear(shape[1], shape[0]).double(), orthogonal_map=how)
    layer.weight = _orthonormal(shape)
    np.testing.assert_allclose(layer.weight.detach().numpy(), _orthonormal(shape).numpy(), atol=1e-10)
    optimizer = bp.optim.SGD(layer.parameters(), lr=0.1)
    target = bp.asarray(np.random.default_rng(1).standard_normal(shape))
    losses = []
    for _ in range(5):
        loss, gradients = bp.value_and_grad(lambda m: ((m.weight - target) ** 2).sum())(layer)
        optimizer.update(layer, gradients)
        losses.append(loss.item())
    assert losses[-1] < losses[0]
    weight = layer.weight.detach().numpy()
    small = weight @ weight.T if shape[0] < shape[1] else weight.T @ weight
    np.testing.assert_allclose(small, np.eye(min(shape)), atol=1e-9)


@pytest.mark.parametrize("shape", SHAPES)
def test_reflections_have_an_inverse_without_a_fixed_factor(shape):
    layer = parametrizations.orthogonal(nn.Linear(shape[1], shape[0]).double(), orthogonal_map="householder", use_trivialization=False)
    layer.weight = _orthonormal(shape)
    np.testing.assert_allclose(layer.weight.detach().numpy(), _orthonormal(shape).numpy(), atol=1e-10)


def test_ensembles_and_compiled_steps():
    layers = [parametrizations.spectral_norm(nn.Linear(3, 3)).eval() for _ in range(2)]
    stacked = bp.tree.map(lambda *leaves: bp.stack(leaves), *layers)
    x = bp.normal((5, 3))
    np.testing.assert_allclose(bp.vmap(lambda layer: layer(x))(stacked).detach().numpy()[1], layers[1](x).detach().numpy(), rtol=1e-5)
    layer = layers[0].train()
    optimizer = bp.optim.SGD(layer.parameters(), lr=0.1)

    @bp.compile(state=[layer, optimizer])
    def step(x):
        loss, gradients = bp.value_and_grad(lambda m: ((m(x) - 1) ** 2).mean())(layer)
        optimizer.update(layer, gradients)
        return loss

    losses = [step(x).item() for _ in range(4)]
    assert losses[-1] < losses[0]
