"""float16 and bfloat16 are computed in float32 and rounded once, whatever the length and layout of the operands."""

import backplane as bp
import numpy as np
import pytest

F = bp.nn.functional
HALVES = [bp.float16, bp.bfloat16]
ONE = ("negative abs sqrt rsqrt exp exp2 expm1 log log1p log2 log10 sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh erf "
       "erfc erfinv cbrt lgamma sigmoid relu gelu silu square reciprocal floor ceil round trunc sign signbit isnan isinf isfinite").split()
ACTIVATIONS = "mish softsign logsigmoid hardswish hardsigmoid tanhshrink softplus elu leaky_relu hardtanh selu celu".split()
TWO = ("add subtract multiply divide maximum minimum less less_equal greater equal not_equal atan2 hypot logaddexp fmod remainder "
       "floor_divide copysign pow").split()


def same(found, expected):
    """Bit for bit, but for NaN, after rounding the float32 result."""
    expected = bp.astype(expected, found.dtype)
    if found.dtype is bp.bool:
        np.testing.assert_array_equal(found.numpy(), expected.numpy())
    else:
        np.testing.assert_array_equal(bp.astype(found, bp.float32).numpy(), bp.astype(expected, bp.float32).numpy())


def operands(n, dtype, seed=0):
    draw = np.random.default_rng(seed)
    values = draw.standard_normal(n).astype(np.float32) * 3
    values[: min(n, 6)] = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-6][:n]
    draw.shuffle(values)
    x = bp.astype(bp.asarray(values), dtype)
    return x, bp.astype(x, bp.float32)


@pytest.mark.parametrize("dtype", HALVES, ids=str)
@pytest.mark.parametrize("name", ONE + ACTIVATIONS)
def test_of_one_operand(name, dtype):
    f = getattr(bp, name, None) or getattr(F, name)
    for n in (1, 15, 16, 33, 1003):
        x, wide = operands(n, dtype)
        same(f(x), f(wide))
        same(f(x[::3]), f(wide[::3]))


@pytest.mark.parametrize("dtype", HALVES, ids=str)
@pytest.mark.parametrize("name", TWO)
def test_of_two_operands(name, dtype):
    f = getattr(bp, name)
    for n in (1, 16, 47, 1003):
        (x, wide_x), (y, wide_y) = operands(n, dtype), operands(n, dtype, seed=1)
        same(f(x, y), f(wide_x, wide_y))
        same(f(x, 1.5), f(wide_x, 1.5))
        same(f(-2.5, y), f(-2.5, wide_y))
        same(f(x[::2], y[::2]), f(wide_x[::2], wide_y[::2]))
        same(f(x[:3, None], y), f(wide_x[:3, None], wide_y))


@pytest.mark.parametrize("dtype", HALVES, ids=str)
@pytest.mark.parametrize("shape", [(3, 5), (40, 300), (300, 40), (2, 5000), (17, 2, 33)], ids=str)
def test_reductions(shape, dtype):
    x = bp.astype(bp.asarray(np.random.default_rng(2).standard_normal(shape).astype(np.float32)), dtype)
    wide = bp.astype(x, bp.float64)
    units = 2.0**-8 if dtype is bp.bfloat16 else 2.0**-11
    for axis in [None, *range(len(shape))]:
        for name in ("max", "min", "any", "all"):
            same(getattr(bp, name)(x, axis=axis), getattr(bp, name)(wide, axis=axis))
        for name in ("sum", "mean", "var", "logsumexp"):
            found, expected = (bp.astype(getattr(bp, name)(v, axis=axis), bp.float64).numpy() for v in (x, wide))
            np.testing.assert_allclose(found, expected, rtol=1.01 * units, atol=1e-5)
        if axis is not None:
            for name in ("softmax", "log_softmax"):
                found, expected = (bp.astype(getattr(bp, name)(v, axis=axis), bp.float64).numpy() for v in (x, wide))
                np.testing.assert_allclose(found, expected, rtol=1.01 * units, atol=1e-7)
        for name in ("argmax", "argmin"):
            np.testing.assert_array_equal(getattr(bp, name)(x, axis=axis).numpy(), getattr(bp, name)(wide, axis=axis).numpy())


@pytest.mark.parametrize("dtype", [*HALVES, bp.float32, bp.float64], ids=str)
def test_strange_elements_win(dtype):
    values = np.random.default_rng(3).standard_normal((70, 90)).astype(np.float32)
    values[5, 8] = values[40, 8] = np.nan
    values[6, 9] = np.inf
    x = bp.astype(bp.asarray(values), dtype)
    for axis in (0, 1, None):
        rounded = bp.astype(x, bp.float32).numpy()
        np.testing.assert_array_equal(bp.astype(bp.max(x, axis=axis), bp.float32).numpy(), np.max(rounded, axis=axis))
        np.testing.assert_array_equal(bp.argmax(x, axis=axis).numpy(), np.argmax(rounded, axis=axis))
        np.testing.assert_array_equal(bp.argmin(x, axis=axis).numpy(), np.argmin(rounded, axis=axis))


