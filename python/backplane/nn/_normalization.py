"""Normalisation by means and variances, or norms, of groups of elements."""

import math
from collections.abc import Sequence

import backplane as bp
from backplane import Tensor, _core

from ._arguments import either

__all__ = [
    "batch_norm",
    "group_norm",
    "instance_norm",
    "layer_norm",
    "local_response_norm",
    "normalize",
    "rms_norm",
]


def _last_axes(function, input, normalized_shape):
    """The axes that normalized_shape covers. Errors: ShapeError where the input's last sizes differ from it."""
    if not hasattr(normalized_shape, "__index__") and not hasattr(normalized_shape, "__iter__"):
        raise bp.ArgumentTypeError(f"{function}: argument normalized_shape: found {normalized_shape!r}, expected an integer or several")
    shape = [normalized_shape] if hasattr(normalized_shape, "__index__") else list(normalized_shape)
    if not shape or list(input.shape[-len(shape) :]) != shape:
        raise bp.ShapeError(
            f"{function}: argument normalized_shape: found {shape} with an input of shape {tuple(input.shape)}, expected its last sizes"
        )
    return list(range(-len(shape), 0))


def _channels(function, input):
    if input.ndim < 2:
        raise bp.ShapeError(f"{function}: argument input: found shape {tuple(input.shape)}, expected (n, c, *)")
    return input.shape[1]


def _follow(running, value, momentum):
    """running = (1 - momentum) · running + momentum · value, in place and without history."""
    if running is None:
        return
    value = value.detach()
    if _core.transforms_of(value):
        value = _primal(value, running)
    with bp.no_grad():
        if isinstance(momentum, Tensor):  # the number of batches, of which this one has an equal share
            momentum = 1 / bp.cast(momentum, running.dtype)
        change = momentum * bp.cast(value, running.dtype)
        _written(lambda: running.mul_(1 - momentum).add_(change))


def _written(write):
    """Changes a running statistic in place. A function of control flow cannot."""
    try:
        write()
    except bp.ArgumentValueError as error:
        raise bp.ArgumentValueError(
            "running statistics: a function of control flow, such as the body of scan, cannot change them in place. Fix: call the module "
            "after eval() or with track_running_stats=False, or return the statistics and update them outside of the function"
        ) from error


def _primal(value, running):
    """The statistic without the transforms it was computed in. The running statistic is outside of these transforms."""
    try:
        return _core.value_beside(value, running, "running statistics").detach()
    except bp.BackplaneError:
        raise bp.ArgumentValueError(
            "running statistics: found one tensor for all rows of vmap, but each row has a different mean. Fix: map over it (in_axes=0), "
            "or pass None and update it outside from the result of the function"
        ) from None


def layer_norm(
    input: Tensor, normalized_shape: int | Sequence[int], weight: Tensor | None = None, bias: Tensor | None = None,
    eps: float = 1e-05
) -> Tensor:
    """input less its mean, divided by sqrt(variance + eps), over the last axes, whose sizes are normalized_shape."""
    return bp.layer_norm(input, weight, bias, axis=_last_axes("layer_norm", input, normalized_shape), eps=eps)


def rms_norm(
    input: Tensor, normalized_shape: int | Sequence[int], weight: Tensor | None = None, eps: float | None = None
) -> Tensor:
    """input divided by sqrt(mean of squares + eps) over the last axes, of sizes normalized_shape; eps: that of the dtype of the computation."""
    if eps is None:  # half floats are computed in float32
        eps = bp.finfo(bp.float32 if input.dtype in (bp.float16, bp.bfloat16) else input.dtype).eps
    return bp.rms_norm(input, weight, axis=_last_axes("rms_norm", input, normalized_shape), eps=eps)


def group_norm(
    input: Tensor, num_groups: int, weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-05
) -> Tensor:
    """input (n, c, *) normalised per example over each of num_groups groups of channels."""
    channels = _channels("group_norm", input)
    if not hasattr(num_groups, "__index__"):
        raise bp.ArgumentTypeError(f"group_norm: argument num_groups: found {num_groups!r}, expected an integer")
    if num_groups < 1 or channels % num_groups:
        raise bp.ShapeError(f"group_norm: argument num_groups: found {num_groups}, expected a divisor of the {channels} channels")
    return bp.group_norm(input, num_groups, weight, bias, eps=eps)


