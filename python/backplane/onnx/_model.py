"""load: a model in ONNX's format as a function of tensors."""

import os

import numpy as np

import backplane as bp
from backplane import Tensor

from . import _every_op  # noqa: F401 (fills the table)
from ._attributes import constants_of
from ._graph import Graph, Scope
from ._types import NARROW, carried, carrier_name, type_name
from ._values import Host, to_tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

OLDEST_OPSET, NEWEST_OPSET = 7, 28


class ModelValue:
    """An input or an output of a model: its name, the name of its dtype, and its sizes, numbers or names (None: unknown rank)."""

    __slots__ = ("dims", "dtype", "is_optional", "name", "type_name")

    def __init__(self, value: "Any") -> None:
        self.name = value.name
        kind = value.type.WhichOneof("value")
        tensor = value.type
        if kind == "optional_type":
            tensor = value.type.optional_type.elem_type
        self.is_optional = kind == "optional_type"
        if tensor.WhichOneof("value") != "tensor_type":
            raise bp.MissingRuleError(f"onnx.load: {value.name!r} is a {tensor.WhichOneof('value')}; only tensors are supported")
        element_type = tensor.tensor_type.elem_type
        self.dtype = carrier_name(element_type)
        self.type_name = type_name(element_type)
        self.dims = None
        if tensor.tensor_type.HasField("shape"):
            dims = tensor.tensor_type.shape.dim
            self.dims = [dim.dim_value if dim.HasField("dim_value") and dim.dim_value >= 0 else dim.dim_param or "?" for dim in dims]

    def __repr__(self) -> str:
        return f"{self.name}: {self.type_name}{'' if self.dims is None else self.dims}"


def onnx_package() -> "Any":
    """The package onnx, which reads the files.

    Errors: ImportError that says how to install it.
    """
    try:
        import onnx
    except ImportError as error:
        raise ImportError("backplane.onnx needs the Python package onnx. Fix: pip install onnx") from error
    import onnx.numpy_helper

    return onnx


def load(model: "str | os.PathLike[str] | bytes | Any", *, device: "bp.Device | str | None" = None) -> "Callable[..., list[Tensor]]":
    """A model in ONNX's format as a function: f(**inputs_by_name), or with inputs by position, returns the list of the outputs.

    model: a path (external data is read from the file's folder), the bytes of a file, or an onnx.ModelProto. Opsets 7 to 28; all ops
        of ai.onnx on tensors except strings, sequences, maps and training.
    device: where the weights are placed; the default device if absent. Inputs on another device move the weights there once.

    f takes tensors, arrays and numbers; their dtypes must be those of the model. Tensors of float8, float4, int4 and int2 are tensors of float32, int8
    or uint8 that hold numbers of those types. f works with compile, grad, vmap, make_graph and export. f.inputs and f.outputs list
    names, dtypes and sizes.

    Errors: ImportError without the package onnx; FileNotFoundError; ArgumentValueError for bytes that hold no model;
        MissingRuleError for an op, an attribute or a type that is not supported, naming the node. Of f: TypeError for wrong
        names, DtypeError and ShapeError for inputs that do not fit the model.

    Example:
        >>> f = bp.onnx.load("model.onnx")  # doctest: +SKIP
        >>> (y,) = f(x=bp.ones((1, 3, 224, 224)))  # doctest: +SKIP
    """
    onnx = onnx_package()
    proto = _proto_of(onnx, model)
    opsets = {("" if row.domain == "ai.onnx" else row.domain): row.version for row in proto.opset_import}
    _check_opsets(opsets, onnx)
    functions = {(function.domain, function.name, getattr(function, "overload", "")): function for function in proto.functions}
    return _function_of(proto, Scope(opsets, functions), bp.Device(device) if isinstance(device, str) else device)


def _proto_of(onnx, model):
    from google.protobuf.message import DecodeError

    if isinstance(model, onnx.ModelProto):
        return model
    try:
        if isinstance(model, (bytes, bytearray, memoryview)):
            proto = onnx.load_model_from_string(bytes(model))
        else:
            proto = onnx.load(os.fspath(model) if not hasattr(model, "read") else model)
    except DecodeError as error:
        raise bp.ArgumentValueError(f"onnx.load: argument model: found data that is not a model in ONNX's format ({error})") from error
    if not proto.HasField("graph"):
        raise bp.ArgumentValueError("onnx.load: argument model: found data without a graph, expected a model in ONNX's format")
    return proto


def _check_opsets(opsets, onnx):
    version = opsets.get("")
    newest = min(NEWEST_OPSET, onnx.defs.onnx_opset_version())
    if version is not None and not OLDEST_OPSET <= version <= newest:
        raise bp.MissingRuleError(
            f"onnx.load: the model uses opset {version} of ai.onnx; opsets {OLDEST_OPSET} to {newest} are supported. "
            "Fix: convert it with onnx.version_converter"
        )


