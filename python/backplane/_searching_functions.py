"""Where elements are that are not zero, and between which boundaries values lie."""

from __future__ import annotations

from . import _core
from ._joining_functions import unstack
from ._manipulation_functions import ravel
from ._ops import NAMESPACE, ops
from ._tensor_argument import require_tensor, takes_tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ._core import Tensor

op = getattr(ops, NAMESPACE)

__all__ = ["bucketize", "flatnonzero", "nonzero"]


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
