"""What the generated modules of backplane.compat call: a block for the default dtype, results with out=, checks, elementwise functions."""

from __future__ import annotations

from .. import _core
from .._api._data_type_functions import result_type
from .._calls._hints import named_hint
from .._calls._ops import NAMESPACE, ops

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

op = getattr(ops, NAMESPACE)

_FLOAT_SETTING = 2  # Setting::kFloat of bindings/interpreter/context_settings.hpp
float64 = _core.SettingBlock(_FLOAT_SETTING, _core.float_value(_core.float64))


def given(**arguments: Any) -> dict[str, Any]:
    """The arguments that a call gives: those other than None."""
    return {name: value for name, value in arguments.items() if value is not None}


def require_one_of(function: str, argument: str, value: Any, expected: tuple[Any, ...]) -> None:
    """Refuses a value of an argument that Backplane does not have beyond these."""
    if isinstance(value, (str, bool, int, float, type(None))) and value in expected:
        return
    choices = ", ".join(map(repr, expected))
    raise _core.ArgumentValueError(f"{function}: argument {argument}: found {value!r}, expected {choices if len(expected) == 1 else f'one of {choices}'}")


def written(function: str, result: Any, out: Any) -> Any:
    """The result; with out= written into the tensors that the caller names, which are returned."""
    if out is None or (isinstance(out, tuple) and all(one is None for one in out)):
        return result
    if isinstance(result, tuple):
        if not isinstance(out, tuple) or len(out) != len(result):
            raise _core.ArgumentTypeError(f"{function}: argument out: found {type(out).__name__}, expected a tuple of {len(result)} tensors")
        return type(result)(*map(written, [function] * len(out), result, out)) if hasattr(result, "_fields") else out
    out = out[0] if isinstance(out, tuple) and len(out) == 1 else out
    if not isinstance(out, _core.Tensor):
        raise _core.ArgumentTypeError(f"{function}: argument out: found {type(out).__name__}, expected a Tensor")
    result = _core.asarray(result)
    if out.shape != result.shape:
        raise _core.ShapeError(f"{function}: argument out: found shape {tuple(out.shape)}, expected {tuple(result.shape)}, the result's")
    out[...] = result
    return out


def renamed(function: str, argument: str, value: Any, default: Any, word: str, given_value: Any) -> Any:
    """The value of an argument that a call gives by its other name; refuses both names."""
    if value is not default:
        raise _core.ArgumentTypeError(f"{function}: found {argument} and {word}, expected one of them")
    return given_value


def truth(found: Any) -> Any:
    """A tensor of one bool as Python's bool; inside a transform, where it has no value yet, the tensor."""
    return bool(found) if isinstance(found, bool) or _core.has_values(found) else found


def share_modules(module: str, names: Sequence[str]) -> None:
    """Lets modules of backplane be imported as parts of a generated one: `import backplane.compat.torch.nn.functional`."""
    import importlib
    import sys

    for name in names:
        sys.modules[f"{module}.{name}"] = importlib.import_module(f"backplane.{name}")


def describe(function: Callable[..., Any], name: str, home: Any) -> None:
    """Gives a generated function the documentation of Backplane's function of its name."""
    own = vars(home).get(name)
    text = getattr(own, "__doc__", None)
    if text and callable(own):
        function.__doc__ = text.partition("\n\n")[0]


def no_name(module: str, name: str) -> AttributeError:
    """The error for a name that a module does not have; it says what to write."""
    hint = "" if name.startswith("_") else named_hint(module.split(".")[3:], name)
    return AttributeError(f"module '{module}' has no attribute '{name}'{hint}", name=name)


class Elementwise:
    """An elementwise function with NumPy's arguments, as a ufunc has them."""

    nout = 1

    def __init__(self, function: Callable[..., Any], name: str) -> None:
        self._function, self.__name__, self.__doc__ = function, name, function.__doc__

    def __repr__(self) -> str:
        return f"<function '{self.__name__}' of backplane.compat.numpy>"

    def _run(self, operands, out, where, casting, order, dtype, subok):
        require_one_of(self.__name__, "casting", casting, ("same_kind",))
        require_one_of(self.__name__, "order", order, ("K", "C", "A"))
        with float64:
            if dtype is not None:
                operands = [_core.asarray(x, dtype=dtype) if _promotes(x, dtype) else _refuse_dtype(self.__name__, x, dtype) for x in operands]
            found = self._function(*operands)
        if where is not True:
            if out is None:
                raise _core.ArgumentValueError(f"{self.__name__}: found where without out, expected both; out holds the elements where `where` is false")
            target = out[0] if isinstance(out, tuple) else out
            found = op.where(_core.asarray(where), found, target)
        return written(self.__name__, found, out)

    def __getattr__(self, name: str) -> Any:
        from .._calls._object_hints import of_object

        if name in ("at", "reduceat", "reduce", "accumulate", "outer"):
            raise AttributeError(f"function '{self.__name__}' has no attribute '{name}'{of_object('Op', name)}")
        raise AttributeError(f"function '{self.__name__}' has no attribute '{name}'")


