"""The optimisers, with PyTorch's names, arguments and defaults, and the same as pure functions in lower case."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from typing import Any

import backplane as bp
from backplane import Tensor

from . import _rules
from ._functional import Functional, make
from ._optimizer import Optimizer

Params = Any

__all__ = [
    "ASGD", "SGD", "Adadelta", "Adafactor", "Adagrad", "Adam", "AdamW", "Adamax", "Lion", "Muon", "NAdam", "RAdam", "RMSprop", "Rprop",
    "asgd", "adadelta", "adafactor", "adagrad", "adam", "adamax", "adamw", "lion", "muon", "nadam", "radam", "rmsprop", "rprop", "sgd",
]  # fmt: skip

# What PyTorch's options of speed say has no effect here: every step is one pass over all parameters.
_IGNORED = ("foreach", "fused", "capturable", "differentiable")


def _options(name, given, ignored):
    """The constructor's options by name, without self and params."""
    for word, value in ignored.items():
        if word not in _IGNORED:
            raise bp.ArgumentTypeError(f"{name}: found an argument {word!r}, expected one of {', '.join(given)}")
        if word == "differentiable" and value:
            raise bp.ArgumentValueError(f"{name}: argument differentiable: found True; use the pure function {name.lower()} under bp.grad")
    return given


class SGD(Optimizer):
    """Stochastic gradient descent with momentum: b = momentum · b + (1 - dampening) · g, p -= lr · b; nesterov looks ahead."""

    rule = _rules.Sgd()

    def __init__(
        self, params: Params, lr: float | Tensor = 1e-3, momentum: float = 0, dampening: float = 0, weight_decay: float = 0,
        nesterov: bool = False, *, maximize: bool = False, **ignored: Any,
    ) -> None:
        super().__init__(params, _options("SGD", {"lr": lr, "momentum": momentum, "dampening": dampening, "weight_decay": weight_decay,
                                                  "nesterov": nesterov, "maximize": maximize}, ignored))  # fmt: skip


class Adam(Optimizer):
    """Adam (Kingma and Ba, 2015). weight_decay is added to the gradients, or with decoupled_weight_decay taken from the parameters."""

    rule = _rules.Adam()

    def __init__(
        self, params: Params, lr: float | Tensor = 1e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8, weight_decay: float = 0,
        amsgrad: bool = False, *, maximize: bool = False, decoupled_weight_decay: bool = False, **ignored: Any,
    ) -> None:
        super().__init__(params, _options("Adam", {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "amsgrad": amsgrad,
                                                   "maximize": maximize, "decoupled_weight_decay": decoupled_weight_decay}, ignored))  # fmt: skip


class AdamW(Optimizer):
    """Adam whose weight decay is taken from the parameters themselves (Loshchilov and Hutter, 2019)."""

    rule = _rules.AdamW()

    def __init__(
        self, params: Params, lr: float | Tensor = 1e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8, weight_decay: float = 1e-2,
        amsgrad: bool = False, *, maximize: bool = False, **ignored: Any,
    ) -> None:
        super().__init__(params, _options("AdamW", {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "amsgrad": amsgrad,
                                                    "maximize": maximize}, ignored))  # fmt: skip


class NAdam(Optimizer):
    """Adam with Nesterov's momentum (Dozat, 2016)."""

    rule = _rules.NAdam()

    def __init__(
        self, params: Params, lr: float | Tensor = 2e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8, weight_decay: float = 0,
        momentum_decay: float = 4e-3, decoupled_weight_decay: bool = False, *, maximize: bool = False, **ignored: Any,
    ) -> None:
        super().__init__(params, _options("NAdam", {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay,
                                                    "momentum_decay": momentum_decay, "decoupled_weight_decay": decoupled_weight_decay,
                                                    "maximize": maximize}, ignored))  # fmt: skip


