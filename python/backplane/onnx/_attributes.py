"""What a node's protobuf messages hold, as Python values; and errors that name the node."""

import numpy as np

import backplane as bp

from ._table import MICROSOFT
from ._types import NARROW, carrier_name
from ._values import HOST_LIMIT, Host, fixed_tensor, to_tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


def located(error: Exception, node: "Any") -> Exception:
    """The error with the node in its text, of the same type."""
    if getattr(error, "names_node", False):
        return error
    name = f" {node.name!r}" if node.name else f" that makes {next((o for o in node.outputs if o), '')!r}"
    op = f"{node.domain}.{node.op}" if node.domain == MICROSOFT else f"{node.domain}::{node.op}" if node.domain else node.op
    kind = type(error) if isinstance(error, bp.BackplaneError) else bp.ArgumentValueError
    found = kind(f"onnx: node{name} ({op}, opset {node.opset}): {error}")
    found.names_node = True
    return found


def array_of(tensor: "Any", folder: str = "") -> np.ndarray:
    """A TensorProto as a NumPy array of its carrier; folder: where external data lies."""
    import onnx

    carrier_name(tensor.data_type)  # refuses strings
    array = onnx.numpy_helper.to_array(tensor, folder)
    return array


def constant_of(tensor: "Any") -> Host:
    from ._types import carried

    array = carried(array_of(tensor))
    if array.dtype.name == "bfloat16":
        return fixed_tensor(to_tensor(array))
    return Host(array, fixed=True)


def constants_of(graph: "Any") -> "tuple[dict[str, Host], dict[str, int]]":
    """The initializers of a graph, and the element types of those that have no dtype."""
    constants, kinds = {}, {}
    for tensor in graph.initializer:
        constants[tensor.name] = constant_of(tensor)
        if tensor.data_type in NARROW:
            kinds[tensor.name] = tensor.data_type
    for tensor in graph.sparse_initializer:
        constants[tensor.values.name] = Host(_dense(tensor), fixed=True)
    for value in constants.values():
        if value.array is not None and value.array.size > HOST_LIMIT:
            made = to_tensor(value.array)
            value.tensors[str(made.device)] = made
    return constants, kinds


def _dense(tensor):
    values, indices = array_of(tensor.values), array_of(tensor.indices)
    dense = np.zeros(tuple(tensor.dims), values.dtype)
    dense[tuple(indices.T) if indices.ndim == 2 else np.unravel_index(indices, dense.shape)] = values
    return dense


def attributes_of(node: "Any", graph_of: "Callable[[Any], Any]") -> "dict[str, Any]":
    """The attributes of a node by name. A tensor's element type that has no dtype is the entry `kinds`."""
    import onnx

    found: dict[str, Any] = {}
    kinds = onnx.AttributeProto
    for attribute in node.attribute:
        value = onnx.helper.get_attribute_value(attribute)
        if attribute.type == kinds.GRAPH:
            value = graph_of(value)
        elif attribute.type == kinds.TENSOR:
            if value.data_type in NARROW:
                found["kinds"] = value.data_type
            value = constant_of(value)
        elif attribute.type == kinds.SPARSE_TENSOR:
            value = Host(_dense(value), fixed=True)
        elif attribute.type == kinds.STRING:
            value = value.decode()
        elif attribute.type == kinds.STRINGS:
            value = [text.decode() for text in value]
        elif attribute.type in (kinds.INTS, kinds.FLOATS):
            value = list(value)
        found[attribute.name] = value
    return found


def resolved(node: "Any", given: "dict[str, Any]") -> "Any":
    """A node of a function's body, with the attributes that it takes from the function's call."""
    import onnx

    found = onnx.NodeProto()
    found.CopyFrom(node)
    del found.attribute[:]
    for attribute in node.attribute:
        if attribute.ref_attr_name:
            if attribute.ref_attr_name in given:
                copy = found.attribute.add()
                copy.CopyFrom(given[attribute.ref_attr_name])
                copy.name = attribute.name
            continue
        copy = found.attribute.add()
        copy.CopyFrom(attribute)
        if copy.type == onnx.AttributeProto.GRAPH:
            nodes = [resolved(inner, given) for inner in attribute.g.node]
            del copy.g.node[:]
            copy.g.node.extend(nodes)
    return found
