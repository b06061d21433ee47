"""Functions composed of several ops: they compute in one dtype, in float32 on half floats, and round their results once, as composite ops do."""

from __future__ import annotations

from .. import _core
from .._api._data_type_functions import real_type, result_type
from ._ops import NAMESPACE, ops
from .._runtime._wraps import wraps

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .._core import Function

op = getattr(ops, NAMESPACE)

_HALF = (_core.float16, _core.bfloat16)
_COMPLEX = (_core.complex64, _core.complex128)
_FLOATING = {*_HALF, _core.float32, _core.float64, *_COMPLEX}


def _floating(values):
    """The dtypes of floating tensors among the values, those in lists too."""
    found = set()
    for value in values:
        if isinstance(value, _core.Tensor):
            if value.dtype in _FLOATING:
                found.add(value.dtype)
        elif isinstance(value, (list, tuple)) and value and isinstance(value[0], (_core.Tensor, list, tuple)):
            found |= _floating(value)
    return found


def _mapped(value, change):
    if isinstance(value, _core.Tensor):
        return change(value)
    if not isinstance(value, (list, tuple)):
        return value
    elements = [_mapped(element, change) for element in value]
    return type(value)(*elements) if hasattr(value, "_fields") else type(value)(elements)


def rounds_once(function: Function) -> Function:
    """Floating arguments of the function are cast to their common dtype before it runs. If that is a half float, they are cast
    to float32, and its float32 results to the half float after. In a block of autocast nothing is cast here."""

    @wraps(function)
    def rounded(*args, **more):
        found = _floating((*args, *more.values()) if more else args)
        if not found or (len(found) == 1 and not found.intersection(_HALF)):
            return function(*args, **more)
        if _core.unguarded(_core.autocast_dtype, None) is not None:  # then each op says by its class how it computes
            return function(*args, **more)
        dtype = result_type(*found)
        wide = _core.float32 if dtype in _HALF else dtype
        real = real_type(wide)

        def widen(x):
            return op.cast(x, wide if x.dtype in _COMPLEX else real) if x.dtype in _FLOATING else x

        found = function(*(_mapped(value, widen) for value in args), **{name: _mapped(value, widen) for name, value in more.items()})
        if dtype not in _HALF:
            return found
        return _mapped(found, lambda x: op.cast(x, dtype) if x.dtype is _core.float32 else x)

    return rounded
