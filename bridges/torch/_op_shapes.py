"""The dtypes and shapes of a program's results, from the entries' own rules: also where PyTorch's sizes are symbols.

The program is traced over tensors without memory. A size that is a symbol gets a name, and Backplane gives the sizes of the results as
expressions of the names, which are computed over PyTorch's symbols again.
"""

from __future__ import annotations

import functools

import torch

import backplane as bp

from ._op_programs import function_of, inferred, is_settled
from ._tensors import dtype_of, torch_dtype_of

__all__ = ["results_of"]


def results_of(program, tensors):
    """Empty tensors like the results, in the fake mode that is active."""
    names, symbols, example = {}, {}, []
    for x in tensors:
        sizes, named = [], {}
        for axis, size in enumerate(x.shape):
            hint = _hint(size)
            if hint is not None:
                name = names.setdefault(str(size.node.expr), f"s{len(names)}")
                symbols[name] = size
                named[axis] = name
            sizes.append(int(size) if hint is None else hint)
        example.append((dtype_of(x.dtype), tuple(sizes), tuple(named.items())))
    device = tensors[0].device if tensors else "cpu"
    made = []
    infer = _inferred if is_settled(program) else _inferred.__wrapped__
    for dtype, dims in infer(program, tuple(example)):
        shape = [eval(dim, {}, symbols) for dim in dims]  # whole-number expressions of the symbols' names, as Backplane wrote them
        made.append(torch.empty(shape, dtype=torch_dtype_of(dtype), device=device))
    return made


def _hint(size):
    """An example of a size that is a symbol; None for a number."""
    if not isinstance(size, torch.SymInt) or size.node.maybe_as_int() is not None:
        return None
    if not size.node.has_hint():
        raise bp.ArgumentValueError(f"backplane.torch: found the size {size}, which depends on values, so that no rule can tell the shape of a result")
    return size.node.hint


@functools.lru_cache(maxsize=2048)
def _inferred(program, example):
    """(dtype, sizes as text) of each result."""
    function = function_of(program)
    given = [bp.broadcast_to(bp.zeros((), dtype=dtype), shape) for dtype, shape, _ in example]
    dynamic = {f"xs[{i}]": dict(named) for i, (_, _, named) in enumerate(example) if named}

    def call(xs):
        return bp.unguarded(function, *xs)

    try:
        if dynamic:
            return _sizes(bp.make_graph(call, dynamic=dynamic)(given))
    except (bp.ShapeError, bp.MissingRuleError):
        pass  # the op depends on one of these sizes, or is not traced: they are numbers from here on
    stated = inferred(program, given)
    if stated is not None:
        return [(dtype, tuple(str(size) for size in shape)) for dtype, shape in stated]
    return _sizes(bp.make_graph(call)(given))


def _sizes(graph):
    return [(getattr(bp, value.dtype), tuple(value.dims)) for value in graph.outputs]
