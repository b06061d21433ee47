"""Programs: a call of a registry op, or its vjp, jvp or vmap, written as JSON so that an operator of PyTorch can carry it.

    ["op", "bp::softmax", [["t", 0], ["v", [-1]]], {}]     t: a tensor, ts: a list of them, v: a value, d: a dtype
    ["vjp", PROGRAM, N]        N tensors and the cotangents of the floating results: cotangents of the floating ones of N
    ["jvp", PROGRAM, N]        N tensors and the tangents of the floating ones: tangents of the floating results
    ["vmap", PROGRAM, AXES]    the axis of each tensor that is batched, or null; results are batched along axis 0

Each transform of PyTorch becomes the one of Backplane, so programs are closed under nesting.
"""

from __future__ import annotations

import collections
import json
import re

import torch

import backplane as bp

from ._tensors import dtype_of, from_torch, to_torch_tensor

__all__ = ["call_of", "function_of", "inferred", "is_floating", "is_settled", "run", "run_op", "transformed"]

_NAMESPACES = re.compile(r'"op", "(\w+)::')
_functions = {}
_plans = collections.OrderedDict()
_KEPT_PLANS = 512


def is_floating(x):
    """Is a tensor of PyTorch or Backplane of a dtype with derivatives?"""
    return x.is_floating_point() or x.is_complex() if isinstance(x, torch.Tensor) else "floating" in x.dtype.kind


def call_of(op, parameters, arguments):
    """(the program of a call, its tensors). arguments: by name, PyTorch's values; those that are missing keep their default."""
    tensors, positional, named, skipped = [], [], {}, False
    for name, keyword_only, *_ in parameters:
        if name in arguments:
            value = _described(arguments[name], tensors)
            if keyword_only or skipped:
                named[name] = value
            else:
                positional.append(value)
        else:
            skipped = True
    return json.dumps(["op", op.full_name, positional, named]), tensors


def _described(value, tensors):
    if isinstance(value, torch.Tensor):
        tensors.append(value)
        return ["t", len(tensors) - 1]
    if isinstance(value, (list, tuple)) and any(isinstance(x, torch.Tensor) for x in value):
        return ["ts", [None if x is None else _described(x, tensors)[1] for x in value]]
    if isinstance(value, torch.dtype):
        return ["d", dtype_of(value).name]
    if isinstance(value, complex):
        return ["c", [value.real, value.imag]]
    if isinstance(value, (list, tuple)):
        return ["v", [None if x is None else int(x) for x in value]]
    if isinstance(value, torch.SymInt):
        return ["v", int(value)]
    return ["v", float(value) if isinstance(value, torch.SymFloat) else value]


def transformed(kind, program, *details):
    """The program of a vjp, jvp or vmap of another."""
    return json.dumps([kind, json.loads(program), *details])


def function_of(program):
    """The program as a function of Backplane's tensors, which returns a tuple of them."""
    if program not in _functions:
        _functions[program] = _built(json.loads(program))
    return _functions[program]


def _built(node):
    if node[0] == "op":
        return _op_function(*node[1:])
    inner = _built(node[1])
    return {"vjp": _vjp, "jvp": _jvp, "vmap": _vmap}[node[0]](inner, node[2])


def _op_function(full_name, positional, named):
    op = _op(full_name)

    def call(*tensors):
        found = op(*(_value(x, tensors) for x in positional), **{key: _value(x, tensors) for key, x in named.items()})
        return tuple(found) if isinstance(found, (tuple, list)) else (found,)

    return call


def _op(full_name):
    namespace, _, name = full_name.partition("::")
    return getattr(getattr(bp.ops, namespace), name)


def _value(described, tensors):
    kind, content = described
    if kind == "t":
        return tensors[content]
    if kind == "ts":
        return [None if i is None else tensors[i] for i in content]
    return getattr(bp, content) if kind == "d" else complex(*content) if kind == "c" else content


