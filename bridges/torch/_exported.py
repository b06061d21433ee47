"""from_exported: an exported program of PyTorch as a function of Backplane's tensors."""

from __future__ import annotations

import collections

import torch
from torch.export.graph_signature import InputKind, OutputKind
from torch.utils import _pytree as pytree

import backplane as bp

from ._aten_rows import has_row
from ._graph_functions import GraphFunction
from ._tensors import dtype_of, from_torch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["ExportedFunction", "from_exported"]


def from_exported(program: torch.export.ExportedProgram, *, device: bp.Device | str | None = None) -> ExportedFunction:
    """An exported program as a function of Backplane's tensors, with the program's own positional and keyword arguments.

    program: what torch.export.export(model, args) returns, with static or dynamic sizes.
    device: where the program's parameters lie and its tensors are created; the CPU unless given.

    The function takes tensors of Backplane, or PyTorch's tensors and NumPy's arrays. It returns tensors of Backplane in the structure
    of the program's result; classes of dicts, as the outputs of transformers, become dicts. bp.compile, bp.grad, bp.vmap and
    bp.export accept it. On the CPU its parameters share the memory of the program's; buffers that the program changes are its own.

    Errors: ArgumentTypeError for another kind of object; MissingRuleError for operators that Backplane does not compute, with their
        names; ShapeError and DtypeError where an argument is not like the one that the program was exported with.

    Example:
        >>> program = torch.export.export(torch.nn.Linear(3, 2), (torch.ones(4, 3),))
        >>> backplane.torch.from_exported(program)(bp.ones((4, 3))).shape
        (4, 2)
    """
    if not isinstance(program, torch.export.ExportedProgram):
        raise bp.ArgumentTypeError(
            f"from_exported: argument program: found a {type(program).__name__}, expected an ExportedProgram. Fix: torch.export.export(model, args)"
        )
    return ExportedFunction(program, device)


def _decompositions():
    """PyTorch's own, without those of operators that have a row."""
    table = torch.export.default_decompositions()
    for overload in list(table.keys()):
        if has_row(overload):
            table.pop(overload)
    return table


