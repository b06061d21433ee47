"""GradScaler: losses scaled up, so that gradients in float16 do not vanish, and steps that are left out where gradients are not finite."""

from __future__ import annotations

import warnings
from typing import Any

import backplane as bp
from backplane import Device, Tensor, _core

from ._whole_step import HALF

__all__ = ["GradScaler"]


class GradScaler:
    """PyTorch's torch.amp.GradScaler.

        scaler.scale(loss).backward()
        scaler.step(optimizer)      # divides the gradients by the scale; no step if one of them is not finite
        scaler.update()             # the scale falls after such a step, and grows after growth_interval good ones

    unscale_(optimizer) before clipping. enabled=False makes all of it do nothing. In a compiled function, name the scaler in
    compile(state=), beside the model and the optimiser; there a step that is left out is computed, and nothing keeps its values.
    device: where the scale lies, by default the current device; outside of compiled functions it follows the losses. Where there is
    no such device, the scaler warns and does nothing, as in PyTorch.
    Errors: ArgumentValueError for a growth_factor of at most 1 or a backoff_factor that is not between 0 and 1.
    """

    def __init__(
        self,
        device: Device | str | None = None,
        init_scale: float = 65536.0,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        if not growth_factor > 1:
            raise bp.ArgumentValueError(f"GradScaler: argument growth_factor: found {growth_factor}, expected a number above 1")
        if not 0 < backoff_factor < 1:
            raise bp.ArgumentValueError(f"GradScaler: argument backoff_factor: found {backoff_factor}, expected a number between 0 and 1")
        if enabled and device is not None:
            try:
                device = bp.device(device) if isinstance(device, str) else device
            except (bp.DeviceError, bp.ArgumentValueError) as error:
                warnings.warn(f"GradScaler does nothing: {error}", stacklevel=2)
                enabled = False
        self._enabled = bool(enabled)
        self._growth_factor, self._backoff_factor, self._growth_interval = float(growth_factor), float(backoff_factor), int(growth_interval)
        # The scale, and the good steps since it changed: in a tensor, for graphs to read and write.
        self._numbers = bp.asarray([float(init_scale), 0.0], dtype=bp.float32, device=device if enabled else "cpu")
        # By the id of an optimiser, since the last update: was a gradient not finite (a bool, or in a graph a tensor)? Did it make a step?
        self._found: dict[int, Any] = {}
        self._stepped: dict[int, bool] = {}

    def scale(self, outputs: Any) -> Any:
        """A tensor, or a container of tensors, times the scale."""
        return bp.tree.map(lambda x: self._scaled(x) if isinstance(x, Tensor) else x, outputs) if self._enabled else outputs

    def _scaled(self, x):
        if x.device != self._numbers.device:
            if _is_traced():
                raise bp.ArgumentValueError(
                    f"GradScaler.scale: found a tensor on {x.device}, and the scale is on {self._numbers.device}; a graph does not move it. "
                    f'Fix: GradScaler(device="{x.device}")'
                )
            self._numbers = self._numbers.to(x.device)
        return _computed_wide(x, lambda wide: wide * self._numbers[0].astype(wide.dtype))

    def unscale_(self, optimizer: Any) -> None:
        """Divides the gradients of the optimiser's parameters by the scale. Errors: ArgumentValueError for a second time in one step."""
        if not self._enabled:
            return
        if id(optimizer) in self._found:
            raise bp.ArgumentValueError("GradScaler.unscale_: the gradients of this optimiser are unscaled already. Fix: call update() after each step")
        with bp.no_grad():
            bad: Any = False
            for group in optimizer.param_groups:
                for p in group["params"]:
                    if p.grad is None:
                        continue
                    scale = self._numbers[0].to(p.grad.device)
                    p.grad = _computed_wide(p.grad, lambda wide, scale=scale: wide / scale.astype(wide.dtype))
                    here = bp.logical_not(bp.all(bp.isfinite(p.grad)))
                    bad = here if bad is False else bp.logical_or(bad, here.to(bad.device))
        self._found[id(optimizer)] = bad if bad is False or _is_traced() else bool(bad)

    def step(self, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        """optimizer.step(), if all gradients are finite. Errors: ArgumentValueError at a second step of one optimizer before update."""
        if not self._enabled:
            return optimizer.step(*args, **kwargs)
        if id(optimizer) in self._stepped:
            raise bp.ArgumentValueError("GradScaler.step: the optimizer made a step since the last update. Fix: call update() first")
        self._stepped[id(optimizer)] = True
        if id(optimizer) not in self._found:
            self.unscale_(optimizer)
        bad = self._found[id(optimizer)]
        if isinstance(bad, Tensor) and _is_traced():
            return _step_unless(bad, optimizer, args, kwargs)
        return None if bad else optimizer.step(*args, **kwargs)

    def update(self, new_scale: float | Tensor | None = None) -> None:
        """The scale for the next step. Errors: ArgumentValueError if no step came before."""
        if not self._enabled:
            return
        if new_scale is None and not self._found:
            raise bp.ArgumentValueError("GradScaler.update: found no step before it. Fix: call step(optimizer) first")
        with bp.no_grad():
            if new_scale is not None:
                self._numbers[0] = new_scale
            else:
                self._numbers[...] = self._next()
        self._found.clear()
        self._stepped.clear()

    def _next(self):
        """The numbers of the next step."""
        scale, good = self._numbers[0], self._numbers[1] + 1
        bad = bp.asarray(False, device=scale.device)
        for found in self._found.values():
            bad = bp.logical_or(bad, found.to(scale.device) if isinstance(found, Tensor) else found)
        grown = scale * self._growth_factor
        grows = good >= self._growth_interval
        larger = bp.where(bp.logical_and(grows, bp.isfinite(grown)), grown, scale)
        return bp.stack([bp.where(bad, scale * self._backoff_factor, larger), bp.where(bp.logical_or(bad, grows), 0.0, good)])

    def get_scale(self) -> float:
        return self._numbers[0].item() if self._enabled else 1.0

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
        scale, good = self._numbers.tolist()
        return {"scale": scale, "growth_factor": self._growth_factor, "backoff_factor": self._backoff_factor,
                "growth_interval": self._growth_interval, "_growth_tracker": int(good)}  # fmt: skip

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        if not self._enabled:
            return
        self._numbers[...] = bp.asarray([float(state_dict["scale"]), float(state_dict["_growth_tracker"])], dtype=bp.float32, device=self._numbers.device)
        self._growth_factor, self._backoff_factor = float(state_dict["growth_factor"]), float(state_dict["backoff_factor"])
        self._growth_interval = int(state_dict["growth_interval"])


def _computed_wide(x, change):
    """change(x), for half floats computed in float32: a scale may be too large for them."""
    return change(x.astype(bp.float32)).astype(x.dtype) if x.dtype.name in HALF else change(x)


def _is_traced():
    """Are we in a graph, where values cannot be asked for?"""
    return not bp.unguarded(_core.has_values, bp.asarray(0.0))


def _step_unless(bad, optimizer, args, kwargs):
    """optimizer.step() in a graph: where `bad` is true, each tensor that it changes keeps its value."""
    if args or kwargs:
        raise bp.ArgumentValueError("GradScaler.step: found an argument of step() in a compiled function, expected none")
    optimizer.init_state()
    params = [p for group in optimizer.param_groups for p in group["params"]]
    with bp.no_grad():
        before = {place: bp.copy(x) for place, x in _changeable(optimizer, params)}
    result = optimizer.step()
    with bp.no_grad():
        for x, value in {id(x): (x, before.get(place)) for place, x in _changeable(optimizer, params)}.values():
            if value is None:
                raise bp.ArgumentValueError(
                    f"GradScaler.step: found a tensor that {type(optimizer).__name__} makes in its step, in a compiled function, where the step may have to be "
                    "undone. Fix: make the optimiser's state when it is made, or in init_state()"
                )
            x[...] = bp.where(bad.to(x.device), value, x)
    return result


def _changeable(optimizer, params):
    """(place, tensor) of what a step changes."""
    for i, p in enumerate(params):
        yield (i, None), p
        for name, x in optimizer.state.get(p, {}).items():
            if isinstance(x, Tensor):
                yield (i, name), x
