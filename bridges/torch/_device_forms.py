"""Which operators of PyTorch the table computes on the device: for each the row, its form, and what its arguments become.

One row serves the functional operator, the in-place one and the one with out=.
"""

from __future__ import annotations

import torch

from . import _device_factors
from ._aten_rows import has_row, is_elementwise, row_of

__all__ = ["forms", "function_of", "is_free_of_sizes", "FUNCTIONAL", "IN_PLACE", "OUT"]

FUNCTIONAL, IN_PLACE, OUT = range(3)

_DROPPED = {"layout", "device", "pin_memory", "memory_format", "generator", "non_blocking"}
_FACTORY = {"dtype", "layout", "device", "pin_memory"}
_NUMBERS = {"number", "float", "Optional[number]", "Optional[float]"}
# PyTorch composes these of empty, copy_ and fill_, which keeps strides and devices as it has them.
_COMPOSED = {
    "clone", "contiguous", "_to_copy", "to", "copy", "detach_copy", "lift", "lift_fresh_copy", "alias_copy", "resolve_conj", "resolve_neg", "empty", "empty_strided",
    "empty_permuted", "empty_like", "zeros_like", "ones_like", "full_like", "new_empty", "new_empty_strided", "new_zeros", "new_ones", "new_full", "zeros", "ones", "full",
    "scalar_tensor", "_local_scalar_dense", "rand_like", "randn_like", "detach", "alias", "fill.Tensor", "type_as", "_conj", "expand_as",
}  # fmt: skip


def forms():
    """(name, name of the row's operator, kinds of its arguments, form) of every operator that a row computes.

    Left out: views, which share memory as PyTorch has them; random numbers, which PyTorch's CPU draws; operators that PyTorch
    composes of others, through which its derivatives go.
    """
    found = []
    for functional in _functional():
        name = _name(functional)
        base = name.partition(".")[0]
        arguments = functional._schema.arguments
        kinds = "".join(_kind(argument) for argument in arguments)
        if base in _COMPOSED or name in _COMPOSED:
            continue
        if not _is_composite(functional):
            found.append((name, name, kinds, FUNCTIONAL))
        found.extend(_others(functional, base, name, arguments, kinds))
    return found


def function_of(name):
    """The function that computes a functional operator, over tensors of Backplane."""
    packet, _, which = name.partition(".")
    return _device_factors.ROWS.get(name) or row_of(getattr(getattr(torch.ops.aten, packet), which or "default"))


# Operators with a row elsewhere that passes its tensors to one op, whatever their sizes are.
_ONE_OP = {
    "mm", "bmm", "mv", "dot", "addmm", "baddbmm", "sum", "mean", "amax", "amin", "_softmax", "_log_softmax", "threshold_backward", "sigmoid_backward", "tanh_backward",
    "gelu_backward", "silu_backward",
}  # fmt: skip


def is_free_of_sizes(name):
    """Does the row compute the same for all sizes that are not 0 or 1? Other rows have a program for each combination of sizes."""
    packet, _, which = name.partition(".")
    return packet in _ONE_OP or (name not in _device_factors.ROWS and is_elementwise(getattr(getattr(torch.ops.aten, packet), which or "default")))


def _is_computed(overload):
    return _name(overload) in _device_factors.ROWS or has_row(overload)


def _functional():
    seen = set()
    for schema in torch._C._jit_get_all_schemas():
        if not schema.name.startswith("aten::") or schema.is_mutable:
            continue
        packet = getattr(torch.ops.aten, schema.name.removeprefix("aten::"), None)
        overload = getattr(packet, schema.overload_name or "default", None) if packet is not None else None
        if overload is None or overload in seen or not torch._C._dispatch_has_kernel(overload.name()) or not _is_computed(overload):
            continue
        seen.add(overload)
        if any(argument.alias_info is not None for argument in overload._schema.arguments) or torch.Tag.nondeterministic_seeded in overload.tags:
            continue
        yield overload


def _name(overload):
    return overload.name().removeprefix("aten::")


def _kind(argument):
    if argument.name in _DROPPED:
        return "n"
    if "ScalarType" in str(argument.real_type):
        return "d"
    return "s" if str(argument.type) in _NUMBERS else "t"


def _is_composite(overload):
    return torch._C._dispatch_has_kernel_for_dispatch_key(overload.name(), "CompositeImplicitAutograd")


def _signature(arguments):
    return [(argument.name, str(argument.type)) for argument in arguments]


def _others(functional, base, name, arguments, kinds):
    """The in-place and out= operators with the functional operator's arguments."""
    wanted = _signature(arguments)
    inplace = getattr(torch.ops.aten, base + "_", None) if not base.endswith("_") else None
    for overload in _overloads(inplace):
        if _signature(overload._schema.arguments) == wanted and not _is_composite(overload):
            yield _name(overload), name, kinds, IN_PLACE
    creating = [argument for argument in arguments if argument.name not in _FACTORY]
    for overload in _overloads(getattr(torch.ops.aten, base, None)):
        given = [argument for argument in overload._schema.arguments if not argument.is_out]
        if len(given) == len(overload._schema.arguments) or _is_composite(overload):
            continue
        if _signature(given) == wanted:
            yield _name(overload), name, kinds, OUT
        elif len(creating) < len(arguments) and _signature(given) == _signature(creating):
            yield _name(overload), name, "".join(_kind(argument) for argument in creating) + "o", OUT


def _overloads(packet):
    for which in packet.overloads() if packet is not None else ():
        overload = getattr(packet, which)
        if overload._schema.is_mutable:
            yield overload