def every_number(dtype):
    """All 65,536 bit patterns; bfloat16's are the upper halves of float32's."""
    patterns = np.arange(1 << 16, dtype=np.uint16)
    wide = patterns.view(np.float16).astype(np.float32) if dtype is bp.float16 else (patterns.astype(np.uint32) << 16).view(np.float32)
    return bp.astype(bp.asarray(wide), dtype), wide


@pytest.mark.parametrize("dtype", HALVES, ids=str)
def test_every_number_is_classified(dtype):
    x, wide = every_number(dtype)
    for name in "isnan isinf isfinite signbit".split():
        np.testing.assert_array_equal(getattr(bp, name)(x).numpy(), getattr(np, name)(wide))
    signs = bp.astype(bp.sign(x), bp.float32).numpy()
    np.testing.assert_array_equal(signs, np.sign(wide))
    assert not np.signbit(signs[wide == 0]).any()


@pytest.mark.parametrize("dtype", HALVES, ids=str)
@pytest.mark.parametrize("other", [0.0, -0.0, 1.5, -1e-7, np.inf, -np.inf, np.nan])
def test_every_number_compares(dtype, other):
    x, wide = every_number(dtype)
    y = bp.full(x.shape, other, dtype=dtype)
    rounded = bp.astype(y, bp.float32).numpy()
    for name in "less less_equal greater greater_equal equal not_equal".split():
        expected = getattr(np, name)(wide, rounded)
        np.testing.assert_array_equal(getattr(bp, name)(x, y).numpy(), expected, err_msg=name)
        np.testing.assert_array_equal(getattr(bp, name)(x, y[0]).numpy(), expected, err_msg=name)


@pytest.mark.parametrize("name", ["cumulative_sum", "cumulative_prod"])
@pytest.mark.parametrize("dtype", HALVES, ids=str)
@pytest.mark.parametrize("shape", [(1, 1), (3, 1003), (1003, 3), (70, 300)], ids=str)
def test_running_results_are_rounded_once(shape, dtype, name):
    values = np.random.default_rng(4).uniform(0.8, 1.2, shape).astype(np.float32)
    values[0, 0] = -0.0
    x = bp.astype(bp.asarray(values), dtype)
    for axis in (0, 1):
        found, expected = getattr(bp, name)(x, axis=axis), getattr(bp, name)(bp.astype(x, bp.float64), axis=axis)
        same(found, bp.astype(expected, bp.float32))
        np.testing.assert_array_equal(bp.signbit(found).numpy(), bp.signbit(expected).numpy())


@pytest.mark.parametrize("dtype", HALVES, ids=str)
@pytest.mark.parametrize("weighted", [False, True])
def test_gradients_of_batch_norm(dtype, weighted):
    draw = np.random.default_rng(5)
    g, x, w = (bp.astype(bp.asarray(draw.standard_normal(shape).astype(np.float32)), dtype) for shape in ((3, 4, 5, 7), (3, 4, 5, 7), (4,)))
    wide = [bp.astype(v, bp.float64) for v in (g, x, w)]
    found = bp.batch_norm_grad(g, x, w if weighted else None)
    expected = bp.batch_norm_grad(*wide[:2], wide[2] if weighted else None)
    units = 2.0**-8 if dtype is bp.bfloat16 else 2.0**-11
    for each, want in zip(found, expected):
        np.testing.assert_allclose(bp.astype(each, bp.float64).numpy(), want.numpy(), rtol=1.01 * units, atol=1e-5)


@pytest.mark.parametrize("dtype", HALVES, ids=str)
@pytest.mark.parametrize("rows, inner, columns", [(1, 300, 200), (200, 300, 1), (65, 70, 67), (130, 1000, 33)])
def test_products_are_rounded_once(rows, inner, columns, dtype):
    draw = np.random.default_rng(6)
    x, y = (bp.astype(bp.asarray(draw.standard_normal(shape).astype(np.float32)), dtype) for shape in ((rows, inner), (inner, columns)))
    wide_x, wide_y = (bp.astype(v, bp.float64).numpy() for v in (x, y))
    exact = wide_x @ wide_y
    units = 2.0**-9 if dtype is bp.bfloat16 else 2.0**-12
    bound = 2 * units * np.abs(exact) + 2.0**-24 * np.sqrt(inner) * 4 * (np.abs(wide_x) @ np.abs(wide_y)) + 1e-7
    across, beside = bp.copy(x.T).T, bp.concat([y, y], axis=1)[:, :columns]
    strided = bp.zeros((columns, rows), dtype=dtype).T
    for _ in range(2):  # a library may compile a shape at its second sight
        for found in (x @ y, across @ y, x @ beside, across @ bp.copy(y.T).T, bp.matmul(x, y, out=strided)):
            assert np.all(np.abs(bp.astype(found, bp.float64).numpy() - exact) <= bound)


