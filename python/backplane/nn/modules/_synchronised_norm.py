"""Batch norm over the batches of all ranks of a distributed program."""

from __future__ import annotations

from typing import Any

import backplane as bp
from backplane import DType, Device, Tensor

from .._normalization import follow_batch
from . import _module_tree
from ._module import Module
from ._normalization_layers import BatchNorm1d, BatchNorm2d, BatchNorm3d, _BatchNorm

__all__ = ["SyncBatchNorm"]


class SyncBatchNorm(_BatchNorm):
    """Batch norm of input (n, num_features, *) whose mean and variance in training are those of the batches of all ranks.

    process_group: a group of bp.distributed; None: all ranks. The ranks' batches may differ in size. Each rank calls the layer in the same
    order. Its gradients flow to the inputs of all ranks. On one rank, before bp.distributed.init() and in eval it is plain batch norm.
    Errors: DeviceError where a rank is lost or late.
    """

    def __init__(
        self, num_features: int, eps: float = 1e-5, momentum: float | None = 0.1, affine: bool = True, track_running_stats: bool = True,
        process_group: Any = None, device: Device | str | None = None, dtype: DType | None = None,
    ) -> None:
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype)
        self.process_group = process_group

    def forward(self, input: Tensor) -> Tensor:
        if input.ndim < 2:
            raise bp.ShapeError(f"SyncBatchNorm: argument input: found {input.ndim} axes, expected at least 2")
        self._check(input, (input.ndim,))
        return self._by_all_batches(input) if self._needs_others() else self._by_own_batch(input)

    def _needs_others(self):
        if not (self.training or self.running_mean is None) or not bp.distributed.is_initialized():
            return False
        return (bp.distributed.size() if self.process_group is None else self.process_group.size) > 1

    def _sum(self, x):
        """Over the ranks."""
        return bp.distributed.all_reduce(x, group=self.process_group)

    def _by_all_batches(self, input):
        channels, axes = input.shape[1], [0, *range(2, input.ndim)]
        x = bp.cast(input, bp.float32) if input.dtype in (bp.float16, bp.bfloat16) else input
        own = bp.full([1], input.size // max(channels, 1), dtype=x.dtype, device=x.device)
        total = self._sum(bp.concat([bp.sum(x, axis=axes), own]))
        shape = [1, channels, *[1] * (input.ndim - 2)]
        mean, count = total[:-1] / total[-1:], total[-1:].detach()
        apart = x - bp.reshape(mean, shape)
        var = self._sum(bp.sum(apart * apart, axis=axes)) / count
        y = apart * bp.reshape(bp.rsqrt(var + self.eps), shape)
        if self.weight is not None:
            y = y * bp.reshape(bp.cast(self.weight, y.dtype), shape) + bp.reshape(bp.cast(self.bias, y.dtype), shape)
        if self.training and self.running_mean is not None:
            follow_batch(self.running_mean, self.running_var, self.num_batches_tracked, mean, var, count, self.momentum)
        return bp.cast(y, input.dtype)

    @classmethod
    def convert_sync_batchnorm(cls, module: Module, process_group: Any = None) -> Module:
        """The module with a SyncBatchNorm in the place of each batch norm in it, with the same tensors. A batch norm itself is answered by
        a new layer, any other module changes in place."""
        if isinstance(module, (BatchNorm1d, BatchNorm2d, BatchNorm3d)):
            list(module.parameters())  # refuses a layer that has not seen an input
            made = cls(module.num_features, module.eps, module.momentum, module.affine, module.track_running_stats, process_group)
            for name in ("weight", "bias"):
                made.register_parameter(name, getattr(module, name))
            for name in ("running_mean", "running_var", "num_batches_tracked"):
                made.register_buffer(name, getattr(module, name))
            return made.train(module.training)
        for path, child in list(module.named_children()):
            converted = cls.convert_sync_batchnorm(child, process_group)
            if converted is not child:
                _module_tree.place(module, path, converted)
        return module
