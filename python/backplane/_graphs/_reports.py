"""What a graph will do, for people: who runs which node, and pictures."""

from __future__ import annotations

from .. import _core, tree

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from .._core import DynamicSizes

__all__ = ["cost_analysis", "draw_graph", "explain_plan"]


def _inputs(arguments):
    """The inputs of a graph of these arguments: the tensors and arrays among them, in order."""
    return [leaf for leaf in tree.leaves(arguments) if hasattr(leaf, "__dlpack__")]


def _traced(fun, args, kwargs, dynamic=None):
    """The graph, and its inputs as tensors."""
    tensors = [leaf if isinstance(leaf, _core.Tensor) else _core.asarray(leaf) for leaf in _inputs((args, list(kwargs.values())))]
    return _core.make_graph(fun, dynamic=dynamic)(*args, **kwargs), tensors


def explain_plan(
    fun: Callable[..., Any],
    *,
    dynamic: DynamicSizes | None = None,
    donate: int | Sequence[int] | None = None,
    memory_budget: int | None = None,
) -> Callable[..., str]:
    """A function of fun's arguments that says how compile would run it: who runs which node and why, and what memory is reused.

    dynamic, donate, memory_budget: as for compile.

    Errors: as make_graph; ArgumentTypeError for a donate that is no position, as compile says it.

    Example:
        >>> print(bp.explain_plan(lambda x: bp.tanh(x) * 2)(bp.ones((4,))))  # doctest: +SKIP
    """
    _core.compile(fun, dynamic=dynamic, donate=donate, memory_budget=memory_budget)  # refuses what compile refuses
    positions = () if donate is None else donate if isinstance(donate, (tuple, list)) else (donate,)

    def explain(*args, **kwargs):
        count = len(args) + len(kwargs)
        for position in positions:
            if position >= count:
                raise _core.ArgumentTypeError(
                    f"explain_plan: argument donate: found {position}, but the call has {count} argument{'' if count == 1 else 's'}, "
                    "counted from 0 on"
                )
        graph, tensors = _traced(fun, args, kwargs, dynamic)
        donors = [position for position, argument in enumerate(args) for _ in _inputs(argument)]
        donated = [i for i, position in enumerate(donors) if position in positions]
        return graph.explain(*tensors, memory_budget=memory_budget, donated=donated)

    return explain


def cost_analysis(fun: Callable[..., Any]) -> Callable[..., dict[str, Any]]:
    """A function of fun's arguments that says what a run of its graph costs: {"flops", "bytes", "ops", "unknown"}.

    flops: one operation per element that a primitive computes, two per term of a product; of any other op those of its decomposition.
    bytes: what the nodes read and write, each by itself. ops: {op: {"nodes", "flops", "bytes"}}. unknown: the ops whose operations
    nothing says (of the host's libraries, with functions, with shapes that depend on values), which count none.
    Errors: as make_graph.

    Example:
        >>> bp.cost_analysis(bp.matmul)(bp.ones((8, 16)), bp.ones((16, 4)))["flops"]
        1024
    """

    def analyse(*args, **kwargs):
        graph, tensors = _traced(fun, args, kwargs)
        ops, unknown = {}, set()
        for op, flops, size in graph.costs(*tensors):
            row = ops.setdefault(op, {"nodes": 0, "flops": 0, "bytes": 0})
            row["nodes"] += 1
            row["flops"] += flops or 0
            row["bytes"] += size
            if flops is None:
                unknown.add(op)
        return {"flops": sum(row["flops"] for row in ops.values()), "bytes": sum(row["bytes"] for row in ops.values()),
                "ops": ops, "unknown": sorted(unknown)}

    return analyse


def draw_graph(fun: Callable[..., Any], color: str = "backend", format: str = "svg") -> Callable[..., Any]:
    """A function of fun's arguments that draws how compile would run it: a picture, or the text for Graphviz where its `dot` is missing.

    color: "backend", who runs each node; "bytes", how much each reads and writes, or "flops", how much each computes, from white to red.
    format: "svg", a string, or "png", bytes.
    Errors: as make_graph; ArgumentValueError for another color or format.
    """
    if format not in ("svg", "png"):
        raise _core.ArgumentValueError(f'draw_graph: argument format: found "{format}", expected "svg" or "png"')

    def draw(*args, **kwargs):
        graph, tensors = _traced(fun, args, kwargs)
        text = graph.dot(*tensors, color=color)
        return _picture(text, format) or text

    return draw


def _picture(text, format):
    import shutil
    import subprocess

    program = shutil.which("dot")
    if program is None:
        return None
    done = subprocess.run([program, f"-T{format}"], input=text.encode(), capture_output=True, check=False)
    if done.returncode != 0:
        return None
    return done.stdout.decode() if format == "svg" else done.stdout
