"""A memory budget: the same bits, from fewer bytes between the ops."""

import re

import backplane as bp
import numpy as np
import pytest
from test_make_graph import same, tensor

WIDTH, ROWS, LAYERS = 64, 32, 8
VALUE = WIDTH * ROWS * 4  # bytes of what a layer gives


def network(weights, x):
    for w in weights:
        x = bp.tanh(x @ w) * 1.5 + 0.1
    return bp.sum(x**2)


def arguments():
    return [tensor(WIDTH, WIDTH, seed=i) * 0.1 for i in range(LAYERS)], tensor(ROWS, WIDTH, seed=99)


def kept_bytes(text):
    """Between the nodes, and without a budget; how many nodes run again."""
    kept = re.search(r"memory between nodes: (\d+) bytes", text)
    found = re.search(r"memory budget (\d+) bytes.*: (kept|not kept), (\d+) nodes run again; without that (\d+) bytes", text)
    budget, verdict, nodes, without = found.groups()
    assert (int(kept[1]) <= int(budget)) == (verdict == "kept")
    return int(kept[1]), int(without), int(nodes)


def test_a_step_of_training_fits_into_less():
    step = bp.value_and_grad(network)
    whole = bp.compile(step)(*arguments())
    for budget in (12 * VALUE, 9 * VALUE, 0):
        found = bp.compile(step, memory_budget=budget)(*arguments())
        for a, b in zip(bp.tree.leaves(found), bp.tree.leaves(whole), strict=True):
            np.testing.assert_array_equal(a.numpy(), b.numpy())
        kept, without, nodes = kept_bytes(bp.explain_plan(step, memory_budget=budget)(*arguments()))
        assert nodes > 0
        assert kept < without
        assert kept <= budget or budget == 0


def test_a_budget_that_is_kept_changes_nothing():
    step = bp.value_and_grad(network)
    kept, without, nodes = kept_bytes(bp.explain_plan(step, memory_budget=1 << 30)(*arguments()))
    assert kept == without
    assert nodes == 0


def test_a_budget_that_nothing_helps_is_said_not_to_be_kept():
    def products(x, w):
        total = x
        for _ in range(16):
            total = total + x @ w
        return total

    x = tensor(WIDTH, WIDTH)
    kept, without, _ = kept_bytes(bp.explain_plan(lambda x, w: products(x, w) * 2.0, memory_budget=100)(x, x))
    assert kept <= without


def test_a_copy_in_another_order_counts():
    def copies(w):
        flat = [bp.reshape(bp.permute_dims(w * float(i + 1), (1, 0)), (-1,)) for i in range(6)]
        total = flat[0]
        for part in reversed(flat):
            total = bp.cumulative_sum(total + part)
        return total

    w = tensor(WIDTH, WIDTH)
    kept, without, nodes = kept_bytes(bp.explain_plan(copies, memory_budget=4 * WIDTH * WIDTH * 4)(w))
    assert nodes > 0
    assert kept < without


def held_for_the_backward_pass(compiled, weights, x):
    compiled(weights, x)  # traces
    before = bp.memory_stats()["allocated_bytes"]
    loss = compiled(weights, x)
    held = bp.memory_stats()["allocated_bytes"] - before
    loss.backward()
    gradients = [w.grad.numpy() for w in weights]
    for w in weights:
        w.grad = None
    return held, gradients


def test_the_tape_holds_less():
    weights, x = arguments()
    for w in weights:
        w.requires_grad = True
    whole, expected = held_for_the_backward_pass(bp.compile(network), weights, x)
    less, found = held_for_the_backward_pass(bp.compile(network, memory_budget=8 * VALUE), weights, x)
    assert whole >= 2 * LAYERS * VALUE
    assert less <= whole / 2
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_array_equal(a, b)


def test_what_is_drawn_is_drawn_once():
    def noisy(weights, x, generator):
        for w in weights:
            x = bp.dropout(bp.tanh(x @ w), p=0.5, generator=generator)
        return bp.sum(x)

    weights, x = arguments()
    whole = bp.compile(bp.value_and_grad(noisy))(weights, x, bp.Generator(3))
    less = bp.compile(bp.value_and_grad(noisy), memory_budget=0)(weights, x, bp.Generator(3))
    for a, b in zip(bp.tree.leaves(less), bp.tree.leaves(whole), strict=True):
        np.testing.assert_array_equal(a.numpy(), b.numpy())


def test_any_size_has_the_budget():
    compiled = bp.compile(bp.grad(lambda x: bp.sum(bp.sin(bp.exp(bp.sin(x))))), dynamic={"x": {0: "n"}}, memory_budget=0)
    for size in (5, 9):
        same(compiled(tensor(size)), bp.grad(lambda x: bp.sum(bp.sin(bp.exp(bp.sin(x)))))(tensor(size)))


@pytest.mark.parametrize("budget", [-1, 2.5, "1 GiB", 1 << 64])
def test_another_budget_is_refused(budget):
    with pytest.raises(TypeError, match="compile: argument memory_budget: found .*, expected a number of bytes"):
        bp.compile(network, memory_budget=budget)
