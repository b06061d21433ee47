"""Products that a compiled scan makes once for all steps give what the steps give, one by one, in value and derivative."""

import backplane as bp
import numpy as np
import pytest

STEPS, ROWS, WIDTH = 6, 3, 4


def normal(*shape, seed=0, dtype="float32"):
    return bp.asarray(np.random.default_rng(seed).standard_normal(shape) / 2, dtype=dtype)


def recurrence(weights, h, xs, reverse=False):
    def step(h, x):
        h = bp.tanh(x @ weights["input"] + h @ weights["state"].mT + weights["bias"])
        return h, (h @ weights["output"], h)

    return bp.scan(step, h, xs, reverse=reverse)


def gated(weights, h, xs):
    """Products of slices of products, and of a matrix that changes from step to step."""

    def step(carry, x):
        h, m = carry
        both = x @ weights["wide"]
        h = bp.sigmoid(both[..., :WIDTH]) * bp.tanh(both[..., WIDTH:] + h @ m)
        return (h, m * 0.9), h @ weights["output"]

    return bp.scan(step, (h, weights["state"]), xs)


def of_vectors(weights, h, xs):
    return recurrence(weights, h[0], xs[:, 0])


def of_layers(weights, h, xs):
    """A scan over the steps of a scan."""
    return bp.scan(lambda carry, _: (recurrence(weights, h, carry)[1][1], carry.sum()), xs, None, length=2)


def unused(weights, h, xs):
    return bp.scan(lambda h, x: (bp.tanh(h @ weights["state"]), h), h, xs)


def of_input_alone(weights, h, xs):
    return bp.scan(lambda h, x: (h + 1, (x @ weights["input"], x @ weights["input"])), h, xs)


def reversed_(weights, h, xs):
    return recurrence(weights, h, xs, reverse=True)


LOOPS = [recurrence, reversed_, gated, of_vectors, of_layers, unused, of_input_alone]


def inputs(dtype="float32"):
    shapes = {"input": (WIDTH, WIDTH), "state": (WIDTH, WIDTH), "bias": (WIDTH,), "output": (WIDTH, 5), "wide": (WIDTH, 2 * WIDTH)}
    weights = {name: normal(*shape, seed=i, dtype=dtype) for i, (name, shape) in enumerate(shapes.items())}
    return weights, normal(ROWS, WIDTH, seed=8, dtype=dtype), normal(STEPS, ROWS, WIDTH, seed=9, dtype=dtype)


def close(found, expected, tolerance):
    found, expected = bp.tree.leaves(found), bp.tree.leaves(expected)
    assert len(found) == len(expected)
    for a, b in zip(found, expected):
        assert a.shape == b.shape and a.dtype == b.dtype
        np.testing.assert_allclose(np.asarray(a.astype("float64")), np.asarray(b.astype("float64")), rtol=tolerance, atol=tolerance)


def total(loop):
    return lambda *args: sum((bp.sum(bp.sin(leaf)) for leaf in bp.tree.leaves(loop(*args))), start=bp.asarray(0.0))


@pytest.mark.parametrize("dtype, tolerance", [("float32", 2e-5), ("float64", 1e-12), ("bfloat16", 0.1)])
@pytest.mark.parametrize("loop", LOOPS, ids=lambda f: f.__name__)
def test_values_are_those_of_the_steps(loop, dtype, tolerance):
    args = inputs(dtype)
    close(bp.compile(loop)(*args), loop(*args), tolerance)


@pytest.mark.parametrize("loop", LOOPS, ids=lambda f: f.__name__)
def test_gradients_are_those_of_the_steps(loop):
    args = inputs()
    for wanted in (0, 1, 2, (0, 1, 2)):
        gradient = bp.grad(total(loop), argnums=wanted)
        close(bp.compile(gradient)(*args), gradient(*args), 1e-4)


@pytest.mark.parametrize("loop", [recurrence, gated], ids=lambda f: f.__name__)
def test_rows_and_derivatives_of_derivatives_are_those_of_the_steps(loop):
    weights, h, xs = inputs()
    rows = bp.vmap(loop, in_axes=(None, 0, None))
    many = bp.stack([h, h + 1])
    close(bp.compile(rows)(weights, many, xs), rows(weights, many, xs), 2e-5)

    def along(weights, h, xs):
        return bp.jvp(bp.grad(total(loop)), (weights, h, xs), (bp.tree.map(bp.ones_like, weights), h, xs))[1]

    close(bp.compile(along)(weights, h, xs), along(weights, h, xs), 1e-3)


def test_one_product_of_all_steps_stands_in_the_plan():
    args = inputs()
    plan = str(bp.explain_plan(recurrence)(*args))
    assert f"float32[{STEPS}, {ROWS}, {WIDTH}]" in plan.split("bp::scan")[0] and plan.count("= bp::matmul") == 2, plan
    plan = str(bp.explain_plan(bp.grad(total(recurrence)))(*args))
    assert f"[{STEPS * ROWS}, {WIDTH}]" in plan, plan


def test_a_graph_keeps_the_products_where_they_were():
    """What is saved, read and differentiated is what was written; plans alone move them."""
    graph = bp.make_graph(recurrence)(*inputs())
    assert str(graph).split("bp::scan")[0].count("= bp::matmul") == 3
