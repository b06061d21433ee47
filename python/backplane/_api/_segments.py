"""segment_softmax, and the reductions of segments without a number of segments."""

from __future__ import annotations

from .. import _core
from .._calls._ops import NAMESPACE, ops
from .._calls._tensor_argument import given_tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .._core import Tensor

__all__ = ["segment_softmax"]

op = getattr(ops, NAMESPACE)


def segment_softmax(data: Any, segment_ids: Any, num_segments: int | None = None) -> Tensor:
    """The softmax along axis 0 of the slices of data with the same number in segment_ids. Attention over a graph's edges needs it.

    data: (n, *), floating. segment_ids: (n), integers from 0 on. num_segments: 1 more than the largest of these if None; then their
    values are read. Slices with a number out of range are 0. Returns a tensor like data.
    """
    data = given_tensor("segment_softmax", "data", data)
    ids = given_tensor("segment_softmax", "segment_ids", segment_ids, (data,))
    if "floating" not in data.dtype.kind:
        data = op.cast(data, _core.default_float())
    count = segment_count("segment_softmax", ids) if num_segments is None else num_segments
    inside = (ids >= 0) & (ids < count)
    safe = op.where(inside, ids, 0)
    if count == 0 or data.size == 0:
        return op.zeros_like(data)
    most = op.stop_gradient(op.segment_max(data, ids, count))
    e = op.exp(data - op.take(most, safe, axis=0))
    e = op.where(op.reshape(inside, (-1,) + (1,) * (data.ndim - 1)), e, 0)
    return e / op.take(op.where(op.segment_sum(e, ids, count) == 0, 1, op.segment_sum(e, ids, count)), safe, axis=0)


def segment_count(function: str, ids: Tensor) -> int:
    """1 more than the largest number. Errors: ArgumentValueError where values cannot be read."""
    if ids.size == 0:
        return 0
    if not _core.has_values(ids):
        raise _core.ArgumentValueError(f"{function}: argument num_segments: found None in a traced function, expected an int: the shape of the result depends on it")
    return max(int(_core.readable(op.max(ids), function).item()) + 1, 0)


def counted(name: str) -> Any:
    """The op of this name, without num_segments."""

    def form(data, segment_ids, num_segments=None, **more):
        if num_segments is not None or more:
            return NotImplemented
        ids = given_tensor(name, "segment_ids", segment_ids)
        return getattr(op, name)(data, ids, segment_count(name, ids))

    return form
