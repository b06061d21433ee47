"""What PyTorch's losses do with a loss per element: reduction, and the arguments size_average and reduce before it."""

import backplane as bp

from ._arguments import warn


def stated(function, size_average, reduce, reduction, also=()):
    """The reduction that the arguments ask for: 'none', 'mean', 'sum' or one of `also`."""
    if size_average is not None or reduce is not None:
        reduction = "none" if reduce is False else "sum" if size_average is False else "mean"
        warn(f"{function}: size_average and reduce are old forms of reduction={reduction!r}")
    names = ("none", "mean", "sum", *also)
    if reduction not in names:
        raise bp.ArgumentValueError(f"{function}: argument reduction: found {reduction!r}, expected one of {', '.join(names)}")
    return reduction


def reduced(loss, reduction):
    """The loss as it is, its mean, or its sum in its own dtype."""
    if reduction == "none":
        return loss
    return bp.mean(loss) if reduction == "mean" else bp.sum(loss, dtype=loss.dtype)


def weighted(function, loss, weight, reduction, by_weight):
    """loss times weight, reduced; by_weight: the mean divides by the sum of the weights, not by their number."""
    if weight is None:
        return reduced(loss, reduction)
    if by_weight is not None and weight.shape != loss.shape:
        raise bp.ShapeError(f"{function}: argument weight: found shape {tuple(weight.shape)}, expected {tuple(loss.shape)}, that of the input")
    total = bp.multiply(loss, weight)
    if reduction == "mean" and by_weight:
        return bp.divide(bp.sum(total, dtype=total.dtype), bp.sum(weight, dtype=total.dtype))
    return reduced(total, reduction)


def same_shape(function, input, target, warn_only=False):
    """Refuses a target of another shape than input, or warns: by broadcasting the loss would count pairs."""
    if input.shape == target.shape:
        return
    text = f"{function}: argument target: found shape {tuple(target.shape)}, expected {tuple(input.shape)}, that of the input"
    if not warn_only:
        raise bp.ShapeError(text)
    warn(text + "; both are broadcast")
