"""NumPy's functions called with tensors: ours of the same name computes, or the error says what does.

`numpy.sin(x)` is `backplane.sin(x)`, `numpy.concatenate([x, x])` is `backplane.concatenate([x, x])`. A function that only NumPy has
reads the tensors as arrays; one that would change a tensor is refused.
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
    """NumPy's protocol for its elementwise functions."""
    package, name = _namespace.package, ufunc.__name__
    called, ours = f"numpy.{name}", getattr(package, name, None)
    if method == "reduce":
        called, ours = f"{called}.reduce", getattr(package, REDUCTIONS.get(name, ""), None)
        if ours and not more.keys() & {"axis", "keepdims"} and len(inputs) == 1:
            more["axis"] = 0  # NumPy's default of ufuncs
    elif method != "__call__":
        called, ours = f"{called}.{method}", None
    if "out" in more:
        raise _core.ArgumentTypeError(
            f"{called}: argument out: found {_kinds(more['out'])}, expected none beside a Tensor; assign the result, or use x.numpy()"
        )
    if ours is None or name in _PYTORCHS:
        raise _core.ArgumentTypeError(f"{called}: found a Tensor, but backplane.{name} does not take it or does something else. Fix: {called}(x.numpy())")
    if any(hasattr(value, "mask") for value in inputs):
        raise _core.ArgumentTypeError(f"{called}: found a masked array beside a Tensor, which has no mask; use x.numpy(), or fill the array")
    if name in ("equal", "not_equal") and not all(_is_comparable(value) for value in inputs):
        return name == "not_equal"  # as Python has it of objects that know nothing of each other
    return ours(*inputs, **more)


def _is_comparable(value):
    return isinstance(value, _core.Tensor) or getattr(getattr(value, "dtype", None), "kind", "b") in "biufcV"


def _kinds(values):
    return ", ".join(type(value).__name__ for value in (values if isinstance(values, tuple) else (values,)))


def array_function(x: Any, func: Any, types: Any, args: Any, kwargs: Any, /) -> Any:
    """NumPy's protocol for its other functions."""
    package, name, module = _namespace.package, func.__name__, getattr(func, "__module__", "") or ""
    if name in _CHANGING and args and isinstance(args[0], _core.Tensor):
        raise _core.ArgumentTypeError(f"{module}.{name}: found a Tensor to change in place; assign to it: x[index] = values")
    spaces = {"numpy": package, "numpy.linalg": package.linalg, "numpy.fft": package.fft}
    numpys = name in _NUMPYS_ALONE or (name in _OF_ANYTHING and not all(map(_is_numeric, args)))
    ours = None if numpys else getattr(spaces.get(module), name, None)
    call = func._implementation if ours is None else ours
    convert = _to_array if ours is None else _to_tensor
    return call(*map(convert, args), **{word: convert(value) for word, value in kwargs.items()})


def _is_numeric(value):
    return isinstance(value, (_core.Tensor, int, float, complex, list, tuple)) or getattr(getattr(value, "dtype", None), "kind", "O") in "biufc"


def _to_array(value):
    if type(value) in (list, tuple):
        return type(value)(map(_to_array, value))
    return value.__array__() if isinstance(value, _core.Tensor) else value


def _to_tensor(value):
    import numpy

    return _core.asarray(value) if isinstance(value, numpy.ndarray) else value
