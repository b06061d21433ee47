"""x[i] = y and x[i] += y inside transforms: the same as the functional form."""

import backplane as bp
import numpy as np
import pytest

X = bp.asarray([1.0, 2.0, 3.0])


def assigned(x, y):
    z = bp.zeros(3) + x
    z[1] = y
    return z


def added(x, y):
    z = bp.copy(x)
    z[0:2] += y * y
    return z


def chained(x, y):
    z = bp.copy(x)
    z *= 2
    part = z[1:]
    part *= y
    z += part.sum()
    return z


JACOBIANS = {
    assigned: ([[1, 0, 0], [0, 0, 0], [0, 0, 1]], [0, 1, 0]),
    added: (np.eye(3), [8, 8, 0]),
    chained: ([[2, 8, 8], [0, 16, 8], [0, 8, 16]], [10, 14, 16]),
}


@pytest.mark.parametrize("jacobian", [bp.jacrev, bp.jacfwd])
@pytest.mark.parametrize("function", list(JACOBIANS))
def test_mutation_is_differentiated(function, jacobian):
    by_x, by_y = jacobian(function, (0, 1))(X, 4.0)
    assert np.asarray(by_x) == pytest.approx(np.asarray(JACOBIANS[function][0]))
    assert np.asarray(by_y) == pytest.approx(np.asarray(JACOBIANS[function][1]))


@pytest.mark.parametrize("function", list(JACOBIANS))
def test_mutation_under_vmap_is_a_loop(function):
    xs, ys = bp.asarray(np.arange(6.0, dtype=np.float32).reshape(2, 3)), bp.asarray([4.0, 5.0])
    found = bp.vmap(function)(xs, ys)
    assert np.asarray(found).tolist() == [function(x, y).tolist() for x, y in zip(xs, ys)]
    found = bp.vmap(function, (None, 0))(xs[0], ys)
    assert np.asarray(found).tolist() == [function(xs[0], y).tolist() for y in ys]


@pytest.mark.parametrize("function", list(JACOBIANS))
def test_mutation_under_both(function):
    ys = bp.asarray([4.0, 5.0])
    found = bp.vmap(bp.grad(lambda y: function(X, y).sum()))(ys)
    assert found.tolist() == [bp.grad(lambda y: function(X, y).sum())(y).item() for y in ys]


def test_an_input_changed_inside_keeps_its_value_outside():
    x = bp.asarray([1.0, 2.0])

    def f(x):
        x[0] = 5.0
        x *= 3
        return x.sum()

    assert bp.grad(f)(x).tolist() == [0.0, 3.0]
    assert bp.jvp(f, (x,), (x,))[1].item() == 6
    assert bp.vmap(f)(x[None] * 1).tolist() == [21.0]
    assert x.tolist() == [1.0, 2.0]


def test_captured_tensors_refuse_batched_values():
    captured = bp.zeros(3)

    def f(x):
        captured[0] = x
        return x

    with pytest.raises(bp.BackplaneError):
        bp.vmap(f)(X)
    assert captured.tolist() == [0.0, 0.0, 0.0]


def test_tensors_made_inside_take_batched_values():
    def f(x):
        z = bp.zeros(2)
        z[1] = x
        return z

    assert bp.vmap(f)(X).tolist() == [[0, 1], [0, 2], [0, 3]]


def test_index_arrays_are_written_through():
    def f(x):
        z = x * 1
        z[bp.asarray([0, 2])] = z[1] * bp.ones(2)
        return z

    assert np.asarray(bp.jacrev(f)(X)).tolist() == [[0, 1, 0], [0, 1, 0], [0, 1, 0]]
    assert np.asarray(bp.jacfwd(f)(X)).tolist() == [[0, 1, 0], [0, 1, 0], [0, 1, 0]]


@pytest.mark.parametrize("transform", ["grad", "jvp", "vmap"])
def test_out_is_refused(transform):
    out = bp.zeros(())

    def f(x):
        return bp.add(x, x, out=out)

    call = {"grad": lambda: bp.grad(f)(1.0), "jvp": lambda: bp.jvp(f, (1.0,), (1.0,)), "vmap": lambda: bp.vmap(f)(X)}
    with pytest.raises(bp.BackplaneError, match="out"):
        call[transform]()
