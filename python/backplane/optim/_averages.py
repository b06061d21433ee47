"""EMA: a moving average of a model's parameters, which is often a better model than the last one."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import backplane as bp
from backplane import Tensor

from ..nn.modules._module_tree import Base

__all__ = ["EMA"]


class EMA:
    """The exponential moving average of the parameters of a module, of a list of tensors or of a dict of tensors.

    `update()` after each step: average = decay · average + (1 - decay) · parameter. Buffers are copied. `module` is a copy of the module
    with the averages; `average` lists the averages in the order of the parameters.
    warmup: the decay of step t is at most (1 + t) / (10 + t), so that early averages follow the parameters.
    An EMA can be part of the state of a compiled step: bp.compile(step, state=[model, optimizer, ema]).

    Example:
        >>> model = bp.nn.Linear(2, 1)
        >>> ema = bp.optim.EMA(model, decay=0.99)
        >>> ema.update()
        >>> with ema.average_parameters():
        ...     y = model(bp.ones((1, 2)))

    Errors: ArgumentValueError for a decay outside of [0, 1].
    """

    def __init__(self, model: Any, decay: float = 0.999, warmup: bool = False) -> None:
        if not 0 <= decay <= 1:
            raise bp.ArgumentValueError(f"EMA: argument decay: found {decay}, expected a number from 0 to 1")
        self.decay, self.warmup = float(decay), bool(warmup)
        self._model = model
        self.module = copy.deepcopy(model) if isinstance(model, Base) else None
        if self.module is not None:
            self.module.requires_grad_(False)
        self.average = list(self.module.parameters()) if self.module is not None else [bp.copy(p.detach()) for p in self._parameters()]
        self.steps = bp.zeros((), dtype=bp.float64)

    def _parameters(self) -> list[Tensor]:
        model = self._model
        return list(model.parameters() if isinstance(model, Base) else model.values() if isinstance(model, dict) else model)

    def update(self) -> None:
        """Moves the averages towards the parameters as they are now."""
        with bp.no_grad():
            self.steps += 1
            decay = bp.minimum(self.decay, self.steps / (self.steps + 9)) if self.warmup else self.decay
            for mean, p in zip(self.average, self._parameters(), strict=True):
                share = 1 - (decay.astype(mean.dtype).to(mean.device) if isinstance(decay, Tensor) else decay)
                mean[...] = mean + share * (p.detach() - mean)
            if self.module is not None:
                for mine, other in zip(self.module.buffers(), self._model.buffers(), strict=True):
                    mine[...] = other

    def copy_to(self, model: Any = None) -> None:
        """Writes the averages into the parameters, of another model of the same structure if one is given."""
        targets = self._parameters() if model is None else list(model.parameters())
        with bp.no_grad():
            for p, mean in zip(targets, self.average, strict=True):
                p[...] = mean

    @contextmanager
    def average_parameters(self) -> Iterator[None]:
        """In the block the parameters have the averages; afterwards they are as before."""
        before = [bp.copy(p.detach()) for p in self._parameters()]
        self.copy_to()
        try:
            yield
        finally:
            with bp.no_grad():
                for p, value in zip(self._parameters(), before, strict=True):
                    p[...] = value

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """What the averaged module returns."""
        if self.module is None:
            raise bp.ArgumentTypeError("EMA: found averages of tensors, expected averages of a module: only those can be called")
        return self.module(*args, **kwargs)

    def state_dict(self) -> dict[str, Any]:
        return {"average": list(self.average), "steps": self.steps, "decay": self.decay}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Errors: ArgumentValueError where the number or a shape of the averages differs."""
        found = state_dict["average"]
        if [tuple(x.shape) for x in found] != [tuple(x.shape) for x in self.average]:
            raise bp.ArgumentValueError("EMA.load_state_dict: argument state_dict: found averages of other shapes, expected the shapes of the parameters")
        with bp.no_grad():
            for mean, value in zip(self.average, found):
                mean[...] = value
            self.steps[...] = state_dict["steps"]
        self.decay = float(state_dict["decay"])
