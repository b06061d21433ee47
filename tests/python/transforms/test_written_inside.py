"""What a function makes of numbers is its transform's: values of that may be written into it."""

import backplane as bp
import pytest

MAKERS = {
    "a list": lambda: bp.asarray([0.0, 0.0, 0.0]),
    "a list of another dtype": lambda: bp.asarray([0, 0, 0], dtype=bp.float64),
    "complex numbers": lambda: bp.asarray([0j, 0j, 0j]),
    "zeros": lambda: bp.zeros(3),
}
WRAPS = {
    "grad": lambda f, x: bp.grad(f)(x),
    "grad of a checkpoint": lambda f, x: bp.grad(bp.checkpoint(f))(x),
    "grad of grad": lambda f, x: bp.grad(lambda y: bp.grad(f)(y).sum() / 2 + y.sum() * 0)(x),
    "vmap of grad": lambda f, x: bp.vmap(bp.grad(f))(bp.stack([x, x]))[1],
    "jvp": lambda f, x: bp.jvp(f, (x,), (bp.ones(3),))[1],
    "vmap": lambda f, x: bp.vmap(f)(bp.stack([x, x]))[1],
    "a compiled function": lambda f, x: bp.grad(bp.compile(f))(x),
    "nothing": lambda f, x: f(x),
}
EXPECTED = {"jvp": 18.0, "vmap": 9.0, "nothing": 9.0, "grad of grad": [1.0, 4.0, 4.0]}


@pytest.mark.parametrize("wrap", WRAPS)
@pytest.mark.parametrize("make", MAKERS)
def test_values_are_written_into_what_is_made_inside(make, wrap):
    def function(x):
        made = MAKERS[make]()
        made += x
        made[1:] *= 2
        return bp.real(made * made).sum()

    assert WRAPS[wrap](function, bp.ones(3)).tolist() == EXPECTED.get(wrap, [2.0, 8.0, 8.0])


def test_what_is_made_of_numbers_can_be_read():
    def function(x):
        scale, order = bp.asarray([0.5, 0.25]), bp.asarray([1, 0])
        return (x[order] * float(scale[0])).sum() * scale.tolist()[1] * bp.asarray(2.0).item()

    assert bp.grad(function)(bp.ones(2)).tolist() == [0.25, 0.25]
    assert bp.vmap(function)(bp.ones((3, 2))).tolist() == [0.5] * 3


@pytest.mark.parametrize(
    "made",
    [bp.copy, lambda x: x.clone(), lambda x: bp.asarray(x, copy=True), bp.zeros_like, bp.ones_like, lambda x: bp.full_like(x, 2.0)],
    ids=["copy", "clone", "asarray", "zeros_like", "ones_like", "full_like"],
)
def test_a_copy_made_inside_is_of_the_transform_whoever_knows_what_was_copied(made):
    def put(x, v):
        y = made(x)
        y[0] = v
        return (y * y).sum()

    x, v = bp.asarray([1.0, 2.0, 3.0]), bp.asarray([4.0, 5.0])
    rows = bp.vmap(put, in_axes=(None, 0))
    expected = [float(put(x, row)) for row in v]
    assert rows(x, v).tolist() == expected
    assert bp.compile(rows)(x, v).tolist() == expected
    gradient = sum(bp.grad(put)(x, row) for row in v)
    assert bp.grad(lambda x: rows(x, v).sum())(x).tolist() == gradient.tolist()
    assert bp.jvp(lambda x: rows(x, v), (x,), (bp.ones_like(x),))[1].shape == (2,)


def write_an_element(a, b):
    y = a * 2
    y[0] = b
    return y


def write_through_a_view(a, b):
    y = a + 1
    y[1:].add_(b)
    return y


def write_into_a_reshaped_copy(a, b):
    y = (a * 2).reshape(3, 1).copy()
    y[1] *= b
    return y


@pytest.mark.parametrize("derived", [lambda f: f, bp.compile, bp.jacrev], ids=["value", "compiled", "jacobian"])
@pytest.mark.parametrize("write", [write_an_element, write_through_a_view, write_into_a_reshaped_copy])
def test_values_are_written_into_what_is_computed_from_an_unmapped_argument(write, derived):
    x, v = bp.asarray([1.0, 2.0, 3.0]), bp.asarray([4.0, 5.0])
    found = derived(lambda b: bp.vmap(write, in_axes=(None, 0))(x, b))
    expected = derived(lambda b: bp.stack([write(x.clone(), row) for row in b]))
    assert found(v).tolist() == expected(v).tolist()


def test_an_unmapped_argument_is_the_callers_tensor():
    def change(a, b):
        a[1:] += 1
        return a * b

    x, v = bp.asarray([1.0, 2.0, 3.0]), bp.asarray([4.0, 5.0])
    assert bp.vmap(change, in_axes=(None, 0))(x, v).tolist() == [[4, 12, 16], [5, 15, 20]] and x.tolist() == [1, 3, 4]

    def write(a, b):
        a[0] = b
        return a

    with pytest.raises(bp.ArgumentValueError, match="an argument that vmap does not map.*clone"):
        bp.vmap(write, in_axes=(None, 0))(x, v)
    assert x.tolist() == [1, 3, 4]
