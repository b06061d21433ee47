"""Functions that a module calls before and after forward."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = []


class HookHandle:
    """Removes a hook: by remove(), or at the end of a with block."""

    def __init__(self, entries: list[Any], entry: Any):
        self._entries, self._entry = entries, entry

    def remove(self) -> None:
        self._entries[:] = [entry for entry in self._entries if entry is not self._entry]

    def __enter__(self) -> HookHandle:
        return self

    def __exit__(self, *error: object) -> None:
        self.remove()


class Hooks:
    """The hooks of one module, in order."""

    def __init__(self):
        self.before: list[Any] = []
        self.after: list[Any] = []

    def add(self, when: str, hook: Callable[..., Any], prepend: bool, with_kwargs: bool, always_call: bool = False) -> HookHandle:
        entries = getattr(self, when)
        entry = [hook, with_kwargs, always_call]  # a list, so that the same hook twice is two entries
        entries.insert(0 if prepend else len(entries), entry)
        return HookHandle(entries, entry)

    def call(self, module, args, kwargs):
        for hook, with_kwargs, _ in list(self.before):
            found = hook(module, args, kwargs) if with_kwargs else hook(module, args)
            if found is not None and with_kwargs:
                args, kwargs = found
            elif found is not None:
                args = found if isinstance(found, tuple) else (found,)
        try:
            output = module.forward(*args, **kwargs)
        except Exception:
            self._after(module, args, kwargs, None, failed=True)
            raise
        return self._after(module, args, kwargs, output)

    def _after(self, module, args, kwargs, output, failed=False):
        for hook, with_kwargs, always_call in list(self.after):
            if failed and not always_call:
                continue
            found = hook(module, args, kwargs, output) if with_kwargs else hook(module, args, output)
            output = output if found is None else found
        return output
