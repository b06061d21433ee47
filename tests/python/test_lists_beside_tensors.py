"""Lists and arrays in places of tensors keep the digits that the result can hold."""

import backplane as bp
import numpy as np
import pytest

X = np.asarray([0.25, 0.5, 0.75])
x = bp.asarray(X)  # float64
TENTHS = [0.1, 0.2, 0.3]

CASES = {
    "maximum": (lambda: bp.maximum(x, TENTHS), np.maximum(X, TENTHS)),
    "the list first": (lambda: bp.subtract(TENTHS, x), np.subtract(TENTHS, X)),
    "dot": (lambda: bp.dot(TENTHS, x), np.dot(TENTHS, X)),
    "concat": (lambda: bp.concat([TENTHS, x]), np.concatenate([TENTHS, X])),
    "hstack": (lambda: bp.hstack([x, 0.1]), np.hstack([X, 0.1])),
    "column_stack": (lambda: bp.column_stack([x, TENTHS]), np.column_stack([X, TENTHS])),
    "vstack": (lambda: bp.vstack(row for row in (TENTHS, x)), np.vstack([TENTHS, X])),
    "stack": (lambda: bp.stack([x, tuple(TENTHS)]), np.stack([X, TENTHS])),
    "nested": (lambda: bp.matmul([TENTHS, TENTHS], x), np.matmul([TENTHS, TENTHS], X)),
    "where": (lambda: bp.where(x > 0.3, x, TENTHS), np.where(X > 0.3, X, TENTHS)),
    "complex": (lambda: bp.multiply(bp.astype(x, bp.complex128), [0.1j, 0.2, 0.3]), X * np.asarray([0.1j, 0.2, 0.3])),
    "convolve": (lambda: bp.convolve(x, TENTHS), np.convolve(X, TENTHS)),
    "polyval": (lambda: bp.polyval(TENTHS, x), np.polyval(TENTHS, X)),
    "interp": (lambda: bp.interp(x, [0.1, 0.9], [0.7, 0.3]), np.interp(X, [0.1, 0.9], [0.7, 0.3])),
    "tensordot": (lambda: bp.tensordot(x, TENTHS, 1), np.tensordot(X, TENTHS, 1)),
    "lstsq": (lambda: bp.linalg.lstsq(bp.reshape(x, (3, 1)), TENTHS)[0], np.linalg.lstsq(X[:, None], TENTHS)[0]),
    "multi_dot": (lambda: bp.linalg.multi_dot([x, [[0.1], [0.2], [0.3]]]), np.linalg.multi_dot([X, [[0.1], [0.2], [0.3]]])),
    "linspace": (lambda: bp.linspace(x[0], 0.1, 3), np.linspace(X[0], 0.1, 3)),
    "linspace to a complex number": (lambda: bp.linspace(x[0], 0.1j, 3), np.linspace(X[0], 0.1j, 3)),
    "gradient": (lambda: bp.gradient(x, [0.1, 0.2, 0.7]), np.gradient(X, [0.1, 0.2, 0.7])),
    "dx of trapezoid": (lambda: bp.trapezoid(x, dx=[0.1, 0.2]), np.trapezoid(X, dx=np.asarray([0.1, 0.2]))),
    "average": (lambda: bp.average(x, weights=TENTHS), np.average(X, weights=TENTHS)),
    "trapezoid": (lambda: bp.trapezoid(x, TENTHS), np.trapezoid(X, TENTHS)),
}


@pytest.mark.parametrize("name", CASES)
def test_floats_of_a_list_keep_their_digits_beside_float64(name):
    call, expected = CASES[name]
    found = call()
    assert found.dtype.name == expected.dtype.name
    np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-15)


def test_isin_finds_the_numbers_of_a_list():
    assert bp.isin(bp.asarray(TENTHS, dtype=bp.float64), [0.1, 0.3]).tolist() == [True, False, True]
    assert bp.searchsorted(bp.asarray(TENTHS, dtype=bp.float64), [0.1, 0.3]).tolist() == [0, 2]


def test_lists_take_the_default_dtype_beside_others():
    single = bp.asarray(TENTHS)
    assert bp.maximum(single, TENTHS).dtype is bp.float32 and bp.maximum(bp.asarray([1, 2, 3]), TENTHS).dtype is bp.float32
    assert bp.add(x, [1, 2, 3]).dtype is bp.float64 and bp.take(x, [0, 2]).tolist() == [0.25, 0.75]
    assert bp.maximum(x, np.float32([0.5, 0.5, 0.5])).dtype is bp.float64
    assert bp.where([True, False, True], x, 0.1).tolist() == [0.25, 0.1, 0.75]


