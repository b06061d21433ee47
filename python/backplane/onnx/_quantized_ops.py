"""Quantized numbers: between floats and integers, and products that compute in integers."""

import backplane as bp

from ._linear_ops import convolved
from ._shape_ops import whole_axis
from ._table import op, refuse
from ._types import FLOATS, cast_to, dtype_of, element_type_of, limits


def _along(row, x, axis, block_size):
    """A scale or a zero point in a shape that broadcasts with x: one number, one per index of an axis, or one per block."""
    if row.ndim == 0 or (row.ndim == 1 and row.shape[0] == 1):
        return bp.reshape(row, ())
    axis = whole_axis(axis, x.ndim)
    if row.ndim == 1:
        return bp.reshape(row, (-1,) + (1,) * (x.ndim - 1 - axis))
    if not block_size:
        refuse(f"found a scale with {row.ndim} axes and no block_size")
    wide = bp.repeat(row, block_size, axis=axis)
    return bp.slice(wide, [axis], [0], [x.shape[axis]], [1])


@op("QuantizeLinear", 10)
def quantize(node, x, scale, zero_point=None, *, axis=1, saturate=1, block_size=0, output_dtype=0, precision=0):
    to = output_dtype or (node.kinds[2] if len(node.kinds) > 2 and node.kinds[2] else element_type_of(zero_point.dtype) if zero_point is not None else 2)
    compute = dtype_of(precision) if precision else scale.dtype
    scale = bp.cast(_along(scale, x, axis, block_size), compute)
    y = bp.cast(x, compute) / scale
    zero = None if zero_point is None else _along(zero_point, x, axis, block_size)
    if to in FLOATS:
        wide = bp.cast(y, bp.float32) if y.dtype != bp.float64 else y
        return cast_to(wide if zero is None else wide + bp.cast(zero, wide.dtype), to, saturate)
    if y.dtype in (bp.float16, bp.bfloat16):
        y = bp.cast(y, bp.float32)
    return saturated(bp.rint(y), zero, to)


def saturated(y, zero, to):
    """Whole numbers plus a zero point, within the integer type."""
    low, high = limits(to)
    if zero is not None:
        y = y + bp.cast(zero, y.dtype)
    return bp.cast(bp.cast(bp.clip(y, low, high), bp.int32), dtype_of(to))


@op("DequantizeLinear", 10)
def dequantize(x, scale, zero_point=None, *, axis=1, block_size=0, output_dtype=0):
    zero = None if zero_point is None else _along(zero_point, x, axis, block_size)
    out = dtype_of(output_dtype) if output_dtype else scale.dtype
    if bp.isdtype(x.dtype, "integral"):
        wide = bp.cast(x, bp.int64 if x.dtype in (bp.int32, bp.uint32, bp.int64) else bp.int32)
        x = wide if zero is None else wide - bp.cast(zero, wide.dtype)
    elif zero is not None:
        x = x - bp.cast(zero, x.dtype)
    compute = bp.float32 if scale.dtype in (bp.float16, bp.bfloat16) else scale.dtype
    return bp.cast(bp.cast(x, compute) * bp.cast(_along(scale, x, axis, block_size), compute), out)


@op("DynamicQuantizeLinear", 11)
def dynamic_quantize(x):
    high = bp.maximum(bp.amax(x), bp.zeros((), dtype=x.dtype, device=x.device))
    low = bp.minimum(bp.amin(x), bp.zeros((), dtype=x.dtype, device=x.device))
    scale = (high - low) / 255
    safe = bp.where(scale == 0, bp.ones_like(scale), scale)
    zero = bp.cast(bp.cast(bp.clip(bp.rint(-low / safe), 0, 255), bp.int32), bp.uint8)
    return saturated(bp.rint(x / safe), zero, 2), scale, zero


def _minus_zero_point(x, zero, axis):
    """An int32 tensor: x less its zero point, one number or one per index of an axis."""
    x = bp.cast(x, bp.int32)
    if zero is None:
        return x
    zero = bp.cast(zero, bp.int32)
    if zero.ndim == 1 and zero.shape[0] != 1:
        zero = bp.reshape(zero, [-1 if i == axis else 1 for i in range(x.ndim)]) if x.ndim > 1 else zero
    elif zero.ndim <= 1:
        zero = bp.reshape(zero, ())
    return x - zero


def _product(a, b):
    """The product of small integers, exact: in float64 where the machine has no fast product of integers."""
    return bp.cast(bp.matmul(bp.cast(a, bp.float64), bp.cast(b, bp.float64)), bp.int32)


@op("MatMulInteger", 10)
def matmul_integer(a, b, a_zero=None, b_zero=None):
    return _product(_minus_zero_point(a, a_zero, a.ndim - 2), _minus_zero_point(b, b_zero, b.ndim - 1))


def _convolution(x, w, auto_pad, dilations, group, pads, strides):
    return bp.cast(convolved(bp.cast(x, bp.float64), bp.cast(w, bp.float64), None, auto_pad, dilations, group, pads, strides), bp.int32)


@op("ConvInteger", 10)
def convolution_integer(x, w, x_zero=None, w_zero=None, *, auto_pad="NOTSET", dilations=None, group=1, kernel_shape=None, pads=None, strides=None):
    x, w = _minus_zero_point(x, x_zero, 1), _minus_zero_point(w, w_zero, 0)
    return _convolution(x, w, auto_pad, dilations, group, pads, strides)


def _requantized(total, scale, zero, node, kind):
    to = node.kinds[kind] or element_type_of(zero.dtype)
    if to in FLOATS:
        return cast_to(bp.cast(total, bp.float32) * bp.cast(scale, bp.float32) + bp.cast(zero, bp.float32), to)
    return saturated(bp.rint(bp.cast(total, bp.float32) * bp.cast(scale, bp.float32)), bp.cast(zero, bp.float32), to)


@op("QLinearMatMul", 10)
def matmul_quantized(node, a, a_scale, a_zero, b, b_scale, b_zero, y_scale, y_zero):
    if node.kinds[0] in FLOATS or node.kinds[3] in FLOATS:
        total = bp.matmul(a - a_zero, b - b_zero)
    else:
        total = _product(_minus_zero_point(a, a_zero, a.ndim - 2), _minus_zero_point(b, b_zero, b.ndim - 1))
    rows = bp.reshape(a_scale, (-1, 1)) if a_scale.ndim == 1 and a_scale.shape[0] > 1 else a_scale
    scale = bp.cast(rows, bp.float32) * bp.cast(b_scale, bp.float32) / bp.cast(y_scale, bp.float32)
    return _requantized(total, scale, y_zero, node, 7)


@op("QLinearConv", 10)
def convolution_quantized(
    node, x, x_scale, x_zero, w, w_scale, w_zero, y_scale, y_zero, b=None, *,
    auto_pad="NOTSET", dilations=None, group=1, kernel_shape=None, pads=None, strides=None
):  # fmt: skip
    total = _convolution(_minus_zero_point(x, x_zero, 1), _minus_zero_point(w, w_zero, 0), auto_pad, dilations, group, pads, strides)
    per_channel = (-1,) + (1,) * (x.ndim - 2)
    if b is not None:
        total = total + bp.reshape(bp.cast(b, bp.int32), per_channel)
    scale = x_scale * w_scale / y_scale
    return _requantized(total, bp.reshape(scale, per_channel) if scale.ndim == 1 else scale, y_zero, node, 7)


