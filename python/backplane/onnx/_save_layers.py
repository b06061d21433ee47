"""save's table: reductions, sorting, products, convolutions, pooling, norms, attention."""

import math

import numpy as np

from ._table import refuse
from ._writer import number_of, static, writes


def _axes(w, x, axis):
    return list(range(len(w.shapes[x]))) if axis is None else axis if isinstance(axis, list) else [axis]


def _reduced(w, op, name, axes, keepdims):
    return w.emit(op, [name, w.shape(axes)], keepdims=int(keepdims)) if axes else name


def _reduction(op):
    def write(w, node, x, axis=None, keepdims=False, dtype=None):
        return _reduced(w, op, w.operand(x, node.dtype), _axes(w, x, axis), keepdims)

    return write


for _name, _op in {"sum": "ReduceSum", "prod": "ReduceProd", "max": "ReduceMax", "min": "ReduceMin", "mean": "ReduceMean", "logsumexp": "ReduceLogSumExp"}.items():
    writes(_name)(_reduction(_op))


def _of_bools(op):
    def write(w, node, x, axis=None, keepdims=False):
        ones = w.cast(w.operand(x, "bool"), "bool", "int32")
        return w.cast(_reduced(w, op, ones, _axes(w, x, axis), keepdims), "int32", "bool")

    return write


writes("any")(_of_bools("ReduceMax"))
writes("all")(_of_bools("ReduceMin"))


@writes("var")
def variance(w, node, x, axis=None, correction=0, keepdims=False):
    axes = _axes(w, x, axis)
    name = w.operand(x, node.dtype)
    apart = w.emit("Sub", [name, _reduced(w, "ReduceMean", name, axes, True)])
    squares = w.emit("Mul", [apart, apart])
    if not correction:
        return _reduced(w, "ReduceMean", squares, axes, keepdims)
    count = math.prod(static([w.shapes[x][axis] for axis in axes], "var with a correction"))
    return w.emit("Div", [_reduced(w, "ReduceSum", squares, axes, keepdims), w.number(count - correction, node.dtype)])


@writes("std")
def deviation(w, node, x, axis=None, correction=0, keepdims=False):
    return w.emit("Sqrt", [variance(w, node, x, axis, correction, keepdims)])


def _place(op):
    def write(w, node, x, axis=None, keepdims=False):
        name = w.name(x)
        if axis is not None:
            return w.emit(op, [name], axis=axis, keepdims=int(keepdims))
        place = w.emit(op, [w.emit("Reshape", [name, w.shape([-1])])], axis=0, keepdims=0)
        return w.emit("Reshape", [place, w.shape(node.shape)])

    return write


writes("argmax")(_place("ArgMax"))
writes("argmin")(_place("ArgMin"))


def _sorted(w, x, axis, descending):
    size = w.shapes[x][axis]
    return w.emit("TopK", [w.name(x), w.size(size)], 2, axis=axis, largest=int(descending))


@writes("sort")
def sort(w, node, x, axis=-1, descending=False, stable=True):
    return _sorted(w, x, axis, descending)[0]


@writes("argsort")
def argsort(w, node, x, axis=-1, descending=False, stable=True):
    return _sorted(w, x, axis, descending)[1]


@writes("topk")
def topk(w, node, x, k, axis=-1, largest=True, sorted=True):
    return w.emit("TopK", [w.name(x), w.size(k)], 2, axis=axis, largest=int(largest))


@writes("cumsum")
def cumsum(w, node, x, axis, dtype=None):
    return w.emit("CumSum", [w.operand(x, node.dtype), w.constant(np.int64(axis))])


@writes("matmul")
def matmul(w, node, x, y):
    return w.emit("MatMul", [w.operand(x, node.dtype), w.operand(y, node.dtype)])


@writes("matmul_add")
def matmul_add(w, node, x, y, z):
    return w.emit("Add", [matmul(w, node, x, y), w.operand(z, node.dtype)])


@writes("softmax")
def softmax(w, node, x, axis=(-1,)):
    return _along_one(w, "Softmax", node, x, axis)


@writes("log_softmax")
def log_softmax(w, node, x, axis=(-1,)):
    return _along_one(w, "LogSoftmax", node, x, axis)


def _along_one(w, op, node, x, axis):
    if len(axis) != 1:
        refuse("several axes are not supported")
    return w.emit(op, [w.operand(x, node.dtype)], axis=axis[0])


def _around(padding):
    return [*padding, *padding]


@writes("conv2d", "conv")
def convolution(writer, node, x, w, stride=None, padding=None, dilation=None, groups=1):
    rank = len(writer.shapes[x]) - 2
    ones, zeros = [1] * rank, [0] * rank
    return writer.emit(
        "Conv", [writer.name(x), writer.operand(w, node.dtype)], strides=stride or ones, pads=_around(padding or zeros), dilations=dilation or ones,
        group=groups,
    )  # fmt: skip


