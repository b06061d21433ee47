"""Calls that run on a device and on the CPU, for the tests of backends."""

import ctypes

import backplane as bp
import numpy as np
import pytest

RNG = np.random.default_rng(13)


def normal(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


def same(function, device, *arrays, **tolerance):
    expected = function(*(bp.asarray(array, device="cpu") for array in arrays)).numpy()
    found = function(*(bp.asarray(array, device=device) for array in arrays))
    assert found.device == device and found.dtype == bp.float32
    np.testing.assert_allclose(found.numpy(), expected, **tolerance)


def recorded_by(library, name):
    """How much has gone to a stand-in of tests/cuda/libraries."""
    try:
        count = getattr(ctypes.CDLL(library), name)
    except (OSError, AttributeError):
        pytest.skip(f"the stand-in for {library} is not on LD_LIBRARY_PATH")
    count.restype = ctypes.c_uint64
    return count()


# Views of two dimensions.
LAYOUTS = {
    "contiguous": lambda x: x,
    "transposed": lambda x: x.T,
    "from an offset": lambda x: x[1:, 2:],
    "every second": lambda x: x[::2, ::2],
    "backward": lambda x: x[::-1, ::-1],
    "backward with steps": lambda x: x[::-2, 5::-3],
    "one row": lambda x: x[2],
    "empty": lambda x: x[:0],
    "a single element": lambda x: x[1, 1],
}
