"""var and std over no elements, or fewer than the correction takes: NumPy's values in every floating dtype, and gradients that say so."""

import backplane as bp
import numpy as np
import pytest
from backplane import _core

DTYPES = [bp.float16, bp.bfloat16, bp.float32, bp.float64]
CASES = [
    ((0,), None, 0), ((0,), None, 1), ((0,), None, 2), ((0, 3), 0, 1), ((0, 3), 0, 2.5), ((3, 0), -1, 1), ((2, 0, 3), (0, 1), 1), ((1,), None, 1),
    ((1,), None, 2), ((1, 4), 0, 1), ((4, 1), 1, 3), ((2,), None, 2), ((2,), None, 3), ((2, 3), 0, 2), ((2, 3), 0, 5), ((2, 3), 1, 3), ((2, 2, 2), (0, 2), 9),
    ((), None, 1), ((), None, 0), ((3,), None, 2.5),
]  # fmt: skip
pytestmark = pytest.mark.filterwarnings("ignore:.*(Degrees of freedom|Mean of empty slice|invalid value|divide by zero).*")


@pytest.fixture(params=[False, True], ids=["kernels", "primitives"], autouse=True)
def by(request):
    before = _core.force_decomposition(request.param)
    yield
    _core.force_decomposition(before)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", ["var", "std"])
@pytest.mark.parametrize("shape, axis, correction", CASES)
def test_values_are_numpy_s(shape, axis, correction, name, dtype):
    for array in (np.arange(float(np.prod(shape))).reshape(shape), np.full(shape, 3.0)):
        expected = getattr(np, name)(array, axis=axis, ddof=correction)
        for x in (bp.asarray(array, dtype=dtype), bp.asarray(np.repeat(array[..., None], 2, -1), dtype=dtype)[..., 0]):
            found = getattr(bp, name)(x, axis, correction=correction)
            assert found.dtype == dtype
            np.testing.assert_allclose(found.astype(bp.float64).numpy(), expected, rtol=1e-2)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape, axis, correction", CASES)
def test_gradients_are_never_finite_where_the_value_is_not(shape, axis, correction, dtype):
    x = bp.asarray(np.arange(float(np.prod(shape))).reshape(shape), dtype=dtype)
    for name in ("var", "std"):
        function = lambda x: bp.sum(getattr(bp, name)(x, axis, correction=correction))  # noqa: B023, E731
        slope = bp.grad(function)(x)
        assert slope.shape == shape and slope.dtype == dtype
        finite = bool(bp.all(bp.isfinite(getattr(bp, name)(x, axis, correction=correction))))
        if x.size and not finite:
            assert not bool(bp.any(bp.isfinite(slope)))
        if x.size and finite and name == "var":
            assert bool(bp.all(bp.isfinite(slope)))
        if x.size:
            _, tangent = bp.jvp(function, (x,), (bp.ones_like(x),))
            assert bool(bp.isfinite(tangent)) == (finite and (name == "var" or bool(bp.isfinite(bp.sum(slope)))))


@pytest.mark.parametrize("weights", [{}, {"fweights": 1}, {"aweights": 1}, {"fweights": 2, "aweights": 0.5}], ids=str)
@pytest.mark.parametrize("observations, ddof", [(0, None), (0, 0), (1, None), (1, 3), (2, 2), (2, 3), (3, 7)])
def test_covariances_are_numpy_s(observations, ddof, weights):
    array = np.arange(2.0 * observations).reshape(2, observations)
    array[1] *= -2
    integers = {name: np.full(observations, value) for name, value in weights.items()}
    expected = np.cov(array, ddof=ddof, **integers) if observations or not weights else np.full((2, 2), np.nan)
    found = bp.cov(bp.asarray(array), ddof=ddof, **{name: bp.asarray(value) for name, value in integers.items()})
    np.testing.assert_allclose(found.numpy(), expected)


def test_a_variance_is_never_negative_nor_a_negative_zero():
    for correction in (0, 1, 2, 3, 7.5):
        for x in (bp.zeros(0), bp.ones(1), bp.asarray([1.0, 2.0]), bp.asarray([[1.0, 5.0], [2.0, 2.0]])):
            found = bp.var(x, correction=correction)
            assert not bool(bp.signbit(found)) or bool(bp.isnan(found))


def test_maxima_put_back_where_positions_repeat_give_the_gradient_to_the_one_that_stays():
    """The last in order is what the result holds, so that its slope is 1 and the others' is 0, as finite differences say; PyTorch
    gives each the slope at its position."""
    x = bp.asarray([[[1.0, 2.0, 3.0, 4.0]], [[5.0, 6.0, 7.0, 8.0]]], dtype=bp.float64)
    at, weights = bp.asarray([[[1, 1, 0, 1]], [[2, 0, 2, 3]]]), bp.asarray([[[1.0, 10.0, 100.0, 1000.0]], [[2.0, 20.0, 200.0, 2000.0]]])

    def function(x):
        return bp.sum(bp.max_unpool(x, at, [4]) * weights)

    step, slope = 1e-6, np.zeros(x.shape)
    for place in np.ndindex(*x.shape):
        up = x.numpy().copy()
        up[place] += step
        slope[place] = (function(bp.asarray(up)).item() - function(x).item()) / step
    np.testing.assert_allclose(bp.grad(function)(x).numpy(), slope, rtol=1e-6)
    assert slope.round(3).tolist() == [[[0, 0, 1, 10]], [[0, 2, 200, 2000]]]
    direction = bp.arange(8.0).reshape((2, 1, 4)).astype(bp.float64)
    _, tangent = bp.jvp(function, (x,), (direction,))
    np.testing.assert_allclose(tangent.item(), np.sum(slope * direction.numpy()), rtol=1e-6)
    leaf = bp.copy(x)
    leaf.requires_grad = True
    function(leaf).backward()
    np.testing.assert_allclose(leaf.grad.numpy(), slope, rtol=1e-6)


@pytest.mark.parametrize("axis", [None, 0, (0, 1)])
@pytest.mark.parametrize("correction", [0, 1])
@pytest.mark.parametrize("name", ["var", "std"])
@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
def test_the_spread_of_complex_numbers_is_real(name, axis, correction, dtype):
    rng = np.random.default_rng(8)
    array = (rng.standard_normal((3, 4)) + 1j * rng.standard_normal((3, 4))).astype(dtype)
    expected = getattr(np, name)(array, axis=axis, ddof=correction)
    for found in (getattr(bp, name)(bp.asarray(array), axis=axis, correction=correction), getattr(bp.asarray(array), name)(dim=axis, unbiased=bool(correction))):
        assert found.dtype.name == expected.dtype.name
        np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-5 if dtype is np.complex64 else 1e-12)


def test_the_spread_of_equal_complex_numbers_has_the_gradient_zero():
    parts = bp.ones((3,))
    assert bp.grad(lambda x: bp.std(bp.complex_from(x, x)))(parts).tolist() == [0, 0, 0]
