"""Modules and parameters in sequences and dicts: Sequential, ModuleList, ModuleDict, ParameterList and ParameterDict."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Self, overload

import backplane as bp
from backplane import Tensor

from ._module import Module
from .._parameter import Parameter

__all__ = ["ModuleDict", "ModuleList", "ParameterDict", "ParameterList", "Sequential"]


class _Numbered(Module):
    """A container whose items have the names "0", "1", …, or the names given to a Sequential."""

    _keys: tuple[str, ...] = ()

    def _items(self) -> list[Any]:
        return [getattr(self, name) for name in self._keys]

    def _replace(self, items: Iterable[Any]) -> None:
        items = list(items)
        for name in self._keys:
            del vars(self)[name]
            self._roles.pop(name, None)
        self._keys = ()
        for i, item in enumerate(items):
            self._put(str(i), item)

    def _put(self, name: str, item: Any) -> None:
        self._set(name, item)
        if name not in self._keys:
            self._keys = (*self._keys, name)

    def _set(self, name: str, item: Any) -> None:
        self.add_module(name, item)

    def _position(self, index: Any) -> int:
        found = index.__index__() + (len(self) if index.__index__() < 0 else 0)
        if not 0 <= found < len(self):
            raise IndexError(f"{type(self).__name__}: found index {index}, expected one below {len(self)}")
        return found

    def __len__(self) -> int:
        return len(self._keys)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._items())

    def __contains__(self, item: object) -> bool:
        return any(item is own for own in self._items())

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return type(self)(*self._arguments(self._items()[index]))
        return getattr(self, self._keys[self._position(index)])

    def _arguments(self, items: list[Any]) -> tuple[Any, ...]:
        return (items,)

    def __setitem__(self, index: int, item: Any) -> None:
        self._put(self._keys[self._position(index)], item)

    def __delitem__(self, index: int | slice) -> None:
        items = self._items()
        del items[index]
        self._replace(items)

    def append(self, item: Any) -> Self:
        self._put(str(len(self)), item)
        return self

    def extend(self, items: Iterable[Any]) -> Self:
        for item in list(items):
            self.append(item)
        return self

    def insert(self, index: int, item: Any) -> Self:
        items = self._items()
        items.insert(index, item)
        self._replace(items)
        return self

    def pop(self, index: int = -1) -> Any:
        item = self[index]
        del self[self._position(index)]
        return item

    def __iadd__(self, items: Iterable[Any]) -> Self:
        return self.extend(items)


class ModuleList(_Numbered):
    """A list of modules. Its forward is not defined: call its items."""

    def __init__(self, modules: Iterable[Module] | None = None) -> None:
        super().__init__()
        self.extend(modules or ())

    def __add__(self, other: Iterable[Module]) -> ModuleList:
        return ModuleList([*self, *other])


class Sequential(_Numbered):
    """Modules that are called one after the other: Sequential(a, b), or Sequential({"name": a, …}) by names."""

    @overload
    def __init__(self, *modules: Any) -> None: ...
    @overload
    def __init__(self, modules: Mapping[str, Module], /) -> None: ...
    def __init__(self, *modules: Any) -> None:
        super().__init__()
        if len(modules) == 1 and isinstance(modules[0], Mapping):
            for name, module in modules[0].items():
                self._put(name, module)
        else:
            for i, module in enumerate(modules):
                self._put(str(i), module)

    def _set(self, name: str, item: Any) -> None:
        if not isinstance(item, Module) and callable(item):
            setattr(self, name, item)  # a plain function, as bp.relu
        else:
            self.add_module(name, item)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return Sequential({name: getattr(self, name) for name in self._keys[index]})
        return getattr(self, self._keys[self._position(index)])

    def __add__(self, other: Iterable[Any]) -> Sequential:
        return Sequential(*self, *other)

    def forward(self, input: Any) -> Any:
        for module in self._items():
            input = module(input)
        return input


class ParameterList(_Numbered):
    """A list of parameters. Tensors become parameters; other values stay as they are."""

    def __init__(self, values: Iterable[Any] | None = None) -> None:
        super().__init__()
        self.extend(values or ())

    def _set(self, name: str, item: Any) -> None:
        if isinstance(item, Tensor):
            self.register_parameter(name, _as_parameter(item))
        else:
            setattr(self, name, item)


def _as_parameter(x: Tensor) -> Tensor:
    return x if isinstance(x, Parameter) else Parameter(x)


class _Named(Module):
    """A container whose items have the keys of a dict."""

    _keys: tuple[str, ...] = ()

    def _names(self) -> list[str]:
        return list(self._keys)

    def _put(self, name: str, item: Any) -> None:
        if name in vars(self) and name not in self._keys:
            raise bp.ArgumentValueError(f"{type(self).__name__}: found the key {name!r}, which is the name of an attribute of every module")
        self._set(name, item)
        if name not in self._keys:
            self._keys = (*self._keys, name)

    def _set(self, name: str, item: Any) -> None:
        raise NotImplementedError

    def __getitem__(self, key: str) -> Any:
        if key not in self._keys:
            raise KeyError(key)
        return getattr(self, key)

    def __setitem__(self, key: str, item: Any) -> None:
        self._put(key, item)

    def __delitem__(self, key: str) -> None:
        if key not in self._names():
            raise KeyError(key)
        del vars(self)[key]
        self._keys = tuple(name for name in self._keys if name != key)
        self._roles.pop(key, None)

    def __len__(self) -> int:
        return len(self._names())

    def __iter__(self) -> Iterator[str]:
        return iter(self._names())

    def __contains__(self, key: object) -> bool:
        return key in self._names()

    def keys(self) -> Iterable[str]:
        return self._names()

    def values(self) -> Iterable[Any]:
        return [getattr(self, name) for name in self._keys]

    def items(self) -> Iterable[tuple[str, Any]]:
        return [(name, getattr(self, name)) for name in self._keys]

    def get(self, key: str, default: Any = None) -> Any:
        return self[key] if key in self else default

    def pop(self, key: str) -> Any:
        item = self[key]
        del self[key]
        return item

    def clear(self) -> None:
        for name in self._names():
            del self[name]

    def update(self, items: Mapping[str, Any] | Iterable[tuple[str, Any]]) -> None:
        for name, item in items.items() if isinstance(items, Mapping) else items:
            self._put(name, item)


class ModuleDict(_Named):
    """A dict of modules. Its forward is not defined: call its items."""

    def __init__(self, modules: Mapping[str, Module] | Iterable[tuple[str, Module]] | None = None) -> None:
        super().__init__()
        self.update(modules or {})

    def _set(self, name: str, item: Any) -> None:
        self.add_module(name, item)


class ParameterDict(_Named):
    """A dict of parameters. Tensors become parameters; other values stay as they are."""

    def __init__(self, parameters: Mapping[str, Any] | Iterable[tuple[str, Any]] | None = None) -> None:
        super().__init__()
        self.update(parameters or {})

    def _set(self, name: str, item: Any) -> None:
        if isinstance(item, Tensor):
            self.register_parameter(name, _as_parameter(item))
        else:
            vars(self)[name] = item
