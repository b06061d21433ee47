"""Gradients of many parts of one tensor: each is added to the sum in place, on the tape and in graphs, by the allocator's own counts."""

import backplane as bp
import numpy as np
import pytest

N = 1 << 14  # elements: 128 KiB in float64


def tensor(*shape, seed=0):
    return bp.asarray(np.random.default_rng(seed).standard_normal(shape))


def places(size, *shape, seed=3):
    return bp.asarray(np.random.default_rng(seed).integers(-size, size, shape))


MATRIX = (128, 128)
AT = places(128, 24, 16)
ALONG = places(128, 24, 128, 4)
# Each takes its part k of 24; the shape of the tensor.
PARTS = {
    "x[k]": (lambda x, k: x[k], MATRIX),
    "x[:, k]": (lambda x, k: x[:, k], MATRIX),
    "x[-k - 1:]": (lambda x, k: x[-k - 1 :], MATRIX),
    "x[k:k + 9]": (lambda x, k: x[k : k + 9], MATRIX),
    "x[::-k - 2]": (lambda x, k: x[:: -k - 2], MATRIX),
    "x[:, k:k + 3, None]": (lambda x, k: x[:, k : k + 3, None], MATRIX),
    "x[at]": (lambda x, k: x[AT[k]], MATRIX),
    "x[:, at]": (lambda x, k: x[:, AT[k]], MATRIX),
    "x[at, at]": (lambda x, k: x[AT[k], AT[23 - k]], MATRIX),
    "take": (lambda x, k: bp.take(x, AT[k], axis=1), MATRIX),
    "take_along_axis": (lambda x, k: bp.take_along_axis(x, ALONG[k], axis=1), MATRIX),
    "gather": (lambda x, k: x.gather(1, ALONG[k]), MATRIX),
    "diagonal": (lambda x, k: bp.diagonal(x, k - 12), MATRIX),
    "windows side by side": (lambda x, k: x[k : k + 8].unfold(1, 16, 16), MATRIX),
    "transposed columns": (lambda x, k: x.T[k], MATRIX),
    "of a reshaped view": (lambda x, k: x.reshape(64, 256)[k], MATRIX),
    "real parts": (lambda x, k: x[k] * 1.0, MATRIX),
}


def loss(part, weights):
    def of(x):
        total = 0.0
        for k in range(24):
            total = total + bp.sum(bp.sin(part(x, k)) * weights[k])
        return total

    return of


def by_tape(function, x):
    leaf = x.detach()
    leaf.requires_grad = True
    function(leaf).backward()
    return leaf.grad


def peak_of(call):
    call()
    before = bp.memory_stats("cpu")["allocated_bytes"]
    bp.reset_peak_memory_stats("cpu")
    call()
    return bp.memory_stats("cpu")["peak_bytes"] - before


@pytest.mark.parametrize("name", PARTS)
def test_the_gradient_is_the_sum_of_the_parts(name):
    part, shape = PARTS[name]
    x, weights = tensor(*shape), np.linspace(-1, 2, 24)
    expected = np.zeros(shape)
    for k in range(24):
        expected += np.asarray(bp.grad(lambda x: bp.sum(bp.sin(part(x, k)) * weights[k]))(x))
    function = loss(part, weights)
    for found in (by_tape(function, x), bp.grad(function)(x), bp.compile(bp.grad(function))(x)):
        np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-12, atol=1e-13)


# Each of these makes a view of the whole before its part, and the cotangents of those views wait side by side on the tape.
THROUGH_VIEWS = ("transposed columns", "of a reshaped view")


@pytest.mark.parametrize("name", [name for name in PARTS if name not in THROUGH_VIEWS])
def test_the_parts_are_added_to_one_tensor(name):
    part, shape = PARTS[name]
    x, function = tensor(*shape), loss(part, np.linspace(-1, 2, 24))
    saved = sum(int(np.asarray(part(x, k)).size) for k in range(24)) * 8  # sin keeps its argument; a view keeps nothing
    assert peak_of(lambda: by_tape(function, x)) < 1.6 * x.nbytes + 3 * saved
    assert peak_of(lambda: bp.grad(function)(x)) < 1.6 * x.nbytes + 3 * saved
    compiled = bp.compile(bp.grad(function))
    before = bp.memory_stats("cpu")["allocated_bytes"]
    compiled(x)
    kept = bp.memory_stats("cpu")["allocated_bytes"] - before
    assert kept + peak_of(lambda: compiled(x)) < 1.6 * x.nbytes + 2 * saved


def test_second_derivatives_of_parts():
    x = tensor(6, 4)
    at = bp.asarray([1, 1, 3])

    def f(x):
        return bp.sum(x[0] ** 3) + bp.sum(x[at] ** 3) + bp.sum(x[1:5] ** 2 * x[2:])

    hessian = np.asarray(bp.hessian(f)(x)).reshape(24, 24)
    numeric = np.zeros((24, 24))
    for i in range(24):
        step = np.zeros(24)
        step[i] = 1e-5
        step = bp.asarray(step.reshape(6, 4))
        numeric[i] = np.asarray((bp.grad(f)(x + step) - bp.grad(f)(x - step)) / 2e-5).reshape(-1)
    np.testing.assert_allclose(hessian, numeric, atol=1e-5)
    leaf = x.detach()
    leaf.requires_grad = True
    (first,) = bp.gradients([f(leaf)], [leaf], create_graph=True)
    (second,) = bp.gradients([first.sum()], [leaf])
    np.testing.assert_allclose(np.asarray(second).reshape(-1), hessian.sum(0), atol=1e-12)


def test_a_gradient_that_a_hook_keeps_does_not_change_after():
    x = tensor(8, 4)
    x.requires_grad = True
    kept = []
    y = x * 1.0
    part = y[2]
    part.register_hook(lambda g: kept.append(g))
    ((part * 2).sum() + (y[2] * 3).sum() + (y[1:] * 5).sum()).backward()
    np.testing.assert_array_equal(np.asarray(kept[0]), np.full(4, 2.0))
    expected = np.zeros((8, 4))
    expected[2] = 5
    expected[1:] += 5
    np.testing.assert_array_equal(np.asarray(x.grad), expected)


def test_a_cotangent_that_the_caller_gave_is_not_written():
    x = tensor(8, 4)
    x.requires_grad = True
    given = bp.ones((8, 4), dtype=bp.float64)
    y = x * 1.0
    z = y + 0.0 * y[0]
    z.backward(given)
    np.testing.assert_array_equal(np.asarray(given), np.ones((8, 4)))


def test_batched_parts_are_added_to_what_is_not_batched():
    x, weights = tensor(8, 4), tensor(3, 4)
    per_row = bp.vmap(bp.grad(lambda x, w: bp.sum(x[0]) + bp.sum(x[1] * w) + bp.sum(x[bp.asarray([2, 2])] * w)), in_axes=(None, 0))
    found = np.asarray(per_row(x, weights))
    expected = np.zeros((3, 8, 4))
    expected[:, 0] = 1
    expected[:, 1] = np.asarray(weights)
    expected[:, 2] = 2 * np.asarray(weights)
    np.testing.assert_array_equal(found, expected)
