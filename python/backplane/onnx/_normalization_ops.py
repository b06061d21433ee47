"""Norms of batches, layers, groups and channels."""

import backplane as bp

from ._table import op, refuse
from ._types import dtype_of


def _by_channel(row, x):
    return bp.reshape(row, (-1,) + (1,) * (x.ndim - 2))


@op("BatchNormalization", 7)
def batch_norm_of_old_models(node, x, scale, bias, mean, var, *, epsilon=1e-5, momentum=0.9, spatial=1):
    if any(node.wants(i) for i in (1, 2, 3, 4)):
        refuse("training is not supported: the node asks for the running statistics")
    if not spatial:
        return (x - mean) / bp.sqrt(var + epsilon) * scale + bias
    return _inference(x, scale, bias, mean, var, epsilon)


@op("BatchNormalization", 14)
def batch_norm(node, x, scale, bias, mean, var, *, epsilon=1e-5, momentum=0.9, training_mode=0):
    if not training_mode:
        return _inference(x, scale, bias, mean, var, epsilon)
    axes = (0, *range(2, x.ndim))
    wide = bp.cast(x, bp.float32) if x.dtype in (bp.float16, bp.bfloat16) else x
    batch_mean, batch_var = bp.mean(wide, axis=axes), bp.var(wide, axis=axes)
    y = _inference(x, scale, bias, bp.cast(batch_mean, mean.dtype), bp.cast(batch_var, var.dtype), epsilon)
    running = [bp.cast(old * momentum + bp.cast(new, old.dtype) * (1 - momentum), old.dtype) for old, new in ((mean, batch_mean), (var, batch_var))]
    return y, *running


def _inference(x, scale, bias, mean, var, epsilon):
    if mean.dtype == x.dtype == scale.dtype and x.ndim > 1:
        return bp.batch_norm_inference(x, mean, var, scale, bias, eps=epsilon)
    dtype = bp.result_type(x, mean, scale)
    x, scale, bias, mean, var, out = *(bp.cast(t, dtype) for t in (x, scale, bias, mean, var)), x.dtype
    if x.ndim == 1:
        return bp.cast((x - mean) / bp.sqrt(var + epsilon) * scale + bias, out)
    return bp.cast(bp.batch_norm_inference(x, mean, var, scale, bias, eps=epsilon), out)


@op("InstanceNormalization", 6)
def instance_norm(x, scale, bias, *, epsilon=1e-5):
    axes = tuple(range(2, x.ndim))
    mean, var = bp.mean(x, axis=axes, keepdims=True), bp.var(x, axis=axes, keepdims=True)
    return (x - mean) / bp.sqrt(var + epsilon) * _by_channel(scale, x) + _by_channel(bias, x)


@op("LayerNormalization", 17)
def layer_norm(node, x, scale, bias=None, *, axis=-1, epsilon=1e-5, stash_type=1):
    axis += x.ndim if axis < 0 else 0
    axes, dtype = tuple(range(axis, x.ndim)), dtype_of(stash_type)
    plain = scale.shape == x.shape[axis:] and (bias is None or bias.shape == scale.shape) and x.dtype == dtype
    if plain and not node.wants(1) and not node.wants(2):
        y = bp.nn.functional.layer_norm(x, x.shape[axis:], scale, bias, epsilon)
        return y
    wide = bp.cast(x, dtype)
    mean, var = bp.mean(wide, axis=axes, keepdims=True), bp.var(wide, axis=axes, keepdims=True)
    factor = bp.reciprocal(bp.sqrt(var + epsilon))
    y = bp.cast((wide - mean) * factor, x.dtype) * scale
    return y if bias is None else y + bias, mean, factor


@op("RMSNormalization", 23)
def rms_norm(x, scale, *, axis=-1, epsilon=1e-5, stash_type=1):
    axis += x.ndim if axis < 0 else 0
    wide = bp.cast(x, dtype_of(stash_type))
    mean = bp.mean(wide * wide, axis=tuple(range(axis, x.ndim)), keepdims=True)
    return bp.cast(wide / bp.sqrt(mean + epsilon), x.dtype) * scale


@op("GroupNormalization", 18)
def group_norm_by_group(x, scale, bias, *, epsilon=1e-5, num_groups):
    each = x.shape[1] // num_groups
    return group_norm(x, bp.repeat(scale, each), bp.repeat(bias, each), epsilon=epsilon, num_groups=num_groups)


@op("GroupNormalization", 21)
def group_norm(x, scale, bias, *, epsilon=1e-5, num_groups, stash_type=1):
    wide = bp.cast(x, bp.float32) if x.dtype in (bp.float16, bp.bfloat16) else x
    y = bp.group_norm(wide, num_groups, bp.cast(scale, wide.dtype), bp.cast(bias, wide.dtype), eps=epsilon)
    return bp.cast(y, x.dtype)


@op("LRN", 1)
def local_response_norm(x, *, alpha=1e-4, beta=0.75, bias=1.0, size):
    """The mean over `size` channels beside each, fewer before than after it where size is even."""
    from ._shape_ops import pad_with

    before = (size - 1) // 2
    squares = pad_with(x * x, [(0, 0), (before, size - 1 - before)] + [(0, 0)] * (x.ndim - 2), 0)
    sums = bp.sum(bp.unfold(squares, 1, size), axis=-1)
    return x / bp.pow(sums * (alpha / size) + bias, beta)


@op("MeanVarianceNormalization", 9)
def mean_variance_norm(x, *, axes=(0, 2, 3)):
    axes = tuple(axes)
    mean = bp.mean(x, axis=axes, keepdims=True)
    return (x - mean) / (bp.std(x, axis=axes, keepdims=True) + 1e-9)


@op("LpNormalization", 1)
def lp_norm(x, *, axis=-1, p=2):
    size = bp.sum(bp.abs(x), axis=axis, keepdims=True) if p == 1 else bp.sqrt(bp.sum(x * x, axis=axis, keepdims=True))
    return bp.where(size == 0, bp.zeros_like(x), x / bp.where(size == 0, bp.ones_like(size), size))
