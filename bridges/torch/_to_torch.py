"""to_torch: a graph of Backplane as an exported program of PyTorch."""

from __future__ import annotations

import math
import re

import torch

import backplane as bp

from . import _graph_control
from ._graph_text import GraphText, compiled
from ._registered_ops import register_ops
from ._registry_rows import has_row, kept_ops, row_of
from ._tensors import NAMES, to_torch_tensor, torch_dtype_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

__all__ = ["to_torch"]

_DTYPES = {name: torch_dtype_of(getattr(bp, name)) for name in NAMES}


def to_torch(graph: bp.Graph | bp.Model | Callable[..., Any], args: Sequence[Any] | None = None, *, dynamic: Any = None) -> torch.export.ExportedProgram:
    """A graph, or a function for arguments like args, as an exported program of PyTorch.

    graph: what bp.make_graph, bp.load or bp.parse_graph returns, or a function that takes args. args, dynamic: as for bp.export;
    dynamic sizes stay dynamic.

    The program takes one tensor for each input of the graph, in order, and returns the graph's tensor, or a tuple of its tensors.
    Tensors that the function uses from outside become its parameters if they require a gradient, else its buffers; on the CPU they
    share their memory. In-place changes of arguments and of such tensors stay changes. Ops become PyTorch's operators where these
    have the same results, or are decomposed; the other ones stay torch.ops.bp, so that running them needs `import backplane.torch`.
    Random numbers come from PyTorch's generator.

    Errors: ArgumentTypeError for a function without args; MissingRuleError for an op that cannot be written, by its name;
        ArgumentValueError for a graph whose dynamic sizes PyTorch cannot express.

    Example:
        >>> program = backplane.torch.to_torch(lambda x: bp.softmax(x) * 2, [bp.ones((2, 3))])
        >>> program.module()(torch.ones(2, 3)).shape
        torch.Size([2, 3])
    """
    if args is not None:
        graph = bp.make_graph(graph, dynamic=dynamic)(*args)
    elif not hasattr(graph, "nodes"):
        raise bp.ArgumentTypeError("to_torch: argument args: found None, expected the function's arguments; a graph needs none")
    module = program_of(graph)
    text = module.text
    examples, shapes = _examples(text)
    try:
        return torch.export.export(module, tuple(examples), dynamic_shapes=(tuple(shapes),) if text.symbols else None, strict=False)
    except (torch._dynamo.exc.UserError, torch.fx.experimental.symbolic_shapes.ConstraintViolationError) as error:
        raise bp.ArgumentValueError(f"to_torch: PyTorch refuses the dynamic sizes {', '.join(text.symbols)}: {error}") from None


def program_of(graph):
    """The module that computes a graph."""
    register_ops()
    graph = graph.decompose(kept_ops() | _graph_control.OPS)
    return _Program(GraphText(str(graph)), graph.constants)


class _Program(torch.nn.Module):
    """The module that torch.export reads: it runs the graph's nodes in turn."""

    def __init__(self, text, constants):
        super().__init__()
        self.text = text
        self._body = GraphBody(text, [None] * len(constants))
        self._names = []
        for i, tensor in enumerate(constants):
            value, name = to_torch_tensor(tensor), f"constant_{i}"
            if tensor.requires_grad:
                self.register_parameter(name, torch.nn.Parameter(value))
            else:
                self.register_buffer(name, value)
            self._names.append(name)

    def forward(self, *inputs):
        found = self._body(*inputs, constants=[getattr(self, name) for name in self._names])
        return found[0] if len(found) == 1 else tuple(found)


