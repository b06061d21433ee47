"""Sharded tensors multiplied and summed: what is divided along a dimension that goes away is combined over the ranks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import backplane as bp
from backplane import Tensor

from .._api import _einsum
from ._sharding import ShardedTensor, _call, _part, axes_of, entered, mesh_of, parts_of, refused

__all__: list[str] = []

# ---- products -------------------------------------------------------------------------------------------------------


def _contracted(name: str, function: Any, operands: Sequence[Any], labels: Sequence[Sequence[Any]], out: Sequence[Any]) -> Any:
    """function(parts), whose dimensions have labels: equal labels are divided alike, and labels that the result lacks are summed over."""
    mesh = mesh_of(name, list(operands))
    axes: dict[Any, str] = {}
    for x, own in zip(operands, labels):
        for label, axis, size in zip(own, parts_of(x)[1], x.shape):
            if axis is None or size == 1:
                continue
            if axes.setdefault(label, axis) != axis:
                raise refused(name, f"found one dimension of the product that is divided along {axes[label]!r} and {axis!r}")
            if own.count(label) > 1:
                raise refused(name, f"found a diagonal of a dimension that is divided along {axis!r}")
    twice = [axis for axis in axes.values() if list(axes.values()).count(axis) > 1]
    if twice:
        raise refused(name, f"found two dimensions of the product that are divided along one axis of the mesh, {twice[0]!r}")
    parts = []
    for x, own in zip(operands, labels):
        local, spec = parts_of(x)
        for dim, label in enumerate(own):
            axis = axes.get(label)
            if axis is not None and spec[dim] is None and x.shape[dim] != 1:
                local, spec[dim] = _part(local, mesh, dim, axis), axis
        parts.append(entered(local, spec, set(axes.values()), mesh))
    product = function(*parts)
    inner = [axis for label, axis in axes.items() if label not in out]
    if inner:
        product = _call("sum_of_parts", product, mesh.group(inner))
    found = tuple(axes.get(label) for label in out)
    return ShardedTensor(product, mesh, found) if axes_of(found) else product


def matmul(name: str, function: Any, args: tuple[Any, ...], more: dict[str, Any]) -> Any:
    if len(args) != 2 or more or min(x.ndim for x in args) < 1:
        raise refused(name, "the rule for sharded tensors takes two tensors of 1 or more dimensions")
    x, y = args
    rank = max(x.ndim, y.ndim) - 2
    batch = [list(range(rank - n, rank)) for n in (max(x.ndim - 2, 0), max(y.ndim - 2, 0))]
    rows, columns = ["rows"] if x.ndim > 1 else [], ["columns"] if y.ndim > 1 else []
    left = [*batch[0], *rows, "inner"]
    right = [*batch[1], "inner", *columns]
    return _contracted(name, function, args, [left, right], [*range(max(rank, 0)), *rows, *columns])


def linear(x: Any, weight: Any, bias: Any = None) -> Any:
    product = bp.matmul(x, bp.permute_dims(weight, [1, 0]))
    return product if bias is None else product + bias


def einsum(subscripts: Any, operands: tuple[Any, ...], more: dict[str, Any]) -> Any:
    if not isinstance(subscripts, str):
        subscripts, spelled = _einsum._spelled((subscripts, *operands))
        operands = tuple(spelled)
    labels, out = _einsum._labels(subscripts, tuple(x.ndim for x in operands))
    return _contracted("einsum", lambda *parts: bp.einsum(subscripts, *parts, **more), operands, labels, out)


# ---- reductions -----------------------------------------------------------------------------------------------------

_REDUCTIONS = {"sum": "sum", "mean": "mean", "max": "max", "min": "min", "amax": "max", "amin": "min", "any": "max", "all": "min", "count_nonzero": "sum"}


def reduce(name: str, function: Any, args: tuple[Any, ...], more: dict[str, Any]) -> Any:
    x, rest = args[0], list(args[1:])
    axis = more.get("axis", more.get("dim", rest[0] if rest else None))
    taken = {"axis", "dim", "keepdims", "keepdim", *(["correction"] if name in ("var", "std") else [])}
    if any(isinstance(value, (Tensor, ShardedTensor)) for value in (*rest, *more.values())):
        raise refused(name, "found two tensors; there is no rule for a reduction of two")
    if set(more) - taken or len(rest) > 1 or ("dim" in more and name in ("max", "min")):
        raise refused(name, f"found the arguments {', '.join(more)}; the rule for sharded tensors takes axis and keepdims")
    if isinstance(more.get("correction"), bool):  # `unbiased`, or neither: the two libraries mean another number then
        raise refused(name, "found no correction; pass correction=0, as in NumPy, or correction=1, as in PyTorch")
    rest_of = {word: value for word, value in more.items() if word == "correction"}
    keepdims = bool(more.get("keepdims", more.get("keepdim", False)))
    axes = list(range(x.ndim)) if axis is None else [a + x.ndim if a < 0 else a for a in ([axis] if isinstance(axis, int) else axis)]
    combined = [x.spec[a] for a in axes if x.spec[a] is not None]
    spec = [None if i in axes else s for i, s in enumerate(x.spec) if keepdims or i not in axes]
    if combined and name in _COMPOSED:
        return _COMPOSED[name](x, tuple(axes), keepdims, **rest_of)
    kind = _REDUCTIONS.get(name)
    if combined and kind is None:
        raise refused(name, f"it has no rule along a dimension that is divided, here along {combined[0]!r}")
    local = function(x.local, axis=tuple(axes), keepdims=keepdims, **rest_of)
    if combined:
        group = x.mesh.group(combined)
        if kind in ("max", "min"):
            local = _extreme(local, kind, group)
        else:
            local = _call("sum_of_parts", local / group.size if kind == "mean" else local, group)
    return ShardedTensor(local, x.mesh, tuple(spec)) if axes_of(spec) else local


def _extreme(local: Tensor, kind: str, group: Any) -> Tensor:
    """Equal extremes share the cotangent, as in max. The sum has one value and zeros, except for equal ones."""
    best = _call("all_reduce", bp.stop_gradient(local), group, op=kind)
    if "floating" not in local.dtype.kind:
        return best
    hit = bp.stop_gradient(local) == best
    count = _call("all_reduce", hit.astype(best.dtype), group)
    # Zero but for its gradient: the value itself has no rounding.
    share = _call("sum_of_parts", bp.where(hit, local - bp.stop_gradient(local), 0) / count, group)
    return best + bp.where(bp.isfinite(best), share, 0)


# ---- what is made of others, along a divided dimension ---------------------------------------------------------------
# Sharded tensors and whole ones mean the same to the functions below, which Python's types do not say.


def _variance(x: Any, axes: tuple[int, ...], keepdims: bool, correction: float = 0) -> Any:
    if x.dtype.kind != "real floating":
        raise refused("var", f"found {x.dtype.name}; the rule along a divided dimension takes real floating tensors")
    count = math.prod(x.shape[a] for a in axes)
    apart = x - bp.mean(x, axis=axes, keepdims=True)
    return bp.sum(apart * apart, axis=axes, keepdims=keepdims) / max(count - correction, 0)


def _deviation(x: Any, axes: tuple[int, ...], keepdims: bool, correction: float = 0) -> Any:
    return bp.sqrt(_variance(x, axes, keepdims, correction))


def _log_sum(x: Any, axes: tuple[int, ...], keepdims: bool) -> Any:
    most: Any = bp.max(x, axis=axes, keepdims=True)
    most = bp.tree.map(bp.stop_gradient, most)
    most = bp.where(bp.isfinite(most), most, 0)
    total: Any = bp.log(bp.sum(bp.exp(x - most), axis=axes, keepdims=True)) + most
    return total if keepdims else bp.squeeze(total, axes)


def softmax(name: str, x: Any, axes: tuple[int, ...]) -> Any:
    """softmax or log_softmax."""
    logs = x - _log_sum(x, axes, True)
    return logs if name == "log_softmax" else bp.exp(logs)


_COMPOSED = {"var": _variance, "std": _deviation, "logsumexp": _log_sum}
