"""Products of matrices, Einsum, determinants, and convolutions."""

import backplane as bp

from ._shape_ops import pad_with
from ._table import op, refuse
from ._values import is_plain, prod

op("MatMul", 1)(lambda a, b: bp.matmul(a, b))
op("Det", 11)(lambda x: bp.det(x))


@op("Gemm", 7)
def gemm(a, b, c=None, *, alpha=1.0, beta=1.0, transA=0, transB=0):
    if transA:
        a = bp.matrix_transpose(a)
    if transB:
        b = bp.matrix_transpose(b)
    found = bp.matmul(a, b)
    if alpha != 1:
        found = _scaled(found, alpha)
    if c is None or beta == 0:
        return found
    return found + (c if beta == 1 else _scaled(c, beta))


def _scaled(x, factor):
    if bp.isdtype(x.dtype, "integral"):
        if factor != int(factor):
            refuse(f"a factor of {factor} is not supported for integers")
        return x * int(factor)
    return x * factor


@op("Einsum", 12)
def einsum(*inputs, equation):
    return bp.einsum(equation.replace(" ", ""), *inputs)


def windows(x_shape, kernel, strides, dilations, pads, auto_pad, ceil_mode=0):
    """(strides, dilations, pads before, pads after) of windows over the axes from 2 on."""
    rank = len(kernel)
    strides, dilations = strides or [1] * rank, dilations or [1] * rank
    if auto_pad in ("NOTSET", ""):
        pads = pads or [0] * 2 * rank
        return strides, dilations, pads[:rank], pads[rank:]
    if auto_pad == "VALID":
        return strides, dilations, [0] * rank, [0] * rank
    before, after = [], []
    for size, k, stride, dilation in zip(x_shape[2:], kernel, strides, dilations):
        total = ((size + stride - 1) // stride - 1) * stride + (k - 1) * dilation + 1 - size
        total = total if total > 0 else 0
        small, large = total // 2, total - total // 2
        before.append(small if auto_pad == "SAME_UPPER" else large)
        after.append(large if auto_pad == "SAME_UPPER" else small)
    return strides, dilations, before, after


@op("Conv", 1)
def convolution(x, w, b=None, *, auto_pad="NOTSET", dilations=None, group=1, kernel_shape=None, pads=None, strides=None):
    return convolved(x, w, b, auto_pad, dilations, group, pads, strides)


def convolved(x, w, b, auto_pad, dilations, group, pads, strides):
    strides, dilations, before, after = windows(x.shape, w.shape[2:], strides, dilations, pads, auto_pad)
    if list(before) != list(after) or not is_plain(*before):
        x = pad_with(x, [(0, 0), (0, 0), *zip(before, after)], 0)
        before = [0] * len(before)
    function = bp.conv2d if len(before) == 2 else bp.conv
    y = function(x, w, stride=strides, padding=before, dilation=dilations, groups=group)
    return y if b is None else y + bp.reshape(b, (-1,) + (1,) * len(before))


@op("ConvTranspose", 1)
def convolution_transpose(
    x, w, b=None, *, auto_pad="NOTSET", dilations=None, group=1, kernel_shape=None, output_padding=None, output_shape=None, pads=None, strides=None
):
    rank = x.ndim - 2
    strides, dilations = strides or [1] * rank, dilations or [1] * rank
    extra = output_padding or [0] * rank
    pads = pads or [0] * 2 * rank
    full = [stride * (size - 1) + (k - 1) * dilation + 1 for size, k, stride, dilation in zip(x.shape[2:], w.shape[2:], strides, dilations)]
    before, after = pads[:rank], pads[rank:]
    if output_shape is not None or auto_pad in ("SAME_UPPER", "SAME_LOWER"):
        sizes = output_shape[-rank:] if output_shape is not None else [size * stride for size, stride in zip(x.shape[2:], strides)]
        total = [f + e - size for f, e, size in zip(full, extra, sizes)]
        small = [t // 2 for t in total]
        large = [t - t // 2 for t in total]
        before, after = (small, large) if auto_pad == "SAME_UPPER" else (large, small)
    y = bp.conv_transpose(x, w, stride=strides, padding=[0] * rank, output_padding=[0] * rank, dilation=dilations, groups=group)
    rows = [(0, 0), (0, 0)]
    for axis, (size, b0, b1, e) in enumerate(zip(full, before, after, extra), 2):
        stop = size + e - b1
        start = b0 if b0 > 0 else 0
        y = bp.slice(y, [axis], [start], [stop if stop < size else size], [1])
        rows.append((-b0 if b0 < 0 else 0, stop - size if stop > size else 0))
    y = pad_with(y, rows, 0)
    return y if b is None else y + bp.reshape(b, (-1,) + (1,) * rank)


@op("Col2Im", 18, static=(1, 2))
def columns_to_image(x, image_shape, block_shape, *, dilations=None, pads=None, strides=None):
    """Sums the columns into an image with any number of axes; one axis after the other."""
    sizes, block = [int(n) for n in image_shape], [int(n) for n in block_shape]
    rank = len(sizes)
    strides, dilations, pads = strides or [1] * rank, dilations or [1] * rank, pads or [0] * 2 * rank
    counts = []
    for i in range(rank):
        counts.append((sizes[i] + pads[i] + pads[rank + i] - dilations[i] * (block[i] - 1) - 1) // strides[i] + 1)
    n, c = x.shape[0], x.shape[1] // prod(block)
    x = bp.reshape(x, (n, c, *block, *counts))
    for i in range(rank):  # the block's axis is always axis 2; the windows' axis follows the blocks that are left
        windows_axis = 2 + rank - i
        moved = bp.moveaxis(bp.moveaxis(x, windows_axis, -1), 2, -1)  # (..., windows, taps)
        total = sizes[i] + pads[i] + pads[rank + i]
        image = bp.zeros((*moved.shape[:-2], total), dtype=x.dtype, device=x.device)
        for tap in range(block[i]):
            part = moved[..., tap]
            start = tap * dilations[i]
            image = image + _spread(part, start, strides[i], total)
        x = bp.slice(image, [image.ndim - 1], [pads[i]], [pads[i] + sizes[i]], [1])
    return x


def _spread(x, start, step, total):
    """x at every step-th place from start on, along the last axis of `total` places."""
    count = x.shape[-1]
    x = bp.reshape(pad_with(bp.expand_dims(x, axis=-1), [(0, 0)] * x.ndim + [(0, step - 1)], 0), (*x.shape[:-1], count * step))
    x = bp.slice(x, [x.ndim - 1], [0], [(count - 1) * step + 1], [1])
    return pad_with(x, [(0, 0)] * (x.ndim - 1) + [(start, total - start - (count - 1) * step - 1)], 0)
