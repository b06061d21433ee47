"""Inputs for the libraries, and a comparison of their results with those for NumPy's arrays."""

import backplane as bp
import numpy as np

RNG = np.random.default_rng(7)
X = RNG.normal(size=(30, 4))
V = np.linspace(0.1, 2.0, 6)
Y = X @ np.array([1.0, -2.0, 0.5, 0.0]) + 0.1 * RNG.normal(size=30)
LABELS = (X[:, 0] > 0).astype(np.int64)


def tensors(*arrays):
    return [bp.asarray(array, copy=True) for array in arrays]


def same(found, expected, rtol=1e-9):
    """Tensors where NumPy gives arrays, of the same values."""
    if isinstance(expected, (tuple, list)):
        assert len(found) == len(expected)
        for one, other in zip(found, expected):
            same(one, other, rtol)
        return
    if isinstance(expected, np.ndarray):
        assert isinstance(found, bp.Tensor), type(found)
    np.testing.assert_allclose(np.asarray(found), expected, rtol=rtol, atol=1e-9)