class GraphBody:
    """A graph as a function of PyTorch's tensors. Returns the list of its results."""

    def __init__(self, text, constants=None):
        self._text = text
        self._constants = [_elements(text, i) for i in range(len(text.constants))] if constants is None else constants
        self._graphs = [GraphBody(inner) for inner in text.graphs]
        read = _numbers_read(text)
        self._steps = [_Step(node, read) for node in text.nodes]

    def __call__(self, *inputs, constants=None):
        text = self._text
        values = {value.number: x for value, x in zip(text.inputs, inputs, strict=True)}
        values.update((value.number, x) for value, x in zip(text.constants, self._constants if constants is None else constants))
        sizes = {name: values[number].shape[axis] for name, (number, axis, _) in text.symbols.items() if number is not None}
        space = {**_NAMESPACE, **sizes, "v": values, "graph": self._graphs.__getitem__, "draws": {}}
        for step in self._steps:
            step.run(values, space)
        for target, value in text.updates:
            values[target].copy_(values[value])
        targets = {value: target for target, value in text.updates}
        return [values[targets.get(number, number)] for number in text.outputs]


def _numbers_read(text):
    """The numbers of the values that something reads."""
    arguments = (argument for node in text.nodes for _, argument in node.arguments)
    return {int(number) for argument in arguments for number in re.findall(r"%(\d+)", argument)} | set(text.outputs) | {value for _, value in text.updates}


def _elements(text, i):
    """A constant of a graph inside another one: its elements are in the text."""
    value, elements = text.constants[i], text.elements[i]
    if elements is None:
        raise bp.MissingRuleError(f"to_torch: a function of control flow uses a constant of shape {value.dims}. Fix: make it an argument of the function")
    numbers = eval(compiled(f"[{elements}]"), dict(_NAMESPACE))
    return torch.tensor(numbers, dtype=_DTYPES[value.dtype]).reshape([int(size) for size in value.dims])


class _Step:
    """One node: its arguments as code, and the function that computes it."""

    def __init__(self, node, read):
        self._node = node
        namespace, _, name = node.op.partition("::")
        op = getattr(getattr(bp.ops, namespace), name)
        self._parameters = [row for row in op.parameters if row[0] != "out"]
        names = [row[0] for row in self._parameters]
        given = {names[i] if named is None else named: compiled(text) for i, (named, text) in enumerate(node.arguments)}
        self._arguments = [given.get(row[0], row[3]) for row in self._parameters]
        self._results = [_Result(value, value.number in read) for value in node.results]
        self._control = _graph_control.FUNCTIONS.get(name) if namespace == "bp" else None
        self._row = None
        if self._control is None and has_row(node.op):
            self._row = row_of(node.op, names)
        elif self._control is None and not hasattr(getattr(torch.ops, namespace), name):
            raise bp.MissingRuleError(f"to_torch: {node.op} has no operator of PyTorch ({node.line or 'unknown line'})")

    def run(self, values, space):
        arguments = [eval(x, space) if hasattr(x, "co_code") else _default(x) for x in self._arguments]
        try:
            found = self._computed(arguments, space)
        except Exception as error:
            error.add_note(f"in {self._node.op} ({self._node.line})")
            raise
        for result, x in zip(self._results, found, strict=True):
            if result.is_read:
                values[result.number] = result.checked(x, self._node.op)

    def _computed(self, arguments, space):
        if self._control is not None:
            found = self._control(self._results, space, *arguments)
        elif self._row is not None:
            found = self._row(self._results[-1], lambda: self._own(arguments), *arguments)
        else:
            found = self._own(arguments)
        return found if isinstance(found, (tuple, list)) else (found,)

    def _own(self, arguments):
        """The call of torch.ops.bp."""
        namespace, _, name = self._node.op.partition("::")
        overload = getattr(getattr(torch.ops, namespace), name).default
        known = {argument.name: argument.kwarg_only for argument in overload._schema.arguments}
        args, kwargs = [], {}
        tensor = next((x for x in arguments if isinstance(x, torch.Tensor)), None)
        for row, x in zip(self._parameters, arguments):
            if row[0] not in known:
                continue
            if row[4].startswith("Tensor") and isinstance(x, (int, float, complex)) and not isinstance(x, torch.Tensor):
                x = torch.scalar_tensor(x, dtype=tensor.dtype)
            if known[row[0]]:
                kwargs[row[0]] = x
            else:
                args.append(x)
        return overload(*args, **kwargs)


