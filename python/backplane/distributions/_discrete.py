"""Distributions over integers: Bernoulli, Categorical and Geometric. Their parameters are probabilities or logits."""

from __future__ import annotations

from typing import Any

import backplane as bp
from backplane import Generator, Tensor

from ._distribution import Distribution, open_uniform, tensors, uniform

__all__ = ["Bernoulli", "Categorical", "Geometric"]


def _one(name, probs, logits):
    if (probs is None) == (logits is None):
        raise bp.ArgumentValueError(f"{name}: expected probs or logits, one of them")


def _values(name, x, like):
    """Values as numbers of the dtype of the parameters."""
    x = x if isinstance(x, Tensor) else bp.asarray(x)
    return x.astype(like.dtype)


class Bernoulli(Distribution):
    """1 with probability probs, else 0; logits: log(probs / (1 - probs))."""

    def __init__(self, probs: Any = None, logits: Any = None) -> None:
        _one("Bernoulli", probs, logits)
        (given,) = tensors("Bernoulli", x=probs if logits is None else logits)
        self._is_logits = logits is not None
        self._given = given
        super().__init__(given.shape)

    @property
    def probs(self) -> Tensor:
        return bp.sigmoid(self._given) if self._is_logits else self._given

    @property
    def logits(self) -> Tensor:
        return self._given if self._is_logits else bp.log(self._given) - bp.log1p(-self._given)

    def sample(self, sample_shape: Any = (), *, generator: Generator | None = None) -> Tensor:
        p = bp.stop_gradient(self.probs)
        return (uniform(self._shape(sample_shape), p, generator) < p).astype(p.dtype)

    def log_prob(self, value: Any) -> Tensor:
        x = _values("Bernoulli", value, self._given)
        if self._is_logits:
            return x * self._given - bp.softplus(self._given)
        return bp.xlogy(x, self._given) + bp.xlogy(1 - x, 1 - self._given)

    def entropy(self) -> Tensor:
        p = self.probs
        return -(bp.xlogy(p, p) + bp.xlogy(1 - p, 1 - p))

    @property
    def mean(self) -> Tensor:
        return self.probs

    @property
    def variance(self) -> Tensor:
        return self.probs * (1 - self.probs)


class Categorical(Distribution):
    """An integer below n, by probabilities or logits (*, n), which need not be normalised."""

    def __init__(self, probs: Any = None, logits: Any = None) -> None:
        _one("Categorical", probs, logits)
        (given,) = tensors("Categorical", x=probs if logits is None else logits)
        if given.ndim < 1:
            raise bp.ShapeError("Categorical: found a parameter without axes, expected (*, n)")
        if logits is None:
            self.probs = given / bp.sum(given, axis=-1, keepdims=True)
            self.logits = bp.log(self.probs)
        else:
            self.logits = bp.log_softmax(given, axis=-1)
            self.probs = bp.exp(self.logits)
        super().__init__(given.shape[:-1])

    def sample(self, sample_shape: Any = (), *, generator: Generator | None = None) -> Tensor:
        logits = bp.stop_gradient(self.logits)
        noise = -bp.log(-bp.log(open_uniform((*self._shape(sample_shape), logits.shape[-1]), logits, generator)))
        return bp.argmax(logits + noise, axis=-1)

    def log_prob(self, value: Any) -> Tensor:
        x = value if isinstance(value, Tensor) else bp.asarray(value)
        shape = bp.broadcast_shapes(x.shape, self.batch_shape)
        x = bp.broadcast_to(x, shape).astype(bp.int64)
        logits = bp.broadcast_to(self.logits, (*shape, self.logits.shape[-1]))
        return bp.take_along_axis(logits, x[..., None], axis=-1)[..., 0]

    def entropy(self) -> Tensor:
        return -bp.sum(bp.xlogy(self.probs, self.probs), axis=-1)

    @property
    def mean(self) -> Tensor:
        return bp.full(self.batch_shape, bp.nan, dtype=self.probs.dtype, device=self.probs.device)

    @property
    def variance(self) -> Tensor:
        return self.mean


class Geometric(Distribution):
    """How often a draw fails before it succeeds with probability probs."""

    def __init__(self, probs: Any = None, logits: Any = None) -> None:
        _one("Geometric", probs, logits)
        (given,) = tensors("Geometric", x=probs if logits is None else logits)
        self.probs = given if logits is None else bp.sigmoid(given)
        super().__init__(given.shape)

    def sample(self, sample_shape: Any = (), *, generator: Generator | None = None) -> Tensor:
        p = bp.stop_gradient(self.probs)
        return bp.floor(bp.log(open_uniform(self._shape(sample_shape), p, generator)) / bp.log1p(-p))

    def log_prob(self, value: Any) -> Tensor:
        return _values("Geometric", value, self.probs) * bp.log1p(-self.probs) + bp.log(self.probs)

    def entropy(self) -> Tensor:
        p = self.probs
        return -(bp.xlogy(p, p) + bp.xlogy(1 - p, 1 - p)) / p

    @property
    def mean(self) -> Tensor:
        return 1 / self.probs - 1

    @property
    def variance(self) -> Tensor:
        return (1 / self.probs - 1) / self.probs
