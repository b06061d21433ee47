"""A module's tensors by name: state_dict, load_state_dict and functional_call; and the targets of to()."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Mapping
from typing import Any

import backplane as bp
from backplane import Device, Tensor

from ... import _core
from . import _module_tree
from .._parameter import replace

__all__ = ["functional_call"]

LoadResult = namedtuple("LoadResult", ["missing_keys", "unexpected_keys"])


def found(module, what, named, target):
    if target in named:
        return named[target]
    raise AttributeError(f"{type(module).__name__} has no {what} named {target!r}; it has {', '.join(map(repr, named))}")


def read_target(args, device, dtype):
    """(device, dtype) of the arguments of to()."""
    for value in args:
        if isinstance(value, Tensor):
            device, dtype = value.device, value.dtype
        elif isinstance(value, Device):
            device = value
        elif isinstance(value, str) and not _is_dtype(value):
            device = value
        elif value is not None and not isinstance(value, bool):
            dtype = value
    dtype = None if dtype is None else _core.as_dtype(dtype, "to")
    if dtype is not None and "floating" not in dtype.kind:
        raise bp.DtypeError(f"to: argument dtype: found {dtype.name}, expected a floating or complex dtype")
    return (Device(device) if isinstance(device, str) else device), dtype


def _is_dtype(text):
    try:
        return bool(_core.as_dtype(text, "to"))
    except bp.BackplaneError:
        return False


def state_dict(module, destination, prefix, keep_vars):
    for path, owner, name, x in _places(module):
        if owner._role(name, x) != "temporary":
            destination[prefix + path] = x if keep_vars else x.detach()
    return destination


def _places(module):
    """(whole name, module, name there, tensor) of every tensor, shared ones at each of their places; parameters before buffers."""
    for start, owner in module.named_modules(remove_duplicate=False):
        if not owner.is_sized:
            owner.refuse_unsized()
        tensors = _module_tree.own_tensors(owner)
        tensors.sort(key=lambda pair: owner._role(*pair) in ("buffer", "temporary"))
        for name, x in tensors:
            yield (f"{start}.{name}" if start else name), owner, name, x


def load_state_dict(module, state, strict, assign):
    if not isinstance(state, Mapping):
        raise bp.ArgumentTypeError(f"load_state_dict: argument state_dict: found {type(state).__name__}, expected a dict of tensors by name")
    for start, part in module.named_modules():
        if not part.is_sized:
            part.prepare_to_load(start, state)
    owners = {path: (owner, name, x) for path, owner, name, x in _places(module)}
    wanted = {path for path, (owner, name, x) in owners.items() if owner._role(name, x) != "temporary"}
    result = LoadResult([path for path in owners if path in wanted and path not in state], [key for key in state if key not in wanted])
    values = {path: _as_tensor(path, state[path], owners[path][2]) for path in owners if path in wanted and path in state}
    faults = [
        f"{path} has shape {tuple(values[path].shape)}, expected {tuple(owners[path][2].shape)}"
        for path in values if values[path].shape != owners[path][2].shape
    ]  # fmt: skip
    if strict and result.missing_keys:
        faults.append(f"missing: {', '.join(result.missing_keys)}")
    if strict and result.unexpected_keys:
        faults.append(f"unexpected: {', '.join(result.unexpected_keys)}")
    if faults:
        raise bp.ArgumentValueError(f"load_state_dict: the state does not fit {type(module).__name__}: {'; '.join(faults)}")
    for path, value in values.items():
        owner, name, x = owners[path]
        (_assign if assign else _copy)(owner, name, x, value)
    return result


def _as_tensor(path, value, own):
    try:
        x = value if isinstance(value, Tensor) else bp.asarray(value)
    except (TypeError, ValueError, bp.BackplaneError):
        raise bp.ArgumentTypeError(f"load_state_dict: {path}: found {type(value).__name__}, expected a tensor or an array") from None
    if x.dtype.kind == "complex floating" and own.dtype.kind != "complex floating":
        raise bp.DtypeError(f"load_state_dict: {path}: found {x.dtype.name}, expected a real dtype, as {own.dtype.name}")
    return x


def _copy(owner, name, x, value):
    with bp.no_grad():
        x.detach()[...] = value.detach().astype(x.dtype).to(x.device)


def _assign(owner, name, x, value):
    value = value.detach()
    if x.requires_grad:
        value.requires_grad_()
    role = owner._role(name, x)
    replace(x, value)
    _module_tree.place(owner, name, value)
    owner._roles[name] = role


def functional_call(
    module: Any, parameter_and_buffer_dicts: Any, args: Any = None, kwargs: Mapping[str, Any] | None = None, *, strict: bool = False
) -> Any:
    """module(*args, **kwargs) with other tensors in the place of its own.

    The module keeps its parameters. Buffers and numbers that forward sets are set in the module, unless buffers are given.

    parameter_and_buffer_dicts: tensors by name, or a sequence of such dicts; tensors without a name there stay.
        Shared tensors change at all their places.
    args: the positional arguments; one that is not a tuple is the only argument. strict: every tensor needs a name.
    Errors: ArgumentValueError for a name that the module does not have, or a shape that differs.

    Example:
        >>> layer = bp.nn.Linear(2, 1)
        >>> loss = lambda params, x: bp.nn.functional_call(layer, params, x).sum()
        >>> sorted(bp.grad(loss)(dict(layer.named_parameters()), bp.ones((3, 2))))
        ['bias', 'weight']
    """
    dicts = parameter_and_buffer_dicts if isinstance(parameter_and_buffer_dicts, (list, tuple)) else [parameter_and_buffer_dicts]
    given = {name: x for part in dicts for name, x in part.items()}
    places = {path: x for path, _, _, x in _places(module)}
    unknown = [name for name in given if name not in places]
    if unknown:
        raise bp.ArgumentValueError(f"functional_call: found {', '.join(map(repr, unknown))}, which {type(module).__name__} does not have")
    by_id = {}
    for name, value in given.items():
        if value.shape != places[name].shape:
            raise bp.ArgumentValueError(
                f"functional_call: {name}: found shape {tuple(value.shape)}, expected {tuple(places[name].shape)}, that of the module's tensor"
            )
        if by_id.setdefault(places[name], value) is not value:
            raise bp.ArgumentValueError(f"functional_call: found two tensors for {name!r}, which the module shares between names")
    if strict and (left := [path for path, x in places.items() if x not in by_id]):
        raise bp.ArgumentValueError(f"functional_call: with strict=True, found no tensor for {', '.join(left)}")
    buffers = {path for path, owner, name, x in _places(module) if owner._role(name, x) in ("buffer", "temporary")}
    tensors, layout = _module_tree.flatten(module, follows=buffers.isdisjoint(given))
    called = _module_tree.unflatten(layout, [by_id.get(x, x) for x in tensors])
    args = () if args is None else args if isinstance(args, tuple) else (args,)
    return called(*args, **(kwargs or {}))

