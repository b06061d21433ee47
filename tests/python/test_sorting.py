"""sort, argsort and topk against NumPy over dtypes and lengths: ties keep their order, NaN is largest, zeros are equal."""

import backplane as bp
import numpy as np
import pytest

DTYPES = ["bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float16", "float32", "float64"]


def numbers(dtype, n):
    draw = np.random.default_rng(0)
    if dtype == "bool":
        return draw.random(n) < 0.5
    if np.issubdtype(dtype, np.integer):
        return draw.integers(np.iinfo(dtype).min, np.iinfo(dtype).max, n, dtype=dtype, endpoint=True)
    x = draw.integers(-50, 50, n).astype(dtype) / 4
    if n > 10:
        x[3:9] = [np.nan, 0.0, np.inf, -np.inf, -0.0, 0.0]
    return x.astype(dtype)


@pytest.mark.parametrize("n", [1, 2, 15, 17, 100, 257, 1000, 70_001])
@pytest.mark.parametrize("dtype", DTYPES)
def test_as_numpy(dtype, n):
    x = numbers(dtype, n)
    ours = bp.asarray(x)
    wide = x.astype(np.float64) if dtype == "float16" else x  # NumPy 2.4 leaves some float16 arrays unsorted
    upward = np.argsort(wide, stable=True)
    downward = (n - 1 - np.argsort(wide[::-1], stable=True))[::-1]
    assert np.array_equal(np.asarray(bp.argsort(ours)), upward)
    assert np.array_equal(np.asarray(bp.argsort(ours, descending=True)), downward)
    assert np.array_equal(np.asarray(bp.sort(ours)), x[upward], equal_nan=True)
    assert np.array_equal(np.asarray(bp.sort(ours, descending=True)), x[downward], equal_nan=True)
    for k in sorted({0, 1, min(n, 10), n // 2, n} if dtype != "bool" else ()):
        for largest, order in ((True, downward), (False, upward)):
            values, places = bp.topk(ours, k, largest=largest)
            assert np.array_equal(np.asarray(places), order[:k])
            assert np.array_equal(np.asarray(values), x[order[:k]], equal_nan=True)


PATTERNS = {
    "alike": lambda n: np.zeros(n),
    "alike but the last": lambda n: np.arange(n) == n - 1,
    "ascending": np.arange,
    "descending": lambda n: np.arange(n)[::-1],
    "two values": lambda n: np.random.default_rng(0).integers(0, 2, n),
    "sawtooth": lambda n: np.arange(n) % 97,
    "mostly the greatest": lambda n: np.minimum(np.random.default_rng(0).integers(0, 2000, n), 100),
    "a sample of zeros": lambda n: np.where(np.arange(n) % (n // 256) == n // 256 // 2, 0, np.arange(n)),
}


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("dtype", ["int32", "float32", "float64", "uint64"])
@pytest.mark.parametrize("pattern", PATTERNS)
def test_long_lanes_of_patterns(pattern, dtype, threads):
    before = bp.get_num_threads()
    bp.set_num_threads(threads)
    try:
        for n in (2049, 3 * 2048 + 5, 70_003):
            x = PATTERNS[pattern](n).astype(dtype)
            assert np.array_equal(np.asarray(bp.sort(bp.asarray(x))), np.sort(x))
            assert np.array_equal(np.asarray(bp.sort(bp.asarray(x), descending=True)), np.sort(x)[::-1])
    finally:
        bp.set_num_threads(before)


@pytest.mark.parametrize("axis", [0, 1])
def test_topk_along_an_axis(axis):
    x = np.random.default_rng(0).standard_normal((40, 50)).astype(np.float32)
    values, places = bp.topk(bp.asarray(x), 7, axis=axis)
    order = np.argsort(-x, axis=axis, stable=True).take(range(7), axis)
    assert np.array_equal(np.asarray(places), order)
    assert np.array_equal(np.asarray(values), np.take_along_axis(x, order, axis))


def awkward(dtype, shape):
    """Values of the whole range of a dtype, with its ends, and for floating ones NaN of both signs, infinities and -0."""
    draw = np.random.default_rng(3)
    if np.issubdtype(dtype, np.integer):
        ends = np.iinfo(dtype)
        x = draw.integers(ends.min, ends.max, shape, dtype, endpoint=True)
        special = [ends.max, ends.min]
    else:
        x = draw.standard_normal(shape).astype(dtype)
        special = [np.nan, -np.nan, np.inf, -np.inf, -0.0, 0.0]
    flat = x.reshape(-1)
    flat[: len(special)] = special[: flat.size]
    return draw.permuted(x, axis=1)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint32", "int64", "uint64", "float16", "float32", "float64"])
def test_lanes_of_every_length_sort(dtype):
    """Around the sizes of vectors, of blocks of vectors and of the networks' end."""
    for n in [*range(36), 63, 64, 65, 127, 129, 255, 256, 257, 300, 511, 513, 1024, 1500, 2047, 2048, 2049]:
        x = awkward(np.dtype(dtype), (3, n))
        wide = x.astype(np.float64) if dtype == "float16" else x
        for given, axis in ((bp.asarray(x), 1), (bp.asarray(x.T.copy()), 0), (bp.asarray(x.T.copy()).T, 1)):
            ascending, descending = (np.asarray(bp.sort(given, axis=axis, descending=turned)) for turned in (False, True))
            expected = np.sort(wide) if axis == 1 else np.sort(wide).T
            assert np.array_equal(ascending, expected, equal_nan=not np.issubdtype(dtype, np.integer)), n
            assert np.array_equal(descending, np.flip(expected, axis), equal_nan=not np.issubdtype(dtype, np.integer)), n
        assert np.array_equal(np.asarray(bp.argsort(bp.asarray(x))), np.argsort(wide, kind="stable")), n


@pytest.mark.parametrize("dtype", ["int16", "int32", "int64", "uint64", "float16", "float32", "float64"])
def test_the_first_of_equals_or_the_first_nan_is_the_place(dtype):
    draw = np.random.default_rng(5)
    for n in [*range(1, 40), 63, 64, 65, 255, 256, 257, 1000, 8191, 8192, 8193, 20_000]:
        few = draw.integers(0, 5, (4, n)).astype(dtype)  # equals abound
        last = np.zeros((2, n), dtype)
        last[0, n - 1], last[1, 0] = 1, 1
        cases = [few, last, awkward(np.dtype(dtype), (3, n)) if n > 2 else few]
        if not np.issubdtype(dtype, np.integer):
            alone = few.copy()
            alone[np.arange(4), draw.integers(0, n, 4)] = np.nan
            cases += [alone, -few, np.full((1, n), np.nan, dtype), np.full((1, n), -np.inf, dtype)]
        for x in cases:
            for ours, theirs in ((bp.argmax, np.argmax), (bp.argmin, np.argmin)):
                assert np.array_equal(np.asarray(ours(bp.asarray(x), axis=1)), theirs(x, axis=1)), n
                assert int(ours(bp.asarray(x[0]))) == theirs(x[0]), n


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize(("dtype", "x1"), [("uint64", [0, 2**63 + 1]), ("float64", [0.0, 2.0**63, np.nan])])
def test_searchsorted_takes_a_number_that_only_uint64_holds(dtype, x1, side):
    for number in (2**63, 2**63 + 3):
        found = bp.searchsorted(bp.asarray(x1, dtype=getattr(bp, dtype)), number, side=side)
        assert found.item() == np.searchsorted(np.array(x1, dtype), np.array(number, dtype), side=side)


def same_signs(found, expected):
    return np.array_equal(found, expected, equal_nan=True) and np.array_equal(np.signbit(found), np.signbit(expected))


@pytest.mark.parametrize("n", [2, 3, 8, 17, 100, 1000, 70_001])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("descending", [False, True])
def test_zeros_of_both_signs_keep_their_order(dtype, n, descending):
    x = np.random.default_rng(n).choice([0.0, -0.0, -0.0, 1.0, -1.0, np.nan], n).astype(dtype)
    x[:2] = [0.0, -0.0]
    places = np.asarray(bp.argsort(bp.asarray(x), descending=descending))
    assert same_signs(np.asarray(bp.sort(bp.asarray(x), descending=descending)), x[places])
    strided = bp.asarray(np.stack([x, x[::-1]], axis=1))
    assert same_signs(np.asarray(bp.sort(strided, axis=0, descending=descending))[:, 0], x[places])
    values, where = bp.topk(bp.asarray(x), n, largest=descending)
    assert same_signs(np.asarray(values), x[np.asarray(where)])
