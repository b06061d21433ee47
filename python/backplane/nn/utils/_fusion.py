"""Batch norm as a part of the layer before it: after training, both are one linear function."""

from __future__ import annotations

import copy
from typing import Any

import backplane as bp
from backplane import Tensor

from .._parameter import Parameter

__all__ = ["fuse_conv_bn_eval", "fuse_conv_bn_weights", "fuse_linear_bn_eval", "fuse_linear_bn_weights"]


def _fused(weight, bias, mean, var, eps, scale, shift, axis):
    """The weight and the bias of one layer; axis: of the weight, the outputs."""
    share = (1 if scale is None else scale) / bp.sqrt(var + eps)
    shape = [1] * weight.ndim
    shape[axis] = -1
    new_weight = (weight * share.reshape(shape)).astype(weight.dtype)
    new_bias = ((0 if bias is None else bias) - mean) * share + (0 if shift is None else shift)
    dtype = weight.dtype if bias is None else bias.dtype
    trained = [weight.requires_grad, weight.requires_grad if bias is None else bias.requires_grad]
    made = new_weight, bp.broadcast_to(new_bias, (weight.shape[axis],)).astype(dtype)
    return tuple(Parameter(bp.copy(x.detach()), requires_grad=flag) for x, flag in zip(made, trained))


def fuse_conv_bn_weights(
    conv_w: Tensor, conv_b: Tensor | None, bn_rm: Tensor, bn_rv: Tensor, bn_eps: float, bn_w: Tensor | None, bn_b: Tensor | None, transpose: bool = False
) -> tuple[Tensor, Tensor]:
    """(weight, bias) of a convolution that includes the batch norm after it, of the running mean and variance. transpose: of a transposed convolution."""
    return _fused(conv_w, conv_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b, 1 if transpose else 0)


def fuse_linear_bn_weights(
    linear_w: Tensor, linear_b: Tensor | None, bn_rm: Tensor, bn_rv: Tensor, bn_eps: float, bn_w: Tensor | None, bn_b: Tensor | None
) -> tuple[Tensor, Tensor]:
    """(weight, bias) of a linear layer that includes the batch norm after it, of the running mean and variance."""
    return _fused(linear_w, linear_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b, 0)


def _layer(name, layer, norm, axis):
    if layer.training or norm.training:
        raise bp.ArgumentValueError(f"{name}: found a layer in training mode, expected both in eval mode. Fix: call eval() first")
    if norm.running_mean is None:
        raise bp.ArgumentValueError(f"{name}: found a batch norm without running statistics, expected track_running_stats=True")
    if norm.num_features not in (1, layer.weight.shape[axis]):
        raise bp.ShapeError(f"{name}: found a batch norm of {norm.num_features} features after a layer of {layer.weight.shape[axis]} outputs, expected equal numbers")
    if getattr(layer, "groups", 1) != 1 and axis == 1:
        raise bp.ArgumentValueError(f"{name}: found a transposed convolution of {layer.groups} groups, expected one group")
    made = copy.deepcopy(layer)
    made.weight, made.bias = _fused(layer.weight, layer.bias, norm.running_mean, norm.running_var, norm.eps, norm.weight, norm.bias, axis)
    return made


def fuse_conv_bn_eval(conv: Any, bn: Any, transpose: bool = False) -> Any:
    """A new convolution that computes bn(conv(x)), of layers in eval mode. transpose: conv is a transposed convolution.

    Errors: ArgumentValueError for a layer in training mode, a batch norm without running statistics, and transposed convolutions with groups;
    ShapeError for another number of features.
    """
    return _layer("fuse_conv_bn_eval", conv, bn, 1 if transpose else 0)


def fuse_linear_bn_eval(linear: Any, bn: Any) -> Any:
    """A new linear layer that computes bn(linear(x)) for x (n, in_features), of layers in eval mode. Errors: as fuse_conv_bn_eval."""
    return _layer("fuse_linear_bn_eval", linear, bn, 0)
