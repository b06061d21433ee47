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
    """Bit for bit, but for NaN, after rounding what was computed in float32."""
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
