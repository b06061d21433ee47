"""Native kernels of the operators torch.ops.<namespace>.<op>: calls on the CPU, and calls that autograd records, without Python.

They are used where the native part has been compiled (`backplane-torch build`, or the first use of the device). Elsewhere the
operators have kernels in Python, with the same results.
"""

from __future__ import annotations

import torch

import backplane as bp

from ._build import load_cached

__all__ = ["register", "registered"]

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


def register(name, parameters, overload, record, derive, describe):
    """Registers the kernels of the operator `name` for the keys CPU and Autograd. False: there is no native part, or the op is written in Python.

    record(keys, *args, **kwargs): a recorded call inside torch.func and in forward mode. derive(arguments, cotangents): the cotangent of
    each tensor among the arguments, or None. describe(arguments, cotangents): the derivative as a program (native/derivatives.hpp), or None.
    """
    native = load_cached()
    kinds = "".join(_KINDS[type_] for *_, type_, _ in parameters)
    if native is None or not native.add_op(name, kinds, _raise):
        return False
    names = [argument.name for argument in overload._schema.arguments]
    positional = sum(not argument.kwarg_only for argument in overload._schema.arguments)

    def record_call(keys, *args):
        return record(torch._C.DispatchKeySet.from_raw_repr(keys), *args[:positional], **dict(zip(names[positional:], args[positional:])))

    native.add_recorded(name, kinds, record_call, derive, describe)
    registered.add(name)
    return True


def _raise(code, text):
    raise _ERRORS.get(code, bp.BackplaneError)(text)
