"""Losses of scores against classes and labels."""

from collections.abc import Sequence

import backplane as bp
from backplane import Tensor, _core

from .._calls._half_floats import rounds_once
from .._calls._ops import NAMESPACE, ops
from ._reduction import reduced, same_shape, stated, weighted

__all__ = [
    "binary_cross_entropy",
    "binary_cross_entropy_with_logits",
    "cross_entropy",
    "ctc_loss",
    "multi_margin_loss",
    "multilabel_margin_loss",
    "multilabel_soft_margin_loss",
    "nll_loss",
    "soft_margin_loss",
]

op = getattr(ops, NAMESPACE)


def _class_axis(function, input, target):
    """The axis of the classes: 0 for (c), else 1. Errors: ShapeError if target.shape is not input.shape without this axis."""
    axis = 0 if input.ndim == 1 else 1
    if input.ndim == 0 or tuple(target.shape) != tuple(size for i, size in enumerate(input.shape) if i != axis):
        raise bp.ShapeError(
            f"{function}: argument target: found shape {tuple(target.shape)} for an input of shape {tuple(input.shape)}, "
            "expected (n, d1, ...) for (n, c, d1, ...), or () for (c)"
        )
    return axis


def _check_weight(function, weight, classes):
    if weight is not None and tuple(weight.shape) != (classes,):
        raise bp.ShapeError(f"{function}: argument weight: found shape {tuple(weight.shape)}, expected ({classes},), one per class")


def _labels(function, target, ignore_index):
    """The labels, 0 in place of those to ignore, and which count (None: all)."""
    if not hasattr(ignore_index, "__index__"):
        raise bp.ArgumentTypeError(f"{function}: argument ignore_index: found {ignore_index!r}, expected an integer")
    if ignore_index < 0 and bp.isdtype(target.dtype, "unsigned integer"):
        return target, None
    counts = bp.not_equal(target, ignore_index)
    return bp.where(counts, target, 0), counts


def _over_examples(loss, labels, counts, weight, reduction):
    """A loss per example, weighted and reduced; the mean divides by the weights, or the number, of those that count."""
    share = None if weight is None else bp.take(weight, labels)
    if share is not None:
        loss = bp.multiply(loss, share)
    if counts is not None:
        loss = bp.where(counts, loss, 0)
    if reduction != "mean" or (share is None and counts is None):
        return reduced(loss, reduction)
    return bp.divide(bp.sum(loss, dtype=loss.dtype), _total(counts, share, loss.dtype))


def _total(counts, share, dtype):
    if counts is None:
        return bp.sum(share, dtype=dtype)
    return bp.sum(bp.cast(counts, dtype) if share is None else bp.where(counts, share, 0), dtype=dtype)


@rounds_once
def nll_loss(
    input: Tensor, target: Tensor, weight: Tensor | None = None, size_average: bool | None = None, ignore_index: int = -100,
    reduce: bool | None = None, reduction: str = "mean"
) -> Tensor:
    """-input at the class target, for log-probabilities input (n, c, d1, ...) or (c), times weight of the class, reduced."""
    reduction = stated("nll_loss", size_average, reduce, reduction)
    axis = _class_axis("nll_loss", input, target)
    _check_weight("nll_loss", weight, input.shape[axis])
    labels, counts = _labels("nll_loss", target, ignore_index)
    return _over_examples(op.nll_loss(input, labels, axis=axis), labels, counts, weight, reduction)


def _per_class(weight, input, axis):
    return bp.reshape(weight, [-1] + [1] * (input.ndim - 1 - axis))


def _smoothed(input, labels, counts, weight, axis, reduction, smoothing):
    """The labels' part and that of all classes alike, which share the divisor of the mean."""
    logs = bp.log_softmax(input, axis=[axis])
    every = bp.negative(bp.sum(logs if weight is None else bp.multiply(logs, _per_class(weight, input, axis)), [axis], dtype=logs.dtype))
    share = None if weight is None else bp.take(weight, labels)
    picked = op.nll_loss(logs, labels, axis=axis)
    picked = picked if share is None else bp.multiply(picked, share)
    loss = bp.add(bp.multiply(picked, 1 - smoothing), bp.multiply(every, smoothing / input.shape[axis]))
    loss = loss if counts is None else bp.where(counts, loss, 0)
    if reduction != "mean" or (share is None and counts is None):
        return reduced(loss, reduction)
    return bp.divide(bp.sum(loss, dtype=loss.dtype), _total(counts, share, loss.dtype))


def _of_probabilities(input, target, weight, axis, reduction, smoothing):
    if not bp.isdtype(input.dtype, "real floating"):
        input = input.astype(target.dtype)
    goal = target if smoothing == 0 else bp.add(bp.multiply(target, 1 - smoothing), smoothing / input.shape[axis])
    terms = bp.multiply(bp.log_softmax(input, axis=[axis]), goal)
    if weight is not None:
        terms = bp.multiply(terms, _per_class(weight, input, axis))
    return reduced(bp.negative(bp.sum(terms, [axis], dtype=terms.dtype)), reduction)