def _promotes(x, dtype):
    """May x be computed in the dtype, as NumPy's same_kind casts allow?"""
    ranks = ("bool", "unsigned integer", "signed integer", "real floating", "complex floating")
    return ranks.index(_core.asarray(x).dtype.kind) <= ranks.index(_core.as_dtype(dtype, "dtype").kind)


def _refuse_dtype(name, x, dtype):
    raise _core.DtypeError(f"{name}: argument dtype: found {dtype} for {_core.asarray(x).dtype.name} elements, expected a dtype of their kind or a wider kind")


_USUAL = ("same_kind", "K")
_PLAIN = (_core.Tensor, float, int)


class Elementwise1(Elementwise):
    """An elementwise function of one operand."""

    nin = 1

    def __call__(self, x: Any, /, out: Any = None, *, where: Any = True, casting: str = "same_kind", order: str = "K", dtype: Any = None, subok: bool = True) -> Any:
        if type(x) is _core.Tensor and x.dtype is _core.float64 and out is dtype is None and where is True and (casting, order) == _USUAL:
            return self._function(x)  # whose result does not depend on the default dtype
        return self._run([x], out, where, casting, order, dtype, subok)


# NumPy's reductions and running reductions of two operands.
_REDUCTIONS = {"add": "sum", "multiply": "prod", "maximum": "max", "minimum": "min", "logical_and": "all", "logical_or": "any"}
_RUNNING = {"add": "cumulative_sum", "multiply": "cumulative_prod", "maximum": "cummax", "minimum": "cummin"}


class Elementwise2(Elementwise):
    """An elementwise function of two operands."""

    nin = 2

    def __call__(
        self, x1: Any, x2: Any, /, out: Any = None, *, where: Any = True, casting: str = "same_kind", order: str = "K", dtype: Any = None, subok: bool = True
    ) -> Any:
        if type(x1) is _core.Tensor and x1.dtype is _core.float64 and type(x2) in _PLAIN and out is dtype is None and where is True and (casting, order) == _USUAL:
            return self._function(x1, x2)
        return self._run([x1, x2], out, where, casting, order, dtype, subok)

    def __getattr__(self, name: str) -> Any:
        own = self.__dict__.get("__name__", "")
        if name == "outer":
            return self._outer
        if name == "reduce" and own in _REDUCTIONS:
            return self._reduce
        if name == "accumulate" and own in _RUNNING:
            return self._accumulate
        return super().__getattr__(name)

    def _outer(self, x1: Any, x2: Any, /, **more: Any) -> Any:
        """The function of each element of x1 with each of x2."""
        with float64:
            x1, x2 = _core.asarray(x1), _core.asarray(x2)
        return self(op.reshape(x1, [*x1.shape, *[1] * x2.ndim]), x2, **more)

    def _reduce(self, array: Any, /, axis: Any = 0, dtype: Any = None, out: Any = None, keepdims: bool = False, initial: Any = None, where: Any = None) -> Any:
        """The reduction over axis, the first one unless stated."""
        with float64:
            found = getattr(op, _REDUCTIONS[self.__name__])(array, axis, keepdims=keepdims, **given(dtype=dtype, initial=initial, where=where))
        return written(self.__name__, found, out)

    def _accumulate(self, array: Any, /, axis: int = 0, dtype: Any = None, out: Any = None) -> Any:
        """The running reduction along axis."""
        with float64:
            found = getattr(op, _RUNNING[self.__name__])(array, axis=axis, **given(dtype=dtype))
        return written(self.__name__, found[0] if isinstance(found, tuple) else found, out)


def common_dtype(*arrays: Any) -> Any:
    """The dtype to which arrays and numbers promote."""
    return result_type(*(_core.asarray(x) for x in arrays))
