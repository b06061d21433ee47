"""Sets of values under NumPy's and PyTorch's names."""

from __future__ import annotations

from ._manipulation_functions import ravel
from ._ops import NAMESPACE, ops
from ._tensor_argument import require_tensor, takes_tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ._core import Tensor

op = getattr(ops, NAMESPACE)

__all__ = ["intersect1d", "setdiff1d", "union1d", "unique"]


@takes_tensor
def unique(x: Tensor, /, return_index: bool = False, return_inverse: bool = False, return_counts: bool = False) -> Any:
    """The elements of x, each once and in rising order; each NaN is one of its own.

    On request a tuple with them: the first positions of each in x flattened, positions that rebuild x from them, and how often
    each occurs.
    """
    if not (return_index or return_inverse or return_counts):
        return op.unique_values(x)
    values, first, inverse, counts = op.unique_all(x)
    wanted = zip((return_index, return_inverse, return_counts), (first, inverse, counts))
    return (values, *(found for wish, found in wanted if wish))


@takes_tensor
def union1d(x: Tensor, y: Tensor, /) -> Tensor:
    """The elements of x or y, each once and in rising order."""
    return op.unique_values(op.concat([ravel(x), ravel(y)], axis=0))


@takes_tensor
def intersect1d(x: Tensor, y: Tensor, /) -> Tensor:
    """The elements of both x and y, each once and in rising order."""
    require_tensor("intersect1d", "y", y)
    once = op.unique_values(x)
    return once[op.isin(once, y)]


@takes_tensor
def setdiff1d(x: Tensor, y: Tensor, /) -> Tensor:
    """The elements of x that y has not, each once and in rising order."""
    require_tensor("setdiff1d", "y", y)
    once = op.unique_values(x)
    return once[op.isin(once, y, invert=True)]
