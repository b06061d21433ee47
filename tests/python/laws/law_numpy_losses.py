"""NumPy's form of the losses, element by element or example by example, from the definitions."""

import itertools

import numpy as np


def smooth_l1(input, target, beta=1):
    d = abs(input - target)
    return np.where(d < beta, d * d / (2 * beta or 1), d - beta / 2)


def huber(input, target, delta=1):
    d = abs(input - target)
    return np.where(d <= delta, d * d / 2, delta * (d - delta / 2))


def bce_with_logits(input, target, pos_weight=1.0):
    return (1 - target) * np.logaddexp(0, input) + pos_weight * target * np.logaddexp(0, -input)


def poisson(input, target, log_input=True, full=False, eps=1e-8):
    base = np.exp(input) - target * input if log_input else input - target * np.log(input + eps)
    return base + np.where(target > 1, target * np.log(target) - target + np.log(2 * np.pi * target) / 2, 0) if full else base


def gaussian(input, target, var, full=False, eps=1e-6):
    v = np.maximum(var, eps)
    return (np.log(v) + (input - target) ** 2 / v + (np.log(2 * np.pi) if full else 0)) / 2


def hinge_embedding(input, target, margin=1):
    return np.where(target == 1, input, np.maximum(0, margin - input))


def cosine_similarity(x1, x2, axis=1, eps=1e-8):
    n, m = np.linalg.norm(x1, axis=axis), np.linalg.norm(np.broadcast_to(x2, np.broadcast_shapes(x1.shape, x2.shape)), axis=axis)
    return np.sum(x1 * x2, axis=axis) / (np.maximum(n, eps) * np.maximum(m, eps))


def pairwise_distance(x1, x2, p=2, eps=1e-6, keepdims=False):
    return np.linalg.norm(x1 - x2 + eps, ord=p, axis=-1, keepdims=keepdims)


def multi_margin(input, target, weight=None, p=1, margin=1):
    found = np.zeros(target.shape)
    for at in np.ndindex(*target.shape):
        x, y = input[at], target[at]
        terms = [max(0, margin - x[y] + x[i]) ** p for i in range(len(x)) if i != y]
        found[at] = sum(terms) / len(x) * (1 if weight is None else weight[y])
    return found


def multilabel_margin(input, target):
    found = np.zeros(input.shape[:-1])
    for at in np.ndindex(*found.shape):
        x = input[at]
        labels = []
        for y in target[at]:
            if y < 0:
                break
            labels.append(y)
        others = [i for i in range(len(x)) if i not in labels]
        found[at] = sum(max(0, 1 - x[y] + x[i]) for y in labels for i in others) / len(x)
    return found


def collapsed(path, blank):
    return [label for label, _ in itertools.groupby(path) if label != blank]


def ctc(log_probs, targets, input_lengths, target_lengths, blank=0):
    """Over every path of classes: the sum of the probabilities of those that give the labels."""
    found = np.zeros(log_probs.shape[1])
    for i in range(len(found)):
        steps, labels = input_lengths[i], list(targets[i, : target_lengths[i]])
        paths = itertools.product(range(log_probs.shape[2]), repeat=steps)
        found[i] = sum(np.exp(sum(log_probs[t, i, k] for t, k in enumerate(path))) for path in paths if collapsed(path, blank) == labels)
    return -np.log(found)


LOSSES = {
    "ctc_loss": ctc,
    "mse_loss": lambda input, target: (input - target) ** 2,
    "l1_loss": lambda input, target: abs(input - target),
    "smooth_l1_loss": smooth_l1,
    "huber_loss": huber,
    "binary_cross_entropy": lambda input, target: -(target * np.log(input) + (1 - target) * np.log(1 - input)),
    "binary_cross_entropy_with_logits": bce_with_logits,
    "kl_div": lambda input, target, log_target=False: np.exp(target) * (target - input) if log_target else target * (np.log(target) - input),
    "poisson_nll_loss": poisson,
    "gaussian_nll_loss": gaussian,
    "hinge_embedding_loss": hinge_embedding,
    "margin_ranking_loss": lambda input1, input2, target, margin=0: np.maximum(0, margin - target * (input1 - input2)),
    "soft_margin_loss": lambda input, target: np.logaddexp(0, -target * input),
    "cosine_similarity": cosine_similarity,
    "pairwise_distance": pairwise_distance,
    "multi_margin_loss": multi_margin,
    "multilabel_margin_loss": multilabel_margin,
}
