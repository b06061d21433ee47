"""Activation functions of backplane.nn.functional: their behaviour beyond their op."""

import backplane as bp
import backplane.nn.functional as F
import numpy as np
import pytest

IN_PLACE = ("relu", "relu6", "elu", "selu", "celu", "leaky_relu", "silu", "mish", "hardtanh", "hardswish", "hardsigmoid")
POINTS = np.array([-7.0, -2.5, -0.5, 0.0, 0.25, 1.0, 6.5], "float32")


@pytest.mark.parametrize("name", IN_PLACE)
def test_inplace_writes_the_result_into_the_input(name):
    x = bp.asarray(POINTS, copy=True)
    expected = getattr(F, name)(x)
    assert getattr(F, name)(x, inplace=True) is x
    np.testing.assert_array_equal(x.numpy(), expected.numpy())


@pytest.mark.parametrize("name", ["relu", "elu", "selu", "celu", "leaky_relu", "hardtanh", "rrelu"])
def test_the_name_with_an_underscore_does_too(name):
    x = bp.asarray(POINTS, copy=True)
    expected = getattr(F, name)(x)
    assert getattr(F, f"{name}_")(x) is x
    np.testing.assert_array_equal(x.numpy(), expected.numpy())


def test_threshold_in_place():
    x = bp.asarray(POINTS, copy=True)
    assert F.threshold_(x, 0.25, -1.0) is x and x.tolist() == [-1, -1, -1, -1, -1, 1, 6.5]


@pytest.mark.parametrize("name", sorted(set(IN_PLACE) | {"gelu", "softplus", "softsign", "logsigmoid", "tanhshrink", "hardshrink", "softshrink"}))
def test_a_nan_stays_and_half_floats_are_those_of_float32_rounded(name):
    assert np.isnan(getattr(F, name)(bp.asarray([np.nan], dtype=bp.float32)).numpy()).all()
    x = bp.asarray(POINTS)
    half = getattr(F, name)(x.astype(bp.float16)).numpy()
    np.testing.assert_array_equal(half, getattr(F, name)(x).numpy().astype("float16"))


@pytest.mark.parametrize("name", ["elu", "gelu", "mish", "silu", "softplus", "logsigmoid", "softsign", "tanhshrink"])
def test_extreme_arguments_have_finite_gradients(name):
    x = bp.asarray([-1e4, -100.0, 100.0, 1e4]).requires_grad_()
    y = getattr(F, name)(x)
    y.sum().backward()
    assert np.isfinite(y.detach().numpy()).all() and np.isfinite(x.grad.numpy()).all()


def test_relu_has_no_gradient_at_zero():
    x = bp.asarray([-1.0, 0.0, 2.0]).requires_grad_()
    F.relu(x).sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), [0, 0, 1])


def test_gelu_takes_both_forms():
    x = bp.asarray(POINTS)
    v = POINTS.astype("float64")
    by_tanh = 0.5 * v * (1 + np.tanh(np.sqrt(2 / np.pi) * (v + 0.044715 * v**3)))
    np.testing.assert_allclose(F.gelu(x, "tanh").numpy(), by_tanh, rtol=0, atol=1e-6)
    assert not np.array_equal(F.gelu(x).numpy(), F.gelu(x, "tanh").numpy())
    with pytest.raises(ValueError, match="approximate"):
        F.gelu(x, "fast")


def test_prelu_takes_one_weight_or_one_per_channel():
    x = np.arange(-12.0, 12.0).reshape(2, 3, 4)
    weight = np.array([0.1, 0.2, 0.3])
    expected = np.where(x > 0, x, x * weight[:, None])
    np.testing.assert_allclose(F.prelu(bp.asarray(x), bp.asarray(weight)).numpy(), expected)
    np.testing.assert_allclose(F.prelu(bp.asarray(x), bp.asarray([0.5])).numpy(), np.where(x > 0, x, x * 0.5))
    with pytest.raises(ValueError, match="expected 1 or 3"):
        F.prelu(bp.asarray(x), bp.ones(4))


