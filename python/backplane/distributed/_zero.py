"""Optimisers whose state is divided among the ranks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import backplane as bp
from backplane import Tensor

from ..optim import _optimizer_state
from . import _collectives
from ._groups import Group, chosen

__all__ = ["ZeroRedundancyOptimizer"]

_BY_ELEMENT = ("SGD", "Adam", "AdamW", "NAdam", "RAdam", "Adagrad", "Adadelta", "Adamax", "RMSprop", "Lion")


class ZeroRedundancyOptimizer:
    """An optimiser of which each rank keeps the state of its part of the parameters: the memory of the state falls with the number of ranks.

    params: floating tensors that all ranks have. optimizer_class: one of bp.optim that changes each element by itself, as AdamW; options
    are its own. `step()` and `update(model, gradients)` average the gradients over the ranks, by reduce_scatter, change this rank's part,
    and collect the new parameters, by all_gather. So they need no data_parallel around them.
    state_dict() is that of this rank's part. Errors: ArgumentValueError for an optimiser that reads whole tensors, as Muon.
    """

    def __init__(self, params: Any, optimizer_class: Callable[..., Any], *, group: Group | None = None, **options: Any) -> None:
        name = getattr(optimizer_class, "__name__", str(optimizer_class))
        if name not in _BY_ELEMENT:
            raise bp.ArgumentValueError(f"ZeroRedundancyOptimizer: argument optimizer_class: found {name}, expected one that changes each element by itself: {', '.join(_BY_ELEMENT)}")
        self.group = chosen("ZeroRedundancyOptimizer", group)
        self._group = group
        found = list(params.parameters()) if hasattr(params, "parameters") else list(params)
        if not found or not all(isinstance(p, Tensor) and "floating" in p.dtype.kind for p in found):
            raise bp.ArgumentTypeError("ZeroRedundancyOptimizer: argument params: expected floating tensors, as model.parameters() gives them")
        self._by_dtype: list[list[Tensor]] = list({p.dtype: [q for q in found if q.dtype == p.dtype] for p in found}.values())
        with bp.no_grad():
            self._parts = [self._part(self._joined([p.detach() for p in some])).requires_grad_() for some in self._by_dtype]
        self.optimizer = optimizer_class(self._parts, **options)

    @property
    def param_groups(self) -> list[dict[str, Any]]:
        """The options, as of any optimiser: learning rates may change there."""
        groups: list[dict[str, Any]] = self.optimizer.param_groups
        return groups

    def _joined(self, tensors: list[Tensor]) -> Tensor:
        flat = bp.concat([x.reshape((-1,)) for x in tensors])
        rest = -flat.size % self.group.size
        return bp.concat([flat, bp.zeros(rest, dtype=flat.dtype, device=flat.device)]) if rest else flat

    def _part(self, flat: Tensor) -> Tensor:
        k = flat.size // self.group.size
        return bp.copy(flat[self.group.rank * k : (self.group.rank + 1) * k])

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Removes the gradients of the parameters."""
        for some in self._by_dtype:
            for p in some:
                p.grad = None if set_to_none or p.grad is None else bp.zeros_like(p.grad)

    def step(self) -> None:
        """Changes all parameters by the mean over the ranks of their gradients; a missing gradient is zero."""
        self._step({p: p.grad for some in self._by_dtype for p in some if p.grad is not None})

    def update(self, model: Any, gradients: Any) -> None:
        """The same with what bp.grad gave of a model, a list or a dict of parameters."""
        self._step({p: g.detach() for p, g in _optimizer_state.pairs(model, gradients) if g is not None})

    def _step(self, gradients: dict[Tensor, Tensor]) -> None:
        with bp.no_grad():
            means = []
            for some in self._by_dtype:
                flat = self._joined([gradients[p] if p in gradients else bp.zeros_like(p.detach()) for p in some])
                means.append(_collectives.reduce_scatter(flat, "mean", group=self._group))
            self.optimizer._apply(dict(zip(self._parts, means)), averaged=True)
            for some, part in zip(self._by_dtype, self._parts):
                flat, start = _collectives.all_gather(part.detach(), group=self._group), 0
                for p in some:
                    p.detach()[...] = flat[start : start + p.size].reshape(p.shape)
                    start += p.size

    def state_dict(self) -> dict[str, Any]:
        """The state of this rank's part; it fits the same number of ranks."""
        state: dict[str, Any] = self.optimizer.state_dict()
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes such a state, and the parameters' values as they are now."""
        self.optimizer.load_state_dict(state_dict)
        with bp.no_grad():
            for some, part in zip(self._by_dtype, self._parts):
                part.detach()[...] = self._part(self._joined([p.detach() for p in some]))