def _default(value):
    return torch_dtype_of(value) if isinstance(value, bp.DType) else list(value) if isinstance(value, tuple) else value


class _Result:
    """What the graph says of a result."""

    def __init__(self, value, is_read):
        self.number, self.dtype, self._dims, self.is_read = value.number, _DTYPES[value.dtype], value.dims, is_read

    def checked(self, x, op):
        """The result in the graph's dtype; an error where its shape is not the graph's."""
        if x.ndim != len(self._dims) or any(size.isdigit() and type(n) is int and int(size) != n for size, n in zip(self._dims, x.shape)):
            raise bp.InternalError(f"to_torch: {op}: found a result of shape {tuple(x.shape)}, expected [{', '.join(self._dims)}]")
        return x if x.dtype == self.dtype else x.to(self.dtype)


_NAMESPACE = {
    **_DTYPES,
    "inf": math.inf,
    "nan": math.nan,
    "float": torch.sym_float,
    "sqrt": torch._sym_sqrt,
    "complex": complex,
    "beyond": float,
    "device": lambda name: None,
    "draw": lambda number, offset: (number, offset),
}


def _examples(text):
    """(an example of each input, the dynamic sizes of each as torch.export takes them)."""
    sizes, dims = _example_sizes(text), _dims(text)
    examples, shapes = [], []
    for value in text.inputs:
        shape = [eval(size, dict(sizes)) for size in value.dims]
        examples.append(torch.zeros(shape, dtype=_DTYPES[value.dtype]))
        shapes.append({axis: _dim(size, dims) for axis, size in enumerate(value.dims) if not size.isdigit()})
    return examples, shapes


def _dim(size, dims):
    try:
        return eval(size, dict(dims))
    except (TypeError, NotImplementedError):
        return torch.export.Dim.AUTO


def _example_sizes(text):
    """Sizes that fit the graph's constraints, at least 2 where that is possible: PyTorch takes 0 and 1 for fixed sizes."""
    sizes = {name: example for name, (_, _, example) in text.symbols.items()}
    for name in sizes:
        fitting = [n for n in (sizes[name], *range(2, 130)) if n >= 2 and _fits(text, {**sizes, name: n})]
        if fitting:
            sizes[name] = fitting[0]
    return sizes


def _fits(text, sizes):
    compare = {"==": lambda x, y: x == y, "!=": lambda x, y: x != y, "<": lambda x, y: x < y, "<=": lambda x, y: x <= y, "divisible by": lambda x, y: x % y == 0}
    return all(compare[relation](eval(left, dict(sizes)), eval(right, dict(sizes))) for left, relation, right in text.constraints)


def _dims(text):
    """torch.export's dimension of each named size, with its bounds; equal ones share theirs."""
    bounds, factors, same = {name: [None, None] for name in text.symbols}, {}, {}
    for left, relation, right in text.constraints:
        if relation in ("<", "<=") and left.isdigit() and right in bounds:
            bounds[right][0] = int(left) + (relation == "<")
        elif relation in ("<", "<=") and right.isdigit() and left in bounds:
            bounds[left][1] = int(right) - (relation == "<")
        elif relation == "divisible by" and left in bounds:
            factors[left] = int(right)
        elif relation == "==" and left in bounds and right in bounds:
            same[right] = left
    made = {}
    for name, (low, high) in bounds.items():
        if name in same:
            made[name] = made[same[name]]
            continue
        factor = factors.get(name, 1)
        options = {key: n for key, n in (("min", None if low is None else -(-low // factor)), ("max", None if high is None else high // factor)) if n is not None}
        made[name] = torch.export.Dim(name if factor == 1 else f"{name}_of_{factor}", **options) * factor if factor > 1 else torch.export.Dim(name, **options)
    return made
