"""PyTorch's norm; what the array API has under linalg is in linalg.py."""

from __future__ import annotations

from .. import _core
from ._manipulation_functions import normalized_axes
from .._calls._ops import NAMESPACE, ops
from .._calls._tensor_argument import takes_tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from .._core import DType, Tensor

op = getattr(ops, NAMESPACE)

__all__ = ["norm"]


@takes_tensor
def norm(
    x: Tensor, p: float | str | None = "fro", dim: int | Sequence[int] | None = None, keepdim: bool = False,
    dtype: DType | None = None
) -> Tensor:
    """PyTorch's norm: (sum |x|^p)^(1/p) over dim, over all elements without one; of matrices over two axes with 'nuc' the nuclear norm.

    NumPy's, which of a matrix takes another with p, is backplane.linalg.norm.
    """
    from .. import linalg

    if isinstance(p, str) and p not in ("fro", "nuc"):
        raise _core.ArgumentTypeError(f"norm: argument p: found {p!r}, expected a number, 'fro' or 'nuc'")
    x = x if dtype is None else op.cast(x, dtype)
    if p == "nuc":
        return linalg.norm(x, "nuc", tuple(range(x.ndim)) if dim is None else dim, keepdims=keepdim)
    axes = list(range(x.ndim)) if dim is None else normalized_axes("norm", dim, x.ndim, "dim")
    return linalg.vector_norm(x, axis=tuple(axes), keepdims=keepdim, ord=2 if p in (None, "fro") else p)
