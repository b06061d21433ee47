"""The base of learning-rate schedulers, and those whose rate is a formula of the step's number or of the rate before."""

from __future__ import annotations

import functools
import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import backplane as bp

from ._optimizer import Optimizer
from ._whole_step import is_in_control_flow

__all__ = [
    "ConstantLR", "CosineAnnealingLR", "ExponentialLR", "LRScheduler", "LambdaLR", "LinearLR", "MultiStepLR", "MultiplicativeLR",
    "PolynomialLR", "StepLR",
]  # fmt: skip


def set_rate(group: dict[str, Any], rate: Any) -> None:
    """Writes a group's learning rate: into its tensor, where it is one."""
    if isinstance(group["lr"], bp.Tensor):
        with bp.no_grad():
            group["lr"][...] = rate
    else:
        group["lr"] = rate


def may_wait(step: Callable[..., None]) -> Callable[..., None]:
    """A scheduler's step that, in a compiled function whose state the optimiser is, runs when the call ends.

    A graph reads the rates from tensors, and schedulers compute them with Python's numbers.
    """

    @functools.wraps(step)
    def run(self: Any, *args: Any, **kwargs: Any) -> None:
        if not bp.unguarded(_waits, self, args, kwargs):
            step(self, *args, **kwargs)

    return run


def _waits(scheduler, args, kwargs):
    later = scheduler.optimizer._later
    if later is None:
        return False
    if is_in_control_flow():
        raise bp.ArgumentValueError(
            f"{type(scheduler).__name__}.step: found a call in a function of control flow that is compiled. Fix: call it outside of scan, while_loop and cond"
        )
    later.append((scheduler, (*args, *kwargs.values())))
    return True


class LRScheduler:
    """Changes the learning rates of an optimiser's groups at each step(), which is called after the optimiser's.

    In a function that compile(state=) compiles, the step takes effect when the call ends, and causes no new trace.

    A subclass defines get_lr, which gives a rate per group from self.last_epoch, self.base_lrs and the groups.
    last_epoch: -1 for a start, else the number of the last step, of an optimiser whose groups have an "initial_lr".
    """

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "step" in vars(cls):
            cls.step = may_wait(vars(cls)["step"])  # type: ignore[method-assign]

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        if not isinstance(optimizer, Optimizer):
            raise bp.ArgumentTypeError(f"{type(self).__name__}: argument optimizer: found {type(optimizer).__name__}, expected an Optimizer")
        self.optimizer = optimizer
        for group in optimizer.param_groups:
            if last_epoch == -1:
                group.setdefault("initial_lr", float(group["lr"]))
            elif "initial_lr" not in group:
                raise bp.ArgumentValueError(f"{type(self).__name__}: argument last_epoch: found {last_epoch} with a group without 'initial_lr'")
        self.base_lrs = [group["initial_lr"] for group in optimizer.param_groups]
        self.last_epoch = last_epoch
        self._is_initial = True
        self.step()
        self._is_initial = False

    def get_lr(self) -> list[Any]:
        raise NotImplementedError(f"{type(self).__name__}: get_lr is not defined; define it in the subclass")

    def get_last_lr(self) -> list[Any]:
        """The rate of each group."""
        if bp.unguarded(lambda: any(scheduler is self for scheduler, _ in self.optimizer._later or ())):
            raise bp.ArgumentValueError(
                f"{type(self).__name__}.get_last_lr: found a call after step in a compiled function, where the step waits for the end of the call. "
                "Fix: call get_last_lr outside of the compiled function"
            )
        return self._last_lr

    @may_wait
    def step(self, epoch: int | None = None) -> None:
        """Goes on by one step, or to the step of a number."""
        if epoch is None:
            self.last_epoch += 1
            rates = self.get_lr()
        else:
            self.last_epoch = epoch
            rates = self._closed_form() if hasattr(self, "_closed_form") else self.get_lr()
        for group, rate in zip(self.optimizer.param_groups, rates):
            set_rate(group, rate)
        self._last_lr = [float(group["lr"]) for group in self.optimizer.param_groups]

    def _rates(self) -> list[float]:
        return [float(group["lr"]) for group in self.optimizer.param_groups]

    def state_dict(self) -> dict[str, Any]:
        """Everything but the optimiser and functions."""
        return {name: value for name, value in vars(self).items() if name != "optimizer" and not callable(value)}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        vars(self).update(state_dict)


class LambdaLR(LRScheduler):
    """The initial rate times lr_lambda(step), a function or one per group."""

    def __init__(self, optimizer: Optimizer, lr_lambda: Callable[[int], float] | Sequence[Callable[[int], float]], last_epoch: int = -1) -> None:
        self.lr_lambdas = _one_per_group("LambdaLR", lr_lambda, optimizer)
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        return [base * factor(self.last_epoch) for base, factor in zip(self.base_lrs, self.lr_lambdas)]

    def state_dict(self) -> dict[str, Any]:
        return {name: value for name, value in super().state_dict().items() if name != "lr_lambdas"}


class MultiplicativeLR(LRScheduler):
    """The rate before times lr_lambda(step), a function or one per group."""

    def __init__(self, optimizer: Optimizer, lr_lambda: Callable[[int], float] | Sequence[Callable[[int], float]], last_epoch: int = -1) -> None:
        self.lr_lambdas = _one_per_group("MultiplicativeLR", lr_lambda, optimizer)
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        if self.last_epoch == 0:
            return self._rates()
        return [rate * factor(self.last_epoch) for rate, factor in zip(self._rates(), self.lr_lambdas)]

    def state_dict(self) -> dict[str, Any]:
        return {name: value for name, value in super().state_dict().items() if name != "lr_lambdas"}


