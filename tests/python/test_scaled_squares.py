"""Functions of squares at sizes whose squares leave the range of the dtype: homogeneous functions follow the size, and so do their gradients.

Sizes are powers of two, so that scaling rounds nothing.
"""

import backplane as bp
import backplane.nn.functional as F
import numpy as np
import pytest
from backplane import _core

SIZES = {bp.float32: [2.0**e for e in (66, 100, -66, -100)], bp.float64: [2.0**e for e in (530, 800, -530, -800)]}
EACH = [(dtype, size) for dtype, sizes in SIZES.items() for size in sizes]
BASE = np.asarray([[0.5, -0.25, 0.125, 0.75], [0.25, 0.5, -0.0625, -1.0], [1.0, 0.3, 0.7, -0.2]])
KEPT = np.asarray([[True, True, False, True], [True, True, True, False], [False, True, True, True]])


def over_groups(function):
    return lambda x: function(bp.reshape(x, (1, 3, 4)))


def of_complex(function):
    return lambda x: function(x * bp.asarray(0.6 + 0.8j, dtype=bp.complex64 if x.dtype is bp.float32 else bp.complex128))


# Degree -> functions f with f(s x) = s^degree f(x).
HOMOGENEOUS = {
    1: {
        "std of rows": lambda x: bp.std(x, axis=1, correction=1),
        "std of columns": lambda x: bp.std(x, axis=0, keepdims=True),
        "std of all": bp.std,
        "std over two axes": lambda x: bp.std(bp.reshape(x, (3, 2, 2)), axis=(0, 2)),
        "std where": lambda x: bp.std(x, axis=1, where=bp.asarray(KEPT)),
        "std of complex": of_complex(lambda z: bp.std(z, axis=1)),
        "std_mean": lambda x: bp.std_mean(x)[0],
        "nanstd": lambda x: bp.nanstd(x, axis=1),
        "nanstd of complex": of_complex(lambda z: bp.nanstd(z, axis=1)),
        "lp_pool1d": lambda x: F.lp_pool1d(x[None], 2, 2),
        "lp_pool1d of order 3": lambda x: F.lp_pool1d(bp.abs(x)[None], 3, 3, stride=1),
        "lp_pool1d of order 1.5": lambda x: F.lp_pool1d(bp.abs(x)[None], 1.5, 3, ceil_mode=True),
        "lp_pool2d": lambda x: F.lp_pool2d(x[None], 2, (2, 3), stride=1, ceil_mode=True),
        "lp_pool3d": lambda x: F.lp_pool3d(bp.reshape(x, (1, 3, 2, 2)), 2, (2, 1, 2), stride=1),
    },
    0: {
        "corrcoef": bp.corrcoef,
        "corrcoef of complex": of_complex(lambda z: bp.real(bp.corrcoef(z))),
        "layer_norm": lambda x: F.layer_norm(x, (4,), eps=0.0),
        "layer_norm of columns": lambda x: bp.layer_norm(x, axis=[0], eps=0.0),
        "layer_norm with weight": lambda x: F.layer_norm(x, (4,), bp.asarray([1.0, 2.0, -1.0, 0.5], dtype=x.dtype), eps=0.0),
        "group_norm": over_groups(lambda x: F.group_norm(x, 3, eps=0.0)),
        "instance_norm": over_groups(lambda x: F.instance_norm(x, eps=0.0)),
        "batch_norm of two axes": lambda x: bp.batch_norm(x, eps=0.0)[0],
        "batch_norm of images": over_groups(lambda x: bp.batch_norm(x, bp.asarray([1.0, 2.0, -1.0], dtype=x.dtype), eps=0.0)[0]),
        "rms_norm": lambda x: F.rms_norm(x, (4,), eps=0.0),
    },
}
FUNCTIONS = [(degree, name) for degree, functions in HOMOGENEOUS.items() for name in functions]


@pytest.fixture(params=[False, True], ids=["kernel", "primitives"])
def way(request):
    before = _core.force_decomposition(request.param)
    yield
    _core.force_decomposition(before)


def near(found, expected, dtype, units=64):
    found, expected = found.numpy(), expected.numpy()
    assert np.isfinite(expected).all()
    np.testing.assert_allclose(found, expected, rtol=0, atol=units * float(bp.finfo(dtype).eps) * max(abs(expected).max(), 1e-3))


def weighted(function, x):
    y = function(x)
    return bp.sum(y * bp.reshape(bp.cos(bp.arange(y.size, dtype=x.dtype)), y.shape))


@pytest.mark.parametrize(("dtype", "size"), EACH, ids=str)
@pytest.mark.parametrize(("degree", "name"), FUNCTIONS, ids=str)
def test_a_homogeneous_function_follows_the_size(degree, name, dtype, size, way):
    function, small = HOMOGENEOUS[degree][name], bp.asarray(BASE, dtype=dtype)
    found = function(small * size)
    near(found / size if degree else found, function(small), dtype)
    slopes = [bp.grad(lambda x: weighted(function, x))(x) for x in (small * size, small)]
    near(slopes[0] if degree else slopes[0] * size, slopes[1], dtype)


