"""Operators that the device composes of others in Python: those that change several arguments, and PyTorch's decompositions."""

from __future__ import annotations

import torch

from . import _encoder_layers, _fused_steps
from ._aten_rows import has_row

__all__ = ["register"]

_aten = torch.ops.aten
_library = None


def _batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps):
    y, mean, rstd, new_mean, new_var = _aten._native_batch_norm_legit_functional(input, weight, bias, running_mean, running_var, training, momentum, eps)
    if training:
        running_mean.copy_(new_mean)
        running_var.copy_(new_var)
    return y, mean, rstd


def native_batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps):
    """Updates the running statistics in training."""
    if running_mean is None:
        return _aten._native_batch_norm_legit.no_stats(input, weight, bias, training, momentum, eps)
    return _batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps)


def batch_norm_with_update(input, weight, bias, running_mean, running_var, momentum, eps):
    """Batch norm in training, with the reserve of cuDNN, which is empty."""
    return *_batch_norm(input, weight, bias, running_mean, running_var, True, momentum, eps), input.new_empty((0,), dtype=torch.uint8)


def native_dropout(input, p, train):
    """Draws from the generator of PyTorch's CPU what dropout draws there."""
    if train is False or p == 0:
        return input.clone(), torch.ones_like(input, dtype=torch.bool)
    kept = torch.empty_like(input, device="cpu").bernoulli_(1 - p).bool().to(input.device)
    return input * kept * (0.0 if p == 1 else 1 / (1 - p)), kept


def record_stream(self, stream):
    """Backplane orders the uses of memory on several streams itself."""


def non_finite_check_and_unscale(tensors, found_inf, inv_scale):
    """Multiplies by inv_scale; found_inf becomes 1 where an element is not finite."""
    for x in tensors:
        found_inf.copy_(torch.maximum(found_inf, (~torch.isfinite(x)).any().to(found_inf.dtype)))
        x.mul_(inv_scale.to(x.dtype))


def update_scale(scale, growth_tracker, found_inf, growth_factor, backoff_factor, growth_interval):
    """The scale of torch.amp.GradScaler after a step."""
    if found_inf.item():
        scale.mul_(backoff_factor)
        growth_tracker.zero_()
    elif growth_tracker.item() + 1 == growth_interval:
        grown = scale * growth_factor
        scale.copy_(torch.where(torch.isfinite(grown), grown, scale))
        growth_tracker.zero_()
    else:
        growth_tracker.add_(1)
    return scale


def efficient_zero_tensor(size, dtype=None, layout=None, device=None, pin_memory=None):
    """A tangent that is zero, which has memory on the device."""
    return torch.zeros(size, dtype=dtype, device=device)


def nested_tensor_from_mask_left_aligned(x, mask):
    """Where the mask is aligned, PyTorch's encoder would go on with a nested tensor, which the device does not have."""
    return False


def embedding_renorm(weight, indices, max_norm, norm_type):
    """Scales the rows that the indices name down to the norm max_norm."""
    rows = indices.reshape(-1)
    found = weight.index_select(0, rows)
    norms = torch.linalg.vector_norm(found, norm_type, dim=1, keepdim=True)
    return weight.index_copy_(0, rows, torch.where(norms > max_norm, found * (max_norm / (norms + 1e-7)), found))


_OPERATORS = {
    "_amp_foreach_non_finite_check_and_unscale_": non_finite_check_and_unscale,
    "_amp_update_scale_": update_scale,
    "_efficientzerotensor": efficient_zero_tensor,
    "_nested_tensor_from_mask_left_aligned": nested_tensor_from_mask_left_aligned,
    "embedding_renorm_": embedding_renorm,
    "native_batch_norm": native_batch_norm,
    "_native_batch_norm_legit": _batch_norm,
    "_batch_norm_with_update": batch_norm_with_update,
    "native_dropout": native_dropout,
    "record_stream": record_stream,
}


def register():
    """Registers them with PyTorch, for the process."""
    global _library
    _library = torch.library.Library("aten", "IMPL")
    for name, function in (_OPERATORS | _fused_steps.OPERATORS | _encoder_layers.OPERATORS).items():
        _library.impl(name, function, "PrivateUse1")
    for overload, rule in _decompositions():
        _library.impl(overload.name().removeprefix("aten::"), rule, "PrivateUse1")


def _decompositions():
    """PyTorch's rules for functional operators without a row, and without a kernel for every device."""
    for overload, rule in torch._decomp.core_aten_decompositions().items():
        if not isinstance(overload, torch._ops.OpOverload) or overload.namespace != "aten" or has_row(overload):
            continue
        name, schema = overload.name(), overload._schema
        if schema.is_mutable or any(argument.alias_info is not None for argument in schema.arguments) or torch.Tag.nondeterministic_seeded in overload.tags:
            continue
        if torch._C._dispatch_has_kernel_for_dispatch_key(name, "PrivateUse1"):
            continue
        if any(torch._C._dispatch_has_kernel_for_dispatch_key(name, key) for key in ("CompositeImplicitAutograd", "CompositeExplicitAutograd")):
            continue
        yield overload, rule
