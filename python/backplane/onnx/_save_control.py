"""save's table: control flow, whose functions become the bodies of If, Loop and Scan."""

import re

import numpy as np

from ._save_graph import info_of, write_graph
from ._writer import TYPES, GraphNode, Writer, writes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any


def _within(w: Writer, text: str) -> "Any":
    match = re.fullmatch(r"graph\((\d+)\)", text)
    assert match is not None
    return w.graphs[int(match[1])]


def _body(w: Writer, name: str, inputs: "Sequence[Any]", write: "Callable[[Writer], tuple[list[str], list[Any]]]") -> "Any":
    """A body with these inputs. write: writes its nodes; it gives the names of its outputs and what describes them."""
    import onnx

    inner = w.inside()
    found, described = write(inner)
    outputs = []
    for value, info in zip(found, described):
        own = inner.fresh("result")  # an output may be an input, or one value several outputs
        inner.nodes.append(onnx.helper.make_node("Identity", [value], [own]))
        outputs.append(info_of(own, info))
    return onnx.helper.make_graph(inner.nodes, w.fresh(name), list(inputs), outputs, inner.initializers)


def _inputs(w: Writer, values: "Sequence[Any]") -> "list[Any]":
    """Inputs of a body, with the dtypes and shapes of the inputs of its graph."""
    return [info_of(w.fresh("argument"), value) for value in values]


def _names(infos: "Sequence[Any]") -> "list[str]":
    return [info.name for info in infos]


def _emit(w: Writer, op: str, inputs: "Sequence[str]", node: GraphNode, **attributes: "Any") -> "list[str]":
    found = w.emit(op, inputs, max(len(node.results), 1), **attributes)
    return [found] if isinstance(found, str) else found


@writes("cond")
def cond(w, node, on_true, on_false, condition, operands):
    names = [w.name(value) for value in operands]
    bodies = {}
    for word, text in (("then_branch", on_true), ("else_branch", on_false)):
        graph = _within(w, text)
        bodies[word] = _body(w, word, [], lambda inner, graph=graph: (write_graph(inner, graph, names), graph.outputs))
    flag = w.cast(w.name(condition), w.types[condition], "bool")
    return _emit(w, "If", [flag], node, **bodies)


@writes("while_loop")
def while_loop(w, node, condition, body, carry, constants):
    import onnx

    test, step = _within(w, condition), _within(w, body)
    fixed = [w.name(value) for value in constants]
    start = [w.name(value) for value in carry]
    carried = _inputs(w, step.inputs[: len(carry)])
    counters = [onnx.helper.make_tensor_value_info(w.fresh("argument"), TYPES[dtype], []) for dtype in ("int64", "bool")]

    def write(inner):
        found = write_graph(inner.inside(inline=True), step, [*_names(carried), *fixed])
        going = write_graph(inner.inside(inline=True), test, [*found, *fixed])
        return [*going, *found], [*test.outputs, *step.outputs]

    first = write_graph(w.inside(inline=True), test, [*start, *fixed])
    return _emit(w, "Loop", ["", first[0], *start], node, body=_body(w, "body", [*counters, *carried], write))


@writes("scan")
def scan(w, node, body, carry, xs, constants, length, reverse=False):
    import onnx

    step = _within(w, body)
    fixed = [w.name(value) for value in constants]
    start, rows = [w.name(value) for value in carry], [w.name(value) for value in xs]
    inputs = _inputs(w, step.inputs[: len(carry) + len(xs)])
    arguments = [*_names(inputs), *fixed]
    if not rows:  # ONNX counts the steps by what is scanned
        rows = [w.constant(np.zeros(length, np.int64), "steps")]
        inputs.append(onnx.helper.make_tensor_value_info(w.fresh("argument"), TYPES["int64"], []))
    body = _body(w, "body", inputs, lambda inner: (write_graph(inner.inside(inline=True), step, arguments), step.outputs))
    directions = {}
    if reverse:
        directions = {"scan_input_directions": [1] * len(rows), "scan_output_directions": [1] * (len(step.outputs) - len(carry)) or None}
    return _emit(w, "Scan", [*start, *rows], node, body=body, num_scan_inputs=len(rows), **directions)
