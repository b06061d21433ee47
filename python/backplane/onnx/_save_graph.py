"""What save writes of a graph: its constants and nodes, by the table, into the model or into a body of control flow."""

import re
import textwrap

import backplane as bp

from ._writer import ROWS, TYPES, GraphNode, Value, Writer, parsed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any


def lines(graph: "Any", word: str) -> "list[str]":
    """The statements of the graph's text that begin with a word, without those of graphs within."""
    return [line.strip() for line in str(graph).splitlines() if line.startswith(f"  {word} ")]


def write_graph(writer: Writer, graph: "Any", inputs: "Sequence[str]") -> "list[str]":
    """Writes the nodes of the graph for inputs of these names; gives the names of its outputs."""
    if hasattr(graph, "decompose"):
        graph = graph.decompose(set(ROWS))
    writer.graphs = _graphs_within(graph)
    for i, (name, value) in enumerate(zip(inputs, graph.inputs)):
        place = Value(f"%{i}")
        writer.names[place], writer.types[place], writer.shapes[place] = name, value.dtype, [parsed(size) for size in value.dims]
    for line, tensor in zip(lines(graph, "constant"), graph.constants):
        _constant(writer, Value(line.split()[1]), tensor)
    outputs = [Value(name.strip()) for row in lines(graph, "output") for name in row.removeprefix("output").split(",") if name.strip()]
    names = _names_in_text(graph)
    used = {*outputs, *(names[value] for node in graph.nodes for value in node.inputs)}
    for node in graph.nodes:
        _write(writer, node, used, names)
    return [writer.names[value] for value in outputs]


def info_of(name: str, value: "Any") -> "Any":
    """An input or output of a graph as onnx describes it."""
    import onnx

    if value.dtype not in TYPES:
        raise bp.MissingRuleError(f"onnx.save: tensors of {value.dtype} are not supported")
    sizes = [int(size) if size.lstrip("-").isdigit() else size.replace(" ", "") for size in value.dims]
    return onnx.helper.make_tensor_value_info(name, TYPES[value.dtype], sizes)


def _graphs_within(graph):
    """The functions of control flow, which the graph's text holds."""
    texts, begin = [], None
    rows = str(graph).splitlines()
    for i, row in enumerate(rows):
        if begin is None and row.startswith("  graph "):
            begin = i
        elif begin is not None and row == "  }":
            texts.append(textwrap.dedent("\n".join(rows[begin : i + 1])) + "\n")
            begin = None
    try:
        models = [bp.parse_graph(text) for text in texts]
        for size in (size for model in models for value in model.inputs for size in value.dims):
            if not size.isdigit():
                raise bp.MissingRuleError(
                    f"onnx.save: found control flow (a scan, a cond, a while_loop, or a recurrent layer) over the dynamic size {size!r}, expected numbers "
                    "for its sizes. Fix: leave the size out of dynamic, and save a model for each size"
                )
        return [bp.make_graph(model)(*(bp.zeros([int(size) for size in value.dims], dtype=getattr(bp, value.dtype)) for value in model.inputs)) for model in models]
    except bp.MissingRuleError:
        raise
    except (bp.BackplaneError, ValueError) as error:
        raise bp.MissingRuleError(f"onnx.save: a function of control flow cannot be written: {error}. Fix: make large arrays in it arguments") from error


def _names_in_text(graph):
    """The names of values in the graph's text, by their names in graph.nodes: each numbers constants in an order of its own."""
    names = {}
    calls = [match for line in str(graph).splitlines() if (match := re.match(r"  (%\d+: .*?) = (?:recomputed )?[\w:]+\((.*)\)", line))]
    for node, call in zip(graph.nodes, calls):
        names.update(zip((result.name for result in node.results), re.findall(r"(%\d+):", call[1])))
        names.update(zip(node.inputs, re.findall(r"%\d+", call[2])))
    return names


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
