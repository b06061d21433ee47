"""Where elements are that are not zero, and between which boundaries values lie."""

from __future__ import annotations

from .. import _core
from ._manipulation_functions import normalized_axis, ravel
from .._calls._ops import NAMESPACE, ops
from .._calls._tensor_argument import given_tensor, takes_tensor
from .._runtime._wraps import named_tuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .._core import Tensor

op = getattr(ops, NAMESPACE)

__all__ = ["bucketize", "compress", "flatnonzero", "kthvalue", "nonzero", "topk"]


@takes_tensor
def nonzero(x: Tensor, *, as_tuple: bool = True) -> tuple[Tensor, ...]:
    """The positions of the elements other than 0: for each axis a vector, together in row-major order.

    as_tuple: PyTorch's word for that; the positions as rows of one tensor, which it gives without, are argwhere's.
    """
    if not as_tuple:
        raise _core.ArgumentValueError("nonzero: argument as_tuple: found False, expected True; use argwhere for the positions as rows")
    if x.ndim == 0:
        raise _core.ShapeError("nonzero: found a tensor of no dimensions, expected one or more; use backplane.reshape(x, (1,))")
    rows = op.argwhere(x)
    return tuple(op.select(rows, 1, axis) for axis in range(x.ndim))


@takes_tensor
def flatnonzero(x: Tensor) -> Tensor:
    """The positions of the nonzero elements, in row-major order."""
    return op.select(op.argwhere(op.reshape(x, [-1])), 1, 0)


@takes_tensor
def bucketize(x: Tensor, boundaries: Tensor, *, right: bool = False) -> Tensor:
    """For each element, the number of ascending boundaries below it; with right, the number of boundaries not above it."""
    boundaries = given_tensor("bucketize", "boundaries", boundaries, (x,))
    return op.searchsorted(boundaries, x, side="right" if right else "left")


@takes_tensor
def topk(x: Tensor, k: int, axis: int | None = None, largest: bool = True, sorted: bool = True, *, dim: int | None = None) -> Any:
    """The k largest (or smallest) elements along axis (the last one), in order whether or not sorted asks for it, and their positions.

    A pair with values and indices. A number is taken for a vector of one.
    """
    if dim is not None:
        if axis is not None:
            raise _core.ArgumentTypeError("topk: found dim and axis, expected one of them")
        axis = dim
    found = op.topk(x if x.ndim else op.reshape(x, [1]), k, -1 if axis is None else axis, largest)
    return found if x.ndim or k != 1 else type(found)(op.reshape(part, []) for part in found)


@takes_tensor
def kthvalue(x: Tensor, k: int, dim: int = -1, keepdim: bool = False) -> Any:
    """PyTorch's k-th smallest elements along dim, counted from 1, and their positions: a pair with values and indices."""
    axis = normalized_axis("kthvalue", dim, x.ndim, "dim")
    if not hasattr(k, "__index__") or not 1 <= k.__index__() <= x.shape[axis]:
        raise _core.ArgumentValueError(f"kthvalue: argument k: found {k!r}, expected 1 to {x.shape[axis]}, the size of axis {axis}")
    place = op.slice(op.argsort(x, axis), [axis], [k - 1], [k.__index__()], [1])
    found = (op.take_along_axis(x, place, axis=axis), place)
    return named_tuple("kthvalue", ("values", "indices"))(*(found if keepdim else (op.squeeze(part, [axis]) for part in found)))


@takes_tensor
def compress(condition: Tensor, x: Tensor, axis: int | None = None) -> Tensor:
    """The slices of x along axis where the vector condition is true. Without axis, the elements of x flattened."""
    x = given_tensor("compress", "x", x)
    if condition.ndim != 1:
        raise _core.ShapeError(f"compress: argument condition: found {condition.ndim} dimensions, expected a vector")
    x, axis = (ravel(x), 0) if axis is None else (x, normalized_axis("compress", axis, x.ndim))
    if condition.size > x.shape[axis]:
        raise _core.ShapeError(f"compress: argument condition: found {condition.size} elements for an axis of size {x.shape[axis]}")
    return op.take(x, true_places(condition), axis=axis)


def true_places(mask):
    """The positions of a vector's true elements; in a trace those of one from outside, whose number is known there."""
    if _core.has_values(mask) or _core.transforms_of(mask):
        return op.argwhere(mask)[:, 0]
    return _core.asarray([place for place, chosen in enumerate(mask.tolist()) if chosen], dtype=_core.int64, device=mask.device)
