"""bfloat16 in NumPy, through ml_dtypes."""

import io

import backplane as bp
import ml_dtypes
import numpy as np

X = bp.asarray([[1.0, -2.5, 3e38], [float("nan"), 1e-40, 0.0]], dtype=bp.float32)


def test_a_tensor_is_an_array_of_ml_dtypes():
    x = bp.cast(X, bp.bfloat16)
    for array in (x.numpy(), np.asarray(x), x.T.numpy().T):
        assert array.dtype == ml_dtypes.bfloat16
        np.testing.assert_array_equal(array.astype(np.float32), bp.cast(x, bp.float32).numpy())


def test_it_is_saved_and_comes_back():
    x = bp.cast(X, bp.bfloat16)
    held = io.BytesIO()
    np.save(held, x)
    held.seek(0)
    loaded = np.load(held).view(ml_dtypes.bfloat16)
    np.testing.assert_array_equal(loaded.astype(np.float32), bp.cast(x, bp.float32).numpy())