def follow_batch(
    running_mean: Tensor | None, running_var: Tensor | None, num_batches_tracked: Tensor | None, mean: Tensor, var: Tensor, count: int | Tensor, momentum: float | None
) -> None:
    """Counts a batch, whose mean and biased variance are over `count` values, and lets the running statistics follow. momentum None: their mean over the batches."""
    if num_batches_tracked is not None:
        _written(lambda: num_batches_tracked.add_(1))
    share = num_batches_tracked if momentum is None else momentum
    _follow(running_mean, mean, share)
    _follow(running_var, _unbiased(var, count), share)


def _unbiased(var: Tensor, count: int | Tensor) -> Tensor:
    # Not by count / (count - 1): a graph of dynamic sizes takes sums of sizes as numbers, and not their quotients.
    return var + var / (count - 1)


def batch_norm(
    input: Tensor, running_mean: Tensor | None, running_var: Tensor | None, weight: Tensor | None = None,
    bias: Tensor | None = None, training: bool = False, momentum: float | None = 0.1, eps: float = 1e-05, *,
    num_batches_tracked: Tensor | None = None
) -> Tensor:
    """input (n, c, *) normalised per channel: in training by its own mean and variance, which the running ones then follow in
    place (the variance without bias), otherwise by the running ones.

    num_batches_tracked: an integer tensor that training counts up in place. If momentum is None, the running statistics are the plain
    mean over the batches that it counts.
    """
    channels = _channels("batch_norm", input)
    if not training:
        if running_mean is None or running_var is None:
            raise bp.ArgumentValueError("batch_norm: arguments running_mean and running_var: found None, expected tensors outside training")
        return bp.batch_norm_inference(input, running_mean, running_var, weight, bias, eps=eps)
    count = input.size // channels if channels else 0
    if count <= 1:
        raise bp.ArgumentValueError(f"batch_norm: argument input: found {count} values per channel, expected more than one in training")
    if momentum is None and num_batches_tracked is None:
        raise bp.ArgumentValueError(
            "batch_norm: argument momentum: found None without num_batches_tracked; a mean of all batches needs their number. "
            "Fix: pass an integer tensor, which begins at 0 and is counted up in place"
        )
    y, mean, var = bp.batch_norm(input, weight, bias, eps=eps)
    follow_batch(running_mean, running_var, num_batches_tracked, mean, var, count, momentum)
    return y


def instance_norm(
    input: Tensor, running_mean: Tensor | None = None, running_var: Tensor | None = None, weight: Tensor | None = None,
    bias: Tensor | None = None, use_input_stats: bool = True, momentum: float = 0.1, eps: float = 1e-05
) -> Tensor:
    """input (n, c, *) normalised per example and channel; the running statistics, where given, follow the mean over examples, or
    are used instead without use_input_stats."""
    channels = _channels("instance_norm", input)
    if not use_input_stats:
        return batch_norm(input, running_mean, running_var, weight, bias, False, momentum, eps)
    count = math.prod(input.shape[2:]) if channels and input.shape[0] else 0
    if count <= 1:
        raise bp.ArgumentValueError(f"instance_norm: argument input: found {count} values per channel, expected more than one")
    axes = list(range(2, input.ndim))
    if running_mean is not None:
        _follow(running_mean, bp.mean(input.detach(), axis=[0, *axes]), momentum)
    if running_var is not None:
        spread = bp.mean(bp.var(input.detach(), axis=axes), axis=[0])
        _follow(running_var, _unbiased(spread, count), momentum)
    return bp.group_norm(input, channels, weight, bias, eps=eps)


def local_response_norm(input: Tensor, size: int, alpha: float = 0.0001, beta: float = 0.75, k: float = 1.0) -> Tensor:
    """input (n, c, *) divided by (k + alpha · the mean square over size neighbouring channels) ** beta."""
    return bp.local_response_norm(input, size, alpha=alpha, beta=beta, k=k)


def normalize(
    input: Tensor, p: float = 2.0, dim: int | Sequence[int] = 1, eps: float = 1e-12, out: Tensor | None = None, *,
    axis: int | Sequence[int] | None = None
) -> Tensor:
    """input divided by its p-norm along dim (an axis or several), or by eps where that is larger."""
    chosen = either("normalize", "dim", "axis", (None if dim == 1 and axis is not None else dim, axis))
    y = bp.normalize(input, p, chosen, eps=eps)
    if out is None:
        return y
    out[...] = y
    return out
