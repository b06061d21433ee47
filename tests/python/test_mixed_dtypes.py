"""Functions of several ops compute operands of different floating dtypes in their common dtype, from the first op on."""

import itertools
import math

import numpy as np
import pytest

import backplane as bp
import backplane.compat.torch as torch
import backplane.nn.functional as F
from backplane.compat import numpy as bnp

_rng = np.random.default_rng(7)


def real(*shape):
    return _rng.uniform(0.1, 2, size=shape)


CASES = {
    "logaddexp2": (bp.logaddexp2, [real(4), real(4)]),
    "addmv": (bp.addmv, [real(3), real(3, 3), real(3)]),
    "addr": (bp.addr, [real(3, 3), real(3), real(3)]),
    "addbmm": (torch.addbmm, [real(3, 4), real(2, 3, 5), real(2, 5, 4)]),
    "polar": (bp.polar, [real(4), real(4)]),
    "chain_matmul": (bp.chain_matmul, [real(3, 3), real(3, 3), real(3, 3)]),
    "trapezoid": (bp.trapezoid, [real(5), np.sort(real(5))]),
    "cumulative_trapezoid": (torch.cumulative_trapezoid, [real(5), np.sort(real(5))]),
    "gradient": (bp.gradient, [real(5), np.sort(real(5))]),
    "cross_entropy": (F.cross_entropy, [real(3, 4), real(3, 4) / 4]),
    "triplet_margin_loss": (F.triplet_margin_loss, [real(3, 4), real(3, 4), real(3, 4)]),
    "conv1d": (F.conv1d, [real(1, 2, 5), real(3, 2, 3), real(3)]),
    "conv_transpose1d": (F.conv_transpose1d, [real(1, 2, 5), real(2, 3, 3), real(3)]),
    "lstsq": (lambda a, b: bp.linalg.lstsq(a, b)[0], [real(5, 3), real(5)]),
}


@pytest.mark.parametrize("name", CASES)
def test_mixed_operands_compute_in_the_common_dtype(name):
    function, operands = CASES[name]
    for dtypes in itertools.product([bp.float64, bp.float32, bp.float16], repeat=len(operands)):
        common = bp.result_type(*dtypes)
        if bp.float16 in (common, *dtypes) and name == "lstsq":
            continue
        mixed = [bp.asarray(x).astype(dtype) for x, dtype in zip(operands, dtypes)]
        found, expected = function(*mixed), function(*(x.astype(common) for x in mixed))
        assert found.dtype == expected.dtype
        eps = bp.finfo(common).eps
        assert np.allclose(found.numpy(), expected.numpy(), rtol=16 * eps, atol=16 * eps), dtypes


def test_logaddexp2_at_the_edges():
    x = bp.asarray([0.0, math.inf, -math.inf, 1e300, -1000.0, math.nan], dtype=bp.float64)
    y = bp.asarray([-1000.0, math.inf, -math.inf, 1e300, 0.0, 1.0], dtype=bp.float64)
    found = bp.logaddexp2(x, y).numpy()
    assert np.array_equal(found[1:4], [math.inf, -math.inf, 1e300]) and np.isnan(found[5])
    assert math.isclose(found[0], math.ldexp(1, -1000) / math.log(2), rel_tol=4e-16) and found[4] == found[0]
    slope = bp.grad(lambda a: bp.logaddexp2(a, bp.asarray(2.0)))(bp.asarray(2.0))
    assert slope.item() == 0.5


def test_a_factor_of_zero_ignores_the_addend():
    nothing, ones = bp.asarray(math.nan), bp.ones((3,))
    assert bp.addmv(nothing, bp.ones((3, 3)), ones, beta=0).tolist() == [3, 3, 3]
    assert bp.addr(nothing, ones, ones, beta=0).tolist() == [[1, 1, 1]] * 3
    assert torch.addbmm(nothing, bp.ones((2, 3, 3)), bp.ones((2, 3, 3)), beta=0).tolist() == [[6, 6, 6]] * 3


def test_parts_of_complex_numbers_stay_as_they_are():
    made = torch.complex(bp.asarray([1.0, -0.0, math.inf]), bp.asarray([math.inf, -0.0, 1.0])).numpy()
    assert made.real.tolist() == [1, 0, math.inf] and made.imag.tolist() == [math.inf, 0, 1]
    assert np.signbit(made.real[1]) and np.signbit(made.imag[1])
    pairs = bp.asarray([[1.0, math.inf], [-0.0, 2.0]])
    assert torch.view_as_complex(pairs).numpy()[0].real == 1 and np.signbit(torch.view_as_complex(pairs).numpy()[1].real)


def test_numpys_comparisons_of_integers_with_floats():
    wide, narrow = np.array([2**24 + 1, 2**31 - 1]), np.array([2.0**24, 2.0**31], dtype=np.float32)
    for name in ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal"):
        found = getattr(bnp, name)(bnp.array(wide), bnp.array(narrow))
        assert found.tolist() == getattr(np, name)(wide, narrow).tolist(), name


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "int32", "int64"])
def test_numpys_reciprocal_of_integers(dtype):
    x = np.array([1, 2, 127, np.iinfo(dtype).max, np.iinfo(dtype).max // 2, 0 - (dtype[0] == "i")]).astype(dtype)
    expected = [int(1 / v) if v else 0 for v in x.tolist()]
    assert bnp.reciprocal(bnp.array(x)).tolist() == expected


def test_linspace_between_whole_floats_is_exact():
    assert bp.linspace(1e10, 0.0, 101, dtype=bp.int64).tolist() == list(range(10**10, -1, -(10**8)))
    assert bp.linspace(-3.0, -3.0, 101, endpoint=False, dtype=bp.int64).tolist() == [-3] * 101
    for dtype in (bp.float32, bp.float64):
        assert len(set(bp.linspace(0.1, 0.1, 101, dtype=dtype).tolist())) == 1
    assert bp.linspace(-1.7e308, 1.7e308, 3, dtype=bp.float64).tolist() == [-1.7e308, 0, 1.7e308]


@pytest.mark.parametrize("dtype", [bp.float32, bp.float64])
@pytest.mark.parametrize("method", ["linear", "weibull", "hazen", "median_unbiased", "normal_unbiased", "interpolated_inverted_cdf"])
def test_quantiles_of_infinite_elements_are_numbers(method, dtype):
    x = bp.asarray([math.inf, 1.0, 2.0, 3.0, -math.inf], dtype=dtype)
    for q in (0.0, 1 / 6, 1 / 3, 0.5, 2 / 3, 5 / 6, 1.0):
        assert not math.isnan(bp.quantile(x, q, method=method).item()), q


def test_condition_of_a_matrix_of_zeros():
    x = bp.stack([bp.zeros((2, 2)), bp.eye(2)])
    assert bp.linalg.cond(x).tolist() == [math.inf, 1] == bp.linalg.cond(x, -2).tolist()


def test_multinomial_refuses_more_draws_than_weights():
    with pytest.raises(bp.ArgumentValueError, match="found 1 weights above 0"):
        bp.multinomial(bp.asarray([[0.0, 1.0, 0.0], [1.0, 1.0, 1.0]]), 2)
    assert sorted(bp.multinomial(bp.asarray([0.0, 1.0, 3.0]), 2).tolist()) == [1, 2]
