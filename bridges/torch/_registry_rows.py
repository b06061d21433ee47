"""The table registry.txt: which expression of PyTorch computes an op of the registry.

`row_of(op)` gives a function of (result, own, arguments): PyTorch's tensors in the place of Backplane's.
"""

from __future__ import annotations

import keyword
import pathlib

import torch

from . import _registry_functions
from ._registry_functions import common_dtype, of_dtype

__all__ = ["has_row", "kept_ops", "names", "row_of"]

_UNSIGNED = {torch.uint16, torch.uint32, torch.uint64}  # PyTorch stores these, and computes little

_rows = {}  # name of the op -> (expression, section)
_compiled = {}


def _read():
    section, pending = "", ""
    for line in [*(pathlib.Path(__file__).parent / "registry.txt").read_text(encoding="utf-8").splitlines(), "[end]"]:
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
    names, _, expression = row.partition(" = ")
    for name in names.split():
        if name in _rows:
            raise ValueError(f"registry.txt: found two rows for {name}")
        _rows[name] = (expression.strip().replace("{name}", name).replace("{stem}", name.removesuffix("_grad")), section)


def names():
    """The names of the ops that have a row."""
    return sorted(_rows)


def kept_ops():
    """The full names of the ops that to_torch does not decompose."""
    return {f"bp::{name}" for name in _rows}


def has_row(op):
    """Does an expression of PyTorch compute this op of the registry (a full name)?"""
    return op.startswith("bp::") and _rows.get(op[4:], ("", "backplane"))[1] != "backplane"


def row_of(op, parameters):
    """The function (result, own, *arguments) of the op with these names of parameters."""
    if op not in _compiled:
        expression, section = _rows[op[4:]]
        names = ", ".join(name + "_" if keyword.iskeyword(name) else name for name in parameters)
        space = {"torch": torch, "F": torch.nn.functional, "aten": torch.ops.aten}
        space.update({name: getattr(_registry_functions, name) for name in _registry_functions.__all__})
        function = eval(compile(f"lambda result, own, {names}: {expression}", f"<registry.txt: {op}>", "eval"), space)  # the table is a part of this package
        _compiled[op] = _casting(function, section)
    return _compiled[op]


def _casting(function, section):
    """The function over operands of the dtype in which the op computes."""
    if section == "moves":
        return function

    def call(result, own, *args):
        if not _UNSIGNED.isdisjoint([result.dtype, *(x.dtype for x in _leaves(args) if isinstance(x, torch.Tensor))]):
            return own()
        if section == "plain":
            return function(result, own, *args)
        if section == "operands" and result.dtype == torch.bool:  # a comparison
            dtype = common_dtype([x for x in _leaves(args) if isinstance(x, torch.Tensor)])
        else:
            dtype = result.dtype
        return function(result, own, *_with_a_tensor([_cast(x, dtype) for x in args], dtype))

    return call


def _with_a_tensor(args, dtype):
    """The arguments, with the first number as a tensor if all are numbers."""
    if any(isinstance(x, torch.Tensor) for x in _leaves(args)) or not isinstance(args[0], (bool, int, float, complex)):
        return args
    return [torch.scalar_tensor(args[0], dtype=dtype or torch.tensor(args[0]).dtype), *args[1:]]


def _leaves(args):
    for x in args:
        if isinstance(x, (list, tuple)):
            yield from x
        else:
            yield x


def _cast(x, dtype):
    if isinstance(x, (list, tuple)):
        return [_cast(y, dtype) for y in x]
    return of_dtype(dtype, x) if isinstance(x, torch.Tensor) else x


_read()
