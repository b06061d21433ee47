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
