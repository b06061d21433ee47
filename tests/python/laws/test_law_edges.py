"""edges: where the derivative exists, the gradient is not NaN.

Elements of each argument are set to edges of formulas (zeros of both signs, ones, numbers whose squares overflow or underflow), one at a time and all at
once. Where the gradient then has a NaN, one-sided differences of two steps on both sides decide: if the four agree, the derivative
exists, and the gradient should have been that. In float64.
"""

import backplane as bp
import numpy as np
import pytest
from law_inputs import arrays_of, is_array
from law_registry import cases
from law_running import to_array
from test_law_gradient import Differentiated, value_at

EDGES = (0.0, -0.0, 1.0, -1.0, 1e200, 1e-200)
STEPS = (1e-4, 1e-6)


def has_float64_gradient(case):
    names = [arg.name for arg in case.entry.differentiable if arg.promote and "float64" in arg.accepts]
    repeatable = case.entry.compare not in ("distribution", "metadata", "up_to_phase") and "random" not in case.entry.flags
    return repeatable and case.number < 3 and any("tensor" in case.sample.get(name, {}) for name in names)


def at_edges(arrays, name):
    """The arrays with the first element, and with all elements, of one argument at each edge."""
    for edge in EDGES:
        for whole in (False, True):
            changed = np.array(arrays[name])
            changed.reshape(-1)[: changed.size if whole else 1] = edge
            yield {**arrays, name: changed}


def derivative_along(case, arrays, cotangents, name, element):
    """By differences; None where they do not agree."""
    scale = abs(arrays[name].reshape(-1)[element]) or 1.0
    quotients = []
    start = value_at(case, arrays, cotangents)
    for step in STEPS:
        for sign in (1, -1):
            changed = np.array(arrays[name])
            changed.reshape(-1)[element] += sign * step * scale
            quotients.append((value_at(case, {**arrays, name: changed}, cotangents) - start) / (sign * step * scale))
    if not np.isfinite(quotients).all():
        return None
    middle = float(np.median(quotients))
    return middle if np.allclose(quotients, middle, rtol=1e-2, atol=1e-3 * min(1.0, 1 / scale)) else None


def check(case, arrays):
    run = Differentiated(case, arrays)
    if any(not np.isfinite(to_array(result)).all() for result in run.results):
        return
    run.cotangents = [np.ones_like(c) for c in run.cotangents]
    for (name, position, _), gradient in zip(run.inputs, run.gradients()):
        if gradient is None or position is not None:
            continue
        for element in np.flatnonzero(np.isnan(to_array(gradient)).reshape(-1))[:2]:
            exists = derivative_along(case, arrays, run.cotangents, name, element)
            assert exists is None, f"{name}[{element}] of {arrays}: the gradient is NaN, the derivative {exists}"


@pytest.mark.parametrize("case", cases("edges", has_float64_gradient))
def test_a_derivative_that_exists_is_not_nan(case):
    arrays = arrays_of(case, "float64")
    for arg in case.entry.differentiable:
        if not is_array(arrays.get(arg.name)) or np.asarray(arrays[arg.name]).dtype != np.float64 or np.asarray(arrays[arg.name]).size == 0:
            continue
        for changed in at_edges(arrays, arg.name):
            try:
                with np.errstate(all="ignore"):
                    check(case, changed)
            except bp.BackplaneError:
                continue  # the op refuses such an argument, as factorisations do