@rounds_once
def cross_entropy(
    input: Tensor, target: Tensor, weight: Tensor | None = None, size_average: bool | None = None, ignore_index: int = -100,
    reduce: bool | None = None, reduction: str = "mean", label_smoothing: float = 0.0
) -> Tensor:
    """-log(softmax(input)) at the class target, of logits (n, c, d1, ...) or (c), reduced; target may be probabilities of input's shape.

    weight: one per class. label_smoothing: the part of each target that is spread over all classes alike.
    """
    reduction = stated("cross_entropy", size_average, reduce, reduction)
    if not 0 <= label_smoothing <= 1:
        raise bp.ArgumentValueError(f"cross_entropy: argument label_smoothing: found {label_smoothing}, expected 0 to 1")
    if input.ndim and input.shape == target.shape and bp.isdtype(target.dtype, "real floating"):
        axis = 0 if input.ndim == 1 else 1
        _check_weight("cross_entropy", weight, input.shape[axis])
        return _of_probabilities(input, target, weight, axis, reduction, label_smoothing)
    if input.ndim and input.shape == target.shape:
        raise bp.DtypeError(
            f"cross_entropy: argument target: found {target.dtype.name} of the input's shape {tuple(input.shape)}, expected probabilities in a "
            "floating dtype, or class numbers without the axis of the classes. Fix: target.float()"
        )
    axis = _class_axis("cross_entropy", input, target)
    _check_weight("cross_entropy", weight, input.shape[axis])
    labels, counts = _labels("cross_entropy", target, ignore_index)
    if label_smoothing > 0:
        return _smoothed(input, labels, counts, weight, axis, reduction, label_smoothing)
    return _over_examples(op.cross_entropy(input, labels, axis=axis), labels, counts, weight, reduction)


def _check_probabilities(function, **arguments):
    """Raises for values outside of 0 to 1, on the CPU only: any other device would have to finish its work first."""
    for name, x in arguments.items():
        is_read = x.size and x.device.backend == "cpu" and _core.has_values(x)
        if is_read and not (0 <= bp.min(x.detach()) and bp.max(x.detach()) <= 1):
            raise bp.ArgumentValueError(f"{function}: argument {name}: found NaN or a number outside of 0 to 1, expected probabilities")


@rounds_once
def binary_cross_entropy(
    input: Tensor, target: Tensor, weight: Tensor | None = None, size_average: bool | None = None, reduce: bool | None = None,
    reduction: str = "mean"
) -> Tensor:
    """-(target log(input) + (1 - target) log(1 - input)) for probabilities input, times weight, reduced. Logarithms are at least -100."""
    reduction = stated("binary_cross_entropy", size_average, reduce, reduction)
    same_shape("binary_cross_entropy", input, target)
    _check_probabilities("binary_cross_entropy", input=input, target=target)
    return weighted("binary_cross_entropy", op.binary_cross_entropy(input, target), weight, reduction, None)


@rounds_once
def binary_cross_entropy_with_logits(
    input: Tensor, target: Tensor, weight: Tensor | None = None, size_average: bool | None = None, reduce: bool | None = None,
    reduction: str = "mean", pos_weight: Tensor | None = None
) -> Tensor:
    """binary_cross_entropy of sigmoid(input), without overflow, times weight, reduced; pos_weight multiplies the term of target."""
    reduction = stated("binary_cross_entropy_with_logits", size_average, reduce, reduction)
    same_shape("binary_cross_entropy_with_logits", input, target)
    loss = op.binary_cross_entropy_with_logits(input, target, pos_weight)
    return weighted("binary_cross_entropy_with_logits", loss, weight, reduction, None)


@rounds_once
def soft_margin_loss(
    input: Tensor, target: Tensor, size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean"
) -> Tensor:
    """log(1 + exp(-target input)), reduced; targets are 1 or -1."""
    reduction = stated("soft_margin_loss", size_average, reduce, reduction)
    return reduced(op.soft_margin_loss(input, target), reduction)


@rounds_once
def multi_margin_loss(
    input: Tensor, target: Tensor, p: float = 1, margin: float = 1.0, weight: Tensor | None = None,
    size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean"
) -> Tensor:
    """The mean over other classes i of max(0, margin - input[target] + input[i])^p, times weight of the class, of (n, c) or (c), reduced."""
    reduction = stated("multi_margin_loss", size_average, reduce, reduction)
    if p not in (1, 2):
        raise bp.ArgumentValueError(f"multi_margin_loss: argument p: found {p}, expected 1 or 2")
    axis = _class_axis("multi_margin_loss", input, target)
    _check_weight("multi_margin_loss", weight, input.shape[axis])
    return reduced(op.multi_margin_loss(input, target, weight, p=p, margin=margin), reduction)


