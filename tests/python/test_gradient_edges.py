"""Gradients where a formula is at its edge: small exponents, whole numbers, ties with a bound, zero."""

import math

import backplane as bp
import backplane.nn.functional as F
import numpy as np
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


@pytest.mark.parametrize("n", [0, 1, 2, 3])
def test_derivatives_of_whole_powers_at_zero_end(n):
    for power in (lambda x: x**n, lambda x: x ** bp.asarray(float(n))):
        f, found = power, []
        for _ in range(n + 3):
            f = bp.grad(f)
            found.append(float(f(bp.asarray(0.0))))
        assert found == [float(math.factorial(n)) if order == n else 0.0 for order in range(1, n + 4)]


def test_the_fraction_of_a_whole_number_grows_with_it():
    x = bp.asarray([-2.0, -1.0, 3.0, -2.5, 0.0, -0.0])
    assert bp.grad(lambda x: bp.modf(x)[0].sum())(x).tolist() == [1] * 6
    fraction, whole = bp.modf(bp.asarray([-2.0, float("-inf"), float("inf"), -2.5, -0.0]))
    assert fraction.tolist() == [0, 0, 0, -0.5, 0] and bp.signbit(fraction).tolist() == [True, True, False, True, True]
    assert whole.tolist() == [-2, float("-inf"), float("inf"), -2, 0]


def gradients(function, *args):
    """By vjp; of jvp along each argument's ones, the same numbers where the function is elementwise."""
    found = bp.grad(lambda *xs: bp.sum(bp.real(function(*xs))), argnums=tuple(range(len(args))))(*args)
    for place, gradient in enumerate(found):
        tangents = tuple(bp.ones_like(x) if i == place else bp.zeros_like(x) for i, x in enumerate(args))
        along = bp.jvp(function, args, tangents)[1]
        assert bp.allclose(along, bp.real(gradient), equal_nan=True)
    return [gradient.tolist() for gradient in found]


@pytest.mark.parametrize("clip", [bp.clip, bp.compile(bp.clip)], ids=["eager", "compiled"])
def test_an_element_at_a_bound_gets_the_whole_gradient_as_in_pytorch(clip):
    x = bp.asarray([-2.0, -1.0, 0.0, 1.0, 2.0, float("nan")])
    assert gradients(lambda x: clip(x, -1.0, 1.0), x) == [[0, 1, 1, 1, 0, 0]]
    assert gradients(lambda x: clip(x, 1.0), x) == [[0, 0, 0, 1, 1, 0]]
    assert gradients(lambda x: clip(x, max=1.0), x) == [[1, 1, 1, 1, 0, 0]]
    x = bp.asarray([-2.0, -1.0, 0.0, 1.0, 2.0, 1.0, 3.0, 0.0, 2.0, 1.5])
    low = bp.asarray([-1.0] * 5 + [1.0, 2.0, 2.0, 2.0, 2.0])
    high = bp.asarray([1.0] * 10)
    assert gradients(clip, x, low, high) == [[0, 1, 1, 1, 0, 1, 0, 0, 0, 0], [1] + [0] * 9, [0, 0, 0, 0, 1, 0, 1, 1, 1, 1]]
    assert gradients(lambda x, low: clip(x, low), bp.asarray([0.0, 1.0, 2.0]), bp.ones(3)) == [[0, 1, 1], [1, 0, 0]]


def test_clip_is_recorded_and_batched():
    x = bp.asarray([[-2.0, 1.0], [0.5, 3.0]])
    assert bp.vmap(lambda row, low: bp.clip(row, low, 1.0))(x, bp.asarray([0.0, 1.0])).tolist() == [[0, 1], [1, 1]]
    x.requires_grad_()
    y = x * 1
    y.clamp_(0.0, 1.0)
    bp.clip(y, bp.asarray([0.0, 0.5]), None).sum().backward()
    assert x.grad.tolist() == [[0, 1], [1, 0]]
    assert bp.grad(bp.grad(lambda x: bp.clip(x * x, 0.0, 4.0)))(bp.asarray(2.0)).item() == 2