def _function_of(proto, scope, device):
    graph_proto = proto.graph
    every_input = {value.name: ModelValue(value) for value in graph_proto.input}
    kinds = {}
    for value in graph_proto.input:
        element_type = value.type.tensor_type.elem_type
        if element_type in NARROW:
            kinds[value.name] = element_type
    constants, kinds_of_constants = constants_of(graph_proto)
    defaults = {name: constants.pop(name) for name in every_input if name in constants}
    kinds.update(kinds_of_constants)
    # An initializer that is an input too is a default, if the caller may replace it: since version 4 of the format.
    if proto.ir_version < 4:
        constants.update(defaults)
        inputs = [value for name, value in every_input.items() if name not in defaults]
        defaults = {}
    else:
        inputs = list(every_input.values())
    outputs = [ModelValue(value) for value in graph_proto.output]
    graph = Graph(graph_proto.node, [value.name for value in inputs], [value.name for value in outputs], constants, scope, kinds)
    model = _Model(graph, inputs, outputs, defaults, device)
    return _named(model, graph_proto.name or "model", proto)


class _Model:
    """What the function runs."""

    def __init__(self, graph: Graph, inputs: "list[ModelValue]", outputs: "list[ModelValue]", defaults: "dict[str, Host]", device: "Any") -> None:
        self.graph, self.inputs, self.outputs, self.defaults, self.device = graph, inputs, outputs, defaults, device
        place = bp.asarray(0.0).device if device is None else device
        for value in [*graph.every_constant(), *defaults.values()]:
            value.place(place)

    def run(self, *given: "Any") -> "list[Tensor | None]":
        device = next((value.device for value in given if isinstance(value, Tensor)), self.device)
        if device is None:
            device = bp.asarray(0.0).device
        values = [self._value(value, declared, device) for value, declared in zip(given, self.inputs)]
        results = self.graph.run(dict(zip(self.graph.inputs, values)), device)
        return [value.tensor(device) if type(value) is Host else value for value in results]

    def _value(self, value, declared, device):
        if value is None:
            if declared.name in self.defaults:
                return self.defaults[declared.name]
            if declared.is_optional:
                return None
            raise bp.ArgumentTypeError(f"onnx model: input {declared.name!r}: found None, expected a tensor of {declared.type_name}")
        if not isinstance(value, Tensor):
            value = self._of_object(value, declared, device)
            if type(value) is Host:
                return value
        if str(value.dtype).rpartition(".")[2] != declared.dtype:
            raise bp.DtypeError(f"onnx model: input {declared.name!r}: found {value.dtype}, expected {declared.dtype}. Fix: cast it with astype")
        self._check_dims(value, declared)
        return value

    def _of_object(self, value, declared, device):
        """An array as a tensor. Numbers are host values, which a trace knows: a branch that depends on them is decided there."""
        if hasattr(value, "dtype") and hasattr(value, "__array__"):
            return to_tensor(carried(np.asarray(value)), device)
        if isinstance(value, (bool, int, float)) and declared.dtype not in ("bfloat16", "complex64", "complex128"):
            if declared.dims:
                raise bp.ShapeError(f"onnx model: input {declared.name!r}: found a number, expected shape {declared.dims}")
            return Host(np.array(value, dtype=declared.dtype))
        return bp.asarray(value, dtype=getattr(bp, declared.dtype), device=device)

    def _check_dims(self, value, declared):
        if declared.dims is None:
            return
        if len(declared.dims) != value.ndim:
            raise bp.ShapeError(f"onnx model: input {declared.name!r}: found shape {tuple(value.shape)}, expected {len(declared.dims)} axes, {declared.dims}")
        for axis, size in enumerate(declared.dims):
            if isinstance(size, int) and value.shape[axis] != size:
                raise bp.ShapeError(f"onnx model: input {declared.name!r}: found shape {tuple(value.shape)}, expected {declared.dims}")


def named_function(run: "Callable[..., Any]", name: str, names: "list[str]", required: "list[bool]") -> "Any":
    """A function whose parameters have any names, whatever characters these contain; the last ones that are not required may be left out."""
    places = [f"a{i}" for i in range(len(names))]
    first_optional = next((i for i in range(len(names)) if not any(required[i:])), len(names))
    parameters = ", ".join(place + ("=None" if i >= first_optional else "") for i, place in enumerate(places))
    namespace = {"run": run}
    exec(compile(f"def function({parameters}):\n    return run({', '.join(places)})\n", __file__, "exec"), namespace)
    function = namespace["function"]
    function.__code__ = function.__code__.replace(co_varnames=tuple(names), co_name=name)
    function.__name__ = function.__qualname__ = name
    return function


def _named(model, name, proto):
    required = [value.name not in model.defaults and not value.is_optional for value in model.inputs]
    function = named_function(model.run, name, [value.name for value in model.inputs], required)
    function.__doc__ = f"{name}: {', '.join(map(repr, model.inputs))} -> {', '.join(map(repr, model.outputs))}"
    function.inputs, function.outputs = model.inputs, model.outputs
    function.opset = next((row.version for row in proto.opset_import if row.domain in ("", "ai.onnx")), None)
    function.metadata = {row.key: row.value for row in proto.metadata_props}
    function.model = model
    return function
