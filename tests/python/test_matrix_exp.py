"""The exponential of a matrix: what must hold of any."""

import operator
from fractions import Fraction

import backplane as bp
import numpy as np
import pytest


@pytest.mark.parametrize("dtype, accuracy", [("float32", 1e-5), ("float64", 1e-13), ("complex64", 1e-5), ("complex128", 1e-13)])
@pytest.mark.parametrize("scale", [1e-3, 1.0, 4.0, 40.0])
def test_of_a_matrix_with_known_eigenvectors(dtype, accuracy, scale):
    draw = np.random.default_rng(0)
    vectors = np.linalg.qr(draw.standard_normal((5, 5)) + 1j * draw.standard_normal((5, 5)) * (dtype[0] == "c"))[0]
    values = draw.uniform(-1, 1, 5) * scale
    x = (vectors * values) @ vectors.conj().T
    expected = (vectors * np.exp(values)) @ vectors.conj().T
    found = np.asarray(bp.linalg.matrix_exp(bp.asarray(x.astype(dtype) if dtype[0] == "c" else x.real.astype(dtype))))
    assert found.dtype == dtype
    assert np.abs(found - expected).max() <= accuracy * np.abs(expected).max() * max(scale, 1)


def test_special_matrices():
    nilpotent = np.diag(np.full(3, 20.0), 1)
    power = np.linalg.matrix_power
    expected = np.eye(4) + nilpotent + power(nilpotent, 2) / 2 + power(nilpotent, 3) / 6
    np.testing.assert_allclose(np.asarray(bp.linalg.matrix_exp(bp.asarray(nilpotent))), expected, rtol=1e-9, atol=1e-9)
    assert np.array_equal(np.asarray(bp.linalg.matrix_exp(bp.zeros((2, 3, 3)))), np.broadcast_to(np.eye(3), (2, 3, 3)))
    for bad in (np.nan, np.inf):
        assert np.isnan(np.asarray(bp.linalg.matrix_exp(bp.asarray([[1.0, bad], [0.0, 1.0]])))).all()


def exact(x):
    """Of a real or complex matrix of floats, by integers of 700 bits after the point."""
    bits = 700
    x = np.asarray(x)
    n = len(x)
    real = np.block([[x.real, -x.imag], [x.imag, x.real]]) if x.dtype.kind == "c" else x
    size = len(real)
    scaled = [[int(Fraction(float(v)) * (1 << bits)) for v in row] for row in real]
    halvings = max(0, max(abs(v) for row in scaled for v in row).bit_length() - bits + size.bit_length() + 4)
    scaled = [[v >> halvings for v in row] for row in scaled]

    def product(a, b):
        columns = list(zip(*b))
        return [[sum(map(operator.mul, row, column)) >> bits for column in columns] for row in a]

    total = [[(i == j) << bits for j in range(size)] for i in range(size)]
    term = total
    for k in range(1, 70):
        term = [[v // k for v in row] for row in product(term, scaled)]
        total = [[a + b for a, b in zip(*rows)] for rows in zip(total, term)]
    for _ in range(halvings):
        total = product(total, total)
    real = np.array([[float(Fraction(v, 1 << bits)) for v in row] for row in total])
    return real[:n, :n] + 1j * real[n:, :n] if x.dtype.kind == "c" else real


def collection():
    draw = np.random.default_rng(7)
    triangular = np.triu(draw.standard_normal((6, 6)))
    found = {
        "nilpotent": [[0, 1e5], [0, 0]],
        "nilpotent and dense": [[1e5, 1e5], [-1e5, -1e5]],
        "one large coupling": [[1, 1e8], [0, -1]],
        "a chain of large couplings": np.diag(np.full(7, 1e3), 1),
        "strictly triangular": np.triu(draw.standard_normal((8, 8)) * 1e3, 1),
        "triangular": triangular + np.triu(np.full((6, 6), 1e6), 1),
        "lower": (triangular + np.triu(np.full((6, 6), 1e6), 1)).T,
        "jordan": np.diag(np.full(5, -3.0)) + np.diag(np.ones(4), 1),
        "jordan, far from 0": np.diag(np.full(4, -300.0)) + np.diag(np.full(3, 50.0), 1),
        "companion": np.diag(np.ones(3), -1) + np.outer([-24.0, 50, -35, 10], [0, 0, 0, 1]),
        "near-defective": [[1, 1], [1e-12, 1]],
        "badly scaled": [[1, 1e-12, 1e6], [1e2, -2, 1e-3], [1e-9, 1e-5, 0.5]],
        "blocks": np.block([[draw.standard_normal((2, 2)), np.full((2, 2), 1e9)], [np.zeros((2, 2)), draw.standard_normal((2, 2))]]),
    }
    for scale in (1e-10, 1e-3, 1.0, 30.0):
        found[f"random, times {scale}"] = draw.standard_normal((5, 5)) * scale
    return {name: np.array(x, float) for name, x in found.items()}


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("name", collection())
def test_of_a_collection_that_is_far_from_normal(name, dtype):
    x = collection()[name].astype(dtype)
    x = x * np.exp(0.3j).astype(dtype) if dtype[0] == "c" else x
    expected = exact(x).astype(dtype)
    eps = np.finfo(dtype).eps
    found = np.asarray(bp.linalg.matrix_exp(bp.asarray(x)))
    sensitivity = 1e10 if name == "nilpotent and dense" else 2000  # |x|^2: what a change of x by eps does to the result
    close = abs(found - expected) <= sensitivity * eps * abs(expected).max()
    if dtype in ("float32", "complex64"):  # computed in float64
        close &= abs(found - expected) <= 4 * eps * abs(expected) + 1e-10 * abs(expected).max()
    assert close.all(), (found, expected)
    stack = np.asarray(bp.linalg.matrix_exp(bp.asarray(np.stack([x, x * 0.5]))))
    assert np.array_equal(stack[0], found)


@pytest.mark.parametrize("scale", [1e-200, 1e-30, 1.0, 1e12, 1e200])
@pytest.mark.parametrize("name", ["nilpotent", "triangular", "jordan", "random, times 1.0"])
def test_the_derivative_is_linear_in_its_cotangent(name, scale):
    x = collection()[name]
    cotangent = np.random.default_rng(3).standard_normal(x.shape)
    doubled = exact(np.block([[x.T, cotangent], [np.zeros_like(x), x.T]]))
    expected = doubled[: len(x), len(x) :]
    _, pull = bp.vjp(bp.linalg.matrix_exp, bp.asarray(x))
    (found,) = pull(bp.asarray(cotangent * scale))
    _, forward = bp.jvp(bp.linalg.matrix_exp, (bp.asarray(x.T),), (bp.asarray(cotangent * scale),))
    for gradient in (found, forward):
        assert np.abs(np.asarray(gradient) / scale - expected).max() <= 1e-10 * np.abs(expected).max()
