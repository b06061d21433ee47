"""What a row computes for one kind of arguments, as a list of calls of ops that the native part runs without Python.

A row is traced twice, with other numbers the second time, and other sizes where one program serves all of them. A program
exists where both traces call the same ops with the same constants, but for the numbers themselves.
"""

from __future__ import annotations

import math

import torch

import backplane as bp

from ._device_forms import function_of, is_free_of_sizes
from ._step_lists import NotAProgram, merged

__all__ = ["function_of", "program_of"]

def program_of(row, args, places):
    """(steps, indices of the results) for native/programs.hpp, or None. places: which arguments are numbers."""
    numbers = [args[place] for place in places]
    others = [_other_number(x) for x in numbers]
    try:
        first = _traced(row, args, places, numbers, False)
        second = _traced(row, args, places, others, is_free_of_sizes(row))
        return merged(first, second, numbers, others)
    except Exception:  # whatever a trace cannot follow: the row stays in Python
        return None


def _other_number(x):
    """Another number of the same class (native/call_arguments.cpp)."""
    if isinstance(x, (bool, complex)) or not math.isfinite(x) or x in (0, 1, -1, 2, 0.5, 3, -2, -0.5):
        return x
    if isinstance(x, int):
        return x + (5 if x > 0 else -5)
    if abs(x) < 1:
        return x * 0.75 if abs(x) * 0.75 != 0.5 else x * 0.8
    return x * 1.5 + (3.25 if x > 0 else -3.25)


def _traced(row, args, places, numbers, grown):
    """The graph of the row. Its tensors have no memory of their own."""
    tensors = []

    def example(x):
        if isinstance(x, bp.Tensor):
            shape = [2 * n + 3 if grown and n > 1 else n for n in x.shape]
            tensors.append(bp.broadcast_to(bp.zeros((), dtype=x.dtype, device=x.device), shape))
            return tensors[-1]
        return [example(y) for y in x] if isinstance(x, list) else x

    prepared = [example(x) for x in args]
    for place, number in zip(places, numbers):
        prepared[place] = number

    def run(*inputs):
        given = iter(inputs)

        def filled(x):
            if isinstance(x, bp.Tensor):
                return next(given)
            return [filled(y) for y in x] if isinstance(x, list) else x

        found = function_of(row)(*[filled(x) for x in prepared])
        listed = found if isinstance(found, tuple) else (found,)
        if len(listed) != _count_of_results(row) or not all(isinstance(x, bp.Tensor) for x in listed):
            raise NotAProgram
        return found

    return bp.make_graph(run)(*tensors)


def _count_of_results(row):
    """How many tensors the operator returns; operators that return other things have no program."""
    packet, _, which = row.partition(".")
    returns = getattr(getattr(torch.ops.aten, packet), which or "default")._schema.returns
    if any(str(x.type) != "Tensor" for x in returns):
        raise NotAProgram
    return len(returns)
