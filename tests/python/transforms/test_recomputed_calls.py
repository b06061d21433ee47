"""Laws of an op that has a kernel, and whose derivative goes through its decomposition: recorded, the kernel runs all the same."""

import backplane as bp
import numpy as np
import pytest

from entries_plugin import entries  # noqa: F401


def numbers(size, seed=0):
    return bp.asarray(np.random.default_rng(seed).uniform(0.5, 2, size))


def loss(op, x, y):
    out, sums = op(x, y, scale=3)
    return bp.sum(out * out) + bp.sum(sums)


def expected(x, y):
    """The gradients of `loss`, by hand."""
    x, y = x.numpy(), y.numpy()
    return 18 * x * np.sum(y * y) + 3 * np.sum(y), 18 * y * np.sum(x * x) + 3 * np.sum(x)


def ways(function):
    """Kernels and decompositions that a call took."""
    bp.reset_call_counts()
    result = function()
    counts = bp.call_counts()
    return result, counts.kernels, counts.decompositions


def test_a_recorded_call_runs_the_kernel_alone(entries):
    x, y = numbers(5).requires_grad_(), numbers(7, 1)
    (out, sums), kernels, decompositions = ways(lambda: entries.products(x, y))
    assert (kernels, decompositions) == (1, 0) and out.requires_grad and sums.requires_grad
    plain, _ = entries.products(x.detach(), y)
    assert np.array_equal(out.detach().numpy(), plain.numpy())


def test_the_tape_the_level_and_a_second_derivative_agree(entries):
    x, y = numbers(5), numbers(7, 1)
    want = expected(x, y)
    a, b = x.detach().requires_grad_(), y.detach().requires_grad_()
    loss(entries.products, a, b).backward()
    level = bp.grad(lambda u, v: loss(entries.products, u, v), argnums=(0, 1))(x, y)
    for found in ((a.grad, b.grad), level):
        assert all(np.allclose(f.numpy(), w) for f, w in zip(found, want))
    second = bp.grad(lambda u: bp.sum(bp.grad(lambda v: loss(entries.products, v, y))(u)))(x)
    assert np.allclose(second.numpy(), 18 * np.sum(y.numpy() ** 2))
    (first,) = bp.gradients([loss(entries.products, a, y)], [a], create_graph=True)
    (again,) = bp.gradients([bp.sum(first)], [a])
    assert np.allclose(again.numpy(), 18 * np.sum(y.numpy() ** 2))


def test_one_result_and_one_argument_alone(entries):
    x, y = numbers(4).requires_grad_(), numbers(3, 1)
    _, sums = entries.products(x, y)
    bp.sum(sums).backward()
    assert np.allclose(x.grad.numpy(), np.sum(y.numpy()))
    twice = numbers(4).requires_grad_()
    out, _ = entries.products(twice, twice)
    bp.sum(out).backward()
    assert np.allclose(twice.grad.numpy(), 2 * np.sum(twice.detach().numpy()))


def test_an_argument_that_is_changed_before_the_backward_pass_is_an_error(entries):
    x, y = numbers(4).requires_grad_(), numbers(3, 1)
    out, _ = entries.products(x, y)
    y *= 2
    with pytest.raises(bp.ArgumentValueError, match="products: a tensor that its backward pass needs was changed in place"):
        bp.sum(out).backward()


def test_large_rows_of_a_batch_run_the_kernel(entries):
    x, y = bp.asarray(np.random.default_rng(2).uniform(size=(3, 80))), numbers(90, 1)
    batched = bp.vmap(lambda row: entries.products(row, y)[0])
    out, kernels, decompositions = ways(lambda: batched(x))
    assert decompositions == 0
    assert np.allclose(out.numpy(), x.numpy()[:, :, None] * y.numpy())
    small, _, decompositions = ways(lambda: bp.vmap(lambda row: entries.products(row, y[:3])[0])(x[:, :2]))
    assert decompositions == 0 or small.shape == (3, 2, 3)
    gradients = bp.grad(lambda v: bp.sum(batched(v)))(x)
    assert np.allclose(gradients.numpy(), np.sum(y.numpy()))
    each = bp.vmap(bp.grad(lambda row: bp.sum(entries.products(row, y)[0])))(x)
    assert np.allclose(each.numpy(), np.sum(y.numpy()))


def test_a_graph_of_a_gradient_holds_the_parts_once(entries):
    x, y = numbers(5), numbers(7, 1)
    value_and_grad = bp.value_and_grad(lambda u: loss(entries.products, u, y))
    graph = bp.make_graph(value_and_grad)(x)
    assert "products" not in str(graph)
    value, gradient = bp.compile(value_and_grad)(x)
    assert np.allclose(gradient.numpy(), expected(x, y)[0]) and np.allclose(float(value), float(loss(entries.products, x, y)))
    forward = bp.compile(lambda u: loss(entries.products, u, y))
    leaf = x.detach().requires_grad_()
    forward(leaf).backward()
    assert np.allclose(leaf.grad.numpy(), expected(x, y)[0])


def test_without_a_kernel_the_parts_are_recorded(entries):
    x, y = numbers(5).astype(bp.float16).requires_grad_(), numbers(7, 1).astype(bp.float16)
    (out, _), _, decompositions = ways(lambda: entries.products(x, y))
    bp.sum(out).backward()
    assert decompositions == 0 or x.grad is not None
    assert np.allclose(x.grad.numpy(), np.sum(y.astype(bp.float64).numpy()), rtol=1e-2)
