"""The steps of a model's graph: nodes with the functions of the table, in order, and the values between them.

A graph within a node (a branch, the body of a loop) is a Graph too. It reads values of the graphs around it by name. Nodes whose
inputs are the same at each call are computed once, when the model is loaded.
"""

import numpy as np

import backplane as bp
from backplane import Tensor

from . import _table
from ._attributes import attributes_of, located, resolved
from ._types import NARROW, element_type_of
from ._values import Host, fixed_tensor, host_array, is_plain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from typing import Any

RANDOM = {"RandomNormal", "RandomUniform", "RandomNormalLike", "RandomUniformLike", "Bernoulli", "Multinomial", "Dropout"}
FOLD_LIMIT = 1 << 16  # elements that a folded node may make beyond four times those that it reads


class Scope:
    """What the nodes of a model share: opset versions by domain, the model's own functions, and the opset schemas of onnx."""

    def __init__(self, opsets: "dict[str, int]", functions: "dict[tuple[str, str, str], Any]") -> None:
        self.opsets = opsets
        self.functions = functions

    def inside(self, function: "Any") -> "Scope":
        opsets = {("" if row.domain == "ai.onnx" else row.domain): row.version for row in function.opset_import}
        return Scope({**self.opsets, **opsets}, self.functions)


class Node:
    """A step: a function of the table, a function of the model, or the body that onnx defines for an op."""

    def __init__(self, proto: "Any", scope: Scope, kinds: "dict[str, int]") -> None:
        self.scope = scope
        self.proto = proto
        self.op = proto.op_type
        self.domain = "" if proto.domain == "ai.onnx" else proto.domain
        self.name = proto.name
        self.opset = scope.opsets.get(self.domain, 1)
        self.inputs = list(proto.input)
        self.outputs = list(proto.output)
        self.frees: list[str] = []
        self.kinds = [kinds.get(name, 0) for name in self.inputs]
        self.device: bp.Device | None = None
        self._bodies: dict[Any, Graph] = {}
        self.function = scope.functions.get((self.domain, self.op, getattr(proto, "overload", "")))
        self.row = None if self.function else _table.find_row(self.domain, self.op, self.opset)
        self.host = None if self.function else _table.find_host(self.domain, self.op)
        self.attributes: dict[str, Any] = {}
        if self.row:
            self.attributes = attributes_of(proto, lambda graph: Graph.of_proto(graph, scope, kinds))
            self._check_attributes()
        elif not self.function and not self._has_body():
            raise located(bp.MissingRuleError("Backplane has no function for this op"), self)
        self.graphs = [value for value in self.attributes.values() if isinstance(value, Graph)]
        kinds.update({name: kind for name, kind in zip(self.outputs, self._kinds_of_outputs()) if kind})

    def _schema(self):
        import onnx

        try:
            return onnx.defs.get_schema(self.op, self.opset, self.domain)
        except onnx.defs.SchemaError:
            return None

    def _has_body(self):
        schema = self._schema()
        return schema is not None and (schema.has_function or schema.has_context_dependent_function)

    def _check_attributes(self):
        if self.row.any_attribute:
            return
        for name in self.attributes:
            if name not in self.row.attributes:
                raise located(bp.MissingRuleError(f"the attribute {name} is not supported at opset {self.opset}"), self)

    @property
    def is_random(self) -> bool:
        return self.op in RANDOM or bool(self.function)

    def uses(self) -> "set[str]":
        return set(self.inputs).union(*(graph.captures for graph in self.graphs)) - {""}

    def _kinds_of_outputs(self):
        """The element types of the outputs that have no dtype; 0 for others."""
        attributes = self.attributes
        if self.op in ("Cast", "BitCast"):
            return [attributes["to"] if attributes["to"] in NARROW else 0]
        if self.op == "CastLike":
            return [self.kinds[1]]
        if self.op == "QuantizeLinear":
            wanted = attributes.get("output_dtype", 0)
            return [wanted if wanted in NARROW else self.kinds[2] if len(self.kinds) > 2 else 0]
        if self.op in ("Constant", "ConstantOfShape"):
            return [attributes.get("kinds", 0)]
        if self.graphs:
            return self.graphs[0].kinds_of_outputs[len(self.graphs[0].outputs) - len(self.outputs) :]
        if not any(self.kinds) or not (schema := self._schema()):
            return [0] * len(self.outputs)
        by_type = {}
        for i, kind in enumerate(self.kinds):
            if kind:
                by_type[schema.inputs[min(i, len(schema.inputs) - 1)].type_str] = kind
        formals = schema.outputs
        return [by_type.get(formals[min(i, len(formals) - 1)].type_str, 0) for i in range(len(self.outputs))]

    def compute(self, values: "list[Any]", env: "dict[str, Any]", device: "bp.Device") -> "Sequence[Any]":
        """The node's results for values of its inputs: Tensor, Host, or None."""
        if self.row is None:
            return self._body(values).run_with(values, device)
        if self.host is not None and all(value is None or type(value) is Host and value.is_small for value in values):
            with np.errstate(all="ignore"):
                found = self.host(*[value if value is None else value.array for value in values], **self.attributes)
            if found is not NotImplemented:
                fixed = all(value is None or value.fixed for value in values)
                return [Host(np.asarray(array), fixed) for array in (found if type(found) is tuple else (found,))]
        self.device = device
        if self.graphs:
            return self.row.function(self, *values, env=env, **self.attributes)
        arguments = []
        for i, value in enumerate(values):
            if value is None:
                arguments.append(None)
            elif i in self.row.static:
                arguments.append(host_array(value, f"input {i} ({self.inputs[i]})"))
            else:
                arguments.append(value.tensor(device) if type(value) is Host else value)
        if self.row.takes_node:
            found = self.row.function(self, *arguments, **self.attributes)
        else:
            found = self.row.function(*arguments, **self.attributes)
        return found if type(found) in (tuple, list) else (found,)

    def wants(self, output: int) -> bool:
        return output < len(self.outputs) and bool(self.outputs[output])

    def _body(self, values):
        """The graph of a function: a function of the model, or the definition of an op that onnx has for inputs of these types."""
        key = None if self.function else tuple(None if value is None else _type_of(value, kind) for value, kind in zip(values, self.kinds))
        if key not in self._bodies:
            function = self.function or self._definition(key)
            given = {attribute.name: attribute for attribute in self.proto.attribute}
            for default in [*function.attribute_proto, *self._schema_defaults()]:
                given.setdefault(default.name, default)
            nodes = [resolved(node, given) for node in function.node]
            made = set(function.input).union(*(node.output for node in nodes))
            outputs = [name if name in made else "" for name in function.output]
            kinds = {name: kind for name, kind in zip(function.input, self.kinds) if kind}
            self._bodies[key] = Graph(nodes, list(function.input), outputs, {}, self.scope.inside(function), kinds)
        return self._bodies[key]

    def _schema_defaults(self):
        if self.function:
            return []
        return [row.default_value for row in self._schema().attributes.values() if row.default_value.name]

    def _definition(self, types):
        import onnx

        schema = self._schema()
        if schema.has_function:
            text = schema.get_function_with_opset_version(max(v for v in schema.function_opset_versions if v <= self.opset))
        else:
            protos = [b"" if row is None else onnx.helper.make_tensor_type_proto(*row).SerializeToString() for row in types]
            versions = [v for v in schema.context_dependent_function_opset_versions if v <= self.opset]
            text = schema.get_context_dependent_function_with_opset_version(max(versions), self.proto.SerializeToString(), protos)
        function = onnx.FunctionProto()
        function.ParseFromString(text)
        if not function.node:
            raise bp.MissingRuleError("onnx does not define this op for inputs of these types and shapes")
        return function


