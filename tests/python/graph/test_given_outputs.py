"""`out=` inside a compiled function writes the same as in eager mode: arguments, views, captured and new tensors."""

import backplane as bp
import numpy as np
import pytest

UNARY = [bp.sin, bp.exp, bp.sqrt, bp.negative, bp.floor, bp.softplus]
BINARY = [bp.add, bp.multiply, bp.maximum, bp.divide, bp.atan2]


def fresh():
    return bp.asarray(np.linspace(0.5, 2.0, 6).reshape(2, 3)), bp.zeros((2, 3), dtype="float64")


def check(function):
    """`function(x, out)` returns a tensor and writes into `out`."""
    outputs = []
    for run in (function, bp.compile(function)):
        for _ in range(2):
            x, out = fresh()
            outputs.append((run(x, out).tolist(), x.tolist(), out.tolist()))
    assert all(found == outputs[0] for found in outputs[1:]), outputs


@pytest.mark.parametrize("op", UNARY, ids=lambda op: op.__name__)
def test_of_one_operand(op):
    check(lambda x, out: op(x, out=out) + 1)


@pytest.mark.parametrize("op", BINARY, ids=lambda op: op.__name__)
def test_of_two_operands(op):
    check(lambda x, out: op(x, x + 1, out=out) * 2)
    check(lambda x, out: op(out, x, out=out))
    check(lambda x, out: op(x, out, out=out))
    check(lambda x, out: op(x, x, out=x))


def test_reductions_and_products():
    check(lambda x, out: bp.sum(x, 1, out=out[:, 0]))
    check(lambda x, out: bp.matmul(x, bp.ones((3, 3), dtype="float64"), out=out))


def test_views_and_later_reads():
    def into_a_column(x, out):
        row = out[1]
        bp.sin(x[0], out=out[1])
        bp.cos(x[0], out=out[0])
        return row + out[0]

    check(into_a_column)


def test_a_tensor_made_inside():
    def made(x, out):
        mine = bp.empty((2, 3), dtype="float64")
        same = bp.exp(x, out=mine)
        out += mine
        return same

    check(made)


def test_the_result_is_the_given_tensor():
    same = []

    @bp.compile
    def f(x, out):
        same.append(bp.sin(x, out=out) is out)
        return out

    f(*fresh())
    assert same == [True]


def test_a_captured_tensor():
    found = []
    for run in (lambda f: f, bp.compile):
        kept = bp.zeros((2, 3), dtype="float64")

        def write(x, kept=kept):
            return bp.sin(x, out=kept) * 2

        call = run(write)
        for scale in (1, 2):
            result = call(fresh()[0] * scale)
            found.append((result.tolist(), kept.tolist()))
    assert found[:2] == found[2:]


@pytest.mark.parametrize("out", [lambda: bp.zeros((3, 2), dtype="float64"), lambda: bp.zeros((2, 3), dtype="int32")],
                         ids=["shape", "dtype"])  # fmt: skip
def test_what_does_not_fit_is_refused(out):
    for run in (lambda x, o: bp.sin(x, out=o), bp.compile(lambda x, o: bp.sin(x, out=o))):
        with pytest.raises((bp.ShapeError, bp.DtypeError, ValueError, TypeError)):
            run(fresh()[0], out())


@pytest.mark.parametrize("transform", [bp.grad, bp.vmap], ids=["grad", "vmap"])
def test_other_transforms_refuse_it(transform):
    def f(x):
        return bp.sin(x, out=bp.zeros((), dtype="float64"))

    with pytest.raises(ValueError, match="given output"):
        transform(f)(bp.asarray(1.0, dtype="float64") if transform is bp.grad else fresh()[0][0])


def test_derivatives():
    """Eager calls refuse a given output while they record. A compiled call has the gradient of its results."""
    x, out = fresh()
    x.requires_grad_()
    with pytest.raises(ValueError, match="out"):
        bp.sin(x, out=out)
    bp.compile(lambda x, out: bp.sin(x, out=out) * 2)(x, out).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), 2 * np.cos(fresh()[0].numpy()), rtol=1e-12)
    with bp.no_grad():
        check(lambda x, out: bp.sin(x, out=out))
