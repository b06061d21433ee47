"""Schedulers that go up and down, that follow a metric, and that are made of others."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Sequence
from typing import Any

import backplane as bp

from ._optimizer import Optimizer
from ._schedules import LRScheduler, _one_per_group, may_wait, set_rate

__all__ = ["ChainedScheduler", "CosineAnnealingWarmRestarts", "CyclicLR", "OneCycleLR", "ReduceLROnPlateau", "SequentialLR"]


class CosineAnnealingWarmRestarts(LRScheduler):
    """Half a cosine from the initial rate to eta_min, again and again: in T_0 steps, then T_mult times as many each time."""

    def __init__(self, optimizer: Optimizer, T_0: int, T_mult: int = 1, eta_min: float = 0.0, last_epoch: int = -1) -> None:
        if T_0 <= 0 or T_mult < 1:
            raise bp.ArgumentValueError(f"CosineAnnealingWarmRestarts: found T_0 {T_0} and T_mult {T_mult}, expected at least 1")
        self.T_0, self.T_i, self.T_mult, self.eta_min, self.T_cur = T_0, T_0, T_mult, eta_min, last_epoch
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        share = (1 + math.cos(math.pi * self.T_cur / self.T_i)) / 2
        return [self.eta_min + (base - self.eta_min) * share for base in self.base_lrs]

    def step(self, epoch: float | None = None) -> None:
        """Goes on by one step, or to a number of epochs, which may be a fraction."""
        if epoch is None:
            epoch = max(self.last_epoch + 1, 0)
            self.T_cur += 1
            if self._is_initial:
                self.T_cur = epoch
            if self.T_cur >= self.T_i:
                self.T_cur -= self.T_i
                self.T_i *= self.T_mult
        else:
            if epoch < 0:
                raise bp.ArgumentValueError(f"CosineAnnealingWarmRestarts: argument epoch: found {epoch}, expected at least 0")
            self._go_to(epoch)
        self.last_epoch = math.floor(epoch)
        for group, rate in zip(self.optimizer.param_groups, self.get_lr()):
            set_rate(group, rate)
        self._last_lr = [float(group["lr"]) for group in self.optimizer.param_groups]

    def _go_to(self, epoch):
        if epoch < self.T_0:
            self.T_i, self.T_cur = self.T_0, epoch
        elif self.T_mult == 1:
            self.T_i, self.T_cur = self.T_0, epoch % self.T_0
        else:
            n = int(math.log(epoch / self.T_0 * (self.T_mult - 1) + 1, self.T_mult))
            self.T_cur = epoch - self.T_0 * (self.T_mult**n - 1) / (self.T_mult - 1)
            self.T_i = self.T_0 * self.T_mult**n


def _momentum_name(name, group):
    """The name of the group's momentum: 'momentum', or 'betas', whose first element is the momentum."""
    if "betas" not in group and "momentum" not in group:
        raise bp.ArgumentValueError(f"{name}: argument cycle_momentum: found True with an optimiser without momentum")
    return "betas" if "betas" in group else "momentum"


def _set_momentum(group, value):
    if "betas" in group:
        group["betas"] = (value, *group["betas"][1:])
    else:
        group["momentum"] = value


class CyclicLR(LRScheduler):
    """Between base_lr and max_lr, up in step_size_up steps and down in step_size_down, again and again (Smith, 2017).

    mode: 'triangular', 'triangular2' (half the height each cycle), 'exp_range' (gamma ** step of it), or scale_fn.
    """

    def __init__(
        self, optimizer: Optimizer, base_lr: float | Sequence[float], max_lr: float | Sequence[float], step_size_up: int = 2000,
        step_size_down: int | None = None, mode: str = "triangular", gamma: float = 1.0, scale_fn: Callable[[float], float] | None = None,
        scale_mode: str = "cycle", cycle_momentum: bool = True, base_momentum: float | Sequence[float] = 0.8,
        max_momentum: float | Sequence[float] = 0.9, last_epoch: int = -1,
    ) -> None:
        if mode not in ("triangular", "triangular2", "exp_range") and scale_fn is None:
            raise bp.ArgumentValueError(f"CyclicLR: argument mode: found {mode!r}, expected 'triangular', 'triangular2' or 'exp_range', or a scale_fn")
        self.max_lrs = _one_per_group("CyclicLR", max_lr, optimizer)
        down = step_size_up if step_size_down is None else step_size_down
        self.total_size, self.step_ratio = float(step_size_up + down), step_size_up / (step_size_up + down)
        self.mode, self.gamma, self._own_scale = mode, gamma, scale_fn
        self.scale_mode = scale_mode if scale_fn is not None else "iterations" if mode == "exp_range" else "cycle"
        self.cycle_momentum = cycle_momentum
        lows = _one_per_group("CyclicLR", base_lr, optimizer)
        if last_epoch == -1:
            for group, low in zip(optimizer.param_groups, lows):
                set_rate(group, low)
        if cycle_momentum:
            self.base_momentums = _one_per_group("CyclicLR", base_momentum, optimizer)
            self.max_momentums = _one_per_group("CyclicLR", max_momentum, optimizer)
            for group, high in zip(optimizer.param_groups, self.max_momentums):
                _momentum_name("CyclicLR", group)
                if last_epoch == -1:
                    _set_momentum(group, high)
        super().__init__(optimizer, last_epoch)
        self.base_lrs = lows

    def scale_fn(self, x: float) -> float:
        """The height of a cycle, or of a step."""
        if self._own_scale is not None:
            return self._own_scale(x)
        return {"triangular": 1.0, "triangular2": 1 / 2.0 ** (x - 1), "exp_range": self.gamma**x}[self.mode]

    def get_lr(self) -> list[float]:
        cycle = math.floor(1 + self.last_epoch / self.total_size)
        x = 1.0 + self.last_epoch / self.total_size - cycle
        share = x / self.step_ratio if x <= self.step_ratio else (x - 1) / (self.step_ratio - 1)
        share *= self.scale_fn(cycle if self.scale_mode == "cycle" else self.last_epoch)
        if self.cycle_momentum:
            for group, low, high in zip(self.optimizer.param_groups, self.base_momentums, self.max_momentums):
                _set_momentum(group, high - (high - low) * share)
        return [low + (high - low) * share for low, high in zip(self.base_lrs, self.max_lrs)]


