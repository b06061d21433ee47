"""Convolutions of one to three axes, their transposes, and Unfold and Fold."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import ClassVar

import backplane as bp
from backplane import DType, Device, Tensor

from .. import functional as F
from .._arguments import sizes
from ._layer_arguments import check_dtype, fan_bound, uniform_parameter
from ._module import Module

__all__ = ["Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d", "Fold", "Unfold"]

_MODES = {"zeros": None, "reflect": "reflect", "replicate": "replicate", "circular": "circular"}


class _Convolution(Module):
    axes: ClassVar[int]

    def _set(self, in_channels, out_channels, kernel_size, stride, padding, dilation, groups, padding_mode):
        name = type(self).__name__
        if groups < 1 or in_channels % groups or out_channels % groups:
            raise bp.ArgumentValueError(f"{name}: argument groups: found {groups}, expected a divisor of {in_channels} and {out_channels} channels")
        if padding_mode not in _MODES:
            raise bp.ArgumentValueError(f"{name}: argument padding_mode: found {padding_mode!r}, expected one of {', '.join(_MODES)}")
        self.in_channels, self.out_channels = in_channels, out_channels
        self.kernel_size = tuple(sizes(name, "kernel_size", kernel_size, self.axes))
        self.stride = tuple(sizes(name, "stride", stride, self.axes))
        self.padding = padding if isinstance(padding, str) else tuple(sizes(name, "padding", padding, self.axes))
        self.dilation = tuple(sizes(name, "dilation", dilation, self.axes))
        self.groups, self.padding_mode = groups, padding_mode

    def _make(self, shape, bias, device, dtype):
        bound = fan_bound(shape[1] * math.prod(self.kernel_size))
        self.weight = uniform_parameter((*shape, *self.kernel_size), bound, device, dtype)
        self.bias = uniform_parameter((self.out_channels,), bound, device, dtype) if bias else None

    def extra_repr(self) -> str:
        text = f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}"
        if self.padding != (0,) * self.axes:
            text += f", padding={self.padding!r}"
        if self.dilation != (1,) * self.axes:
            text += f", dilation={self.dilation}"
        text += f", groups={self.groups}" if self.groups != 1 else ""
        text += ", bias=False" if self.bias is None else ""
        return text + (f", padding_mode={self.padding_mode!r}" if self.padding_mode != "zeros" else "")


class _Conv(_Convolution):
    """The convolution of input (n, in_channels, *spatial), or without n: output (n, out_channels, *spatial).

    weight (out_channels, in_channels / groups, *kernel_size) and bias begin uniform within ±1 / sqrt(inputs of an element).
    padding: sizes, 'same' or 'valid'. padding_mode: 'zeros', 'reflect', 'replicate' or 'circular'.
    """

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: int | Sequence[int], stride: int | Sequence[int] = 1,
        padding: int | Sequence[int] | str = 0, dilation: int | Sequence[int] = 1, groups: int = 1, bias: bool = True,
        padding_mode: str = "zeros", device: Device | str | None = None, dtype: DType | None = None,
    ) -> None:
        super().__init__()
        self._set(in_channels, out_channels, kernel_size, stride, padding, dilation, groups, padding_mode)
        self._check_padding()
        self._make((out_channels, in_channels // groups), bias, device, dtype)

    def _check_padding(self):
        if isinstance(self.padding, str) and self.padding not in ("same", "valid"):
            expected = "sizes, 'same' or 'valid'"
        elif self.padding == "same" and any(stride != 1 for stride in self.stride):
            expected = "sizes, since the stride is not 1"
        else:
            return
        raise bp.ArgumentValueError(f"{type(self).__name__}: argument padding: found {self.padding!r}, expected {expected}")

    def forward(self, input: Tensor) -> Tensor:
        check_dtype(self, self.weight, input)
        function, padding = getattr(F, f"conv{self.axes}d"), self.padding
        if self.padding_mode != "zeros":
            input, padding = F.pad(input, self._margins(), mode=self.padding_mode), 0
        return function(input, self.weight, self.bias, self.stride, padding, self.dilation, self.groups)

    def _margins(self):
        """The padding as F.pad takes it: before and after each axis, the last axis first."""
        if self.padding == "valid":
            return [0] * (2 * self.axes)
        if self.padding == "same":
            totals = [d * (k - 1) for d, k in zip(self.dilation, self.kernel_size)]
            return [side for total in reversed(totals) for side in (total // 2, total - total // 2)]
        return [side for size in reversed(self.padding) for side in (size, size)]


class Conv1d(_Conv):
    __doc__ = _Conv.__doc__
    axes = 1


class Conv2d(_Conv):
    __doc__ = _Conv.__doc__
    axes = 2


class Conv3d(_Conv):
    __doc__ = _Conv.__doc__
    axes = 3


class _ConvTranspose(_Convolution):
    """The transposed convolution of input (n, in_channels, *spatial), or without n: output (n, out_channels, *spatial).

    weight (in_channels, out_channels / groups, *kernel_size) and bias begin uniform. output_padding: sizes that are added at one
    side of the output. output_size of a call chooses among the sizes that a stride above 1 leaves open.
    """

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: int | Sequence[int], stride: int | Sequence[int] = 1,
        padding: int | Sequence[int] = 0, output_padding: int | Sequence[int] = 0, groups: int = 1, bias: bool = True,
        dilation: int | Sequence[int] = 1, padding_mode: str = "zeros", device: Device | str | None = None, dtype: DType | None = None,
    ) -> None:
        super().__init__()
        if padding_mode != "zeros":
            raise bp.ArgumentValueError(f"{type(self).__name__}: argument padding_mode: found {padding_mode!r}, expected 'zeros'")
        self._set(in_channels, out_channels, kernel_size, stride, padding, dilation, groups, padding_mode)
        self.output_padding = tuple(sizes(type(self).__name__, "output_padding", output_padding, self.axes))
        self._make((in_channels, out_channels // groups), bias, device, dtype)

    def forward(self, input: Tensor, output_size: Sequence[int] | None = None) -> Tensor:
        check_dtype(self, self.weight, input)
        extra = self.output_padding if output_size is None else self._extra(input, output_size)
        function = getattr(F, f"conv_transpose{self.axes}d")
        return function(input, self.weight, self.bias, self.stride, self.padding, extra, self.groups, self.dilation)

    def _extra(self, input, output_size):
        wanted = list(output_size)[-self.axes :]
        lengths = input.shape[-self.axes :]
        least = [(n - 1) * s - 2 * p + d * (k - 1) + 1
                 for n, s, p, d, k in zip(lengths, self.stride, self.padding, self.dilation, self.kernel_size)]  # fmt: skip
        if len(wanted) != self.axes or not all(low <= size < low + s for low, size, s in zip(least, wanted, self.stride)):
            raise bp.ArgumentValueError(
                f"{type(self).__name__}: argument output_size: found {wanted}, expected from {least} up to less than the stride more"
            )
        return [size - low for low, size in zip(least, wanted)]


class ConvTranspose1d(_ConvTranspose):
    __doc__ = _ConvTranspose.__doc__
    axes = 1


class ConvTranspose2d(_ConvTranspose):
    __doc__ = _ConvTranspose.__doc__
    axes = 2


class ConvTranspose3d(_ConvTranspose):
    __doc__ = _ConvTranspose.__doc__
    axes = 3


class Unfold(Module):
    """The blocks of images (n, c, h, w) as columns: (n, c · block elements, blocks)."""

    def __init__(self, kernel_size: int | Sequence[int], dilation: int | Sequence[int] = 1, padding: int | Sequence[int] = 0, stride: int | Sequence[int] = 1) -> None:
        super().__init__()
        self.kernel_size, self.dilation, self.padding, self.stride = kernel_size, dilation, padding, stride

    def forward(self, input: Tensor) -> Tensor:
        return F.unfold(input, self.kernel_size, self.dilation, self.padding, self.stride)


class Fold(Module):
    """Images (n, c, *output_size) as sums of blocks, given as Unfold gives them."""

    def __init__(
        self, output_size: int | Sequence[int], kernel_size: int | Sequence[int], dilation: int | Sequence[int] = 1,
        padding: int | Sequence[int] = 0, stride: int | Sequence[int] = 1,
    ) -> None:
        super().__init__()
        self.output_size, self.kernel_size = output_size, kernel_size
        self.dilation, self.padding, self.stride = dilation, padding, stride

    def forward(self, input: Tensor) -> Tensor:
        return F.fold(input, self.output_size, self.kernel_size, self.dilation, self.padding, self.stride)
