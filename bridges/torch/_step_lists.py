"""Graphs as lists of calls of ops, as native/programs.hpp reads them."""

from __future__ import annotations

import ast
import math

import backplane as bp

__all__ = ["NotAProgram", "merged"]

_DTYPES = {name: number for number, name in enumerate(
    ("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "bfloat16", "float32", "float64", "complex64", "complex128"))}  # fmt: skip
_WORDS = {"true": True, "false": False, "none": None, "inf": math.inf, "-inf": -math.inf, "nan": math.nan}
_MOST_STEPS, _MOST_ARGUMENTS = 12, 24


class NotAProgram(Exception):
    """The calls need Python."""


def merged(first, second, numbers=(), others=(), most_steps=_MOST_STEPS):
    """(steps, indices of the results) of two graphs that call the same ops. others: what the numbers are in the second graph."""
    if first.constants or second.constants or len(first.nodes) != len(second.nodes) or not 0 < len(first.nodes) <= most_steps:
        raise NotAProgram
    names, steps, n_results = {}, [], 0
    for i in range(len(first.inputs)):
        names[f"%{i}"] = ("t", i)
    for node, twin in zip(first.nodes, second.nodes):
        if node.op != twin.op or node.arguments.keys() != twin.arguments.keys() or _returns_a_list(node.op):
            raise NotAProgram
        steps.append((node.op, _arguments(node, twin, names, numbers, others), len(node.results)))
        for result in node.results:
            names[str(result).partition(":")[0]] = ("r", n_results)
            n_results += 1
    if len(first.outputs) != len(second.outputs):
        raise NotAProgram
    outputs = [names[str(output).partition(":")[0]] for output in first.outputs]
    if any(letter != "r" for letter, _ in outputs) or [str(x).partition(":")[0] for x in first.outputs] != [str(x).partition(":")[0] for x in second.outputs]:
        raise NotAProgram
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
            absent = type_.startswith("Sequence[Tensor") and "none" in node.arguments[parameter]  # an element that native/programs.hpp does not know
            if parameter in ("device", "generator") or absent:
                raise NotAProgram
            found.append(_value(node.arguments[parameter], twin.arguments[parameter], type_.startswith("Tensor"), names, numbers, others))
            given = len(found)
        elif has_default or type_.endswith("None"):
            found.append(("c", _default(default), False))
        else:
            raise NotAProgram
    if given > _MOST_ARGUMENTS or len(node.arguments) > given:
        raise NotAProgram
    return found[:given]


def _default(value):
    if isinstance(value, bp.DType):
        return (_DTYPES[value.name],)
    return list(value) if isinstance(value, tuple) else value


def _value(text, other, is_tensor, names, numbers, others):
    if text.startswith("%"):
        if text != other:
            raise NotAProgram
        return (*names[text], False)
    if text.startswith("[%"):
        if text != other:
            raise NotAProgram
        return ("l", [(*names[word.strip()], False) for word in text.strip("[]").split(",")], False)
    x, y = _constant(text), _constant(other)
    if type(x) is type(y) and (x == y or x != x):
        return ("c", x, is_tensor and x is not None)
    for i, (number, changed) in enumerate(zip(numbers, others)):
        if type(x) is type(number) and x == number and y == changed and number != changed:
            return ("n", i, is_tensor)
    raise NotAProgram


def _constant(text):
    if text in _WORDS:
        return _WORDS[text]
    if text in _DTYPES:
        return (_DTYPES[text],)
    value = ast.literal_eval(text.replace("none", "None"))
    if isinstance(value, tuple) or (isinstance(value, list) and any(x is not None and type(x) is not int for x in value)):
        raise NotAProgram
    return value
