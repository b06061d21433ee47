"""What the generated modules of backplane.compat call: a block for the default dtype, results with out=, and checks."""

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


def library_dtype(dtype: Any) -> Any:
    """The dtype; Python's float is float64 and its complex complex128, as in the libraries."""
    return _core.float64 if dtype is float else _core.complex128 if dtype is complex else dtype


def given(**arguments: Any) -> dict[str, Any]:
    """The arguments that a call gives: those other than None."""
    return {name: value for name, value in arguments.items() if value is not None}


def require_one_of(function: str, argument: str, value: Any, expected: tuple[Any, ...]) -> None:
    """Refuses a value of an argument that Backplane does not have beyond these."""
    if isinstance(value, (str, bool, int, float, type(None))) and value in expected:
        return
    choices = ", ".join(map(repr, expected))
    raise _core.ArgumentValueError(f"{function}: argument {argument}: found {value!r}, expected {choices if len(expected) == 1 else f'one of {choices}'}")


def written(function: str, result: Any, out: Any, broadcasts: bool = False) -> Any:
    """The result; with out= written (of an elementwise function broadcast) into the tensors that the caller names, which are returned."""
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
    if out.shape != result.shape and not (broadcasts and _broadcasts(result.shape, out.shape)):
        raise _core.ShapeError(f"{function}: argument out: found shape {tuple(out.shape)}, expected {tuple(result.shape)}, the result's")
    out[...] = result
    return out


def _broadcasts(shape, target):
    return len(shape) <= len(target) and all(size in (1, wanted) for size, wanted in zip(reversed(shape), reversed(target)))


def renamed(function: str, argument: str, value: Any, default: Any, word: str, given_value: Any) -> Any:
    """The value of an argument that a call gives by its other name; refuses both names."""
    if value is not default:
        raise _core.ArgumentTypeError(f"{function}: found {argument} and {word}, expected one of them")
    return given_value


def truth(found: Any) -> Any:
    """A tensor of one bool as Python's bool; inside a transform, where it has no value yet, the tensor."""
    return bool(found) if isinstance(found, bool) or _core.has_values(found) else found


def share_modules(module: str, names: Sequence[str]) -> None:
    """Lets modules of backplane be imported as parts of a generated one, by their name or, as NAME=MODULE, by another:
    `import backplane.compat.torch.nn.functional`, `from backplane.compat.torch.utils.data import DataLoader`."""
    import importlib
    import sys

    for name in names:
        name, _, target = name.partition("=")
        sys.modules[f"{module}.{name}"] = importlib.import_module(f"backplane.{target or name}")


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


def common_dtype(*arrays: Any) -> Any:
    """The dtype to which arrays and numbers promote."""
    return result_type(*(_core.asarray(x) for x in arrays))
