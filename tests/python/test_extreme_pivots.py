"""Matrices with pivots that are subnormal, or whose products leave the range of the dtype: determinants, inverses and solutions that fit are found.

The reference is arithmetic of fractions.
"""

import math
from fractions import Fraction

import backplane as bp
import numpy as np
import pytest

DTYPES = {"float32": -133, "float64": -1030, "complex64": -133, "complex128": -1030}  # exponents of subnormal numbers
MATRICES = {
    "one": [[1]],
    "diagonal": [[1, 0], [0, "1"]],
    "all small": [[1, 2], [3, 1]],
    "small first row": [[1, 2], ["3", "1"]],
    "small column": [[1, "2"], [3, "1"]],
    "tridiagonal": [[2, 1, 0], [1, 3, 1], [0, 1, 2]],
    "lower": [["1", 0, 0], ["2", 1, 0], ["1", "1", "3"]],
}  # numbers are times the small one, texts as they are


def matrix(name, dtype, turn):
    small = Fraction(2) ** DTYPES[dtype]
    exact = [[Fraction(v) if isinstance(v, str) else v * small for v in row] for row in MATRICES[name]]
    values = np.asarray([[float(v) for v in row] for row in exact], dtype.replace("complex64", "float32").replace("complex128", "float64"))
    return exact, bp.asarray(values, dtype=getattr(bp, dtype)) * (1j if turn else 1)


def determinant(a):
    if len(a) == 1:
        return a[0][0]
    minors = ([row[:j] + row[j + 1 :] for row in a[1:]] for j in range(len(a)))
    return sum((-1) ** j * a[0][j] * determinant(minor) for j, minor in enumerate(minors))


def number(fraction):
    try:
        return float(fraction)
    except OverflowError:
        return np.inf if fraction > 0 else -np.inf


def near(found, expected, dtype, turned=1):
    """In units of the largest; numbers beyond the dtype are not compared."""
    info = bp.finfo(getattr(bp, dtype))
    expected = np.vectorize(number, otypes=[float])(np.asarray(expected, object))
    with np.errstate(invalid="ignore"):
        found = np.asarray(found.numpy(), np.complex128) / turned
    fits = abs(expected) < float(info.max)
    assert fits.any() and np.isfinite(found[fits]).all(), (found, expected)
    size = abs(expected[fits]).max()
    assert abs(found[fits] - expected[fits]).max() <= 32 * max(float(info.eps) * size, float(info.smallest_normal) * float(info.eps)), (found, expected)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", MATRICES)
def test_what_fits_is_found(name, dtype):
    for turn in (False, True) if dtype.startswith("complex") else (False,):
        exact, a = matrix(name, dtype, turn)
        n, unit = len(exact), 1j if turn else 1
        det = determinant(exact)
        near(bp.linalg.det(a), det, dtype, unit**n)
        sign, log = bp.linalg.slogdet(a)
        assert abs(sign.item() / unit**n - (1 if det > 0 else -1)) < 1e-6
        expected = math.log(abs(det).numerator) - math.log(det.denominator)
        np.testing.assert_allclose(log.item(), expected, rtol=4 * float(bp.finfo(log.dtype).eps))
        near(bp.linalg.solve(a, a), np.eye(n, dtype=int), dtype)
        near(bp.linalg.solve(a, a[:, 0]), np.eye(n, dtype=int)[:, 0], dtype)
        inverse = [[(-1) ** (i + j) * determinant([r[:i] + r[i + 1 :] for r in exact[:j] + exact[j + 1 :]] or [[Fraction(1)]]) / det for j in range(n)] for i in range(n)]
        if all(abs(number(v)) < float(bp.finfo(a.dtype).max) for row in inverse for v in row):
            near(bp.linalg.inv(a), inverse, dtype, 1 / unit)


@pytest.mark.parametrize(("dtype", "size"), [("float32", 1e30), ("float64", 1e200), ("complex64", 1e30), ("complex128", 1e200)])
def test_products_of_pivots_may_leave_the_range_on_the_way(dtype, size):
    for values in ([size, size, 1 / size, 1 / size], [1 / size, 1 / size, size, size, 3.0]):
        a = bp.asarray(np.diag(values), dtype=getattr(bp, dtype))
        np.testing.assert_allclose(bp.linalg.det(a).numpy(), 3 if len(values) == 5 else 1, rtol=1e-5 if "32" in dtype or "64" in dtype else 1e-13)
    assert bp.linalg.det(bp.asarray(np.diag([size, size, 0, np.nan]), dtype=getattr(bp, dtype))).numpy() != 0


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_matrices_that_are_singular_stay_so(dtype):
    tiny = 2.0 ** DTYPES[dtype]
    for values in ([[tiny, 2 * tiny], [2 * tiny, 4 * tiny]], [[1.0, 2.0], [2.0, 4.0]], [[0.0, 0.0], [0.0, tiny]]):
        a = bp.asarray(values, dtype=getattr(bp, dtype))
        assert bp.linalg.det(a).item() == 0 and bp.linalg.slogdet(a)[1].item() == -np.inf
        for function in (bp.linalg.inv, lambda a: bp.linalg.solve(a, a)):
            with pytest.raises(bp.DataError, match="singular"):
                function(a)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("n", [3, 40])
def test_triangular_systems_with_subnormal_diagonals(dtype, n):
    tiny = 2.0 ** DTYPES[dtype]
    a = np.triu(np.full((n, n), tiny) * (1 + np.eye(n)))
    x = np.ones((n, 2))
    found = bp.ops.bp.solve_triangular(bp.asarray(a, dtype=getattr(bp, dtype)), bp.asarray(a @ x, dtype=getattr(bp, dtype)), upper=True)
    np.testing.assert_allclose(found.numpy(), x, rtol=1e-3)
