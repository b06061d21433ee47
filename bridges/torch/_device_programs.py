"""What a row computes for one kind of arguments, as a list of calls of ops that the native part runs without Python.

A row is traced twice, with other numbers the second time, and other sizes where one program serves all of them. A program
exists where both traces call the same ops with the same constants, but for the numbers themselves.
"""

from __future__ import annotations

import ast
import math

import torch

import backplane as bp

from ._device_forms import function_of, is_free_of_sizes

__all__ = ["function_of", "program_of"]

_DTYPES = {name: number for number, name in enumerate(
    ("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "bfloat16", "float32", "float64", "complex64", "complex128"))}  # fmt: skip
_WORDS = {"true": True, "false": False, "none": None, "inf": math.inf, "-inf": -math.inf, "nan": math.nan}
_MOST_STEPS, _MOST_ARGUMENTS = 12, 24


class _NotAProgram(Exception):
    """The row needs Python."""


def program_of(row, args, places):
    """(steps, indices of the results) for native/programs.hpp, or None. places: which arguments are numbers."""
    numbers = [args[place] for place in places]
    others = [_other_number(x) for x in numbers]
    try:
        first = _traced(row, args, places, numbers, False)
        second = _traced(row, args, places, others, is_free_of_sizes(row))
        return _merged(first, second, numbers, others)
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
            raise _NotAProgram
        return found

    return bp.make_graph(run)(*tensors)


def _count_of_results(row):
    """How many tensors the operator returns; operators that return other things have no program."""
    packet, _, which = row.partition(".")
    returns = getattr(getattr(torch.ops.aten, packet), which or "default")._schema.returns
    if any(str(x.type) != "Tensor" for x in returns):
        raise _NotAProgram
    return len(returns)


def _merged(first, second, numbers, others):
    if first.constants or second.constants or len(first.nodes) != len(second.nodes) or not 0 < len(first.nodes) <= _MOST_STEPS:
        raise _NotAProgram
    names, steps, n_results = {}, [], 0
    for i in range(len(first.inputs)):
        names[f"%{i}"] = ("t", i)
    for node, twin in zip(first.nodes, second.nodes):
        if node.op != twin.op or node.arguments.keys() != twin.arguments.keys() or _returns_a_list(node.op):
            raise _NotAProgram
        steps.append((node.op, _arguments(node, twin, names, numbers, others), len(node.results)))
        for result in node.results:
            names[str(result).partition(":")[0]] = ("r", n_results)
            n_results += 1
    if len(first.outputs) != len(second.outputs):
        raise _NotAProgram
    outputs = [names[str(output).partition(":")[0]] for output in first.outputs]
    if any(letter != "r" for letter, _ in outputs) or [str(x).partition(":")[0] for x in first.outputs] != [str(x).partition(":")[0] for x in second.outputs]:
        raise _NotAProgram
    return steps, [place for _, place in outputs]


def _returns_a_list(name):
    return "[]" in bp.explain(name).partition("\n")[0].rpartition(" -> ")[2]


def _arguments(node, twin, names, numbers, others):
    """One value per parameter, up to the last that is given."""
    namespace, _, name = node.op.partition("::")
    op = getattr(getattr(bp.ops, namespace), name)
    found, given = [], 0
    for parameter, _, has_default, default, type_, _ in op.parameters:
        if parameter == "out":
            continue
        if parameter in node.arguments:
            if parameter in ("device", "generator"):
                raise _NotAProgram
            found.append(_value(node.arguments[parameter], twin.arguments[parameter], type_.startswith("Tensor"), names, numbers, others))
            given = len(found)
        elif has_default or type_.endswith("None"):
            found.append(("c", _default(default), False))
        else:
            raise _NotAProgram
    if given > _MOST_ARGUMENTS or len(node.arguments) > given:
        raise _NotAProgram
    return found[:given]


def _default(value):
    if isinstance(value, bp.DType):
        return (_DTYPES[value.name],)
    return list(value) if isinstance(value, tuple) else value


def _value(text, other, is_tensor, names, numbers, others):
    if text.startswith("%"):
        if text != other:
            raise _NotAProgram
        return (*names[text], False)
    if text.startswith("[%"):
        if text != other:
            raise _NotAProgram
        return ("l", [(*names[word.strip()], False) for word in text.strip("[]").split(",")], False)
    x, y = _constant(text), _constant(other)
    if type(x) is type(y) and (x == y or x != x):
        return ("c", x, is_tensor and x is not None)
    for i, (number, changed) in enumerate(zip(numbers, others)):
        if type(x) is type(number) and x == number and y == changed and number != changed:
            return ("n", i, is_tensor)
    raise _NotAProgram


def _constant(text):
    if text in _WORDS:
        return _WORDS[text]
    if text in _DTYPES:
        return (_DTYPES[text],)
    value = ast.literal_eval(text.replace("none", "None"))
    if isinstance(value, tuple) or (isinstance(value, list) and any(x is not None and type(x) is not int for x in value)):
        raise _NotAProgram
    return value
