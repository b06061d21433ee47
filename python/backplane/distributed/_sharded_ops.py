"""What each op does to sharded tensors. The shape rule of its entry decides; an op without a rule here refuses them."""

from __future__ import annotations

import re
from typing import Any

import backplane as bp
from backplane import Tensor

from .._calls import _other_forms, _tensor_argument
from . import _sharded_sums, _sharded_views
from ._sharding import ShardedTensor, _part, axes_of, entered, mesh_of, parts_of, refused

__all__: list[str] = []

_classes: dict[str, str] = {}


def shape_class(full_name: str) -> str:
    """The word of an op's shape rule: "broadcast", "matmul", "reduce"."""
    if full_name not in _classes:
        found = re.search(r"result \w+: shape rule (\S+)", str(bp.explain(full_name)))
        _classes[full_name] = found[1] if found else ""
    return _classes[full_name]


def _elementwise(name: str, function: Any, args: tuple[Any, ...], more: dict[str, Any]) -> ShardedTensor:
    mesh = mesh_of(name, [*args, *more.values()])
    places = [(args, i) for i, x in enumerate(args) if isinstance(x, (Tensor, ShardedTensor))]
    operands = [args[i] for _, i in places]
    if any(isinstance(x, (Tensor, ShardedTensor)) for x in more.values()):
        raise refused(name, "found a tensor among the keyword arguments; there is no rule for such tensors")
    ndim = max(x.ndim for x in operands)
    result: list[Any] = [None] * ndim
    for x in operands:
        for dim, axis in enumerate(parts_of(x)[1]):
            at = ndim - x.ndim + dim
            if axis is not None and x.shape[dim] > 1:
                if result[at] not in (None, axis):
                    raise refused(name, f"found operands whose dimension {at} is divided along {result[at]!r} and {axis!r}")
                result[at] = axis
    if len(axes_of(result)) != sum(axis is not None for axis in result):
        raise refused(name, f"found operands that divide two dimensions along one axis of the mesh: {tuple(result)}")
    given = list(args)
    for (_, i), x in zip(places, operands):
        local, spec = parts_of(x)
        for dim in range(x.ndim):
            axis = result[ndim - x.ndim + dim]
            if axis is not None and spec[dim] is None and x.shape[dim] > 1:
                local, spec[dim] = _part(local, mesh, dim, axis), axis
        given[i] = entered(local, spec, axes_of(result), mesh)
    return ShardedTensor(function(*given, **more), mesh, tuple(result))


def _same(name: str, function: Any, args: tuple[Any, ...], more: dict[str, Any]) -> Any:
    x = args[0]
    axis = more.get("axis", more.get("dim", args[1] if len(args) > 1 else -1))
    if any(isinstance(v, (Tensor, ShardedTensor)) for v in [*args[1:], *more.values()]):
        raise refused(name, "it takes further tensors; there is no rule for them")
    axes = range(x.ndim) if axis is None else [axis] if isinstance(axis, int) else axis
    divided = any(x.spec[a] is not None for a in axes)
    if divided and name in ("softmax", "log_softmax") and not set(more) - {"axis", "dim"}:
        return _sharded_sums.softmax(name, x, tuple(axes))
    if divided:
        raise refused(name, f"found the axis {axis}, which is divided along {next(x.spec[a] for a in axes if x.spec[a])!r}")
    return ShardedTensor(function(x.local, *args[1:], **more), x.mesh, x.spec)


def _permute(name: str, function: Any, args: tuple[Any, ...], more: dict[str, Any]) -> ShardedTensor:
    x = args[0]
    order = more.get("axes", more.get("dims", args[1] if len(args) == 2 else args[1:]))
    order = [a + x.ndim if a < 0 else a for a in order]
    return ShardedTensor(function(x.local, order), x.mesh, tuple(x.spec[a] for a in order))


_ALONG_AXES = ("softmax", "log_softmax", "cumulative_sum", "cumulative_prod", "cumsum", "cumprod", "sort", "argsort", "flip", "logcumsumexp")


