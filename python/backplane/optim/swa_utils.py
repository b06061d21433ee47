"""Averages of weights over a training run, under PyTorch's names: AveragedModel, update_bn, and the schedule SWALR.

    averaged = bp.optim.swa_utils.AveragedModel(model, multi_avg_fn=bp.optim.swa_utils.get_ema_multi_avg_fn(0.99))
    averaged.update_parameters(model)
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal

import backplane as bp
from backplane import Device, Tensor

from .._calls._ops import refuse_names as _refuse_names
from .._calls._value_checks import is_readable
from ..nn.modules._module import Module
from ..nn.modules._normalization_layers import _BatchNorm
from ._optimizer import Optimizer
from ._schedules import LRScheduler, _one_per_group

__all__ = ["AveragedModel", "SWALR", "get_ema_avg_fn", "get_ema_multi_avg_fn", "get_swa_avg_fn", "get_swa_multi_avg_fn", "update_bn"]
__dir__ = __all__.copy

AverageFunction = Callable[[Tensor, Tensor, Tensor], Tensor]
SeveralAverages = Callable[[list[Tensor], list[Tensor], Tensor], None]


def _decay(name, decay):
    if not 0 <= decay <= 1:
        raise bp.ArgumentValueError(f"{name}: argument decay: found {decay}, expected a number from 0 to 1")
    return float(decay)


def get_ema_avg_fn(decay: float = 0.999) -> AverageFunction:
    """The function average · decay + parameter · (1 - decay), for `avg_fn`. Errors: ArgumentValueError for a decay outside of [0, 1]."""
    decay = _decay("get_ema_avg_fn", decay)

    def average(averaged: Tensor, current: Tensor, num_averaged: Tensor) -> Tensor:
        return averaged * decay + current * (1 - decay)

    return average


def get_swa_avg_fn() -> AverageFunction:
    """The function that makes the plain mean of all parameters so far, for `avg_fn`."""

    def average(averaged: Tensor, current: Tensor, num_averaged: Tensor) -> Tensor:
        dtype = averaged.dtype if "floating" in averaged.dtype.kind else bp.default_dtype()
        return averaged + (current - averaged) / (num_averaged + 1).astype(dtype)

    return average


def _several(average: AverageFunction) -> SeveralAverages:
    def update(averaged: list[Tensor], current: list[Tensor], num_averaged: Tensor) -> None:
        with bp.no_grad():
            for mine, other in zip(averaged, current, strict=True):
                mine[...] = average(mine, other, num_averaged).astype(mine.dtype)

    return update


def get_ema_multi_avg_fn(decay: float = 0.999) -> SeveralAverages:
    """The same as get_ema_avg_fn for lists of tensors, in place, for `multi_avg_fn`."""
    _decay("get_ema_multi_avg_fn", decay)
    return _several(get_ema_avg_fn(decay))


def get_swa_multi_avg_fn() -> SeveralAverages:
    """The same as get_swa_avg_fn for lists of tensors, in place, for `multi_avg_fn`."""
    return _several(get_swa_avg_fn())


class AveragedModel(Module):
    """A copy of a model whose parameters are averages of the model's over the calls of update_parameters.

    The first call copies the parameters. Later calls set each average to avg_fn(average, parameter, n_averaged), by default the plain
    mean. multi_avg_fn(averages, parameters, n_averaged) changes lists of tensors in place instead.
    use_buffers: buffers are averaged too; otherwise each call copies them. device: where the copy is.
    n_averaged is a buffer, an int64 tensor, and `module` the copy. An AveragedModel can be part of the state of a compiled step.
    Errors: ArgumentValueError for avg_fn and multi_avg_fn at once.

    Example:
        >>> model = bp.nn.Linear(2, 1)
        >>> averaged = bp.optim.swa_utils.AveragedModel(model, avg_fn=bp.optim.swa_utils.get_ema_avg_fn(0.9))
        >>> averaged.update_parameters(model)
        >>> averaged(bp.ones((1, 2))).shape
        (1, 1)
    """

    n_averaged: Tensor

    def __init__(
        self, model: Module, device: Device | str | None = None, avg_fn: AverageFunction | None = None,
        multi_avg_fn: SeveralAverages | None = None, use_buffers: bool = False,
    ) -> None:  # fmt: skip
        super().__init__()
        if avg_fn is not None and multi_avg_fn is not None:
            raise bp.ArgumentValueError("AveragedModel: found avg_fn and multi_avg_fn, expected at most one of them")
        self.module = copy.deepcopy(model)
        if device is not None:
            self.module = self.module.to(device)
        self.register_buffer("n_averaged", bp.zeros((), dtype=bp.int64, device=device))
        self.avg_fn, self.multi_avg_fn, self.use_buffers = avg_fn, multi_avg_fn, use_buffers

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self.module(*args, **kwargs)

    def update_parameters(self, model: Module) -> None:
        """Takes the parameters as they are now into the averages. Errors: ArgumentValueError for a model of other tensors."""
        parameters = _pairs("parameters", self.module.parameters(), model.parameters())
        buffers = _pairs("buffers", self.module.buffers(), model.buffers())
        followed = parameters + buffers if self.use_buffers else parameters
        with bp.no_grad():
            if is_readable(self.n_averaged):
                if self.n_averaged.item() == 0:
                    _copy(followed)
                else:
                    self._average([mine for mine, _ in followed], [other for _, other in followed])
            elif followed:
                averages = [bp.copy(mine) for mine, _ in followed]
                self._average(averages, [other for _, other in followed])
                for (mine, other), mean in zip(followed, averages):
                    mine[...] = bp.where(self._count(mine) == 0, other, mean)
            if not self.use_buffers:
                _copy(buffers)
            self.n_averaged += 1

    def _count(self, like):
        return self.n_averaged.to(like.device)

    def _average(self, averages, currents):
        if self.avg_fn is not None:
            for mine, other in zip(averages, currents):
                mine[...] = self.avg_fn(mine, other, self._count(mine)).astype(mine.dtype)
            return
        update = get_swa_multi_avg_fn() if self.multi_avg_fn is None else self.multi_avg_fn
        for device in dict.fromkeys(x.device for x in averages):
            here = [(mine, other) for mine, other in zip(averages, currents) if mine.device == device]
            update([mine for mine, _ in here], [other for _, other in here], self.n_averaged.to(device))


def _pairs(what, mine, others):
    """(tensor of the copy, tensor of the model on the copy's device), without the tape."""
    mine, others = [x.detach() for x in mine], [x.detach() for x in others]
    if [tuple(x.shape) for x in mine] != [tuple(x.shape) for x in others]:
        raise bp.ArgumentValueError(
            f"update_parameters: argument model: found {what} of shapes {[tuple(x.shape) for x in others]}, expected {[tuple(x.shape) for x in mine]}, those of the averaged model"
        )
    return [(x, y.to(x.device)) for x, y in zip(mine, others)]


def _copy(pairs):
    for mine, other in pairs:
        mine[...] = other.astype(mine.dtype)


def update_bn(loader: Iterable[Any], model: Module, device: Device | str | None = None) -> None:
    """Computes the running statistics of the batch norm layers anew, as plain means over the batches of a loader.

    A batch is a tensor, or a list or tuple whose first element is the model's input. device: where the inputs go. The mode and the
    momentum of the layers are as before afterwards, also after an error.
    """
    layers = [part for part in model.modules() if isinstance(part, _BatchNorm)]
    if not layers:
        return
    momenta, modes = [layer.momentum for layer in layers], [(part, part.training) for part in model.modules()]
    with bp.no_grad():
        try:
            model.train()
            for layer in layers:
                layer.reset_running_stats()
                layer.momentum = None
            for batch in loader:
                x = batch[0] if isinstance(batch, (list, tuple)) else batch
                model(x if device is None else x.to(device))
        finally:
            for layer, momentum in zip(layers, momenta):
                layer.momentum = momentum
            for part, training in modes:
                part.training = training


class SWALR(LRScheduler):
    """From the rate at the start to swa_lr in anneal_epochs steps, along a line or half a cosine; then swa_lr (Izmailov et al., 2018).

    swa_lr: one rate, or one per group. Errors: ArgumentValueError for another strategy, and for anneal_epochs below 0.
    """

    def __init__(
        self, optimizer: Optimizer, swa_lr: float | Sequence[float], anneal_epochs: int = 10, anneal_strategy: Literal["cos", "linear"] = "cos",
        last_epoch: int = -1,
    ) -> None:  # fmt: skip
        if anneal_strategy not in ("cos", "linear"):
            raise bp.ArgumentValueError(f"SWALR: argument anneal_strategy: found {anneal_strategy!r}, expected 'cos' or 'linear'")
        if not isinstance(anneal_epochs, int) or anneal_epochs < 0:
            raise bp.ArgumentValueError(f"SWALR: argument anneal_epochs: found {anneal_epochs!r}, expected an int of at least 0")
        for group, rate in zip(optimizer.param_groups, _one_per_group("SWALR: argument swa_lr", swa_lr, optimizer)):
            group["swa_lr"] = rate
        self.anneal_epochs, self.anneal_strategy, self._start = anneal_epochs, anneal_strategy, last_epoch + 1
        super().__init__(optimizer, last_epoch)

    def _share(self, step):
        """How far the rate has gone after so many steps, from 0 to 1."""
        done = min(max(step / max(1, self.anneal_epochs), 0.0), 1.0)
        return done if self.anneal_strategy == "linear" else (1 - math.cos(math.pi * done)) / 2

    def get_lr(self) -> list[float]:
        step = self.last_epoch - self._start
        if self.anneal_epochs == 0:
            step = max(1, step)
        before, now = self._share(step - 1), self._share(step)
        found = []
        for group, rate in zip(self.optimizer.param_groups, self._rates()):
            first = group["swa_lr"] if before == 1 else (rate - before * group["swa_lr"]) / (1 - before)
            found.append(now * group["swa_lr"] + (1 - now) * first)
        return found


TYPE_CHECKING = False
if not TYPE_CHECKING:
    __getattr__ = _refuse_names(__name__)
del TYPE_CHECKING