def _type_of(value, kind):
    """The element type and the shape of a value, as onnx takes them; dynamic sizes are unknown there."""
    if type(value) is Host and value.array is not None:
        name, shape = "int64" if value.array.dtype == object else value.array.dtype.name, value.array.shape
        return kind or element_type_of(getattr(bp, name)), shape
    tensor = next(iter(value.tensors.values())) if type(value) is Host else value
    return kind or element_type_of(tensor.dtype), tuple(size if is_plain(size) else None for size in tensor.shape)


class Graph:
    """Nodes in order, with the names of inputs and outputs. captures: the names that it reads from the graphs around it."""

    def __init__(
        self, nodes: "Iterable[Any]", inputs: "list[str]", outputs: "list[str]", constants: "dict[str, Host]", scope: Scope, kinds: "dict[str, int]"
    ) -> None:
        self.inputs = inputs
        self.outputs = outputs
        self.constants = constants
        kinds = dict(kinds)
        self.nodes = [Node(proto, scope, kinds) for proto in nodes]
        self.kinds_of_outputs = [kinds.get(name, 0) for name in outputs]
        self._fold()
        self._find_uses()

    @staticmethod
    def of_proto(proto: "Any", scope: Scope, kinds: "dict[str, int]") -> "Graph":
        from ._attributes import constants_of

        constants, kinds_here = constants_of(proto)
        kinds_here = {**kinds, **kinds_here}
        for value in proto.input:
            element_type = value.type.tensor_type.elem_type
            kinds_here[value.name] = element_type if element_type in NARROW else 0
        names = [value.name for value in proto.input if value.name not in constants]
        return Graph(proto.node, names, [value.name for value in proto.output], constants, scope, kinds_here)

    def _fold(self):
        kept = []
        for node in self.nodes:
            values = [self.constants.get(name) if name else None for name in node.inputs]
            known = all(value is not None or not name for value, name in zip(values, node.inputs))
            if not known or node.is_random or node.graphs or not self._folded(node, values):
                kept.append(node)
        self.nodes = kept

    def _folded(self, node, values):
        read = sum(_size(value) for value in values if value is not None)
        try:
            results = node.compute(values, {}, bp.Device("cpu"))
        except (bp.BackplaneError, ValueError, IndexError):
            return False  # the error belongs to the call that needs the node
        hosts = [value if value is None or type(value) is Host else fixed_tensor(value) for value in results]
        if sum(_size(value) for value in hosts if value is not None) > 4 * read + FOLD_LIMIT:
            return False
        for value in hosts:
            if value is not None:
                value.fixed = True
        self.constants.update({name: value for name, value in zip(node.outputs, hosts) if name})
        return True

    def _find_uses(self):
        """Where each value is read last, so that it is freed there."""
        made = set(self.inputs) | set(self.constants)
        self.captures = set()
        for node in self.nodes:
            self.captures |= node.uses() - made
            made |= set(node.outputs)
        self.captures |= set(self.outputs) - made - {""}
        wanted = set(self.outputs) | set(self.constants)
        for node in reversed(self.nodes):
            used = node.uses() | {name for name in node.outputs if name}
            node.frees = [name for name in used if name not in wanted and name not in self.captures]
            wanted |= used
        needed = set(self.outputs).union(*(node.uses() for node in self.nodes))
        self.constants = {name: value for name, value in self.constants.items() if name in needed}

    def every_constant(self) -> "Iterator[Host]":
        """The constants of this graph and of those within its nodes."""
        yield from self.constants.values()
        for node in self.nodes:
            yield from (value for value in node.attributes.values() if type(value) is Host)
            for graph in node.graphs:
                yield from graph.every_constant()

    def run(self, env: "dict[str, Any]", device: "bp.Device") -> "list[Any]":
        """Runs the nodes in env, the values by name, and gives the outputs."""
        env.update(self.constants)
        for node in self.nodes:
            try:
                results = node.compute([env[name] if name else None for name in node.inputs], env, device)
            except (bp.BackplaneError, ValueError, IndexError) as error:
                raise located(error, node) from error
            for name, value in zip(node.outputs, results):
                if name:
                    env[name] = value
            for name in node.frees:
                del env[name]
        return [env[name] if name else None for name in self.outputs]

    def run_with(self, values: "Sequence[Any]", device: "bp.Device", env: "dict[str, Any] | None" = None) -> "list[Any]":
        """Runs it with values of its inputs; env: the values of the graph around it."""
        inner = {name: env[name] for name in self.captures if name in env} if env else {}
        for name in self.inputs[len(values) :]:
            inner[name] = None
        inner.update(zip(self.inputs, values))
        return self.run(inner, device)


def _size(value: Host) -> int:
    if value.array is not None:
        return value.array.size
    return next(iter(value.tensors.values())).size


def as_tensor(value: "Host | Tensor", device: "bp.Device") -> Tensor:
    return value.tensor(device) if type(value) is Host else value
