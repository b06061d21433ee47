"""Numbers at the ends of the range: norms whose squares overflow, functions whose arguments are infinite, powers of zeros."""

import math

import backplane as bp
import backplane.nn.functional as F
import numpy as np
import pytest
from backplane import _core

SIZES = {bp.float32: (1e20, 1e-25, 3e38 / 2), bp.float64: (1e200, 1e-200, 1e308), bp.complex64: (1e20, 1e-25), bp.complex128: (1e200, 1e-200)}
EACH = [(dtype, size) for dtype, sizes in SIZES.items() for size in sizes]


@pytest.fixture(params=[False, True], ids=["kernel", "primitives"], autouse=True)
def way(request):
    before = _core.force_decomposition(request.param)
    yield
    _core.force_decomposition(before)


@pytest.mark.parametrize(("dtype", "size"), EACH, ids=str)
@pytest.mark.parametrize("order", [2, 1.5, 3, 0.5, 1, math.inf])
def test_a_norm_is_homogeneous_at_any_size(dtype, size, order):
    base = np.asarray([[0.5, -0.25, 0.125], [0.25, 0.5, -0.0625]]) * (0.6 + 0.8j if dtype in (bp.complex64, bp.complex128) else 1)
    small = bp.asarray(base, dtype=dtype)
    tolerance = {"rtol": 1e-5 if dtype in (bp.float32, bp.complex64) else 1e-13}

    def norm(x, axis):
        return bp.linalg.vector_norm(x, axis=axis, ord=order)

    if order == 0.5 and size > 1e37 and size != 1e200:
        return  # the norm itself is beyond the dtype
    for axis in (0, 1, None):
        found, expected = norm(small * size, axis), norm(small, axis)
        np.testing.assert_allclose((found / size).numpy(), expected.numpy(), **tolerance)
        slopes = [bp.grad(lambda x: bp.sum(bp.real(norm(x, axis))))(x) for x in (small * size, small)]
        np.testing.assert_allclose(slopes[0].numpy(), slopes[1].numpy(), **tolerance)


@pytest.mark.parametrize(("dtype", "size"), [(bp.float32, 1e20), (bp.float32, 1e-5), (bp.float64, 1e200), (bp.float64, 1e-5)], ids=str)
def test_what_divides_by_a_norm_is_scale_free(dtype, size):
    a, b = bp.asarray([[3.0, -4.0, 1.0]], dtype=dtype), bp.asarray([[1.0, 2.0, -1.0]], dtype=dtype)
    for function in (
        lambda a, b: F.normalize(a),
        lambda a, b: F.normalize(a, p=3),
        lambda a, b: F.cosine_similarity(a, b),
        lambda a, b: F.rms_norm(a, (3,), eps=0.0),
        lambda a, b: F.pairwise_distance(a, b, eps=0.0) / bp.linalg.vector_norm(a - b),
        lambda a, b: bp.atan2(a, b),
        lambda a, b: bp.hypot(a, b) / bp.linalg.vector_norm(a),
    ):
        at_one, at_size = function(a, b), function(a * size, b * size)
        np.testing.assert_allclose(at_size.numpy(), at_one.numpy(), rtol=1e-5)
        slope = [bp.grad(lambda x: bp.sum(function(x, y) * bp.asarray([1.0, 2.0, 3.0], dtype=dtype)[: function(x, y).shape[-1]]))(x) for x, y in ((a, b), (a * size, b * size))]
        np.testing.assert_allclose((slope[1] * size).numpy(), slope[0].numpy(), rtol=1e-4, atol=1e-6)


def test_norms_of_infinities_zeros_and_nan():
    inf, nan = math.inf, math.nan
    for dtype in (bp.float32, bp.float64):
        x = bp.asarray([[inf, 1.0], [0.0, 0.0], [nan, 1.0], [-inf, inf]], dtype=dtype)
        for order in (2, 3):
            np.testing.assert_array_equal(bp.linalg.vector_norm(x, axis=1, ord=order).numpy(), [inf, 0, nan, inf])
        assert bp.grad(lambda x: bp.linalg.vector_norm(x))(bp.zeros(3, dtype=dtype)).tolist() == [0, 0, 0]


