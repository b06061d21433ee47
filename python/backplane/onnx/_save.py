"""save: a graph or a function as a model in ONNX's format."""

import os
import re

import backplane as bp

from . import _save_control, _save_elementwise, _save_layers, _save_shapes  # noqa: F401 (fill the table)
from ._model import onnx_package
from ._save_graph import info_of, lines, write_graph
from ._writer import Value, Writer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

OPSET = 20


def save(
    graph: "bp.Graph | Callable[..., Any]", path: "str | os.PathLike[str]", args: "Sequence[Any] | None" = None, *, dynamic: "Any" = None,
    input_names: "Sequence[str] | None" = None, output_names: "Sequence[str] | None" = None
) -> None:  # fmt: skip
    """Writes a graph, or a function for arguments like args, as a model in ONNX's format, opset 20.

    graph: what make_graph or backplane.load returns, or a function that takes args. args, dynamic: as for export; dynamic sizes stay named.
    input_names, output_names: the names in the model; by default the names of the arguments, and output_0, output_1, …

    An op without a counterpart in ONNX is written by its decomposition, except where sizes are dynamic.

    Errors: ImportError without the package onnx; MissingRuleError for an op that cannot be written, by its name: random numbers,
        complex numbers, control flow with dynamic sizes; ArgumentValueError for a graph that changes its arguments, or for names that do not fit.

    Example:
        >>> bp.onnx.save(lambda x: bp.softmax(x), "softmax.onnx", [bp.ones((2, 3))])  # doctest: +SKIP
    """
    onnx = onnx_package()
    if args is not None:
        graph = bp.make_graph(graph, dynamic=dynamic)(*args)
    elif not hasattr(graph, "nodes"):
        raise bp.ArgumentTypeError("onnx.save: argument args: found None, expected the function's arguments; a graph needs none")
    if graph.updates:
        raise bp.ArgumentValueError("onnx.save: the function changes its arguments or outside tensors in place, which a model cannot do. Fix: return the new values")
    model = _model_of(onnx, graph, input_names, output_names)
    onnx.checker.check_model(model)
    onnx.save(model, os.fspath(path))


def _model_of(onnx, graph, input_names, output_names):
    symbols = {}
    for line in lines(graph, "symbol"):
        if match := re.match(r"symbol (\w+) of (%\d+) axis (\d+)", line):
            symbols[match[1]] = (Value(match[2]), int(match[3]))
    writer = Writer(symbols)
    infos = [_input(onnx, value, i, input_names) for i, value in enumerate(graph.inputs)]
    found = write_graph(writer, graph, [info.name for info in infos])
    if output_names is not None and len(output_names) != len(found):
        raise bp.ArgumentValueError(f"onnx.save: argument output_names: found {len(output_names)} names, expected {len(found)}")
    outputs = []
    for i, (value, described) in enumerate(zip(found, graph.outputs)):
        name = output_names[i] if output_names is not None else f"output_{i}"
        writer.nodes.append(onnx.helper.make_node("Identity", [value], [name]))
        outputs.append(info_of(name, described))
    made = onnx.helper.make_graph(writer.nodes, "backplane", infos, outputs, writer.initializers)
    return onnx.helper.make_model(made, opset_imports=[onnx.helper.make_opsetid("", OPSET)], ir_version=9, producer_name="backplane")


def _input(onnx, value, i, names):
    if names is not None and i >= len(names):
        raise bp.ArgumentValueError(f"onnx.save: argument input_names: found {len(names)} names, expected one for each input")
    return info_of(names[i] if names is not None else value.name or f"input_{i}", value)
