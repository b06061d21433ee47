"""Sharded tensors seen at another shape, indexed and joined: what keeps each rank's part a part of the result."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

import backplane as bp

from .._api._manipulation_functions import normalized_axis
from ._sharding import ShardedTensor, _call, _part, axes_of, entered, mesh_of, parts_of, refused

__all__: list[str] = []


# ---- other shapes ---------------------------------------------------------------------------------------------------


def _groups(source: Sequence[int], target: Sequence[int]) -> list[tuple[list[int], list[int]]]:
    """The dimensions of both shapes in groups of equal products, which follow on each other."""
    groups, i, j = [], 0, 0
    while i < len(source) or j < len(target):
        left: list[int] = []
        right: list[int] = []
        a = b = 1
        while not (left or right) or a != b:
            if i < len(source) and (a <= b or j == len(target)):
                a *= source[i]
                left.append(i)
                i += 1
            else:
                b *= target[j]
                right.append(j)
                j += 1
        groups.append((left, right))
    return groups


def _sizes(name: str, x: ShardedTensor, shape: Any) -> list[int]:
    sizes = [operator.index(n) for n in ([shape] if isinstance(shape, int) else shape)]
    known = math.prod(n for n in sizes if n != -1)
    if sizes.count(-1) == 1 and known > 0 and x.size % known == 0:
        sizes[sizes.index(-1)] = x.size // known
    if math.prod(sizes) != x.size or any(n < 0 for n in sizes):
        raise bp.ShapeError(f"{name}: argument shape: found {tuple(sizes)}, expected sizes whose product is {x.size}, for a tensor of shape {x.shape}")
    return sizes


def reshape(name: str, x: ShardedTensor, shape: Any) -> ShardedTensor:
    """A divided dimension keeps its place among the elements, or becomes the first of several, or takes in those behind it."""
    target = _sizes(name, x, shape)
    if x.size == 0 and tuple(target) != x.shape:
        raise refused(name, "it has no rule for sharded tensors without elements")
    spec: list[Any] = [None] * len(target)
    local = list(target)
    for left, right in [([i], [i]) for i in range(x.ndim)] if tuple(target) == x.shape else _groups(x.shape, target):
        divided = [i for i in left if x.spec[i] is not None]
        if not divided:
            continue
        axis, ranks = x.spec[divided[0]], x.mesh.axis_size(x.spec[divided[0]])
        first = next((i for i in left if x.shape[i] != 1), divided[0])
        at = next((j for j in right if target[j] != 1), right[0] if right else None)
        if ranks == 1 and at is None:
            continue
        if len(divided) > 1 or divided[0] != first or at is None or target[at] % ranks:
            raise refused(
                name,
                f"found shape {x.shape} and {tuple(target)}: dimension {divided[0]}, which {ranks} ranks divide along {axis!r}, would not lie in "
                "equal parts along one dimension of the result",
            )
        spec[at] = axis
        local[at] //= ranks
    return ShardedTensor(bp.reshape(x.local, local), x.mesh, tuple(spec))


def squeeze(name: str, x: ShardedTensor, axes: Any) -> ShardedTensor:
    gone = {normalized_axis(name, a, x.ndim) for a in ([axes] if isinstance(axes, int) else axes)}
    if any(x.shape[a] != 1 for a in gone):
        raise bp.ShapeError(f"{name}: found axes {sorted(gone)} of shape {x.shape}, expected axes of size 1")
    return reshape(name, x, [n for i, n in enumerate(x.shape) if i not in gone])


def expand_dims(name: str, x: ShardedTensor, axis: int) -> ShardedTensor:
    at = normalized_axis(name, axis, x.ndim + 1)
    return ShardedTensor(bp.expand_dims(x.local, at), x.mesh, (*x.spec[:at], None, *x.spec[at:]))


def moved(name: str, x: ShardedTensor, source: Any, target: Any) -> Any:
    sources, targets = ([a] if isinstance(a, int) else list(a) for a in (source, target))
    if len(sources) != len(targets):
        raise bp.ArgumentValueError(f"{name}: found {len(sources)} axes and {len(targets)} places, expected as many")
    places = dict(zip((normalized_axis(name, a, x.ndim) for a in targets), (normalized_axis(name, a, x.ndim) for a in sources)))
    rest = iter([a for a in range(x.ndim) if a not in places.values()])
    return bp.permute_dims(x, [places[i] if i in places else next(rest) for i in range(x.ndim)])  # type: ignore[arg-type]


# ---- indices --------------------------------------------------------------------------------------------------------


def _row(local: Any, mesh: Any, dim: int, axis: str, i: int) -> Any:
    """Element i of a divided dimension: the rank that has it gives it, and the others zeros."""
    group = mesh.group(axis)
    owner, place = divmod(i, local.shape[dim])
    mine = bp.select(local, dim, place)
    row = mine.astype(bp.uint8) if mine.dtype is bp.bool else mine
    row = bp.where(bp.asarray(owner == group.rank), row, bp.zeros((), dtype=row.dtype))
    return _call("sum_of_parts", row, group).astype(mine.dtype)


def index(x: ShardedTensor, given: Any) -> Any:
    """x[given], of ints, slices, None and ...; a divided dimension takes an int, or stays whole."""
    items = list(given) if isinstance(given, tuple) else [given]
    count = sum(item is not None and item is not Ellipsis for item in items)
    if count > x.ndim:
        raise IndexError(f"x[index]: found {count} indices for {x.ndim} dimensions")
    rest = [slice(None)] * (x.ndim - count)
    places = [i for i, item in enumerate(items) if item is Ellipsis]
    items = [*items[: places[0]], *rest, *items[places[0] + 1 :]] if places else [*items, *rest]
    local, dim, at = x.local, 0, 0  # `at`: the dimension of `local`, which loses those that a rank gives
    spec: list[Any] = []
    indices: list[Any] = []
    for item in items:
        if item is None:
            indices.append(None)
            spec.append(None)
            continue
        axis, size = x.spec[dim], x.shape[dim]
        if isinstance(item, slice):
            if axis is not None and item.indices(size) != (0, size, 1):
                raise refused("x[index]", f"found a slice of dimension {dim}, which is divided along {axis!r}")
            indices.append(slice(None) if axis is not None else item)
            spec.append(axis)
            at += 1
        elif hasattr(item, "__index__") and not isinstance(item, (bool, bp.Tensor)):
            i = operator.index(item)
            if not -size <= i < size:
                raise IndexError(f"x[index]: found index {i} of dimension {dim}, expected one from {-size} to {size - 1}")
            if axis is None:
                indices.append(i % size)
                at += 1
            else:
                local = _row(local, x.mesh, at, axis, i % size)
        else:
            raise refused("x[index]", f"found an index of type {type(item).__name__}; the rule for sharded tensors takes ints, slices, None and ...")
        dim += 1
    result = local[tuple(indices)]
    return ShardedTensor(result, x.mesh, tuple(spec)) if axes_of(spec) else result


# ---- joined tensors -------------------------------------------------------------------------------------------------


def _alike(name: str, arrays: Sequence[Any], axis: int | None) -> tuple[Any, list[Any], list[Any]]:
    """The mesh, the parts of tensors that are divided alike, and how; not along `axis`."""
    mesh = mesh_of(name, list(arrays))
    spec: list[Any] = [None] * arrays[0].ndim
    if any(x.ndim != len(spec) for x in arrays):
        raise bp.ShapeError(f"{name}: found tensors of {sorted({x.ndim for x in arrays})} dimensions, expected one number")
    for x in arrays:
        for dim, word in enumerate(parts_of(x)[1]):
            if word is not None and dim == axis:
                raise refused(name, f"found the axis {axis}, which is divided along {word!r}")
            if word is not None and spec[dim] not in (None, word):
                raise refused(name, f"found operands whose dimension {dim} is divided along {spec[dim]!r} and {word!r}")
            spec[dim] = word or spec[dim]
    if len(axes_of(spec)) != sum(word is not None for word in spec):
        raise refused(name, f"found operands that divide two dimensions along one axis of the mesh: {tuple(spec)}")
    parts = []
    for x in arrays:
        local, own = parts_of(x)
        for dim, word in enumerate(spec):
            if word is not None and own[dim] is None:
                local, own[dim] = _part(local, mesh, dim, word), word
        parts.append(entered(local, own, axes_of(spec), mesh))
    return mesh, parts, spec


def joined(name: str, arrays: Sequence[Any], axis: int = 0) -> ShardedTensor:
    at = normalized_axis(name, axis, arrays[0].ndim)
    mesh, parts, spec = _alike(name, arrays, at)
    return ShardedTensor(bp.concat(parts, axis=at), mesh, tuple(spec))


def stacked(name: str, arrays: Sequence[Any], axis: int = 0) -> ShardedTensor:
    at = normalized_axis(name, axis, arrays[0].ndim + 1)
    mesh, parts, spec = _alike(name, arrays, None)
    return ShardedTensor(bp.stack(parts, axis=at), mesh, (*spec[:at], None, *spec[at:]))
