"""Elements put in, taken out and partly ordered under NumPy's names: insert, delete, partition, argpartition, and ix_."""

from __future__ import annotations

import itertools

from .. import _core
from ._data_type_functions import isdtype
from ._manipulation_functions import normalized_axis, ravel
from .._calls._ops import NAMESPACE, ops
from ._searching_functions import true_places
from .._calls._tensor_argument import require_real, takes_tensor, tensor_like

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from .._core import Tensor

op = getattr(ops, NAMESPACE)

__all__ = ["argpartition", "delete", "insert", "ix_", "partition"]


def _along(function, x, axis):
    """x and its axis; x flattened without one."""
    return (ravel(x), 0) if axis is None else (x, normalized_axis(function, axis, x.ndim))


def _positions(function, obj, size, limit):
    """The positions that obj names, from 0 to below limit, as ints, and whether it is one alone."""
    if isinstance(obj, slice):
        return list(range(*obj.indices(size))), False
    found = _core.asarray(obj)
    if found.dtype == _core.bool:
        found = true_places(found if found.ndim == 1 else ravel(found))
    if found.size and not isdtype(found.dtype, "integral"):
        raise _core.ArgumentTypeError(f"{function}: argument obj: found {found.dtype.name}, expected integers, bools or a slice")
    places = (found if found.ndim == 1 else ravel(found)).tolist() if found.ndim else [found.item()]  # as it is: a trace would take an op
    for place in places:
        if not -size <= place < limit:
            raise _core.OutOfRangeError(f"{function}: argument obj: found position {place} for an axis of size {size}, expected {-size} to {limit - 1}")
    return [place + size if place < 0 else place for place in places], found.ndim == 0


def _part(x, axis, start, stop):
    return op.slice(x, [axis], [start], [stop], [1])


@takes_tensor
def insert(x: Tensor, obj: int | slice | Sequence[int] | Tensor, values: Any, axis: int | None = None) -> Tensor:
    """x with values, in its dtype, put before the positions obj along axis (of x flattened, without one)."""
    x, axis = _along("insert", x, axis)
    size = x.shape[axis]
    places, single = _positions("insert", obj, size, size + 1)
    values = tensor_like(values, x)
    if x.dtype.kind != "complex floating":
        require_real("insert", "values", values)
    values = op.cast(values, x.dtype)
    values = op.reshape(values, [1] * (x.ndim - values.ndim) + list(values.shape))
    if single:
        values = op.moveaxis(values, 0, axis)
    count = values.shape[axis] if len(places) == 1 else len(places)
    values = op.broadcast_to(values, [count if place == axis else n for place, n in enumerate(x.shape)])
    if len(places) == 1:
        return op.concat([_part(x, axis, 0, places[0]), values, _part(x, axis, places[0], None)], axis=axis)
    # An inserted value comes right before the element at its place; a stable sort keeps the order of equals.
    keys = op.concat([op.multiply(_core.asarray(places, dtype=_core.int64, device=x.device), 2),
                      op.iota(size, start=1, step=2, device=x.device)], axis=0)  # fmt: skip
    return op.take(op.concat([values, x], axis=axis), op.argsort(keys), axis=axis)


@takes_tensor
def delete(x: Tensor, obj: int | slice | Sequence[int] | Tensor, axis: int | None = None) -> Tensor:
    """x without the elements at the positions obj along axis. Without axis, x is flattened first."""
    x, axis = _along("delete", x, axis)
    size = x.shape[axis]
    places, _ = _positions("delete", obj, size, size)
    runs = _runs(sorted(set(places)), size)
    if len(runs) <= _MOST_RUNS:
        parts = [_part(x, axis, start, stop) for start, stop in runs]
        return op.concat(parts, axis=axis) if len(parts) > 1 else op.copy(parts[0])
    keep = bytearray(b"\1") * size
    for place in places:
        keep[place] = 0
    import array  # needed seldom, and slow to import

    kept = array.array("q", itertools.compress(range(size), keep))
    return op.take(x, _core.asarray(kept, dtype=_core.int64, device=x.device), axis=axis)


_MOST_RUNS = 64


def _runs(places, size):
    """What the places, in order, leave of an axis, as starts and stops."""
    runs, start = [], 0
    for place in places:
        if place > start:
            runs.append((start, place))
        start = place + 1
    return [*runs, (start, size)] if start < size or not runs else runs


def _check_kth(function, kth, size):
    for place in kth if hasattr(kth, "__iter__") else [kth]:
        if not hasattr(place, "__index__"):
            raise _core.ArgumentTypeError(f"{function}: argument kth: found {kth!r}, expected an integer or several")
        if not -size <= place.__index__() < size:
            raise _core.OutOfRangeError(f"{function}: argument kth: found {place} for an axis of size {size}")


@takes_tensor
def partition(x: Tensor, kth: int | Sequence[int], axis: int | None = -1) -> Tensor:
    """x with the element at kth along axis as in the sorted order, none before it larger and none after it smaller: x sorted."""
    x, axis = _along("partition", x, axis)
    _check_kth("partition", kth, x.shape[axis])
    return op.sort(x, axis)


@takes_tensor
def argpartition(x: Tensor, kth: int | Sequence[int], axis: int | None = -1) -> Tensor:
    """The positions that partition x along axis at kth."""
    x, axis = _along("argpartition", x, axis)
    _check_kth("argpartition", kth, x.shape[axis])
    return op.argsort(x, axis)


def ix_(*args: Tensor | Sequence[int]) -> tuple[Tensor, ...]:
    """Index arrays from vectors of positions or bools: x[ix_(rows, columns)] selects the given rows and columns."""
    found = []
    for place, arg in enumerate(args):
        x = _core.asarray(arg)
        if x.ndim != 1:
            raise _core.ShapeError(f"ix_: argument {place}: found {x.ndim} dimensions, expected a vector")
        x = true_places(x) if x.dtype == _core.bool else x if x.size else op.cast(x, _core.int64)
        found.append(op.reshape(x, [-1 if one == place else 1 for one in range(len(args))] if x.size else
                                   [0 if one == place else 1 for one in range(len(args))]))  # fmt: skip
    return tuple(found)
