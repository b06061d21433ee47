"""Layers that normalise: batch, layer, group, instance, RMS and local response norm."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import backplane as bp
from backplane import DType, Device, Tensor

from .. import functional as F
from .. import init
from ._layer_arguments import check_dtype, new_parameter
from ._module import Module

__all__ = [
    "BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "GroupNorm", "InstanceNorm1d", "InstanceNorm2d", "InstanceNorm3d", "LayerNorm",
    "LocalResponseNorm", "RMSNorm",
]  # fmt: skip


def _constant(shape, value, device, dtype):
    return init.constant_(new_parameter(shape, device, dtype), value)


class _RunningNorm(Module):
    """The parameters and running statistics of batch and instance norm."""

    ndims: ClassVar[tuple[int, ...]]

    def _make(self, num_features, eps, momentum, affine, track_running_stats, device, dtype):
        self.num_features, self.eps, self.momentum = num_features, eps, momentum
        self.affine, self.track_running_stats = affine, track_running_stats
        self.weight = _constant((num_features,), 1, device, dtype) if affine else None
        self.bias = _constant((num_features,), 0, device, dtype) if affine else None
        how = {"device": device, "dtype": bp.default_dtype() if dtype is None else dtype}
        self.register_buffer("running_mean", bp.zeros((num_features,), **how) if track_running_stats else None)
        self.register_buffer("running_var", bp.ones((num_features,), **how) if track_running_stats else None)
        self.register_buffer("num_batches_tracked", bp.zeros((), dtype=bp.int64, device=device) if track_running_stats else None)

    def reset_running_stats(self) -> None:
        """Mean 0, variance 1, no batches."""
        if self.track_running_stats:
            init.zeros_(self.running_mean)
            init.ones_(self.running_var)
            init.zeros_(self.num_batches_tracked)

    def reset_parameters(self) -> None:
        """weight 1, bias 0, and no running statistics."""
        self.reset_running_stats()
        if self.affine:
            init.ones_(self.weight)
            init.zeros_(self.bias)

    def _check(self, input, ndims):
        name = type(self).__name__
        if input.ndim not in ndims:
            raise bp.ShapeError(f"{name}: argument input: found {input.ndim} axes, expected {' or '.join(map(str, ndims))}")
        if self.weight is not None:
            check_dtype(self, self.weight, input)

    def extra_repr(self) -> str:
        return (f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.affine}, "
                f"track_running_stats={self.track_running_stats}")  # fmt: skip


class _BatchNorm(_RunningNorm):
    """input (n, num_features, *) normalised per feature, times weight, plus bias.

    In training, by the mean and variance of the batch, which the running ones then follow with momentum (None: their plain mean);
    in eval, by the running ones, unless track_running_stats is False.
    """

    def __init__(
        self, num_features: int, eps: float = 1e-5, momentum: float | None = 0.1, affine: bool = True, track_running_stats: bool = True,
        device: Device | str | None = None, dtype: DType | None = None,
    ) -> None:
        super().__init__()
        self._make(num_features, eps, momentum, affine, track_running_stats, device, dtype)

    def forward(self, input: Tensor) -> Tensor:
        self._check(input, self.ndims)
        return self._by_own_batch(input)

    def _by_own_batch(self, input):
        by_batch = self.training or self.running_mean is None
        follows = self.training and self.running_mean is not None
        mean, var = (self.running_mean, self.running_var) if follows or not by_batch else (None, None)
        momentum = 0.0 if self.momentum is None and not follows else self.momentum
        return F.batch_norm(
            input, mean, var, self.weight, self.bias, by_batch, momentum, self.eps, num_batches_tracked=self.num_batches_tracked if follows else None
        )


class BatchNorm1d(_BatchNorm):
    __doc__ = _BatchNorm.__doc__
    ndims = (2, 3)


class BatchNorm2d(_BatchNorm):
    __doc__ = _BatchNorm.__doc__
    ndims = (4,)


class BatchNorm3d(_BatchNorm):
    __doc__ = _BatchNorm.__doc__
    ndims = (5,)


class _InstanceNorm(_RunningNorm):
    """input (n, num_features, *spatial), or without n, normalised per example and feature.

    With track_running_stats, running statistics follow with momentum in training, and eval uses them. momentum None: they stay as
    they are, as in PyTorch.
    """

    def __init__(
        self, num_features: int, eps: float = 1e-5, momentum: float | None = 0.1, affine: bool = False, track_running_stats: bool = False,
        device: Device | str | None = None, dtype: DType | None = None,
    ) -> None:
        super().__init__()
        self._make(num_features, eps, momentum, affine, track_running_stats, device, dtype)

    def forward(self, input: Tensor) -> Tensor:
        self._check(input, self.ndims)
        single = input.ndim == self.ndims[0]
        x = bp.expand_dims(input, 0) if single else input
        by_input = self.training or not self.track_running_stats
        momentum = 0.0 if self.momentum is None else self.momentum
        y = F.instance_norm(x, self.running_mean, self.running_var, self.weight, self.bias, by_input, momentum, self.eps)
        return y[0] if single else y


class InstanceNorm1d(_InstanceNorm):
    __doc__ = _InstanceNorm.__doc__
    ndims = (2, 3)


class InstanceNorm2d(_InstanceNorm):
    __doc__ = _InstanceNorm.__doc__
    ndims = (3, 4)


class InstanceNorm3d(_InstanceNorm):
    __doc__ = _InstanceNorm.__doc__
    ndims = (4, 5)


class LayerNorm(Module):
    """input normalised over its last axes, of sizes normalized_shape, times weight, plus bias."""

    def __init__(
        self, normalized_shape: int | Sequence[int], eps: float = 1e-5, elementwise_affine: bool = True, bias: bool = True,
        device: Device | str | None = None, dtype: DType | None = None,
    ) -> None:
        super().__init__()
        self.normalized_shape = _shape(normalized_shape)
        self.eps, self.elementwise_affine = eps, elementwise_affine
        self.weight = _constant(self.normalized_shape, 1, device, dtype) if elementwise_affine else None
        self.bias = _constant(self.normalized_shape, 0, device, dtype) if elementwise_affine and bias else None

    def forward(self, input: Tensor) -> Tensor:
        if self.weight is not None:
            check_dtype(self, self.weight, input)
        return F.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}, bias={self.bias is not None}"


class RMSNorm(Module):
    """input divided by the root of its mean square over its last axes, of sizes normalized_shape, times weight. eps: by default the eps of the dtype."""

    def __init__(
        self, normalized_shape: int | Sequence[int], eps: float | None = None, elementwise_affine: bool = True,
        device: Device | str | None = None, dtype: DType | None = None,
    ) -> None:
        super().__init__()
        self.normalized_shape = _shape(normalized_shape)
        self.eps, self.elementwise_affine = eps, elementwise_affine
        self.weight = _constant(self.normalized_shape, 1, device, dtype) if elementwise_affine else None

    def forward(self, input: Tensor) -> Tensor:
        if self.weight is not None:
            check_dtype(self, self.weight, input)
        return F.rms_norm(input, self.normalized_shape, self.weight, self.eps)

    def extra_repr(self) -> str:
        return f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"


def _shape(normalized_shape):
    return (normalized_shape,) if hasattr(normalized_shape, "__index__") else tuple(normalized_shape)


class GroupNorm(Module):
    """input (n, num_channels, *) normalised per example over each of num_groups groups of channels, times weight, plus bias."""

    def __init__(
        self, num_groups: int, num_channels: int, eps: float = 1e-5, affine: bool = True, device: Device | str | None = None,
        dtype: DType | None = None,
    ) -> None:
        super().__init__()
        if num_groups < 1 or num_channels % num_groups:
            raise bp.ArgumentValueError(f"GroupNorm: argument num_groups: found {num_groups}, expected a divisor of {num_channels} channels")
        self.num_groups, self.num_channels, self.eps, self.affine = num_groups, num_channels, eps, affine
        self.weight = _constant((num_channels,), 1, device, dtype) if affine else None
        self.bias = _constant((num_channels,), 0, device, dtype) if affine else None

    def forward(self, input: Tensor) -> Tensor:
        if self.weight is not None:
            check_dtype(self, self.weight, input)
        return F.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return f"{self.num_groups}, {self.num_channels}, eps={self.eps}, affine={self.affine}"


class LocalResponseNorm(Module):
    """input (n, c, *) divided by (k + alpha · the mean square over size neighbouring channels) ** beta."""

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> None:
        super().__init__()
        self.size, self.alpha, self.beta, self.k = size, alpha, beta, k

    def forward(self, input: Tensor) -> Tensor:
        return F.local_response_norm(input, self.size, self.alpha, self.beta, self.k)

    def extra_repr(self) -> str:
        return f"{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"