def test_losses_at_their_margin_as_in_pytorch():
    one, target = bp.asarray([1.0, 1.0, 2.0]), bp.asarray([1.0, -1.0, 1.0])
    found = bp.grad(lambda a, b: F.margin_ranking_loss(a, b, target), argnums=(0, 1))(one, bp.asarray([1.0, 1.0, 3.0]))
    third = pytest.approx(1 / 3)
    assert (found[0] * target).tolist() == [pytest.approx(-1 / 3)] * 3 and (found[1] * target).tolist() == [third] * 3
    assert bp.grad(lambda x: F.hinge_embedding_loss(x, bp.asarray([-1.0, -1.0, 1.0])))(bp.asarray([1.0, 2.0, 1.0])).tolist() == [pytest.approx(-1 / 3), 0, third]
    x, y = bp.asarray([[1.0, 0.0]]), bp.asarray([[0.0, 1.0]])
    assert bp.grad(lambda x: F.cosine_embedding_loss(x, y, bp.asarray([-1.0])))(x).tolist() == [[0, 1]]
    near, far = bp.asarray([[1.0, 0.0]]), bp.asarray([[2.0, 0.0]])
    assert bp.grad(lambda near: F.triplet_margin_loss(bp.zeros((1, 2)), near, far, eps=0))(near).tolist() == [[1, 0]]


@pytest.mark.parametrize("dtype", [bp.complex64, bp.complex128], ids=str)
def test_the_angle_of_zero_has_no_slope(dtype):
    z = bp.asarray([0j, 1 + 1j, -1 + 0j, complex(-0.0, -0.0)], dtype=dtype)
    assert gradients(bp.angle, z)[0][:3] == [0, pytest.approx(-0.5 + 0.5j), -1j] and gradients(bp.angle, z)[0][3] == 0
    assert bp.angle(bp.asarray([complex(0.0, 0.0), complex(-0.0, 0.0), complex(-0.0, -0.0)])).tolist() == pytest.approx([0, math.pi, -math.pi])
    assert gradients(bp.angle, bp.asarray([0.0, -0.0, 1.0, -2.0])) == [[0, 0, 0, 0]]


def test_a_logit_outside_of_probabilities_has_no_slope():
    found = gradients(bp.logit, bp.asarray([-0.5, 0.0, 0.5, 1.0, 1.5, -1e-30]))[0]
    assert [math.isnan(slope) for slope in found] == [True, False, False, False, True, True] and found[1:4] == [math.inf, 4, math.inf]


@pytest.mark.parametrize("dtype", [bp.float64, bp.complex128], ids=str)
def test_complex_numbers_keep_their_precision_in_derivatives(dtype):
    x = bp.asarray([1.0, 2.0], dtype=dtype)
    c = 0.3 + 0.7j
    for function, slope in [(lambda y: y * c, c), (lambda y: c * y, c), (lambda y: y / c, 1 / c), (lambda y: y * (1e200 + 0j), 1e200), (lambda y: y * (1e-60 + 0j), 1e-60)]:
        slopes = [bp.grad(lambda y: bp.sum(bp.real(function(y))))(x), bp.compile(bp.grad(lambda y: bp.sum(bp.real(function(y)))))(x)]
        leaf = x.detach().requires_grad_()
        bp.sum(bp.real(function(leaf))).backward()
        for found in [*slopes, leaf.grad]:
            assert found.dtype is dtype
            np.testing.assert_allclose(bp.real(found).numpy(), complex(slope).real, rtol=1e-15)


def test_a_power_spectrum_has_second_derivatives_where_it_is_0():
    def power(x):
        return bp.sum(bp.abs(bp.fft.rfft(x)) ** 2)

    assert bp.hessian(power)(bp.ones(4)).tolist() == [[2.0] * 4] * 4
    assert bp.isfinite(bp.hessian(lambda x: bp.abs(x[0] + 1j * x[1]) ** 2)(bp.zeros(2))).all()