def _word(args: tuple[Any, ...], more: dict[str, Any], place: int, *words: str, otherwise: Any = None) -> Any:
    return args[place] if len(args) > place else next((more[word] for word in words if word in more), otherwise)


def _view(kind: str, name: str, args: tuple[Any, ...], more: dict[str, Any]) -> Any:
    """A view of one sharded tensor, or NotImplemented."""
    x = args[0]
    if kind == "view.reshape":
        return _sharded_views.reshape(name, x, _word(args, more, 1, "shape"))
    if kind == "view.squeeze":
        return _sharded_views.squeeze(name, x, _word(args, more, 1, "axis", "axes", "dim"))
    if kind == "view.unsqueeze":
        return _sharded_views.expand_dims(name, x, _word(args, more, 1, "axis", "dim", otherwise=0))
    if kind == "view.select":
        axis, place = _word(args, more, 1, "axis", "dim"), _word(args, more, 2, "index")
        return x[(slice(None),) * (axis % x.ndim) + (place,)]
    if name == "moveaxis":
        return _sharded_views.moved(name, x, _word(args, more, 1, "source"), _word(args, more, 2, "destination"))
    return NotImplemented


def apply(name: str, function: Any, args: tuple[Any, ...], more: dict[str, Any]) -> Any:
    """An op of sharded tensors."""
    kind = shape_class(function.full_name)
    if kind == "broadcast":
        return _elementwise(name, function, args, more)
    if kind in ("concat", "stack") and isinstance(args[0], (list, tuple)) and not set(more) - {"axis", "dim"}:
        rule = _sharded_views.joined if kind == "concat" else _sharded_views.stacked
        return rule(name, args[0], _word(args, more, 1, "axis", "dim", otherwise=0))
    if not isinstance(args[0], (Tensor, ShardedTensor)):
        raise refused(name, "its first operand is not a tensor")
    if function.full_name == "bp::linear":
        return _sharded_sums.linear(*args, **more)
    if kind == "matmul":
        return _sharded_sums.matmul(name, function, args, more)
    if isinstance(args[0], ShardedTensor):
        if kind == "reduce":
            return _sharded_sums.reduce(name, function, args, more)
        if kind == "same" and name in _ALONG_AXES:
            return _same(name, function, args, more)
        if kind == "view.permute":
            return _permute(name, function, args, more)
        result = _view(kind, name, args, more)
        if result is not NotImplemented:
            return result
    raise refused(name, f"it has no rule for sharded tensors (its shape rule is {kind or 'of its own'})")


def _is_sharded(value: Any) -> bool:
    return isinstance(value, ShardedTensor) or (isinstance(value, (list, tuple)) and any(isinstance(x, ShardedTensor) for x in value))


def _form(name: str, function: Any, other: Any) -> Any:
    def form(*args: Any, **more: Any) -> Any:
        if any(map(_is_sharded, args)) or any(map(_is_sharded, more.values())):
            return apply(name, function, args, more)
        return NotImplemented if other is None else other(*args, **more)

    form.__name__ = form.__qualname__ = name
    return form


def _install() -> None:
    """Ops hand calls whose arguments they do not take to their other form: it is asked about sharded tensors first."""
    steps = bp.ops.bp
    functions = {name: getattr(bp, name, None) for name in dir(bp) if not name.startswith("_") and name not in bp._LATER}
    for name, function in [*functions.items(), *((name, getattr(steps, name)) for name in dir(steps) if not name.startswith("_"))]:
        if isinstance(function, bp._core.Op):
            other = _other_forms.FORMS.get((function.full_name, name))
            bp._core.set_other_form(function.full_name, name, _form(name, function, other))
    ShardedTensor.__getitem__ = _sharded_views.index  # type: ignore[attr-defined, misc]
    _tensor_argument.KEPT[ShardedTensor] = ("use backplane.replicate", _sharded_sums.einsum)


_install()
