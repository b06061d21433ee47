"""Images and signals of another size."""

import math
from collections.abc import Sequence

import backplane as bp
from backplane import Tensor, _core

from ._arguments import sizes

__all__ = ["interpolate", "upsample", "upsample_bilinear", "upsample_nearest"]

# mode -> the number of spatial axes, or None for any
_MODES = {"nearest": None, "nearest-exact": None, "area": None, "linear": 1, "bilinear": 2, "bicubic": 2, "trilinear": 3}


def interpolate(
    input: Tensor, size: int | Sequence[int] | None = None, scale_factor: float | Sequence[float] | None = None,
    mode: str = "nearest", align_corners: bool | None = None, recompute_scale_factor: bool | None = None, antialias: bool = False
) -> Tensor:
    """input (n, c, *spatial) with spatial axes of the given size, or scale_factor times as long. mode: 'nearest', 'nearest-exact',
    'area', 'linear' (one spatial axis), 'bilinear' and 'bicubic' (two), 'trilinear' (three). With antialias the two of images average over all that lies between their points."""
    axes = input.ndim - 2
    _check(input, size, scale_factor, mode, align_corners, recompute_scale_factor, antialias)
    lengths, steps = _lengths_and_steps(input, axes, size, scale_factor, recompute_scale_factor)
    if mode == "area":
        return bp.adaptive_avg_pool(input, lengths, any_size=any(map(_core.is_dynamic, [*input.shape[2:], *lengths])))
    found = input
    for i, (length, step) in enumerate(zip(lengths, steps)):
        found = _along(found, i + 2, length, step, mode, align_corners, antialias)
    return bp.copy(input) if found is input else found


def upsample(
    input: Tensor, size: int | Sequence[int] | None = None, scale_factor: float | Sequence[float] | None = None,
    mode: str = "nearest", align_corners: bool | None = None
) -> Tensor:
    """The older name of interpolate."""
    return interpolate(input, size, scale_factor, mode, align_corners)


def upsample_nearest(input: Tensor, size: int | Sequence[int] | None = None, scale_factor: int | Sequence[int] | None = None) -> Tensor:
    """interpolate with mode 'nearest'."""
    return interpolate(input, size, scale_factor, "nearest")


def upsample_bilinear(input: Tensor, size: int | Sequence[int] | None = None, scale_factor: float | Sequence[float] | None = None) -> Tensor:
    """interpolate with mode 'bilinear', whose corners are aligned."""
    return interpolate(input, size, scale_factor, "bilinear", align_corners=True)


def _along(x, axis, length, step, mode, align_corners, antialias):
    size, (step, divisor) = x.shape[axis], step
    if align_corners:
        step, divisor = (size - 1, length - 1) if length > 1 else (0.0, 1)
    # A graph for any size divides tensors by sizes, and takes no shortcut that holds at one size only.
    is_dynamic = _core.is_dynamic(size) or _core.is_dynamic(length)
    if not is_dynamic and length == size and (antialias or mode in ("linear", "bilinear", "trilinear")):
        return x
    if antialias or not is_dynamic:
        step, divisor = step / divisor, 1
    if antialias:
        return bp.resample_smooth(x, axis, length, step, mode="cubic" if mode == "bicubic" else "linear")
    if mode in ("nearest", "nearest-exact"):
        return bp.resample_nearest(x, axis, length, step, 0 if mode == "nearest" else 0.5, divisor)
    op = bp.resample_cubic if mode == "bicubic" else bp.resample_linear
    return op(x, axis, length, step, 0 if align_corners else 0.5, divisor)


def _lengths_and_steps(input, axes, size, scale_factor, recompute):
    """For each axis the result's length, and how far apart its elements lie in the input, as a number and its divisor."""
    if size is not None:
        lengths = sizes("interpolate", "size", size, axes)
        if any(length < 1 for length in lengths):
            raise bp.ArgumentValueError(f"interpolate: argument size: found {lengths}, expected sizes of at least 1")
        return lengths, [(n, m) for n, m in zip(input.shape[2:], lengths)]
    factors = list(scale_factor) if hasattr(scale_factor, "__iter__") else [scale_factor] * axes
    if len(factors) != axes or not all(isinstance(f, (int, float)) and f > 0 and math.isfinite(f) for f in factors):
        raise bp.ArgumentValueError(f"interpolate: argument scale_factor: found {scale_factor}, expected a positive number, or {axes} of them")
    lengths = [math.floor(n * f) for n, f in zip(input.shape[2:], factors)]
    if any(length < 1 for length in lengths):
        raise bp.ArgumentValueError(f"interpolate: argument scale_factor: found {scale_factor}, which gives an empty result for {tuple(input.shape)}")
    return lengths, [(n, m) for n, m in zip(input.shape[2:], lengths)] if recompute else [(1 / f, 1) for f in factors]


def _check(input, size, scale_factor, mode, align_corners, recompute_scale_factor, antialias):
    if mode not in _MODES:
        raise bp.ArgumentValueError(f"interpolate: argument mode: found {mode!r}, expected one of {', '.join(_MODES)}")
    if input.ndim < 3 or input.ndim > 5 or _MODES[mode] not in (None, input.ndim - 2):
        expected = "one to three" if _MODES[mode] is None else _MODES[mode]
        raise bp.ShapeError(f"interpolate: argument input: found shape {tuple(input.shape)}, expected (n, c, *spatial) with {expected} spatial axes for {mode!r}")
    if (size is None) == (scale_factor is None):
        raise bp.ArgumentValueError("interpolate: arguments size and scale_factor: expected one of them")
    if align_corners is not None and mode in ("nearest", "nearest-exact", "area"):
        raise bp.ArgumentValueError(f"interpolate: argument align_corners: found {align_corners}, expected it only with linear and cubic modes")
    if recompute_scale_factor and size is not None:
        raise bp.ArgumentValueError("interpolate: argument recompute_scale_factor: found True, expected it only with scale_factor")
    if antialias and mode not in ("bilinear", "bicubic"):
        raise bp.ArgumentValueError(f"interpolate: argument antialias: found True with mode {mode!r}, expected it only with 'bilinear' and 'bicubic'")
