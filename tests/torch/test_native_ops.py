"""Native kernels of torch.ops.bp: they are there once the native part is built, and compute what the Python kernels compute."""

import threading

import pytest
import torch

import backplane as bp
import backplane.torch
from backplane.torch import _build, _native_ops

if _build.load_cached() is None:
    pytest.skip("the native part has not been compiled: python -m backplane.torch build", allow_module_level=True)

ops = torch.ops.bp


def backward(make, *inputs, calls=3):
    """The gradients of the last of several equal calls: the third call runs the program that the second one made."""
    for _ in range(calls):
        leaves = [x.detach().clone().requires_grad_(x.is_floating_point()) for x in inputs]
        result = make(*leaves)
        found = torch.autograd.grad(result, [x for x in leaves if x.requires_grad], torch.full_like(result, 0.5))
    return found


def test_ops_without_random_numbers_are_native():
    assert len(_native_ops.registered) > 330 and "bp::dropout" not in _native_ops.registered


@pytest.mark.parametrize(
    "ours, theirs, shapes",
    [
        (lambda x, y: ops.add(x, y), lambda x, y: x + y, [(3, 4), (4,)]),
        (lambda x, y: ops.add(x, y), lambda x, y: x + y, [(3, 4), (3, 4)]),
        (lambda x, y: ops.multiply(x, y), lambda x, y: x * y, [(3, 1), (1, 4)]),
        (lambda x, y: ops.matmul(x, y), lambda x, y: x @ y, [(3, 4), (4, 2)]),
        (lambda x: ops.softmax(x, [-1]), lambda x: torch.softmax(x, -1), [(3, 4)]),
        (lambda x, y: ops.concat([x, y], 1), lambda x, y: torch.cat([x, y], 1), [(3, 4), (3, 2)]),
        (lambda x: ops.topk(x, 2)[0], lambda x: torch.topk(x, 2)[0], [(3, 4)]),
        (lambda x, w, b: ops.layer_norm(x, w, b), lambda x, w, b: torch.nn.functional.layer_norm(x, (4,), w, b), [(3, 4), (4,), (4,)]),
    ],
)
def test_backward_programs_are_pytorchs_derivatives(ours, theirs, shapes):
    for grown in (0, 1):  # other sizes are another program
        inputs = [torch.randn([n + grown if n == 3 else n for n in shape], dtype=torch.float64) for shape in shapes]
        for calls in (1, 2, 3, 4):
            for found, expected in zip(backward(ours, *inputs, calls=calls), backward(theirs, *inputs, calls=1), strict=True):
                torch.testing.assert_close(found, expected)
                assert found.shape == expected.shape


def test_indices_have_no_cotangent():
    def take(x, indices):
        return ops.take(x, indices, 0)

    x, indices = torch.randn(5, 2), torch.tensor([4, 0, 4])
    for calls in (1, 3):
        (found,) = backward(take, x, indices, calls=calls)
        assert found[4].tolist() == [1.0, 1.0] and found[1].tolist() == [0.0, 0.0]


def test_lists_with_absent_tensors():
    def put(x, values):
        return ops.index_put(x, [None], values, accumulate=True)

    for calls in (1, 4):
        x, values = backward(put, torch.randn(4, 3), torch.randn(3), calls=calls)
        assert x.unique().tolist() == [0.5] and values.tolist() == [2.0, 2.0, 2.0]


def test_gradients_do_not_share_memory():
    for _ in range(4):
        x, y = torch.ones(3, requires_grad=True), torch.ones(3, requires_grad=True)
        ops.add(x, y).sum().backward()
        x.grad.add_(1)
        assert y.grad.tolist() == [1.0, 1.0, 1.0]


def test_second_derivatives_after_programs():
    x = torch.tensor([0.3, -1.2], dtype=torch.float64)
    backward(lambda x: ops.tanh(x), x)
    leaf = x.clone().requires_grad_()
    (first,) = torch.autograd.grad(ops.tanh(leaf).sum(), leaf, create_graph=True)
    (second,) = torch.autograd.grad(first.sum(), leaf)
    torch.testing.assert_close(second, -2 * torch.tanh(x) * (1 - torch.tanh(x) ** 2))
    torch.testing.assert_close(torch.func.vmap(torch.func.grad(ops.tanh))(x), 1 - torch.tanh(x) ** 2)
    (_, tangent) = torch.func.jvp(ops.tanh, (x,), (torch.ones_like(x),))
    torch.testing.assert_close(tangent, 1 - torch.tanh(x) ** 2)


def test_a_result_without_a_cotangent_counts_as_zero():
    for _ in range(4):
        x = (torch.randn(3, 3, dtype=torch.float64) + 3 * torch.eye(3)).requires_grad_()
        sign, logarithm = ops.slogdet(x)
        logarithm.backward()
        torch.testing.assert_close(x.grad, torch.linalg.inv(x.detach()).mT)


def test_saved_tensors_are_guarded():
    x = torch.ones(2, requires_grad=True)
    y = x * 1
    result = ops.multiply(y, y).sum()
    with torch.no_grad():
        y.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        result.backward()
    result = ops.tanh(x).sum()
    result.backward()
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        result.backward()


def test_errors_are_backplanes():
    with pytest.raises(bp.ShapeError, match="matmul"):
        ops.matmul(torch.ones(2, 3), torch.ones(2, 3))
    with pytest.raises(bp.DtypeError, match="bitwise_and"):
        ops.bitwise_and(torch.ones(2), torch.ones(2))
    with pytest.raises(bp.OutOfRangeError):
        ops.cumsum(torch.ones(2), 3)
    with pytest.raises(bp.ArgumentTypeError, match="to_dense"):
        ops.sin(torch.ones(2, 2).to_sparse())


def test_results_own_their_memory():
    x = torch.arange(3.0)
    y = ops.positive(x)
    y[0] = 9
    assert x.tolist() == [0.0, 1.0, 2.0]
    strided = torch.arange(6.0).reshape(2, 3).T
    assert ops.sin(strided).is_contiguous() and torch.allclose(ops.sin(strided), strided.sin())
    assert ops.sum(torch.ones(0, 3), [0]).tolist() == [0.0, 0.0, 0.0]
    del x
    assert y.tolist() == [9.0, 1.0, 2.0]


def test_calls_from_several_threads():
    failures = []

    def work(seed):
        x = torch.full((50,), float(seed), requires_grad=True)
        for _ in range(200):
            x.grad = None
            ops.multiply(x, x).sum().backward()
            if x.grad[0].item() != 2 * seed:
                failures.append(seed)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert failures == []


def test_the_default_of_an_optional_list():
    x = torch.randn(2, 3)
    torch.testing.assert_close(ops.normalize(x), torch.nn.functional.normalize(x))
    torch.testing.assert_close(ops.normalize(x, axis=None), x / x.norm())
    torch.testing.assert_close(torch.func.vmap(ops.normalize)(x[None].expand(2, 2, 3)), torch.nn.functional.normalize(x).expand(2, 2, 3))
