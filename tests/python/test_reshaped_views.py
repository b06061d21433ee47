"""A reshape is a view where strides allow and a copy where they do not. Whichever it is, a change of one of the two in
place is seen by the other, in its value and its gradient, as without a gradient or a transform."""

import numpy as np
import pytest

import backplane as bp


def base_is_scaled(b):
    flat = b.reshape(-1)
    b *= 2
    return flat


def base_is_overwritten(b):
    flat = b.reshape(-1)
    b[1:3] = 0.0
    return flat * flat + flat


def view_is_scaled(b):
    flat = b.reshape(-1)
    flat *= 3
    return b


def view_of_the_reshape_is_changed(b):
    b.reshape(2, 2, 4)[0, 1] *= 5
    return b


def base_of_a_row_is_scaled(b):
    row = b.reshape(8, 2)[3]
    b += b
    return row


def two_reshapes(b):
    first, second = b.reshape(-1), b.reshape(2, 8)
    first += 1
    second *= 2
    first[3:5] = second[0, :2]
    return bp.concat([first, second.reshape(-1)])


def copy_of_a_transpose(b):
    flat = bp.matrix_transpose(b).reshape(-1)
    b *= 2
    return flat


def copy_of_columns_is_changed(b):
    columns = b[:, :2].reshape(-1)
    columns *= 7
    b += 1
    return bp.concat([columns, b.reshape(-1)])


def flattened_and_unflattened(b):
    flat, parts = b.flatten(), bp.unflatten(b, 0, (2, 2))
    b *= 2
    return bp.concat([flat, parts.ravel()])


BASE_CHANGES = [base_is_scaled, base_is_overwritten, base_of_a_row_is_scaled, copy_of_a_transpose,
                copy_of_columns_is_changed, flattened_and_unflattened]
VIEW_CHANGES = [view_is_scaled, view_of_the_reshape_is_changed, two_reshapes]

X = np.arange(1.0, 17.0).reshape(4, 4)


def loss_of(program):
    return lambda x: (bp.sin(program(x * 1.0))).sum()


def differences(loss):
    step, result = 1e-6, np.zeros_like(X)
    for i in np.ndindex(X.shape):
        moved = np.zeros_like(X)
        moved[i] = step
        result[i] = (loss(bp.asarray(X + moved)).item() - loss(bp.asarray(X - moved)).item()) / (2 * step)
    return result


@pytest.mark.parametrize("program", BASE_CHANGES + VIEW_CHANGES, ids=lambda f: f.__name__)
def test_on_the_tape(program):
    loss = loss_of(program)
    x = bp.asarray(X).requires_grad_()
    value = loss(x)
    value.backward()
    assert value.item() == loss(bp.asarray(X)).item()
    np.testing.assert_allclose(x.grad.numpy(), differences(loss), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("program", BASE_CHANGES, ids=lambda f: f.__name__)
def test_inside_transforms(program):
    loss, x = loss_of(program), bp.asarray(X)
    plain, gradient = loss(x).item(), differences(loss)
    for differentiated in (bp.value_and_grad(loss), bp.compile(bp.value_and_grad(loss)),
                           lambda x: [r[1] for r in bp.vmap(bp.value_and_grad(loss))(bp.stack([x + 1, x]))]):
        value, found = differentiated(x)
        np.testing.assert_allclose(value.item(), plain, rtol=1e-12)
        np.testing.assert_allclose(found.numpy(), gradient, rtol=1e-6, atol=1e-6)
    value, tangent = bp.jvp(loss, (x,), (bp.ones_like(x),))
    np.testing.assert_allclose(value.item(), plain, rtol=1e-12)
    np.testing.assert_allclose(tangent.item(), gradient.sum(), rtol=1e-6)
    for axis in (0, 1, 2):
        batched = bp.vmap(loss, in_axes=axis)(bp.stack([x, x * 2, x], axis=axis))
        np.testing.assert_allclose(batched.tolist(), [plain, loss(x * 2).item(), plain], rtol=1e-12)


@pytest.mark.parametrize("program", VIEW_CHANGES, ids=lambda f: f.__name__)
def test_a_change_through_it_inside_a_transform_is_refused(program):
    loss, x = loss_of(program), bp.asarray(X)
    for transformed, argument in ((bp.grad(loss), x), (bp.vmap(loss), bp.stack([x]))):
        with pytest.raises(bp.ArgumentValueError, match="may be a view or a copy.*copy it first"):
            transformed(argument)


def test_writing_what_has_a_history_into_a_reshape_gives_it_to_the_base():
    b, x = bp.zeros((4, 4), dtype=bp.float64), bp.asarray(X).requires_grad_()
    b.reshape(-1)[:] = x.reshape(-1)
    (b * b).sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), 2 * X)


def test_a_reshape_of_a_leaf_is_not_changed_while_a_gradient_is_recorded():
    leaf = bp.asarray(X.copy()).requires_grad_()
    with pytest.raises(bp.ArgumentValueError, match="leaf"):
        leaf.reshape(-1).__imul__(2)
    with bp.no_grad():
        flat = leaf.reshape(-1)
        flat *= 2
    np.testing.assert_array_equal(leaf.detach().numpy(), 2 * X)


@pytest.mark.parametrize("op", [lambda x: bp.tile(x, 1), lambda x: bp.repeat(x, 1), lambda x: bp.repeat(x, 1, axis=0), lambda x: bp.tile(x, (1, 1))])
def test_a_repetition_is_a_copy_in_every_case(op):
    x = bp.ones((2, 3))
    y = op(x)
    y += 1
    assert x.sum().item() == 6
