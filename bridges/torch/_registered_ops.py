"""Every op of the registry as an operator of PyTorch: torch.ops.<namespace>.<op>.

An operator has a kernel for the CPU, one that records derivatives, a batching rule, and a rule for fake tensors. They are written
against single levels of torch.func, as PyTorch's own operators are, so transforms nest in any order.
"""

from __future__ import annotations

import re

import torch
from torch._C import _functorch
from torch._functorch.autograd_function import enable_single_level_autograd_function
from torch.autograd.forward_ad import _set_fwd_grad_enabled
from torch.autograd.function import _SingleLevelFunction

import backplane as bp

from . import _native_ops
from ._op_programs import call_of, is_floating, run, run_op, transformed
from ._op_shapes import results_of

__all__ = ["refusal", "register_ops", "schema_of"]

_TYPES = {
    "Tensor": "Tensor", "Tensor | None": "Tensor?", "Sequence[Tensor]": "Tensor[]", "Sequence[Tensor | None]": "Tensor?[]", "Scalar": "Scalar", "Scalar | None": "Scalar?",
    "bool": "bool", "str": "str", "Size": "SymInt", "Size | None": "SymInt?", "Index": "SymInt", "Axis": "int", "Axis | None": "int?", "Sequence[Size]": "SymInt[]",
    "Shape": "SymInt[]", "Sequence[Index]": "SymInt[]", "Axes": "int[]", "Axes | None": "int[]?", "DType": "ScalarType", "DType | None": "ScalarType?",
}  # fmt: skip
_OPTIONAL = re.compile(r"\? (\w+)=\[")  # arguments with a list as their default that may be None
_LEFT_OUT = {"out", "device", "generator"}  # where results lie, which PyTorch says itself
_BRIDGE = "backplane_bridge"

_libraries, _registered = {}, {}


def register_ops() -> int:
    """Registers every op that has no operator yet, of the registry and of the plugins loaded so far. Returns how many there are.

    Views, ops that take functions, ops without a tensor argument and ops that return lists are left out. `import backplane.torch` calls it;
    call it again after bp.load_plugin or bp.custom_op.

    Example:
        >>> torch.ops.bp.softmax(torch.zeros(2))
        tensor([0.5000, 0.5000])
    """
    if _BRIDGE not in _libraries:
        _define_bridge()
    for namespace in dir(bp.ops):
        for name in dir(getattr(bp.ops, namespace)):
            op = getattr(getattr(bp.ops, namespace), name, None)  # None: its plugin is refused, which a use of the op says
            if op is not None and op.full_name == f"{namespace}::{name}" and op.full_name not in _registered:
                schema = _schema(op)
                if schema is not None:
                    _registered[op.full_name] = schema
                    _register(namespace, name, op, schema)
    return len(_registered)


def _schema(op):
    """The operator's schema in PyTorch's words, or None for an op that PyTorch does not take."""
    if refusal(op) is not None:
        return None
    arguments, keyword, defaulted = [], False, False
    optional = set(_OPTIONAL.findall(bp.explain(op.full_name).partition("\n")[0]))
    for name, keyword_only, has_default, default, type_, _ in _parameters(op):
        if (keyword_only or (defaulted and not has_default)) and not keyword:
            arguments.append("*")
            keyword = True
        defaulted = defaulted or has_default
        stated = _TYPES[type_]
        if name in optional and stated == "int[]" and len(set(default)) == 1:  # PyTorch has no other defaults of optional lists
            stated, default = f"int[{len(default)}]?", default[0]
        arguments.append(f"{stated} {name}" + (f"={_default(default)}" if has_default else ""))
    results = _results(op).split(", ")
    returns = "Tensor" if len(results) == 1 else "(" + ", ".join(["Tensor"] * len(results)) + ")"
    return f"({', '.join(arguments)}) -> {returns}"


