"""A program as a list of calls of ops, which the native part runs without Python (native/call_programs.hpp)."""

from __future__ import annotations

import types

import backplane as bp

from . import _step_lists
from ._op_programs import function_of, is_settled
from ._tensors import dtype_of

__all__ = ["program_plan"]

_MOST_STEPS = 64


def program_plan(program, tensors):
    """(steps, indices of the steps' results, place of each result) for tensors of these shapes, or None where Python must compute it.

    A place is an index of the results of the steps, or -1 - i for the i-th tensor.
    """
    if not is_settled(program):  # ops of plugins and of Python may be defined again, and may have effects
        return None
    examples = [bp.broadcast_to(bp.zeros((), dtype=dtype_of(x.dtype)), tuple(x.shape)) for x in tensors]
    try:
        graph = bp.make_graph(lambda *xs: bp.unguarded(function_of(program), *xs))(*examples)
        return None if graph.updates else _described(graph)
    except (bp.BackplaneError, _step_lists.NotAProgram):
        return None


def _described(graph):
    """Results that are inputs go by their place: no step computes them."""
    names = [_name(value) for value in graph.inputs]
    computed = [value for value in graph.outputs if _name(value) not in names]
    steps, results = _step_lists.merged(*[_live(graph, computed)] * 2, most_steps=_MOST_STEPS) if computed else ([], [])
    taken = iter(range(len(results)))
    places = [-1 - names.index(_name(value)) if _name(value) in names else next(taken) for value in graph.outputs]
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
