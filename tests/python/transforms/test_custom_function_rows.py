"""Laws of custom functions over rows, and of results that derivatives cannot see."""

import backplane as bp
import pytest

# The rule uses more of its arguments than the result does: each row's rule sees the cotangents of its row.
CONSTANT_RESULTS = {
    "a constant": (lambda r, k: bp.ones(3), lambda s, g: (g * s[0], g)),
    "of the argument without a batch": (lambda r, k: k * 1, lambda s, g: (g * s[0], g)),
    "zeros": (lambda r, k: bp.zeros_like(r), lambda s, g: (g * 3, g)),
}


@pytest.mark.parametrize(("forward", "backward"), CONSTANT_RESULTS.values(), ids=CONSTANT_RESULTS)
def test_a_result_that_is_the_same_for_all_rows_has_a_cotangent_per_row(forward, backward):
    f = bp.custom_function(forward)
    f.defvjp(lambda r, k: (forward(r, k), (r, k)), backward)
    rows, k, weight = bp.asarray([[1.0, 2, 3], [4, 5, 7]]), bp.asarray([0.5, 1.5, 2.0]), bp.asarray([1.0, -1, 2])

    def loss(row, k):
        return (bp.sin(f(row, k) + row) * weight).sum()

    def total(rows, k):
        return bp.vmap(loss, in_axes=(0, None))(rows, k).sum()

    expected = bp.stack([bp.grad(loss)(row, k) for row in rows])
    for found in (bp.grad(total)(rows, k), bp.compile(bp.grad(total))(rows, k), bp.vmap(bp.grad(loss), in_axes=(0, None))(rows, k)):
        assert bp.allclose(found, expected)
    assert bp.allclose(bp.grad(total, 1)(rows, k), sum(bp.grad(loss, 1)(row, k) for row in rows))


class Box:
    def __init__(self, held):
        self.held = held


def test_a_result_that_hides_a_tensor_is_refused():
    wrapped = bp.checkpoint
    x = bp.asarray([1.0, 2.0])
    i = bp.dims(1)
    for function in (lambda x: Box(bp.sin(x)), lambda x: (x * 2, Box(bp.sin(x)))):
        with pytest.raises(TypeError, match=r"holds tensors|returned no tensor"):
            bp.grad(lambda x: wrapped(function)(x)[0].sum())(x)
    with pytest.raises(TypeError, match="named dimensions an order"):
        bp.grad(lambda x: wrapped(bp.sin)(x[i]).order(i).sum())(x)
    assert wrapped(lambda x: (x * 2, Box(3)))(x)[1].held == 3
