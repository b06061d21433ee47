"""summary: the layers of a model with the shapes of their results, their parameters and their operations."""

from __future__ import annotations

from .. import _core, tree

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ..nn import Module

__all__ = ["Summary", "summary"]


class Summary:
    """What summary found, as text: str(s). rows: a dict per module; total_parameters, trainable_parameters, flops and bytes."""

    def __init__(self, rows: list[dict[str, Any]], total: int, trainable: int, size: int, flops: int | None) -> None:
        self.rows, self.total_parameters, self.trainable_parameters, self.parameter_bytes, self.flops = rows, total, trainable, size, flops

    def __str__(self) -> str:
        cells = [("layer", "output", "parameters", "trainable")]
        for row in self.rows:
            shape = ", ".join(map(str, row["outputs"])) or "-"
            cells.append(("  " * row["depth"] + (f"{row['name']}: " if row["name"] else "") + row["type"], shape, f"{row['parameters']:,}", f"{row['trainable']:,}"))
        widths = [max(map(len, column)) for column in zip(*cells)]
        lines = ["  ".join([row[0].ljust(widths[0]), row[1].ljust(widths[1]), row[2].rjust(widths[2]), row[3].rjust(widths[3])]).rstrip() for row in cells]
        lines.insert(1, "-" * max(map(len, lines)))
        lines.append(lines[1])
        lines.append(f"parameters: {self.total_parameters:,} ({self.trainable_parameters:,} trainable), {self.parameter_bytes:,} bytes")
        lines.append("operations of a call: " + ("unknown" if self.flops is None else f"{self.flops:,} FLOP"))
        return "\n".join(lines)

    __repr__ = __str__


def summary(model: Module, *inputs: Any, **kwargs: Any) -> Summary:
    """The modules of a model in the order of their names, with the shapes of what they return for these inputs, and their parameters.

    It calls model(*inputs, **kwargs) once, without gradients. The mode, the buffers and the random state are as before afterwards.
    Without inputs, shapes and operations are left out. A parameter that several modules share counts once, for the first.
    Errors: ArgumentTypeError if model is not a Module.

    Example:
        >>> bp.summary(bp.nn.Linear(2, 3), bp.ones((1, 2))).total_parameters
        9
    """
    from ..nn import Module

    if not isinstance(model, Module):
        raise _core.ArgumentTypeError(f"summary: argument model: found a value of type {type(model).__name__}, expected a bp.nn.Module")
    shapes = _shapes_of(model, inputs, kwargs) if inputs or kwargs else {}
    seen: set[int] = set()
    rows = []
    for name, module in model.named_modules():
        own = [p for p in module.parameters(recurse=False) if id(p) not in seen]
        seen.update(map(id, own))
        rows.append({
            "name": name.rpartition(".")[2], "path": name, "type": type(module).__name__, "depth": name.count(".") + 1 if name else 0,
            "outputs": shapes.get(id(module), []), "parameters": sum(p.size for p in own), "trainable": sum(p.size for p in own if p.requires_grad),
        })  # fmt: skip
    parameters = list(model.parameters())
    return Summary(
        rows, sum(p.size for p in parameters), sum(p.size for p in parameters if p.requires_grad),
        sum(p.size * p.dtype.itemsize for p in parameters), _operations(model, inputs, kwargs) if inputs or kwargs else None,
    )  # fmt: skip


def _shapes_of(model, inputs, kwargs):
    """{id of a module: the shapes of the tensors that its first call returned}."""
    from .._transforms._grad import no_grad

    shapes: dict[int, list[tuple[int, ...]]] = {}

    def note(module, args, output):
        shapes.setdefault(id(module), [tuple(x.shape) for x in tree.leaves(output) if isinstance(x, _core.Tensor)])

    buffers = [(b, b.clone()) for b in model.buffers()]
    state = _core.default_generator.state
    handles = [module.register_forward_hook(note) for module in model.modules()]
    try:
        with no_grad():
            model(*inputs, **kwargs)
    finally:
        for handle in handles:
            handle.remove()
        _core.default_generator.state = state
        with no_grad():
            for buffer, before in buffers:
                buffer[...] = before
    return shapes


def _operations(model, inputs, kwargs):
    """The floating-point operations of a call; None where not all are known."""
    from ._reports import cost_analysis

    state = _core.default_generator.state
    try:
        found = cost_analysis(lambda *args: model(*args, **kwargs))(*inputs)
    except (_core.BackplaneError, TypeError, ValueError):
        return None
    finally:
        _core.default_generator.state = state
    return None if found["unknown"] else found["flops"]
