"""vectorize with a signature and excluded arguments, and rules for the number of a histogram's bins, against NumPy."""

import numpy as np
import pytest

import backplane as bp
import backplane.compat.numpy as np_bp

RNG = np.random.default_rng(0)
SIGNATURES = [
    ("(n),(n)->()", lambda a, b: (a * b).sum(), [(4, 3), (2, 1, 3)]), ("(m,n),(n)->(m)", lambda a, b: a @ b, [(5, 2, 3), (3,)]), ("(n)->(),()", lambda a: (a.sum(), a.max()), [(4, 3)]),
    ("(n)->(n)", lambda a: a - a.mean(), [(2, 4, 3)]), ("(),()->()", lambda a, b: a + b, [(3,), ()]), ("(3)->(2)", lambda a: a[:2], [(4, 3)]),
]  # fmt: skip


@pytest.mark.parametrize("case", range(len(SIGNATURES)))
def test_vectorize_calls_the_function_with_parts(case):
    signature, function, shapes = SIGNATURES[case]
    arrays = [RNG.normal(size=shape) for shape in shapes]
    expected, found = np.vectorize(function, signature=signature)(*arrays), np_bp.vectorize(function, signature=signature)(*map(bp.asarray, arrays))
    compiled = bp.compile(lambda *arrays: bp.vectorize(function, signature=signature)(*arrays))(*map(bp.asarray, arrays))
    for results in (found, compiled):
        for one, exact in zip(results if isinstance(results, tuple) else [results], expected if isinstance(expected, tuple) else [expected]):
            assert one.shape == exact.shape and np.allclose(one.numpy(), exact)
    x = bp.asarray(arrays[0])
    if case == 3:
        slope = bp.grad(lambda x: (bp.vectorize(function, signature=signature)(x) * x).sum())(x)
        assert bp.allclose(slope, 2 * (x - x.mean(-1, keepdims=True)))


def test_excluded_arguments_stay_as_they_are():
    for library in (np, np_bp):
        polynomial = library.vectorize(lambda x, p: sum(c * x**i for i, c in enumerate(p)), excluded={1})
        assert polynomial(library.arange(3), [1, 2]).tolist() == [1, 3, 5]
        power = library.vectorize(lambda x, p=1: x**p, excluded=["p"])
        assert power(library.arange(3), p=2).tolist() == [0, 1, 4]
        two = library.vectorize(lambda x: (x, x + 1))(library.arange(2))
        assert [x.tolist() for x in two] == [[0, 1], [1, 2]]


@pytest.mark.parametrize(("signature", "shapes", "error", "match"), [
    ("n->n", [(2,)], bp.ArgumentValueError, "expected a form like"), ("(n),(n)->()", [(2, 3), (4,)], bp.ShapeError, "found size 4 for 'n', expected 3"),
    ("(n),(n)->()", [(), (3,)], bp.ShapeError, "expected at least 1 axes"), ("(n)->()", [(2, 3), (3,)], TypeError, "found 2 arguments, expected 1"),
    ("(n)->(n)", [(2, 3)], bp.ShapeError, "result 0: found shape"), ("(n)->()", [(0, 3)], bp.ShapeError, "expected at least one"),
])  # fmt: skip
def test_what_does_not_fit_a_signature(signature, shapes, error, match):
    with pytest.raises(error, match=match):
        np_bp.vectorize(lambda *x: bp.sum(x[0]), signature=signature)(*(bp.ones(shape) for shape in shapes))


@pytest.mark.filterwarnings("ignore:.*subobtimal|.*suboptimal|.*largest number of bins")
@pytest.mark.parametrize("rule", ["auto", "doane", "fd", "rice", "scott", "sqrt", "stone", "sturges"])
def test_the_number_of_bins_is_numpys(rule):
    samples = [RNG.normal(size=200), RNG.exponential(size=37), RNG.integers(0, 30, 100), RNG.integers(0, 4, 1000), np.zeros(5), np.array([1.5]), np.zeros(0)]
    for x in samples:
        for limits in (None, (0.0, 2.5)):
            expected = np.histogram(x, bins=rule, range=limits)
            for counts, edges in (np_bp.histogram(bp.asarray(x), bins=rule, range=limits), bp.histogram(bp.asarray(x), bins=rule, range=limits)):
                assert np.array_equal(counts.numpy(), expected[0]) and np.allclose(edges.numpy(), expected[1])
            assert np.allclose(np_bp.histogram_bin_edges(bp.asarray(x), bins=rule, range=limits).numpy(), expected[1])


def test_rules_that_are_refused():
    x = bp.ones(3)
    for call, match in (
        (lambda: bp.histogram(x, bins="best"), "found 'best', expected a number"), (lambda: bp.histogram(x, bins="auto", weights=x), "with weights"),
        (lambda: bp.compile(lambda x: bp.histogram(x, bins="auto")[0])(x), "in a trace or a transform"), (lambda: bp.histogram(x * bp.nan, bins="fd"), "expected finite numbers"),
    ):  # fmt: skip
        with pytest.raises(bp.ArgumentValueError, match=match):
            call()