def refusal(op):
    """Why an op has no operator in PyTorch, or None."""
    types = [type_ for *_, type_, _ in _parameters(op)]
    if any("shape rule view" in line for line in bp.explain(op.full_name).splitlines() if line.startswith("  meta")):
        return "a view, which PyTorch has itself"
    if "Graph" in types or any("Callable" in type_ for type_ in types):
        return "takes a function"
    if "[]" in _results(op):
        return "returns a list of tensors whose length depends on the call"
    unknown = [f"{name} ({type_})" for name, *_, type_, _ in _parameters(op) if type_ not in _TYPES]
    if unknown:
        return f"PyTorch has no type for the argument {unknown[0]}"
    if not any(type_.startswith(("Tensor", "Sequence[Tensor")) for type_ in types):
        return "has no tensor argument, so that PyTorch cannot choose a device"
    return None


def _results(op):
    return bp.explain(op.full_name).partition("\n")[0].rpartition(" -> ")[2]


def _parameters(op):
    return [row for row in op.parameters if row[0] not in _LEFT_OUT]


def _default(value):
    if value is None:
        return "None"
    if isinstance(value, str):
        return f'"{value}"'
    return str(list(value)) if isinstance(value, (list, tuple)) else str(value)


def schema_of(full_name):
    """The schema of a registered operator, or None."""
    return _registered.get(full_name)


def _library(namespace):
    if namespace not in _libraries:
        _libraries[namespace] = torch.library.Library(namespace, "FRAGMENT")
    return _libraries[namespace]


def _register(namespace, name, op, schema):
    library, parameters = _library(namespace), _parameters(op)
    draws = any(row[0] == "generator" for row in op.parameters)
    library.define(name + schema, tags=[torch.Tag.pt2_compliant_tag] + [torch.Tag.nondeterministic_seeded] * draws)
    overload = getattr(getattr(torch.ops, namespace), name).default
    names = [argument.name for argument in overload._schema.arguments]
    single = schema.endswith("-> Tensor")

    def described(args, kwargs):
        return call_of(op, parameters, {**dict(zip(names, args)), **kwargs})

    def finished(results):
        return results[0] if single else tuple(results)

    def compute(*args, **kwargs):
        if draws:
            kwargs["generator"] = bp.Generator(int(torch.randint(1 << 62, ())))
        return finished(run_op(op, args, kwargs))

    def fake(*args, **kwargs):
        return finished(results_of(*described(args, kwargs)))

    def record(keys, *args, **kwargs):
        def below():
            with torch._C._AutoDispatchBelowAutograd():
                return overload.redispatch(keys & torch._C._after_autograd_keyset, *args, **kwargs)

        if not _records(args, kwargs):
            return below()
        if draws:
            raise _random_error(op)
        program, tensors = described(args, kwargs)
        return finished(_recorded(program, tensors, below))

    def batch(keys, *args, **kwargs):
        if draws:
            raise _random_error(op)
        return finished(_batched(*described(args, kwargs)))

    def describe(arguments):
        return described(arguments, {})[0]

    is_native = not draws and _native_ops.register(f"{namespace}::{name}", parameters, overload, record, describe)
    _implement(library, name, f"{namespace}::{name}", compute, fake, record, batch, is_native)


def _random_error(op):
    """A rule would draw again, and so differentiate or batch another function than the one that was called."""
    return bp.MissingRuleError(f"torch.ops: {op.full_name} draws random numbers, so it has no derivative and no vmap in PyTorch. Fix: use PyTorch's own operator")


# Where kernels are always Python's: CUDA and the PyTorch device, and tensors that from_torch refuses with what to do.
_OTHER_KEYS = ("CUDA", "PrivateUse1", "SparseCPU", "SparseCsrCPU", "QuantizedCPU", "NestedTensorCPU")


def _implement(library, name, full_name, compute, fake, record, batch, is_native=False):
    for key in _OTHER_KEYS:
        library.impl(name, compute, key)
    if not is_native:
        library.impl(name, compute, "CPU")
        library.impl(name, record, "Autograd", with_keyset=True)
        library.impl(name, batch, "FuncTorchBatched", with_keyset=True)
    torch.library.register_fake(full_name, fake, lib=library)


