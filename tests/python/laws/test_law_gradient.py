"""gradient: backward = central finite difference. second_order: the same for the gradient itself.

Both in float64, and in complex128 where the entry accepts it, along random directions, under <a, b> = Re sum conj(a) b.
"""

import backplane as bp
import numpy as np
import pytest
from law_inputs import arrays_of, leaves, tensors_of
from law_registry import cases
from law_running import call, differentiable_results, to_array

STEP = 1e-5
DIRECTIONS = 2


def inner(a, b):
    return float(np.sum(np.conj(a) * b).real)


def direction_like(array, rng):
    drawn = rng.uniform(-1, 1, array.shape)
    return drawn + 1j * rng.uniform(-1, 1, array.shape) if array.dtype.kind == "c" else drawn


def moved(arrays, name, position, step):
    changed = dict(arrays)
    if position is None:
        changed[name] = np.asarray(arrays[name] + step)
    else:
        changed[name] = [np.asarray(item + step) if i == position else item for i, item in enumerate(arrays[name])]
    return changed


def dtypes_of(case):
    accepted = {name for arg in case.entry.differentiable if arg.promote for name in arg.accepts}
    return [name for name in ("float64", "complex128") if name in accepted]


def has_gradient(case):
    if not case.entry.differentiable or not dtypes_of(case):
        return False
    return any("tensor" in case.sample.get(arg.name, {}) or "tensors" in case.sample.get(arg.name, {}) for arg in case.entry.differentiable)


class Differentiated:
    """One call with recorded inputs, its results, and random cotangents for them."""

    def __init__(self, case, arrays, rng_seed=11):
        self.arguments = tensors_of(case, arrays)
        self.inputs = list(leaves(self.arguments, [arg.name for arg in case.entry.differentiable]))
        for _, _, tensor in self.inputs:
            tensor.requires_grad = True
        self.results = differentiable_results(case, call(case, self.arguments))
        rng = np.random.default_rng(rng_seed)
        self.cotangents = [direction_like(to_array(result), rng) for result in self.results]

    def gradients(self, create_graph=False, cotangents=None):
        """A gradient per input; None where no result depends on it."""
        recorded = [result for result in self.results if result.requires_grad]
        given = cotangents or [bp.asarray(c, dtype=r.dtype) for c, r in zip(self.cotangents, self.results)]
        given = [c for c, result in zip(given, self.results) if result.requires_grad]
        if not recorded:
            return [None] * len(self.inputs)
        return bp.gradients(recorded, [t for _, _, t in self.inputs], given, create_graph=create_graph)


def value_at(case, arrays, cotangents):
    results = differentiable_results(case, call(case, tensors_of(case, arrays)))
    return sum(inner(c, to_array(result)) for c, result in zip(cotangents, results))


def close(found, expected):
    assert abs(found - expected) <= 2e-6 * (1 + abs(expected)), f"gradient {found}, finite difference {expected}"


@pytest.mark.parametrize("case", cases("gradient", has_gradient))
def test_gradient_is_the_finite_difference(case):
    for dtype in dtypes_of(case):
        arrays = arrays_of(case, dtype, own_dtype=dtype == "float64")
        run = Differentiated(case, arrays)
        rng = np.random.default_rng(5)
        for (name, position, tensor), found in zip(run.inputs, run.gradients()):
            at = to_array(tensor)
            found = np.zeros_like(at) if found is None else to_array(found)
            assert found.shape == at.shape and found.dtype == at.dtype, f"{name}: gradient {found.dtype}{found.shape}"
            for _ in range(DIRECTIONS):
                step = direction_like(at, rng)
                above = value_at(case, moved(arrays, name, position, STEP * step), run.cotangents)
                below = value_at(case, moved(arrays, name, position, -STEP * step), run.cotangents)
                close(inner(found, step), (above - below) / (2 * STEP))


def gradient_value(case, arrays, weights):
    """Re <weights, gradient> at `arrays`."""
    found = Differentiated(case, arrays).gradients()
    return sum(inner(w, to_array(g)) for w, g in zip(weights, found) if g is not None)


def weighted(weights, gradients):
    """The same as a recorded tensor, or None where nothing of it depends on an input."""
    total = None
    for weight, gradient in zip(weights, gradients):
        if gradient is None or not gradient.requires_grad:
            continue
        product = bp.multiply(bp.conj(bp.asarray(weight, dtype=gradient.dtype)), gradient)
        term = bp.sum(bp.real(product))
        total = term if total is None else bp.add(total, term)
    return total


@pytest.mark.parametrize("case", cases("second_order", has_gradient))
def test_gradient_of_the_gradient_is_the_finite_difference(case):
    for dtype in dtypes_of(case):
        arrays = arrays_of(case, dtype, own_dtype=dtype == "float64")
        run = Differentiated(case, arrays)
        rng = np.random.default_rng(6)
        weights = [direction_like(to_array(tensor), rng) for _, _, tensor in run.inputs]
        cotangents = [bp.asarray(c, dtype=r.dtype).requires_grad_() for c, r in zip(run.cotangents, run.results)]
        first = run.gradients(create_graph=True, cotangents=cotangents)
        total = weighted(weights, first)
        tensors = [tensor for _, _, tensor in run.inputs]
        second = [None] * (len(tensors) + len(cotangents))
        if total is not None:
            second = bp.gradients([total], tensors + cotangents, [bp.ones_like(total)])
        for (name, position, tensor), found in zip(run.inputs, second):
            step = direction_like(to_array(tensor), rng)
            above = gradient_value(case, moved(arrays, name, position, STEP * step), weights)
            below = gradient_value(case, moved(arrays, name, position, -STEP * step), weights)
            close(0.0 if found is None else inner(to_array(found), step), (above - below) / (2 * STEP))
        # In its cotangents a gradient is linear: its derivative there, applied to them, is its value.
        in_cotangents = sum(inner(to_array(f), c) for f, c in zip(second[len(tensors) :], run.cotangents) if f is not None)
        value = sum(inner(w, to_array(g)) for w, g in zip(weights, first) if g is not None)
        close(in_cotangents, value)
