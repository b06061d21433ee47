"""A function that compile made with state= inside a transform gives the derivatives of the function itself."""

import backplane as bp
import pytest


def counted(state):
    def f(x):
        state["calls"] += 1
        return (x * x * state["factor"]).sum()

    return f


def state_of_one():
    return {"calls": bp.zeros(()), "factor": bp.asarray([2.0, 3.0])}


TRANSFORMS = {
    "grad": lambda f, x: bp.grad(f)(x),
    "vjp": lambda f, x: bp.vjp(f, x)[1](bp.asarray(1.0)),
    "value_and_grad": lambda f, x: bp.value_and_grad(f)(x),
    "jvp": lambda f, x: bp.jvp(f, (x,), (x,)),
    "vmap of grad": lambda f, x: bp.vmap(bp.grad(f))(x[None]),
    "compile of grad": lambda f, x: bp.compile(bp.grad(f))(x),
    "hessian": lambda f, x: bp.hessian(f)(x),
}


@pytest.mark.parametrize("called", [False, True], ids=["first call", "later call"])
@pytest.mark.parametrize("transform", TRANSFORMS)
def test_derivatives_are_those_of_the_function(transform, called):
    x, ours, other = bp.asarray([5.0, 7.0]), state_of_one(), state_of_one()
    f, step = counted(other), bp.compile(counted(ours), state=[ours])
    if called:
        assert step(x).item() == f(x).item()
    found, expected = TRANSFORMS[transform](step, x), TRANSFORMS[transform](f, x)
    assert all(bp.array_equal(one, two) for one, two in zip(bp.tree.leaves(found), bp.tree.leaves(expected)))
    assert step(x).item() == f(x).item()
    assert ours["calls"].item() >= other["calls"].item() > 0


def test_a_module_in_the_state():
    bp.manual_seed(0)
    module, x = bp.nn.Linear(2, 3), bp.ones((4, 2))
    step = bp.compile(lambda x: bp.tanh(module(x)).sum(), state=[module])
    expected = bp.grad(lambda x: bp.tanh(module(x)).sum())(x)
    assert bp.allclose(bp.grad(step)(x), expected)
    step(x)
    assert bp.allclose(bp.grad(step)(x), expected) and bp.any(expected != 0)
