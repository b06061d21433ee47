"""GradScaler: losses scaled up, so that gradients in float16 do not vanish, and steps that are left out where gradients are not finite."""

from __future__ import annotations

from typing import Any

import backplane as bp
from backplane import Tensor, _core

__all__ = ["GradScaler"]


class GradScaler:
    """PyTorch's torch.amp.GradScaler.

        scaler.scale(loss).backward()
        scaler.step(optimizer)      # divides the gradients by the scale; no step if one of them is not finite
        scaler.update()             # the scale falls after such a step, and grows after growth_interval good ones

    unscale_(optimizer) before clipping. enabled=False makes all of it do nothing. It reads values, so it runs outside of compile.
    Errors: ArgumentValueError for a growth_factor of at most 1 or a backoff_factor that is not below 1.
    """

    def __init__(
        self, device: str = "cpu", init_scale: float = 65536.0, growth_factor: float = 2.0, backoff_factor: float = 0.5, growth_interval: int = 2000, enabled: bool = True
    ) -> None:
        if not growth_factor > 1:
            raise bp.ArgumentValueError(f"GradScaler: argument growth_factor: found {growth_factor}, expected a number above 1")
        if not 0 < backoff_factor < 1:
            raise bp.ArgumentValueError(f"GradScaler: argument backoff_factor: found {backoff_factor}, expected a number between 0 and 1")
        self._scale, self._enabled = float(init_scale), bool(enabled)
        self._growth_factor, self._backoff_factor, self._growth_interval = float(growth_factor), float(backoff_factor), int(growth_interval)
        self._good_steps = 0
        self._found: dict[int, bool] = {}  # by optimiser: was a gradient not finite? Those unscaled since the last update
        self._stepped: set[int] = set()  # optimisers that made a step since the last update

    def scale(self, outputs: Any) -> Any:
        """A tensor, or a container of tensors, times the scale."""
        return bp.tree.map(lambda x: x * self._scale if isinstance(x, Tensor) else x, outputs) if self._enabled else outputs

    def unscale_(self, optimizer: Any) -> None:
        """Divides the gradients of the optimiser's parameters by the scale. Errors: ArgumentValueError for a second time in one step."""
        if not self._enabled:
            return
        if id(optimizer) in self._found:
            raise bp.ArgumentValueError("GradScaler.unscale_: the gradients of this optimiser are unscaled already. Fix: call update() after each step")
        if not bp.unguarded(_core.has_values, bp.asarray(0.0)):
            raise bp.ArgumentValueError(
                "GradScaler: found a compiled function around it, and whether a step is made depends on values. Fix: call it outside of the "
                "function; or use bfloat16, which needs no scaling"
            )
        bad = False
        with bp.no_grad():
            for group in optimizer.param_groups:
                for p in group["params"]:
                    if p.grad is not None:
                        p.grad = p.grad / self._scale
                        bad = bad or not bool(bp.all(bp.isfinite(p.grad)))
        self._found[id(optimizer)] = bad

    def step(self, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        """optimizer.step(), if all gradients are finite. Errors: ArgumentValueError at a second step of one optimizer before update."""
        if not self._enabled:
            return optimizer.step(*args, **kwargs)
        if id(optimizer) in self._stepped:
            raise bp.ArgumentValueError("GradScaler.step: the optimizer made a step since the last update. Fix: call update() first")
        self._stepped.add(id(optimizer))
        if id(optimizer) not in self._found:
            self.unscale_(optimizer)
        return None if self._found[id(optimizer)] else optimizer.step(*args, **kwargs)

    def update(self, new_scale: float | None = None) -> None:
        """The scale for the next step. Errors: ArgumentValueError if no step came before."""
        if not self._enabled:
            return
        if new_scale is not None:
            self._scale = float(new_scale)
        elif not self._found:
            raise bp.ArgumentValueError("GradScaler.update: found no step before it. Fix: call step(optimizer) first")
        elif any(self._found.values()):
            self._scale, self._good_steps = self._scale * self._backoff_factor, 0
        else:
            self._good_steps += 1
            if self._good_steps >= self._growth_interval:
                self._scale, self._good_steps = self._scale * self._growth_factor, 0
        self._found = {}
        self._stepped = set()

    def get_scale(self) -> float:
        return self._scale if self._enabled else 1.0

    def is_enabled(self) -> bool:
        return self._enabled

    def get_growth_factor(self) -> float:
        return self._growth_factor

    def get_backoff_factor(self) -> float:
        return self._backoff_factor

    def get_growth_interval(self) -> int:
        return self._growth_interval

    def state_dict(self) -> dict[str, Any]:
        if not self._enabled:
            return {}
        return {"scale": self._scale, "growth_factor": self._growth_factor, "backoff_factor": self._backoff_factor,
                "growth_interval": self._growth_interval, "_growth_tracker": self._good_steps}  # fmt: skip

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        if not self._enabled:
            return
        self._scale, self._good_steps = float(state_dict["scale"]), int(state_dict["_growth_tracker"])
        self._growth_factor, self._backoff_factor = float(state_dict["growth_factor"]), float(state_dict["backoff_factor"])
        self._growth_interval = int(state_dict["growth_interval"])
