"""Losses of numbers against numbers, and of distances."""

from collections.abc import Callable

import backplane as bp
from backplane import Tensor

from .. import _core
from .._calls._half_floats import rounds_once
from .._calls._ops import NAMESPACE, ops
from ._arguments import either
from ._reduction import reduced, same_shape, stated, weighted

__all__ = [
    "cosine_embedding_loss",
    "cosine_similarity",
    "gaussian_nll_loss",
    "hinge_embedding_loss",
    "huber_loss",
    "kl_div",
    "l1_loss",
    "margin_ranking_loss",
    "mse_loss",
    "pairwise_distance",
    "pdist",
    "poisson_nll_loss",
    "smooth_l1_loss",
    "triplet_margin_loss",
    "triplet_margin_with_distance_loss",
]

op = getattr(ops, NAMESPACE)


@rounds_once
def mse_loss(
    input: Tensor, target: Tensor, size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean",
    weight: Tensor | None = None
) -> Tensor:
    """(input - target)^2, reduced; weight, of input's shape, multiplies it, and the mean then divides by the sum of the weights."""
    reduction = stated("mse_loss", size_average, reduce, reduction)
    same_shape("mse_loss", input, target, warn_only=True)
    return weighted("mse_loss", op.mse_loss(input, target), weight, reduction, True)


@rounds_once
def l1_loss(
    input: Tensor, target: Tensor, size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean",
    weight: Tensor | None = None
) -> Tensor:
    """|input - target|, reduced; weight as of mse_loss."""
    reduction = stated("l1_loss", size_average, reduce, reduction)
    same_shape("l1_loss", input, target, warn_only=True)
    return weighted("l1_loss", op.l1_loss(input, target), weight, reduction, True)


@rounds_once
def smooth_l1_loss(
    input: Tensor, target: Tensor, size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean",
    beta: float = 1.0
) -> Tensor:
    """d^2 / (2 beta) where d < beta, d - beta / 2 elsewhere, with d = |input - target|, reduced."""
    reduction = stated("smooth_l1_loss", size_average, reduce, reduction)
    if beta < 0:
        raise bp.ArgumentValueError(f"smooth_l1_loss: argument beta: found {beta}, expected at least 0")
    same_shape("smooth_l1_loss", input, target, warn_only=True)
    return reduced(op.smooth_l1_loss(input, target, beta=beta), reduction)


@rounds_once
def huber_loss(
    input: Tensor, target: Tensor, reduction: str = "mean", delta: float = 1.0, weight: Tensor | None = None
) -> Tensor:
    """d^2 / 2 where d <= delta, delta (d - delta / 2) elsewhere, with d = |input - target|, times weight, reduced."""
    reduction = stated("huber_loss", None, None, reduction)
    if delta <= 0:
        raise bp.ArgumentValueError(f"huber_loss: argument delta: found {delta}, expected more than 0")
    same_shape("huber_loss", input, target, warn_only=True)
    return weighted("huber_loss", op.huber_loss(input, target, delta=delta), weight, reduction, False)


@rounds_once
def kl_div(
    input: Tensor, target: Tensor, size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean",
    log_target: bool = False
) -> Tensor:
    """target (log(target) - input) for log-probabilities input; reduction may be 'batchmean', which divides by input.shape[0]."""
    reduction = stated("kl_div", size_average, reduce, reduction, ("batchmean",))
    loss = op.kl_div(input, target, log_target=log_target)
    if reduction != "batchmean":
        return reduced(loss, reduction)
    return bp.divide(reduced(loss, "sum"), input.shape[0] if input.ndim else 1)


@rounds_once
def poisson_nll_loss(
    input: Tensor, target: Tensor, log_input: bool = True, full: bool = False, size_average: bool | None = None,
    eps: float = 1e-08, reduce: bool | None = None, reduction: str = "mean"
) -> Tensor:
    """exp(input) - target input (or, without log_input, input - target log(input + eps)), reduced; full adds Stirling's approximation."""
    reduction = stated("poisson_nll_loss", size_average, reduce, reduction)
    return reduced(op.poisson_nll_loss(input, target, log_input=log_input, full=full, eps=eps), reduction)


def _variance(input, var):
    """var as a tensor that broadcasts against input. Errors: ShapeError if it does not broadcast; ValueError for a negative number."""
    if not isinstance(var, bp.Tensor):
        negative, var = var < 0, bp.full_like(input, var)
    else:
        # Skipped inside a transform, where the value cannot be read.
        negative = _core.has_values(var) and bool(bp.any(bp.less(var, 0)))
    if negative:
        raise bp.ArgumentValueError("gaussian_nll_loss: argument var: found a negative number, expected variances")
    if var.shape == input.shape:
        return var
    if input.ndim and var.shape == input.shape[:-1]:
        return bp.expand_dims(var, [-1])
    other = [size for size, wanted in zip(var.shape, input.shape) if size != wanted]
    if var.ndim != input.ndim or other != [1]:
        raise bp.ShapeError(f"gaussian_nll_loss: argument var: found shape {tuple(var.shape)}, expected {tuple(input.shape)}, or 1 for one of its sizes")
    return var


@rounds_once
def gaussian_nll_loss(
    input: Tensor, target: Tensor, var: Tensor, full: bool = False, eps: float = 1e-06, reduction: str = "mean"
) -> Tensor:
    """(log(var) + (input - target)^2 / var) / 2 with var at least eps, reduced; full adds log(2 pi) / 2."""
    reduction = stated("gaussian_nll_loss", None, None, reduction)
    return reduced(op.gaussian_nll_loss(input, target, _variance(input, var), full=full, eps=eps), reduction)


