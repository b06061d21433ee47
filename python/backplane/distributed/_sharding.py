"""Sharded tensors: one tensor whose parts lie on the ranks of a mesh, and what ops do to them by their entries' shape class."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import backplane as bp
from backplane import Tensor

from . import _collectives
from ._connection import ops
from ._groups import Group, Mesh

__all__ = ["ShardedTensor", "replicate", "reshard", "shard"]

Spec = tuple[Any, ...]


class ShardedTensor:
    """A tensor in equal parts on the ranks of a mesh: this rank's part, and along which axis of the mesh each dimension is divided.

    local: the part, a tensor. spec: per dimension the name of a mesh axis, or None where every rank has all of it. shape, ndim, dtype:
    of the whole. It is a container of its part for grad, compile, optimisers and bp.tree: the gradient of a sharded tensor is sharded alike.
    Elementwise ops, matmul, einsum, reductions, ops along axes that are whole (softmax), permute_dims, reshape, concat, stack and basic
    indices take sharded tensors, as functions, methods and operators, beside tensors that all ranks have. Other ops refuse them: call
    replicate or reshard first.
    """

    __slots__ = ("local", "mesh", "spec")

    def __init__(self, local: Any, mesh: Mesh, spec: Spec) -> None:
        self.local, self.mesh, self.spec = local, mesh, spec

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(n * (self.mesh.axis_size(name) if name else 1) for n, name in zip(self.local.shape, self.spec))

    @property
    def ndim(self) -> int:
        return len(self.spec)

    @property
    def dtype(self) -> Any:
        return self.local.dtype

    @property
    def device(self) -> Any:
        return self.local.device

    @property
    def size(self) -> int:
        total = 1
        for n in self.shape:
            total *= n
        return total

    @property
    def T(self) -> ShardedTensor:
        return self.mT if self.ndim == 2 else bp.permute_dims(self, tuple(range(self.ndim))[::-1])  # type: ignore[arg-type, return-value]

    @property
    def mT(self) -> ShardedTensor:
        order = [*range(self.ndim - 2), self.ndim - 1, self.ndim - 2]
        return bp.permute_dims(self, order)  # type: ignore[arg-type, return-value]

    def astype(self, dtype: Any) -> ShardedTensor:
        return ShardedTensor(self.local.astype(dtype), self.mesh, self.spec)

    def detach(self) -> ShardedTensor:
        return ShardedTensor(self.local.detach(), self.mesh, self.spec)

    def __getattr__(self, name: str) -> Any:
        function = None if name.startswith("_") else getattr(bp, name, None)
        if not isinstance(function, bp._core.Op) and name not in _METHODS:
            raise AttributeError(f"ShardedTensor has no attribute {name!r}. Fix: bp.replicate(x) gives all of a sharded tensor")
        return lambda *args, **more: function(self, *args, **more)  # type: ignore[misc]

    def reshape(self, *shape: Any) -> ShardedTensor:
        return bp.reshape(self, shape[0] if len(shape) == 1 else shape)  # type: ignore[arg-type, return-value]

    def __len__(self) -> int:
        return self.shape[0]

    def __repr__(self) -> str:
        return f"ShardedTensor(shape={self.shape}, spec={self.spec}, local={tuple(self.local.shape)} {self.dtype.name})"


# Methods of tensors that are functions, and steps of ops alone.
_METHODS = {"flatten", "ravel", "squeeze", "swapaxes", "transpose", "unflatten"}


def _operator(name: str, swapped: bool = False) -> Any:
    def call(self: ShardedTensor, other: Any) -> Any:
        function = getattr(bp, name)
        return function(other, self) if swapped else function(self, other)

    return call


for _word, _name in {
    "add": "add", "sub": "subtract", "mul": "multiply", "truediv": "divide", "floordiv": "floor_divide", "mod": "remainder", "pow": "pow",
    "matmul": "matmul",
}.items():  # fmt: skip
    setattr(ShardedTensor, f"__{_word}__", _operator(_name))
    setattr(ShardedTensor, f"__r{_word}__", _operator(_name, swapped=True))
for _word, _name in {"lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal"}.items():
    setattr(ShardedTensor, f"__{_word}__", _operator(_name))
ShardedTensor.__neg__ = lambda self: bp.negative(self)  # type: ignore[attr-defined]
ShardedTensor.__abs__ = lambda self: bp.abs(self)  # type: ignore[attr-defined]

bp.tree.register(ShardedTensor, lambda x: ([x.local], (x.mesh, x.spec)), lambda data, parts: ShardedTensor(next(iter(parts)), *data))


# ---- parts and wholes -----------------------------------------------------------------------------------------------


def _call(name: str, x: Tensor, group: Group, **more: Any) -> Tensor:
    return getattr(ops(), name)(x, n=group.size, group=group.name, site=_collectives.site(), **more)


def _along(x: Tensor, dim: int, function: Any) -> Tensor:
    """function(x) along dim in place of axis 0."""
    return function(x) if dim == 0 else bp.moveaxis(function(bp.moveaxis(x, dim, 0)), 0, dim)


def _part(x: Tensor, mesh: Mesh, dim: int, name: str) -> Tensor:
    group = mesh.group(name)
    if x.shape[dim] % group.size:
        raise bp.ShapeError(f"shard: found size {x.shape[dim]} of dimension {dim}, expected one that {group.size} divides, the ranks along the mesh axis {name!r}")
    return _along(x, dim, lambda y: _call("part_of", y, group, place=group.rank))


def _join(x: Tensor, mesh: Mesh, dim: int, name: str) -> Tensor:
    group = mesh.group(name)
    return _along(x, dim, lambda y: _call("join_parts", y, group, place=group.rank))


def _spec(name: str, mesh: Any, spec: Any, ndim: int) -> Spec:
    if not isinstance(mesh, Mesh):
        raise bp.ArgumentTypeError(f"{name}: argument mesh: found a value of type {type(mesh).__name__}, expected a Mesh; bp.distributed.mesh makes one")
    words = [spec] if isinstance(spec, str) else list(spec)
    if len(words) > ndim:
        raise bp.ArgumentValueError(f"{name}: argument spec: found {tuple(words)}, expected at most {ndim} entries, one per dimension")
    words += [None] * (ndim - len(words))
    used = [word for word in words if word is not None]
    for word in used:
        mesh.axis(word)
    if len(set(used)) != len(used):
        raise bp.ArgumentValueError(f"{name}: argument spec: found {tuple(words)}, expected each axis of the mesh once at most")
    return tuple(words)


def shard(x: Any, mesh: Mesh, spec: Sequence[str | None] | str) -> ShardedTensor:
    """Divides a tensor that all ranks have; each rank keeps its part: `shard(x, mesh, ("data", None))` divides axis 0.

    spec: per dimension the name of a mesh axis, or None; what is left out is None. Errors: ShapeError where the ranks along an axis do
    not divide a dimension; ArgumentValueError for a name that the mesh does not have, or that occurs twice.
    """
    if isinstance(x, ShardedTensor):
        return reshard(x, spec)
    local = _collectives._tensor("shard", x)
    words = _spec("shard", mesh, spec, local.ndim)
    for dim, name in enumerate(words):
        if name is not None:
            local = _part(local, mesh, dim, name)
    return ShardedTensor(local, mesh, words)


def replicate(x: Any) -> Tensor:
    """All of a sharded tensor, on every rank."""
    if not isinstance(x, ShardedTensor):
        return _collectives._tensor("replicate", x)
    whole = reshard(x, (None,) * x.ndim).local
    assert isinstance(whole, Tensor)
    return whole


def reshard(x: ShardedTensor, spec: Sequence[str | None] | str) -> ShardedTensor:
    """The same tensor, divided otherwise. Only dimensions that are divided otherwise than before travel."""
    if not isinstance(x, ShardedTensor):
        raise bp.ArgumentTypeError(f"reshard: argument x: found a value of type {type(x).__name__}, expected a ShardedTensor; shard(x, mesh, spec) makes one")
    words = _spec("reshard", x.mesh, spec, x.ndim)
    local, now = x.local, list(x.spec)
    for dim, name in enumerate(x.spec):
        if name is None or words[dim] == name:
            continue
        if name in words and now[words.index(name)] is None and local.shape[words.index(name)] % x.mesh.axis_size(name) == 0:
            local = _moved(local, x.mesh.group(name), dim, words.index(name))
            now[words.index(name)] = name
        else:
            local = _join(local, x.mesh, dim, name)
        now[dim] = None
    for dim, name in enumerate(words):
        if name is not None and now[dim] != name:
            local = _part(local, x.mesh, dim, name)
    return ShardedTensor(local, x.mesh, words)


def _moved(x: Tensor, group: Group, source: int, target: int) -> Tensor:
    """From parts along one dimension to parts along another: each rank sends every other one a part of its part."""
    n = group.size
    y = bp.moveaxis(x, (target, source), (0, 1))
    blocks = y.reshape((n, y.shape[0] // n, *y.shape[1:]))  # block j is for rank j
    got = _collectives.all_to_all(blocks, group=group)  # block i is of rank i
    joined = bp.moveaxis(got, 0, 1).reshape((y.shape[0] // n, n * y.shape[1], *y.shape[2:]))
    return bp.moveaxis(joined, (0, 1), (target, source))


# ---- for the rules of ops --------------------------------------------------------------------------------------------


def refused(name: str, reason: str) -> Exception:
    return bp.MissingRuleError(f"{name}: {reason}. Fix: bp.replicate(x) gives all of a sharded tensor, bp.reshard(x, spec) divides it otherwise")


def axes_of(spec: Any) -> set[str]:
    return {name for name in spec if name is not None}


def entered(x: Any, spec: Any, used: set[str], mesh: Mesh) -> Any:
    """An operand that has no part in some axes of the result: its cotangents are summed over them."""
    missing = [name for name in mesh.axis_names if name in used - axes_of(spec)]
    if not missing or not isinstance(x, Tensor) or "floating" not in x.dtype.kind:
        return x
    return _call("to_parts", x, mesh.group(missing))


def mesh_of(name: str, values: list[Any]) -> Mesh:
    meshes = [x.mesh for x in values if isinstance(x, ShardedTensor)]
    if any(mesh != meshes[0] for mesh in meshes):
        raise refused(name, "found tensors that are sharded over different meshes")
    return meshes[0]


def parts_of(x: Any) -> tuple[Any, list[Any]]:
    if isinstance(x, ShardedTensor):
        return x.local, list(x.spec)
    return x, [None] * x.ndim