@pytest.mark.parametrize("order", [0.5, 0.25])
def test_a_norm_of_order_below_1_has_slopes_beside_zeros(order):
    x = np.asarray([0.0, 3.0, -0.0, -2.0])
    slope = bp.grad(lambda x: bp.linalg.vector_norm(x, ord=order))(bp.asarray(x)).numpy()
    total = np.sum(np.abs(x) ** order) ** (1 / order)
    expected = [0 if v == 0 else math.copysign((abs(v) / total) ** (order - 1), v) for v in x]
    np.testing.assert_allclose(slope, expected, rtol=1e-12)
    assert np.isfinite(bp.hessian(lambda x: bp.linalg.vector_norm(x, ord=order))(bp.asarray(x)).numpy()[1, 1])


def test_log_sums_of_equal_infinities_share_their_slope():
    inf = math.inf
    x, y = bp.asarray([-inf, inf, -inf, 1.0, 2.0]), bp.asarray([-inf, inf, 0.0, -inf, 2.0])
    found = bp.grad(lambda x, y: bp.sum(bp.logaddexp(x, y)), argnums=(0, 1))(x, y)
    assert [g.tolist() for g in found] == [[0.5, 0.5, 0, 1, 0.5], [0.5, 0.5, 1, 0, 0.5]]
    assert bp.grad(bp.grad(lambda x: bp.logaddexp(x, bp.asarray(2.0))))(bp.asarray(2.0)).item() == 0.25


def test_slopes_of_xlogy_at_zero():
    zero = bp.asarray(0.0)
    assert bp.grad(bp.xlogy, argnums=1)(zero, zero).item() == 0
    assert bp.grad(lambda p: bp.xlogy(p, p))(zero).item() == -math.inf  # log(p) + 1
    assert bp.grad(bp.grad(bp.xlogy, argnums=0), argnums=1)(zero, bp.asarray(2.0)).item() == 0.5


def test_the_slope_of_a_divergence_at_a_target_of_0():
    slope = bp.grad(lambda t: F.kl_div(bp.asarray([-1.0, -2.0]), t, reduction="sum"))(bp.asarray([0.0, 1.0])).tolist()
    assert slope == [-math.inf, 3.0]  # log(t) + 1 - x
    assert F.kl_div(bp.asarray([-1.0]), bp.asarray([0.0]), reduction="sum").item() == 0


@pytest.mark.parametrize("dtype", [bp.float32, bp.float64], ids=str)
def test_the_slope_of_cross_entropy_at_its_label_keeps_its_digits(dtype):
    x, label = bp.asarray([[0.0, 18.0, -3.0], [40.0, 2.0, 1.0]], dtype=dtype), bp.asarray([1, 0])
    rest = [math.exp(-18) + math.exp(-21), math.exp(-38) + math.exp(-39)]
    expected = [-r / (1 + r) for r in rest]
    for loss in (
        lambda x: F.cross_entropy(x, label, reduction="sum"),
        lambda x: F.nll_loss(F.log_softmax(x, dim=1), label, reduction="sum"),
        lambda x: F.cross_entropy(x, bp.nn.functional.one_hot(label, 3).astype(dtype), reduction="sum"),
    ):
        slope = bp.grad(loss)(x).numpy()
        np.testing.assert_allclose(slope[[0, 1], [1, 0]], expected, rtol=64 * float(bp.finfo(dtype).eps))
        np.testing.assert_allclose(slope.sum(axis=1), 0, atol=1e-6 * abs(slope).max())
        forward = [bp.jvp(loss, (x,), (bp.reshape(bp.one_hot(bp.asarray(i), 6, dtype=dtype), (2, 3)),))[1].item() for i in (1, 3)]
        np.testing.assert_allclose(forward, expected, rtol=64 * float(bp.finfo(dtype).eps))


