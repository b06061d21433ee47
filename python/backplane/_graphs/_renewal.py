"""Copies of the objects that a traced function made and then stored or returned: each call that replays the trace gets its own."""

from __future__ import annotations

import copy
import types

__all__ = ()


def renewed(values, shared, functions):
    """Copies of the values and of the functions, in lists.

    shared: objects that the values lead to and that were there before the trace; the copies lead to the same ones.
    functions: functions that the trace made, which copy.deepcopy leaves as they are. Objects and cells that several values lead to
    are copied once.
    """
    memo = {id(one): one for one in shared}
    cells = []
    made = [_without_state(function, memo, cells) for function in functions]
    for function, own in zip(functions, made):
        own.__defaults__ = copy.deepcopy(function.__defaults__, memo)
        own.__kwdefaults__ = copy.deepcopy(function.__kwdefaults__, memo)
        own.__dict__.update(copy.deepcopy(function.__dict__, memo))
    for cell, own in cells:
        try:
            own.cell_contents = copy.deepcopy(cell.cell_contents, memo)
        except ValueError:  # an empty one
            pass
    return copy.deepcopy(values, memo), made


def _without_state(function, memo, cells):
    """A function of the same code, whose cells are empty where they are not shared."""
    closure = []
    for cell in function.__closure__ or ():
        if id(cell) not in memo:
            memo[id(cell)] = types.CellType()
            cells.append((cell, memo[id(cell)]))
        closure.append(memo[id(cell)])
    own = types.FunctionType(function.__code__, function.__globals__, function.__name__, None, tuple(closure) or None)
    for name in ("__doc__", "__module__", "__qualname__", "__annotations__"):
        setattr(own, name, getattr(function, name))
    memo[id(function)] = own
    return own