class OneCycleLR(LRScheduler):
    """Up to max_lr and down far below the beginning, once, over total_steps, or epochs · steps_per_epoch (Smith and Topin, 2019)."""

    def __init__(
        self, optimizer: Optimizer, max_lr: float | Sequence[float], total_steps: int | None = None, epochs: int | None = None,
        steps_per_epoch: int | None = None, pct_start: float = 0.3, anneal_strategy: str = "cos", cycle_momentum: bool = True,
        base_momentum: float | Sequence[float] = 0.85, max_momentum: float | Sequence[float] = 0.95, div_factor: float = 25.0,
        final_div_factor: float = 1e4, three_phase: bool = False, last_epoch: int = -1,
    ) -> None:
        total = total_steps if total_steps is not None else (epochs or 0) * (steps_per_epoch or 0)
        if total <= 0:
            raise bp.ArgumentValueError("OneCycleLR: expected total_steps, or epochs and steps_per_epoch, of at least 1")
        if anneal_strategy not in ("cos", "linear"):
            raise bp.ArgumentValueError(f"OneCycleLR: argument anneal_strategy: found {anneal_strategy!r}, expected 'cos' or 'linear'")
        self.total_steps, self.anneal_strategy, self.cycle_momentum = total, anneal_strategy, cycle_momentum
        top = float(pct_start * total) - 1
        if three_phase:
            self._phases = [(top, "initial_lr", "max_lr", "max_momentum", "base_momentum"),
                            (2 * top, "max_lr", "initial_lr", "base_momentum", "max_momentum"),
                            (total - 1, "initial_lr", "min_lr", "max_momentum", "max_momentum")]  # fmt: skip
        else:
            self._phases = [(top, "initial_lr", "max_lr", "max_momentum", "base_momentum"),
                            (total - 1, "max_lr", "min_lr", "base_momentum", "max_momentum")]  # fmt: skip
        highs = _one_per_group("OneCycleLR", max_lr, optimizer)
        bounds = zip(_one_per_group("OneCycleLR", base_momentum, optimizer), _one_per_group("OneCycleLR", max_momentum, optimizer))
        for group, high, (low_momentum, high_momentum) in zip(optimizer.param_groups, highs, bounds):
            if last_epoch == -1:
                group["initial_lr"] = high / div_factor
                group.update(max_lr=high, min_lr=group["initial_lr"] / final_div_factor)
                set_rate(group, group["initial_lr"])
            if cycle_momentum:
                _momentum_name("OneCycleLR", group)
                if last_epoch == -1:
                    _set_momentum(group, high_momentum)
                    group.update(max_momentum=high_momentum, base_momentum=low_momentum)
        super().__init__(optimizer, last_epoch)

    def _between(self, start, end, share):
        if self.anneal_strategy == "linear":
            return (end - start) * share + start
        return end + (start - end) / 2.0 * (1 + math.cos(math.pi * share))

    def get_lr(self) -> list[float]:
        step = self.last_epoch
        if step > self.total_steps:
            raise bp.ArgumentValueError(f"OneCycleLR: found step {step}, expected at most {self.total_steps}, the total")
        rates, begin = [], 0.0
        for i, (end, *names) in enumerate(self._phases):
            if step <= end or i == len(self._phases) - 1:
                share = (step - begin) / (end - begin)
                for group in self.optimizer.param_groups:
                    rates.append(self._between(group[names[0]], group[names[1]], share))
                    if self.cycle_momentum:
                        _set_momentum(group, self._between(group[names[2]], group[names[3]], share))
                return rates
            begin = end
        return rates


