"""functools.wraps and collections.namedtuple, whose modules take longer to import than any of ours."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from .._core import Function

_COPIED = ("__module__", "__name__", "__qualname__", "__doc__", "__annotations__")
_made = {}


def wraps(function: Function) -> Callable[[Function], Function]:
    """Gives a function that stands before another one its name, documentation and annotations."""

    def named(wrapper: Function) -> Function:
        for name in _COPIED:
            setattr(wrapper, name, getattr(function, name))
        wrapper.__dict__.update(function.__dict__)
        wrapper.__wrapped__ = function
        return wrapper

    return named


def named_tuple(name, fields):
    """The type of tuples with these fields, one for each name, made when the first is."""
    if name not in _made:
        from collections import namedtuple

        _made.setdefault(name, namedtuple(name, fields))
    return _made[name]
