"""to_graph's table: products, convolutions, windows."""

import backplane as bp

from ._jaxpr_arrays import pad
from ._jaxpr_table import computes, dtype_of, refuse


def _prod(sizes):
    result = 1
    for size in sizes:
        result *= size
    return result


@computes("dot_general")
def dot_general(x, y, *, dimension_numbers, precision=None, preferred_element_type=None, out_sharding=None):
    (x_contract, y_contract), (x_batch, y_batch) = dimension_numbers
    x_free = [axis for axis in range(x.ndim) if axis not in (*x_contract, *x_batch)]
    y_free = [axis for axis in range(y.ndim) if axis not in (*y_contract, *y_batch)]
    batch = [x.shape[axis] for axis in x_batch]
    inner = _prod(x.shape[axis] for axis in x_contract)
    rows, columns = [x.shape[axis] for axis in x_free], [y.shape[axis] for axis in y_free]
    dtype = bp.result_type(x, y) if preferred_element_type is None else dtype_of(preferred_element_type)
    a = bp.reshape(bp.permute_dims(x, [*x_batch, *x_free, *x_contract]), (*batch, _prod(rows), inner))
    b = bp.reshape(bp.permute_dims(y, [*y_batch, *y_contract, *y_free]), (*batch, inner, _prod(columns)))
    return bp.reshape(bp.matmul(bp.cast(a, dtype), bp.cast(b, dtype)), (*batch, *rows, *columns))


@computes("conv_general_dilated")
def convolution(
    x, w, *, window_strides, padding, lhs_dilation, rhs_dilation, dimension_numbers, feature_group_count, batch_group_count, precision=None,
    preferred_element_type=None, **_
):  # fmt: skip
    n = dimension_numbers
    x = bp.permute_dims(x, n.lhs_spec)
    w = bp.permute_dims(w, n.rhs_spec)
    groups = feature_group_count
    if batch_group_count > 1:  # of a gradient of grouped weights: the batch's groups become groups of channels
        groups = batch_group_count
        size = x.shape[0] // groups
        x = bp.reshape(x, (groups, size, *x.shape[1:]))
        x = bp.reshape(bp.permute_dims(x, (1, 0, *range(2, x.ndim))), (size, -1, *x.shape[3:]))
    zero = bp.zeros((), dtype=x.dtype, device=x.device)
    rows = [(0, 0, 0), (0, 0, 0), *((low, high, dilation - 1) for (low, high), dilation in zip(padding, lhs_dilation))]
    if any(map(any, rows)):
        x = pad(x, zero, padding_config=rows)
    rank = x.ndim - 2
    if rank == 0:
        refuse("a convolution without axes is not supported")
    function = bp.conv2d if rank == 2 else bp.conv
    y = function(x, w, stride=list(window_strides), padding=[0] * rank, dilation=list(rhs_dilation), groups=groups)
    order = [0] * y.ndim
    for place, axis in enumerate(n.out_spec):
        order[axis] = place
    return bp.permute_dims(y, order)


def _windows(x, value, window_dimensions, window_strides, padding, base_dilation, window_dilation):
    """The windows of x, with their elements along new last axes."""
    rows = [(low, high, dilation - 1) for (low, high), dilation in zip(padding, base_dilation)]
    if any(map(any, rows)):
        x = pad(x, bp.full((), value, dtype=x.dtype, device=x.device), padding_config=rows)
    axes = []
    for axis, (size, stride, dilation) in enumerate(zip(window_dimensions, window_strides, window_dilation)):
        if (size, stride) != (1, 1):
            x = bp.unfold(x, axis, size, stride, dilation)
            axes.append(x.ndim - 1)
    return x, tuple(axes)


@computes("reduce_window_sum")
def window_sum(x, **windows):
    found, axes = _windows(x, 0, **windows)
    return bp.sum(found, axis=axes, dtype=x.dtype) if axes else found


def _end(x, is_greatest):
    if bp.isdtype(x.dtype, "real floating"):
        return float("inf") if is_greatest else float("-inf")
    info = bp.iinfo(x.dtype)
    return int(info.max if is_greatest else info.min)


@computes("reduce_window_max")
def window_max(x, **windows):
    found, axes = _windows(x, _end(x, False), **windows)
    return bp.amax(found, axis=axes) if axes else found


@computes("reduce_window_min")
def window_min(x, **windows):
    found, axes = _windows(x, _end(x, True), **windows)
    return bp.amin(found, axis=axes) if axes else found


@computes("select_and_scatter_add")
def selected_sums(source, x, *, select_prim, window_dimensions, window_strides, padding):
    """The gradient of maxima of windows: each value goes to the first greatest (or least) element of its window."""
    is_max = select_prim.name == "ge"
    options = {"window_dimensions": window_dimensions, "window_strides": window_strides, "padding": padding}
    ones = (1,) * x.ndim
    found, axes = _windows(x, _end(x, not is_max), base_dilation=ones, window_dilation=ones, **options)
    places = bp.reshape(bp.arange(_prod(x.shape), device=x.device), x.shape)
    spots, _ = _windows(places, -1, base_dilation=ones, window_dilation=ones, **options)
    flat = bp.reshape(found, (*source.shape, -1))
    first = bp.expand_dims((bp.argmax if is_max else bp.argmin)(flat, axis=-1), axis=-1)
    target = bp.take_along_axis(bp.reshape(spots, (*source.shape, -1)), first, axis=-1)
    zeros = bp.zeros((_prod(x.shape),), dtype=source.dtype, device=x.device)
    return bp.reshape(bp.put_along_axis(zeros, bp.reshape(target, (-1,)), bp.reshape(source, (-1,)), axis=0, accumulate=True), x.shape)


@computes("select_and_gather_add")
def selected(tangents, x, *, select_prim, window_dimensions, window_strides, padding, base_dilation, window_dilation):
    """The tangents of maxima of windows: each is the tangent of the first greatest (or least) element of its window."""
    is_max = select_prim.name == "ge"
    options = {"window_dimensions": window_dimensions, "window_strides": window_strides, "padding": padding,
               "base_dilation": base_dilation, "window_dilation": window_dilation}  # fmt: skip
    found, axes = _windows(x, _end(x, not is_max), **options)
    moved, _ = _windows(tangents, 0, **options)
    if not axes:
        return moved
    shape = [size for axis, size in enumerate(found.shape) if axis not in axes]
    order = [*(axis for axis in range(found.ndim) if axis not in axes), *axes]
    flat, moved = (bp.reshape(bp.permute_dims(one, order), (*shape, -1)) for one in (found, moved))
    first = bp.expand_dims((bp.argmax if is_max else bp.argmin)(flat, axis=-1), axis=-1)
    return bp.squeeze(bp.take_along_axis(moved, first, axis=-1), axis=-1)
