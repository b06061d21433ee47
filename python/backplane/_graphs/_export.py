"""Models in files: export writes what a function does, with its weights; load (_saving.py) reads it back; `backplane run` needs no Python."""

from __future__ import annotations

import os

from .. import _core
from .._files._file_names import file_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from .._core import Device, DynamicSizes, Model, Tensor

__all__ = ["export", "parse_graph"]


def export(
    fun: Callable[..., Any], args: Sequence[Any], path: str | os.PathLike[str], *, dynamic: DynamicSizes | None = None
) -> None:
    """Writes fun, as it is for arguments like args, to one safetensors file.

    fun is traced (see make_graph) with args, a sequence of its positional arguments; tensors within containers become the inputs, in
    order. Tensors that it uses from outside are written with their elements. Every reader of safetensors opens the file. Weights have
    the names of the module that is exported, and those of other functions the names of the variables: "0.weight", "model.0.weight".
    dynamic: sizes of args that may differ from run to run, as make_graph takes them.
    Errors: as make_graph; ArgumentTypeError for args that are no sequence, ArgumentValueError where the file cannot be written.

    Example:
        >>> w = bp.ones((3, 2))
        >>> bp.export(lambda x: bp.tanh(x @ w), [bp.ones((4, 3))], "model.safetensors")
    """
    if isinstance(args, (_core.Tensor, dict, str)):
        raise _core.ArgumentTypeError(
            f"export: argument args: found a {type(args).__name__}, expected the sequence of the function's positional arguments; write [x] for one"
        )
    graph = _core.make_graph(fun, dynamic=dynamic)(*args)
    if not graph.outputs and not graph.updates:
        raise _core.ArgumentValueError(
            "export: the function returned no tensor, so the file would compute nothing. Fix: return a tensor; backplane.asarray converts numbers"
        )
    graph.save(file_name("export", path), _constant_names(graph, fun))


def _constant_names(graph, fun):
    """The name of each constant in fun, "" for one that has none."""
    known = [(name, x) for name, x in _named_tensors(fun) if isinstance(x, _core.Tensor) and _core.has_values(x)]
    return [next((name for name, own in known if _is_same(own, x)), "") for x in graph.constants]


def _is_same(x, y):
    return x.shape == y.shape and x.dtype == y.dtype and (x is y or (_core.shares_memory(x, y) and x.strides == y.strides))


def _named_tensors(fun):
    """(name, tensor) of what a module, a method of one, or a function with its variables holds."""
    owner = getattr(fun, "__self__", fun)
    if hasattr(owner, "named_parameters"):
        yield from _of_variable("", owner)
    code = getattr(fun, "__code__", None)
    if code is not None:
        for name, cell in zip(code.co_freevars, fun.__closure__ or ()):
            yield from _of_variable(name, _content(cell))
        for name in code.co_names:
            if name in fun.__globals__:
                yield from _of_variable(name, fun.__globals__[name])


def _content(cell):
    try:
        return cell.cell_contents
    except ValueError:  # a variable without a value yet
        return None


def _of_variable(name, value):
    start = f"{name}." if name else ""
    if isinstance(value, _core.Tensor):
        yield name, value
    elif hasattr(value, "named_parameters") and hasattr(value, "named_buffers") and not isinstance(value, type):
        yield from ((start + path, x) for path, x in (*value.named_parameters(), *value.named_buffers()))
    elif isinstance(value, dict):
        yield from ((f"{start}{key}", x) for key, x in value.items() if isinstance(key, str))
    elif isinstance(value, (list, tuple)):
        yield from ((f"{start}{i}", x) for i, x in enumerate(value))


def parse_graph(text: str, constants: Mapping[str, Tensor] | None = None, device: Device | str | None = None) -> Model:
    """The model that a graph's text describes: str(graph), and what is edited in it.

    constants: the tensors of constants whose elements are not in the text (those above 16 elements), by their names there:
    "constant.N" for graph.constants[N], unless it was named. Those with other elements than the text's digest says are refused.
    device: where it runs, in place of the devices of the text.
    Errors: ArgumentValueError for a text that is none, with line and column, or for a node that its op refuses, with the node.

    Example:
        >>> graph = bp.make_graph(lambda x: bp.tanh(x) * 2)(bp.ones((3,)))
        >>> bp.parse_graph(str(graph).replace("bp::tanh", "bp::sin"))(bp.zeros((3,)))[0].tolist()
        [0.0, 0.0, 0.0]
    """
    if constants is not None and not hasattr(constants, "keys"):
        raise _core.ArgumentTypeError(
            f"parse_graph: argument constants: found a {type(constants).__name__}, expected a dict of tensors by their names in the text"
        )
    return _core.parse_model(text, dict(constants or {}), device)
