"""What is changed under no_grad, or through what it was detached to, keeps its history in a transform, as it does on the tape; and a view
that is looked at there has its base's."""

import backplane as bp
import numpy as np
import pytest


def add(y):
    y += 10


def replace(y):
    y[...] = bp.ones(3) * 5


def through_a_view(y):
    y[:2] *= 3


def through_a_view_of_a_view(y):
    y[1:][0] = 7.0


def through_data(y):
    y.data += 10


def two_changes(y):
    add(y)
    through_a_view(y)


def through_what_it_was_detached_to(y):
    d = y.detach()
    d += 10
    d[1:] *= 2


def through_a_detached_view(y):
    y[1:].detach()[0] = 7.0


DETACHED = [through_what_it_was_detached_to, through_a_detached_view]
CHANGES = [add, replace, through_a_view, through_a_view_of_a_view, through_data, two_changes, *DETACHED]


def changed(change):
    def function(x):
        y = x * x
        with bp.no_grad():
            change(y)
        return bp.sum(y * y * x)

    return function


def point():
    return bp.asarray([1.0, 2.0, 3.0], dtype=bp.float64)


def on_the_tape(function):
    x = point().requires_grad_()
    function(x).backward()
    return x.grad.numpy()


@pytest.mark.parametrize("change", CHANGES, ids=lambda f: f.__name__)
def test_gradients_are_those_of_the_tape(change):
    function = changed(change)
    wanted = on_the_tape(function)
    y = np.asarray([1.0, 4.0, 9.0])
    np.testing.assert_array_equal(wanted, 2 * _values(change) * 2 * point().numpy() * point().numpy() + _values(change) ** 2)
    assert not np.array_equal(_values(change), y)
    np.testing.assert_array_equal(bp.grad(function)(point()).numpy(), wanted)
    np.testing.assert_array_equal(bp.vjp(function, point())[1](bp.asarray(1.0, dtype=bp.float64))[0].numpy(), wanted)
    if change in DETACHED or change is through_data:  # what is written down has no op for it
        with pytest.raises(bp.ArgumentValueError, match="refused inside make_graph"):
            bp.make_graph(bp.grad(function))(point())
    else:
        np.testing.assert_array_equal(bp.make_graph(bp.grad(function))(point())(point()).numpy(), wanted)


def _values(change):
    y = point() * point()
    change(y)
    return y.numpy()


@pytest.mark.parametrize("change", CHANGES, ids=lambda f: f.__name__)
def test_inside_vmap_the_gradient_outside_is_that_of_the_tape(change):
    wanted = on_the_tape(changed(change))
    rows = bp.stack([point(), point()])
    np.testing.assert_array_equal(bp.vmap(bp.grad(changed(change)))(rows).numpy(), [wanted, wanted])
    np.testing.assert_array_equal(bp.grad(lambda x: bp.sum(bp.vmap(changed(change))(x)))(rows).numpy(), [wanted, wanted])
    leaf = bp.copy(rows).requires_grad_()
    bp.sum(bp.vmap(changed(change))(leaf)).backward()
    np.testing.assert_array_equal(leaf.grad.numpy(), [wanted, wanted])


@pytest.mark.parametrize("change", DETACHED, ids=lambda f: f.__name__)
def test_what_is_detached_is_written_through_where_changes_are_recorded(change):
    def function(x):
        y = x * x
        change(y)
        return y

    y = point() * point()
    change(y)
    for found, tangent in (bp.jvp(function, (point(),), (bp.ones(3, dtype=bp.float64),)), bp.jvp(bp.vmap(function), (point()[None],), (bp.ones((1, 3), dtype=bp.float64),))):
        np.testing.assert_array_equal(found.reshape(3).numpy(), y.numpy())
        np.testing.assert_array_equal(tangent.reshape(3).numpy(), 2 * point().numpy())
    np.testing.assert_array_equal(bp.vmap(function)(point()[None])[0].numpy(), y.numpy())
    np.testing.assert_array_equal(bp.grad(lambda x: bp.sum(function(x)))(point()).numpy(), 2 * point().numpy())
    second = bp.grad(lambda x: bp.sum(bp.grad(lambda x: bp.sum(function(x) * x))(x)))(point())
    leaf = point().requires_grad_()
    (first,) = bp.gradients([bp.sum(function(leaf) * leaf)], [leaf], create_graph=True)
    np.testing.assert_array_equal(second.numpy(), bp.gradients([bp.sum(first)], [leaf])[0].numpy())


def test_what_it_was_detached_to_has_a_history_of_its_own():
    def function(x, scale):
        y = x * 2
        d = y.detach()
        d *= scale
        y *= 2
        return bp.sum(d)

    x, scale = point().requires_grad_(), point().requires_grad_()
    function(x, scale).backward()
    found = bp.grad(function, argnums=(0, 1))(point(), point())
    assert x.grad is None and found[0].tolist() == [0, 0, 0]
    np.testing.assert_array_equal(found[1].numpy(), scale.grad.numpy())


def test_what_is_written_gives_no_history_to_a_tensor_without():
    def function(scale):
        y = bp.zeros(3, dtype=bp.float64)
        d = y.detach()
        d += scale
        e = d.detach()
        e[0] = scale[1]
        return bp.sum(y * y) + 0 * bp.sum(scale)

    assert bp.grad(function)(point()).tolist() == [0, 0, 0]
    assert bp.jvp(function, (point(),), (point(),))[1].item() == 0
    scale = point().requires_grad_()
    function(scale).backward()
    assert scale.grad.tolist() == [0, 0, 0]


def test_what_is_detached_shows_what_its_tensor_becomes():
    def function(x):
        y = x * x
        d = y.detach()
        y += 1
        return bp.sum(d * y)

    np.testing.assert_array_equal(bp.grad(function)(point()).numpy(), on_the_tape(function))
    assert bp.vmap(function)(point()[None])[0].item() == function(point()).item()


def test_second_derivatives_are_those_of_the_tape():
    def function(x):
        y = bp.sin(x)
        with bp.no_grad():
            y *= 0.5
        return bp.sum(y * y * y)

    leaf = point().requires_grad_()
    (first,) = bp.gradients([function(leaf)], [leaf], create_graph=True)
    wanted = bp.gradients([bp.sum(first)], [leaf])[0].numpy()
    np.testing.assert_array_equal(bp.grad(lambda x: bp.sum(bp.grad(function)(x)))(point()).numpy(), wanted)
    np.testing.assert_allclose(bp.jacrev(bp.grad(function))(point()).numpy(), np.diag(wanted), rtol=1e-14)
    outer = point().requires_grad_()
    bp.sum(bp.grad(function)(outer)).backward()
    np.testing.assert_array_equal(outer.grad.numpy(), wanted)


def test_a_view_that_is_looked_at_under_no_grad_has_its_history():
    def function(x):
        y = x * 2
        view = y[:2]
        y *= 3
        with bp.no_grad():
            bp.sum(view)
        return bp.sum(view**2)

    np.testing.assert_array_equal(bp.grad(function)(point()).numpy(), on_the_tape(function))
    np.testing.assert_array_equal(on_the_tape(function), [72.0, 144.0, 0.0])


def test_what_becomes_one_per_row_is_not_lost_in_silence():
    leaf = point().requires_grad_()

    def function(row):
        y = bp.zeros(3, dtype=bp.float64) + leaf
        with bp.no_grad():
            y += row
        return bp.sum(y)

    with pytest.raises(bp.ArgumentValueError, match="lose its gradient"):
        bp.vmap(function)(bp.ones((4, 3), dtype=bp.float64))
