"""Quantized ops of com.microsoft: elementwise ops and products between bytes, and weights in blocks of few bits."""

import backplane as bp

from ._elementwise_ops import is_floating, softmax, softmax_of_matrix
from ._index_ops import gather
from ._microsoft_ops import packed_attention
from ._pooling_ops import average_pool
from ._quantized_ops import dequantize, dynamic_quantize, matmul_integer, quantize, saturated
from ._table import MICROSOFT, op, refuse
from ._types import element_type_of

op("QuantizeLinear", domain=MICROSOFT)(quantize)
op("DequantizeLinear", domain=MICROSOFT)(dequantize)


@op("DynamicQuantizeMatMul", domain=MICROSOFT)
def dynamic_quantized_matmul(a, b, b_scale, b_zero=None, bias=None):
    quantized, scale, zero = dynamic_quantize(a)
    y = bp.cast(matmul_integer(quantized, b, zero, b_zero), bp.float32) * (scale * b_scale)
    return y if bias is None else y + bias


@op("MatMulIntegerToFloat", domain=MICROSOFT)
def matmul_integer_to_float(a, b, a_scale, b_scale, a_zero=None, b_zero=None, bias=None):
    y = bp.cast(matmul_integer(a, b, a_zero, b_zero), bp.float32) * (a_scale * b_scale)
    return y if bias is None else y + bias


def _whole_bytes(x, bits):
    """Numbers of 4 bits, two in a byte along the last axis, the low ones first; bytes stay."""
    if bits == 8:
        return x
    return bp.reshape(bp.stack([bp.bitwise_and(x, 15), bp.bitwise_right_shift(x, 4)], axis=-1), (*x.shape[:-1], 2 * x.shape[-1]))


@op("MatMulNBits", domain=MICROSOFT)
def matmul_of_packed_weights(a, b, scales, zero_points=None, g_idx=None, bias=None, *, K, N, bits=4, block_size, accuracy_level=0, weight_prepacked=0):
    """Weights in 4 or 8 bits, in blocks along the rows of a (N, K) matrix."""
    if g_idx is not None or weight_prepacked or bits not in (4, 8):
        refuse("g_idx, prepacked weights and bits other than 4 and 8 are not supported")
    blocks = (K + block_size - 1) // block_size

    def unpacked(x, count):
        return bp.slice(_whole_bytes(bp.reshape(x, (N, -1)), bits), [1], [0], [count], [1])

    w = bp.reshape(bp.cast(unpacked(b, blocks * block_size), a.dtype), (N, blocks, block_size))
    if zero_points is None:
        zero = float(1 << bits - 1)
    elif is_floating(zero_points):
        zero = bp.reshape(zero_points, (N, blocks, 1))
    else:
        zero = bp.reshape(bp.cast(unpacked(zero_points, blocks), a.dtype), (N, blocks, 1))
    w = bp.reshape((w - zero) * bp.reshape(scales, (N, blocks, 1)), (N, blocks * block_size))
    y = bp.matmul(a, bp.matrix_transpose(bp.slice(w, [1], [0], [K], [1])))
    return y if bias is None else y + bias


@op("GatherBlockQuantized", domain=MICROSOFT)
def gather_of_packed_rows(node, data, indices, scales, zero_points=None, *, bits=4, block_size=128, gather_axis=0, quantize_axis=1):
    if data.dtype != bp.uint8 or bits not in (4, 8) or gather_axis != 0 or quantize_axis not in (-1, data.ndim - 1):
        refuse("data other than uint8, gather_axis other than 0 and quantize_axis other than the last are not supported")
    rows = bp.cast(_whole_bytes(gather(data, indices), bits), scales.dtype)
    zero = float(1 << bits - 1)
    if zero_points is not None:
        zeros = _whole_bytes(gather(zero_points, indices), bits)
        zero = _per_number(bp.cast(zeros, scales.dtype), rows.shape[-1], block_size)
    return (rows - zero) * _per_number(gather(scales, indices), rows.shape[-1], block_size)


def _per_number(x, count, block_size):
    return bp.repeat(x, block_size, axis=-1)[..., :count]


def _requantized(y, scale, zero):
    to = 2 if zero is None else element_type_of(zero.dtype)
    return saturated(bp.rint(y / scale), zero, to)


