"""Resize, Upsample, and sampling at the points of a grid."""

import numpy as np

import backplane as bp

from ._shape_ops import whole_axis
from ._table import op, refuse


@op("Upsample", 7)
def upsample_by_attribute(x, *, mode="nearest", scales):
    return upsample(x, np.array(scales, np.float32), mode=mode)


@op("Upsample", 9, static=(1,))
def upsample(x, scales, *, mode="nearest"):
    axes = [axis for axis, scale in enumerate(scales) if float(scale) != 1.0]  # the sizes of others may be dynamic
    old = [int(x.shape[axis]) for axis in axes]
    rows = [_Axis(size, int(np.floor(size * float(scales[axis]))), float(scales[axis]), "asymmetric", 0, 1) for axis, size in zip(axes, old)]
    return _resized(x, axes, rows, mode, "floor" if mode == "nearest" else "", -0.75, False, False, 0.0)


@op("Resize", 10, static=(1,))
def resize_of_old_models(x, scales, *, mode="nearest"):
    return upsample(x, scales, mode=mode)


@op("Resize", 11, static=(1, 2, 3))
def resize(
    x, roi=None, scales=None, sizes=None, *, antialias=0, axes=None, coordinate_transformation_mode="half_pixel", cubic_coeff_a=-0.75,
    exclude_outside=0, extrapolation_value=0.0, keep_aspect_ratio_policy="stretch", mode="nearest", nearest_mode="round_prefer_floor"
):  # fmt: skip
    axes = [whole_axis(axis, x.ndim) for axis in axes] if axes is not None else list(range(x.ndim))
    roi = None if roi is None or roi.size == 0 else roi.astype(np.float64)
    scales = None if scales is None or scales.size == 0 else [float(scale) for scale in scales]
    if scales is not None and coordinate_transformation_mode not in ("tf_crop_and_resize", "tf_half_pixel_for_nn"):
        axes = [axis for axis, scale in zip(axes, scales) if scale != 1.0]  # the sizes of others may be dynamic
        scales = [scale for scale in scales if scale != 1.0]
    old = [int(x.shape[axis]) for axis in axes]
    if scales is not None:
        new = [int(np.floor(size * scale)) for size, scale in zip(old, scales)]
    else:
        new = [int(size) for size in sizes]
        scales = [b / a for a, b in zip(old, new)]
        if keep_aspect_ratio_policy != "stretch":
            scale = (min if keep_aspect_ratio_policy == "not_larger" else max)(scales)
            scales, new = [scale] * len(axes), [int(np.floor(size * scale + 0.5)) for size in old]
    if coordinate_transformation_mode == "tf_crop_and_resize" and roi is not None and sizes is None:
        half = len(axes)
        new = [int(np.floor(size * (roi[half + i] - roi[i]) * scale)) for i, (size, scale) in enumerate(zip(old, scales))]
    rows = []
    for i, (a, b, scale) in enumerate(zip(old, new, scales)):
        low, high = (0.0, 1.0) if roi is None else (roi[i], roi[len(axes) + i])
        rows.append(_Axis(a, b, scale, coordinate_transformation_mode, low, high))
    return _resized(x, axes, rows, mode, nearest_mode, cubic_coeff_a, bool(exclude_outside), bool(antialias), extrapolation_value)


