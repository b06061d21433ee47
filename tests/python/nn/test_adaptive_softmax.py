"""AdaptiveLogSoftmaxWithLoss: probabilities that add up to 1, and a loss that chooses among them."""

import numpy as np
import pytest

import backplane as bp
from backplane import nn


@pytest.fixture
def layer():
    bp.manual_seed(0)
    return nn.AdaptiveLogSoftmaxWithLoss(16, 20, [5, 9, 15], div_value=2.0, head_bias=True, dtype=bp.float64)


X = np.random.default_rng(0).normal(size=(12, 16))
TARGETS = [np.arange(12) % 20, np.arange(12) % 5, 9 + np.arange(12) % 6, (7 * np.arange(12)) % 20]


def test_the_layers_are_pytorchs(layer):
    shapes = {name: tuple(x.shape) for name, x in layer.state_dict().items()}
    assert shapes == {
        "head.weight": (8, 16), "head.bias": (8,), "tail.0.0.weight": (8, 16), "tail.0.1.weight": (4, 8), "tail.1.0.weight": (4, 16),
        "tail.1.1.weight": (6, 4), "tail.2.0.weight": (2, 16), "tail.2.1.weight": (5, 2),
    }  # fmt: skip


def test_a_class_of_a_cluster_has_the_clusters_share_of_the_head(layer):
    def log_softmax(x):
        return x - np.log(np.exp(x).sum(-1, keepdims=True))

    weights = {name: x.numpy() for name, x in layer.state_dict().items()}
    head = log_softmax(X @ weights["head.weight"].T + weights["head.bias"])
    parts = [head[:, :5]]
    for i in range(3):
        parts.append(head[:, 5 + i : 6 + i] + log_softmax(X @ weights[f"tail.{i}.0.weight"].T @ weights[f"tail.{i}.1.weight"].T))
    expected = np.concatenate(parts, axis=1)
    found = layer.log_prob(bp.asarray(X)).detach().numpy()
    assert np.allclose(found, expected, rtol=1e-12) and np.allclose(np.exp(found).sum(1), 1)
    assert np.array_equal(layer.predict(bp.asarray(X)).numpy(), expected.argmax(1))


@pytest.mark.parametrize("target", TARGETS)
def test_the_loss_chooses_among_all_log_probabilities(layer, target):
    x, y = bp.asarray(X), bp.asarray(target)

    def chosen(layer, x):
        return -bp.mean(bp.take_along_axis(layer.log_prob(x), y[:, None], axis=1))

    output, loss = layer(x, y)
    assert output.shape == (12,) and bp.allclose(loss, chosen(layer, x), rtol=1e-12) and bp.allclose(loss, -bp.mean(output))
    expected = bp.grad(chosen)(layer, x)
    for function in (bp.grad(lambda layer, x: layer(x, y).loss), bp.compile(bp.grad(lambda layer, x: layer(x, y).loss))):
        for (name, found), wanted in zip(function(layer, x).named_parameters(), expected.parameters()):
            assert bp.allclose(found, wanted, rtol=1e-10, atol=1e-14), name
    one = layer(x[3], y[3])
    assert one.output.shape == () and bp.allclose(one.output, output[3])
    rows = bp.vmap(lambda x, y: layer(x, y).output)(x, y)
    assert bp.allclose(rows, output, rtol=1e-12)


def test_what_is_refused(layer):
    x = bp.asarray(X)
    for bad in (20, -1):
        y = bp.full(12, bad, dtype=bp.int64)
        with pytest.raises(bp.ArgumentValueError, match=f"found {bad}, expected classes from 0 to 19"):
            layer(x, y)
        with pytest.raises(bp.DataError):
            bp.compile(lambda x, y: layer(x, y).output)(x, y)
    with pytest.raises(bp.ShapeError, match="expected \\(n, in_features\\)"):
        layer(x, bp.zeros((12, 1), dtype=bp.int64))
    for cutoffs in ([], [5, 5], [9, 5], [0, 5], [5, 20]):
        with pytest.raises(bp.ArgumentValueError, match="ascending integers from 1 to n_classes - 1 = 19"):
            nn.AdaptiveLogSoftmaxWithLoss(16, 20, cutoffs)
    with pytest.raises(bp.ArgumentValueError, match="leave cluster 2 no features"):
        nn.AdaptiveLogSoftmaxWithLoss(16, 20, [5, 9, 15])