@pytest.mark.parametrize("dtype", HALVES, ids=str)
def test_every_number_in_order(dtype):
    x, wide = every_number(dtype)
    shuffled = np.random.default_rng(4).permutation(1 << 16)
    x, single = x[bp.asarray(shuffled)], bp.asarray(wide[shuffled])
    for name in ("sort", "argsort"):
        for descending in (False, True):
            for shape in ((1 << 16,), (64, 1024), (1024, 64)):  # by partition, by networks
                found, expected = (getattr(bp, name)(bp.reshape(v, shape), descending=descending) for v in (x, single))
                same(found, expected)
    found, expected = (bp.topk(bp.reshape(v, (16, 4096)), 9) for v in (x, single))
    same(found[0], expected[0])
    same(found[1], expected[1])
    for rows in (64, 1 << 16):  # rows of 1024 without and with a NaN, rows of one number
        for name in ("cummax", "cummin"):
            found, expected = (getattr(bp, name)(bp.reshape(v, (rows, -1)), axis=1) for v in (x, single))
            same(found[0], expected[0])
            same(found[1], expected[1])


@pytest.mark.parametrize("dtype", HALVES, ids=str)
@pytest.mark.parametrize("target", [bp.bool, bp.int8, bp.int32, bp.int64, bp.uint8, bp.uint64], ids=str)
def test_every_number_becomes_an_integer(dtype, target):
    x, wide = every_number(dtype)
    same(bp.astype(x, target), bp.astype(bp.asarray(wide), target))
    same(bp.astype(x[:77], target), bp.astype(bp.asarray(wide[:77]), target))


def rounded(wide, dtype):
    """float32 to nearest, ties to even, in NumPy."""
    if dtype is bp.float16:
        with np.errstate(over="ignore"):
            return wide.astype(np.float16).astype(np.float32)
    bits = wide.view(np.uint32)
    nearest = (bits + np.uint32(0x7FFF) + ((bits >> 16) & 1)) & np.uint32(0xFFFF0000)
    return np.where(np.isnan(wide), np.nan, nearest.view(np.float32))


@pytest.mark.parametrize("dtype", HALVES, ids=str)
@pytest.mark.parametrize("source", ["bool", "int8", "int16", "int32", "int64", "uint8", "uint32", "float32", "float64", "complex64", "half"])
def test_numbers_become_half_floats(source, dtype):
    bits = np.random.default_rng(5).integers(0, 1 << 63, 1 << 15)
    if source == "half":  # the other one: all of its numbers, NaN of every payload among them
        x, wide = every_number(HALVES[dtype is bp.float16])
    else:
        values = bits % 2 == 1 if source == "bool" else bits.view(source)[:40_000]
        if source in ("float64", "complex64"):
            values = bits.view(np.float32)[:40_000].astype(source)
        x, wide = bp.asarray(values), values.real.astype(np.float32)
    for n in (len(wide), 1023):
        found = bp.astype(x[:n], dtype)
        np.testing.assert_array_equal(bp.astype(found, bp.float32).numpy(), rounded(wide[:n], dtype))


@pytest.mark.parametrize("dtype", HALVES, ids=str)
@pytest.mark.parametrize("window", [([2, 2], [], [0, 0]), ([3, 3], [1, 1], [1, 1]), ([3, 2], [2, 3], [1, 0])], ids=str)
def test_pooling(window, dtype):
    x, wide = operands(2 * 3 * 17 * 19, dtype)
    x, wide = (bp.reshape(v, (2, 3, 17, 19)) for v in (x, wide))
    for name in ("max_pool2d", "avg_pool2d"):
        same(getattr(bp, name)(x, *window), getattr(bp, name)(wide, *window))
    same(bp.max_pool2d_with_indices(x, *window)[1], bp.max_pool2d_with_indices(wide, *window)[1])