@pytest.mark.parametrize("mode", ["bilinear", "nearest", "bicubic"])
@pytest.mark.parametrize("padding", ["zeros", "border"])
def test_points_at_infinity_are_outside_of_an_image(mode, padding):
    image = bp.reshape(bp.arange(12, dtype=bp.float64), (1, 1, 3, 4)) + 1
    points = bp.asarray([[math.inf, 0.0], [-math.inf, -math.inf], [0.0, math.inf], [1e30, -1e30]], dtype=bp.float64)
    far = bp.asarray([[40.0, 0.0], [-40.0, -40.0], [0.0, 40.0], [40.0, -40.0]], dtype=bp.float64)

    def sample(points):
        return F.grid_sample(image, bp.reshape(points, (1, 1, 4, 2)), mode=mode, padding_mode=padding, align_corners=False)

    np.testing.assert_allclose(sample(points).numpy(), sample(far).numpy(), atol=1e-12)
    slope = bp.grad(lambda points: bp.sum(sample(points)))(points).numpy()
    np.testing.assert_allclose(slope[:2, 0], [0, 0], atol=1e-12)
    assert np.isfinite(slope).all()


def test_activations_have_limits_at_infinity():
    ends = bp.asarray([-math.inf, math.inf])
    for name, low, high in (("silu", 0, math.inf), ("gelu", 0, math.inf), ("mish", 0, math.inf), ("softsign", -1, 1), ("hardswish", 0, math.inf)):
        function = getattr(F, name)
        assert function(ends).tolist() == [low, high], name
        slopes = bp.grad(lambda x: bp.sum(function(x)))(ends).tolist()
        assert slopes == [0, 0 if name == "softsign" else 1], (name, slopes)


def test_losses_of_logits_keep_their_digits():
    found = F.binary_cross_entropy_with_logits(bp.asarray([-15.0, 15.0]), bp.asarray([0.0, 1.0]), reduction="none").numpy()
    np.testing.assert_allclose(found, [math.log1p(math.exp(-15))] * 2, rtol=1e-6)
    slope = bp.grad(lambda x: F.binary_cross_entropy_with_logits(x, bp.asarray([0.0, 1.0]), reduction="sum"))(bp.asarray([-15.0, 15.0])).numpy()
    np.testing.assert_allclose(slope, [math.exp(-15) / (1 + math.exp(-15)), -math.exp(-15) / (1 + math.exp(-15))], rtol=1e-6)
    weighted = F.binary_cross_entropy_with_logits(bp.asarray([2.0, -2.0]), bp.asarray([0.25, 0.75]), pos_weight=bp.asarray(3.0), reduction="none").numpy()
    expected = [(1 - t) * math.log1p(math.exp(x)) + 3 * t * math.log1p(math.exp(-x)) for x, t in ((2.0, 0.25), (-2.0, 0.75))]
    np.testing.assert_allclose(weighted, expected, rtol=1e-6)


@pytest.mark.parametrize("dtype", [bp.float16, bp.bfloat16, bp.float32, bp.float64], ids=str)
@pytest.mark.parametrize("name", ["gelu", "silu", "mish", "softsign", "tanhshrink", "hardswish", "elu", "softplus", "logsigmoid", "sigmoid", "tanh"])
def test_nan_stays_beside_any_number(name, dtype):
    """A vector with an extreme lane may take another way for all of its lanes."""
    function = getattr(F, name)
    for beside in (0.0, -3.0, -7.0, -50.0, -math.inf, math.inf, 1e4):
        x = bp.asarray([math.nan, beside] * 9, dtype=dtype)
        for found in (function(x), bp.grad(lambda x: bp.sum(function(x)))(x)):
            assert bp.isnan(found).tolist() == [True, False] * 9, (beside, found)