class RAdam(Optimizer):
    """Adam with a rectified variance (Liu and others, 2020)."""

    rule = _rules.RAdam()

    def __init__(
        self, params: Params, lr: float | Tensor = 1e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8, weight_decay: float = 0,
        decoupled_weight_decay: bool = False, *, maximize: bool = False, **ignored: Any,
    ) -> None:
        super().__init__(params, _options("RAdam", {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay,
                                                    "decoupled_weight_decay": decoupled_weight_decay, "maximize": maximize}, ignored))  # fmt: skip


class Adagrad(Optimizer):
    """Steps divided by the root of the sum of all squared gradients (Duchi and others, 2011)."""

    rule = _rules.Adagrad()

    def __init__(
        self, params: Params, lr: float | Tensor = 1e-2, lr_decay: float = 0, weight_decay: float = 0, initial_accumulator_value: float = 0,
        eps: float = 1e-10, *, maximize: bool = False, **ignored: Any,
    ) -> None:
        super().__init__(params, _options("Adagrad", {"lr": lr, "lr_decay": lr_decay, "weight_decay": weight_decay,
                                                      "initial_accumulator_value": initial_accumulator_value, "eps": eps,
                                                      "maximize": maximize}, ignored))  # fmt: skip


class Adadelta(Optimizer):
    """Steps in proportion to the size of earlier ones (Zeiler, 2012)."""

    rule = _rules.Adadelta()

    def __init__(
        self, params: Params, lr: float | Tensor = 1.0, rho: float = 0.9, eps: float = 1e-6, weight_decay: float = 0, *,
        maximize: bool = False, **ignored: Any,
    ) -> None:
        super().__init__(params, _options("Adadelta", {"lr": lr, "rho": rho, "eps": eps, "weight_decay": weight_decay, "maximize": maximize}, ignored))


class Adamax(Optimizer):
    """Adam with the largest gradient in place of the root of the mean square (Kingma and Ba, 2015)."""

    rule = _rules.Adamax()

    def __init__(
        self, params: Params, lr: float | Tensor = 2e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8, weight_decay: float = 0,
        *, maximize: bool = False, **ignored: Any,
    ) -> None:
        super().__init__(params, _options("Adamax", {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "maximize": maximize}, ignored))


class RMSprop(Optimizer):
    """Steps divided by the root of a running mean of squared gradients (Hinton); centered: of their variance."""

    rule = _rules.RMSprop()

    def __init__(
        self, params: Params, lr: float | Tensor = 1e-2, alpha: float = 0.99, eps: float = 1e-8, weight_decay: float = 0, momentum: float = 0,
        centered: bool = False, capturable: bool = False, foreach: bool | None = None, maximize: bool = False, **ignored: Any,
    ) -> None:
        super().__init__(params, _options("RMSprop", {"lr": lr, "alpha": alpha, "eps": eps, "weight_decay": weight_decay, "momentum": momentum,
                                                      "centered": centered, "maximize": maximize}, ignored))  # fmt: skip


class Adafactor(Optimizer):
    """Adam without momentum, which keeps of a matrix's squared gradients the means of rows and columns (Shazeer and Stern, 2018)."""

    rule = _rules.Adafactor()

    def __init__(
        self, params: Params, lr: float | Tensor = 1e-2, beta2_decay: float = -0.8, eps: tuple[float | None, float] = (None, 1e-3), d: float = 1.0,
        weight_decay: float = 0.0, *, foreach: bool | None = None, maximize: bool = False,
    ) -> None:
        super().__init__(params, {"lr": lr, "beta2_decay": beta2_decay, "eps": eps, "d": d, "weight_decay": weight_decay, "maximize": maximize})


class ASGD(Optimizer):
    """Averaged stochastic gradient descent (Polyak and Juditsky, 1992); state[p]["ax"] is the average from step t0 on."""

    rule = _rules.Asgd()

    def __init__(
        self, params: Params, lr: float | Tensor = 1e-2, lambd: float = 1e-4, alpha: float = 0.75, t0: float = 1e6, weight_decay: float = 0, *,
        maximize: bool = False, **ignored: Any,
    ) -> None:
        super().__init__(params, _options("ASGD", {"lr": lr, "lambd": lambd, "alpha": alpha, "t0": t0, "weight_decay": weight_decay, "maximize": maximize}, ignored))