@writes("conv2d_input_grad")
def convolution_transpose(writer, node, y, w, shape, stride=None, padding=None, dilation=None, groups=1):
    stride, padding, dilation = stride or [1, 1], padding or [0, 0], dilation or [1, 1]
    kernel = static(writer.shapes[w][2:], "a transposed convolution's kernel")
    what = "a transposed convolution"
    extra = [
        number_of(lambda old, size, k=k, s=s, d=d, p=p: size - ((old - 1) * s + (k - 1) * d + 1 - 2 * p), [old, size], what)
        for old, k, size, s, d, p in zip(writer.shapes[y][2:], kernel, shape[2:], stride, dilation, padding)
    ]
    return writer.emit(
        "ConvTranspose", [writer.name(y), writer.name(w)], strides=stride, pads=_around(padding), dilations=dilation, group=groups, output_padding=extra,
    )  # fmt: skip


@writes("conv_transpose")
def convolution_transpose_of_any_rank(writer, node, x, w, stride=None, padding=None, output_padding=None, dilation=None, groups=1):
    rank = len(writer.shapes[x]) - 2
    ones, zeros = [1] * rank, [0] * rank
    return writer.emit(
        "ConvTranspose", [writer.name(x), writer.name(w)], strides=stride or ones, pads=_around(padding or zeros), dilations=dilation or ones,
        group=groups, output_padding=output_padding or zeros,
    )  # fmt: skip


@writes("max_pool2d_with_indices", "max_pool_with_indices", "max_pool2d")
def max_pool(w, node, x, kernel, stride=None, padding=None, dilation=None, ceil_mode=False):
    if node.uses(1):
        refuse("the places of the maxima are not supported")
    rank = len(kernel)
    y = w.emit(
        "MaxPool", [w.name(x)], kernel_shape=kernel, strides=stride or kernel, pads=_around(padding or [0] * rank),
        dilations=dilation or [1] * rank, ceil_mode=int(ceil_mode),
    )  # fmt: skip
    return [y] + [""] * (len(node.results) - 1)


@writes("avg_pool2d", "avg_pool")
def average_pool(w, node, x, kernel, stride=None, padding=None, ceil_mode=False, count_include_pad=True, divisor=None):
    if divisor is not None:
        refuse("a divisor is not supported")
    return w.emit(
        "AveragePool", [w.name(x)], kernel_shape=kernel, strides=stride or kernel, pads=_around(padding or [0] * len(kernel)),
        count_include_pad=int(count_include_pad), ceil_mode=int(ceil_mode),
    )  # fmt: skip


@writes("batch_norm_inference")
def batch_norm(w, node, x, mean, var, weight=None, bias=None, eps=1e-5):
    channels = static([w.shapes[x][1]], "a batch norm over channels")
    row = [np.ones(channels, node.dtype), np.zeros(channels, node.dtype)]
    weight, bias = (w.constant(default) if given is None else w.name(given) for given, default in zip((weight, bias), row))
    return w.emit("BatchNormalization", [w.name(x), weight, bias, w.name(mean), w.name(var)], epsilon=float(eps))


@writes("layer_norm")
def layer_norm(w, node, x, weight=None, bias=None, axis=(-1,), eps=1e-5):
    shape = w.shapes[x]
    axes = sorted(a % len(shape) for a in axis)
    if axes != list(range(len(shape) - len(axes), len(shape))):
        refuse("a layer norm over axes that are not the last ones is not supported")
    sizes = shape[axes[0] :]
    if weight is not None:
        scale = w.name(weight)
    elif all(isinstance(size, int) for size in sizes):
        scale = w.constant(np.ones(sizes, node.dtype))
    else:
        scale = w.emit("Expand", [w.number(1, node.dtype), w.shape(sizes)])
    return w.emit("LayerNormalization", [w.name(x), scale] + ([w.name(bias)] if bias is not None else []), axis=axes[0], epsilon=float(eps))


@writes("rms_norm")
def rms_norm(w, node, x, weight=None, axis=(-1,), eps=1e-5):
    name = w.name(x)
    mean = _reduced(w, "ReduceMean", w.emit("Mul", [name, name]), list(axis), True)
    y = w.emit("Div", [name, w.emit("Sqrt", [w.emit("Add", [mean, w.number(eps, node.dtype)])])])
    return y if weight is None else w.emit("Mul", [y, w.name(weight)])


@writes("attention", "attention_with_lse")
def attention(w, node, query, key, value, mask=None, causal=False, scale=None):
    if node.uses(1):
        refuse("the logarithms of the sums are not supported")
    if causal:
        refuse("causal attention is not supported. Fix: pass a mask")
    if w.shapes[query][1] != w.shapes[key][1] and len(w.shapes[query]) == 4:
        refuse("query heads that share key heads are not supported")
    rank = len(w.shapes[key])
    size = static(w.shapes[query][-1:], "attention over features")[0]
    scale = 1 / math.sqrt(size) if scale is None else scale
    turned = w.emit("Transpose", [w.name(key)], perm=[*range(rank - 2), rank - 1, rank - 2])
    scores = w.emit("MatMul", [w.emit("Mul", [w.name(query), w.number(scale, node.dtype)]), turned])
    if mask is not None:
        if w.types[mask] == "bool":
            added = w.emit("Where", [w.name(mask), w.number(0, node.dtype), w.number(float("-inf"), node.dtype)])
        else:
            added = w.operand(mask, node.dtype)
        scores = w.emit("Add", [scores, added])
    y = w.emit("MatMul", [w.emit("Softmax", [scores], axis=-1), w.name(value)])
    return [y] + [""] * (len(node.results) - 1)
