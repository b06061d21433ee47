"""What rows of registry.txt call: Backplane's meaning of an op over PyTorch's functions."""

from __future__ import annotations

import torch

import backplane as bp

from ._tensors import dtype_of, torch_dtype_of

F = torch.nn.functional

__all__ = [
    "all_axes", "at_axis", "attention_with_lse", "batch_norm", "cast", "expand_dims", "from_start", "iota", "layer_norm", "of_dtype", "over", "pad", "positions", "product", "put_along_axis",
    "rms_norm", "select_put", "slice_put", "sliced", "take", "tensors", "total", "unfold",
]  # fmt: skip


def common_dtype(tensors):
    """The dtype in which Backplane compares these tensors."""
    found = None
    for x in tensors:
        found = x.dtype if found is None or found == x.dtype else torch_dtype_of(bp.result_type(dtype_of(found), dtype_of(x.dtype)))
    return found


def of_dtype(dtype, *values):
    """Tensors and numbers as tensors of one dtype; a single one for one value."""
    found = tuple(_of_dtype(x, dtype) for x in values)
    return found[0] if len(found) == 1 else found


def _of_dtype(x, dtype):
    if not isinstance(x, torch.Tensor):
        return torch.scalar_tensor(x, dtype=dtype)
    return x if dtype is None or x.dtype == dtype else x.to(dtype)


def tensors(result, *values):
    """The operands with numbers as tensors of the result's dtype; None stays."""
    return tuple(x if x is None or isinstance(x, torch.Tensor) else torch.scalar_tensor(x, dtype=result.dtype) for x in values)


def cast(x, dtype):
    """x in another dtype: complex to real takes the real part."""
    return (torch.real(x) if x.is_complex() and not dtype.is_complex and dtype != torch.bool else x).to(dtype)


def iota(n, start, step, dtype):
    """The n values start + i * step."""
    wide = dtype if dtype in (torch.float32, torch.float64, torch.complex64, torch.complex128) else torch.float32 if dtype.is_floating_point else torch.int64
    places = torch.arange(n).to(wide)
    places = places if step == 1 else places * step
    return (places if start == 0 else places + start).to(dtype)


# ---- reductions ---------------------------------------------------------------------------------------------------


def all_axes(x, axis):
    """The axes of a reduction; None: all."""
    return list(range(x.ndim)) if axis is None else list(axis)


def over(function, x, axis, keepdims, **options):
    """A reduction over axes. PyTorch takes an empty list for all axes, Backplane for none."""
    axis = all_axes(x, axis)
    if axis or x.ndim == 0:
        return function(x, axis, keepdim=keepdims, **options)
    return function(x.unsqueeze(-1), [-1], keepdim=False, **options)


def total(function, x, axis, keepdims, dtype):
    """A sum in the dtype of the result."""
    return over(function, x, axis, keepdims, dtype=dtype)


def product(x, axis, keepdims, dtype):
    """PyTorch multiplies along one axis at a time."""
    x = x.to(dtype)
    for a in sorted((a % x.ndim for a in all_axes(x, axis)), reverse=True):
        x = torch.prod(x, a, keepdim=keepdims, dtype=dtype)
    return x


# ---- layers -------------------------------------------------------------------------------------------------------


def _trailing(x, axis, *parameters):
    """The shape of the last axes, if the reduction is over these and each parameter has this shape; else None."""
    count = len(axis)
    shape = list(x.shape[x.ndim - count :])
    last = sorted(a % x.ndim for a in axis) == list(range(x.ndim - count, x.ndim))
    return shape if count and last and all(p is None or list(p.shape) == shape for p in parameters) else None


def _scaled(x, weight, bias):
    x = x if weight is None else x * weight
    return x if bias is None else x + bias


def layer_norm(x, weight, bias, axis, eps):
    shape = _trailing(x, axis, weight, bias)
    if shape is not None:
        return F.layer_norm(x, shape, weight, bias, eps)
    variance, mean = torch.var_mean(x, list(axis), correction=0, keepdim=True)
    return _scaled((x - mean) * torch.rsqrt(variance + eps), weight, bias)


def rms_norm(x, weight, axis, eps):
    shape = _trailing(x, axis, weight)
    if shape is not None:
        return F.rms_norm(x, shape, weight, eps)
    return _scaled(x * torch.rsqrt(torch.mean(x * x, list(axis), keepdim=True) + eps), weight, None)


def batch_norm(x, weight, bias, eps):
    """(the result, the mean, the variance) of each channel, by the statistics of x."""
    variance, mean = torch.var_mean(x, [a for a in range(x.ndim) if a != 1], correction=0)
    return F.batch_norm(x, None, None, weight, bias, True, 0.0, eps), mean, variance


