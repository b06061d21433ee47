"""The table aten.txt: which expression of Backplane computes an operator of PyTorch.

`row_of(overload)` gives a function of the overload's own arguments, with tensors, dtypes and devices of Backplane in place of
PyTorch's. Rows are compiled at their first use.
"""

from __future__ import annotations

import builtins
import keyword
import pathlib
import re

import torch

from ._rows import bags, derivatives, functions, gamma, groups, networks, polynomials, recurrent, segments

# What an argument is that an overload does not have, where that is not None.
_ABSENT = {"keepdim": False, "unbiased": True, "accumulate": False, "non_blocking": False}
_WORD = re.compile(r"[A-Za-z_]\w*")
_PREFIXES = ("special_", "linalg_", "_")

_rows = {}  # name, or name.overload -> (expression, whether its operands are cast to one dtype)
_compiled = {}
_elementwise = set()  # names of _rows


def _read():
    section, pending = "", ""
    lines = (pathlib.Path(__file__).parent / "aten.txt").read_text(encoding="utf-8").splitlines()
    for line in [*lines, "[end]"]:
        if line.startswith("#"):
            continue
        if line.startswith(" "):
            pending += line
            continue
        if pending.strip():
            _add(pending, section)
        pending = line
        if line.startswith("["):
            section, pending = line.strip("[]"), ""


def _add(row, section):
    names, expression = row.split(" = ", 1)
    for name in names.split():
        if name in _rows:
            raise ValueError(f"aten.txt: found two rows for {name}")
        _rows[name] = (expression.strip(), section == "operands")
        if section in ("operands", "elementwise"):
            _elementwise.add(name)


def names():
    """The operators of aten that have a row, with their overload where the row is for one alone."""
    return sorted(name for name in _rows if "::" not in name)


def has_row(overload):
    """Does the table compute this overload?"""
    return _row(overload) is not None


def _row(overload):
    name, _, which = overload.name().removeprefix("aten::").partition(".")
    one = f"{name}.{which or 'default'}"
    if overload._schema.is_mutable or "Dimname" in str(overload._schema) or ("out_dtype" in str(overload._schema) and one not in _rows):
        return None
    for key in (one, name):
        if key in _rows:
            return _rows[key]
    return None


def is_elementwise(overload):
    """Is the row in a section whose expressions do not read sizes?"""
    name, _, which = overload.name().removeprefix("aten::").partition(".")
    key = f"{name}.{which or 'default'}"
    return (key if key in _rows else name) in _elementwise


def expression_of(overload):
    """The row's expression."""
    return _row(overload)[0]


def row_of(overload):
    """The function that computes an overload of aten, or None where the table has no row for it."""
    if overload not in _compiled:
        found = _row(overload)
        _compiled[overload] = None if found is None else _function(overload, *found)
    return _compiled[overload]


def _tail(name):
    for prefix in _PREFIXES:
        name = name.removeprefix(prefix)
    return name


def _function(overload, expression, cast_operands):
    name = overload.name().removeprefix("aten::").partition(".")[0]
    expression = expression.replace("{name}", name).replace("{tail}", _tail(name))
    arguments = [(name_in_row(a.name), a) for a in overload._schema.arguments]
    space = dict(_NAMES)
    parameters = []
    for i, (parameter, argument) in enumerate(arguments):
        default = ""
        if argument.has_default_value():
            space[f"_default{i}"] = argument.default_value
            default = f"=_default{i}"
        parameters.append(parameter + default)
    taken = {parameter for parameter, _ in arguments}
    for word in set(_WORD.findall(expression)) - taken - space.keys():
        if not keyword.iskeyword(word) and not hasattr(builtins, word):
            space[word] = _ABSENT.get(word)
    if any("=" in parameter for parameter in parameters):
        parameters = _with_later_defaults(parameters)
    code = compile(f"lambda {', '.join(parameters)}: {expression}", f"<aten.txt: {overload.name()}>", "eval")
    function = eval(code, space)  # the table is a part of this package
    return functions.casting_operands(function) if cast_operands else function


def _with_later_defaults(parameters):
    """PyTorch's schemas have arguments without a default behind some with one; Python's functions do not."""
    seen, found = False, []
    for parameter in parameters:
        seen = seen or "=" in parameter
        found.append(parameter if "=" in parameter or not seen else parameter + "=None")
    return found


def name_in_row(name):
    """An argument's name in expressions."""
    return name + "_" if keyword.iskeyword(name) else name


def _names():
    import backplane as bp
    import backplane.compat.torch as spelled
    import backplane.nn.functional as functional

    found = {"bp": bp, "op": bp.ops.bp, "t": spelled, "F": functional}
    for module in (functions, networks, recurrent, groups, bags, polynomials, gamma, segments, derivatives):
        found.update({name: getattr(module, name) for name in module.__all__})
    return found


_NAMES = _names()
_read()
