"""Native kernels of the operators torch.ops.<namespace>.<op>: calls on the CPU, also those that autograd records and those under vmap, without Python.

They are used where the native part has been compiled (`backplane-torch build`, or the first use of the device). Elsewhere the
operators have kernels in Python, with the same results.
"""

from __future__ import annotations

import torch

import backplane as bp

from ._build import load_cached
from ._program_plans import program_plan

__all__ = ["register", "register_run", "registered"]

registered = set()  # full names of the ops with native kernels

_KINDS = {
    "Tensor": "t", "Tensor | None": "t", "Sequence[Tensor]": "l", "Sequence[Tensor | None]": "l", "Scalar": "s", "Scalar | None": "s", "bool": "b", "str": "x", "Size": "i",
    "Size | None": "i", "Index": "i", "Axis": "i", "Axis | None": "i", "Sequence[Size]": "v", "Shape": "v", "Sequence[Index]": "v", "Axes": "v", "Axes | None": "v",
    "DType": "d", "DType | None": "d",
}  # fmt: skip
_ERRORS = {
    1: bp.ArgumentValueError, 2: bp.ArgumentTypeError, 3: bp.ShapeError, 4: bp.DtypeError, 5: bp.OutOfRangeError, 6: bp.MissingRuleError, 7: bp.OutOfMemoryError,
    8: bp.DeviceError, 9: bp.DeviceLostError, 10: bp.DataError, 11: bp.VersionError, 12: bp.BusyError, 13: bp.InternalError,
    15: bp.NumberRangeError,
}  # fmt: skip


def register(name, parameters, overload, record, describe):
    """Registers the kernels of the operator `name` for calls, autograd and vmap. False: there is no native part, or the op is written in Python.

    record(keys, *args, **kwargs): a recorded call in forward mode. describe(*constants): the program of a call (native/call_programs.hpp).
    """
    native = load_cached()
    kinds = "".join(_KINDS[type_] for *_, type_, _ in parameters)
    if native is None or not native.add_op(name, kinds, _raise):
        return False
    native.add_transforms(name, kinds, _by_position(overload, record), _text_of(kinds, describe))
    registered.add(name)
    return True


def register_run(overload, run, record):
    """Registers the kernels of backplane_bridge::run. False: there is no native part. run(program, tensors): the results; record: as above."""
    native = load_cached()
    if native is None:
        return False
    native.add_run(run, program_plan)
    native.add_transforms("backplane_bridge::run", "xl", _by_position(overload, record), None)
    return True


def _by_position(overload, record):
    names = [argument.name for argument in overload._schema.arguments]
    positional = sum(not argument.kwarg_only for argument in overload._schema.arguments)

    def call(keys, *args):
        return record(torch._C.DispatchKeySet.from_raw_repr(keys), *args[:positional], **dict(zip(names[positional:], args[positional:])))

    return call


def _text_of(kinds, describe):
    """describe for constants: True stands for a tensor."""
    tensor = torch.empty(0)

    def filled(value, kind):
        if kind == "l":
            return [tensor if is_there else None for is_there in value]
        return (tensor if value else None) if kind == "t" else value

    return lambda *constants: describe([filled(value, kind) for value, kind in zip(constants, kinds)])


def _raise(code, text):
    raise _ERRORS.get(code, bp.BackplaneError)(text)