def attention_with_lse(query, key, value, mask, causal, scale, with_lse):
    """(attention, the logarithm of the sum of the exponentials of its scores, or None)."""
    seen = torch.ones((query.shape[-2], key.shape[-2]), dtype=torch.bool).tril() if causal and (with_lse or mask is not None) else None
    if mask is not None:  # PyTorch does not broadcast the query to the mask
        lead = torch.broadcast_shapes(query.shape[:-2], mask.shape[:-2])
        query = query if lead == query.shape[:-2] else torch.broadcast_to(query, (*lead, *query.shape[-2:]))
    lse = torch.logsumexp(_scores(query, key, mask, seen, scale), -1) if with_lse else None
    if mask is not None and mask.dtype != torch.bool:
        mask = mask.to(query.dtype)
    if mask is not None and causal:
        mask, causal = seen & mask if mask.dtype == torch.bool else torch.where(seen, mask, -torch.inf), False
    found = F.scaled_dot_product_attention(query, key, value, mask, is_causal=causal, scale=scale)
    return found, lse if lse is None else torch.broadcast_to(lse, found.shape[:-1])


def _scores(query, key, mask, seen, scale):
    scores = query @ key.mT * (max(query.shape[-1], 1) ** -0.5 if scale is None else scale)
    if seen is not None:
        scores = torch.where(seen, scores, -torch.inf)
    if mask is None:
        return scores
    return torch.where(mask, scores, -torch.inf) if mask.dtype == torch.bool else scores + mask.to(scores.dtype)


# ---- shapes and indices -------------------------------------------------------------------------------------------


def expand_dims(x, axes):
    count = x.ndim + len(axes)
    for a in sorted(a % count for a in axes):
        x = x.unsqueeze(a)
    return x


def _range(size, start, stop, step):
    """(start, stop, step) of Python's slice as PyTorch takes it, for a positive step."""
    return (0 if start is None else start), (9223372036854775807 if stop is None else stop), step


def _positions(size, start, stop, step):
    """The positions of a slice along an axis, for a negative step."""
    return torch.tensor(list(range(size))[slice(start, stop, step)], dtype=torch.int64)


def sliced(x, axes, starts, stops, steps):
    for a, start, stop, step in zip(axes, starts, stops, steps):
        if step > 0:
            x = torch.ops.aten.slice(x, a, *_range(x.shape[a], start, stop, step))
        elif start is None and stop is None and step == -1:
            x = torch.flip(x, [a])
        else:
            x = torch.index_select(x, a, _positions(x.shape[a], start, stop, step))
    return x


def slice_put(x, value, axes, starts, stops, steps):
    """x with a value in place of a slice of it."""
    if not axes:
        return torch.broadcast_to(value, x.shape)
    a, start, stop, step = axes[0], starts[0], stops[0], steps[0]
    inner = sliced(x, axes[:1], starts[:1], stops[:1], steps[:1])
    part = slice_put(inner, value, axes[1:], starts[1:], stops[1:], steps[1:])
    if step > 0:
        return torch.slice_scatter(x, part, a, *_range(x.shape[a], start, stop, step))
    if start is None and stop is None and step == -1:
        return torch.flip(part, [a])
    return torch.index_copy(x, a, _positions(x.shape[a], start, stop, step), part)


def select_put(x, value, axis, index):
    part = torch.select(x, axis, index)
    return torch.select_scatter(x, torch.broadcast_to(value, part.shape), axis, index)


def unfold(x, axis, size, step, dilation):
    """Windows along an axis, whose elements become the last axis."""
    if dilation == 1:
        return x.unfold(axis, size, step)
    axis = axis % x.ndim
    count = (x.shape[axis] - (size - 1) * dilation - 1) // step + 1
    places = (torch.arange(count) * step).unsqueeze(1) + torch.arange(size) * dilation
    return torch.movedim(torch.ops.aten.index(x, [None] * axis + [places]), axis + 1, -1)


def at_axis(x, indices, axis):
    """The indices of aten.index for an index along one axis."""
    return [None] * (axis % x.ndim) + [indices.to(torch.int64)]


def positions(indices):
    """Index tensors in the dtype that PyTorch takes for positions (it reads uint8 as a mask)."""
    return [index if index is None or index.dtype == torch.bool else index.to(torch.int64) for index in indices]


def take(x, indices, axis):
    if axis is None:
        x, axis = x.reshape(-1), 0
    return torch.ops.aten.index(x, at_axis(x, indices, axis))


def from_start(indices, size):
    """Indices of take_along_axis counted from the start, in the dtype that PyTorch takes."""
    indices = indices.to(torch.int64)
    return torch.where(indices < 0, indices + size, indices)


def put_along_axis(x, indices, values, axis, accumulate):
    indices = from_start(indices, x.shape[axis])
    shape = [indices.shape[a] if a == axis % x.ndim else size for a, size in enumerate(x.shape)]
    indices, values = torch.broadcast_to(indices, shape), torch.broadcast_to(values, shape)
    return torch.scatter_add(x, axis, indices, values) if accumulate else torch.scatter(x, axis, indices, values)


def pad(x, before, after, value):
    sizes = [size for pair in zip(reversed(before), reversed(after)) for size in pair]
    return F.pad(x, sizes, value=value) if sizes else torch.clone(x)