def inferred(program, tensors):
    """(dtype, shape) of each result of a program of one op, by its entry's rules alone; None for other programs."""
    kind, *rest = json.loads(program)
    if kind != "op":
        return None
    full_name, positional, named = rest
    return _op(full_name).infer(*(_value(x, tensors) for x in positional), **{key: _value(x, tensors) for key, x in named.items()})


def _of_floating(inner, primals):
    """inner as a function of its floating tensors, which returns its floating results; and those tensors."""
    places = [i for i, x in enumerate(primals) if is_floating(x)]

    def call(*values):
        filled = list(primals)
        for place, x in zip(places, values):
            filled[place] = x
        return tuple(y for y in inner(*filled) if is_floating(y))

    return call, [primals[i] for i in places]


def _vjp(inner, count):
    def call(*tensors):
        function, primals = _of_floating(inner, tensors[:count])
        results, back = bp.vjp(function, *primals)
        return tuple(back(tuple(bp.broadcast_to(g, y.shape) for g, y in zip(tensors[count:], results))))

    return call


def _jvp(inner, count):
    def call(*tensors):
        function, primals = _of_floating(inner, tensors[:count])
        return tuple(bp.jvp(function, tuple(primals), tuple(tensors[count:]))[1])

    return call


def _vmap(inner, axes):
    return bp.vmap(inner, in_axes=tuple(axes), randomness="different")


def run(program, tensors):
    """The results of a program, PyTorch's tensors; a derived program runs as a graph, which keeps nothing that no result needs."""
    ours = [from_torch(x) for x in tensors]
    function = function_of(program)
    if is_settled(program) and not program.startswith('["op"'):
        key = (program, tuple((x.dtype, tuple(x.shape), x.device) for x in ours))
        if key not in _plans:
            _plans[key] = _planned(function, ours)
            if len(_plans) > _KEPT_PLANS:
                _plans.popitem(last=False)
        function = _plans[key]
    place = _place_of(tensors)
    return [_result(x, tensors, place) for x in function(*ours)]


def _planned(function, tensors):
    """The function as a graph, or itself where shapes depend on values."""
    try:
        return bp.make_graph(lambda *xs: bp.unguarded(function, *xs))(*tensors)
    except bp.MissingRuleError:
        return function


def run_op(op, args, kwargs):
    """The results of one op for PyTorch's arguments."""
    tensors = []
    given = [_converted(x, tensors) for x in args]
    named = {name: _converted(x, tensors) for name, x in kwargs.items()}
    place = _place_of(tensors)
    found = op(*given, **named)
    return [_result(x, tensors, place) for x in (found if isinstance(found, (tuple, list)) else (found,))]


def _converted(value, tensors):
    if isinstance(value, torch.Tensor):
        tensors.append(value)
        return from_torch(value)
    if isinstance(value, (list, tuple)):
        return [_converted(x, tensors) for x in value]
    return dtype_of(value) if isinstance(value, torch.dtype) else value


def is_settled(program):
    """Are the rules of the program's ops fixed? A custom op may be defined again."""
    return set(_NAMESPACES.findall(program)) == {"bp"}


def _place_of(tensors):
    """The device of type PrivateUse1 that has the tensors, or None for PyTorch's own devices. Errors: DeviceError where they lie on several."""
    devices = {x.device for x in tensors}
    if len(devices) > 1:
        named = " and ".join(sorted(str(place) for place in devices))
        raise bp.DeviceError(f"torch.ops: found tensors on {named}, expected one device. Fix: move them with to(device)")
    return next((place for place in devices if place.type == torch._C._get_privateuse1_backend_name()), None)


def _result(x, tensors, place):
    """A result in row-major order, as its fake tensor is, and in memory of its own: PyTorch forbids operators that return their operands."""
    found = to_torch_tensor(x, place).contiguous()
    start = found.data_ptr()
    return found.clone() if found.numel() and any(x.data_ptr() == start for x in tensors) else found
