"""Gradients where a formula is at its edge: small exponents, whole numbers."""

import backplane as bp
import pytest


@pytest.mark.parametrize(("dtype", "x", "y"), [(bp.bfloat16, 0.5, 1e-3), (bp.float16, 0.5, 0.01), (bp.float32, 1e-6, 5e-8), (bp.float32, 1e-30, 1e-9),
                                                (bp.float64, 1e-30, 1e-20), (bp.float64, 2.0, 0.0), (bp.float64, 0.0, 1.0), (bp.float64, 0.0, 0.0)])  # fmt: skip
def test_a_small_exponent_is_not_lost_in_the_gradient_of_a_power(dtype, x, y):
    x, y = (bp.asarray(v, dtype=dtype) for v in (x, y))
    exact = float(y) * float(x) ** (float(y) - 1) if float(y) else 0.0
    tolerance = {bp.bfloat16: 1e-2, bp.float16: 2e-3, bp.float32: 1e-5, bp.float64: 1e-12}[dtype]
    assert float(bp.grad(lambda x: x**y)(x)) == pytest.approx(exact, rel=tolerance)
    assert float(bp.jvp(lambda x: x ** float(y), (x,), (bp.ones_like(x),))[1]) == pytest.approx(exact, rel=tolerance)
    x.requires_grad_()
    (x**y).backward()
    assert float(x.grad) == pytest.approx(exact, rel=tolerance)


def test_the_fraction_of_a_whole_number_grows_with_it():
    x = bp.asarray([-2.0, -1.0, 3.0, -2.5, 0.0, -0.0])
    assert bp.grad(lambda x: bp.modf(x)[0].sum())(x).tolist() == [1] * 6
    fraction, whole = bp.modf(bp.asarray([-2.0, float("-inf"), float("inf"), -2.5, -0.0]))
    assert fraction.tolist() == [0, 0, 0, -0.5, 0] and bp.signbit(fraction).tolist() == [True, True, False, True, True]
    assert whole.tolist() == [-2, float("-inf"), float("inf"), -2, 0]
