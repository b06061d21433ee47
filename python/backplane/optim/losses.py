"""Losses under optax's names: one number per example, or per element, without a mean.

    loss = bp.optim.losses.softmax_cross_entropy_with_integer_labels(logits, labels).mean()
"""

from __future__ import annotations

import math
from typing import Any

import backplane as bp
from backplane import Tensor

from .._calls._ops import refuse_names as _refuse_names

__all__ = [
    "convex_kl_divergence", "cosine_distance", "cosine_similarity", "hinge_loss", "huber_loss", "kl_divergence", "kl_divergence_with_log_targets",
    "l2_loss", "log_cosh", "multiclass_hinge_loss", "poly_loss_cross_entropy", "safe_softmax_cross_entropy", "sigmoid_binary_cross_entropy",
    "sigmoid_focal_loss", "smooth_labels", "softmax_cross_entropy", "softmax_cross_entropy_with_integer_labels", "squared_error",
]  # fmt: skip
__dir__ = __all__.copy


def _error(name: str, predictions: Tensor, targets: Any) -> Tensor:
    """predictions - targets, of one shape: a target that broadcasts would make a loss of pairs."""
    if targets is None:
        return predictions
    if isinstance(targets, Tensor) and targets.shape != predictions.shape:
        raise bp.ShapeError(f"{name}: argument targets: found shape {tuple(targets.shape)}, expected the shape of the predictions, {tuple(predictions.shape)}")
    return predictions - targets


def squared_error(predictions: Tensor, targets: Any = None) -> Tensor:
    """(predictions - targets) ** 2 for each element. Errors: ShapeError for different shapes."""
    return _error("squared_error", predictions, targets) ** 2


def l2_loss(predictions: Tensor, targets: Any = None) -> Tensor:
    """Half of squared_error. Errors: ShapeError for different shapes."""
    return 0.5 * _error("l2_loss", predictions, targets) ** 2


def huber_loss(predictions: Tensor, targets: Any = None, delta: float = 1.0) -> Tensor:
    """Half of the squared error up to delta, and a line from there on. Errors: ShapeError for different shapes."""
    size = bp.abs(_error("huber_loss", predictions, targets))
    near = bp.minimum(size, delta)
    return 0.5 * near**2 + delta * (size - near)


def log_cosh(predictions: Tensor, targets: Any = None) -> Tensor:
    """log(cosh(predictions - targets)), which does not overflow. Errors: ShapeError for different shapes."""
    error = _error("log_cosh", predictions, targets)
    return bp.logaddexp(error, -error) - math.log(2)


def cosine_similarity(predictions: Tensor, targets: Tensor, epsilon: float = 0.0, axis: int = -1) -> Tensor:
    """The cosine of the angle between vectors along an axis. epsilon: the least squared length that counts; 0 between a vector of zeros and others."""

    def unit(x):
        square = bp.sum(x * x, axis=axis, keepdims=True)
        return x / bp.sqrt(bp.where(square > epsilon, square, epsilon or 1.0))

    return bp.sum(unit(predictions) * unit(targets), axis=axis)


def cosine_distance(predictions: Tensor, targets: Tensor, epsilon: float = 0.0, axis: int = -1) -> Tensor:
    """1 - cosine_similarity."""
    return 1 - cosine_similarity(predictions, targets, epsilon, axis)


def hinge_loss(predictor_outputs: Tensor, targets: Tensor) -> Tensor:
    """max(0, 1 - output · target), for targets of -1 and 1."""
    return bp.maximum(1 - predictor_outputs * targets, 0)


def multiclass_hinge_loss(scores: Tensor, labels: Tensor) -> Tensor:
    """How far a wrong score (*, n), plus 1, is above the score of the label (*): max over j of score[j] + (j != label) - score[label]."""
    right = bp.one_hot(labels, scores.shape[-1]).astype(scores.dtype)
    return bp.max(scores + 1 - right, axis=-1) - bp.sum(scores * right, axis=-1)


