"""Checks of the values of tensors, where they can be read: not in a trace, nor in a transform. A compiled function makes them once, when it is traced."""

from __future__ import annotations

from .. import _core
from ._ops import NAMESPACE, ops

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .._core import Tensor

op = getattr(ops, NAMESPACE)


def is_readable(x: Tensor) -> bool:
    """Can the values of x be read?"""
    return _core.has_values(x) and not _core.transforms_of(x)


def require(name: str, argument: str, x: Tensor, good: Tensor, expected: str) -> bool:
    """Refuses values of x where `good` does not hold. False where they cannot be read."""
    if not is_readable(good):
        return False
    if not bool(good.all()):
        bad = op.broadcast_to(x.detach(), good.shape)[~good]
        found = f"found {bad[0].item()}" if is_readable(bad) else "found others"
        raise _core.ArgumentValueError(f"{name}: argument {argument}: {found}, expected {expected}")
    return True
