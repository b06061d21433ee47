"""AdaptiveLogSoftmaxWithLoss: a softmax over many classes whose rare classes share small clusters (Grave et al., 2017)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import backplane as bp
from backplane import DType, Device, Tensor

from ..._calls._value_checks import is_readable, require
from ._containers import ModuleList, Sequential
from ._linear_layers import Linear
from ._module import Module

__all__ = ["AdaptiveLogSoftmaxWithLoss"]


class AdaptiveOutput(NamedTuple):
    """output (n): the logarithm of the probability of each target; loss: minus its mean."""

    output: Tensor
    loss: Tensor


class AdaptiveLogSoftmaxWithLoss(Module):
    """The log probabilities of classes that are sorted by frequency, the most frequent one first, and the loss of targets.

    input (n, in_features) and target (n), classes from 0 to n_classes - 1; or (in_features) and (). Returns (output, loss).
    cutoffs: the first class of each cluster, ascending: the head has the classes before cutoffs[0] and an entry per cluster. Cluster i
    projects the input to in_features // div_value ** (i + 1) numbers. head_bias: the head has a bias.
    Where the targets can be read, a cluster computes its own rows alone; in a trace it computes all rows.
    Errors: ArgumentValueError for cutoffs that are not ascending classes, for a cluster without features, and for targets that are
    not classes; ShapeError.
    """

    def __init__(
        self, in_features: int, n_classes: int, cutoffs: Sequence[int], div_value: float = 4.0, head_bias: bool = False,
        device: Device | str | None = None, dtype: DType | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        name, found = "AdaptiveLogSoftmaxWithLoss", list(cutoffs)
        if not found or found != sorted(set(found)) or found[0] < 1 or found[-1] >= n_classes or any(int(c) != c for c in found):
            raise bp.ArgumentValueError(f"{name}: argument cutoffs: found {found}, expected ascending integers from 1 to n_classes - 1 = {n_classes - 1}")
        self.in_features, self.n_classes, self.cutoffs = in_features, n_classes, [*map(int, found), n_classes]
        self.div_value, self.head_bias = div_value, head_bias
        self.shortlist_size, self.n_clusters = self.cutoffs[0], len(found)
        self.head_size = self.shortlist_size + self.n_clusters
        self.head = Linear(in_features, self.head_size, bias=head_bias, device=device, dtype=dtype)
        self.tail = ModuleList()
        for i, (first, end) in enumerate(zip(self.cutoffs, self.cutoffs[1:])):
            size = int(in_features // div_value ** (i + 1))
            if size < 1:
                raise bp.ArgumentValueError(f"{name}: found in_features={in_features} and div_value={div_value}, which leave cluster {i} no features")
            how: dict[str, Any] = {"bias": False, "device": device, "dtype": dtype}
            self.tail.append(Sequential(Linear(in_features, size, **how), Linear(size, end - first, **how)))

    def reset_parameters(self) -> None:
        """Draws the weights anew."""
        self.head.reset_parameters()
        for cluster in self.tail:
            for layer in cluster:
                layer.reset_parameters()

    def forward(self, input: Tensor, target: Tensor) -> AdaptiveOutput:
        if target.ndim > 1 or input.ndim != target.ndim + 1 or input.shape[:-1] != target.shape:
            raise bp.ShapeError(
                f"AdaptiveLogSoftmaxWithLoss: found input {tuple(input.shape)} and target {tuple(target.shape)}, expected (n, in_features) and (n), or (in_features) and ()"
            )
        single = target.ndim == 0
        x, wanted = (bp.expand_dims(input, axis=0), bp.expand_dims(target, axis=0)) if single else (input, target)
        wanted = wanted.astype(bp.int64)
        good = (wanted >= 0) & (wanted < self.n_classes)
        require("AdaptiveLogSoftmaxWithLoss", "target", wanted, good, f"classes from 0 to {self.n_classes - 1}")
        entry = bp.where(good, wanted, self.head_size)  # out of range, which the kernel refuses
        output: Any = 0
        for i, (first, end) in enumerate(zip(self.cutoffs, self.cutoffs[1:])):
            inside = (wanted >= first) & (wanted < end)
            entry = bp.where(inside, self.shortlist_size + i, entry)
            output = output + self._in_cluster(i, x, bp.where(inside, wanted - first, 0), inside)
        head = bp.log_softmax(self.head(x), axis=-1)
        output = output + bp.take_along_axis(head, entry[:, None], axis=1)[:, 0]
        loss = -bp.mean(output)
        return AdaptiveOutput(output[0] if single else output, loss)

    def _in_cluster(self, i, x, chosen, inside):
        """The log probability within cluster i of the rows that belong there, 0 for the others."""
        if not is_readable(inside):
            found = bp.log_softmax(self.tail[i](x), axis=-1)
            return bp.where(inside, bp.take_along_axis(found, chosen[:, None], axis=1)[:, 0], 0)
        (rows,) = bp.nonzero(inside)
        if rows.size == 0:
            return bp.zeros((), dtype=x.dtype, device=x.device)
        found = bp.log_softmax(self.tail[i](bp.take(x, rows, axis=0)), axis=-1)
        own = bp.take_along_axis(found, bp.take(chosen, rows, axis=0)[:, None], axis=1)[:, 0]
        return bp.segment_sum(own, rows, x.shape[0])

    def log_prob(self, input: Tensor) -> Tensor:
        """The log probabilities of all classes: input (n, in_features), output (n, n_classes)."""
        head = bp.log_softmax(self.head(input), axis=-1)
        parts = [head[..., : self.shortlist_size]]
        for i, cluster in enumerate(self.tail):
            at = self.shortlist_size + i
            parts.append(bp.log_softmax(cluster(input), axis=-1) + head[..., at : at + 1])
        return bp.concat(parts, axis=-1)

    def predict(self, input: Tensor) -> Tensor:
        """The class of the highest probability: input (n, in_features), output (n)."""
        return bp.argmax(self.log_prob(input), axis=-1)
