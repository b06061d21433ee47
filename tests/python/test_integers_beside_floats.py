"""Integers beside floats are computed in the floats' dtype, all digits of them, and never wrap in their own."""

import backplane as bp
import backplane.nn.functional as F
import numpy as np
import pytest

BIG = 2**24 + 1  # float32 has not it
f64 = lambda *elements: np.asarray(elements, np.float64)
CASES = {
    "interp of whole x": lambda m, a: m.interp(a([BIG]), a([BIG - 1, BIG + 1]), a(f64(0, 10))),
    "interp of whole values": lambda m, a: m.interp(a(f64(0.5)), a([0, 1]), a([BIG, BIG])),
    "interp of a number": lambda m, a: m.interp(0.1, [0, 1], a(f64(0, 1))),
    "interp of wide x": lambda m, a: m.interp(a(f64(1e-9)), a([1, 2]), a(np.float32([1, 2]))),
    "cov": lambda m, a: m.cov(a([BIG - 1, BIG]), a(f64(1, 2))),
    "cov with weights": lambda m, a: m.cov(a([BIG - 1, BIG, 3]), aweights=a(f64(1, 2, 1))),
    "corrcoef": lambda m, a: m.corrcoef(a([BIG - 1, BIG, BIG + 2]), a(f64(1, 2, 5))),
    "average": lambda m, a: m.average(a([BIG, BIG]), weights=a(f64(1, 3))),
    "gradient": lambda m, a: m.gradient(a([BIG - 1, BIG, BIG + 1]), a(f64(0, 1, 2))),
    "trapezoid": lambda m, a: m.trapezoid(a([BIG, BIG]), x=a(f64(0, 1))),
    "einsum": lambda m, a: m.einsum("i,i,i->", a([BIG]), a(np.float32([1])), a(f64(1))),
    "einsum of a sum": lambda m, a: m.einsum("ij,i->i", a(np.int8([[100, 100]])), a(f64(1))),
    "solve": lambda m, a: m.linalg.solve(a([[BIG]]), a(f64(BIG - 2))),
    "lstsq": lambda m, a: m.linalg.lstsq(a([[BIG]]), a(f64(BIG - 2)), 1e-15)[0],
}


@pytest.mark.parametrize("name", CASES)
def test_integers_keep_their_digits_beside_float64(name):
    found, expected = CASES[name](bp, bp.asarray), np.asarray(CASES[name](np, np.asarray))
    assert found.dtype is bp.float64
    np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-14)


def test_arrays_count_as_tensors_do():
    whole, floats = bp.asarray([[BIG]]), f64(BIG)
    assert bp.linalg.solve(whole, floats).item() == 1 == bp.linalg.lstsq(whole, b=floats)[0].item()
    for other in (f64(1, 2), f64(1, 2).tolist()):
        x = bp.asarray(np.float32([1, 2]) if isinstance(other, np.ndarray) else f64(1, 2))
        assert bp.cov(x, other).dtype is bp.cov(x, aweights=other).dtype is bp.float64


def test_layers_and_triangles_keep_them_too():
    whole, floats = bp.asarray([[BIG]]), bp.asarray(f64([BIG]))
    assert bp.linalg.solve_triangular(whole, floats).item() == 1
    logits, goal = bp.asarray([[1, BIG]]), bp.asarray(f64([0.25, 0.75]))
    assert F.cross_entropy(logits, goal).item() == F.cross_entropy(logits.astype(bp.float64), goal).item()


@pytest.mark.parametrize("dtype", ["int8", "uint8", "uint64", "int64"])
def test_products_and_steps_do_not_wrap(dtype):
    x, weights, falling = np.asarray([100, 100, 4], dtype), np.asarray([2, 2, 1], dtype), np.asarray([3, 1, 0], dtype)
    y = np.float32([1, 2, 4])
    with bp.default_dtype(bp.float64):
        np.testing.assert_allclose(bp.average(bp.asarray(x), weights=bp.asarray(weights)).numpy(), np.average(x, weights=weights))
    wide = falling.astype(float)
    np.testing.assert_allclose(bp.gradient(bp.asarray(y), bp.asarray(falling)).numpy(), np.gradient(y, wide), rtol=1e-6)
    np.testing.assert_allclose(bp.trapezoid(bp.asarray(y), bp.asarray(falling)).numpy(), np.trapezoid(y, wide))


def test_signed_and_unsigned_numbers_meet_as_floats():
    signed, unsigned = bp.asarray([1, 2]), bp.asarray([1, 2], dtype=bp.uint64)
    assert bp.average(signed, weights=unsigned).item() == pytest.approx(5 / 3)
    assert bp.interp(signed, unsigned, signed).tolist() == [1, 2]
    with pytest.raises(bp.DtypeError, match="einsum: .*uint64"):
        bp.einsum("i,i->", signed, unsigned)


def test_a_polynomial_of_integers_keeps_their_dtype():
    for dtype in ("uint8", "int32", "int64", "float32"):
        p, x = np.asarray([1, 1], dtype), np.asarray([255, 3], np.uint8).astype(dtype)
        found, expected = bp.polyval(bp.asarray(p), bp.asarray(x)), np.polyval(p, x)
        assert found.dtype.name == expected.dtype.name and found.tolist() == expected.tolist()


@pytest.mark.parametrize("number", [2**63, 2**64 - 1])
def test_large_ints_keep_their_sign_in_another_default(number):
    n = bp.asarray([5])
    with bp.default_dtype(bp.float64):
        assert (n / number).item() == 5 / number and (number / n).item() == number / 5
        assert bp.true_divide(number, 3).item() == number / 3
        assert bp.atan2(n, number).item() == np.arctan2(5, float(number))
        assert bp.logaddexp(n, number).item() == float(number) and bp.copysign(n, number).item() == 5
