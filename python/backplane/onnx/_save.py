"""save: a graph or a function as a model in ONNX's format."""

import os
import re

import backplane as bp

from . import _save_elementwise, _save_layers, _save_shapes  # noqa: F401 (fill the table)
from ._model import onnx_package
from ._writer import ROWS, TYPES, GraphNode, Value, Writer, parsed

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

    Errors: ImportError without the package onnx; MissingRuleError for an op that cannot be written, by its name: control flow, random
        numbers, complex numbers; ArgumentValueError for a graph that changes its arguments, or for names that do not fit.

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


def _lines(graph, word):
    """The statements of the graph's text that begin with a word, without those of graphs within."""
    return [line.strip() for line in str(graph).splitlines() if line.startswith(f"  {word} ")]


def _names_in_text(graph):
    """The names of values in the graph's text, by their names in graph.nodes: each numbers constants in an order of its own."""
    names = {}
    calls = [match for line in str(graph).splitlines() if (match := re.match(r"  (%\d+: .*?) = (?:recomputed )?[\w:]+\((.*)\)", line))]
    for node, call in zip(graph.nodes, calls):
        names.update(zip((result.name for result in node.results), re.findall(r"(%\d+):", call[1])))
        names.update(zip(node.inputs, re.findall(r"%\d+", call[2])))
    return names


def _model_of(onnx, graph, input_names, output_names):
    if hasattr(graph, "decompose"):
        graph = graph.decompose(set(ROWS))
    symbols = {}
    for line in _lines(graph, "symbol"):
        if match := re.match(r"symbol (\w+) of (%\d+) axis (\d+)", line):
            symbols[match[1]] = (Value(match[2]), int(match[3]))
    writer = Writer(symbols)
    inputs = [_input(onnx, writer, value, i, input_names) for i, value in enumerate(graph.inputs)]
    for line, tensor in zip(_lines(graph, "constant"), graph.constants):
        _constant(writer, Value(line.split()[1]), tensor)
    outputs = [Value(name.strip()) for name in _lines(graph, "output")[0].removeprefix("output").split(",")]
    names = _names_in_text(graph)
    used = {*outputs, *(names[value] for node in graph.nodes for value in node.inputs)}
    for node in graph.nodes:
        _write(writer, node, used, names)
    if output_names is not None and len(output_names) != len(outputs):
        raise bp.ArgumentValueError(f"onnx.save: argument output_names: found {len(output_names)} names, expected {len(outputs)}")
    infos = []
    for i, (value, described) in enumerate(zip(outputs, graph.outputs)):
        name = output_names[i] if output_names is not None else f"output_{i}"
        writer.nodes.append(onnx.helper.make_node("Identity", [writer.names[value]], [name]))
        infos.append(_info(onnx, name, described))
    made = onnx.helper.make_graph(writer.nodes, "backplane", inputs, infos, writer.initializers)
    return onnx.helper.make_model(made, opset_imports=[onnx.helper.make_opsetid("", OPSET)], ir_version=9, producer_name="backplane")


def _info(onnx, name, value):
    if value.dtype not in TYPES:
        raise bp.MissingRuleError(f"onnx.save: tensors of {value.dtype} are not supported")
    sizes = [int(size) if size.lstrip("-").isdigit() else size.replace(" ", "") for size in value.dims]
    return onnx.helper.make_tensor_value_info(name, TYPES[value.dtype], sizes)


def _input(onnx, writer, value, i, names):
    if names is not None and i >= len(names):
        raise bp.ArgumentValueError(f"onnx.save: argument input_names: found {len(names)} names, expected one for each input")
    name = names[i] if names is not None else value.name or f"input_{i}"
    place = Value(f"%{i}")
    writer.names[place], writer.types[place], writer.shapes[place] = name, value.dtype, [parsed(size) for size in value.dims]
    return _info(onnx, name, value)


def _constant(writer, place, tensor):
    dtype = str(tensor.dtype).rpartition(".")[2]
    if dtype not in TYPES:
        raise bp.MissingRuleError(f"onnx.save: tensors of {dtype} are not supported")
    tensor = tensor.detach().to("cpu")
    wide = bp.cast(tensor, bp.float32) if dtype == "bfloat16" else tensor
    name = writer.constant(wide.numpy(), "weight")
    writer.names[place] = writer.cast(name, "float32", "bfloat16") if dtype == "bfloat16" else name
    writer.types[place], writer.shapes[place] = dtype, list(tensor.shape)


def _write(writer, node, used, names):
    arguments = {name: parsed(re.sub(r"%\d+", lambda match: names[match[0]], text)) for name, text in node.arguments.items()}
    row = ROWS.get(node.op)
    if row is None:
        raise bp.MissingRuleError(f"onnx.save: the op {node.op} cannot be written in ONNX's format")
    described = GraphNode([Value(names[result.name]) for result in node.results], node.results, used)
    for place, result in zip(described.results, node.results):
        writer.types[place], writer.shapes[place] = result.dtype, [parsed(size) for size in result.dims]
    try:
        found = row(writer, described, **arguments)
    except bp.MissingRuleError as error:
        raise bp.MissingRuleError(f"onnx.save: the op {node.op}: {error}") from error
    for place, name in zip(described.results, [found] if isinstance(found, str) else found):
        writer.names[place] = name
