"""Slices whose starts are tensors, and windows that overlap."""

from __future__ import annotations

from .. import _core
from .._calls._ops import NAMESPACE, ops
from .._calls._tensor_argument import given_tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from .._core import Tensor

__all__ = ["dynamic_slice", "dynamic_update_slice", "sliding_window_view"]

op = getattr(ops, NAMESPACE)


def dynamic_slice(operand: Any, start_indices: Any, slice_sizes: Sequence[int]) -> Tensor:
    """The part of this size that begins at start_indices, which may be tensors: one start and one size for each axis.

    A start that would let the part reach beyond the tensor is moved, as in JAX, so that the part lies inside. Negative starts count
    from the end. slice_sizes: ints. Errors: ShapeError for another number of starts or sizes, or a size beyond that of the axis.
    """
    x = given_tensor("dynamic_slice", "operand", operand)
    sizes = tuple(slice_sizes)
    starts = _starts("dynamic_slice", x, start_indices, sizes)
    for axis, (start, size) in enumerate(zip(starts, sizes)):
        if size != x.shape[axis]:
            x = op.take(x, start + op.arange(0, size, 1, dtype=_core.int64, device=x.device), axis=axis)
    return x


def dynamic_update_slice(operand: Any, update: Any, start_indices: Any) -> Tensor:
    """operand with `update` in the place that begins at start_indices, as dynamic_slice finds it. Returns a new tensor."""
    x = given_tensor("dynamic_update_slice", "operand", operand)
    update = given_tensor("dynamic_update_slice", "update", update, (x,))
    if update.ndim != x.ndim:
        raise _core.ShapeError(f"dynamic_update_slice: argument update: found {update.ndim} axes, expected {x.ndim}, as operand has")
    starts = _starts("dynamic_update_slice", x, start_indices, tuple(update.shape))
    index = []
    for axis, (start, size) in enumerate(zip(starts, update.shape)):
        places = start + op.arange(0, size, 1, dtype=_core.int64, device=x.device)
        index.append(op.reshape(places, (size,) + (1,) * (x.ndim - 1 - axis)))
    if not index:
        return op.cast(update, x.dtype) + 0 if update.dtype != x.dtype else op.copy(update)
    result = op.copy(x)
    result[tuple(index)] = op.cast(update, x.dtype) if update.dtype != x.dtype else update
    return result


def _starts(function, x, start_indices, sizes):
    """A start for each axis, as an integer tensor without axes, inside of the tensor."""
    given = start_indices if isinstance(start_indices, (tuple, list)) else list(start_indices) if x.ndim else []
    if len(given) != x.ndim or len(sizes) != x.ndim:
        raise _core.ShapeError(f"{function}: found {len(given)} starts and {len(sizes)} sizes, expected {x.ndim}, one for each axis")
    starts = []
    for axis, (start, size) in enumerate(zip(given, sizes)):
        if not 0 <= size <= x.shape[axis]:
            raise _core.ShapeError(f"{function}: found size {size} for axis {axis}, expected at most {x.shape[axis]}")
        start = start if isinstance(start, _core.Tensor) else _core.asarray(start)
        if start.ndim or start.dtype.kind not in ("signed integer", "unsigned integer"):
            raise _core.DtypeError(f"{function}: argument start_indices: found {start.dtype.name} of shape {tuple(start.shape)}, expected integers without axes")
        start = op.cast(start, _core.int64).to(x.device)
        start = op.where(start < 0, start + x.shape[axis], start)
        starts.append(op.clip(start, 0, x.shape[axis] - size))
    return starts


def sliding_window_view(x: Any, window_shape: int | Sequence[int], axis: int | Sequence[int] | None = None) -> Tensor:
    """All windows of this size, as the last axes: a view. The windowed axes are as many elements shorter as all positions need.

    window_shape: an int, or one for each axis in `axis` (all axes without it). Errors: ShapeError for windows beyond the tensor.
    """
    x = given_tensor("sliding_window_view", "x", x)
    windows = (window_shape,) if hasattr(window_shape, "__index__") else tuple(window_shape)
    axes = tuple(range(x.ndim)) if axis is None else (axis,) if hasattr(axis, "__index__") else tuple(axis)
    if len(windows) != len(axes):
        raise _core.ShapeError(f"sliding_window_view: argument window_shape: found {len(windows)} sizes, expected {len(axes)}, one for each axis")
    ndim = x.ndim
    for size, along in zip(windows, axes):
        if not -ndim <= along < ndim:
            raise _core.OutOfRangeError(f"sliding_window_view: argument axis: found {along}, expected from {-ndim} to {ndim - 1}")
        if not 0 <= size <= x.shape[along % ndim]:
            raise _core.ShapeError(f"sliding_window_view: found a window of {size} for axis {along} of size {x.shape[along % ndim]}")
        x = x.unfold(along % ndim, size, 1)
    return x
