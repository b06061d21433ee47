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


FORWARD = {
    "vmap": lambda f, x: bp.vmap(f)(bp.stack([x, x])),
    "jvp": lambda f, x: bp.jvp(f, (x,), (x,)),
    "jvp of vmap": lambda f, x: bp.jvp(bp.vmap(f), (x[None],), (x[None],)),
}


@pytest.mark.parametrize("transform", FORWARD)
def test_what_a_call_inside_a_transform_replaces_outlives_the_transform(transform):
    state, x = {"calls": bp.asarray(1.0)}, bp.asarray([5.0, 7.0])

    @bp.compile(state=[state])
    def step(x):
        state["calls"] = state["calls"] * 2
        return (x * x).sum()

    expected = FORWARD[transform](lambda x: (x * x).sum(), x)
    for calls in (2.0, 4.0):
        found = FORWARD[transform](step, x)
        assert all(bp.array_equal(one, two) for one, two in zip(bp.tree.leaves(found), bp.tree.leaves(expected)))
        assert state["calls"].item() == calls
    assert step(x).item() == 74 and state["calls"].item() == 8


@pytest.mark.parametrize("shape", [(), (3,)], ids=["same shape", "another shape"])
@pytest.mark.parametrize("transform", [*FORWARD, "scan", "fori_loop"])
def test_a_value_of_the_transform_stays_out_of_the_state(transform, shape):
    old = bp.asarray(1.0)
    state, x = {"sum": old}, bp.asarray([5.0, 7.0])

    @bp.compile(state=[state])
    def step(x):
        state["sum"] = bp.broadcast_to(x.sum(), shape)
        return (x * x).sum()

    loops = {
        "scan": lambda f, x: bp.scan(lambda c, row: (c + f(row), None), bp.asarray(0.0), x[None]),
        "fori_loop": lambda f, x: bp.fori_loop(0, 2, lambda i, c: c + f(x * c), bp.asarray(0.0)),
    }
    with pytest.raises(bp.ArgumentValueError):
        {**FORWARD, **loops}[transform](step, x)
    assert state["sum"] is old and old.item() == 1
    assert step(x).item() == 74 and bp.array_equal(state["sum"], bp.full(shape, 12.0))