class _Axis:
    """One axis: sizes before and after, and the place in the old axis of each new element."""

    def __init__(self, old: int, new: int, scale: float, transformation: str, low: float, high: float) -> None:
        self.old, self.new, self.scale = old, new, scale
        self.crops = transformation == "tf_crop_and_resize"
        at = np.arange(new, dtype=np.float64)
        exact = old * scale
        if transformation == "asymmetric":
            self.places = at / scale
        elif transformation == "half_pixel":
            self.places = (at + 0.5) / scale - 0.5
        elif transformation == "half_pixel_symmetric":
            self.places = old / 2 * (1 - new / exact) + (at + 0.5) / scale - 0.5
        elif transformation == "pytorch_half_pixel":
            self.places = (at + 0.5) / scale - 0.5 if exact > 1 else np.full(new, -0.5)
        elif transformation == "align_corners":
            self.places = at * (old - 1) / (exact - 1) if exact != 1 else np.zeros(new)
        elif self.crops:
            self.places = low * (old - 1) + at * (high - low) * (old - 1) / (new - 1) if new > 1 else np.full(new, 0.5 * (low + high) * (old - 1))
        elif transformation == "tf_half_pixel_for_nn":
            self.places = (at + 0.5) / scale
        else:
            refuse(f"the coordinate_transformation_mode {transformation} is not supported")

    @property
    def is_unchanged(self) -> bool:
        return self.old == self.new and bool(np.array_equal(self.places, np.arange(self.new)))

    def nearest(self, rounding: str) -> np.ndarray:
        places = self.places
        if rounding == "round_prefer_floor":
            found = np.ceil(places - 0.5)
        elif rounding == "round_prefer_ceil":
            found = np.floor(places + 0.5)
        else:
            found = np.floor(places) if rounding == "floor" else np.ceil(places)
        return np.clip(found, 0, self.old - 1).astype(np.int64)

    def matrix(self, mode: str, cubic: float, exclude_outside: bool, antialias: bool) -> np.ndarray:
        """The weights of the old elements for each new one: (new, old)."""
        factor = min(self.scale, 1.0) if antialias else 1.0
        reach = (1 if mode == "linear" else 2) / factor
        first = np.floor(self.places - reach).astype(np.int64) + 1
        count = int(np.ceil(2 * reach))
        taps = first[:, None] + np.arange(count + (1 if antialias else 0))
        distance = np.abs(self.places[:, None] - taps) * factor
        weights = np.maximum(0.0, 1 - distance) if mode == "linear" else _cubic(distance, cubic)
        if exclude_outside:
            weights = weights * ((taps >= 0) & (taps < self.old))
        if antialias or exclude_outside:
            weights = weights / weights.sum(axis=1, keepdims=True)
        matrix = np.zeros((self.new, self.old))
        np.add.at(matrix, (np.arange(self.new)[:, None], np.clip(taps, 0, self.old - 1)), weights)
        return matrix


def _cubic(distance, a):
    near = ((a + 2) * distance - (a + 3)) * distance**2 + 1
    far = ((a * distance - 5 * a) * distance + 8 * a) * distance - 4 * a
    return np.where(distance <= 1, near, np.where(distance < 2, far, 0.0))


def _resized(x, axes, rows, mode, rounding, cubic, exclude_outside, antialias, beyond):
    outside = None
    for axis, row in zip(axes, rows):
        if row.crops:
            row_outside = (row.places < 0) | (row.places > row.old - 1)
            if row_outside.any():
                row_outside = row_outside.reshape((-1,) + (1,) * (x.ndim - 1 - axis))
                outside = row_outside if outside is None else outside | row_outside
        if row.is_unchanged:
            continue
        if mode == "nearest":
            x = bp.take(x, _constant(row.nearest(rounding), x), axis=axis)
        else:
            x = _times(x, row.matrix(mode, cubic, exclude_outside, antialias), axis)
    if outside is None:
        return x
    return bp.where(_constant(outside, x), bp.full((), beyond, dtype=x.dtype, device=x.device), x)


def _constant(array, x):
    """A tensor of numbers that follow from sizes; a list, which a trace keeps as a constant of its own."""
    return bp.asarray(array.tolist(), dtype=getattr(bp, array.dtype.name), device=x.device)


def _times(x, matrix, axis):
    """The weighted sums along an axis. Up to four elements of one axis make each new one: two, or four, gathered rows."""
    is_floating = bp.isdtype(x.dtype, "real floating")
    wide = x if is_floating and x.dtype not in (bp.float16, bp.bfloat16) else bp.cast(x, bp.float32)
    taps = max(1, int((matrix != 0).sum(axis=1).max()))
    order = np.argsort(matrix == 0, axis=1, kind="stable")[:, :taps]
    found = None
    for tap in range(taps):
        places = order[:, tap]
        weights = bp.reshape(_constant(matrix[np.arange(len(matrix)), places].astype(np.float64), x), (-1,) + (1,) * (x.ndim - 1 - axis))
        part = bp.take(wide, _constant(places.astype(np.int64), x), axis=axis) * bp.cast(weights, wide.dtype)
        found = part if found is None else found + part
    if is_floating:
        return bp.cast(found, x.dtype)
    return bp.cast(found, x.dtype)


@op("GridSample", 16)
def grid_sample(x, grid, *, align_corners=0, mode="bilinear", padding_mode="zeros"):
    mode = {"bilinear": "bilinear", "linear": "bilinear", "bicubic": "bicubic", "cubic": "bicubic", "nearest": "nearest"}[mode]
    return bp.grid_sample(x, bp.cast(grid, x.dtype), mode=mode, padding_mode=padding_mode, align_corners=bool(align_corners))


@op("AffineGrid", 20, static=(1,))
def affine_grid(theta, size, *, align_corners=0):
    return bp.affine_grid(theta, [int(n) for n in size], align_corners=bool(align_corners))


