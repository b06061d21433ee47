"""What rows of aten.txt call for layers of networks: convolution, normalisation, attention, losses, resampling, Fourier transforms."""

from __future__ import annotations

import backplane as bp
import backplane.nn.functional as F

from .functions import converted

op = bp.ops.bp

__all__ = [
    "INVERSE_NORMS", "NORMS", "REDUCTIONS", "attention", "attention_with_lse", "batch_norm_functional", "batch_norm_inference", "convolution", "ctc_loss_with_alpha", "fourier", "grid_sample", "group_norm_with_moments",
    "fused_layer_norm", "layer_norm_with_moments", "nll_loss", "rms_norm", "rms_norm_with_rstd", "upsample", "weight_norm", "with_reserve",
]  # fmt: skip

REDUCTIONS = ("none", "mean", "sum")
NORMS = ("backward", "ortho", "forward")  # PyTorch's numbers of a transform that multiplies by 1, 1 / sqrt(n), 1 / n
INVERSE_NORMS = ("forward", "ortho", "backward")


def convolution(x, weight, bias, stride, padding, dilation, transposed, output_padding, groups):
    """A convolution over weight.ndim - 2 axes, or the transposed one; x may lack the batch axis."""
    axes = weight.ndim - 2
    unbatched = x.ndim == axes + 1
    if unbatched:
        x = bp.expand_dims(x, [0])
    stride, padding, dilation = (_per_axis(sizes, axes) for sizes in (stride, padding, dilation))
    if transposed:
        y = op.conv_transpose(x, weight, stride=stride, padding=padding, output_padding=_per_axis(output_padding, axes), dilation=dilation, groups=groups)
    else:
        y = (op.conv2d if axes == 2 else op.conv)(x, weight, stride=stride, padding=padding, dilation=dilation, groups=groups)
    if bias is not None:
        y = y + bp.reshape(bias, [-1] + [1] * axes)
    return bp.squeeze(y, [0]) if unbatched else y


def _per_axis(sizes, axes):
    sizes = list(sizes)
    return sizes * axes if len(sizes) == 1 else sizes


# ---- normalisation ------------------------------------------------------------------------------------------------


def _wide(x):
    """Statistics of half floats are float32."""
    return converted(x, bp.float32) if x.dtype in (bp.float16, bp.bfloat16) else x


def _moments(x, axes, eps):
    wide = _wide(x)
    return bp.mean(wide, axes, keepdims=True), bp.rsqrt(bp.var(wide, axes, keepdims=True) + eps)


def _normal(x, mean, rstd):
    """A norm without weight and bias. A negative eps, which PyTorch takes, has no root as the entry's formula needs it."""
    return converted((_wide(x) - mean) * rstd, x.dtype)


def layer_norm_with_moments(x, shape, weight, bias, eps):
    if eps < 0:
        return fused_layer_norm(x, shape, weight, bias, eps)
    mean, rstd = _moments(x, list(range(-len(shape), 0)), eps)
    return F.layer_norm(x, shape, weight, bias, eps), converted(mean, x.dtype), converted(rstd, x.dtype)


def fused_layer_norm(x, shape, weight, bias, eps):
    """layer_norm_with_moments, whose norm comes from the moments: compilers make one loop of all three results."""
    mean, rstd = _moments(x, list(range(-len(shape), 0)), eps)
    found = _normal(x, mean, rstd)
    found = found if weight is None else found * weight
    return found if bias is None else found + bias, converted(mean, x.dtype), converted(rstd, x.dtype)


def group_norm_with_moments(x, weight, bias, n, channels, size, groups, eps):
    grouped, lead = bp.reshape(x, [n, groups, -1]), [channels] + [1] * (x.ndim - 2)
    mean, rstd = _moments(grouped, [2], eps)
    if eps < 0:
        found = bp.reshape(_normal(grouped, mean, rstd), x.shape)
        found = found * (1 if weight is None else bp.reshape(weight, lead)) + (0 if bias is None else bp.reshape(bias, lead))
    else:
        found = F.group_norm(x, groups, weight, bias, eps)
    return found, bp.reshape(converted(mean, x.dtype), [n, groups]), bp.reshape(converted(rstd, x.dtype), [n, groups])


def batch_norm_inference(x, weight, bias, mean, var, eps):
    """(the result, mean, 1 / deviation); on its CPU PyTorch leaves the last two without elements (_graph_functions.py)."""
    return F.batch_norm(x, mean, var, weight, bias, False, 0.0, eps), mean, bp.rsqrt(var + eps)


def batch_norm_training(x, weight, bias, running_mean, running_var, momentum, eps):
    """(the result, mean, 1 / deviation, the running mean, the running variance): by the statistics of x itself."""
    count = x.size // max(x.shape[1], 1)
    found, mean, variance = op.batch_norm(x, weight, bias, eps=eps)
    means = variances = bp.zeros((0,), dtype=x.dtype)
    if running_mean is not None:
        means = running_mean + (converted(mean, running_mean.dtype) - running_mean) * momentum
        unbiased = variance * (count / (count - 1)) if count > 1 else variance / 0.0
        variances = running_var + (converted(unbiased, running_var.dtype) - running_var) * momentum
    return found, mean, bp.rsqrt(variance + eps), means, variances


