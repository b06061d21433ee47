"""Products of vectors in NumPy's forms; what the array API has under linalg is in linalg.py."""

from __future__ import annotations

from ._manipulation_functions import ravel
from ._ops import NAMESPACE, ops
from ._tensor_argument import require_tensor, takes_tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ._core import Tensor

op = getattr(ops, NAMESPACE)

__all__ = ["dot", "inner", "vdot"]


@takes_tensor
def dot(x: Tensor, y: Tensor, /) -> Tensor:
    """NumPy's product: of vectors their sum of products (without conjugates), of matrices matmul, with a number multiply.

    Of more axes the sums over x's last and y's last but one.
    """
    require_tensor("dot", "y", y)
    if x.ndim == 0 or y.ndim == 0:
        return op.multiply(x, y)
    if y.ndim <= 2:
        return op.matmul(x, y)
    from .linalg import tensordot

    return tensordot(x, y, axes=((-1,), (-2,)))


@takes_tensor
def inner(x: Tensor, y: Tensor, /) -> Tensor:
    """Sums of products over the last axes of x and y, without conjugates; with a number multiply."""
    require_tensor("inner", "y", y)
    if x.ndim == 0 or y.ndim == 0:
        return op.multiply(x, y)
    from .linalg import tensordot

    return tensordot(x, y, axes=((-1,), (-1,)))


@takes_tensor
def vdot(x: Tensor, y: Tensor, /) -> Tensor:
    """The sum of products of x's conjugate and y, both flattened."""
    require_tensor("vdot", "y", y)
    return op.vecdot(ravel(x), ravel(y))
