"""What each op does to sharded tensors. The shape rule of its entry decides; an op without a rule here refuses them."""

from __future__ import annotations

import re
from typing import Any

import backplane as bp
from backplane import Tensor

from .._calls import _other_forms
from ._groups import Mesh
from ._sharding import ShardedTensor, _call, _part

__all__: list[str] = []

_REDUCTIONS = {"sum": "sum", "mean": "mean", "max": "max", "min": "min", "amax": "max", "amin": "min"}
_classes: dict[str, str] = {}


def shape_class(full_name: str) -> str:
    """The word of an op's shape rule: "broadcast", "matmul", "reduce"."""
    if full_name not in _classes:
        found = re.search(r"result \w+: shape rule (\S+)", str(bp.explain(full_name)))
        _classes[full_name] = found[1] if found else ""
    return _classes[full_name]


def _refused(name: str, reason: str) -> Exception:
    return bp.MissingRuleError(f"{name}: {reason}. Fix: bp.replicate(x) gives all of a sharded tensor, bp.reshard(x, spec) divides it otherwise")


def _axes_of(spec: Any) -> set[str]:
    return {name for name in spec if name is not None}


def _entered(x: Any, spec: Any, used: set[str], mesh: Mesh) -> Any:
    """An operand that has no part in some axes of the result: its cotangents are summed over them."""
    missing = [name for name in mesh.axis_names if name in used - _axes_of(spec)]
    if not missing or not isinstance(x, Tensor) or "floating" not in x.dtype.kind:
        return x
    return _call("to_parts", x, mesh.group(missing))


def _mesh_of(name: str, values: list[Any]) -> Mesh:
    meshes = [x.mesh for x in values if isinstance(x, ShardedTensor)]
    if any(mesh != meshes[0] for mesh in meshes):
        raise _refused(name, "found tensors that are sharded over different meshes")
    return meshes[0]


def _local(x: Any) -> tuple[Any, list[Any]]:
    if isinstance(x, ShardedTensor):
        return x.local, list(x.spec)
    return x, [None] * x.ndim


def _elementwise(name: str, function: Any, args: tuple[Any, ...], more: dict[str, Any]) -> ShardedTensor:
    mesh = _mesh_of(name, [*args, *more.values()])
    places = [(args, i) for i, x in enumerate(args) if isinstance(x, (Tensor, ShardedTensor))]
    operands = [args[i] for _, i in places]
    if any(isinstance(x, (Tensor, ShardedTensor)) for x in more.values()):
        raise _refused(name, "found a tensor among the keyword arguments; there is no rule for such tensors")
    ndim = max(x.ndim for x in operands)
    result: list[Any] = [None] * ndim
    for x in operands:
        for dim, axis in enumerate(_local(x)[1]):
            at = ndim - x.ndim + dim
            if axis is not None and x.shape[dim] > 1:
                if result[at] not in (None, axis):
                    raise _refused(name, f"found operands whose dimension {at} is divided along {result[at]!r} and {axis!r}")
                result[at] = axis
    if len(_axes_of(result)) != sum(axis is not None for axis in result):
        raise _refused(name, f"found operands that divide two dimensions along one axis of the mesh: {tuple(result)}")
    given = list(args)
    for (_, i), x in zip(places, operands):
        local, spec = _local(x)
        for dim in range(x.ndim):
            axis = result[ndim - x.ndim + dim]
            if axis is not None and spec[dim] is None and x.shape[dim] > 1:
                local, spec[dim] = _part(local, mesh, dim, axis), axis
        given[i] = _entered(local, spec, _axes_of(result), mesh)
    return ShardedTensor(function(*given, **more), mesh, tuple(result))


def _matmul(name: str, function: Any, args: tuple[Any, ...], more: dict[str, Any]) -> Any:
    if len(args) != 2 or more or min(x.ndim for x in args) < 2 or max(x.ndim for x in args) > 2 and args[1].ndim != 2:
        raise _refused(name, "the rule for sharded tensors takes x of 2 or more dimensions and a matrix y")
    mesh = _mesh_of(name, list(args))
    (x, y), (left, right) = args, [_local(a)[1] for a in args]
    a, b = _local(x)[0], _local(y)[0]
    inner = left[-1] or right[0]
    if left[-1] and right[0] and left[-1] != right[0]:
        raise _refused(name, f"found an inner dimension that is divided along {left[-1]!r} and {right[0]!r}")
    if inner and left[-1] is None:
        a, left[-1] = _part(a, mesh, x.ndim - 1, inner), inner
    if inner and right[0] is None:
        b, right[0] = _part(b, mesh, 0, inner), inner
    result = [*left[:-1], right[1]]
    used = [axis for axis in [*result, inner] if axis is not None]
    if len(set(used)) != len(used):
        raise _refused(name, f"found {tuple(left)} and {tuple(right)}: two dimensions are divided along one axis of the mesh")
    product = function(_entered(a, left, set(used), mesh), _entered(b, right, set(used), mesh))
    if inner:
        product = _call("sum_of_parts", product, mesh.group(inner))
    return ShardedTensor(product, mesh, tuple(result)) if _axes_of(result) else product


