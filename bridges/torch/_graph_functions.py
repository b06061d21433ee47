"""A graph of torch.fx as a function of Backplane's tensors: each node of aten becomes the expression of its row in aten.txt.

The graphs come from torch.export and from AOTAutograd, so that they are functional. Sizes are Python's integers, or the sizes of a
trace with dynamic sizes. A result is held against the shape that PyTorch inferred, and is cast to the dtype that it inferred.
"""

from __future__ import annotations

import math
import operator

import torch

import backplane as bp

from . import _control_flow, _op_programs, _strided_views
from ._aten_rows import row_of
from ._tensors import dtype_of, from_torch

__all__ = ["GraphFunction"]

_SKIPPED = {"_assert_scalar", "_assert_tensor_metadata", "_assert_async", "sym_constrain_range", "sym_constrain_range_for_size", "_functional_assert_async",
            "_functional_assert_scalar", "_functional_sym_constrain_range", "_functional_sym_constrain_range_for_size", "_print"}  # fmt: skip


def _stride(x, dim=None):
    """The strides that PyTorch assumes of a result: row-major ones."""
    strides, step = [], 1
    for size in reversed(x.shape):
        strides.insert(0, step)
        step = step * size
    return strides if dim is None else strides[dim]


_SIZES = {
    "aten::sym_size.int": lambda x, dim: x.shape[dim],
    "aten::sym_size": lambda x: list(x.shape),
    "aten::sym_numel": lambda x: x.size,
    "aten::sym_stride.int": _stride,
    "aten::sym_stride": _stride,
    "aten::sym_storage_offset": lambda x: 0,
    "prims::device_put": lambda x, device, non_blocking=False: x,
    "prims::convert_element_type": lambda x, dtype: x if x.dtype == dtype else bp.ops.bp.cast(x, dtype),
}
_NUMBERS = {
    torch.sym_float: float,
    torch.sym_int: int,
    torch.sym_max: max,
    torch.sym_min: min,
    torch.sym_not: operator.not_,
    torch.sym_ite: lambda condition, x, y: x if condition else y,
    torch.sym_sum: sum,
    torch._sym_sqrt: math.sqrt,
}


def _function_of(node):
    """What computes a node's call, or None where nothing does."""
    target = node.target
    if isinstance(target, torch._ops.OpOverload):
        name = target.name()
        if name in _SIZES:
            return _SIZES[name]
        if target.namespace in ("aten", "higher_order") and target._schema.name.partition("::")[2] in _SKIPPED:
            return lambda *args, **kwargs: None
        if name in ("aten::as_strided", "aten::as_strided_scatter"):
            return _strided_views.function_of(node)
        return row_of(target) or _of_registry(target)
    if isinstance(target, torch._ops.HigherOrderOperator):
        return _control_flow.FUNCTIONS.get(target.name())
    if getattr(target, "takes_backplane", False):
        return target
    if target in _NUMBERS:
        return _NUMBERS[target]
    if getattr(target, "__module__", None) in ("_operator", "math", "builtins"):
        return target
    return None


def has_function(node):
    """Does Backplane compute a node's call?"""
    return _function_of(node) is not None


def _of_registry(overload):
    """An op of Backplane's registry that was called through torch.ops, or a derivative of one."""
    if overload.namespace == "backplane_bridge":
        return lambda program, tensors: list(_op_programs.function_of(program)(*tensors))
    namespace = getattr(bp.ops, overload.namespace, None)
    name = overload._schema.name.partition("::")[2]
    if namespace is None or name not in dir(namespace):
        return None
    return getattr(namespace, name)


def prepared(value):
    """An argument of a node, with dtypes of Backplane; devices, layouts and memory formats play no part."""
    if isinstance(value, torch.dtype):
        return dtype_of(value)
    if isinstance(value, (torch.device, torch.layout, torch.memory_format)):
        return None
    if isinstance(value, (list, tuple)):
        return type(value)(prepared(x) for x in value) if type(value) in (list, tuple) else [prepared(x) for x in value]
    if isinstance(value, dict):
        return {key: prepared(x) for key, x in value.items()}
    if isinstance(value, slice):
        return slice(prepared(value.start), prepared(value.stop), prepared(value.step))
    return value


def _filled(value, values):
    if isinstance(value, torch.fx.Node):
        return values[value]
    if isinstance(value, list):
        return [_filled(x, values) for x in value]
    if isinstance(value, tuple):
        return tuple(_filled(x, values) for x in value)
    if isinstance(value, dict):
        return {key: _filled(x, values) for key, x in value.items()}
    if isinstance(value, slice):
        return slice(_filled(value.start, values), _filled(value.stop, values), _filled(value.step, values))
    return value


