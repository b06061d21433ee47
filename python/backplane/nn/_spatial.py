"""Padding, columns of windows, and what moves between channels and space."""

import math
from collections.abc import Sequence

import backplane as bp
from backplane import Tensor

from .._calls._integer_argument import given_ints
from ._arguments import sizes

__all__ = ["affine_grid", "channel_shuffle", "fold", "grid_sample", "pad", "pixel_shuffle", "pixel_unshuffle", "unfold"]

_PADDING = ("constant", "reflect", "replicate", "circular")


def pad(input: Tensor, pad: Sequence[int], mode: str = "constant", value: float | None = None) -> Tensor:
    """input with pad = (left, right, top, bottom, ...) elements added around its last axes, the last one first; negative counts take
    elements away. mode: 'constant' (value, or 0), 'reflect', 'replicate' or 'circular'."""
    if isinstance(pad, (list, tuple)) and any(isinstance(pair, (list, tuple)) for pair in pad):
        raise bp.ArgumentTypeError(
            f"pad: argument pad: found {pad!r}, expected numbers in a row, (left, right, top, bottom) for the last two axes; "
            "use backplane.pad for a pair (before, after) for each axis, the first one first"
        )
    counts = given_ints("pad", "pad", pad)
    if len(counts) % 2 or len(counts) > 2 * input.ndim:
        raise bp.ArgumentValueError(f"pad: argument pad: found {len(counts)} numbers, expected a pair for each of up to {input.ndim} axes")
    if mode not in _PADDING:
        raise bp.ArgumentValueError(f"pad: argument mode: found {mode!r}, expected one of {', '.join(_PADDING)}")
    if mode != "constant" and value is not None:
        raise bp.ArgumentValueError(f"pad: argument value: found {value} with mode {mode!r}, expected it only with 'constant'")
    rest = [0] * (input.ndim - len(counts) // 2)
    before, after = rest + counts[0::2][::-1], rest + counts[1::2][::-1]
    _check_reach(input, mode, before, after)
    added = [0 if b < 0 else b for b in before], [0 if a < 0 else a for a in after]
    taken = [b if b < 0 else 0 for b in before], [a if a < 0 else 0 for a in after]
    if mode == "constant":
        return bp.ops.bp.pad(_cropped(input, *taken), *added, value=0 if value is None else value)
    if mode == "circular":
        return bp.pad_edges(_cropped(input, *taken), *added, mode=mode)
    return _cropped(bp.pad_edges(input, *added, mode=mode), *taken)  # an edge or a mirror stays that of the whole input


def _check_reach(input, mode, before, after):
    for axis, size in enumerate(input.shape):
        if mode not in ("reflect", "circular"):
            continue
        most = size - 1 if mode == "reflect" else size
        if any(count > most and count > 0 for count in (before[axis], after[axis])):
            raise bp.ArgumentValueError(
                f"pad: argument pad: found {before[axis]} and {after[axis]} for axis {axis} of size {size}, expected at most {most} in mode {mode!r}"
            )


def _cropped(input, before, after):
    """input without the elements that negative counts take away."""
    axes = [axis for axis in range(input.ndim) if before[axis] < 0 or after[axis] < 0]
    if not axes:
        return input
    starts = [-before[axis] for axis in axes]
    stops = [input.shape[axis] + after[axis] for axis in axes]
    for axis, start, stop in zip(axes, starts, stops):
        if start > stop:
            raise bp.ArgumentValueError(f"pad: argument pad: takes {start + input.shape[axis] - stop} elements from axis {axis} of size {input.shape[axis]}")
    return bp.slice(input, axes, starts, stops, [1] * len(axes))


def _windows(function, kernel_size, dilation, padding, stride):
    kernel = sizes(function, "kernel_size", kernel_size, 2)
    how = {"stride": sizes(function, "stride", stride, 2), "padding": sizes(function, "padding", padding, 2)}
    return kernel, {**how, "dilation": sizes(function, "dilation", dilation, 2)}


def unfold(
    input: Tensor, kernel_size: int | Sequence[int], dilation: int | Sequence[int] = 1, padding: int | Sequence[int] = 0,
    stride: int | Sequence[int] = 1
) -> Tensor:
    """The windows of images (n, c, h, w) or (c, h, w) as columns (n, c · kh · kw, windows)."""
    kernel, how = _windows("unfold", kernel_size, dilation, padding, stride)
    if input.ndim == 3:
        return bp.squeeze(bp.im2col(bp.expand_dims(input, [0]), kernel, **how), [0])
    return bp.im2col(input, kernel, **how)


def _check_columns(input, size, kernel, how):
    if not all([*kernel, *how["stride"]]):  # which col2im refuses
        return
    counts = [(n + 2 * p - d * (k - 1) - 1) // s + 1 for n, k, d, p, s in zip(size, kernel, how["dilation"], how["padding"], how["stride"])]
    windows, elements = math.prod(counts), math.prod(kernel)
    if input.ndim not in (2, 3) or input.shape[-1] != windows or input.shape[-2] % elements:
        raise bp.ShapeError(
            f"fold: argument input: found shape {tuple(input.shape)}, expected (n, c * {elements}, {windows}) or (c * {elements}, "
            f"{windows}): a column for each of the {counts[0]} by {counts[1]} windows of output_size {tuple(size)}"
        )


def fold(
    input: Tensor, output_size: int | Sequence[int], kernel_size: int | Sequence[int], dilation: int | Sequence[int] = 1,
    padding: int | Sequence[int] = 0, stride: int | Sequence[int] = 1
) -> Tensor:
    """The adjoint of unfold: columns (n, c · kh · kw, windows) or (c · kh · kw, windows) added into images of output_size."""
    kernel, how = _windows("fold", kernel_size, dilation, padding, stride)
    size = sizes("fold", "output_size", output_size, 2)
    _check_columns(input, size, kernel, how)
    if input.ndim == 2:
        return bp.squeeze(bp.col2im(bp.expand_dims(input, [0]), size, kernel, **how), [0])
    return bp.col2im(input, size, kernel, **how)


def pixel_shuffle(input: Tensor, upscale_factor: int) -> Tensor:
    """input (*, c · r², h, w) as (*, c, h · r, w · r), r being upscale_factor."""
    return bp.pixel_shuffle(input, upscale_factor)


def pixel_unshuffle(input: Tensor, downscale_factor: int) -> Tensor:
    """input (*, c, h · r, w · r) as (*, c · r², h, w), r being downscale_factor."""
    return bp.pixel_unshuffle(input, downscale_factor)


def channel_shuffle(input: Tensor, groups: int) -> Tensor:
    """input (n, c, *) with the channels of its groups interleaved."""
    return bp.channel_shuffle(input, groups)


def affine_grid(theta: Tensor, size: Sequence[int], align_corners: bool | None = None) -> Tensor:
    """The grid for grid_sample of affine maps theta (n, 2, 3) or (n, 3, 4), for results of the given size (n, c, *spatial)."""
    size = given_ints("affine_grid", "size", size)
    if len(size) not in (4, 5) or tuple(theta.shape) != (size[0], len(size) - 2, len(size) - 1):
        raise bp.ShapeError(
            f"affine_grid: argument theta: found shape {tuple(theta.shape)} with size {size}, expected (n, 2, 3) with four sizes or (n, 3, 4) with five"
        )
    return bp.affine_grid(theta, size, align_corners=bool(align_corners))


def grid_sample(
    input: Tensor, grid: Tensor, mode: str = "bilinear", padding_mode: str = "zeros", align_corners: bool | None = None
) -> Tensor:
    """input (n, c, *spatial) at the points grid (n, *out, r), which count from -1 to 1 over the image, the last axis first. mode:
    'bilinear', 'nearest' or, for images, 'bicubic'. padding_mode, for points outside: 'zeros', 'border' or 'reflection'."""
    for argument, found, known in (("mode", mode, ("bilinear", "nearest", "bicubic")), ("padding_mode", padding_mode, ("zeros", "border", "reflection"))):
        if found not in known:
            raise bp.ArgumentValueError(f"grid_sample: argument {argument}: found {found!r}, expected one of {', '.join(known)}")
    if input.ndim < 3 or grid.ndim != input.ndim or grid.shape[-1] != input.ndim - 2 or grid.shape[0] != input.shape[0]:
        raise bp.ShapeError(
            f"grid_sample: argument grid: found shape {tuple(grid.shape)} with an input of shape {tuple(input.shape)}, expected (n, *out, number of spatial axes)"
        )
    return bp.grid_sample(input, grid, mode=mode, padding_mode=padding_mode, align_corners=bool(align_corners))
