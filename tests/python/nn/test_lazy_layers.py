"""Layers that take the size of their input from the first one become the plain layers. Before, they refuse uses that need parameters."""

import copy
import inspect
import pickle

import numpy as np
import pytest

import backplane as bp
from backplane import nn

# lazy layer -> its arguments, an input, the size that it takes
LAYERS = {
    "Linear": ((4,), (5, 3), 3), "Conv1d": ((4, 3), (2, 6, 9), 6), "Conv2d": ((4, 3), (2, 6, 9, 9), 6), "Conv3d": ((4, 2), (2, 6, 3, 3, 3), 6),
    "ConvTranspose1d": ((4, 3), (2, 6, 9), 6), "ConvTranspose2d": ((4, 3), (6, 9, 9), 6), "ConvTranspose3d": ((4, 2), (2, 6, 3, 3, 3), 6),
    "BatchNorm1d": ((), (5, 3), 3), "BatchNorm2d": ((), (2, 3, 4, 4), 3), "BatchNorm3d": ((), (2, 3, 2, 2, 2), 3),
    "InstanceNorm1d": ((), (2, 3, 8), 3), "InstanceNorm2d": ((), (3, 4, 4), 3), "InstanceNorm3d": ((), (2, 3, 2, 2, 2), 3),
}  # fmt: skip


@pytest.mark.parametrize("name", LAYERS)
def test_the_first_call_makes_the_plain_layer(name):
    arguments, shape, size = LAYERS[name]
    plain, lazy = getattr(nn, name), getattr(nn, f"Lazy{name}")(*arguments)
    assert isinstance(lazy, plain) and type(lazy) is not plain
    x = bp.randn(shape)
    bp.manual_seed(3)
    found = lazy(x)
    bp.manual_seed(3)
    expected = plain(size, *arguments)
    assert type(lazy) is plain and repr(lazy) == repr(expected)
    np.testing.assert_array_equal(found.detach().numpy(), expected(x).detach().numpy())
    assert list(inspect.signature(getattr(nn, f"Lazy{name}")).parameters) == list(inspect.signature(plain).parameters)[1:]


@pytest.mark.parametrize("name", [name for name in LAYERS if not name.startswith("Instance")])
def test_a_state_makes_the_plain_layer_too(name):
    arguments, shape, size = LAYERS[name]
    plain, lazy = getattr(nn, name)(size, *arguments), nn.Sequential(getattr(nn, f"Lazy{name}")(*arguments))
    lazy.load_state_dict({f"0.{key}": x for key, x in plain.state_dict().items()})
    assert type(lazy[0]) is type(plain)
    x = bp.randn(shape)
    np.testing.assert_array_equal(lazy(x).detach().numpy(), plain(x).detach().numpy())


def test_groups_of_a_state_are_counted():
    plain, lazy = nn.Conv1d(6, 4, 3, groups=2), nn.LazyConv1d(4, 3, groups=2)
    lazy.load_state_dict(plain.state_dict())
    assert lazy.in_channels == 6


def test_moves_modes_and_hooks_from_before_the_first_call_hold():
    net = nn.Sequential(nn.LazyConv2d(8, 3), nn.LazyBatchNorm2d(), nn.Flatten(), nn.LazyLinear(2))
    calls = []
    net[3].register_forward_hook(lambda *parts: calls.append(1))
    net.double().eval()
    assert "parameters come with the first call" in repr(net)
    for other in (copy.deepcopy(net), pickle.loads(pickle.dumps(nn.LazyLinear(2)))):
        assert not all(part.is_sized for part in other.modules())
    assert net(bp.ones((2, 3, 5, 5), dtype=bp.float64)).shape == (2, 2) and calls == [1]
    assert {x.dtype.name for x in net.parameters()} == {"float64"} and not any(part.training for part in net.modules())
    assert len(list(net.parameters())) == 6


X = bp.ones((2, 3))


@pytest.mark.parametrize("use", [
    lambda m: list(m.parameters()), lambda m: m.state_dict(), lambda m: bp.optim.SGD(m.parameters(), lr=0.1), lambda m: m.requires_grad_(False),
    lambda m: bp.grad(lambda m: m(X).sum())(m), lambda m: nn.functional_call(m, {}, X), lambda m: bp.compile(lambda m, x: m(x))(m, X),
    lambda m: bp.save(m, "never.safetensors"),
])  # fmt: skip
def test_nothing_misses_the_parameters_that_are_not_there_yet(use):
    net = nn.Sequential(nn.Linear(3, 3), nn.LazyLinear(2))
    with pytest.raises(bp.ArgumentValueError, match="LazyLinear: found a layer that has not seen an input.*call the model once"):
        use(net)
    assert not net[1].is_sized


@pytest.mark.parametrize("call", [lambda m: bp.compile(m)(X), lambda m: bp.vmap(m)(X), lambda m: m([1.0])])
def test_the_first_call_has_values(call):
    layer = nn.LazyLinear(2)
    with pytest.raises(bp.ArgumentTypeError, match="expected for the first call a tensor with values"):
        call(layer)
    assert layer(X).shape == (2, 2)


def test_what_is_not_there_is_named():
    with pytest.raises(AttributeError, match="LazyLinear has no weight before its first call"):
        nn.LazyLinear(2).weight
    with pytest.raises(bp.ArgumentTypeError, match="missing a required argument: 'out_features'"):
        nn.LazyLinear()
    with pytest.raises(bp.ShapeError, match="expected one at -3"):
        nn.LazyConv2d(4, 3)(bp.ones((3, 3)))


def test_signatures_are_those_of_init_and_of_forward():
    """In Python 3.11.2 too, where a class without an __init__ of its own has the signature of an inherited __new__."""
    assert list(inspect.signature(nn.Conv2d).parameters)[:3] == ["in_channels", "out_channels", "kernel_size"]
    assert list(inspect.signature(nn.Linear(2, 3)).parameters) == list(inspect.signature(nn.Conv1d(2, 3, 1)).parameters) == ["input"]
