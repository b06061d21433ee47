"""Groups of ranks, and meshes: ranks in a grid whose axes have names."""

from __future__ import annotations

from collections.abc import Sequence

import backplane as bp

from ._world import World, world

__all__ = ["Group", "Mesh", "mesh", "new_group"]


class Group:
    """Some of the ranks of a program, in an order. Collectives take it as `group`.

    ranks: their numbers in the program. rank: the caller's place among them, which is what `root`, `dest` and `source` count; -1 where it
    is not one of them. size: how many there are.
    """

    __slots__ = ("name", "rank", "ranks", "size")

    def __init__(self, ranks: Sequence[int], own: World) -> None:
        self.ranks = tuple(ranks)
        self.size = len(self.ranks)
        self.rank = self.ranks.index(own.rank) if own.rank in self.ranks else -1
        self.name = "world" if self.ranks == tuple(range(own.size)) else ",".join(map(str, self.ranks))

    def __contains__(self, rank: object) -> bool:
        return rank in self.ranks

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Group) and self.ranks == other.ranks

    def __hash__(self) -> int:
        return hash(self.ranks)

    def __repr__(self) -> str:
        return f"Group(ranks={list(self.ranks)}, rank={self.rank})"


def world_group(name: str = "init") -> Group:
    own = world(name)
    if own.group is None:
        own.group = Group(range(own.size), own)
    found: Group = own.group
    return found


def new_group(ranks: Sequence[int]) -> Group:
    """The group of some ranks, in this order. The ranks outside of it may call it, too, but not use it in collectives.

    Errors: ArgumentValueError for ranks that are not there, or twice.
    """
    own = world("new_group")
    numbers = [int(r) for r in ranks]
    if not numbers or len(set(numbers)) != len(numbers) or not all(0 <= r < own.size for r in numbers):
        raise bp.ArgumentValueError(f"new_group: argument ranks: found {list(ranks)!r}, expected different ranks from 0 to {own.size - 1}")
    return Group(numbers, own)


def chosen(name: str, group: Group | None) -> Group:
    """The group of a call: of all ranks where none is given."""
    if group is None:
        return world_group(name)
    if not isinstance(group, Group):
        raise bp.ArgumentTypeError(
            f"{name}: argument group: found a value of type {type(group).__name__}, expected a Group; new_group(ranks) and a mesh's group(axis) give one"
        )
    world(name)
    if group.rank < 0:
        raise bp.ArgumentValueError(f"{name}: argument group: this rank is not among its ranks {list(group.ranks)}")
    return group


class Mesh:
    """All ranks in a grid: `mesh((2, 2), ("data", "model"))`. Ranks are in row-major order.

    shape, axis_names: as given. coordinates: the caller's place. group(axis): the ranks that differ from the caller along the axis alone.
    """

    def __init__(self, shape: Sequence[int], axis_names: Sequence[str], own: World) -> None:
        self.shape, self.axis_names = tuple(shape), tuple(axis_names)
        self.size = own.size
        self._own = own
        rest, places = own.rank, []
        for n in reversed(self.shape):
            places.append(rest % n)
            rest //= n
        self.coordinates = tuple(reversed(places))
        self._groups = {name: self._along([i]) for i, name in enumerate(self.axis_names)}

    def _along(self, axes: Sequence[int]) -> Group:
        ranks = [0]
        for i, n in enumerate(self.shape):
            places = range(n) if i in axes else [self.coordinates[i]]
            ranks = [r * n + place for r in ranks for place in places]
        return Group(ranks, self._own)

    def axis(self, name: str) -> int:
        """The number of the axis with this name."""
        if name not in self.axis_names:
            raise bp.ArgumentValueError(f"Mesh: found the axis {name!r}, expected one of {', '.join(map(repr, self.axis_names))}")
        return self.axis_names.index(name)

    def axis_size(self, name: str) -> int:
        """How many ranks there are along the axis."""
        return self.shape[self.axis(name)]

    def group(self, axis: str | Sequence[str] | None = None) -> Group:
        """The group of ranks along an axis, or along several; of all ranks for None."""
        if isinstance(axis, str):
            self.axis(axis)
            return self._groups[axis]
        return self._along(range(len(self.shape)) if axis is None else [self.axis(name) for name in axis])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Mesh) and (self.shape, self.axis_names, self.coordinates) == (other.shape, other.axis_names, other.coordinates)

    def __hash__(self) -> int:
        return hash((self.shape, self.axis_names))

    def __repr__(self) -> str:
        axes = ", ".join(f"{name}: {n}" for name, n in zip(self.axis_names, self.shape))
        return f"Mesh({axes}; this rank at {self.coordinates})"


def mesh(shape: Sequence[int], axis_names: Sequence[str]) -> Mesh:
    """All ranks as a grid of this shape, whose axes have these names.

    Errors: ArgumentValueError where the sizes do not multiply to the number of ranks, or names are missing or the same.
    """
    own = world("mesh")
    sizes = [int(n) for n in shape]
    product = 1
    for n in sizes:
        product *= n
    if not sizes or min(sizes) < 1 or product != own.size:
        raise bp.ArgumentValueError(f"mesh: argument shape: found {tuple(sizes)}, expected sizes whose product is {own.size}, the number of ranks")
    names = [axis_names] if isinstance(axis_names, str) else list(axis_names)
    if len(names) != len(sizes) or len(set(names)) != len(names) or not all(isinstance(name, str) and name for name in names):
        raise bp.ArgumentValueError(f"mesh: argument axis_names: found {tuple(names)!r}, expected {len(sizes)} different names")
    return Mesh(sizes, names, own)