class Rprop(Optimizer):
    """Resilient backpropagation: steps by the signs of the gradients, whose sizes follow the turns of the signs (Riedmiller and Braun, 1993)."""

    rule = _rules.Rprop()

    def __init__(
        self, params: Params, lr: float | Tensor = 1e-2, etas: tuple[float, float] = (0.5, 1.2), step_sizes: tuple[float, float] = (1e-6, 50), *,
        maximize: bool = False, **ignored: Any,
    ) -> None:
        if not 0 < etas[0] < 1 < etas[1]:
            raise bp.ArgumentValueError(f"Rprop: argument etas: found {etas}, expected a number between 0 and 1, and one above 1")
        super().__init__(params, _options("Rprop", {"lr": lr, "etas": etas, "step_sizes": step_sizes, "maximize": maximize}, ignored))


class Lion(Optimizer):
    """Steps of the sign of a mixture of gradient and momentum, of one size for all elements (Chen and others, 2023)."""

    rule = _rules.Lion()

    def __init__(
        self, params: Params, lr: float | Tensor = 1e-4, betas: tuple[float, float] = (0.9, 0.99), weight_decay: float = 0.0, *, maximize: bool = False
    ) -> None:
        super().__init__(params, {"lr": lr, "betas": betas, "weight_decay": weight_decay, "maximize": maximize})


class Muon(Optimizer):
    """Momentum whose matrix is made orthonormal, roughly, before each step (Jordan and others, 2024). For matrices alone."""

    rule = _rules.Muon()

    def __init__(
        self, params: Params, lr: float | Tensor = 1e-3, weight_decay: float = 0.1, momentum: float = 0.95, nesterov: bool = True,
        ns_coefficients: tuple[float, float, float] = (3.4445, -4.775, 2.0315), eps: float = 1e-7, ns_steps: int = 5,
        adjust_lr_fn: str | None = None,
    ) -> None:
        if adjust_lr_fn not in (None, "original", "match_rms_adamw"):
            raise bp.ArgumentValueError(f"Muon: argument adjust_lr_fn: found {adjust_lr_fn!r}, expected 'original' or 'match_rms_adamw'")
        super().__init__(params, {"lr": lr, "weight_decay": weight_decay, "momentum": momentum, "nesterov": nesterov,
                                  "ns_coefficients": ns_coefficients, "eps": eps, "ns_steps": ns_steps, "adjust_lr_fn": adjust_lr_fn,
                                  "maximize": False})  # fmt: skip


def _pure(optimizer: type[Optimizer]) -> Callable[..., Functional]:
    """The function that takes the constructor's options and gives the optimiser without a state."""

    def made(*args: Any, **options: Any) -> Functional:
        probe = optimizer([bp.zeros((1, 1))], *args, **options)
        return make(probe.rule, {name: value for name, value in probe.param_groups[0].items() if name != "params"})

    own = inspect.signature(optimizer.__init__)
    made.__signature__ = own.replace(parameters=list(own.parameters.values())[2:], return_annotation="Functional")  # type: ignore[attr-defined]
    made.__name__ = made.__qualname__ = optimizer.__name__.lower()
    made.__doc__ = f"{optimizer.__doc__}\n\n    As pure functions init and update (see Functional), with the options of {optimizer.__name__}.\n    "
    return made


def _all_pure(optimizers: Iterable[type[Optimizer]]) -> dict[str, Callable[..., Functional]]:
    return {optimizer.__name__.lower(): _pure(optimizer) for optimizer in optimizers}


globals().update(_all_pure([SGD, Adam, AdamW, NAdam, RAdam, Adagrad, Adadelta, Adamax, RMSprop, Adafactor, ASGD, Rprop, Lion, Muon]))