@pytest.mark.parametrize(("dtype", "size"), EACH, ids=str)
@pytest.mark.parametrize(("degree", "name"), FUNCTIONS, ids=str)
def test_so_does_a_forward_derivative(degree, name, dtype, size, way):
    function, small = HOMOGENEOUS[degree][name], bp.asarray(BASE, dtype=dtype)
    along = bp.asarray(BASE[::-1].copy(), dtype=dtype)
    found, expected = (bp.jvp(function, (x,), (along,))[1] for x in (small * size, small))
    near(found if degree else found * size, expected, dtype)


@pytest.mark.parametrize("dtype", [bp.float32, bp.float64], ids=str)
def test_windows_of_one_plane_may_differ_in_size(dtype, way):
    exponents = np.arange(-120, 125, 9) if dtype is bp.float32 else np.arange(-1010, 1020, 33)
    x = 2.0 ** np.repeat(exponents, 2) * np.tile([3.0, 4.0], exponents.size)
    for order, root in ((2, 5.0), (3, 91 ** (1 / 3)), (1, 7.0)):
        found = F.lp_pool1d(bp.asarray(x, dtype=dtype)[None], order, 2)[0].numpy()
        np.testing.assert_allclose(found, root * 2.0**exponents, rtol=32 * float(bp.finfo(dtype).eps))
        slope = bp.grad(lambda x: bp.sum(F.lp_pool1d(x[None], order, 2)))(bp.asarray(x, dtype=dtype)).numpy()
        expected = np.tile((np.asarray([3.0, 4.0]) / root) ** (order - 1), exponents.size)
        np.testing.assert_allclose(slope, expected, rtol=32 * float(bp.finfo(dtype).eps))
    zeros = bp.asarray([[0.0, 0.0, np.nan, 1.0, np.inf, 1.0]], dtype=dtype)
    np.testing.assert_array_equal(F.lp_pool1d(zeros, 2, 2).numpy(), [[0, np.nan, np.inf]])
    assert bp.grad(lambda x: bp.sum(F.lp_pool1d(x, 2, 2)))(bp.zeros((1, 4), dtype=dtype)).tolist() == [[0] * 4]


@pytest.mark.parametrize(("dtype", "size"), EACH, ids=str)
def test_a_covariance_that_fits_is_found(dtype, size, way):
    base, weights = bp.asarray(BASE, dtype=dtype), bp.asarray([1.0, 2.0, 0.5, 1.0], dtype=dtype)
    scaled = bp.concat([base[:1] * size, base[1:2] / size, base[2:] * size], axis=0)
    for more in ({}, {"aweights": weights}):
        expected, found = bp.cov(base, **more), bp.cov(scaled, **more)
        near(found[0, 1], expected[0, 1], dtype)
        near(found[1, 2], expected[1, 2], dtype)
        near(bp.grad(lambda x: bp.cov(x, **more)[0, 1])(scaled)[0] * size, bp.grad(lambda x: bp.cov(x, **more)[0, 1])(base)[0], dtype)


@pytest.mark.parametrize("dtype", [bp.float32, bp.float64], ids=str)
def test_a_covariance_that_overflows_is_infinite(dtype):
    x = bp.asarray([[1.0, -1.0], [-1.0, 1.0]], dtype=dtype) * (1e30 if dtype is bp.float32 else 1e200)
    assert bp.cov(x).tolist() == [[np.inf, -np.inf], [-np.inf, np.inf]]


@pytest.mark.parametrize(("dtype", "size"), [(d, s) for d, s in EACH if s > 1], ids=str)
def test_a_large_local_response_is_that_of_its_channels(dtype, size, way):
    """Where k does not count any more, the function has the degree 1 - 2 beta."""
    x = bp.asarray(BASE.T[None].copy(), dtype=dtype)
    function = lambda x, k: F.local_response_norm(x, 3, alpha=0.5, beta=0.5, k=k)  # noqa: E731
    near(function(x * size, 1.0), function(x, 0.0), dtype)
    slopes = [bp.grad(lambda v: weighted(lambda v: function(v, k), v))(v) for v, k in ((x * size, 1.0), (x, 0.0))]
    near(slopes[0] * size, slopes[1], dtype)
    assert np.isfinite(F.local_response_norm(x * size, 3).numpy()).all() and (F.local_response_norm(x * size, 3).numpy() != 0).all()


@pytest.mark.parametrize("dtype", [bp.float32, bp.float64], ids=str)
def test_the_deviation_of_equal_and_of_single_numbers(dtype, way):
    nan, inf = np.nan, np.inf
    x = bp.asarray([[0.1] * 5, [nan] * 5, [nan, 1, 1, 1, 1], [inf, 1, 2, 3, 4], [inf] * 5], dtype=dtype)
    np.testing.assert_array_equal(bp.std(x, axis=1).numpy(), [0, nan, nan, nan, nan])
    assert bp.grad(lambda x: bp.std(x))(bp.full(4, 0.1, dtype=dtype)).tolist() == [0] * 4
    assert np.isnan(bp.std(x[:, :1], axis=1, correction=1).numpy()).all()
