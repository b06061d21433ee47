"""Products of vectors in NumPy's forms; what the array API has under linalg is in linalg.py."""

from __future__ import annotations

from . import _core
from ._manipulation_functions import normalized_axes, ravel
from ._ops import NAMESPACE, ops
from ._tensor_argument import given_tensor, takes_tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ._core import DType, Tensor

op = getattr(ops, NAMESPACE)

__all__ = ["dot", "inner", "norm", "vdot"]


@takes_tensor
def dot(x: Tensor, y: Tensor, /) -> Tensor:
    """NumPy's product: of vectors their sum of products (without conjugates), of matrices matmul, with a number multiply.

    Of more axes the sums over x's last and y's last but one.
    """
    y = given_tensor("dot", "y", y)
    if x.ndim == 0 or y.ndim == 0:
        return op.multiply(x, y)
    if y.ndim <= 2:
        return op.matmul(x, y)
    from .linalg import tensordot

    return tensordot(x, y, axes=((-1,), (-2,)))


@takes_tensor
def inner(x: Tensor, y: Tensor, /) -> Tensor:
    """Sums of products over the last axes of x and y, without conjugates; with a number multiply."""
    y = given_tensor("inner", "y", y)
    if x.ndim == 0 or y.ndim == 0:
        return op.multiply(x, y)
    from .linalg import tensordot

    return tensordot(x, y, axes=((-1,), (-1,)))


@takes_tensor
def norm(
    x: Tensor, p: float | str | None = "fro", dim: int | Sequence[int] | None = None, keepdim: bool = False,
    dtype: DType | None = None
) -> Tensor:
    """PyTorch's norm: (sum |x|^p)^(1/p) over dim, over all elements without one; of matrices over two axes with 'nuc' the nuclear norm.

    NumPy's, which of a matrix takes another with p, is backplane.linalg.norm.
    """
    from . import linalg

    if isinstance(p, str) and p not in ("fro", "nuc"):
        raise _core.ArgumentTypeError(f"norm: argument p: found {p!r}, expected a number, 'fro' or 'nuc'")
    x = x if dtype is None else op.cast(x, dtype)
    if p == "nuc":
        return linalg.norm(x, "nuc", tuple(range(x.ndim)) if dim is None else dim, keepdims=keepdim)
    axes = list(range(x.ndim)) if dim is None else normalized_axes("norm", dim, x.ndim, "dim")
    return linalg.vector_norm(x, axis=tuple(axes), keepdims=keepdim, ord=2 if p in (None, "fro") else p)


@takes_tensor
def vdot(x: Tensor, y: Tensor, /) -> Tensor:
    """The sum of products of x's conjugate and y, both flattened."""
    y = given_tensor("vdot", "y", y)
    return op.vecdot(ravel(x), ravel(y))
