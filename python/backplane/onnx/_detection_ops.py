"""Boxes and regions of images: suppression of overlapping boxes, regions of interest, deformable convolution."""

import numpy as np

import backplane as bp

from ._index_ops import gather
from ._table import op, refuse
from ._values import host_array, to_tensor


def _overlaps(box, boxes):
    """Intersection over union of a box (y1, x1, y2, x2) and others."""
    low, high = np.maximum(box[:2], boxes[:, :2]), np.minimum(box[2:], boxes[:, 2:])
    both = np.prod(np.maximum(high - low, 0), axis=1)
    total = np.prod(box[2:] - box[:2]) + np.prod(boxes[:, 2:] - boxes[:, :2], axis=1) - both
    return np.divide(both, total, out=np.zeros_like(both), where=total > 0)


@op("NonMaxSuppression", 10, static=(2, 3, 4))
def non_max_suppression(boxes, scores, most=None, overlap=None, least_score=None, *, center_point_box=0):
    """Rows (batch, class, box). The number of rows depends on values, so it cannot be traced."""
    corners, values = host_array(boxes, "the result's shape"), host_array(scores, "the result's shape")
    most = 0 if most is None else int(most.reshape(-1)[0])
    overlap = 0.0 if overlap is None else float(overlap.reshape(-1)[0])
    if center_point_box:
        centers, halves = corners[..., [1, 0]], corners[..., [3, 2]] / 2
        corners = np.concatenate([centers - halves, centers + halves], axis=-1)
    else:
        first, second = corners[..., :2], corners[..., 2:]
        corners = np.concatenate([np.minimum(first, second), np.maximum(first, second)], axis=-1)
    rows = []
    for batch, of_batch in enumerate(values):
        for kind, row in enumerate(of_batch):
            order = np.argsort(-row, kind="stable")
            if least_score is not None:
                order = order[row[order] > float(least_score.reshape(-1)[0])]
            kept = 0
            while len(order) and kept < most:
                best, order = order[0], order[1:]
                rows.append((batch, kind, best))
                kept += 1
                order = order[_overlaps(corners[batch, best], corners[batch, order]) <= overlap]
    return to_tensor(np.array(rows, dtype=np.int64).reshape(-1, 3), boxes.device)


def _bilinear(planes, y, x):
    """The four neighbours of points in planes, and their weights: planes (N, C, H, W), points (N, P) -> values (N, C, P, 4), weights (N, 1, P, 4)."""
    n, c, h, w = planes.shape
    flat = bp.reshape(planes, (n, c, h * w))
    y0, x0 = bp.floor(y), bp.floor(x)
    values, weights = [], []
    for dy in (0, 1):
        for dx in (0, 1):
            py, px = y0 + dy, x0 + dx
            weight = (1 - bp.abs(y - py)) * (1 - bp.abs(x - px))
            inside = (py >= 0) & (py <= h - 1) & (px >= 0) & (px <= w - 1)
            places = bp.cast(bp.clip(py, 0, h - 1) * w + bp.clip(px, 0, w - 1), bp.int64)
            places = bp.broadcast_to(bp.expand_dims(places, axis=1), (n, c, places.shape[1]))
            values.append(bp.take_along_axis(flat, places, axis=2))
            weights.append(bp.expand_dims(bp.where(inside, weight, bp.zeros_like(weight)), axis=1))
    return bp.stack(values, axis=-1), bp.stack(weights, axis=-1)


def _region(plane, box, height, width, counts, mode):
    """One region: plane (1, C, H, W), box (y, x, height, width) as tensors -> (C, height, width)."""
    h, w = plane.shape[2:]
    points = []
    for start, extent, n, count, size in ((box[0], box[2], height, counts[0], h), (box[1], box[3], width, counts[1], w)):
        at = (bp.arange(n * count, dtype=plane.dtype, device=plane.device) + 0.5) / count
        places = start + at * (extent / n)
        is_outside = (places < -1) | (places > size)
        points.append((bp.clip(places, 0, size - 1), is_outside))
    (y, y_outside), (x, x_outside) = points
    ny, nx = y.shape[0], x.shape[0]
    grid_y = bp.reshape(bp.broadcast_to(bp.expand_dims(y, axis=1), (ny, nx)), (1, -1))
    grid_x = bp.reshape(bp.broadcast_to(bp.expand_dims(x, axis=0), (ny, nx)), (1, -1))
    values, weights = _bilinear(plane, grid_y, grid_x)
    products = values * weights
    outside = bp.reshape(bp.expand_dims(y_outside, axis=1) | bp.expand_dims(x_outside, axis=0), (1, 1, -1, 1))
    products = bp.where(outside, bp.zeros_like(products), products)
    found = bp.amax(products, axis=-1) if mode == "max" else bp.sum(products, axis=-1)
    found = bp.reshape(found, (-1, height, counts[0], width, counts[1]))
    return bp.amax(found, axis=(2, 4)) if mode == "max" else bp.mean(found, axis=(2, 4))


