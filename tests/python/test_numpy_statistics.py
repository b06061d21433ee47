"""Reductions without NaN, quantiles, counts, covariances and sampled functions are NumPy's."""

import backplane as bp
import numpy as np
import pytest

RNG = np.random.default_rng(5)
HOLES = RNG.standard_normal((3, 4, 5))
HOLES[RNG.random((3, 4, 5)) < 0.3] = np.nan
HOLES[0, 0] = np.nan
WHOLE = RNG.standard_normal((3, 4, 5))

pytestmark = pytest.mark.filterwarnings("ignore:.*(All-NaN|Mean of empty|Degrees of freedom|invalid value|divide by zero).*")


def strided(x):
    return bp.asarray(np.repeat(x, 2, axis=-1))[..., ::2] if x.ndim else bp.asarray(x)


def same(found, expected, tolerance=1e-12):
    assert found.shape == np.shape(expected)
    np.testing.assert_allclose(found.numpy(), expected, rtol=tolerance, atol=tolerance)


def slopes(function, x, step=1e-6):
    found = np.zeros(x.shape)
    for at in np.ndindex(*x.shape):
        up, down = x.copy(), x.copy()
        up[at] += step
        down[at] -= step
        found[at] = (function(bp.asarray(up)).item() - function(bp.asarray(down)).item()) / (2 * step)
    return found


