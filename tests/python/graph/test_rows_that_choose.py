"""cond under vmap: each row has the derivatives of the function that it chose, whatever the other function makes of its values."""

import backplane as bp
import pytest


def loop(f, *rows):
    return bp.stack([f(*row) for row in zip(*rows)])


def logarithm(x):
    return bp.cond(x > 0, bp.log, lambda x: x * 0, x)


def root_of_captured(w):
    return lambda x: bp.cond(x > 0, lambda x: bp.sqrt(w) * x, lambda x: w * 0 + x, x)


def by_three(x):
    return bp.switch((x > 0).astype(bp.int32) + (x > 1).astype(bp.int32), [lambda x: x, bp.sqrt, lambda x: 1 / (x - 1)], x)


ROWS = {"mixed": [4.0, 0.0, 1.0], "all": [4.0, 2.0, 3.0], "none": [0.0, -1.0, 0.0], "one row": [0.0]}
DERIVATIVES = {
    "grad of vmap": lambda f, x: bp.grad(lambda x: bp.vmap(f)(x).sum())(x),
    "compiled": lambda f, x: bp.compile(bp.grad(lambda x: bp.vmap(f)(x).sum()))(x),
    "grad of compiled": lambda f, x: bp.grad(bp.compile(lambda x: bp.vmap(f)(x).sum()))(x),
    "vmap of grad": lambda f, x: bp.vmap(bp.grad(f))(x),
    "jvp of vmap": lambda f, x: bp.jvp(bp.vmap(f), (x,), (bp.ones_like(x),))[1],
    "nested vmap": lambda f, x: bp.grad(lambda x: bp.vmap(bp.vmap(f))(x[None]).sum())(x),
    "grad of scan of vmap": lambda f, x: bp.grad(lambda x: bp.scan(lambda k, x: (k, bp.vmap(f)(x)), 0, x[None])[1].sum())(x),
}


@pytest.mark.parametrize("derive", DERIVATIVES)
@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize("function", [logarithm, by_three])
def test_rows_that_did_not_choose_a_function_add_nothing(function, rows, derive):
    x = bp.asarray(ROWS[rows])
    expected = [bp.grad(function)(row).item() for row in x]
    assert DERIVATIVES[derive](function, x).tolist() == pytest.approx(expected)


@pytest.mark.parametrize("derive", ["grad of vmap", "compiled"])
@pytest.mark.parametrize("rows", ["mixed", "none"])
def test_captured_tensors_get_the_derivatives_of_the_rows_that_chose(rows, derive):
    x = bp.asarray(ROWS[rows])
    w = bp.asarray(0.0 if rows == "none" else 4.0)
    sums = lambda w: bp.vmap(root_of_captured(w))(x).sum()  # noqa: E731
    found = bp.grad(sums) if derive == "grad of vmap" else bp.compile(bp.grad(sums))
    expected = sum(bp.grad(lambda w: root_of_captured(w)(row))(w).item() for row in x)
    assert found(w).item() == pytest.approx(expected)


def test_the_tape_agrees():
    x = bp.asarray(ROWS["mixed"]).requires_grad_()
    bp.vmap(logarithm)(x).sum().backward()
    assert x.grad.tolist() == [0.25, 0.0, 1.0]


def test_second_derivatives():
    x = bp.asarray([4.0, 0.0])
    found = bp.hessian(lambda x: bp.vmap(logarithm)(x).sum())(x)
    assert found.tolist() == [[-0.0625, 0.0], [0.0, 0.0]]


def test_a_function_is_not_given_values_that_it_refuses_where_a_row_chose_it():
    table = bp.asarray([1.0, 2.0, 3.0])
    take = lambda i: bp.cond(i < 3, lambda i: table[i], lambda i: bp.asarray(-1.0), i)  # noqa: E731
    assert bp.vmap(take)(bp.asarray([0, 5, 2])).tolist() == [1.0, -1.0, 3.0]


def test_a_loop_of_a_row_that_did_not_choose_it_ends():
    def count(n):
        return bp.cond(n >= 0, lambda n: bp.while_loop(lambda n: n != 0, lambda n: n - 1, n), lambda n: n, n)

    assert bp.vmap(count)(bp.asarray([3, -1, 5])).tolist() == [0, -1, 0]


def test_no_rows():
    assert bp.vmap(logarithm)(bp.zeros(0)).shape == (0,)
    assert bp.grad(lambda x: bp.vmap(logarithm)(x).sum())(bp.zeros(0)).shape == (0,)


def test_forward_mode_goes_through_no_grad_in_a_body():
    def f(x):
        with bp.no_grad():
            y = x * 3
        return y + x

    one, x = bp.ones(2), bp.asarray([1.0, 2.0])
    bodies = {
        "map": lambda x: bp.map(f, x),
        "cond": lambda x: bp.cond(bp.asarray(True), f, lambda x: x, x),
        "scan": lambda x: bp.scan(lambda k, row: (f(k), f(row)), bp.asarray(1.0), x)[1],
        "carry": lambda x: bp.scan(lambda k, _: (f(k), 0), x, length=1)[0],
        "vmap of cond": lambda x: bp.vmap(lambda x: bp.cond(x > 0, f, lambda x: x, x))(x),
    }
    for name, body in bodies.items():
        assert bp.jvp(body, (x,), (one,))[1].tolist() == [4.0, 4.0], name
        assert bp.grad(lambda x: body(x).sum())(x).tolist() == [1.0, 1.0], name
        assert bp.jvp(bp.compile(body), (x,), (one,))[1].tolist() == [4.0, 4.0], name
