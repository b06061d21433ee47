"""Functions that look at values or positions give inside compile and vmap what they give outside, as far as that needs no values."""

import backplane as bp
import numpy as np
import pytest

X = np.asarray([3.0, 1.0, 2.0])
A = np.asarray([[1.0, 2.0], [3.0, 4.0], [5.0, 7.0]])
F64 = {"dtype": bp.float64}

# What is positions outside, of which none is computed from the argument.
PLACES = {
    "delete an element": lambda x: bp.delete(x, 1), "delete several": lambda x: bp.delete(x, [0, -1]), "delete a slice": lambda x: bp.delete(x, slice(0, 2)),
    "delete by an array": lambda x: bp.delete(x, np.asarray([2])), "delete by bools": lambda x: bp.delete(x, [True, False, True]), "delete nothing": lambda x: bp.delete(x, []),
    "insert an element": lambda x: bp.insert(x, 1, 5.0), "insert several": lambda x: bp.insert(x, [0, 2], [5.0, 6.0]),
    "compress": lambda x: bp.compress([True, False, True], x, axis=0), "ix_": lambda x: x[bp.ix_([True, False, True])],
}  # fmt: skip
# What looks at values of the argument.
VALUES = {
    "digitize by rising edges": lambda x: bp.digitize(x, x[1] + bp.linspace(0, 2, 3, **F64)), "digitize by falling edges": lambda x: bp.digitize(x, x[0] - bp.linspace(0, 2, 3, **F64)),
    "digitize, right": lambda x: bp.digitize(x, x[:0:-1], right=True), "digitize by one edge": lambda x: bp.digitize(x, x[2:]), "digitize by none": lambda x: bp.digitize(x, x[:0]),
    "allclose": lambda x: bp.where(bp.allclose(x, x + 1e-12), x, -x), "array_equal": lambda x: bp.where(bp.array_equal(x, x * 2), x, -x),
    "array_equiv": lambda x: bp.where(bp.array_equiv(x, x[None]), x, -x), "lstsq": lambda x: bp.linalg.lstsq(bp.asarray(A), x).x,
    "residuals of lstsq": lambda x: bp.linalg.lstsq(bp.asarray(A), x).residuals, "histogram": lambda x: bp.histogram(x, bins=bp.linspace(0, 4, 3, **F64))[0],
}  # fmt: skip


@pytest.mark.parametrize("name", [*PLACES, *VALUES])
def test_inside_as_outside(name):
    function = {**PLACES, **VALUES}[name]
    with bp.default_dtype(bp.float64):
        expected = function(bp.asarray(X)).numpy()
        np.testing.assert_allclose(bp.compile(function)(bp.asarray(X)).numpy(), expected, rtol=1e-12)
        if name != "histogram":
            np.testing.assert_allclose(bp.vmap(function)(bp.asarray(X[None]))[0].numpy(), expected, rtol=1e-12)


@pytest.mark.parametrize("function", [bp.allclose, bp.array_equal, bp.array_equiv])
def test_an_answer_is_a_bool_outside_and_a_tensor_where_it_has_no_value(function):
    seen = []
    for call in (lambda f: f(bp.ones(2)), lambda f: bp.grad(f)(bp.ones(2)), lambda f: bp.compile(f)(bp.ones(2))):
        call(lambda x: (seen.append(type(function(x, x))), x.sum())[1])
    assert seen == [bool, bool, bp.Tensor]


def test_positions_that_a_trace_computes_are_refused():
    with pytest.raises(bp.ArgumentValueError, match="one of a graph that compile is writing down"):
        bp.compile(lambda x: bp.delete(x, bp.argmax(x)))(bp.asarray(X))


def test_backward_inside_says_what_to_write():
    def step(w):
        loss = (w * w).sum()
        loss.backward()
        return loss

    with pytest.raises(bp.ArgumentValueError, match=r"backward: .*compile.*Fix: value_and_grad\(loss\)\(weights\)"):
        bp.compile(step)(bp.ones(2))


@pytest.mark.parametrize("make", [lambda: bp.compile(lambda x: x, mode="fast"), lambda: bp.compile(mode="fast")(lambda x: x)], ids=["call", "decorator"])
def test_an_unknown_option_of_compile_is_named_with_those_that_there_are(make):
    with pytest.raises(TypeError, match="compile: found an option 'mode', expected dynamic, donate, fullgraph or memory_budget"):
        make()
