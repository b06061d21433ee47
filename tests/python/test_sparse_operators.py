"""Operators of sparse matrices against dense tensors: sums, products with numbers, parts, with gradients, in compiled functions; and refusals."""

import copy
import pickle

import numpy as np
import pytest

import backplane as bp
from backplane import sparse

RNG = np.random.default_rng(0)
PLACES = RNG.integers(0, 4, 9), RNG.integers(0, 5, 9)  # some twice


def matrices():
    """A matrix that stores places twice, and one that does not."""
    first = sparse.coo((bp.asarray(RNG.normal(size=9)), PLACES), shape=(4, 5))
    second = sparse.csr(np.where(RNG.random((4, 5)) < 0.5, RNG.normal(size=(4, 5)), 0))
    return first, second


OPERATORS = {
    "add": (lambda a, b: a + b), "subtract": (lambda a, b: a - b), "scale": (lambda a, b: a * 2.5 - b / 2), "abs": (lambda a, b: abs(a - b)),
    "negative": (lambda a, b: -a), "transpose": (lambda a, b: a.transpose()), "sum": (lambda a, b: a.sum()), "columns": (lambda a, b: a.sum(0) + b.mean(0)),
    "rows": (lambda a, b: a.sum(-1)), "row": (lambda a, b: a[2] + b[-1]), "column": (lambda a, b: a[:, 3]), "element": (lambda a, b: a[1, 2] + b[-1, -1]),
    "dense": (lambda a, b: a + b.to_dense()), "dense first": (lambda a, b: b.to_dense() - a), "multiply": (lambda a, b: a.multiply(b.to_dense()[0])),
}  # fmt: skip
DENSE = {
    **OPERATORS, "transpose": (lambda a, b: a.T), "columns": (lambda a, b: a.sum(0) + b.mean(0)), "dense": (lambda a, b: a + b), "dense first": (lambda a, b: b - a),
    "multiply": (lambda a, b: a * b[0]),
}  # fmt: skip


def dense(x):
    return x.to_dense() if isinstance(x, sparse.CSR) else x


@pytest.mark.parametrize("name", OPERATORS)
def test_operators_are_those_of_dense_matrices(name):
    a, b = matrices()
    weights = bp.asarray(RNG.normal(size=dense(OPERATORS[name](a, b)).shape))
    expected = DENSE[name](a.to_dense(), b.to_dense())
    assert bp.allclose(dense(OPERATORS[name](a, b)), expected)
    assert bp.allclose(bp.compile(lambda a, b: dense(OPERATORS[name](a, b)))(a, b), expected)

    def of_data(data, b):
        return (DENSE[name](sparse.CSR(data, a.indices, a.indptr, a.shape).to_dense(), b.to_dense()) * weights).sum()

    slopes = bp.grad(of_data)(a.data, b)
    for transform in (lambda f: f, bp.compile):
        found = transform(bp.grad(lambda a, b: (dense(OPERATORS[name](a, b)) * weights).sum()))(a, b)
        assert bp.allclose(found.data, slopes)
    rows = bp.vmap(lambda data: dense(OPERATORS[name](sparse.CSR(data, a.indices, a.indptr, a.shape), b)))(bp.stack([a.data, 2 * a.data]))
    assert bp.allclose(rows[0], expected)


def test_rows_are_cut_out():
    a, _ = matrices()
    for index in (slice(1, 3), slice(None, 2), slice(2, None), slice(3, 1), slice(None)):
        assert isinstance(a[index], sparse.CSR) and bp.all(a[index].to_dense() == a.to_dense()[index])
    assert len(a) == 4 and [row.tolist() for row in a] == a.to_dense().tolist()
    assert bp.all(bp.compile(lambda a, i: a[i])(a, bp.asarray(-2)) == a[2])
    with pytest.raises(bp.DataError):
        bp.compile(lambda a, i: a[i])(a, bp.asarray(4))


def test_sums_store_each_place_once():
    a, b = matrices()
    places = len({*zip(*PLACES)})
    assert a.nnz == 9 and a.sum_duplicates().nnz == places and (a + a).nnz == 9
    assert (a + b).nnz == np.count_nonzero((np.abs(a.to_dense().numpy()) + np.abs(b.to_dense().numpy())))
    assert b.sum_duplicates() is b
    assert sum([b, b]).to_dense().tolist() == (b.to_dense() * 2).tolist()
    assert (sparse.csr(np.eye(2, dtype=np.int64)) + sparse.csr(np.eye(2) / 2)).dtype == bp.float64
    assert sparse.csr(np.zeros((2, 3))).sum().item() == 0 and abs(sparse.csr(np.zeros((2, 3)))).nnz == 0


REFUSED = [
    (lambda a: a[4], bp.OutOfRangeError, "found the index 4 for axis 0 of 4 elements"), (lambda a: a[0, -6], bp.OutOfRangeError, "axis 1 of 5"),
    (lambda a: a[::2], bp.ArgumentValueError, "a step of 2"), (lambda a: a[[0, 1]], bp.ArgumentTypeError, "expected A\\[i\\]"),
    (lambda a: a**2, bp.ArgumentTypeError, "power: found a sparse matrix"), (lambda a: a < 1, bp.ArgumentTypeError, "less: found a sparse matrix"),
    (lambda a: a + 1, bp.ArgumentTypeError, "would have no zeros"), (lambda a: a / a, bp.ArgumentTypeError, "expected a number"),
    (lambda a: a + a.T, bp.ShapeError, "expected equal shapes"), (lambda a: a.sum(2), bp.OutOfRangeError, "expected -2 to 1"),
    (lambda a: a.tocsc(), AttributeError, "use A.T"), (lambda a: a.frobenius, AttributeError, "use A.to_dense"),
    (lambda a: a.transpose((1, 1)), bp.ArgumentValueError, "axes: found \\(1, 1\\)"),
    (lambda a: bp.compile(lambda a: a[0:1].to_dense())(a), bp.ArgumentValueError, "rows in a trace"),
]  # fmt: skip


@pytest.mark.parametrize("i", range(len(REFUSED)))
def test_what_is_refused(i):
    function, error, match = REFUSED[i]
    with pytest.raises(error, match=match):
        function(matrices()[0])


def test_a_matrix_is_copied_and_pickled():
    a, _ = matrices()
    for other in (copy.deepcopy(a), pickle.loads(pickle.dumps(a))):
        assert bp.all(other.to_dense() == a.to_dense())
    assert not hasattr(a, "frobenius")