def sigmoid_binary_cross_entropy(logits: Tensor, labels: Any) -> Tensor:
    """-labels · log sigmoid(logits) - (1 - labels) · log sigmoid(-logits) for each element; labels are probabilities."""
    return -labels * bp.logsigmoid(logits) - (1 - labels) * bp.logsigmoid(-logits)


def sigmoid_focal_loss(logits: Tensor, labels: Any, alpha: float | None = None, gamma: float = 2.0) -> Tensor:
    """sigmoid_binary_cross_entropy times (1 - p) ** gamma, where p is the probability of the label (Lin et al., 2017); alpha weighs the label 1."""
    p = bp.sigmoid(logits)
    missed = p * (1 - labels) + (1 - p) * labels
    loss = sigmoid_binary_cross_entropy(logits, labels) * missed**gamma
    return loss if alpha is None else (alpha * labels + (1 - alpha) * (1 - labels)) * loss


def softmax_cross_entropy(logits: Tensor, labels: Tensor, axis: int = -1) -> Tensor:
    """-sum(labels · log_softmax(logits)) over an axis; labels are probabilities of the shape of logits (*, n)."""
    return -bp.sum(labels * bp.log_softmax(logits, axis=axis), axis=axis)


def safe_softmax_cross_entropy(logits: Tensor, labels: Tensor) -> Tensor:
    """softmax_cross_entropy, where a probability of 0 gives 0 also beside a logit of -inf."""
    used = labels != 0
    return -bp.sum(bp.where(used, labels * bp.where(used, bp.log_softmax(logits, axis=-1), 0), 0), axis=-1)


def softmax_cross_entropy_with_integer_labels(logits: Tensor, labels: Tensor, axis: int = -1) -> Tensor:
    """logsumexp(logits) - logits[label] over an axis: logits (*, n), labels (*), integers below n. Errors: ShapeError for labels of another shape."""
    shape = [size for i, size in enumerate(logits.shape) if i != axis % logits.ndim]
    if list(labels.shape) != shape:
        raise bp.ShapeError(f"softmax_cross_entropy_with_integer_labels: argument labels: found shape {tuple(labels.shape)}, expected {tuple(shape)}")
    chosen = bp.take_along_axis(logits, bp.expand_dims(labels, axis=axis), axis=axis)
    return bp.logsumexp(logits, axis=axis) - bp.squeeze(chosen, axis=axis)


def poly_loss_cross_entropy(logits: Tensor, labels: Tensor, epsilon: float = 2.0, axis: int = -1) -> Tensor:
    """softmax_cross_entropy plus epsilon times the probability that misses the labels (Leng et al., 2022)."""
    right = bp.sum(labels * bp.softmax(logits, axis=axis), axis=axis)
    return softmax_cross_entropy(logits, labels, axis) + epsilon * (1 - right)


def kl_divergence(log_predictions: Tensor, targets: Tensor, axis: int = -1) -> Tensor:
    """sum(targets · (log(targets) - log_predictions)) over an axis; targets are probabilities."""
    return bp.sum(bp.xlogy(targets, targets) - targets * log_predictions, axis=axis)


def kl_divergence_with_log_targets(log_predictions: Tensor, log_targets: Tensor, axis: int = -1) -> Tensor:
    """kl_divergence of the logarithms of the targets."""
    return bp.sum(bp.exp(log_targets) * (log_targets - log_predictions), axis=axis)


def convex_kl_divergence(log_predictions: Tensor, targets: Tensor, axis: int = -1) -> Tensor:
    """kl_divergence plus sum(exp(log_predictions) - targets), which is convex in both also if they do not sum to 1."""
    return kl_divergence(log_predictions, targets, axis) + bp.sum(bp.exp(log_predictions) - targets, axis=axis)


def smooth_labels(labels: Tensor, alpha: float) -> Tensor:
    """Labels (*, n), one-hot or probabilities, mixed with the share alpha of the uniform distribution."""
    return (1 - alpha) * labels + alpha / labels.shape[-1]


TYPE_CHECKING = False
if not TYPE_CHECKING:
    __getattr__ = _refuse_names(__name__)
del TYPE_CHECKING
