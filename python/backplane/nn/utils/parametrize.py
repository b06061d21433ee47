"""Parameters that are computed from others: `module.weight` becomes a function of `module.parametrizations.weight.original`.

The names, and those in state_dict, are PyTorch's. A module with parametrised tensors has a class of its own, one per class and set of
names, whose properties compute the tensors. So copies of a module have one class, and stay containers of the same structure.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import backplane as bp
from backplane import Tensor

from ..modules._containers import ModuleDict, ModuleList
from ..modules._module import Module
from .._parameter import Parameter, is_frozen

__all__ = [
    "ParametrizationList", "cached", "is_parametrized", "register_parametrization", "remove_parametrizations", "type_before_parametrizations",
]  # fmt: skip
__dir__ = __all__.copy

_classes: dict[Any, type] = {}  # (class, names) -> the class with properties of these names
_local = threading.local()  # of each thread: `kept`, {(module, name): tensor} in a block of cached(); `calls`, {module: {name: tensor}}


class ParametrizationList(ModuleList):
    """The functions of one tensor, first to last, and the tensors that the first one takes.

    The tensors are `original`, or `original0`, `original1`, … if `right_inverse` of the parametrisations gives a sequence.
    Errors: ArgumentValueError for a parametrisation that changes the shape or the dtype.
    """

    def __init__(self, modules: Any, original: Tensor, unsafe: bool = False) -> None:
        super().__init__(modules)
        self.unsafe = unsafe
        values = self._inverse(original)
        self.ntensors = len(values) if isinstance(values, (list, tuple)) else 0
        trains = not is_frozen(original) and "floating" in original.dtype.kind
        for name, value in zip(self._names(), values if self.ntensors else [values]):
            self.register_parameter(name, Parameter(value.detach(), trains and "floating" in value.dtype.kind))

    def _names(self) -> list[str]:
        return [f"original{i}" for i in range(self.ntensors)] if self.ntensors else ["original"]

    def _inverse(self, value: Tensor) -> Any:
        found: Any = value
        with bp.no_grad():
            for module in reversed(self._items()):
                if hasattr(module, "right_inverse"):
                    try:
                        found = module.right_inverse(found)
                    except NotImplementedError:  # PyTorch's way to say that there is none
                        pass
        return found

    def forward(self) -> Tensor:
        items = self._items()
        value = items[0](*[getattr(self, name) for name in self._names()])
        for module in items[1:]:
            value = module(value)
        return value

    def right_inverse(self, value: Tensor) -> None:
        """Writes the tensors that give this value. Errors: ArgumentValueError if the functions have no inverse that fits."""
        found = self._inverse(value)
        values = list(found) if self.ntensors else [found]
        own = [getattr(self, name) for name in self._names()]
        if [tuple(x.shape) for x in own] != [tuple(x.shape) for x in values]:
            raise bp.ArgumentValueError(
                f"right_inverse: found tensors of the shapes {[tuple(x.shape) for x in values]}, expected {[tuple(x.shape) for x in own]}"
            )
        with bp.no_grad():
            for x, new in zip(own, values):
                x.detach()[...] = new


def _computed(module: Any, name: str) -> Tensor:
    """The tensor; within a call of the module, and in a block of cached(), the one that was computed first."""
    made = getattr(vars(module)["parametrizations"], name)
    kept, call = getattr(_local, "kept", None), getattr(_local, "calls", {}).get(module)
    for known, key in ((kept, (module, name)), (call, name)):
        if known is not None and key in known:
            return known[key]
    value = made()
    if call is not None:
        call[name] = value
    if kept is not None:
        kept[module, name] = value
    return value


def _called(base: type, module: Any, args: Any, kwargs: Any) -> Any:
    """A call of the module, which computes each tensor once, as layers read them several times."""
    calls = vars(_local).setdefault("calls", {})
    if module in calls:
        return base.__call__(module, *args, **kwargs)
    calls[module] = {}
    try:
        return base.__call__(module, *args, **kwargs)
    finally:
        del calls[module]


def _property(name: str) -> property:
    return property(lambda module: _computed(module, name), lambda module, value: getattr(vars(module)["parametrizations"], name).right_inverse(value))


def _class_of(base: type, names: frozenset[str]) -> type:
    """The class of modules of type base with these tensors parametrised."""
    if not names:
        return base
    if (base, names) not in _classes:

        def setattr_(self: Any, name: str, value: Any) -> None:
            owner: Any = object if name in names else base
            owner.__setattr__(self, name, value)

        content = {name: _property(name) for name in names} | {"__setattr__": setattr_, "_parametrized": (base, names), "__module__": base.__module__}
        content["__call__"] = lambda self, *args, **kwargs: _called(base, self, args, kwargs)
        _classes[base, names] = type(f"Parametrized{base.__name__}", (base,), content)
    return _classes[base, names]


def _parts(module: Any) -> tuple[type, frozenset[str]]:
    return getattr(type(module), "_parametrized", (type(module), frozenset()))


def type_before_parametrizations(module: Module) -> type:
    """The class of the module without its parametrisations."""
    return _parts(module)[0]


def is_parametrized(module: Module, tensor_name: str | None = None) -> bool:
    """Has the module a parametrised tensor, or this one?"""
    names = _parts(module)[1]
    return bool(names) if tensor_name is None else tensor_name in names


def register_parametrization(module: Any, tensor_name: str, parametrization: Module, *, unsafe: bool = False) -> Any:
    """From now on `module.<tensor_name>` is parametrization(original), computed at each use. Returns the module.

    A further parametrisation of the same tensor is called with the result of those before. `parametrization.right_inverse(value)`, if it
    is defined, gives the original, or a sequence of originals, of a value; else the original is the value itself.
    Optimisers have to be made afterwards, since the module has other parameters then. Assigning to the tensor goes through right_inverse.
    unsafe: True allows a parametrisation that changes the shape or the dtype.
    Errors: ArgumentValueError if the module does not have the tensor; ShapeError and DtypeError for another shape or dtype of the result.

    Example:
        >>> class Symmetric(bp.nn.Module):
        ...     def forward(self, x):
        ...         return bp.triu(x) + bp.triu(x, 1).mT
        >>> layer = bp.nn.utils.parametrize.register_parametrization(bp.nn.Linear(3, 3), "weight", Symmetric())
        >>> bool((layer.weight == layer.weight.mT).all()), sorted(layer.state_dict())
        (True, ['bias', 'parametrizations.weight.original'])
    """
    if not isinstance(parametrization, Module):
        raise bp.ArgumentTypeError(f"register_parametrization: argument parametrization: found {type(parametrization).__name__}, expected a Module")
    base, names = _parts(module)
    own = vars(module)
    if tensor_name in names:
        found = own["parametrizations"]
        before, value = getattr(found, tensor_name), getattr(module, tensor_name)
        value = value.detach()
        made = ParametrizationList([*before, parametrization], value, before.unsafe or unsafe)
        _check(tensor_name, made, value)
        vars(found)[tensor_name] = made
        return module
    value = own.get(tensor_name)
    if not isinstance(value, Tensor):
        raise bp.ArgumentValueError(f"register_parametrization: argument tensor_name: found {tensor_name!r}, expected a parameter or buffer of the module")
    made = ParametrizationList([parametrization], value, unsafe)
    made.train(module.training)
    _check(tensor_name, made, value)
    del own[tensor_name]
    own["_roles"].pop(tensor_name, None)
    if not names:
        own["parametrizations"] = ModuleDict()
    own["parametrizations"][tensor_name] = made
    object.__setattr__(module, "__class__", _class_of(base, names | {tensor_name}))
    return module


def _check(name: str, made: ParametrizationList, value: Tensor) -> None:
    if made.unsafe:
        return
    with bp.no_grad():
        found = made()
    if tuple(found.shape) != tuple(value.shape):
        raise bp.ShapeError(f"register_parametrization: {name}: found a result of shape {tuple(found.shape)}, expected {tuple(value.shape)}; or pass unsafe=True")
    if found.dtype != value.dtype:
        raise bp.DtypeError(f"register_parametrization: {name}: found a result of dtype {found.dtype.name}, expected {value.dtype.name}; or pass unsafe=True")


def remove_parametrizations(module: Any, tensor_name: str, leave_parametrized: bool = True) -> Any:
    """Makes the tensor an ordinary parameter again, with its computed value (leave_parametrized) or with the original. Returns the module.

    Errors: ArgumentValueError if the tensor is not parametrised, or has several originals and leave_parametrized is False.
    """
    base, names = _parts(module)
    if tensor_name not in names:
        raise bp.ArgumentValueError(f"remove_parametrizations: argument tensor_name: found {tensor_name!r}, expected one of {sorted(names)}")
    made = getattr(vars(module)["parametrizations"], tensor_name)
    if not leave_parametrized and made.ntensors:
        raise bp.ArgumentValueError(f"remove_parametrizations: argument leave_parametrized: found False, but {tensor_name!r} has {made.ntensors} originals")
    first = getattr(made, made._names()[0])
    with bp.no_grad():
        value = made().detach() if leave_parametrized else first
    left = names - {tensor_name}
    object.__setattr__(module, "__class__", _class_of(base, left))
    if left:
        del vars(module)["parametrizations"][tensor_name]
    else:
        del vars(module)["parametrizations"]
    module.register_parameter(tensor_name, Parameter(value, first.requires_grad) if leave_parametrized else value)
    return module


@contextmanager
def cached() -> Iterator[None]:
    """`with cached(): ...`: each parametrised tensor is computed once in the block, at its first use."""
    before = getattr(_local, "kept", None)
    _local.kept = {} if before is None else before
    try:
        yield
    finally:
        _local.kept = before
