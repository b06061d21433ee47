"""copy.deepcopy of tensors in compiled functions: the copy is made at each call, and is memory of its own."""

import copy

import pytest

import backplane as bp
from backplane import nn

W = bp.asarray([3.0, 4.0])


def of_an_argument(x):
    y = copy.deepcopy(x)
    y += 1
    return y, x * 2


def of_what_is_outside(x):
    y = copy.deepcopy(W)
    y += 1
    return y * x


def of_a_container(x):
    found = copy.deepcopy({"a": [x, W], "b": x})
    found["a"][0] += 1
    return found["a"][0], found["b"], found["a"][1]


def of_a_module(x):
    layer = copy.deepcopy(LAYER)
    with bp.no_grad():
        layer.weight *= 2
    return layer(x)


LAYER = nn.Linear(2, 2)


@pytest.mark.parametrize("function", [of_an_argument, of_what_is_outside, of_a_container, of_a_module])
def test_a_copy_in_a_compiled_function(function):
    compiled = bp.compile(function)
    for _ in range(3):
        x = bp.asarray([1.0, 2.0])
        before, weight = W.tolist(), LAYER.weight.tolist()
        found, expected = (bp.tree.map(lambda t: t.tolist(), f(x)) for f in (compiled, function))
        assert found == expected and x.tolist() == [1.0, 2.0] and W.tolist() == before and LAYER.weight.tolist() == weight
        with bp.no_grad():
            W[...] += 1
            LAYER.weight[...] += 1


def test_a_gradient_ends_at_a_copy():
    f = bp.compile(lambda x: (copy.deepcopy(W) * x).sum())
    assert bp.grad(f)(bp.ones(2)).tolist() == W.tolist()


@pytest.mark.parametrize("transform", [bp.grad, lambda f: lambda x: bp.jvp(f, (x,), (x,)), bp.vmap])
def test_a_copy_in_a_transform_inside_is_refused(transform):
    """As outside of compile: its derivative would be lost."""
    with pytest.raises(bp.BackplaneError, match="deepcopy"):
        bp.compile(transform(lambda x: copy.deepcopy(x).sum()))(bp.ones(2))