def _name(node):
    return "an operator" if node is None else node.target


def checked(found, expected, node):
    """A result in PyTorch's dtype; an error where its shape is not PyTorch's."""
    if isinstance(expected, (list, tuple)):
        if not isinstance(found, (list, tuple)) or len(found) < len(expected):
            raise bp.InternalError(f"backplane.torch: {_name(node)}: found {type(found).__name__}, expected {len(expected)} results")
        return [checked(x, e, node) for x, e in zip(found, expected)]
    if not isinstance(expected, torch.Tensor) or not isinstance(found, bp.Tensor):
        return found
    shape, dtype = found.shape, dtype_of(expected.dtype)
    if len(shape) == expected.dim() == 1 and type(expected.shape[0]) is int and expected.shape[0] == 0 and not (type(shape[0]) is int and shape[0] == 0):
        return bp.zeros((0,), dtype=dtype)  # statistics that PyTorch has on some devices and leaves out on others
    if len(shape) != expected.dim() or any(type(e) is int and type(n) is int and e != n for n, e in zip(shape, expected.shape)):
        raise bp.InternalError(f"backplane.torch: {_name(node)}: found a result of shape {tuple(shape)}, expected {tuple(expected.shape)}")
    return found if found.dtype == dtype else bp.ops.bp.cast(found, dtype)


def _needed(graph):
    """The nodes whose values the results read, directly or through others."""
    found = set()
    for node in reversed(graph.nodes):
        if node.op == "output" or node in found:
            found.update(node.all_input_nodes)
    return found


class GraphFunction:
    """A callable over a GraphModule: a tensor or number per placeholder, and what its output node lists.

    device: where its tensors are created. attributes: tensors of Backplane in place of the module's, by name.
    host_step: what gives the function of an operator without a row, or None.
    Errors: MissingRuleError, with their names, for operators without a row.
    """

    def __init__(self, module, device=None, who="backplane.torch", host_step=None):
        self.device = None if device in (None, "cpu") else bp.Device(str(device))
        self.placeholders, self.steps, self.constants, missing = [], [], {}, []
        needed = _needed(module.graph)
        for node in module.graph.nodes:
            if node.op == "placeholder":
                self.placeholders.append(node)
            elif node.op == "get_attr":
                self.constants[node] = self._attribute(module, node.target, who, host_step)
            elif node.op == "output":
                self.results = prepared(node.args[0])
            elif node.op == "call_function":
                if node not in needed and not isinstance(node.meta.get("val"), (torch.Tensor, list, tuple)):
                    continue  # an assertion, or a number that assertions alone read
                function = _function_of(node) or (host_step(node) if host_step is not None else None)
                if function is None:
                    missing.append(str(node.target))
                else:
                    args, kwargs = (node.args, node.kwargs) if getattr(function, "takes_torch", False) else (prepared(node.args), prepared(node.kwargs))
                    self.steps.append((node, function, args, kwargs, node.meta.get("val"), []))
            else:
                raise bp.InternalError(f"{who}: found a node {node.op}, expected call_function")
        if missing:
            raise bp.MissingRuleError(
                f"{who}: found operators without a row in Backplane's table: {', '.join(sorted(set(missing)))}. "
                "Fix: write the model with other operators, or register a decomposition (torch.library.register_decomposition)"
            )
        self._note_last_uses()

    def _attribute(self, module, name, who, host_step):
        value = module
        for part in name.split("."):
            value = getattr(value, part)
        if isinstance(value, torch.fx.GraphModule):
            return GraphFunction(value, self.device, who, host_step)
        return from_torch(value, self.device) if isinstance(value, torch.Tensor) else value

    def _note_last_uses(self):
        """A value is dropped behind the last step that reads it."""
        seen = set()
        torch.fx.map_arg(self.results, seen.add)
        for node, _, _, _, _, unused in reversed(self.steps):
            for used in node.all_input_nodes:
                if used not in seen:
                    seen.add(used)
                    unused.append(used)

    def __call__(self, *inputs):
        if self.device is None:
            return self._run(inputs)
        with self.device:
            return self._run(inputs)

    def _run(self, inputs):
        values = dict(self.constants)
        values.update(zip(self.placeholders, inputs, strict=True))
        for node, function, args, kwargs, expected, unused in self.steps:
            try:
                found = function(*_filled(args, values), **_filled(kwargs, values))
                values[node] = found if expected is None else checked(found, expected, node)
            except Exception as error:
                if not getattr(error, "_backplane_noted", False):
                    error.add_note(f"in {node.format_node()}\n{(node.stack_trace or '').strip()}")
                    error._backplane_noted = True
                raise
            for used in unused:
                values.pop(used, None)
        return _filled(self.results, values)
