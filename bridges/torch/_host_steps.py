"""Steps of compiled graphs that PyTorch's CPU computes: operators without a row, such as custom operators, where the user allows it."""

from __future__ import annotations

import torch
from torch._subclasses.fake_tensor import DynamicOutputShapeException, FakeTensorMode
from torch.utils import _pytree as pytree

import backplane as bp
from backplane._transforms._callbacks import operation, registered

from ._fallbacks import check_host, host_may_compute, note_host
from ._graph_functions import has_function
from ._tensors import dtype_of, from_torch, to_torch_tensor, torch_dtype_of

__all__ = ["computed_on_host", "host_step", "is_host_factory"]

# What AOTAutograd makes of an operator that changes its arguments: it returns their new values.
_FUNCTIONALIZED = ("auto_functionalized", "auto_functionalized_v2")


def host_step(node):
    """The function that calls a node's operator on PyTorch's CPU, over tensors of Backplane; None where its results are no tensors.

    It takes the node's arguments as PyTorch has them, but for the tensors.
    """
    target, results = node.target, node.meta.get("val")
    if not (host_may_compute() or is_random(node)):
        return None
    if isinstance(target, torch._ops.OpOverload):
        name = target.name()
        if target._schema.is_mutable:
            return None
    elif isinstance(target, torch._ops.HigherOrderOperator) and target.name() in _FUNCTIONALIZED:
        name = node.args[0].name()
    else:
        return None
    if not _tensors_in(node) or not all(x is None or isinstance(x, torch.Tensor) for x in pytree.tree_leaves(results)):
        return None

    def call(*args, **kwargs):
        return _traced_call(name, target, args, kwargs, is_random(node))

    call.takes_torch = True
    return call


def _tensors_in(node):
    return any(isinstance(used.meta.get("val"), torch.Tensor) for used in node.all_input_nodes)


def is_random(node):
    """Does a node draw random numbers? PyTorch's CPU draws them whatever the policy is, as it does for the device."""
    return node.op == "call_function" and isinstance(node.target, torch._ops.OpOverload) and torch.Tag.nondeterministic_seeded in node.target.tags


def is_host_factory(node):
    """Does a node call an operator without a row that makes one tensor of none, on PyTorch's CPU?"""
    target = node.target
    if not host_may_compute():
        return False
    if node.op != "call_function" or not isinstance(target, torch._ops.OpOverload) or target.namespace in ("aten", "prims") or has_function(node):
        return False
    return not target._schema.is_mutable and not _tensors_in(node) and isinstance(node.meta.get("val"), torch.Tensor)


def computed_on_host(target, *args, **kwargs):
    """The result of a factory, at a call of the compiled function."""
    check_host(target.name())
    found = target(*args, **kwargs)
    note_host(target.name())
    return found


def _traced_call(name, target, args, kwargs, is_free):
    leaves, structure = pytree.tree_flatten((args, kwargs))
    places = [place for place, leaf in enumerate(leaves) if isinstance(leaf, bp.Tensor)]
    tensors = [leaves[place] for place in places]
    constants = [None if isinstance(leaf, bp.Tensor) else leaf for leaf in leaves]  # what runs outlives a trace, whose tensors do not

    def compute(values):
        filled = list(constants)
        for place, value in zip(places, values):
            filled[place] = value
        given, named = pytree.tree_unflatten(filled, structure)
        with torch._C._AutoDispatchBelowAutograd(), torch._C._DisableAutocast():
            return pytree.tree_flatten(target(*given, **named))

    expected, result_structure = _expected(name, compute, tensors)
    shown = [x for x in expected if x is not None]

    def run(found):
        if not is_free:
            check_host(name)
        device = found[0].device if found else None
        values = [to_torch_tensor(x) for x in found]
        results, _ = compute(values)
        if not is_free:
            note_host(name)
        return [_returned(name, x, e, device) for x, e in zip(results, expected, strict=True) if e is not None]

    step = operation(len(tensors), len(shown))
    made = step(*tensors, callback=registered(run, [(tuple(x.shape), dtype_of(x.dtype)) for x in shown]))
    made = iter([made] if isinstance(made, bp.Tensor) else made)
    return pytree.tree_unflatten([None if x is None else next(made) for x in expected], result_structure)


def _expected(name, compute, tensors):
    """(tensors without memory, or None, in the place of each result, their structure), by the operator's rule for fake tensors."""
    with FakeTensorMode():
        examples = [torch.empty(tuple(x.shape), dtype=torch_dtype_of(x.dtype)) for x in tensors]
        try:
            return compute(examples)
        except DynamicOutputShapeException:
            raise bp.MissingRuleError(
                f"torch.compile: {name} has no row in Backplane's table, and the shape of its results depends on values. Fix: call it outside of the compiled function"
            ) from None


def _returned(name, x, expected, device):
    """A copy, which the operator does not hold."""
    if x.shape != expected.shape or x.dtype != expected.dtype:
        raise bp.ShapeError(f"{name}: found a result {x.dtype} of shape {tuple(x.shape)}, expected {expected.dtype} {tuple(expected.shape)}, as its rule for fake tensors says")
    found = from_torch(x.clone(memory_format=torch.contiguous_format))
    return found if device is None or found.device == device else found.to(device)
