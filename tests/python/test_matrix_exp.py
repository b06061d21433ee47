"""The exponential of a matrix: what must hold of any."""

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
