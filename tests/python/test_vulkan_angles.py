"""Sine and cosine on Vulkan over all floats: angles of any size, and those that lie next to a multiple of pi / 2."""

import backplane as bp
import mpmath
import numpy as np
import pytest

# The floats that come nearest to a multiple of pi / 2 (J.-M. Muller: Elementary Functions, 11.4).
NEAREST = {"float32": [16367173 * 2.0**72], "float64": [6381956970095103 * 2.0**797, 5319372648326541 * 2.0**255]}


def _angles(dtype):
    rng = np.random.default_rng(3)
    most = np.finfo(dtype).maxexp
    sizes = rng.uniform(1, 2, 1000) * np.exp2(rng.integers(-8, most, 1000))
    with mpmath.workprec(1200):
        multiples = [float(mpmath.nint(mpmath.mpf(x) / (mpmath.pi / 2)) * mpmath.pi / 2) for x in sizes[:300]]
    angles = np.concatenate([sizes * rng.choice([-1, 1], 1000), multiples, NEAREST[dtype]]).astype(dtype)
    return angles[np.isfinite(angles)]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", ["sin", "cos"])
def test_large_angles_keep_their_digits(vulkan, name, dtype):
    angles = _angles(dtype)
    found = getattr(bp, name)(bp.asarray(angles, device=vulkan)).numpy()
    with mpmath.workprec(1200):
        wanted = [getattr(mpmath, name)(mpmath.mpf(float(x))) for x in angles]
        units = [abs(mpmath.mpf(float(y)) - t) / mpmath.mpf(float(np.spacing(abs(found.dtype.type(t))))) for y, t in zip(found, wanted)]
    worst = int(np.argmax(units))
    assert units[worst] <= 2.5, (angles[worst], found[worst], wanted[worst])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_no_angle(vulkan, dtype):
    angles = bp.asarray([np.inf, -np.inf, np.nan, 0.0, -0.0], dtype=dtype, device=vulkan)
    np.testing.assert_array_equal(bp.sin(angles).numpy(), [np.nan, np.nan, np.nan, 0.0, -0.0])
    np.testing.assert_array_equal(bp.cos(angles).numpy(), [np.nan, np.nan, np.nan, 1.0, 1.0])
    assert np.signbit(bp.sin(angles).numpy()).tolist()[3:] == [False, True]