def _elementwise_quantized(name, function):
    @op(name, domain=MICROSOFT)
    def binary(a, a_scale, a_zero, b, b_scale, b_zero, c_scale, c_zero=None):
        return _requantized(function(dequantize(a, a_scale, a_zero), dequantize(b, b_scale, b_zero)), c_scale, c_zero)


_elementwise_quantized("QLinearAdd", lambda a, b: a + b)
_elementwise_quantized("QLinearMul", lambda a, b: a * b)


@op("QLinearSigmoid", domain=MICROSOFT)
def sigmoid_quantized(x, x_scale, x_zero, y_scale, y_zero=None):
    return _requantized(bp.sigmoid(dequantize(x, x_scale, x_zero)), y_scale, y_zero)


@op("QLinearLeakyRelu", domain=MICROSOFT)
def leaky_relu_quantized(x, x_scale, x_zero, y_scale, y_zero=None, *, alpha=0.01):
    return _requantized(bp.leaky_relu(dequantize(x, x_scale, x_zero), negative_slope=alpha), y_scale, y_zero)


@op("QLinearSoftmax", domain=MICROSOFT)
def softmax_quantized(x, x_scale, x_zero, y_scale, y_zero, *, axis=-1, opset):
    y = (softmax if opset >= 13 else softmax_of_matrix)(dequantize(x, x_scale, x_zero), axis=axis)
    return _requantized(y, y_scale, y_zero)


@op("QLinearAveragePool", domain=MICROSOFT)
def average_pool_quantized(
    x, x_scale, x_zero, y_scale, y_zero=None, *, auto_pad="NOTSET", ceil_mode=0, channels_last=0, count_include_pad=0, kernel_shape, pads=None, strides=None
):  # fmt: skip
    if channels_last:
        refuse("channels_last is not supported")
    y = average_pool(
        dequantize(x, x_scale, x_zero), auto_pad=auto_pad, ceil_mode=ceil_mode, count_include_pad=count_include_pad, kernel_shape=kernel_shape, pads=pads,
        strides=strides,
    )  # fmt: skip
    return _requantized(y, y_scale, y_zero)


@op("QLinearGlobalAveragePool", domain=MICROSOFT)
def global_average_pool_quantized(x, x_scale, x_zero, y_scale, y_zero, *, channels_last=0):
    axes = tuple(range(1, x.ndim - 1)) if channels_last else tuple(range(2, x.ndim))
    return _requantized(bp.mean(dequantize(x, x_scale, x_zero), axis=axes, keepdims=True), y_scale, y_zero)


@op("QLinearConcat", domain=MICROSOFT)
def concat_quantized(y_scale, y_zero, *parts, axis):
    rows = [dequantize(*parts[i : i + 3]) for i in range(0, len(parts), 3)]
    return _requantized(bp.concat(rows, axis=axis), y_scale, y_zero)


@op("QGemm", domain=MICROSOFT)
def gemm_quantized(a, a_scale, a_zero, b, b_scale, b_zero, c=None, y_scale=None, y_zero=None, *, alpha=1.0, transA=0, transB=0):
    a = bp.matrix_transpose(a) if transA else a
    if b_scale.ndim == 1 and b_scale.shape[0] > 1 and transB:
        refuse("a scale for each column of a transposed matrix is not supported")
    total = matmul_integer(a, bp.matrix_transpose(b) if transB else b, a_zero, b_zero)
    total = total if c is None else total + c
    y = bp.cast(total, bp.float32) * (a_scale * b_scale * alpha)
    return y if y_scale is None else _requantized(y, y_scale, y_zero)


@op("QAttention", domain=MICROSOFT)
def attention_quantized(
    node, x, weights, bias, x_scale, weight_scale, mask=None, x_zero=None, weight_zero=None, past=None, *, do_rotary=0, mask_filter_value=-10000.0,
    num_heads, past_present_share_buffer=0, rotary_embedding_dim=0, scale=0.0, unidirectional=0
):  # fmt: skip
    if do_rotary or past_present_share_buffer:
        refuse("do_rotary and a shared buffer of past and present are not supported")
    packed = bp.cast(matmul_integer(x, weights, x_zero, weight_zero), bp.float32) * (x_scale * weight_scale) + bias
    return packed_attention(node, packed, mask, past, None, mask_filter_value, num_heads, None, scale, unidirectional)