def _reduce(name: str, function: Any, args: tuple[Any, ...], more: dict[str, Any]) -> Any:
    x, rest = args[0], list(args[1:])
    axis = more.get("axis", more.get("dim", rest[0] if rest else None))
    if set(more) - {"axis", "dim", "keepdims", "keepdim"} or len(rest) > 1 or ("dim" in more and name in ("max", "min")):
        raise _refused(name, f"found the arguments {', '.join(more)}; the rule for sharded tensors takes axis and keepdims")
    keepdims = bool(more.get("keepdims", more.get("keepdim", False)))
    axes = list(range(x.ndim)) if axis is None else [a + x.ndim if a < 0 else a for a in ([axis] if isinstance(axis, int) else axis)]
    combined = [x.spec[a] for a in axes if x.spec[a] is not None]
    spec = [None if i in axes else s for i, s in enumerate(x.spec) if keepdims or i not in axes]
    kind = _REDUCTIONS.get(name)
    if combined and kind is None:
        raise _refused(name, f"it has no rule along a dimension that is divided, here along {combined[0]!r}")
    local = function(x.local, axis=tuple(axes), keepdims=keepdims)
    if combined:
        group = x.mesh.group(combined)
        if kind in ("max", "min"):
            local = _extreme(local, kind, group)
        else:
            local = _call("sum_of_parts", local / group.size if kind == "mean" else local, group)
    return ShardedTensor(local, x.mesh, tuple(spec)) if _axes_of(spec) else local


def _extreme(local: Tensor, kind: str, group: Any) -> Tensor:
    """Equal extremes share the cotangent, as in max. The sum has one value and zeros, except for equal ones."""
    best = _call("all_reduce", bp.stop_gradient(local), group, op=kind)
    hit = bp.stop_gradient(local) == best
    count = _call("all_reduce", hit.astype(best.dtype), group)
    if "floating" not in local.dtype.kind:
        return best
    # Zero but for its gradient: the value itself has no rounding.
    share = _call("sum_of_parts", bp.where(hit, local - bp.stop_gradient(local), 0) / count, group)
    return best + bp.where(bp.isfinite(best), share, 0)


def _same(name: str, function: Any, args: tuple[Any, ...], more: dict[str, Any]) -> ShardedTensor:
    x = args[0]
    axis = more.get("axis", more.get("dim", args[1] if len(args) > 1 else -1))
    if any(isinstance(v, (Tensor, ShardedTensor)) for v in [*args[1:], *more.values()]):
        raise _refused(name, "it takes further tensors; there is no rule for them")
    axes = range(x.ndim) if axis is None else [axis] if isinstance(axis, int) else axis
    if any(x.spec[a] is not None for a in axes):
        raise _refused(name, f"found the axis {axis}, which is divided along {next(x.spec[a] for a in axes if x.spec[a])!r}")
    return ShardedTensor(function(x.local, *args[1:], **more), x.mesh, x.spec)


def _permute(name: str, function: Any, args: tuple[Any, ...], more: dict[str, Any]) -> ShardedTensor:
    x = args[0]
    order = more.get("axes", more.get("dims", args[1] if len(args) == 2 else args[1:]))
    order = [a + x.ndim if a < 0 else a for a in order]
    return ShardedTensor(function(x.local, order), x.mesh, tuple(x.spec[a] for a in order))


_ALONG_AXES = ("softmax", "log_softmax", "cumulative_sum", "cumulative_prod", "cumsum", "cumprod", "sort", "argsort", "flip", "logcumsumexp")


def apply(name: str, function: Any, args: tuple[Any, ...], more: dict[str, Any]) -> Any:
    """An op of sharded tensors."""
    kind = shape_class(function.full_name)
    if kind == "broadcast":
        return _elementwise(name, function, args, more)
    if not isinstance(args[0], (Tensor, ShardedTensor)):
        raise _refused(name, "its first operand is not a tensor")
    if kind == "matmul":
        return _matmul(name, function, args, more)
    if kind == "reduce" and isinstance(args[0], ShardedTensor):
        return _reduce(name, function, args, more)
    if kind == "same" and name in _ALONG_AXES and isinstance(args[0], ShardedTensor):
        return _same(name, function, args, more)
    if kind == "view.permute" and isinstance(args[0], ShardedTensor):
        return _permute(name, function, args, more)
    raise _refused(name, f"it has no rule for sharded tensors (its shape rule is {kind or 'of its own'})")


def _form(name: str, function: Any, other: Any) -> Any:
    def form(*args: Any, **more: Any) -> Any:
        if any(isinstance(x, ShardedTensor) for x in args) or any(isinstance(x, ShardedTensor) for x in more.values()):
            return apply(name, function, args, more)
        return NotImplemented if other is None else other(*args, **more)

    form.__name__ = form.__qualname__ = name
    return form


def _install() -> None:
    """Ops hand calls whose arguments they do not take to their other form: it is asked about sharded tensors first."""
    for name in dir(bp):
        function = getattr(bp, name, None) if not name.startswith("_") and name not in bp._LATER else None
        if isinstance(function, bp._core.Op):
            other = _other_forms.FORMS.get((function.full_name, name))
            bp._core.set_other_form(function.full_name, name, _form(name, function, other))


_install()
