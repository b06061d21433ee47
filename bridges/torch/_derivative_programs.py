"""The derivative of a recorded call as a list of calls of ops, which the native part runs without Python (native/derivatives.hpp)."""

from __future__ import annotations

import types

import backplane as bp

from . import _step_lists
from ._op_programs import function_of, is_floating, is_settled
from ._tensors import dtype_of

__all__ = ["derivative_program"]

_MOST_STEPS = 64


def derivative_program(program, tensors, cotangents):
    """(steps, indices of the results, places) for tensors and cotangents of these shapes, or None where Python must compute it."""
    if not is_settled(program):  # ops of plugins and of Python may be defined again, and may have effects
        return None
    inputs = [*tensors, *cotangents]
    examples = [bp.broadcast_to(bp.zeros((), dtype=dtype_of(x.dtype)), tuple(x.shape)) for x in inputs]
    try:
        graph = bp.make_graph(lambda *xs: bp.unguarded(function_of(program), *xs))(*examples)
        if graph.updates:
            return None
        return _described(graph, [is_floating(x) for x in tensors])
    except (bp.BackplaneError, _step_lists.NotAProgram):
        return None


def _described(graph, floating):
    """Results that are inputs go by their place: no step computes them."""
    names = [_name(value) for value in graph.inputs]
    outputs = [_name(value) for value in graph.outputs]
    computed = [value for value, name in zip(graph.outputs, outputs) if name not in names]
    steps, results = _step_lists.merged(*[_live(graph, computed)] * 2, most_steps=_MOST_STEPS) if computed else ([], [])
    places, taken, given = [], iter(range(len(results))), iter(outputs)
    for is_differentiable in floating:
        if not is_differentiable:
            places.append(-1)
            continue
        name = next(given)
        places.append(-2 - names.index(name) if name in names else next(taken))
    return steps, results, places


def _live(graph, outputs):
    """The part of a graph that these outputs need."""
    needed, nodes = {_name(value) for value in outputs}, []
    for node in reversed(graph.nodes):
        if any(_name(result) in needed for result in node.results):
            needed |= set(node.inputs)
            nodes.insert(0, node)
    constants = graph.constants if any(node.inputs for node in nodes) and _reads_constants(graph, needed) else []
    return types.SimpleNamespace(inputs=graph.inputs, constants=constants, nodes=nodes, outputs=outputs)


def _reads_constants(graph, needed):
    known = {_name(value) for value in graph.inputs} | {_name(result) for node in graph.nodes for result in node.results}
    return bool(needed - known)


def _name(value):
    return str(value).partition(":")[0]
