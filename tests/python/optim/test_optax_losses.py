"""Losses per example: the values and the slopes are optax's (recorded), and shapes that do not fit are refused."""

import pytest

import backplane as bp
from backplane.optim import losses

# Name, arguments, options, the values, and the first three slopes of their sum, by optax 0.2.8 in float64.
CASES = [
    ("squared_error", "x y", {}, [1.0, 1.350881278, 0.741382306, 0.758094483, 0.6801086, 1.86785977], [-2.0, 2.324548367, 1.722071201]),
    ("l2_loss", "x y", {}, [0.5, 0.675440639, 0.370691153, 0.379047241, 0.3400543, 0.933929885], [-1.0, 1.162274184, 0.861035601]),
    ("huber_loss", "x y", {'delta': 0.5}, [0.375, 0.456137092, 0.3055178, 0.310343107, 0.287343485, 0.558348332], [-0.5, 0.5, 0.5]),
    ("log_cosh", "x y", {}, [0.43378083, 0.562460336, 0.332296866, 0.339045175, 0.307315118, 0.736522737], [-0.761594156, 0.82177964, 0.696790856]),
    ("cosine_similarity", "x y", {}, [0.593972786, 0.603736264], [0.360163263, 0.03583733, -0.066985957]),
    ("cosine_distance", "x y", {'epsilon': 2.5}, [0.52276626, 0.457361838], [-0.289376997, -0.028793883, 0.053820578]),
    ("hinge_loss", "x sg", {}, [1.0, 0.0, 0.0, 0.0, 0.0, 1.430239976], [-1.0, -0.0, -0.0]),
    ("multiclass_hinge_loss", "x labels", {}, [1.896113627, 2.805772295], [0.0, 1.0, -1.0]),
    ("sigmoid_binary_cross_entropy", "x pr", {}, [0.693147181, 1.378850853, 1.134108547, 0.824615939, 0.654840611, 0.809485653], [0.050860764, 0.517909546, 0.541269844]),
    ("sigmoid_focal_loss", "x bn", {'alpha': 0.3, 'gamma': 1.5}, [0.073519361, 0.00184674, 0.012334084, 0.014289498, 0.006155174, 0.307460511], [-0.108172529, -0.004144863, -0.024267911]),
    ("softmax_cross_entropy", "x pr", {}, [1.481690998, 1.648221369], [-0.355449678, 0.288596183, 0.066853494]),
    ("safe_softmax_cross_entropy", "x pr", {}, [1.481690998, 1.648221369], [-0.355449678, 0.288596183, 0.066853494]),
    ("softmax_cross_entropy_with_integer_labels", "x labels", {}, [1.336765793, 2.049084649], [0.093689558, 0.643616539, -0.737306097]),
    ("poly_loss_cross_entropy", "x oh", {'epsilon': 1.5}, [2.442724939, 3.355805456], [0.130607071, 0.89722775, -1.027834822]),
    ("kl_divergence", "lp pr", {}, [0.435228877, 0.572222744], [-0.449139236, -0.355020356, -0.195840408]),
    ("kl_divergence_with_log_targets", "lp ly", {}, [0.435228877, 0.572222744], [-0.449139236, -0.355020356, -0.195840408]),
    ("convex_kl_divergence", "x pr", {}, [7.7410084, 0.859862176], [0.550860764, 6.51465171, 2.608035586]),
    ("smooth_labels", "oh", {'alpha': 0.1}, [0.033333333, 0.033333333, 0.933333333, 0.933333333, 0.033333333, 0.033333333], [0.9, 0.9, 0.9]),
]  # fmt: skip


def arguments():
    x = 2 * bp.sin(bp.arange(6, dtype=bp.float64) * 1.3).reshape((2, 3))
    y = bp.cos(bp.arange(6, dtype=bp.float64) * 0.7).reshape((2, 3))
    labels = bp.asarray([2, 0])
    return {
        "x": x, "y": y, "pr": bp.softmax(y, axis=-1), "oh": bp.one_hot(labels, 3).astype(bp.float64), "lp": bp.log_softmax(x, axis=-1),
        "ly": bp.log_softmax(y, axis=-1), "labels": labels, "sg": bp.sign(y), "bn": (y > 0).astype(bp.float64),
    }  # fmt: skip


@pytest.mark.parametrize(("name", "given", "options", "values", "slopes"), CASES)
def test_losses(name, given, options, values, slopes):
    first, *rest = (arguments()[word] for word in given.split())

    def loss(x):
        return getattr(losses, name)(x, *rest, **options)

    assert loss(first).reshape((-1,)).tolist() == pytest.approx(values, abs=2e-9) and bp.allclose(bp.compile(loss)(first), loss(first))
    assert bp.grad(lambda x: loss(x).sum())(first).reshape((-1,)).tolist()[:3] == pytest.approx(slopes, abs=2e-9)


def test_edges():
    zeros = bp.zeros((2, 3))
    assert losses.cosine_similarity(zeros, bp.ones((2, 3))).tolist() == [0.0, 0.0]
    assert bp.all(bp.isfinite(bp.grad(lambda x: losses.cosine_similarity(x, bp.ones((2, 3))).sum())(zeros)))
    assert losses.log_cosh(bp.asarray(1e4)).item() == pytest.approx(1e4 - 0.693147)
    logits = bp.asarray([[0.0, -bp.inf]])
    assert losses.safe_softmax_cross_entropy(logits, bp.asarray([[1.0, 0.0]])).tolist() == [0.0]
    columns = arguments()["x"].T
    by_columns = losses.softmax_cross_entropy_with_integer_labels(columns, bp.asarray([2, 0]), axis=0)
    assert bp.allclose(by_columns, losses.softmax_cross_entropy_with_integer_labels(columns.T, bp.asarray([2, 0])))


def test_shapes_that_do_not_fit():
    with pytest.raises(bp.ShapeError, match=r"l2_loss: argument targets: found shape \(3,\), expected the shape of the predictions, \(3, 1\)"):
        losses.l2_loss(bp.ones((3, 1)), bp.ones(3))
    with pytest.raises(bp.ShapeError, match=r"labels: found shape \(3, 1\), expected \(3,\)"):
        losses.softmax_cross_entropy_with_integer_labels(bp.ones((3, 2)), bp.zeros((3, 1), dtype=bp.int64))
