"""Results of a compiled function that are arguments, tensors from outside, or views of these or of one another share their memory
under the tape and under transforms, as they do in the function itself."""

import backplane as bp
import numpy as np
import pytest


def view_of_an_argument(a):
    return a[1:]


def view_beside_its_base(a):
    y = a * 2
    return y[1:], y


def views_of_views(a):
    y = a * 2
    return y[1:][:1], y, y[1:], y


def the_argument(a):
    return a


def reshaped(a):
    y = a * 2
    return y, y.reshape((3, 1))


def one_tensor_twice(a):
    p = a * 1.1
    p.mul_(3)
    part = p[:1]
    return part, part


def views_of_what_is_no_result(a):
    p = a * 1.1
    return p[:1], p[:2], p[1:]


FUNCTIONS = [one_tensor_twice, views_of_what_is_no_result, view_of_an_argument, view_beside_its_base, views_of_views, the_argument, reshaped]


def loss_of(function):
    def loss(x):
        h = x * 1
        results = bp.tree.leaves(function(h))
        first = results[0]
        first *= 3
        return sum(((r * r).sum() for r in results), (h * h).sum())

    return loss


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_gradients_are_those_of_the_function(function):
    x = bp.asarray([1.0, 2.0, 3.0], dtype=bp.float64)
    own, compiled = loss_of(function), loss_of(bp.compile(function))
    assert compiled(x).item() == own(x).item()
    np.testing.assert_array_equal(bp.grad(compiled)(x).numpy(), bp.grad(own)(x).numpy())
    np.testing.assert_array_equal(bp.vmap(compiled)(bp.stack([x, -x])).numpy(), bp.vmap(own)(bp.stack([x, -x])).numpy())
    for found, wanted in zip(bp.jvp(compiled, (x,), (x,)), bp.jvp(own, (x,), (x,))):
        assert found.item() == wanted.item()
    second = [bp.grad(lambda x: bp.grad(f)(x).sum())(x).numpy() for f in (compiled, own)]
    np.testing.assert_array_equal(*second)
    gradients = []
    for function in (compiled, own):
        leaf = x.copy().requires_grad_()
        function(leaf).backward()
        gradients.append(leaf.grad.numpy())
    np.testing.assert_array_equal(*gradients)


def test_a_tensor_from_outside_is_returned_itself():
    outside = bp.ones(3)
    function = bp.compile(lambda a: (a * 2, outside))
    _, found = function(bp.ones(3).requires_grad_())
    found += 1
    assert outside.tolist() == [2, 2, 2]


def test_higher_derivatives_of_a_compiled_function_stop_where_its_own_do():
    def f(a):
        return (a.detach() * a * a).sum()

    x = bp.asarray([0.5, 0.25])
    for make in (bp.hessian, lambda f: bp.grad(lambda a: bp.grad(f)(a).sum()), lambda f: bp.jacrev(bp.jacfwd(f))):
        assert make(bp.compile(f))(x).tolist() == make(f)(x).tolist()
    leaf = x.copy().requires_grad_()
    (first,) = bp.gradients([bp.compile(f)(leaf)], [leaf], create_graph=True)
    assert bp.gradients([first.sum()], [leaf])[0].tolist() == [1.0, 0.5]
