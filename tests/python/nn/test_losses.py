"""Losses of backplane.nn.functional against their definitions in NumPy; reductions, weights, ignored labels, extreme logits."""

import backplane as bp
import backplane.nn.functional as F
import numpy as np
import pytest

RNG = np.random.default_rng(7)


def log_softmax(x, axis):
    top = x.max(axis=axis, keepdims=True)
    return x - top - np.log(np.exp(x - top).sum(axis=axis, keepdims=True))


def reduced(loss, reduction, weights=None):
    if reduction == "none":
        return loss
    return loss.sum() if reduction == "sum" else loss.sum() / (loss.size if weights is None else weights.sum())


def slopes(function, x, step=1e-6):
    """The gradient of a scalar function of an array, by central differences."""
    found = np.zeros(x.shape)
    for at in np.ndindex(*x.shape):
        up, down = x.copy(), x.copy()
        up[at] += step
        down[at] -= step
        found[at] = (function(up) - function(down)) / (2 * step)
    return found


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize("name, more", [("mse_loss", {}), ("l1_loss", {}), ("huber_loss", {"delta": 0.5}), ("smooth_l1_loss", {"beta": 0.5})])
def test_regression_losses_reduce(name, more, reduction):
    x, y = RNG.standard_normal((2, 3, 4))
    d = abs(x - y)
    expected = {"mse_loss": d * d, "l1_loss": d, "huber_loss": np.where(d <= 0.5, d * d / 2, 0.5 * (d - 0.25))}
    expected["smooth_l1_loss"] = expected["huber_loss"] * 2
    found = getattr(F, name)(bp.asarray(x), bp.asarray(y), reduction=reduction, **more)
    np.testing.assert_allclose(found.numpy(), reduced(expected[name], reduction), rtol=1e-12)


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize("smoothing", [0.0, 0.3])
@pytest.mark.parametrize("with_weight", [False, True])
@pytest.mark.parametrize("shape", [(5,), (4, 5), (2, 5, 3), (2, 5, 0), (2, 5, 2, 3)])
def test_cross_entropy_of_labels(shape, with_weight, smoothing, reduction):
    axis = 0 if len(shape) == 1 else 1
    x = RNG.standard_normal(shape) * 3
    labels = np.asarray(RNG.integers(0, 5, shape[:axis] + shape[axis + 1 :]))
    counts = labels != 2 if labels.ndim and labels.size else np.ones(labels.shape, bool)
    weight = RNG.uniform(0.5, 2, 5) if with_weight else np.ones(5)

    def loss(x):
        logs = np.moveaxis(log_softmax(x, axis), axis, -1)
        share = weight[labels] * counts
        picked = -np.take_along_axis(logs, labels[..., None], -1)[..., 0] * share
        every = -(logs * weight).sum(-1) * counts
        with np.errstate(invalid="ignore"):
            return reduced((1 - smoothing) * picked + smoothing / 5 * every, reduction, share)

    t = bp.asarray(x).requires_grad_()
    found = F.cross_entropy(
        t, bp.asarray(labels), bp.asarray(weight) if with_weight else None,
        ignore_index=2 if not counts.all() else -100, reduction=reduction, label_smoothing=smoothing,
    )  # fmt: skip
    np.testing.assert_allclose(found.detach().numpy(), loss(x), rtol=1e-12, atol=1e-13)
    if x.size:
        found.sum().backward()
        np.testing.assert_allclose(t.grad.numpy(), slopes(lambda v: loss(v).sum(), x), atol=1e-7)
    if smoothing == 0:
        same = F.nll_loss(
            F.log_softmax(bp.asarray(x), axis), bp.asarray(labels), bp.asarray(weight) if with_weight else None,
            ignore_index=2 if not counts.all() else -100, reduction=reduction,
        )  # fmt: skip
        np.testing.assert_allclose(same.numpy(), loss(x), rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
def test_cross_entropy_of_probabilities(reduction):
    x, weight = RNG.standard_normal((2, 5, 3)), RNG.uniform(0.5, 2, 5)
    p = np.exp(log_softmax(RNG.standard_normal((2, 5, 3)), 1))
    terms = -(log_softmax(x, 1) * weight[:, None] * (0.9 * p + 0.1 / 5)).sum(1)
    found = F.cross_entropy(bp.asarray(x), bp.asarray(p), bp.asarray(weight), reduction=reduction, label_smoothing=0.1)
    np.testing.assert_allclose(found.numpy(), reduced(terms, reduction), rtol=1e-12)


def test_all_labels_ignored_give_nan_as_a_mean_of_nothing():
    x = bp.asarray(RNG.standard_normal((2, 3)))
    assert np.isnan(F.cross_entropy(x, bp.full([2], -100, dtype=bp.int64)).item())
    assert F.cross_entropy(x, bp.full([2], -100, dtype=bp.int64), reduction="sum").item() == 0


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_extreme_logits_keep_losses_and_gradients_finite(dtype):
    logits = np.array([[1e4, -1e4, 0.0], [-1e4, 1e4, 5.0]], dtype)
    for loss in (
        lambda t: F.cross_entropy(t, bp.asarray([1, 1])),
        lambda t: F.cross_entropy(t, bp.asarray([1, 1]), label_smoothing=0.1),
        lambda t: F.binary_cross_entropy_with_logits(t, bp.asarray(np.array([[0, 1, 1], [0, 1, 0]], dtype))),
        lambda t: F.soft_margin_loss(t, bp.asarray(np.array([[-1, 1, 1], [1, 1, -1]], dtype))),
        lambda t: F.binary_cross_entropy(bp.sigmoid(t), bp.asarray(np.array([[0, 1, 1], [0, 1, 0]], dtype))),
    ):
        t = bp.asarray(logits).requires_grad_()
        found = loss(t)
        found.backward()
        assert np.isfinite(found.item()) and np.isfinite(t.grad.numpy()).all()


def test_losses_that_compare_vectors_have_finite_gradients_at_zero():
    zero, one = bp.zeros((2, 3)).requires_grad_(), bp.ones((2, 3))
    F.cosine_similarity(zero, one).sum().backward()
    assert np.isfinite(zero.grad.numpy()).all()


def test_triplet_swaps_to_the_nearer_negative():
    a, p, n = RNG.standard_normal((3, 6, 4))

    def distance(x, y):
        return np.linalg.norm(x - y + 1e-6, axis=-1)

    for swap in (False, True):
        far = np.minimum(distance(a, n), distance(p, n)) if swap else distance(a, n)
        expected = np.maximum(0, distance(a, p) - far + 0.7)
        found = F.triplet_margin_loss(*map(bp.asarray, (a, p, n)), margin=0.7, swap=swap, reduction="none")
        np.testing.assert_allclose(found.numpy(), expected, rtol=1e-10)


def test_triplets_by_a_distance_of_ones_own():
    a, p, n = RNG.standard_normal((3, 6, 4))
    found = F.triplet_margin_with_distance_loss(*map(bp.asarray, (a, p, n)), distance_function=lambda x, y: 1 - F.cosine_similarity(x, y), margin=0.3)

    def distance(x, y):
        return 1 - (x * y).sum(-1) / np.linalg.norm(x, axis=-1) / np.linalg.norm(y, axis=-1)

    np.testing.assert_allclose(found.item(), np.maximum(0, distance(a, p) - distance(a, n) + 0.3).mean(), rtol=1e-10)
    plain = F.triplet_margin_with_distance_loss(*map(bp.asarray, (a, p, n)), swap=True)
    np.testing.assert_allclose(plain.item(), F.triplet_margin_loss(*map(bp.asarray, (a, p, n)), swap=True).item(), rtol=1e-12)


@pytest.mark.parametrize("p", [0, 1, 2.0, 3, np.inf])
def test_pdist_is_the_distance_of_each_pair_of_rows(p):
    x = RNG.standard_normal((5, 3))
    expected = [np.linalg.norm(x[i] - x[j], ord=p) for i in range(5) for j in range(i + 1, 5)]
    np.testing.assert_allclose(F.pdist(bp.asarray(x), p).numpy(), expected, rtol=1e-10)
    assert F.pdist(bp.asarray(x[:1]), p).shape == (0,)


def test_multilabel_soft_margin_is_the_mean_over_classes():
    x, labels, weight = RNG.standard_normal((4, 3)) * 5, RNG.integers(0, 2, (4, 3)).astype(float), np.array([0.5, 1.0, 2.0])
    each = (np.logaddexp(0, x) - labels * x) * weight
    found = F.multilabel_soft_margin_loss(*map(bp.asarray, (x, labels, weight)), reduction="none")
    np.testing.assert_allclose(found.numpy(), each.mean(1), rtol=1e-10)
    with pytest.raises(bp.ShapeError, match="multilabel_soft_margin_loss: argument weight: found shape .4,."):
        F.multilabel_soft_margin_loss(bp.asarray(x), bp.asarray(labels), bp.ones(4))


def test_kl_divergence_may_divide_by_the_batch():
    x, p = log_softmax(RNG.standard_normal((4, 3)), 1), np.exp(log_softmax(RNG.standard_normal((4, 3)), 1))
    expected = (p * (np.log(p) - x)).sum() / 4
    np.testing.assert_allclose(F.kl_div(bp.asarray(x), bp.asarray(p), reduction="batchmean").item(), expected)
    zero = bp.asarray([0.0, 1.0])
    np.testing.assert_allclose(F.kl_div(bp.asarray([-5.0, 0.0]), zero, reduction="sum").item(), 0)


def test_gaussian_variance_takes_its_forms_and_floor():
    x, y, v = RNG.standard_normal((3, 4)), RNG.standard_normal((3, 4)), RNG.uniform(0.5, 2, 3)
    expected = ((np.log(v) + 0 * v)[:, None] + (x - y) ** 2 / v[:, None]) / 2
    for var in (v, v[:, None], np.repeat(v[:, None], 4, 1)):
        found = F.gaussian_nll_loss(bp.asarray(x), bp.asarray(y), bp.asarray(var), reduction="none")
        np.testing.assert_allclose(found.numpy(), expected)
    tiny = F.gaussian_nll_loss(bp.asarray([1.0]), bp.asarray([1.0]), bp.asarray([0.0]), eps=1e-3)
    np.testing.assert_allclose(tiny.item(), np.log(1e-3) / 2, rtol=1e-6)
    with pytest.raises(ValueError, match="negative"):
        F.gaussian_nll_loss(bp.ones(3), bp.ones(3), bp.asarray([1.0, -1.0, 1.0]))


def test_losses_batch_and_differentiate_inside_transforms():
    x, labels = bp.asarray(RNG.standard_normal((3, 4, 5))), bp.asarray(RNG.integers(0, 5, (3, 4)))
    rows = bp.vmap(bp.grad(lambda a, b: F.cross_entropy(a, b, ignore_index=1)))(x, labels)
    for i in range(3):
        one = bp.grad(lambda a: F.cross_entropy(a, labels[i], ignore_index=1))(x[i])
        np.testing.assert_allclose(rows.numpy()[i], one.numpy(), atol=1e-15)


@pytest.mark.parametrize(
    "call, found",
    [
        (lambda: F.cross_entropy(bp.ones((2, 3)), bp.asarray([0, 1, 2])), "target"),
        (lambda: F.cross_entropy(bp.ones((2, 3)), bp.asarray([0, 1]), bp.ones(2)), "weight"),
        (lambda: F.cross_entropy(bp.ones((2, 3)), bp.asarray([0, 1]), reduction="avg"), "reduction"),
        (lambda: F.cross_entropy(bp.ones((2, 3)), bp.asarray([0, 1]), label_smoothing=2.0), "label_smoothing"),
        (lambda: F.cross_entropy(bp.ones((2, 3)), bp.asarray([0, 3])), "out of range"),
        (lambda: F.binary_cross_entropy(bp.ones((2, 3)), bp.ones(3)), "target"),
        (lambda: F.mse_loss(bp.ones(2), bp.ones(2), weight=bp.ones(3)), "weight"),
        (lambda: F.huber_loss(bp.ones(2), bp.ones(2), delta=0), "delta"),
        (lambda: F.multi_margin_loss(bp.ones((2, 3)), bp.asarray([0, 1]), p=3), "p:"),
    ],
)
def test_bad_arguments_are_named(call, found):
    with pytest.raises((ValueError, IndexError), match=found):
        call()


def test_ctc_takes_labels_in_rows_and_in_one_vector():
    x = log_softmax(RNG.standard_normal((6, 2, 4)), 2)
    rows, counts, times = bp.asarray([[1, 2, 3], [2, 2, 0]]), [3, 2], [6, 5]
    each = F.ctc_loss(bp.asarray(x), rows, times, counts, reduction="none").numpy()
    joined = F.ctc_loss(bp.asarray(x), bp.asarray([1, 2, 3, 2, 2]), bp.asarray(times), bp.asarray(counts), reduction="none")
    np.testing.assert_allclose(joined.numpy(), each)
    np.testing.assert_allclose(F.ctc_loss(bp.asarray(x), rows, times, counts).item(), np.mean(each / counts))
    alone = F.ctc_loss(bp.asarray(x[:, 0]), bp.asarray([1, 2, 3]), [6], [3], reduction="none")
    assert alone.shape == ()
    np.testing.assert_allclose(alone.item(), each[0])


def test_ctc_is_infinite_where_labels_do_not_fit():
    x = bp.asarray(log_softmax(RNG.standard_normal((3, 1, 3)), 2)).requires_grad_()
    given = (bp.asarray([[1, 1]]), [2], [2])
    assert F.ctc_loss(x, *given).item() == np.inf
    zero = F.ctc_loss(x, *given, zero_infinity=True)
    zero.backward()
    assert zero.item() == 0 and (x.grad.numpy() == 0).all()
    empty = F.ctc_loss(x.detach(), bp.zeros((1, 0), dtype=bp.int64), [3], [0], reduction="sum")
    np.testing.assert_allclose(empty.item(), -x.detach().numpy()[:, 0, 0].sum())


@pytest.mark.parametrize("wrong", [1.5, -0.1, np.nan, np.inf])
def test_probabilities_beyond_one_are_refused_where_they_are_read_at_once(wrong):
    right, of = bp.asarray([0.5, 1.0, 0.0]), bp.asarray([0.25, wrong, 0.5])
    with pytest.raises(bp.ArgumentValueError, match="binary_cross_entropy: argument input: found NaN or a number outside of 0 to 1"):
        F.binary_cross_entropy(of, right)
    with pytest.raises(bp.ArgumentValueError, match="binary_cross_entropy: argument target: found NaN or a number"):
        F.binary_cross_entropy(right, of)
    assert F.binary_cross_entropy(right, right).isfinite() and F.binary_cross_entropy(right[:0], right[:0], reduction="sum").item() == 0
    assert bp.compile(F.binary_cross_entropy)(of, right).shape == () == bp.grad(lambda t: F.binary_cross_entropy(t * of, right))(bp.ones(())).shape


@pytest.mark.parametrize("call", [lambda: F.softmax(bp.ones(3)), lambda: F.mse_loss(bp.ones((2, 3)), bp.ones(3)), lambda: F.l1_loss(bp.ones(3), bp.ones(3), reduce=False)])
def test_a_warning_points_at_the_line_that_called(call):
    with pytest.warns(UserWarning) as seen:
        call()
    assert [warning.filename for warning in seen] == [__file__]


def test_one_hot_integers_are_no_probabilities():
    with pytest.raises(bp.DtypeError, match=r"cross_entropy: argument target: found int64 of the input's shape \(2, 3\).*Fix: target.float\(\)"):
        F.cross_entropy(bp.ones((2, 3)), F.one_hot(bp.asarray([0, 2]), 3))
