"""Functions of values or positions give the same results inside compile and vmap as outside, if they need no values."""

import backplane as bp
import numpy as np
import pytest

X = np.asarray([3.0, 1.0, 2.0])
A = np.asarray([[1.0, 2.0], [3.0, 4.0], [5.0, 7.0]])
F64 = {"dtype": bp.float64}

# Positions from outside, which do not depend on the argument.
PLACES = {
    "delete an element": lambda x: bp.delete(x, 1), "delete several": lambda x: bp.delete(x, [0, -1]), "delete a slice": lambda x: bp.delete(x, slice(0, 2)),
    "delete by an array": lambda x: bp.delete(x, np.asarray([2])), "delete by bools": lambda x: bp.delete(x, [True, False, True]), "delete nothing": lambda x: bp.delete(x, []),
    "insert an element": lambda x: bp.insert(x, 1, 5.0), "insert several": lambda x: bp.insert(x, [0, 2], [5.0, 6.0]),
    "compress": lambda x: bp.compress([True, False, True], x, axis=0), "ix_": lambda x: x[bp.ix_([True, False, True])],
    "a list of bools": lambda x: x[[True, False, True]], "an array of bools": lambda x: x[np.asarray([False, True, True])], "none of them": lambda x: x[[False] * 3],
    "a matrix of bools": lambda x: (x[None] * bp.ones((2, 1), **F64))[np.asarray([[True, False, True], [False, True, False]])], "a bool": lambda x: x[True],
    "repeat by a list": lambda x: bp.repeat(x, [1, 2, 0]), "repeat by a number in a list": lambda x: bp.repeat(x, [2]), "repeat by an array": lambda x: bp.repeat(x[None], np.asarray([0, 1, 3]), axis=1),
    "triu_indices": lambda x: (x[:, None] * x)[bp.triu_indices(3)], "tril_indices": lambda x: (x[:, None] * x)[bp.tril_indices(3, -1)], "pdist": lambda x: bp.nn.functional.pdist(x[:, None] * x),
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


def test_a_mask_from_outside_is_looked_at_again():
    mask = bp.asarray([True, False, True])
    function = bp.compile(lambda x: x[mask])
    assert function(bp.asarray(X)).tolist() == [3, 2]
    mask[1] = True
    assert function(bp.asarray(X)).tolist() == [3, 1, 2]


def test_what_a_trace_computes_is_no_mask_and_no_count():
    with pytest.raises(bp.MissingRuleError, match="index: the number of elements that a mask selects.*Fix: "):
        bp.compile(lambda x: x[x > 1])(bp.asarray(X))
    with pytest.raises(bp.ArgumentValueError, match="belongs to a graph that compile is tracing"):
        bp.compile(lambda x: bp.repeat(x, bp.astype(x, bp.int64)))(bp.asarray(X))
    with pytest.raises(bp.ArgumentValueError, match=r"Fix: segment_sum\(ones_like\(x\), x, n\)"):
        bp.compile(lambda x: bp.bincount(bp.astype(x, bp.int64), minlength=6))(bp.asarray(X))


def test_positions_that_a_trace_computes_are_refused():
    with pytest.raises(bp.ArgumentValueError, match="belongs to a graph that compile is tracing"):
        bp.compile(lambda x: bp.delete(x, bp.argmax(x)))(bp.asarray(X))


def test_backward_inside_says_what_to_write():
    def step(w):
        loss = (w * w).sum()
        loss.backward()
        return loss

    with pytest.raises(bp.ArgumentValueError, match=r"backward: .*Fix: .*compile\(state=\).*value_and_grad\(loss\)\(weights\)"):
        bp.compile(step)(bp.ones(2))


@pytest.mark.parametrize("make", [lambda: bp.compile(lambda x: x, mode="fast"), lambda: bp.compile(mode="fast")(lambda x: x)], ids=["call", "decorator"])
def test_an_unknown_option_of_compile_is_named_with_those_that_there_are(make):
    with pytest.raises(TypeError, match="compile: found an option 'mode', expected dynamic, donate, fullgraph, memory_budget or state"):
        make()