@rounds_once
def hinge_embedding_loss(
    input: Tensor, target: Tensor, margin: float = 1.0, size_average: bool | None = None, reduce: bool | None = None,
    reduction: str = "mean"
) -> Tensor:
    """input where target is 1, max(0, margin - input) where target is -1, reduced."""
    reduction = stated("hinge_embedding_loss", size_average, reduce, reduction)
    return reduced(op.hinge_embedding_loss(input, target, margin=margin), reduction)


@rounds_once
def margin_ranking_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0, size_average: bool | None = None,
    reduce: bool | None = None, reduction: str = "mean"
) -> Tensor:
    """max(0, margin - target (input1 - input2)), reduced; target is 1 where input1 should rank higher, else -1."""
    reduction = stated("margin_ranking_loss", size_average, reduce, reduction)
    if not input1.ndim == input2.ndim == target.ndim:
        found = ", ".join(str(tuple(x.shape)) for x in (input1, input2, target))
        raise bp.ShapeError(f"margin_ranking_loss: found shapes {found}, expected as many axes of each")
    return reduced(op.margin_ranking_loss(input1, input2, target, margin=margin), reduction)


def cosine_similarity(x1: Tensor, x2: Tensor, dim: int | None = None, eps: float = 1e-8, *, axis: int | None = None) -> Tensor:
    """The cosine of the angle between x1 and x2 along dim (default 1). Norms are limited to at least eps."""
    return bp.cosine_similarity(x1, x2, axis=either("cosine_similarity", "dim", "axis", (dim, axis), 1), eps=eps)


@rounds_once
def cosine_embedding_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0, size_average: bool | None = None,
    reduce: bool | None = None, reduction: str = "mean"
) -> Tensor:
    """1 - cos(input1, input2) where target is 1, max(0, cos - margin) where it is -1, reduced; of (n, d) with (n), or (d) with ()."""
    reduction = stated("cosine_embedding_loss", size_average, reduce, reduction)
    if input1.shape != input2.shape or target.shape != input1.shape[:-1] or input1.ndim not in (1, 2):
        found = ", ".join(str(tuple(x.shape)) for x in (input1, input2, target))
        raise bp.ShapeError(f"cosine_embedding_loss: found shapes {found}, expected (n, d), (n, d), (n) or (d), (d), ()")
    cosine = bp.cosine_similarity(input1, input2, axis=-1)
    unlike = bp.where(bp.equal(target, -1), _above_zero(bp.subtract(cosine, margin)), 0)
    return reduced(bp.where(bp.equal(target, 1), bp.subtract(1, cosine), unlike), reduction)


def pairwise_distance(
    x1: Tensor, x2: Tensor, p: float = 2.0, eps: float = 1e-6, keepdim: bool | None = None, *, keepdims: bool | None = None
) -> Tensor:
    """The p-norm of x1 - x2 + eps over the last axis."""
    keep = either("pairwise_distance", "keepdim", "keepdims", (keepdim, keepdims), False)
    return bp.pairwise_distance(x1, x2, p=p, eps=eps, keepdims=keep)


@rounds_once
def pdist(input: Tensor, p: float = 2.0) -> Tensor:
    """The p-norms of the differences between the rows of input (n, m): of row 0 to 1, 2, ..., then of row 1, n · (n - 1) / 2 of them."""
    if input.ndim != 2:
        raise bp.ShapeError(f"pdist: argument input: found shape {tuple(input.shape)}, expected (n, m)")
    if p < 0:
        raise bp.ArgumentValueError(f"pdist: argument p: found {p}, expected at least 0")
    first, second = bp.triu_indices(input.shape[0], k=1, device=input.device)
    apart = bp.subtract(bp.take(input, first, axis=0), bp.take(input, second, axis=0))
    return bp.linalg.vector_norm(apart, axis=-1, ord=p)


@rounds_once
def triplet_margin_loss(
    anchor: Tensor, positive: Tensor, negative: Tensor, margin: float = 1.0, p: float = 2, eps: float = 1e-06, swap: bool = False,
    size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean"
) -> Tensor:
    """max(0, margin + |anchor - positive| - |anchor - negative|) over the last axis, reduced; swap: the negative's nearer distance."""
    reduction = stated("triplet_margin_loss", size_average, reduce, reduction)

    def distance(x, y):
        return bp.pairwise_distance(x, y, p=p, eps=eps)

    return _triplets("triplet_margin_loss", (anchor, positive, negative), distance, margin, swap, reduction)


@rounds_once
def triplet_margin_with_distance_loss(
    anchor: Tensor, positive: Tensor, negative: Tensor, *, distance_function: Callable[[Tensor, Tensor], Tensor] | None = None,
    margin: float = 1.0, swap: bool = False, reduction: str = "mean"
) -> Tensor:
    """triplet_margin_loss with distances by distance_function(x, y), without one the Euclidean of pairwise_distance."""
    reduction = stated("triplet_margin_with_distance_loss", None, None, reduction)
    distance = bp.pairwise_distance if distance_function is None else distance_function
    return _triplets("triplet_margin_with_distance_loss", (anchor, positive, negative), distance, margin, swap, reduction)


def _triplets(function, tensors, distance, margin, swap, reduction):
    if margin <= 0:
        raise bp.ArgumentValueError(f"{function}: argument margin: found {margin}, expected more than 0")
    anchor, positive, negative = tensors
    near, far = distance(anchor, positive), distance(anchor, negative)
    if swap:
        far = bp.minimum(far, distance(positive, negative))
    return reduced(_above_zero(bp.add(bp.subtract(near, far), margin)), reduction)


def _above_zero(x):
    """max(x, 0) with a slope of 1 at 0, as in PyTorch's losses; the slope of relu at 0 is 0."""
    return bp.clip(x, 0)
