"""An op whose decomposition returns an argument gives a new tensor: the argument's history and memory are not touched."""

import itertools

import backplane as bp
import pytest

number = itertools.count()


def op_of(decompose, *rules):
    name = f"op{next(number)}"
    op = bp.custom_op(f"handed_on::{name}", f"{name}(Tensor x) -> Tensor", shape="broadcast(x)")
    op.register_decomposition(decompose)
    for rule in rules:
        op.register_vjp(rule)
    return op


def test_a_gradient_of_its_own_is_not_the_arguments():
    op = op_of(lambda x: x, lambda g: -g)
    x = bp.ones(3).requires_grad_()
    op(x)  # not used again
    assert x.is_leaf and x.grad_op is None
    (x * x).sum().backward()
    assert x.grad.tolist() == [2, 2, 2]
    h = bp.zeros(3).requires_grad_()
    k = bp.exp(h)
    op(k).sum().backward(retain_graph=True)
    assert h.grad.tolist() == [-1, -1, -1]
    k.sum().backward()
    assert h.grad.tolist() == [0, 0, 0]


@pytest.mark.parametrize("steps", [3])
def test_a_training_loop_through_it_goes_on(steps):
    op = op_of(lambda x: x, lambda g: g)
    x = bp.ones(3).requires_grad_()
    for _ in range(steps):
        x.grad = None
        op(x).sum().backward()
        assert x.grad.tolist() == [1, 1, 1] and x.is_leaf


def two_of(decompose):
    name = f"op{next(number)}"
    op = bp.custom_op(f"handed_on::{name}", f"{name}(Tensor x) -> (Tensor a, Tensor b)", shape=["broadcast(x)", "broadcast(x)"])
    op.register_decomposition(decompose)
    op.register_vjp(lambda g_a, g_b: g_a + 10 * g_b)
    return op


@pytest.mark.parametrize("decompose", [lambda x: (x, x), lambda x: (lambda y: (y, y))(x * 1), lambda x: (x[...], x.mT.mT)])
def test_two_results_are_two_tensors(decompose):
    x = bp.ones((2, 2)).requires_grad_()
    a, b = two_of(decompose)(x)
    (a + b).sum().backward()
    assert x.is_leaf and x.grad.tolist() == [[11, 11], [11, 11]]
    a, b = two_of(decompose)(bp.ones((2, 2)))
    a += 1
    assert b.tolist() == [[1, 1], [1, 1]]


def test_a_list_is_of_tensors_of_its_own():
    name = f"op{next(number)}"
    op = bp.custom_op(f"handed_on::{name}", f"{name}(Tensor[] xs) -> Tensor[]")
    op.register_decomposition(lambda xs: [*xs, xs[0].mT])
    x = bp.ones((2, 2))
    results = op([x, x])
    for result in results:
        result += 5
    assert x.tolist() == [[1, 1], [1, 1]] and [result[0, 0].item() for result in results] == [6, 6, 6]


@pytest.mark.parametrize("decompose", [lambda x: x.mT.mT, lambda x: x[...], lambda x: x.detach(), lambda x: x[::-1][::-1]])
def test_nor_has_a_view_of_an_argument(decompose):
    x = bp.ones((2, 2))
    y = op_of(decompose)(x)
    y += 5
    assert x.tolist() == [[1, 1], [1, 1]] and y.tolist() == [[6, 6], [6, 6]]


def test_the_result_has_memory_of_its_own():
    op = op_of(lambda x: x)
    x = bp.ones(3)
    y = op(x)
    y += 5
    assert x.tolist() == [1, 1, 1] and y.tolist() == [6, 6, 6]
