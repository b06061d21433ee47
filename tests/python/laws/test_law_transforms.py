"""The laws of the functional transforms, each over every entry that differentiates, in float64 and complex128.

reverse: vjp = backward of the tape. forward: <c, J t> = <J* c, t>, under <a, b> = Re sum conj(a) b. jvp_grad: forward over reverse
= reverse over forward. vmap_grad: vmap of a gradient = the loop over its rows. grad_vmap: the gradient of a batch's sum =
the gradients of its rows.
"""

import backplane as bp
import numpy as np
import pytest
from law_inputs import arrays_of, leaves, tensors_of
from law_registry import cases
from law_running import call, differentiable_results, to_array
from test_law_gradient import direction_like, dtypes_of, has_gradient, inner

ROWS = 3


def close(found, expected):
    """Arrays up to rounding of float64."""
    found, expected = np.asarray(found), np.asarray(expected)
    assert found.shape == expected.shape, f"shape {found.shape}, expected {expected.shape}"
    scale = max(1.0, float(np.max(np.abs(expected), initial=0)))
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9 * scale)


class Functional:
    """A case's call as a function of its differentiable tensors alone: a tuple of results that have a gradient."""

    def __init__(self, case, arrays):
        self.case, self.arrays = case, arrays
        self.places = [(name, position) for name, position, _ in self._leaves()]
        self.inputs = [tensor for _, _, tensor in self._leaves()]

    def _leaves(self):
        return leaves(tensors_of(self.case, self.arrays), [arg.name for arg in self.case.entry.differentiable])

    def __call__(self, *inputs):
        arguments = tensors_of(self.case, self.arrays)
        for (name, position), tensor in zip(self.places, inputs):
            if position is None:
                arguments[name] = tensor
            else:
                arguments[name][position] = tensor
        return tuple(differentiable_results(self.case, call(self.case, arguments)))

    def drawn_like(self, tensors, seed):
        rng = np.random.default_rng(seed)
        return [bp.asarray(direction_like(to_array(tensor), rng), dtype=tensor.dtype) for tensor in tensors]

    def loss(self, cotangents):
        """inputs -> Re <cotangents, results>, without dimensions."""

        def value(*inputs):
            terms = [bp.sum(bp.real(bp.multiply(bp.conj(c), result))) for c, result in zip(cotangents, self(*inputs))]
            return sum(terms[1:], terms[0])

        return value


def functionals(case):
    for dtype in dtypes_of(case):
        found = Functional(case, arrays_of(case, dtype, own_dtype=dtype == "float64"))
        if found.inputs and found(*found.inputs):
            yield found


def pulled(function, inputs):
    """The cotangents of a loss at the inputs, with respect to all of them."""
    value, pullback = bp.vjp(function, *inputs)
    return pullback(bp.ones_like(value))


@pytest.mark.parametrize("case", cases("reverse", has_gradient))
def test_vjp_is_the_tapes_backward(case):
    for f in functionals(case):
        results, pullback = bp.vjp(f, *f.inputs)
        cotangents = f.drawn_like(results, 11)
        found = pullback(tuple(cotangents))
        recorded = [tensor.detach().requires_grad_() for tensor in f.inputs]
        ends = [(end, c) for end, c in zip(f(*recorded), cotangents) if end.requires_grad]
        expected = bp.gradients([end for end, _ in ends], recorded, [c for _, c in ends]) if ends else [None] * len(recorded)
        for tensor, ours, tape in zip(f.inputs, found, expected):
            close(to_array(ours), np.zeros_like(to_array(tensor)) if tape is None else to_array(tape))


@pytest.mark.parametrize("case", cases("forward", has_gradient))
def test_forward_is_reverse_under_the_same_product(case):
    for f in functionals(case):
        tangents = f.drawn_like(f.inputs, 5)
        results, moved = bp.jvp(f, tuple(f.inputs), tuple(tangents))
        for result, expected in zip(results, f(*f.inputs)):
            np.testing.assert_array_equal(to_array(result), to_array(expected))
        for result, tangent in zip(results, moved):
            assert tangent.shape == result.shape and tangent.dtype is result.dtype, f"tangent {tangent.dtype}{tangent.shape}"
        cotangents = f.drawn_like(results, 7)
        back = bp.vjp(f, *f.inputs)[1](tuple(cotangents))
        forward = sum(inner(to_array(c), to_array(t)) for c, t in zip(cotangents, moved))
        close(forward, sum(inner(to_array(b), to_array(t)) for b, t in zip(back, tangents)))


@pytest.mark.parametrize("case", cases("jvp_grad", has_gradient))
def test_forward_over_reverse_is_reverse_over_forward(case):
    for f in functionals(case):
        tangents = f.drawn_like(f.inputs, 5)
        loss = f.loss(f.drawn_like(f(*f.inputs), 7))
        _, over_reverse = bp.jvp(lambda *x: pulled(loss, x), tuple(f.inputs), tuple(tangents))
        over_forward = pulled(lambda *x: bp.jvp(loss, x, tuple(tangents))[1], f.inputs)
        for found, expected in zip(over_reverse, over_forward):
            close(to_array(found), to_array(expected))


def batches(case):
    """An entry that refuses to be batched does so in writing, and is listed with its reason."""
    return has_gradient(case) and case.entry.rules["batch"] != "none"


def rows_of(f):
    """ROWS rows per input: the sample's values, and others nearby."""
    scales = [1.0, 0.9, 1.05]
    return [bp.stack([tensor * scale for scale in scales]) for tensor in f.inputs]


@pytest.mark.parametrize("case", cases("vmap_grad", batches))
def test_vmap_of_a_gradient_is_the_loop(case):
    for f in functionals(case):
        loss = f.loss(f.drawn_like(f(*f.inputs), 7))
        rows = rows_of(f)
        found = bp.vmap(lambda *x: pulled(loss, x), randomness="same")(*rows)
        for row in range(ROWS):
            expected = pulled(loss, [tensor[row] for tensor in rows])
            for ours, one in zip(found, expected):
                close(to_array(ours)[row], to_array(one))


@pytest.mark.parametrize("case", cases("grad_vmap", batches))
def test_gradient_of_a_batchs_sum_is_each_rows(case):
    for f in functionals(case):
        loss = f.loss(f.drawn_like(f(*f.inputs), 7))
        rows = rows_of(f)
        found = pulled(lambda *x: bp.sum(bp.vmap(loss, randomness="same")(*x)), rows)
        for row in range(ROWS):
            expected = pulled(loss, [tensor[row] for tensor in rows])
            for ours, one in zip(found, expected):
                close(to_array(ours)[row], to_array(one))