@rounds_once
def multilabel_margin_loss(
    input: Tensor, target: Tensor, size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean"
) -> Tensor:
    """The hinge of every class that is not a label against every one that is; target (n, c) or (c) lists labels, then -1."""
    reduction = stated("multilabel_margin_loss", size_average, reduce, reduction)
    same_shape("multilabel_margin_loss", input, target)
    return reduced(op.multilabel_margin_loss(input, target), reduction)


@rounds_once
def multilabel_soft_margin_loss(
    input: Tensor, target: Tensor, weight: Tensor | None = None, size_average: bool | None = None, reduce: bool | None = None,
    reduction: str = "mean"
) -> Tensor:
    """The binary cross-entropy of logits (*, c) against labels 0 or 1 of each class, times weight (c), averaged over the classes."""
    reduction = stated("multilabel_soft_margin_loss", size_average, reduce, reduction)
    same_shape("multilabel_soft_margin_loss", input, target)
    _check_weight("multilabel_soft_margin_loss", weight, input.shape[-1] if input.ndim else 1)
    each = binary_cross_entropy_with_logits(input, target, weight, reduction="none")
    return reduced(bp.mean(each, axis=-1) if input.ndim else each, reduction)


def _lengths(value, like):
    found = value if isinstance(value, bp.Tensor) else bp.asarray(list(value), dtype=bp.int64, device=like.device)
    return bp.reshape(found, [-1])


def _rows_of_labels(targets, target_lengths):
    """Concatenated labels as one row per example. Places beyond a row's length hold a label that is never read."""
    if target_lengths.size and (int(bp.min(target_lengths)) < 0 or int(bp.sum(target_lengths)) != targets.size):
        raise bp.ArgumentValueError(
            f"ctc_loss: argument target_lengths: found {target_lengths}, expected lengths from 0 on whose sum is that of targets, {targets.size}"
        )
    width = int(bp.max(target_lengths)) if target_lengths.size else 0
    if targets.size == 0 or width == 0:
        return bp.zeros([target_lengths.shape[0], width], dtype=bp.int64, device=targets.device)
    starts = bp.subtract(bp.cumulative_sum(target_lengths), target_lengths)
    at = bp.add(bp.expand_dims(starts, [1]), bp.arange(width, dtype=bp.int64, device=targets.device))
    return bp.take(targets, bp.minimum(at, targets.size - 1))


@rounds_once
def ctc_loss(
    log_probs: Tensor, targets: Tensor, input_lengths: Tensor | Sequence[int], target_lengths: Tensor | Sequence[int],
    blank: int = 0, reduction: str = "mean", zero_infinity: bool = False
) -> Tensor:
    """The connectionist temporal classification loss of log_probs (t, n, c) or (t, c) against labels (n, s), or all in one vector.

    The mean is that of each loss divided by its number of labels. zero_infinity: 0, with no gradient, where labels do not fit.
    """
    reduction = stated("ctc_loss", None, None, reduction)
    alone = log_probs.ndim == 2
    if log_probs.ndim not in (2, 3):
        raise bp.ShapeError(f"ctc_loss: argument log_probs: found shape {tuple(log_probs.shape)}, expected (t, n, c) or (t, c)")
    x = bp.expand_dims(log_probs, [1]) if alone else log_probs
    times, counts = _lengths(input_lengths, x), _lengths(target_lengths, x)
    if times.shape != (x.shape[1],) or counts.shape != (x.shape[1],):
        raise bp.ShapeError(
            f"ctc_loss: arguments input_lengths and target_lengths: found {times.size} and {counts.size} numbers, expected {x.shape[1]}"
        )
    if not 0 <= blank < x.shape[2]:
        raise bp.OutOfRangeError(f"ctc_loss: argument blank: found {blank}, expected a class below {x.shape[2]}")
    labels = bp.reshape(targets, [1, -1]) if alone else targets if targets.ndim == 2 else _rows_of_labels(targets, counts)
    try:
        loss = op.ctc_loss(x, labels, times, counts, blank=blank)
    except bp.DataError:
        raise bp.DataError(
            f"ctc_loss: found a label or a length that is out of range, expected targets from 0 to {x.shape[2] - 1}, input_lengths of at "
            f"most {x.shape[0]} and target_lengths of at most {labels.shape[1]}"
        ) from None
    if zero_infinity:
        loss = bp.where(bp.equal(loss, float("inf")), 0, loss)
    if reduction == "mean":
        return bp.mean(bp.divide(loss, bp.cast(bp.maximum(counts, 1), loss.dtype)))
    return reduced(bp.reshape(loss, []) if alone and reduction == "none" else loss, reduction)