@op("RoiAlign", 10)
def roi_align_of_old_models(x, rois, batch, *, mode="avg", output_height=1, output_width=1, sampling_ratio=0, spatial_scale=1.0):
    return roi_align(
        x, rois, batch, coordinate_transformation_mode="output_half_pixel", mode=mode, output_height=output_height, output_width=output_width,
        sampling_ratio=sampling_ratio, spatial_scale=spatial_scale,
    )  # fmt: skip


@op("RoiAlign", 16)
def roi_align(
    x, rois, batch, *, coordinate_transformation_mode="half_pixel", mode="avg", output_height=1, output_width=1, sampling_ratio=0, spatial_scale=1.0
):
    half = coordinate_transformation_mode == "half_pixel"
    boxes = rois * spatial_scale - (0.5 if half else 0.0)
    found = []
    for i in range(rois.shape[0]):
        extents = [boxes[i, 3] - boxes[i, 1], boxes[i, 2] - boxes[i, 0]]
        if not half:
            extents = [bp.maximum(extent, 1.0) for extent in extents]
        counts = [sampling_ratio] * 2
        if sampling_ratio <= 0:
            sizes = [float(host_array(extent, "the number of samples (sampling_ratio=0)")) for extent in extents]
            counts = [max(1, int(np.ceil(size / n))) for size, n in zip(sizes, (output_height, output_width))]
        plane = gather(x, bp.reshape(batch[i], (1,)), axis=0)
        found.append(_region(plane, (boxes[i, 1], boxes[i, 0], *extents), output_height, output_width, counts, mode))
    if not found:
        return bp.zeros((0, x.shape[1], output_height, output_width), dtype=x.dtype, device=x.device)
    return bp.stack(found)


@op("MaxRoiPool", 1)
def max_roi_pool(x, rois, *, pooled_shape, spatial_scale=1.0):
    """Maxima over the cells of a grid in each region. It reads the regions, so it cannot be traced."""
    found = []
    for row in host_array(rois, "the regions"):
        batch = int(row[0])
        x0, y0, x1, y1 = (int(np.floor(v * spatial_scale + 0.5)) for v in row[1:])
        extents = max(y1 - y0 + 1, 1), max(x1 - x0 + 1, 1)
        cells = []
        for i in range(pooled_shape[0]):
            for j in range(pooled_shape[1]):
                (top, bottom), (left, right) = (
                    (min(max(int(np.floor(k * extent / n)) + start, 0), size), min(max(int(np.ceil((k + 1) * extent / n)) + start, 0), size))
                    for k, extent, n, start, size in ((i, extents[0], pooled_shape[0], y0, x.shape[2]), (j, extents[1], pooled_shape[1], x0, x.shape[3]))
                )
                is_empty = bottom <= top or right <= left
                cells.append(bp.zeros((x.shape[1],), dtype=x.dtype, device=x.device) if is_empty else bp.amax(x[batch, :, top:bottom, left:right], axis=(1, 2)))
        found.append(bp.reshape(bp.stack(cells, axis=1), (x.shape[1], *pooled_shape)))
    return bp.stack(found) if found else bp.zeros((0, x.shape[1], *pooled_shape), dtype=x.dtype, device=x.device)


@op("DeformConv", 19)
def deformable_convolution(x, w, offset, b=None, mask=None, *, dilations=None, group=1, kernel_shape=None, offset_group=1, pads=None, strides=None):
    if x.ndim != 4:
        refuse(f"a deformable convolution over {x.ndim - 2} axes is not supported, only over 2")
    n, c = x.shape[:2]
    kh, kw = w.shape[2:]
    oh, ow = offset.shape[2:]
    dilations, pads, strides = dilations or [1, 1], pads or [0] * 4, strides or [1, 1]
    moved = bp.reshape(offset, (n, offset_group, kh * kw, 2, oh, ow))
    columns = []
    for g in range(offset_group):
        each = c // offset_group
        plane = bp.slice(x, [1], [g * each], [(g + 1) * each], [1])
        taps = []
        for tap in range(kh * kw):
            row = bp.reshape(bp.arange(oh, dtype=x.dtype, device=x.device) * strides[0] - pads[0] + tap // kw * dilations[0], (-1, 1))
            column = bp.arange(ow, dtype=x.dtype, device=x.device) * strides[1] - pads[1] + tap % kw * dilations[1]
            y, at = moved[:, g, tap, 0] + row, moved[:, g, tap, 1] + column
            values, weights = _bilinear(plane, bp.reshape(y, (n, -1)), bp.reshape(at, (n, -1)))
            found = bp.sum(values * weights, axis=-1)
            if mask is not None:
                found = found * bp.reshape(mask[:, g * kh * kw + tap], (n, 1, -1))
            taps.append(found)
        columns.append(bp.stack(taps, axis=2))  # (n, each, taps, places)
    columns = bp.reshape(bp.concat(columns, axis=1), (n, group, c // group * kh * kw, oh * ow))
    weight = bp.reshape(w, (group, w.shape[0] // group, -1))
    y = bp.reshape(bp.matmul(weight, columns), (n, w.shape[0], oh, ow))
    return y if b is None else y + bp.reshape(b, (-1, 1, 1))
