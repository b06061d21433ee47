"""What rows of aten.txt call for PyTorch's *_backward operators: the pullback of the forward expression, or an adjoint of the registry."""

from __future__ import annotations

import backplane as bp

from .functions import converted
from .networks import convolution, ctc_loss, refuse_dropout, upsample

op = bp.ops.bp

__all__ = ["attention_backward", "batch_norm_backward", "chosen", "convolution_backward", "ctc_loss_backward", "embedding_backward", "group_norm_backward",
           "layer_norm_backward", "max_pool_backward", "pullback", "rms_norm_backward", "upsample_backward"]  # fmt: skip


def pullback(function, cotangent, *operands):
    """The cotangents of the operands that are tensors (None for the others), from the cotangent of function(*operands)."""
    places = [i for i, x in enumerate(operands) if x is not None]

    def of_tensors(*tensors):
        filled = list(operands)
        for place, tensor in zip(places, tensors):
            filled[place] = tensor
        return function(*filled)

    _, back = bp.vjp(of_tensors, *(operands[i] for i in places))
    found = [None] * len(operands)
    for place, gradient in zip(places, back(cotangent)):
        found[place] = gradient
    return tuple(found)


def chosen(mask, gradients):
    """The gradients that are asked for, None in place of the others."""
    return tuple(g if wanted else None for wanted, g in zip(mask, gradients))


def convolution_backward(cotangent, x, weight, bias_sizes, stride, padding, dilation, transposed, output_padding, groups, mask):
    def forward(x, weight):
        return convolution(x, weight, None, stride, padding, dilation, transposed, output_padding, groups)

    axes = weight.ndim - 2
    wanted = [x if mask[0] else None, weight if mask[1] else None]
    found = [None, None]
    if any(mask[:2]):
        found = list(pullback(lambda a, b: forward(x if a is None else a, weight if b is None else b), cotangent, *wanted))
    bias = bp.sum(cotangent, [i for i in range(cotangent.ndim) if i != cotangent.ndim - axes - 1]) if mask[2] else None
    return (*found, bias)


def batch_norm_backward(cotangent, x, weight, running_mean, running_var, save_mean, save_invstd, train, eps, mask):
    axes = [i for i in range(x.ndim) if i != 1]
    lead = [1, -1] + [1] * (x.ndim - 2)
    if train:
        mean, invstd = save_mean, save_invstd
    else:
        mean, invstd = running_mean, bp.rsqrt(running_var + eps)
    wide = converted(cotangent, invstd.dtype)
    normal = (converted(x, invstd.dtype) - bp.reshape(mean, lead)) * bp.reshape(invstd, lead)
    scale = bp.reshape(invstd if weight is None else invstd * weight, lead)
    gradient = wide
    if train:
        gradient = wide - bp.mean(wide, axes, keepdims=True) - normal * bp.mean(wide * normal, axes, keepdims=True)
    found = (converted(gradient * scale, x.dtype), bp.sum(wide * normal, axes), bp.sum(wide, axes))
    return chosen(mask, found)


def layer_norm_backward(cotangent, x, shape, mean, rstd, weight, mask):
    """The adjoint of a layer norm over the last axes, with its statistics as the forward pass kept them."""
    axes = list(range(-len(shape), 0))
    return chosen(mask, _normalised_backward(cotangent, x, mean, rstd, weight, axes, list(range(x.ndim - len(shape)))))


def rms_norm_backward(cotangent, x, shape, rstd, weight, mask):
    axes = list(range(-len(shape), 0))
    return chosen(mask, _normalised_backward(cotangent, x, None, rstd, weight, axes, list(range(x.ndim - len(shape))))[:2])


def _normalised_backward(cotangent, x, mean, rstd, weight, axes, examples):
    """The gradients of (x - mean) * rstd * weight + bias, where mean (None: 0) and rstd are statistics of x over axes."""
    rstd = rstd if rstd.ndim == x.ndim else bp.reshape(rstd, list(rstd.shape) + [1] * (x.ndim - rstd.ndim))
    wide = converted(cotangent, rstd.dtype)
    centred = converted(x, rstd.dtype)
    if mean is not None:
        centred = centred - bp.reshape(mean, rstd.shape)
    normal = centred * rstd
    scaled = wide if weight is None else wide * weight
    gradient = scaled - normal * bp.mean(scaled * normal, axes, keepdims=True)
    if mean is not None:
        gradient = gradient - bp.mean(scaled, axes, keepdims=True)
    products = wide * normal
    of_weight = None if weight is None else converted(bp.sum(products, examples) if examples else products, weight.dtype)
    of_bias = converted(bp.sum(wide, examples) if examples else wide, x.dtype)
    return converted(gradient * rstd, x.dtype), of_weight, of_bias


