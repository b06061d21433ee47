"""Relaxed categories, whose samples carry gradients (Maddison et al., 2017; Jang et al., 2017), and categories as one-hot vectors."""

from __future__ import annotations

import math
from typing import Any

import backplane as bp
from backplane import Generator, Tensor

from . import constraints
from ._discrete import Categorical, _given
from ._distribution import Distribution, is_number, open_uniform, tensors
from ._made_of_others import TransformedDistribution
from ._transforms import ExpTransform, SigmoidTransform

__all__ = [
    "ExpRelaxedCategorical", "LogitRelaxedBernoulli", "OneHotCategorical", "OneHotCategoricalStraightThrough", "RelaxedBernoulli",
    "RelaxedOneHotCategorical",
]  # fmt: skip


class LogitRelaxedBernoulli(Distribution):
    """The logits of RelaxedBernoulli's values: (logits + a logistic number) / temperature."""

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.real
    has_rsample = True

    def __init__(self, temperature: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        given = _given(self, probs, logits)
        self.temperature, given = tensors("LogitRelaxedBernoulli", temperature=_as(temperature, given), given=given)
        self._require("temperature", self.temperature, self.temperature > 0, "positive numbers")
        self.probs = given if logits is None else bp.sigmoid(given)
        self.logits = bp.log(given) - bp.log1p(-given) if logits is None else given
        super().__init__(given.shape)

    def rsample(self, sample_shape: Any = (), *, generator: Generator | None = None) -> Tensor:
        u = open_uniform(self._shape(sample_shape), self.logits, generator)
        return (self.logits + bp.log(u) - bp.log1p(-u)) / self.temperature

    def log_prob(self, value: Any) -> Tensor:
        x = self._number(value, self.logits)
        away = self.logits - x * self.temperature
        return self._supported(x, is_number(x), "numbers", bp.log(self.temperature) + away - 2 * bp.softplus(away))


def _as(x, like):
    return x if isinstance(x, Tensor) else bp.asarray(x, dtype=like.dtype, device=like.device)


class _Relaxed(TransformedDistribution):
    """Values made of the logits, or logarithms, of a relaxed distribution, whose parameters are these."""

    @property
    def temperature(self) -> Tensor:
        return self.base_dist.temperature  # type: ignore[attr-defined]

    @property
    def probs(self) -> Tensor:
        return self.base_dist.probs  # type: ignore[attr-defined]

    @property
    def logits(self) -> Tensor:
        return self.base_dist.logits  # type: ignore[attr-defined]


class RelaxedBernoulli(_Relaxed):
    """Numbers between 0 and 1 that come near to Bernoulli's as the temperature falls, with samples that carry gradients."""

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.unit_interval

    def __init__(self, temperature: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        super().__init__(LogitRelaxedBernoulli(temperature, probs, logits, validate_args=validate_args), SigmoidTransform())


class ExpRelaxedCategorical(Distribution):
    """The logarithms of RelaxedOneHotCategorical's values (*, n)."""

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support = constraints.real_vector
    has_rsample = True

    def __init__(self, temperature: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        self._categorical = Categorical(probs, logits, validate_args=validate_args)
        self.probs, self.logits = self._categorical.probs, self._categorical.logits
        self.temperature = _as(temperature, self.logits)
        self._require("temperature", self.temperature, self.temperature > 0, "positive numbers")
        super().__init__(self._categorical.batch_shape, self.probs.shape[-1:])

    def _scale(self):
        return bp.expand_dims(self.temperature, axis=-1) if self.temperature.ndim else self.temperature

    def rsample(self, sample_shape: Any = (), *, generator: Generator | None = None) -> Tensor:
        noise = -bp.log(-bp.log(open_uniform(self._shape(sample_shape), self.logits, generator)))
        return bp.log_softmax((self.logits + noise) / self._scale(), axis=-1)

    def log_prob(self, value: Any) -> Tensor:
        x, n = self._number(value, self.logits), self.event_shape[0]
        inside = bp.all(is_number(x), axis=-1)
        score = bp.log_softmax(self.logits - x * self._scale(), axis=-1)
        found = bp.sum(score, axis=-1) + math.lgamma(n) + (n - 1) * bp.log(self.temperature)
        return self._supported(inside, inside, "logarithms of probabilities", found)


class RelaxedOneHotCategorical(_Relaxed):
    """Probabilities (*, n) that come near to one-hot vectors as the temperature falls, with samples that carry gradients (Gumbel-softmax)."""

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support = constraints.simplex

    def __init__(self, temperature: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        super().__init__(ExpRelaxedCategorical(temperature, probs, logits, validate_args=validate_args), ExpTransform())


class OneHotCategorical(Distribution):
    """One-hot vectors (*, n), by probabilities or logits (*, n), which need not be normalised."""

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support = constraints.one_hot

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        self._categorical = Categorical(probs, logits, validate_args=validate_args)
        self.probs, self.logits = self._categorical.probs, self._categorical.logits
        super().__init__(self._categorical.batch_shape, self.probs.shape[-1:])

    def sample(self, sample_shape: Any = (), *, generator: Generator | None = None) -> Tensor:
        return bp.one_hot(self._categorical.sample(sample_shape, generator=generator), self.event_shape[0]).astype(self.probs.dtype)

    def log_prob(self, value: Any) -> Tensor:
        x = self._number(value, self.probs)
        inside = bp.all((x == 0) | (x == 1), axis=-1) & (bp.sum(x, axis=-1) == 1)
        found = bp.sum(bp.where(x == 1, self.logits, 0), axis=-1)
        return self._supported(inside, inside, "one-hot vectors", found)

    def entropy(self) -> Tensor:
        return self._categorical.entropy()

    @property
    def mean(self) -> Tensor:
        return self.probs

    @property
    def variance(self) -> Tensor:
        return self.probs * (1 - self.probs)


class OneHotCategoricalStraightThrough(OneHotCategorical):
    """OneHotCategorical with samples that have the gradient of the probabilities (Bengio et al., 2013)."""

    has_rsample = True

    def rsample(self, sample_shape: Any = (), *, generator: Generator | None = None) -> Tensor:
        return self.sample(sample_shape, generator=generator) + (self.probs - bp.stop_gradient(self.probs))
