"""jax.test_util.check_grads of order 2, in both modes, for the float64 samples of every differentiable op of the registry."""

import functools
import pathlib
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.test_util import check_grads

import backplane as bp
import backplane.jax as bj

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "python/laws"))
law_inputs, law_registry = pytest.importorskip("law_inputs"), pytest.importorskip("law_registry")

MOST_ELEMENTS = 60
NO_SECOND_ORDER = {"gradient", "second_order"}


def arrays_in_float64(case):
    """The arguments of a sample, or None where no differentiable one is a float64 array."""
    named = [argument.name for argument in case.entry.differentiable]
    accepted = [set(argument.accepts) for argument in case.entry.args if argument.is_tensor and argument.promote]
    if not named or any("float64" not in dtypes for dtypes in accepted):
        return None
    return law_inputs.arrays_of(case, "float64")


def moving_places(case, given):
    """Where float64 arrays stand that have a derivative: names, and positions in lists."""
    places = []
    for argument in case.entry.differentiable:
        value = given.get(argument.name)
        if law_inputs.is_array_list(value):
            places += [(argument.name, i) for i, item in enumerate(value) if item.dtype == np.float64]
        elif law_inputs.is_array(value) and value.dtype == np.float64:
            places.append((argument.name, None))
    return places


@functools.cache
def depends_on_values(name):
    """A program of XLA states all sizes."""
    return name == "bp::masked_put" or name.startswith("bp::unique_") or "shape rule dynamic" in bp.explain(name)


def cases():
    for case in law_registry.registry():
        entry = case.entry
        if case.error or entry.name == "bp::eig" or NO_SECOND_ORDER & entry.exempt.keys() or "takes_function" in entry.flags:
            continue  # eigenvectors have a free phase
        if any(argument.type == "Generator" for argument in entry.args) or depends_on_values(entry.name):
            continue
        given = arrays_in_float64(case)
        places = moving_places(case, given) if given else []
        size = sum(np.size(given[name] if i is None else given[name][i]) for name, i in places)
        if places and 0 < size <= MOST_ELEMENTS:
            yield pytest.param(case, id=str(case))


@pytest.mark.parametrize("case", list(cases()))
def test_derivatives_of_order_2_in_both_modes(case):
    with jax.enable_x64(True):
        given = arrays_in_float64(case)
        places = moving_places(case, given)
        call = bj.op(case.entry.name)

        def function(*values):
            mixed = {name: list(value) if isinstance(value, (list, tuple)) else value for name, value in given.items()}
            for (name, i), value in zip(places, values):
                if i is None:
                    mixed[name] = value
                else:
                    mixed[name][i] = value
            results = call(**mixed)
            results = results if isinstance(results, (tuple, list)) else (results,)
            return [y for y, (_, _, constant) in zip(results, case.entry.results) if jnp.issubdtype(y.dtype, jnp.inexact) and not constant]

        values = [jnp.asarray(given[name] if i is None else given[name][i]) for name, i in places]
        try:
            results = function(*values)
        except bp.MissingRuleError as error:
            pytest.skip(str(error))
        if not results:
            pytest.skip("no result has a derivative")
        check_grads(function, values, order=2, modes=("fwd", "rev"), atol=2e-4, rtol=2e-4, eps=1e-5)