def test_rrelu_draws_slopes_within_bounds():
    x = bp.full([1000], -1.0)
    slopes = -F.rrelu(x, 0.25, 0.5, training=True).numpy()
    assert slopes.min() >= 0.25 and slopes.max() < 0.5 and abs(slopes.mean() - 0.375) < 0.02
    np.testing.assert_allclose(F.rrelu(x, 0.25, 0.5).numpy(), -0.375)
    drawn = F.rrelu(x, 0.25, 0.5, training=True, inplace=True)
    assert drawn is x and x.numpy().min() >= -0.5


def test_glu_halves_an_axis():
    x = np.linspace(-2, 2, 12).reshape(4, 3)
    expected = x[:2] / (1 + np.exp(-x[2:]))
    np.testing.assert_allclose(F.glu(bp.asarray(x), 0).numpy(), expected)
    np.testing.assert_allclose(F.glu(bp.asarray(x), axis=0).numpy(), expected)
    with pytest.raises(ValueError, match="even"):
        F.glu(bp.asarray(x), 1)


@pytest.mark.parametrize("shape, dim", [((3, 4), 0), ((3, 4), -1), ((2, 3, 4), 1), ((), 0)])
def test_softmax_family_agrees_over_an_axis(shape, dim):
    x = np.random.default_rng(1).standard_normal(shape)
    e = np.exp(x)
    expected = e / np.sum(e, axis=dim, keepdims=True) if shape else np.array(1.0)
    t = bp.asarray(x)
    np.testing.assert_allclose(F.softmax(t, dim).numpy(), expected)
    np.testing.assert_allclose(F.softmin(-t, dim).numpy(), expected)
    np.testing.assert_allclose(F.log_softmax(t, axis=dim).numpy(), np.log(expected), atol=1e-14)
    assert F.softmax(t, dim, dtype=bp.float32).dtype is bp.float32


def test_softmax_without_an_axis_warns_and_with_two_refuses():
    with pytest.warns(UserWarning, match="state dim"):
        y = F.softmax(bp.ones((2, 4)))
    np.testing.assert_allclose(y.numpy(), 0.25)
    with pytest.raises(TypeError, match="dim and axis|both"):
        F.softmax(bp.ones((2, 4)), 0, axis=1)


def test_gumbel_softmax_samples_its_distribution():
    bp.manual_seed(3)
    p = np.array([0.2, 0.3, 0.5])
    logits = bp.broadcast_to(bp.asarray(np.log(p)), (20000, 3))
    soft = F.gumbel_softmax(logits, tau=0.7)
    np.testing.assert_allclose(soft.numpy().sum(-1), 1)
    hard = F.gumbel_softmax(logits, hard=True, dim=-1)
    np.testing.assert_allclose(np.sort(hard.numpy(), -1), np.tile([0.0, 0, 1], (20000, 1)), atol=1e-12)
    np.testing.assert_allclose(hard.numpy().mean(0), p, atol=0.02)


def test_gumbel_softmax_passes_gradients_when_hard():
    logits = bp.asarray([[0.1, 0.5, -0.2]]).requires_grad_()
    weights = bp.asarray([[1.0, 2.0, 4.0]])
    (F.gumbel_softmax(logits, hard=True) * weights).sum().backward()
    assert np.abs(logits.grad.numpy()).max() > 0


def test_integers_stay_integers_where_the_limits_are_whole():
    x = bp.asarray([7, -3, 1])
    assert F.relu6(x).tolist() == [6, 0, 1] and F.hardtanh(x).tolist() == [1, -1, 1] and F.threshold(x, 1, 2).tolist() == [7, 2, 2]
    for function in (F.relu6, F.hardtanh, lambda x: F.threshold(x, 1, 2)):
        assert function(x).dtype is bp.int64 and function(x.astype(bp.int8)).dtype is bp.int8 and function(x.astype(bp.float64)).dtype is bp.float64
    assert F.hardtanh(x, -1.5, 2).dtype is bp.float32
    y = x.copy()
    assert F.relu6(y, inplace=True) is y and y.tolist() == [6, 0, 1]
