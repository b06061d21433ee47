"""Convolutions over one, two and three axes, and the transposed ones."""

from collections.abc import Sequence

import backplane as bp
from backplane import Tensor

from ._arguments import sizes

__all__ = ["conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d"]


def _batched(function, input, weight, axes):
    """The input as (n, c, *spatial), and whether n had to be added."""
    if weight.ndim != axes + 2:
        raise bp.ShapeError(f"{function}: argument weight: found shape {tuple(weight.shape)}, expected {axes + 2} axes")
    if input.ndim not in (axes + 1, axes + 2):
        raise bp.ShapeError(f"{function}: argument input: found shape {tuple(input.shape)}, expected {axes + 1} or {axes + 2} axes")
    return (input, False) if input.ndim == axes + 2 else (bp.expand_dims(input, [0]), True)


def _finished(function, y, bias, unbatched):
    if bias is not None:
        if tuple(bias.shape) != (y.shape[1],):
            raise bp.ShapeError(f"{function}: argument bias: found shape {tuple(bias.shape)}, expected ({y.shape[1]},)")
        if bias.dtype is not y.dtype and bp.get_autocast_dtype(y.device) is not None:
            bias = bias.astype(y.dtype)
        y = bp.add(y, bp.reshape(bias, [-1] + [1] * (y.ndim - 2)))
    return bp.squeeze(y, [0]) if unbatched else y


def _of_one_dtype(x, weight, bias):
    """The operands in their common dtype, if the dtype of the bias is another one and no autocast decides."""
    if bias is None or bias.dtype is x.dtype or bp.get_autocast_dtype(x.device) is not None:
        return x, weight, bias
    dtype = bp.result_type(x, weight, bias)
    return tuple(v.astype(dtype) for v in (x, weight, bias))


def _same_padding(function, x, weight, stride, dilation):
    """The input with the zeros that 'same' asks for where they are not alike on both sides, and the padding that remains."""
    if any(step != 1 for step in stride):
        raise bp.ArgumentValueError(f"{function}: argument stride: found {stride} with padding 'same', expected 1")
    total = [d * (k - 1) for d, k in zip(dilation, weight.shape[2:])]
    if any(t % 2 for t in total):
        x = bp.ops.bp.pad(x, [0] * x.ndim, [0, 0] + [t % 2 for t in total])
    return x, [t // 2 for t in total]


def _conv(function, input, weight, bias, stride, padding, dilation, groups, axes):
    input, weight, bias = _of_one_dtype(input, weight, bias)
    x, unbatched = _batched(function, input, weight, axes)
    stride, dilation = sizes(function, "stride", stride, axes), sizes(function, "dilation", dilation, axes)
    if isinstance(padding, str):
        if padding not in ("same", "valid"):
            raise bp.ArgumentValueError(f"{function}: argument padding: found {padding!r}, expected integers, 'same' or 'valid'")
        x, padding = _same_padding(function, x, weight, stride, dilation) if padding == "same" else (x, [0] * axes)
    padding = sizes(function, "padding", padding, axes)
    op = bp.conv2d if axes == 2 else bp.conv
    y = op(x, weight, stride=stride, padding=padding, dilation=dilation, groups=groups)
    return _finished(function, y, bias, unbatched)


def _conv_transpose(function, input, weight, bias, stride, padding, output_padding, groups, dilation, axes):
    input, weight, bias = _of_one_dtype(input, weight, bias)
    x, unbatched = _batched(function, input, weight, axes)
    names = {"stride": stride, "padding": padding, "output_padding": output_padding, "dilation": dilation}
    lists = {name: sizes(function, name, value, axes) for name, value in names.items()}
    for more, step, apart in zip(lists["output_padding"], lists["stride"], lists["dilation"]):
        if more >= max(step, apart):
            raise bp.ArgumentValueError(
                f"{function}: argument output_padding: found {more} with stride {step} and dilation {apart}, expected less than one of them"
            )
    return _finished(function, bp.conv_transpose(x, weight, groups=groups, **lists), bias, unbatched)


def conv1d(
    input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: int | Sequence[int] = 1,
    padding: int | Sequence[int] | str = 0, dilation: int | Sequence[int] = 1, groups: int = 1
) -> Tensor:
    """Cross-correlates input (n, c, l) or (c, l) with weight (o, c / groups, k); padding may be 'same' or 'valid'."""
    return _conv("conv1d", input, weight, bias, stride, padding, dilation, groups, 1)


def conv2d(
    input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: int | Sequence[int] = 1,
    padding: int | Sequence[int] | str = 0, dilation: int | Sequence[int] = 1, groups: int = 1
) -> Tensor:
    """Cross-correlates input (n, c, h, w) or (c, h, w) with weight (o, c / groups, kh, kw); padding may be 'same' or 'valid'."""
    return _conv("conv2d", input, weight, bias, stride, padding, dilation, groups, 2)


def conv3d(
    input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: int | Sequence[int] = 1,
    padding: int | Sequence[int] | str = 0, dilation: int | Sequence[int] = 1, groups: int = 1
) -> Tensor:
    """Cross-correlates input (n, c, d, h, w) or (c, d, h, w) with weight (o, c / groups, kd, kh, kw); padding may be 'same' or 'valid'."""
    return _conv("conv3d", input, weight, bias, stride, padding, dilation, groups, 3)


def conv_transpose1d(
    input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: int | Sequence[int] = 1, padding: int | Sequence[int] = 0,
    output_padding: int | Sequence[int] = 0, groups: int = 1, dilation: int | Sequence[int] = 1
) -> Tensor:
    """The adjoint of conv1d with respect to its input, applied to input (n, c, l) or (c, l), with weight (c, o / groups, k)."""
    return _conv_transpose("conv_transpose1d", input, weight, bias, stride, padding, output_padding, groups, dilation, 1)


def conv_transpose2d(
    input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: int | Sequence[int] = 1, padding: int | Sequence[int] = 0,
    output_padding: int | Sequence[int] = 0, groups: int = 1, dilation: int | Sequence[int] = 1
) -> Tensor:
    """The adjoint of conv2d with respect to its input, applied to input (n, c, h, w) or (c, h, w), with weight (c, o / groups, kh, kw)."""
    return _conv_transpose("conv_transpose2d", input, weight, bias, stride, padding, output_padding, groups, dilation, 2)


def conv_transpose3d(
    input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: int | Sequence[int] = 1, padding: int | Sequence[int] = 0,
    output_padding: int | Sequence[int] = 0, groups: int = 1, dilation: int | Sequence[int] = 1
) -> Tensor:
    """The adjoint of conv3d with respect to its input, applied to input (n, c, d, h, w) or (c, d, h, w), with weight (c, o / groups, kd, kh, kw)."""
    return _conv_transpose("conv_transpose3d", input, weight, bias, stride, padding, output_padding, groups, dilation, 3)