class ExportedFunction:
    """The function of an exported program. `parameters` and `buffers` hold its tensors by name.

    `functional(state, *args, **kwargs)` calls it with other tensors: state is a dict by name, of parameters, buffers or both.
    """

    def __init__(self, program, device):
        program = program.run_decompositions(_decompositions())
        self._signature, spec = program.graph_signature, program.call_spec
        self._in_spec, self._out_spec = spec.in_spec, spec.out_spec
        self._function = GraphFunction(program.graph_module, device, "from_exported")
        self._ranges = program.range_constraints
        self.parameters, self.buffers, self._constants = {}, {}, {}
        self._place_state(program, device)
        self.__name__ = "exported"

    def _place_state(self, program, device):
        changed = set(self._signature.buffers_to_mutate.values())
        made = {}
        for spec in self._signature.input_specs:
            if spec.kind == InputKind.USER_INPUT:
                continue
            if spec.kind == InputKind.CUSTOM_OBJ or spec.kind == InputKind.TOKEN:
                raise bp.ArgumentTypeError(f"from_exported: found an input of kind {spec.kind.name}, expected tensors and numbers")
            value = program.state_dict.get(spec.target, program.constants.get(spec.target))
            kind = {InputKind.PARAMETER: self.parameters, InputKind.BUFFER: self.buffers}.get(spec.kind, self._constants)
            if id(value) not in made:
                made[id(value)] = from_torch(value.clone() if spec.target in changed else value, device)
            kind[spec.target] = made[id(value)]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return bp.unguarded(self._call, None, args, kwargs)

    def functional(self, state: dict[str, bp.Tensor], *args: Any, **kwargs: Any) -> Any:
        """A call with the tensors of state in place of the parameters and buffers of these names."""
        unknown = [name for name in state if name not in self.parameters and name not in self.buffers]
        if unknown:
            raise bp.ArgumentValueError(f"functional: argument state: found {unknown[0]!r}, expected names of parameters and buffers")
        return bp.unguarded(self._call, state, args, kwargs)

    def _call(self, state, args, kwargs):
        state = {**self.parameters, **self.buffers, **self._constants, **(state or {})}
        given = iter(self._flat(args, kwargs))
        inputs, users = [], {}
        sizes = {}
        for spec, node in zip(self._signature.input_specs, self._function.placeholders):
            if spec.kind == InputKind.USER_INPUT:
                value = self._input(next(given), node, spec, sizes)
                users[getattr(spec.arg, "name", None)] = value
            else:
                value = state[spec.target]
            inputs.append(value)
        found = self._function(*inputs)
        results = []
        for spec, value in zip(self._signature.output_specs, found, strict=True):
            if spec.kind == OutputKind.BUFFER_MUTATION:
                _assign(state[spec.target], value)
            elif spec.kind == OutputKind.USER_INPUT_MUTATION:
                _assign(users[spec.target], value)
            elif spec.kind == OutputKind.USER_OUTPUT:
                results.append(value)
            else:
                raise bp.ArgumentTypeError(f"from_exported: found an output of kind {spec.kind.name}, expected the program of a forward pass")
        return _structured(self._out_spec, iter(results))

    def _flat(self, args, kwargs):
        """The leaves of a call's arguments, in the program's order."""
        expected_args, expected_kwargs = self._in_spec.children()
        names = list(expected_kwargs.context or [])
        if sorted(kwargs) != sorted(names):
            raise bp.ArgumentTypeError(f"from_exported: found the keyword arguments {sorted(kwargs)}, expected {sorted(names)}, as the program was exported with")
        leaves, structure = pytree.tree_flatten((args, {name: kwargs[name] for name in names}))
        if structure != self._in_spec:
            raise bp.ArgumentTypeError(f"from_exported: found arguments of the structure {structure}, expected {self._in_spec}, as the program was exported with")
        return leaves

    def _input(self, value, node, spec, sizes):
        expected = node.meta.get("val")
        if isinstance(expected, torch.Tensor):
            return self._tensor_input(value, node.name, expected, sizes)
        if isinstance(expected, (torch.SymInt, torch.SymFloat)):
            return value
        fixed = getattr(spec.arg, "value", None)
        if value is not fixed and value != fixed:
            raise bp.ArgumentValueError(f"from_exported: argument {node.name}: found {value!r}, expected {fixed!r}, which the program was exported with")
        return value

    def _tensor_input(self, value, name, expected, sizes):
        if isinstance(value, torch.Tensor):
            value = from_torch(value, self._function.device)
        elif not isinstance(value, bp.Tensor):
            if not hasattr(value, "__dlpack__"):
                raise bp.ArgumentTypeError(f"from_exported: argument {name}: found a {type(value).__name__}, expected a tensor")
            value = bp.asarray(value)
        dtype = dtype_of(expected.dtype)
        if value.dtype != dtype:
            raise bp.DtypeError(f"from_exported: argument {name}: found {value.dtype.name}, expected {dtype.name}. Fix: cast it, or export the program with it")
        shape = tuple(value.shape)
        if len(shape) != expected.dim():
            raise bp.ShapeError(f"from_exported: argument {name}: found the shape {shape}, expected {tuple(expected.shape)}")
        for found, size in zip(shape, expected.shape):
            self._check_size(found, size, name, shape, expected, sizes)
        return value

    def _check_size(self, found, size, name, shape, expected, sizes):
        if not isinstance(size, torch.SymInt):
            fits, fix = found == size, "export the program with dynamic_shapes"
        else:
            symbol = size.node.expr
            if symbol.is_symbol:
                known = sizes.setdefault(symbol, found)
                bounds = self._ranges.get(symbol)
                fits = known is found or known == found
                if fits and bounds is not None:
                    lower, upper = bounds.lower, bounds.upper
                    fits = (not (lower.is_Integer and lower > 2) or found >= int(lower)) and (not upper.is_Integer or found <= int(upper))
                fix = f"give sizes that fit {symbol} in {bounds}"
            elif symbol.free_symbols <= sizes.keys() and all(type(sizes[s]) is int for s in symbol.free_symbols):
                fits, fix = int(symbol.subs(sizes)) == found, f"the size {symbol} follows from other arguments"
            else:
                return
        if not fits:
            raise bp.ShapeError(f"from_exported: argument {name}: found the shape {shape}, expected {tuple(expected.shape)}. Fix: {fix}")


def _assign(tensor, value):
    """Writes a value into a tensor of the state or of the caller, as the program does."""
    with bp.no_grad():
        tensor[...] = value


def _structured(spec, results):
    """The results in the structure of the program's; a class of dicts becomes a dict."""
    if spec.is_leaf():
        return next(results)
    children = [_structured(child, results) for child in spec.children()]
    if spec.type is tuple:
        return tuple(children)
    if spec.type is list:
        return children
    if spec.type is collections.namedtuple:
        return spec.context(*children)
    keys = spec.context
    if isinstance(keys, (list, tuple)) and len(keys) == 2 and len(keys) != len(children):
        keys = keys[1] if isinstance(keys[1], (list, tuple)) else keys[0]
    if isinstance(keys, (list, tuple)) and len(keys) == len(children):
        return dict(zip(keys, children))
    return tuple(children)