@pytest.mark.parametrize("dtype", HALVES, ids=str)
def test_many_sums_are_rounded_once(dtype):
    """Rounded each time, a sum of ones ends at 2048 in float16 and at 256 in bfloat16."""
    ones, at = bp.ones((4096, 3), dtype=dtype), bp.zeros((4096,), dtype=bp.int64)
    expected = np.array([[4096.0] * 3, [0.0] * 3], dtype=np.float32)
    for found in (bp.segment_sum(ones, at, 2), bp.index_add(bp.zeros((2, 3), dtype=dtype), 0, at, ones)):
        np.testing.assert_array_equal(bp.astype(found, bp.float32).numpy(), expected)
    assert float(bp.segment_sum(ones[:, 0] + 0, at, 1)[0]) == 4096


FORMS = {"float16": (11, -24, 65536.0), "bfloat16": (8, -133, 2.0**128)}  # bits with the leading one, exponent of the least, overflow


def nearest_half(values, dtype):
    """float64 to the nearest half float, ties to even: every step but rint is exact."""
    bits, least, overflow = FORMS[dtype.name]
    _, exponent = np.frexp(values)
    step = np.maximum(exponent - bits, least)
    found = np.ldexp(np.rint(np.ldexp(values, -step)), step)
    return np.where(np.abs(found) >= overflow, np.copysign(np.inf, values), found)


def around_ties(dtype):
    """Every number but NaN and inf, the middles between neighbours, and numbers a last bit of float64 or float32 away from them."""
    halves = np.unique(bp.astype(every_number(dtype)[0], bp.float64).numpy())
    halves = halves[np.isfinite(halves)]
    middles = np.append(halves[:-1] / 2 + halves[1:] / 2, [65519.999, 65520.0, 65520.001, 1e300, 1e-300, np.inf])
    near = [f(at) for at in (halves, middles) for f in (lambda v: np.nextafter(v, np.inf), lambda v: np.nextafter(v, -np.inf),
                                                        lambda v: v * (1 + 2.0**-26), lambda v: v * (1 - 2.0**-26))]  # fmt: skip
    return np.concatenate([halves, middles, *near])


@pytest.mark.parametrize("dtype", HALVES, ids=str)
def test_float64_is_rounded_once(dtype):
    values = around_ties(dtype)
    values = values[np.abs(values) < 1e301]
    expected = nearest_half(values, dtype)
    if dtype is bp.float16:
        with np.errstate(over="ignore"):
            np.testing.assert_array_equal(expected, values.astype(np.float16).astype(np.float64))
    x = bp.asarray(values)
    wide = bp.asarray(np.repeat(values, 2))[::2]
    for found in (bp.cast(x, dtype), bp.cast(wide, dtype), bp.cast(bp.asarray(values + 1j), dtype), bp.cast(bp.stack([x[:-1], x[1:]], axis=1), dtype)[:, 0]):
        found = bp.astype(found, bp.float64).numpy()
        np.testing.assert_array_equal(found, expected[: found.size])
    for value, half in list(zip(values, expected))[:: values.size // 500]:
        made = [bp.cast(bp.asarray(value), dtype), bp.full((), float(value), dtype=dtype), bp.asarray([float(value)], dtype=dtype)[0]]
        assert [bp.astype(one, bp.float64).item() for one in made] == [half] * 3


def test_running_numbers_are_rounded_once():
    for dtype in HALVES:
        tie = 1 + 2.0 ** -FORMS[dtype.name][0]
        found = bp.astype(bp.iota(4, start=tie, step=2.0**-40, dtype=dtype), bp.float64)
        np.testing.assert_array_equal(found.numpy(), nearest_half(tie + np.arange(4) * 2.0**-40, dtype))


@pytest.mark.parametrize("source", ["int32", "uint32", "int64", "uint64"])
def test_integers_are_rounded_once(source):
    limits = np.iinfo(source)
    values = {sign * ((256 + k) * 2**shift + more) // 2 for k in (0, 1, 2, 3, 201, 253, 255) for shift in range(57) for more in (-1, 0, 1, 2)
              for sign in (1, -1)}  # fmt: skip
    values = sorted(v for v in values | {limits.min, limits.max, 0, 2**24 + 1} if limits.min <= v <= limits.max)

    def nearest(n):
        shift = max(abs(n).bit_length() - 8, 0)
        whole, rest = divmod(abs(n), 1 << shift)
        up = 2 * rest > 1 << shift or (2 * rest == 1 << shift and whole % 2)
        return float((whole + bool(up)) << shift) * (1 if n >= 0 else -1)

    for repeats in (1, 300):
        array = np.repeat(np.array(values, dtype=source), repeats)
        found = bp.astype(bp.cast(bp.asarray(array), bp.bfloat16), bp.float64).numpy()
        np.testing.assert_array_equal(found, np.repeat([nearest(n) for n in values], repeats))