def differentiates(function, x, tolerance=1e-6):
    weights = None

    def scalar(t):
        nonlocal weights
        y = function(t)
        weights = bp.asarray(RNG.standard_normal(y.shape)) if weights is None else weights
        return bp.sum(y * weights)

    found = bp.grad(scalar)(bp.asarray(x)).numpy()
    np.testing.assert_allclose(found, slopes(scalar, x), rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("name", ["nansum", "nanprod", "nanmean", "nanvar", "nanstd", "nanmax", "nanmin"])
@pytest.mark.parametrize("axis", [None, 0, -1, (0, 2)])
@pytest.mark.parametrize("keepdims", [False, True])
def test_reductions_leave_nan_out(name, axis, keepdims):
    expected = getattr(np, name)(HOLES, axis=axis, keepdims=keepdims)
    for x in (bp.asarray(HOLES), strided(HOLES)):
        same(getattr(bp, name)(x, axis, keepdims=keepdims), expected)


@pytest.mark.parametrize("name", ["nansum", "nanprod", "nanmean", "nanmax", "nanmin", "nanargmax", "nanargmin", "nanmedian"])
def test_reductions_without_nan_take_integers_and_no_axes(name):
    x = np.array([[3, -1, 2], [0, 5, 4]])
    same(getattr(bp, name)(bp.asarray(x), axis=1), getattr(np, name)(x, axis=1), 1e-6)
    same(getattr(bp, name)(bp.asarray(2.5)), getattr(np, name)(np.array(2.5)))


def test_corrections_count_what_is_there():
    same(bp.nanvar(bp.asarray(HOLES), 2, correction=1), np.nanvar(HOLES, 2, ddof=1))
    same(bp.nansum(bp.zeros((0, 3), dtype=bp.float64), 0), np.zeros(3))


@pytest.mark.parametrize("name", ["nanargmax", "nanargmin"])
def test_positions_pass_over_nan(name):
    x = HOLES[1:].copy()
    x[0, 0, :3] = [np.nan, -np.inf, np.inf]
    for axis in (None, 0, -1):
        if axis is None or not np.isnan(x).all(axis=axis).any():
            same(getattr(bp, name)(bp.asarray(x), axis), getattr(np, name)(x, axis))
    lonely = np.array([np.nan, -np.inf, np.nan])
    assert getattr(bp, name)(bp.asarray(lonely)).item() == 1
    with pytest.raises(ValueError, match="only NaN"):
        getattr(bp, name)(bp.asarray(HOLES), -1)


@pytest.mark.parametrize("name", ["nansum", "nanprod", "nanmean", "nanvar", "nanmax", "nanmin", "nanmedian"])
def test_reductions_without_nan_differentiate(name):
    x = WHOLE[0].copy()
    differentiates(lambda t: getattr(bp, name)(bp.where(t > 1.2, float("nan"), t), 1), x)


CHOOSING = ["lower", "higher", "nearest", "inverted_cdf", "closest_observation"]
BETWEEN = [
    "linear", "midpoint", "averaged_inverted_cdf", "interpolated_inverted_cdf", "hazen", "weibull", "median_unbiased", "normal_unbiased"
]  # fmt: skip
QS = [0.5, 0.0, 1.0, [0.1, 0.25, 0.8]]


@pytest.mark.parametrize("q", QS)
@pytest.mark.parametrize("method", CHOOSING + BETWEEN)
@pytest.mark.parametrize("axis, keepdims", [(None, False), (1, False), ((0, 2), True), (-1, True)])
def test_quantiles_are_numpys(q, method, axis, keepdims):
    for name in ("quantile", "nanquantile"):
        for x in (WHOLE, HOLES):
            expected = getattr(np, name)(x, q, axis=axis, method=method, keepdims=keepdims)
            same(getattr(bp, name)(strided(x), q, axis, method=method, keepdims=keepdims), expected)
    same(bp.percentile(bp.asarray(WHOLE), np.multiply(q, 100).tolist(), axis, method=method, keepdims=keepdims),
         np.percentile(WHOLE, np.multiply(q, 100), axis=axis, method=method, keepdims=keepdims))  # fmt: skip


def test_axes_of_q_come_first():
    q = [[0.3, 0.7]]
    same(bp.quantile(bp.asarray(WHOLE), q, 1), np.quantile(WHOLE, q, axis=1))
    # NumPy 2 mixes the kept axes with the axes of a q with two; the forms are otherwise equal.
    assert bp.quantile(bp.asarray(WHOLE), q, (0, 2), keepdims=True).shape == (1, 2, 1, 4, 1)


@pytest.mark.parametrize("axis", [None, 0, 1, (1, 2)])
def test_medians_are_numpys(axis):
    for x in (WHOLE, WHOLE[:2], HOLES):
        same(bp.median(bp.asarray(x), axis), np.median(x, axis))
        same(bp.nanmedian(bp.asarray(x), axis), np.nanmedian(x, axis))
        same(bp.ptp(bp.asarray(x), axis), np.ptp(x, axis))


def test_quantiles_take_integers_infinities_and_tensors():
    x = np.array([5, 1, 4, 2])
    assert bp.quantile(bp.asarray(x), 0.5).dtype is bp.float32
    same(bp.quantile(bp.asarray(x), bp.asarray([0.2, 0.5])), np.quantile(x, [0.2, 0.5]), 1e-6)
    edge = np.array([-np.inf, 0.0, 1.0, np.inf])
    same(bp.quantile(bp.asarray(edge), [0.0, 1 / 3, 1.0]), np.array([-np.inf, 0, np.inf]))
    with pytest.raises(ValueError, match="outside"):
        bp.quantile(bp.asarray(x), 1.5)
    with pytest.raises(ValueError, match="method"):
        bp.quantile(bp.asarray(x), 0.5, method="median")
    with pytest.raises(ValueError, match="no elements"):
        bp.median(bp.zeros((0, 3)), 0)


@pytest.mark.parametrize("size", [1, 2, 3, 4, 8])
@pytest.mark.parametrize("method", CHOOSING + BETWEEN)
def test_quantiles_at_and_between_positions_are_numpys(method, size):
    x, q = np.sort(WHOLE.ravel())[:size], [0, 0.125, 0.25, 1 / 3, 0.375, 0.5, 0.625, 2 / 3, 0.75, 0.9, 1]
    same(bp.quantile(bp.asarray(x), q, method=method), np.quantile(x, q, method=method))


@pytest.mark.parametrize("method", CHOOSING)
def test_a_chosen_element_keeps_its_dtype_and_digits(method):
    x = [2**40 + 1, 2**40 + 3, -5, 2**62 + 1]
    for name in ("quantile", "nanquantile"):
        found = getattr(bp, name)(bp.asarray(x), [0.0, 0.4, 0.6, 1.0], method=method)
        assert found.dtype is bp.int64 and found.tolist() == np.quantile(x, [0.0, 0.4, 0.6, 1.0], method=method).tolist()
    narrow = np.asarray([[3, 200, 7], [250, 1, 0]], np.uint8)
    found = bp.percentile(bp.asarray(narrow), 40, axis=1, method=method, keepdims=True)
    assert found.dtype is bp.uint8 and found.tolist() == np.percentile(narrow, 40, axis=1, method=method, keepdims=True).tolist()
    assert bp.percentile(bp.asarray([2**40 + 1, 2**40 + 3]), 50, method="lower").tolist() == 2**40 + 1
    assert bp.percentile(bp.asarray([True, False, True]), 50, method=method).tolist() is True


@pytest.mark.parametrize("method", ["linear", "lower", "midpoint", "averaged_inverted_cdf", "hazen"])
def test_quantiles_differentiate_and_batch(method):
    differentiates(lambda t: bp.quantile(t, [0.3, 0.65], 1, method=method), WHOLE[0])
    rows = bp.vmap(lambda row: bp.quantile(row, 0.4, method=method))(bp.asarray(WHOLE[0]))
    same(rows, np.quantile(WHOLE[0], 0.4, axis=1, method=method))


@pytest.mark.parametrize("equal_nan", [False, True])
def test_closeness_is_numpys(equal_nan):
    x = np.array([1.0, 1e10, 1e-8, np.nan, np.inf, -np.inf, np.inf, 0.0])
    y = np.array([1.00001, 1.00001e10, 1e-9, np.nan, np.inf, np.inf, 5.0, -0.0])
    same(bp.isclose(bp.asarray(x), bp.asarray(y), equal_nan=equal_nan), np.isclose(x, y, equal_nan=equal_nan))
    assert bp.allclose(bp.asarray(x[:2]), bp.asarray(y[:2])) is np.allclose(x[:2], y[:2])
    assert bp.allclose(bp.asarray(x), bp.asarray(x), equal_nan=equal_nan) is equal_nan
    assert bp.array_equal(bp.asarray(x), bp.asarray(x), equal_nan=equal_nan) is equal_nan
    assert bp.array_equal(bp.ones((2, 1)), bp.ones(2)) is False and bp.array_equal(bp.ones((0, 2)), bp.ones((0, 2)))
    assert bp.allclose(bp.asarray([1, 2]), bp.asarray([1, 2]))


def test_averages_are_numpys():
    w, v = RNG.uniform(0.5, 2, (3, 4, 5)), RNG.uniform(0.5, 2, 4)
    for axis in (None, 0, (0, 2)):
        same(bp.average(bp.asarray(WHOLE), axis, bp.asarray(w)), np.average(WHOLE, axis, w))
        same(bp.average(bp.asarray(WHOLE), axis, keepdims=True), np.average(WHOLE, axis, keepdims=True))
    for found, expected in zip(bp.average(bp.asarray(WHOLE), 1, bp.asarray(v), True), np.average(WHOLE, 1, v, True)):
        same(found, expected)
    with pytest.raises(ValueError, match="weights"):
        bp.average(bp.asarray(WHOLE), 0, bp.asarray(v))


@pytest.mark.parametrize("more", [{}, {"rowvar": False}, {"bias": True}, {"ddof": 0}, {"fweights": [1, 2, 3, 1, 2]}, {"aweights": [0.5, 1, 2, 1, 1.5]},
                                  {"fweights": [1, 2, 3, 1, 2], "aweights": [0.5, 1, 2, 1, 1.5], "ddof": 2}])  # fmt: skip
def test_covariances_are_numpys(more):
    x, y = RNG.standard_normal((3, 5)), RNG.standard_normal((2, 5))
    if more.get("rowvar") is False:
        x, y = x.T.copy(), y.T.copy()
    given = {name: bp.asarray(value) if isinstance(value, list) else value for name, value in more.items()}
    same(bp.cov(bp.asarray(x), **given), np.cov(x, **more))
    same(bp.cov(bp.asarray(x), bp.asarray(y), **given), np.cov(x, y, **more))


def test_correlations_are_numpys():
    x, z = RNG.standard_normal((3, 6)), RNG.standard_normal((2, 4)) + 1j * RNG.standard_normal((2, 4))
    same(bp.corrcoef(bp.asarray(x)), np.corrcoef(x))
    same(bp.corrcoef(bp.asarray(x[0]), bp.asarray(x[1])), np.corrcoef(x[0], x[1]))
    same(bp.cov(bp.asarray(x[0])), np.cov(x[0]))
    same(bp.corrcoef(bp.asarray(z)), np.corrcoef(z))
    differentiates(lambda t: bp.cov(t), x[:, :4].copy())


@pytest.mark.parametrize("dtype", ["int64", "uint8", "int16"])
def test_counts_are_numpys(dtype):
    x, w = np.array([0, 3, 1, 3, 3], dtype), np.array([0.5, 1, 2, 4, 8])
    for found, expected in (
        (bp.bincount(bp.asarray(x)), np.bincount(x)),
        (bp.bincount(bp.asarray(x), minlength=6), np.bincount(x, minlength=6)),
        (bp.bincount(bp.asarray(x), bp.asarray(w)), np.bincount(x, w)),
        (bp.bincount(bp.asarray(x[:0])), np.bincount(x[:0])),
    ):
        same(found, expected)
        assert found.dtype.name == expected.dtype.name
    with pytest.raises(ValueError, match="negative"):
        bp.bincount(bp.asarray([-1]))


@pytest.mark.parametrize("right", [False, True])
def test_bins_are_found_as_by_numpy(right):
    x, edges = np.array([[-1.0, 0.0, 0.5], [1.0, 2.0, 9.0]]), np.array([0.0, 1.0, 2.0])
    same(bp.digitize(bp.asarray(x), bp.asarray(edges), right), np.digitize(x, edges, right))
    same(bp.digitize(bp.asarray(x), bp.asarray(edges[::-1].copy()), right), np.digitize(x, edges[::-1], right))
    with pytest.raises(ValueError, match="monotonic"):
        bp.digitize(bp.asarray(x), bp.asarray([0.0, 2.0, 1.0]))


@pytest.mark.parametrize("more", [{}, {"bins": 4}, {"bins": [-1.0, 0.0, 0.25, 2.0]}, {"range": (-1.0, 1.0), "bins": 7}, {"density": True}])
def test_histograms_are_numpys(more):
    for x in (WHOLE, np.array([1.0, 1.0]), np.array([0.0, 0.1, 0.2, 0.3, 1.0]), np.arange(7), np.zeros((0,))):
        if more.get("density") and x.size == 0:
            continue
        found, edges = bp.histogram(bp.asarray(x), **more)
        expected, expected_edges = np.histogram(x, **more)
        same(edges, expected_edges)
        same(found, expected)
    w = RNG.uniform(0, 1, WHOLE.shape)
    same(bp.histogram(bp.asarray(WHOLE), weights=bp.asarray(w))[0], np.histogram(WHOLE, weights=w)[0])
    for weights in (w, w + 1j * RNG.uniform(0, 1, WHOLE.shape)):
        same(bp.histogram(bp.asarray(WHOLE), density=True, weights=bp.asarray(weights))[0], np.histogram(WHOLE, density=True, weights=weights)[0])


def test_interpolation_is_numpys():
    xp, fp = np.array([0.0, 1.0, 2.5, 4.0]), np.array([1.0, -1.0, 3.0, 2.0])
    x = np.array([[-1.0, 0.0, 0.3], [1.0, 3.9, 7.0], [4.0, 2.5, np.nan]])
    given = [bp.asarray(v) for v in (x, xp, fp)]
    same(bp.interp(*given), np.interp(x, xp, fp))
    same(bp.interp(*given, left=-9.0, right=9.0), np.interp(x, xp, fp, -9.0, 9.0))
    same(bp.interp(given[0], bp.asarray(xp[[2, 0, 3, 1]]), bp.asarray(fp[[2, 0, 3, 1]]), period=5.0), np.interp(x, xp[[2, 0, 3, 1]], fp[[2, 0, 3, 1]], period=5.0))
    same(bp.interp(given[0][:2], bp.asarray(xp[:1]), bp.asarray(fp[:1])), np.interp(x[:2], xp[:1], fp[:1]))
    inner = np.array([0.3, 1.7, 3.1])
    differentiates(lambda t: bp.interp(t, given[1], given[2]), inner)
    differentiates(lambda t: bp.interp(bp.asarray(inner), given[1], t), fp)


def test_interpolation_between_infinities_is_numpys():
    for fp in ([0, np.inf, 1, -np.inf], [np.inf, np.inf, -np.inf, np.inf], [-np.inf, 5, np.nan, 2]):
        x, xp = np.linspace(-0.5, 3.5, 17), np.arange(4.0)
        same(bp.interp(bp.asarray(x), bp.asarray(xp), bp.asarray(np.asarray(fp))), np.interp(x, xp, fp))


@pytest.mark.parametrize("edge_order", [1, 2])
def test_gradients_of_samples_are_numpys(edge_order):
    t = np.array([0.0, 0.5, 2.0, 2.25])
    for found, expected in zip(bp.gradient(bp.asarray(WHOLE), edge_order=edge_order), np.gradient(WHOLE, edge_order=edge_order)):
        same(found, expected)
    same(bp.gradient(bp.asarray(WHOLE), 0.5, axis=1, edge_order=edge_order), np.gradient(WHOLE, 0.5, axis=1, edge_order=edge_order))
    same(bp.gradient(bp.asarray(WHOLE), bp.asarray(t), axis=1, edge_order=edge_order), np.gradient(WHOLE, t, axis=1, edge_order=edge_order))
    pair = bp.gradient(bp.asarray(WHOLE), 2.0, bp.asarray(t), axis=(0, 1), edge_order=edge_order)
    for found, expected in zip(pair, np.gradient(WHOLE, 2.0, t, axis=(0, 1), edge_order=edge_order)):
        same(found, expected)
    differentiates(lambda v: bp.gradient(v, bp.asarray(t), edge_order=edge_order), WHOLE[0, :, 0].copy())
    with pytest.raises(ValueError, match="elements along"):
        bp.gradient(bp.ones(edge_order), edge_order=edge_order)


def test_trapezoids_are_numpys():
    x = np.sort(RNG.standard_normal(4))
    for axis in (0, 1, -1):
        same(bp.trapezoid(bp.asarray(WHOLE), dx=0.5, axis=axis), np.trapezoid(WHOLE, dx=0.5, axis=axis))
    same(bp.trapezoid(bp.asarray(WHOLE), bp.asarray(x), axis=1), np.trapezoid(WHOLE, x, axis=1))
    same(bp.trapezoid(bp.asarray(WHOLE), bp.asarray(WHOLE)), np.trapezoid(WHOLE, WHOLE))
    steps = np.diff(RNG.standard_normal(5))
    same(bp.trapezoid(bp.asarray(WHOLE), dx=bp.asarray(steps)), np.trapezoid(WHOLE, dx=steps))
    same(bp.trapezoid(bp.asarray(WHOLE), dx=bp.asarray(np.asarray(0.5))), np.trapezoid(WHOLE, dx=0.5))


@pytest.mark.parametrize("mode", ["full", "same", "valid"])
@pytest.mark.parametrize("n, m", [(7, 3), (7, 4), (3, 7), (4, 7), (1, 1), (5, 5), (6, 2), (2, 6)])
@pytest.mark.parametrize("dtype", ["float64", "int64", "complex128"])
def test_convolutions_are_numpys(mode, n, m, dtype):
    x, y = (RNG.standard_normal(n) * 5).astype(dtype), (RNG.standard_normal(m) * 5).astype(dtype)
    if dtype == "complex128":
        x, y = x + 1j * RNG.standard_normal(n), y + 1j * RNG.standard_normal(m)
    same(bp.convolve(bp.asarray(x), bp.asarray(y), mode=mode), np.convolve(x, y, mode))
    same(bp.correlate(bp.asarray(x), bp.asarray(y), mode=mode), np.correlate(x, y, mode))


@pytest.mark.parametrize("name", ["median", "nanargmax", "cov", "histogram", "ravel", "gradient", "trapezoid", "vander", "convolve", "split"])
@pytest.mark.parametrize("given", [["1.0", "2.0"], "3", np.array(["a"]), None, object()])
def test_what_is_no_tensor_is_refused_by_name(name, given):
    with pytest.raises(TypeError, match=f"{name}: argument [xyf]: found {type(given).__name__}"):
        getattr(bp, name)(given, bp.ones(3)) if name in ("convolve", "split") else getattr(bp, name)(given)


INF = np.inf
EXTREMES = [[INF], [-INF, INF], [1, INF], [INF, INF], [-INF, 1], [-INF, -INF], [-INF, 1, 2], [-INF, 1, 2, INF], [1, 2, INF, INF], [1, np.nan, INF]]


@pytest.mark.parametrize("values", EXTREMES, ids=str)
@pytest.mark.parametrize("name", ["nanvar", "nanstd", "nanmean", "median", "nanmedian"])
@pytest.mark.filterwarnings("ignore")
def test_infinities_as_numpy_has_them(name, values):
    for dtype in (np.float32, np.float64):
        x = np.asarray(values, dtype)
        np.testing.assert_array_equal(bp.to_numpy(getattr(bp, name)(bp.asarray(x))), getattr(np, name)(x))


@pytest.mark.parametrize("dtype", [bp.float16, bp.bfloat16, bp.float32, bp.float64], ids=str)
def test_what_lies_between_elements_does_not_overflow(dtype):
    top = bp.finfo(dtype).max
    ends = bp.asarray([-top, top], dtype=dtype)
    assert float(bp.median(ends)) == float(bp.nanmedian(ends)) == 0
    assert float(bp.median(bp.asarray([top, top], dtype=dtype))) == top
    assert float(bp.quantile(ends, 0.25)) == pytest.approx(-top / 2, rel=2 * bp.finfo(dtype).eps)


def test_between_infinite_elements_lies_an_infinity():
    x = bp.asarray([-INF, 1.0, 2.0, INF], dtype=bp.float64)
    assert bp.quantile(x, [0, 0.1, 1 / 3, 0.5, 0.9, 1]).tolist() == [-INF, -INF, 1.0, 1.5, INF, INF]
    assert bp.quantile(bp.asarray([0.1, 0.1, 0.1]), 0.3).item() == bp.asarray(0.1).item()  # of equal elements just that


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
@pytest.mark.filterwarnings("ignore")
def test_anything_complex_to_the_power_zero_is_one(dtype):
    x = np.asarray([0, 1j, 2 - 1j, np.nan, INF], dtype)
    for zero in (0, 0.0, 0j, np.zeros(5, dtype)):
        power = bp.asarray(zero) if isinstance(zero, np.ndarray) else zero
        np.testing.assert_array_equal(bp.to_numpy(bp.asarray(x) ** power), np.ones(5, dtype))
    np.testing.assert_array_equal(bp.to_numpy(0j ** bp.asarray(np.asarray([0, 1, 2, 1 + 1j], dtype))), [1, 0, 0, 0])


@pytest.mark.parametrize("dtype", [bp.float16, bp.float32, bp.float64])
@pytest.mark.parametrize("x", [[np.nan, 0, 1], [-np.inf, np.nan, 0], [-np.inf, -np.inf, 1], [1, np.nan, 2], [np.inf, 1, np.nan]])
def test_running_log_sums_keep_a_nan(dtype, x):
    expected = np.logaddexp.accumulate(np.array(x))
    np.testing.assert_allclose(np.asarray(bp.logcumsumexp(bp.asarray(x, dtype=dtype)).astype(bp.float64)), expected, rtol=1e-3)


@pytest.mark.parametrize("weights, words", [({"fweights": [1.5, 2, 1]}, "fweights: found a fraction"), ({"fweights": [1, -2, 1]}, "fweights: found a negative"),
                                            ({"aweights": [1, -2, 1]}, "aweights: found a negative"), ({"ddof": 1, "correction": 1}, "found ddof and correction")])  # fmt: skip
def test_weights_that_numpy_refuses(weights, words):
    with pytest.raises((bp.ArgumentValueError, bp.ArgumentTypeError), match=f"cov: .*{words}"):
        bp.cov(bp.ones((2, 3)), **weights)
