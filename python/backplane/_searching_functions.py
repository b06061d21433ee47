"""Where elements are that are not zero, and between which boundaries values lie."""

from __future__ import annotations

from . import _core
from ._joining_functions import unstack
from ._manipulation_functions import ravel
from ._ops import NAMESPACE, ops
from ._tensor_argument import require_tensor, takes_tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ._core import Tensor

op = getattr(ops, NAMESPACE)

__all__ = ["bucketize", "flatnonzero", "nonzero", "topk"]


@takes_tensor
def nonzero(x: Tensor, /) -> tuple[Tensor, ...]:
    """The positions of the elements other than 0: for each axis a vector, together in row-major order."""
    if x.ndim == 0:
        raise _core.ShapeError("nonzero: found a tensor of no dimensions, expected one or more; use backplane.reshape(x, (1,))")
    return unstack(op.argwhere(x), axis=1)


@takes_tensor
def flatnonzero(x: Tensor, /) -> Tensor:
    """The positions, in row-major order, of the elements other than 0."""
    return nonzero(ravel(x))[0]


@takes_tensor
def bucketize(x: Tensor, boundaries: Tensor, *, right: bool = False) -> Tensor:
    """For each element the number of rising boundaries below it; with right, of those not above it."""
    require_tensor("bucketize", "boundaries", boundaries)
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