def _one_per_group(name, value, optimizer):
    values = list(value) if isinstance(value, (list, tuple)) else [value] * len(optimizer.param_groups)
    if len(values) != len(optimizer.param_groups):
        raise bp.ArgumentValueError(f"{name}: found {len(values)} values, expected one per group, {len(optimizer.param_groups)}")
    return values


class StepLR(LRScheduler):
    """The rate times gamma after every step_size steps."""

    def __init__(self, optimizer: Optimizer, step_size: int, gamma: float = 0.1, last_epoch: int = -1) -> None:
        self.step_size, self.gamma = step_size, gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        if self.last_epoch == 0 or self.last_epoch % self.step_size:
            return self._rates()
        return [rate * self.gamma for rate in self._rates()]

    def _closed_form(self):
        return [base * self.gamma ** (self.last_epoch // self.step_size) for base in self.base_lrs]


class MultiStepLR(LRScheduler):
    """The rate times gamma at each of the milestones."""

    def __init__(self, optimizer: Optimizer, milestones: Iterable[int], gamma: float = 0.1, last_epoch: int = -1) -> None:
        self.milestones, self.gamma = Counter(milestones), gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        return [rate * self.gamma ** self.milestones[self.last_epoch] for rate in self._rates()]

    def _closed_form(self):
        return [base * self.gamma ** bisect_right(sorted(self.milestones.elements()), self.last_epoch) for base in self.base_lrs]


class ConstantLR(LRScheduler):
    """The rate times factor for total_iters steps, then the initial rate."""

    def __init__(self, optimizer: Optimizer, factor: float = 1.0 / 3, total_iters: int = 5, last_epoch: int = -1) -> None:
        if not 0 <= factor <= 1:
            raise bp.ArgumentValueError(f"ConstantLR: argument factor: found {factor}, expected a number from 0 to 1")
        self.factor, self.total_iters = factor, total_iters
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        if self.last_epoch == 0:
            return [rate * self.factor for rate in self._rates()]
        return [rate / self.factor if self.last_epoch == self.total_iters else rate for rate in self._rates()]

    def _closed_form(self):
        return [base * (1 if self.last_epoch >= self.total_iters else self.factor) for base in self.base_lrs]


class LinearLR(LRScheduler):
    """The initial rate times a factor that goes from start_factor to end_factor in total_iters steps."""

    def __init__(self, optimizer: Optimizer, start_factor: float = 1.0 / 3, end_factor: float = 1.0, total_iters: int = 5, last_epoch: int = -1) -> None:
        if not 0 < start_factor <= 1 or not 0 <= end_factor <= 1:
            raise bp.ArgumentValueError(f"LinearLR: found factors {start_factor} and {end_factor}, expected numbers from 0 to 1, the first above 0")
        self.start_factor, self.end_factor, self.total_iters = start_factor, end_factor, total_iters
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        if self.last_epoch == 0:
            return [rate * self.start_factor for rate in self._rates()]
        if self.last_epoch > self.total_iters:
            return self._rates()
        slope = self.end_factor - self.start_factor
        share = 1 + slope / (self.total_iters * self.start_factor + (self.last_epoch - 1) * slope)
        return [rate * share for rate in self._rates()]

    def _closed_form(self):
        done = min(self.total_iters, self.last_epoch) / self.total_iters
        return [base * (self.start_factor + (self.end_factor - self.start_factor) * done) for base in self.base_lrs]


class ExponentialLR(LRScheduler):
    """The rate times gamma at each step."""

    def __init__(self, optimizer: Optimizer, gamma: float, last_epoch: int = -1) -> None:
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        return self._rates() if self.last_epoch == 0 else [rate * self.gamma for rate in self._rates()]

    def _closed_form(self):
        return [base * self.gamma**self.last_epoch for base in self.base_lrs]


class PolynomialLR(LRScheduler):
    """The initial rate times (1 - step / total_iters) ** power, 0 from there on."""

    def __init__(self, optimizer: Optimizer, total_iters: int = 5, power: float = 1.0, last_epoch: int = -1) -> None:
        self.total_iters, self.power = total_iters, power
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        if self.last_epoch == 0 or self.last_epoch > self.total_iters:
            return self._rates()
        share = (1 - self.last_epoch / self.total_iters) / (1 - (self.last_epoch - 1) / self.total_iters)
        return [rate * share**self.power for rate in self._rates()]

    def _closed_form(self):
        return [base * (1 - min(self.total_iters, self.last_epoch) / self.total_iters) ** self.power for base in self.base_lrs]


class CosineAnnealingLR(LRScheduler):
    """From the initial rate to eta_min in T_max steps, along half a cosine (Loshchilov and Hutter, 2017)."""

    def __init__(self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0, last_epoch: int = -1) -> None:
        self.T_max, self.eta_min = T_max, eta_min
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        step, period = self.last_epoch, self.T_max
        if step == 0:
            return self._rates()
        if (step - 1 - period) % (2 * period) == 0:
            return [rate + (base - self.eta_min) * (1 - math.cos(math.pi / period)) / 2 for base, rate in zip(self.base_lrs, self._rates())]
        share = (1 + math.cos(math.pi * step / period)) / (1 + math.cos(math.pi * (step - 1) / period))
        return [share * (rate - self.eta_min) + self.eta_min for rate in self._rates()]

    def _closed_form(self):
        share = (1 + math.cos(math.pi * self.last_epoch / self.T_max)) / 2
        return [self.eta_min + (base - self.eta_min) * share for base in self.base_lrs]