def group_norm_backward(cotangent, x, mean, rstd, weight, n, channels, groups, mask):
    """The adjoint of a group norm of x (n, channels, *)."""
    lead, spatial = [1, channels] + [1] * (x.ndim - 2), [0, *range(2, x.ndim)]
    scaled = cotangent if weight is None else cotangent * bp.reshape(weight, lead)
    grouped = [n, groups, -1]
    flat = bp.reshape(x, grouped)
    gradient, _, _ = _normalised_backward(bp.reshape(scaled, grouped), flat, bp.reshape(mean, [n, groups]), bp.reshape(rstd, [n, groups]), None, [2], [])
    normal = bp.reshape((flat - bp.reshape(mean, [n, groups, 1])) * bp.reshape(rstd, [n, groups, 1]), x.shape)
    return chosen(mask, (bp.reshape(gradient, x.shape), bp.sum(cotangent * normal, spatial), bp.sum(cotangent, spatial)))


def max_pool_backward(cotangent, x, indices, axes):
    """Adds each cotangent at the position in the flattened spatial axes from where the maximum came."""
    lead = list(x.shape[: x.ndim - axes])
    flat = bp.zeros([*lead, _product(x.shape[x.ndim - axes :])], dtype=cotangent.dtype)
    at, values = bp.reshape(indices, [*lead, -1]), bp.reshape(cotangent, [*lead, -1])
    return bp.reshape(op.put_along_axis(flat, at, values, axis=-1, accumulate=True), x.shape)


def _product(sizes):
    found = 1
    for size in sizes:
        found = found * size
    return found


def embedding_backward(cotangent, indices, count, padding_idx, scale_by_frequency):
    if scale_by_frequency:
        raise bp.ArgumentValueError("backplane.torch: embedding: argument scale_grad_by_freq: found True, expected False")
    flat, rows = bp.reshape(indices, [-1]), bp.reshape(cotangent, [-1, cotangent.shape[-1]])
    if padding_idx >= 0:
        rows = bp.where(bp.expand_dims(flat != padding_idx, [1]), rows, 0)
    return op.index_add(bp.zeros([count, cotangent.shape[-1]], dtype=cotangent.dtype), 0, flat, rows)


def ctc_loss_backward(cotangent, log_probs, targets, input_lengths, target_lengths, losses, blank, zero_infinity):
    """PyTorch's gradient, with the sum over labels that the gradient of a log softmax in front would subtract: 0 within each step."""
    found = pullback(lambda x: ctc_loss(x, targets, input_lengths, target_lengths, blank, zero_infinity), cotangent, log_probs)[0]
    if zero_infinity:
        cotangent = bp.where(losses == bp.inf, 0, cotangent)
    lengths = input_lengths if isinstance(input_lengths, bp.Tensor) else bp.asarray(list(input_lengths))
    if log_probs.ndim == 3:
        cotangent, times = bp.reshape(cotangent, [1, -1, 1]), bp.reshape(bp.arange(log_probs.shape[0]), [-1, 1, 1])
        lengths = bp.reshape(lengths, [1, -1, 1])
    else:
        times = bp.reshape(bp.arange(log_probs.shape[0]), [-1, 1])
    return found + bp.where(times < lengths, bp.exp(log_probs) * cotangent, 0)


def attention_backward(cotangent, query, key, value, result, lse, mask, dropout_p, causal, scale):
    refuse_dropout(dropout_p)
    delta = bp.sum(cotangent * result, [-1])
    return tuple(op.attention_grad(query, key, value, cotangent, lse, delta, mask, causal=causal, scale=scale))


def upsample_backward(cotangent, input_size, output_size, mode, align_corners, scales, antialias=False):
    return pullback(lambda x: upsample(x, output_size, mode, align_corners, scales, antialias), cotangent, bp.zeros(input_size, dtype=cotangent.dtype))[0]
