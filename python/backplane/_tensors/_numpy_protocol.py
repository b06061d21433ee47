"""NumPy's functions called with tensors: ours of the same name computes, or the error says what does.

`numpy.sin(x)` is `backplane.sin(x)`, `numpy.concatenate([x, x])` is `backplane.concatenate([x, x])`. A function that only NumPy has
reads the tensors as arrays.
"""

from __future__ import annotations

from .. import _core
from . import _namespace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

REDUCTIONS = {"add": "sum", "multiply": "prod", "maximum": "max", "minimum": "min", "logical_and": "all", "logical_or": "any"}
# Whose name ours means something else by, or that answer with NumPy's dtypes.
_NUMPYS_ALONE = ("can_cast", "result_type", "save", "select")
_OF_ANYTHING = ("broadcast_arrays",)  # also of None and texts, as Matplotlib calls it, which no tensor holds
_PYTORCHS = ("reciprocal",)  # which of integers is an integer in NumPy
_CHANGING = ("copyto", "fill_diagonal", "place", "put", "put_along_axis", "putmask")


def array_ufunc(x: Any, ufunc: Any, method: str, /, *inputs: Any, **more: Any) -> Any:
    """NumPy's protocol for its elementwise functions.

    A plain call is ours of the same name. One with NumPy's arguments (out, where, dtype, ...) or by a method (accumulate, at, ...)
    follows NumPy's rules, also for the dtype of its result, as backplane.compat.numpy does.
    """
    package, name = _namespace.package, ufunc.__name__
    if any(hasattr(value, "mask") for value in inputs):
        raise _core.ArgumentTypeError(f"numpy.{name}: found a masked array beside a Tensor, which has no mask; use x.numpy(), or fill the array")
    if name in ("equal", "not_equal") and not all(_is_comparable(value) for value in inputs):
        return name == "not_equal"  # as Python has it of objects that know nothing of each other
    if method == "reduce" and name in REDUCTIONS and len(inputs) == 1 and more.keys() <= {"axis", "keepdims"}:
        return getattr(package, REDUCTIONS[name])(*inputs, **{"axis": 0, **more})  # NumPy's default of ufuncs
    if method == "__call__" and not more and name not in _PYTORCHS and hasattr(package, name):
        return getattr(package, name)(*inputs)
    return _by_numpys_rules(name, method, inputs, more)


def _by_numpys_rules(name, method, inputs, more):
    import numpy

    from ..compat import numpy as numpys

    call = getattr(getattr(numpys, name, None), method, None)
    if call is None:
        raise _core.ArgumentTypeError(f"numpy.{name}{'' if method == '__call__' else '.' + method}: found a Tensor, which it does not take. Fix: give it x.numpy()")
    out = more.pop("out", (None,))
    if method == "at" and isinstance(inputs[0], numpy.ndarray) or any(isinstance(one, numpy.ndarray) for one in out):
        whole, place = getattr(getattr(numpy, name), method), {} if method == "at" else {"out": out}
        return _called(lambda *args, **words: whole(*args, **words, **place), _to_array, inputs, more)
    if any(one is not None for one in out):
        more["out"] = out[0] if len(out) == 1 else out
    return _called(call, _to_tensor, inputs, more)


def _called(call, convert, args, kwargs):
    """The call, with each of its arguments converted."""
    return call(*map(convert, args), **{word: convert(value) for word, value in kwargs.items()})


def _is_comparable(value):
    return isinstance(value, _core.Tensor) or getattr(getattr(value, "dtype", None), "kind", "b") in "biufcV"


def array_function(x: Any, func: Any, types: Any, args: Any, kwargs: Any, /) -> Any:
    """NumPy's protocol for its other functions."""
    package, name, module = _namespace.package, func.__name__, getattr(func, "__module__", "") or ""
    if name in _CHANGING and args and isinstance(args[0], _core.Tensor):
        from ..compat import numpy as forms

        return _called(getattr(forms, name), _to_tensor, args, kwargs)
    spaces = {"numpy": package, "numpy.linalg": package.linalg, "numpy.fft": package.fft}
    numpys = name in _NUMPYS_ALONE or (name in _OF_ANYTHING and not all(map(_is_numeric, args)))
    ours = None if numpys else getattr(spaces.get(module), name, None)
    return _called(func._implementation, _to_array, args, kwargs) if ours is None else _called(ours, _to_tensor, args, kwargs)


def _is_numeric(value):
    return isinstance(value, (_core.Tensor, int, float, complex, list, tuple)) or getattr(getattr(value, "dtype", None), "kind", "O") in "biufc"


def _to_array(value):
    if type(value) in (list, tuple):
        return type(value)(map(_to_array, value))
    return value.__array__() if isinstance(value, _core.Tensor) else value


def _to_tensor(value):
    import numpy

    return _core.asarray(value) if isinstance(value, numpy.ndarray) else value