@pytest.mark.parametrize("dtype", ["float64", "float16", "int8", "uint8", "uint64", "bool", "complex128", "int32"])
def test_arrays_in_a_list_keep_their_dtype(dtype):
    rows = [np.asarray([0, 1, 1], dtype), np.asarray([1, 1, 0], dtype)]
    for values in (rows, tuple(rows), [rows, rows], [np.stack(rows)]):
        found = bp.asarray(values)
        assert found.dtype.name == dtype
        np.testing.assert_array_equal(np.asarray(found), np.asarray(values))
    assert bp.asarray(rows, dtype=bp.complex64).dtype is bp.complex64


def test_arrays_in_a_list_keep_their_digits():
    assert bp.asarray([np.asarray([0.1]), np.asarray([0.2])]).tolist() == [[0.1], [0.2]]
    assert bp.tensor([np.asarray([0.1])]).item() == 0.1 and bp.sum([np.asarray([0.1])]).item() == 0.1
    assert bp.asarray([np.asarray([2**63], np.uint64)]).tolist() == [[2**63]]


@pytest.mark.parametrize("dtype", ["float64", "float16", "int8", "uint64", "bool", "complex128"])
def test_arrays_without_axes_keep_their_dtype_and_digits(dtype):
    one = np.asarray(0.1).astype(dtype)
    for values in ([one], [[one, one]], (one, one)):
        found = bp.asarray(values)
        assert found.dtype.name == dtype and found.numpy().tolist() == np.asarray(values).tolist()
    assert bp.asarray([one, 1]).dtype.name == ("int64" if dtype == "bool" else dtype)
    assert bp.asarray([np.asarray(2**63, np.uint64)]).tolist() == [2**63]
    assert bp.asarray([one, x[0]]).dtype is bp.promote_types(bp.asarray(one).dtype, bp.float64)
    with pytest.raises(TypeError, match="asarray: found a value of type numpy.ndarray"):
        bp.asarray([np.asarray("a")])


@pytest.mark.parametrize(
    "values, dtype",
    [([np.asarray([1.5]), [2]], bp.float64), ([np.asarray([1], np.int8), [2.5]], bp.float32), ([np.asarray([1], np.int8), [2]], bp.int8),
     ([np.asarray([True]), [2]], bp.int64), ([np.asarray([1.5]), [2j]], bp.complex128), ([np.float32([1]), [2j]], bp.complex64),
     ([np.float32([1]), np.asarray([2.0])], bp.float64), ([np.asarray([], np.int8)], bp.int8), ([np.float64(1.5), 2], bp.float32)],
    ids=str,
)  # fmt: skip
def test_arrays_promote_with_what_stands_beside_them(values, dtype):
    assert bp.asarray(values).dtype is dtype


def test_arrays_that_do_not_promote_are_refused():
    with pytest.raises(bp.DtypeError, match="asarray: found arrays of uint64 and int64"):
        bp.asarray([np.asarray([1], np.uint64), np.asarray([1])])
    assert bp.asarray([np.asarray([1], np.uint64), np.asarray([1])], dtype=bp.float64).tolist() == [[1.0], [1.0]]
    with pytest.raises(OverflowError, match="300"):
        bp.asarray([np.asarray([1], np.uint8), [300]])


def test_astype_of_a_name_is_astype_of_the_dtype():
    z = bp.asarray([1 + 2j, 3.0])
    for dtype in ("float32", np.float32, bp.float32):
        for found in (z.astype(dtype), bp.astype(z, dtype), z.to(dtype)):
            assert found.dtype is bp.float32 and found.tolist() == [1.0, 3.0]
    assert z.astype("complex64", copy=False) is z and z.astype("complex64") is not z
    with pytest.raises(bp.DtypeError, match="foo"):
        z.astype("foo")


def test_arrays_in_a_list_are_read_as_their_elements_are():
    rng = np.random.default_rng(3)
    grid = rng.standard_normal((4, 6, 5))
    for rows in (list(grid), list(grid[:, ::2]), list(grid.transpose(2, 0, 1)), [list(part) for part in grid], [grid[::-1]], [grid[:, :0]],
                 list(grid.astype(">f8")), [np.ma.masked_array(grid)]):  # fmt: skip
        found = bp.asarray(rows)
        np.testing.assert_array_equal(np.asarray(found, np.float64), np.asarray(rows).astype(found.dtype.name))
    assert bp.asarray([np.asarray([True, False]), [2, 0.5]]).tolist() == [[1.0, 0.0], [2.0, 0.5]]
    assert bp.asarray([np.asarray([2**63 + 5], np.uint64), [7]]).tolist() == [[2**63 + 5], [7]]
    with pytest.raises(bp.ShapeError, match="expected a sequence of 5"):
        bp.asarray([grid[0, 0], grid[0, 0, :3]])
    with pytest.raises(bp.ShapeError, match="expected a sequence of 0"):
        bp.asarray([grid[:0], grid[:0, :3]])
    with pytest.raises((TypeError, ValueError), match="asarray: found"):
        bp.asarray([np.asarray(["a"]), np.asarray(["b"])])
