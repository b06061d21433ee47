"""Functions composed of several ops: on half floats they compute in float32 and round their results once, as composite ops do."""

from __future__ import annotations

from .. import _core
from .._api._data_type_functions import result_type
from ._ops import NAMESPACE, ops
from .._runtime._wraps import wraps

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .._core import Function

op = getattr(ops, NAMESPACE)

_HALF = (_core.float16, _core.bfloat16)


def _has_half(values):
    for value in values:
        if isinstance(value, _core.Tensor):
            if value.dtype in _HALF:
                return True
        elif isinstance(value, (list, tuple)) and value and isinstance(value[0], _core.Tensor) and _has_half(value):
            return True
    return False


def _floating(values):
    """The dtypes of floating tensors among the values, those in lists too."""
    found = set()
    for value in values:
        if isinstance(value, _core.Tensor):
            if value.dtype.kind in ("real floating", "complex floating"):
                found.add(value.dtype)
        elif isinstance(value, (list, tuple)):
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
    """Half floats among the arguments of the function are cast to float32 before it runs, and its float32 results to
    their dtype after. In a block of autocast nothing is cast here."""

    @wraps(function)
    def rounded(*args, **more):
        if not _has_half(args) and not (more and _has_half(more.values())):
            return function(*args, **more)
        if _core.unguarded(_core.autocast_dtype, None) is not None:  # then each op says by its class how it computes
            return function(*args, **more)
        dtype = result_type(*_floating([*args, *more.values()]))

        def widen(x):
            return op.cast(x, _core.float32) if x.dtype in _HALF else x

        found = function(*(_mapped(value, widen) for value in args), **{name: _mapped(value, widen) for name, value in more.items()})
        if dtype not in _HALF:
            return found
        return _mapped(found, lambda x: op.cast(x, dtype) if x.dtype is _core.float32 else x)

    return rounded