def batch_norm_functional(x, weight, bias, running_mean, running_var, training, momentum, eps):
    """The five results of PyTorch's functional batch norm."""
    if training or running_mean is None:
        return batch_norm_training(x, weight, bias, running_mean, running_var, momentum, eps)
    return (*batch_norm_inference(x, weight, bias, running_mean, running_var, eps), running_mean, running_var)


def with_reserve(found, mean, invstd, means, variances):
    """The results with the reserve, a buffer of cuDNN's, before the running statistics."""
    return found, mean, invstd, bp.zeros((0,), dtype=bp.uint8), means, variances


def rms_norm(x, shape, weight, eps):
    eps = bp.finfo(x.dtype).eps if eps is None else eps
    return op.rms_norm(x, weight, axis=list(range(-len(shape), 0)), eps=eps)


def rms_norm_with_rstd(x, shape, weight, eps):
    wide, axes = _wide(x), list(range(-len(shape), 0))
    rstd = bp.rsqrt(bp.mean(wide * wide, axes, keepdims=True) + (bp.finfo(x.dtype).eps if eps is None else eps))
    return rms_norm(x, shape, weight, eps), rstd


def weight_norm(v, g, dim):
    """(v scaled to the norms g of its slices along dim, the norms that v had)."""
    others = [i for i in range(v.ndim) if i != dim % v.ndim] if dim != -1 else list(range(v.ndim))
    norms = bp.sqrt(bp.sum(v * v, others, keepdims=True))
    return v * (g / norms), norms


# ---- attention ----------------------------------------------------------------------------------------------------


def attention(query, key, value, mask, dropout_p, causal, scale, grouped):
    """PyTorch's attention: dropout draws from Backplane's generator."""
    return F.scaled_dot_product_attention(query, key, value, mask, dropout_p, causal, scale, grouped)


def attention_with_lse(query, key, value, dropout_p, causal, mask, scale):
    refuse_dropout(dropout_p)
    return tuple(op.attention_with_lse(query, key, value, mask, causal=causal, scale=scale))


def refuse_dropout(dropout_p):
    if dropout_p:
        raise bp.ArgumentValueError(f"backplane.torch: flash attention: argument dropout_p: found {dropout_p}, expected 0; PyTorch's CPU takes the other path")


# ---- losses, resampling, Fourier transforms -----------------------------------------------------------------------


def nll_loss(x, target, weight, reduction, ignore_index):
    """(the loss, the sum of the weights that count)."""
    counts = target != ignore_index
    share = converted(counts, x.dtype) if weight is None else bp.where(counts, bp.take(weight, bp.where(counts, target, 0), axis=0), 0)
    total = bp.sum(share) if reduction == 1 or x.ndim == 1 else bp.zeros((), dtype=x.dtype)
    return F.nll_loss(x, target, weight, ignore_index=ignore_index, reduction=REDUCTIONS[reduction]), total


def ctc_loss(log_probs, targets, input_lengths, target_lengths, blank, zero_infinity):
    """The loss of each sequence; log_probs (time, batch, labels) or (time, labels)."""
    return F.ctc_loss(log_probs, targets, input_lengths, target_lengths, blank, "none", zero_infinity)


def ctc_loss_with_alpha(log_probs, targets, input_lengths, target_lengths, blank, zero_infinity):
    """(the losses, an empty buffer): the backward operator computes what PyTorch keeps in the buffer once more."""
    return ctc_loss(log_probs, targets, input_lengths, target_lengths, blank, zero_infinity), bp.zeros((0,), dtype=log_probs.dtype)


def upsample(x, output_size, mode, align_corners, scales, antialias=False):
    """x with spatial axes of output_size, or scales times as long; a scale that is given fixes where elements are taken."""
    if scales is not None and all(scale is not None for scale in scales):
        found = F.interpolate(x, None, list(scales), mode=mode, align_corners=align_corners, antialias=antialias)
        if output_size is None or list(found.shape[2:]) == list(output_size):
            return found
        if not align_corners and any(abs(n * scale - size) > 1 for n, scale, size in zip(x.shape[2:], scales, output_size)):
            raise bp.ArgumentValueError(f"backplane.torch: upsample: found the output size {list(output_size)}, expected that of the scales {list(scales)}")
    return F.interpolate(x, list(output_size), mode=mode, align_corners=align_corners, antialias=antialias)


def grid_sample(x, grid, interpolation, padding, align_corners):
    modes, paddings = ("bilinear", "nearest", "bicubic"), ("zeros", "border", "reflection")
    return F.grid_sample(x, grid, mode=modes[interpolation], padding_mode=paddings[padding], align_corners=align_corners)


def fourier(x, dim, normalization, onesided):
    if onesided:
        return op.fft_r2c(x, dim, norm=NORMS[normalization])
    return op.fft_c2c(converted(x, bp.complex128 if x.dtype == bp.float64 else bp.complex64), dim, norm=NORMS[normalization], forward=True)