class ReduceLROnPlateau:
    """Multiplies the rate by factor if the metric, given to step(metric), does not improve for `patience` steps."""

    def __init__(
        self, optimizer: Optimizer, mode: str = "min", factor: float = 0.1, patience: int = 10, threshold: float = 1e-4,
        threshold_mode: str = "rel", cooldown: int = 0, min_lr: float | Sequence[float] = 0, eps: float = 1e-8,
    ) -> None:
        if factor >= 1 or mode not in ("min", "max") or threshold_mode not in ("rel", "abs"):
            raise bp.ArgumentValueError(
                f"ReduceLROnPlateau: found factor {factor}, mode {mode!r}, threshold_mode {threshold_mode!r}; expected a factor below 1, "
                "'min' or 'max', 'rel' or 'abs'"
            )
        self.optimizer, self.factor, self.mode, self.patience = optimizer, factor, mode, patience
        self.threshold, self.threshold_mode, self.cooldown, self.eps = threshold, threshold_mode, cooldown, eps
        self.min_lrs = _one_per_group("ReduceLROnPlateau", min_lr, optimizer)
        self.last_epoch, self.cooldown_counter, self.num_bad_epochs = 0, 0, 0
        self.best = math.inf if mode == "min" else -math.inf
        self._last_lr = [float(group["lr"]) for group in optimizer.param_groups]

    def _is_better(self, x):
        sign = 1 if self.mode == "min" else -1
        limit = self.best * (1 - sign * self.threshold) if self.threshold_mode == "rel" else self.best - sign * self.threshold
        return x < limit if self.mode == "min" else x > limit

    @may_wait
    def step(self, metrics: Any, epoch: int | None = None) -> None:
        x = float(metrics)
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        if self._is_better(x):
            self.best, self.num_bad_epochs = x, 0
        else:
            self.num_bad_epochs += 1
        if self.cooldown_counter > 0:
            self.cooldown_counter -= 1
            self.num_bad_epochs = 0
        if self.num_bad_epochs > self.patience:
            for group, low in zip(self.optimizer.param_groups, self.min_lrs):
                old = float(group["lr"])
                new = max(old * self.factor, low)
                if old - new > self.eps:
                    set_rate(group, new)
            self.cooldown_counter, self.num_bad_epochs = self.cooldown, 0
        self._last_lr = [float(group["lr"]) for group in self.optimizer.param_groups]

    def get_last_lr(self) -> list[float]:
        return self._last_lr

    def state_dict(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "optimizer"}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        vars(self).update(state_dict)


class _OfSchedulers:
    _schedulers: list[Any]

    def get_last_lr(self) -> list[float]:
        return self._last_lr

    def state_dict(self) -> dict[str, Any]:
        own = {name: value for name, value in vars(self).items() if name not in ("optimizer", "_schedulers")}
        return {**own, "_schedulers": [scheduler.state_dict() for scheduler in self._schedulers]}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        for scheduler, state in zip(self._schedulers, state_dict["_schedulers"]):
            scheduler.load_state_dict(state)
        vars(self).update({name: value for name, value in state_dict.items() if name != "_schedulers"})


class ChainedScheduler(_OfSchedulers):
    """Schedulers of one optimiser that all make each step."""

    def __init__(self, schedulers: Sequence[Any], optimizer: Optimizer | None = None) -> None:
        self._schedulers = list(schedulers)
        if not self._schedulers or any(scheduler.optimizer is not self._schedulers[0].optimizer for scheduler in self._schedulers):
            raise bp.ArgumentValueError("ChainedScheduler: argument schedulers: expected schedulers of one optimiser")
        self.optimizer = self._schedulers[0].optimizer
        self._last_lr = [float(group["lr"]) for group in self.optimizer.param_groups]

    @may_wait
    def step(self) -> None:
        for scheduler in self._schedulers:
            scheduler.step()
        self._last_lr = [float(group["lr"]) for group in self.optimizer.param_groups]


class SequentialLR(_OfSchedulers):
    """Schedulers one after the other: the next begins, at its step 0, at each of the milestones."""

    def __init__(self, optimizer: Optimizer, schedulers: Sequence[Any], milestones: Sequence[int], last_epoch: int = -1) -> None:
        if len(milestones) != len(schedulers) - 1 or any(scheduler.optimizer is not optimizer for scheduler in schedulers):
            raise bp.ArgumentValueError("SequentialLR: expected schedulers of this optimiser, and one milestone less than schedulers")
        self._schedulers, self._milestones, self.optimizer = list(schedulers), list(milestones), optimizer
        self.last_epoch = last_epoch + 1
        for group in optimizer.param_groups:  # each scheduler has made a first step
            set_rate(group, group["initial_lr"])
        for scheduler in self._schedulers:
            scheduler.last_epoch -= 1
        self._schedulers[0]._is_initial = True
        self._schedulers[0].step()
        self._schedulers[0]._is_initial = False
        self._last_lr = self._schedulers[0].get_last_lr()

    @may_wait
    def step(self) -> None:
        self.last_epoch += 1
        index = bisect_right(self._milestones, self.last_epoch)
        scheduler = self._schedulers[index]
        if index > 0 and self._milestones[index - 1] == self.last_epoch:
            scheduler.step(0)
        else:
            scheduler.step()
        self._last_lr = scheduler.get_last_lr()
