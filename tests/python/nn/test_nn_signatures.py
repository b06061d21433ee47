"""Functions of backplane.nn.functional take PyTorch's arguments, by name and by position; more arguments are keyword-only."""

import inspect

import backplane.nn.functional as F
import pytest

# PyTorch's arguments in their order, with the defaults that have one value in both.
SIGNATURES = {
    "layer_norm": "input normalized_shape weight=None bias=None eps=1e-05",
    "linear": "input weight bias=None",
}

FUNCTIONS = {name: value for name, value in vars(F).items() if inspect.isfunction(value) and not name.startswith("_")}


def stated(name):
    """[(name, default text or None)]"""
    return [(part.split("=")[0], part.partition("=")[2] or None) for part in SIGNATURES[name].split()]


def test_every_function_is_in_the_table():
    assert set(FUNCTIONS) == set(SIGNATURES)


@pytest.mark.parametrize("name", sorted(SIGNATURES))
def test_arguments_are_pytorchs(name):
    parameters = list(inspect.signature(FUNCTIONS[name]).parameters.values())
    positional = [(p.name, None if p.default is p.empty else str(p.default)) for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD]
    assert positional == stated(name)
    others = [p for p in parameters if p.kind is not p.POSITIONAL_OR_KEYWORD]
    assert all(p.kind is p.KEYWORD_ONLY and p.default is not p.empty for p in others)


@pytest.mark.parametrize("name", sorted(SIGNATURES))
def test_functions_are_documented(name):
    assert inspect.getdoc(FUNCTIONS[name])