def _define_bridge():
    """The operator that computes a derivative or a batch of another: PyTorch's transforms of it are programs again."""
    library = _library(_BRIDGE)
    library.define("run(str program, Tensor[] tensors) -> Tensor[]", tags=[torch.Tag.pt2_compliant_tag])
    overload = torch.ops.backplane_bridge.run.default

    def record(keys, program, tensors):
        def below():
            with torch._C._AutoDispatchBelowAutograd():
                return overload.redispatch(keys & torch._C._after_autograd_keyset, program, tensors)

        return list(_recorded(program, tensors, below)) if _records((tensors,), {}) else below()

    is_native = _native_ops.register_run(overload, run, record)
    _implement(library, "run", f"{_BRIDGE}::run", run, results_of, record, lambda keys, program, tensors: _batched(program, tensors), is_native)


def _call(program, tensors):
    return torch.ops.backplane_bridge.run(program, tensors)


class _Recorded(_SingleLevelFunction):
    """One level of autograd or forward mode over a program."""

    @staticmethod
    def forward(program, below, grad_mode, *tensors):
        with torch.set_grad_enabled(grad_mode), _set_fwd_grad_enabled(True):
            found = below()
        return tuple(found) if isinstance(found, (tuple, list)) else (found,)

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.program, ctx.count = inputs[0], len(inputs) - 3
        tensors = inputs[3:]
        ctx.places = [i for i, x in enumerate(tensors) if is_floating(x)]
        ctx.outputs = len(output)
        ctx.results = [i for i, y in enumerate(output) if is_floating(y)]
        ctx.mark_non_differentiable(*(y for y in output if not is_floating(y)))
        ctx.save_for_backward(*tensors)
        ctx.save_for_forward(*tensors)

    @staticmethod
    def backward(ctx, *cotangents):
        given = [cotangents[i] for i in ctx.results]
        found = _call(transformed("vjp", ctx.program, ctx.count), [*ctx.saved_tensors, *given])
        gradients = [None] * ctx.count
        for place, gradient in zip(ctx.places, found):
            gradients[place] = gradient
        return None, None, None, *gradients

    @staticmethod
    def jvp(ctx, _program, _below, _mode, *tangents):
        tensors = ctx.saved_tensors
        given = [torch.zeros_like(tensors[i]) if tangents[i] is None else tangents[i] for i in ctx.places]
        found = iter(_call(transformed("jvp", ctx.program, ctx.count), [*tensors, *given]))
        return tuple(next(found) if i in ctx.results else None for i in range(ctx.outputs))


def _records(args, kwargs):
    """Does a call have derivatives to record, at the level of autograd that the dispatcher is at?"""
    if _functorch.peek_interpreter_stack() is not None or torch.autograd.forward_ad._current_level >= 0:
        return True
    return torch.is_grad_enabled() and torch._C._any_requires_grad(*args, **kwargs)


def _recorded(program, tensors, below):
    """The results of a call, with their derivatives."""
    with enable_single_level_autograd_function():
        return _Recorded.apply(program, below, torch.is_grad_enabled(), *tensors)


def _batched(program, tensors):
    """The results over one level of vmap, from Backplane's batch rules."""
    level = _functorch.maybe_current_level()
    axes, inner = [], []
    for x in tensors:
        axis = _functorch.maybe_get_bdim(x) if _functorch.is_batchedtensor(x) and _functorch.maybe_get_level(x) == level else -1
        axes.append(None if axis == -1 else axis)
        inner.append(_functorch.get_unwrapped(x) if axis != -1 else x)
    with torch._C._ExcludeDispatchKeyGuard(torch._C.DispatchKeySet(torch._C.DispatchKey.FuncTorchBatched)):
        if all(axis is None for axis in axes):
            return _call(program, inner)
        found = _call(transformed("vmap", program, axes), inner)
    return [_functorch._add_batch_dim(y, 0, level) for y in found]
