"""The norms whose second argument PyTorch reads otherwise: layer_norm and rms_norm."""

from __future__ import annotations

from .. import _core
from .._calls._ops import NAMESPACE, ops
from .._calls._tensor_argument import takes_dim, takes_tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from .._core import Operand, Tensor

op = getattr(ops, NAMESPACE)

__all__ = ["layer_norm", "rms_norm"]


@takes_dim
@takes_tensor
def layer_norm(
    x: Tensor, weight: Operand | None = None, bias: Operand | None = None, *, axis: int | Sequence[int] = (-1,), eps: float = 1e-05
) -> Tensor:
    """(x - mean) / sqrt(variance + eps) over axes, scaled by weight and shifted by bias, which broadcast."""
    _refuse_sizes("layer_norm", weight)
    return op.layer_norm(x, weight, bias, axis=axis, eps=eps)


@takes_dim
@takes_tensor
def rms_norm(x: Tensor, weight: Operand | None = None, *, axis: int | Sequence[int] = (-1,), eps: float = 1e-06) -> Tensor:
    """x / sqrt(mean(x²) + eps) over axes, scaled by weight, which broadcasts."""
    _refuse_sizes("rms_norm", weight)
    return op.rms_norm(x, weight, axis=axis, eps=eps)


def _refuse_sizes(function, weight):
    """A list of ints is PyTorch's normalized_shape. As a weight, it would multiply by the sizes."""
    if isinstance(weight, (list, tuple)) and weight and all(isinstance(size, int) for size in weight):
        raise _core.ArgumentTypeError(
            f"{function}: argument weight: found {weight!r}, expected a Tensor. Fix: sizes of the last axes, PyTorch's normalized_shape, go to "
            f"backplane.nn.functional.{function}(x, {weight!r}); here, pass axis={list(range(-len(weight), 0))}"
        )
