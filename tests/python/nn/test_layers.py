"""PyTorch's state dicts load into the layers of the same names, and outputs, gradients and running statistics are PyTorch's."""

import pathlib

import layer_cases
import numpy as np
import pytest

import backplane as bp
from backplane import nn

STORE = np.load(pathlib.Path(__file__).with_name("layer_results.npz"))
NAMES: dict = {}
for _key in STORE.files:
    _name, _kind, _place = _key.split("/", 2)
    NAMES.setdefault(_name, {}).setdefault(_kind, {})[_place] = _key


def recorded(name, kind):
    return {place: STORE[key] for place, key in NAMES[name].get(kind, {}).items()}


def close(found, expected, what):
    found = found.detach().numpy()
    assert found.shape == expected.shape, what
    assert np.allclose(found, expected, rtol=1e-9, atol=1e-10, equal_nan=True), (what, np.abs(found - expected).max())


@pytest.mark.parametrize(("name", "constructor", "specs"), list(layer_cases.cases()))
def test_a_layer_does_what_torch_does(name, constructor, specs):
    layer = eval(constructor, vars(nn)).double()
    state = recorded(name, "state")
    assert list(layer.state_dict()) == list(state)
    assert layer.load_state_dict(state) == ([], [])
    inputs = [bp.asarray(x) for x in recorded(name, "input").values()]
    for x in inputs:
        if "floating" in x.dtype.kind:
            x.requires_grad = True
    outputs = layer_cases.flat(layer(*inputs))
    for i, expected in recorded(name, "output").items():
        close(outputs[int(i)], expected, f"output {i}")
    loss = sum((x * bp.asarray(layer_cases.weights_of(tuple(x.shape), i))).sum() for i, x in enumerate(outputs))
    loss.backward()
    for i, expected in recorded(name, "input_grad").items():
        close(inputs[int(i)].grad, expected, f"gradient of input {i}")
    for key, expected in recorded(name, "grad").items():
        close(layer.get_parameter(key).grad, expected, f"gradient of {key}")
    for key, expected in recorded(name, "buffer").items():
        close(layer.get_buffer(key), expected, key)
