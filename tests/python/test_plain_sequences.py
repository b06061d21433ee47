"""asarray of lists of Python's own numbers agrees with NumPy, on the plain way and where it gives up."""

import backplane as bp
import numpy as np
import pytest

LISTS = {
    "floats": [1.5, -2.0, 0.1],
    "ints": [1, -2, 2**62],
    "bools": [True, False],
    "floats, then ints": [1.5, 2, -3],
    "ints, then floats": [1, 2.5],
    "an int beside bools": [True, 2],
    "beyond what a float holds exactly": [0.5, 2**53 + 1, 2**63],
    "complex": [1.0, 2j],
    "nested": [[1.0, 2.0], (3.0, 4.0), [5, 6]],
    "nested ints": [[[1], [2]], [[3], [4]]],
    "rows of NumPy": [np.arange(2.0, dtype=np.float32), [3.0, 4.0]],
    "scalars of NumPy": [1.0, np.float32(2)],
    "empty rows": [[], []],
    "a number": 2.5,
    "infinities": [float("inf"), -float("inf"), 1e300],
}


@pytest.mark.parametrize("dtype", [None, "int64", "float32", "float64", "float16", "complex64"])
@pytest.mark.parametrize("name", LISTS)
def test_asarray_agrees_with_numpy(name, dtype):
    data, wanted = LISTS[name], dtype
    expected = np.asarray(data)
    if dtype is None:
        dtype = {"f": "float32", "c": "complex64"}.get(expected.dtype.kind, expected.dtype.name)
    elif (expected.dtype.kind == "c" and dtype != "complex64") or (dtype == "int64" and np.any(np.abs(expected) >= 2.0**63)):
        with pytest.raises((TypeError, OverflowError)):
            bp.asarray(data, dtype=dtype)
        return
    with np.errstate(over="ignore"):
        expected = expected.astype(dtype)
    found = bp.asarray(data, dtype=wanted)
    assert found.dtype.name == dtype and found.shape == expected.shape
    np.testing.assert_array_equal(found.numpy(), expected)


@pytest.mark.parametrize("data", [[[1.0, 2.0], [3.0]], [[1.0], 2.0], [1.0, [2.0]], [[1.0, 2.0], [3.0, "a"]], [[0.0] * 1000] + [[]] * 1000], ids=repr)
def test_ragged_and_other_rows_are_refused(data):
    with pytest.raises((ValueError, TypeError), match="asarray: found"):
        bp.asarray(data)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_default_dtype_is_that_of_plain_floats(dtype):
    with bp.default_dtype(dtype):
        assert bp.asarray([0.1, 2.0]).dtype.name == dtype
        assert bp.asarray([0.1, 2.0]).tolist() == np.asarray([0.1, 2.0], dtype).tolist()
        assert bp.asarray([1, 2]).dtype.name == "int64"


def test_a_list_is_read_anew_each_time():
    data = [[1.0, 2.0]]
    first = bp.asarray(data)
    data[0][0] = 5.0
    assert first.tolist() == [[1.0, 2.0]] and bp.asarray(data).tolist() == [[5.0, 2.0]]


F = bp.nn.functional
M, V, I = [[1.0, 2.0], [3.0, 4.0]], [1.0, 2.0, 3.0], [1, 0]
OF_DATA = {
    "broadcast_arrays": lambda of: bp.broadcast_arrays(of(M), of([1.0, 2.0]), 3), "einsum": lambda of: bp.einsum("ij,jk->ik", bp.asarray(M), of(M)),
    "gather": lambda of: bp.gather(bp.asarray(M), 1, of([[0], [1]])), "scatter": lambda of: bp.scatter(of(M), 1, of([[0], [1]]), of([[9.0], [8.0]])),
    "scatter_add": lambda of: bp.scatter_add(of(M), 1, of([[0], [1]]), 2.0), "index_select": lambda of: bp.index_select(of(M), 0, of(I)),
    "index_copy": lambda of: bp.index_copy(of(M), 0, of(I), of(M)), "index_fill": lambda of: bp.index_fill(of(M), 0, of(I), 7.0),
    "union1d": lambda of: bp.union1d(of(V), of([5.0])), "cov": lambda of: bp.cov(of(V), of(V)), "bincount": lambda of: bp.bincount(of(I), weights=of([1.0, 2.0])),
    "histogram": lambda of: bp.histogram(of(V), weights=of(V)), "bucketize": lambda of: bp.bucketize(of(V), of([1.5])), "repeat": lambda of: bp.repeat(of(V), of([1, 0, 2])),
    "round": lambda of: bp.round(of(V), 1), "max": lambda of: bp.max(of(V), dim=0).values, "cross_entropy": lambda of: F.cross_entropy(of(M), of(I)),
    "one_hot": lambda of: F.one_hot(of(I), 3), "mse_loss": lambda of: F.mse_loss(bp.asarray(V), target=of(V)), "softmax": lambda of: F.softmax(of(M), dim=1),
    "embedding": lambda of: F.embedding(of(I), of(M)), "fftshift": lambda of: bp.fft.fftshift(of(V)),
}  # fmt: skip


@pytest.mark.parametrize("of", [lambda data: data, np.asarray], ids=["lists", "arrays"])
@pytest.mark.parametrize("name", OF_DATA)
def test_functions_take_lists_and_arrays_for_tensors(name, of):
    with bp.default_dtype(bp.float64):
        expected, found = OF_DATA[name](bp.asarray), OF_DATA[name](of)
    for one, other in zip(found, expected) if isinstance(found, (tuple, list)) else [(found, expected)]:
        assert one.dtype is other.dtype and one.tolist() == other.tolist()


def test_a_list_goes_where_the_tensor_is(simulator):
    found = F.cross_entropy(bp.asarray(M, device="sim"), I)
    assert found.device == "sim" and found.tolist() == pytest.approx(F.cross_entropy(bp.asarray(M), I).tolist())
