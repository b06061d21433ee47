"""Distributions over integers: Bernoulli, Categorical and Geometric. Their parameters are probabilities or logits."""

from __future__ import annotations

from typing import Any

import backplane as bp
from backplane import Generator, Tensor

from . import constraints
from ._distribution import Distribution, is_number, open_uniform, tensors, uniform
from ._ratios import times

__all__ = ["Bernoulli", "Categorical", "Geometric"]


def _one(name, probs, logits):
    if (probs is None) == (logits is None):
        raise bp.ArgumentValueError(f"{name}: expected probs or logits, one of them")


def _given(one, probs, logits, above=False):
    """The parameter that was given, of probabilities that one draw can have; above: without 0."""
    name = type(one).__name__
    _one(name, probs, logits)
    (x,) = tensors(name, x=probs if logits is None else logits)
    if logits is not None:
        one._require("logits", x, is_number(x), "numbers")
    elif above:
        one._require("probs", x, (x > 0) & (x <= 1), "probabilities above 0, up to 1")
    else:
        one._require("probs", x, (x >= 0) & (x <= 1), "probabilities, from 0 to 1")
    return x


def _values(x, like):
    """Values as numbers of the dtype of the parameters."""
    x = x if isinstance(x, Tensor) else bp.asarray(x, device=like.device)
    return x.astype(like.dtype)


def _chances(given, is_logits, hits, misses):
    """The logarithms of the probabilities of a success and of a failure; any finite numbers where nobody uses them, so that no derivative is NaN."""
    if is_logits:
        return bp.logsigmoid(given), bp.logsigmoid(-given)
    return bp.log(bp.where(hits == 0, 0.5, given)), bp.log1p(-bp.where(misses == 0, 0.5, given))


def _entropy(given, is_logits):
    """The entropy of one draw."""
    p, q = (bp.sigmoid(given), bp.sigmoid(-given)) if is_logits else (given, 1 - given)
    success, failure = _chances(given, is_logits, p, q)
    return -(times(p, success) + times(q, failure))


class Bernoulli(Distribution):
    """1 with probability probs, else 0; logits: log(probs / (1 - probs))."""

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.boolean

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        given = _given(self, probs, logits)
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
        x = _values(value, self._given)
        success, failure = _chances(self._given, self._is_logits, x, 1 - x)
        found = times(x, success) + times(1 - x, failure)
        return self._supported(x, (x == 0) | (x == 1), "0 or 1", found)

    def entropy(self) -> Tensor:
        return _entropy(self._given, self._is_logits)

    @property
    def mean(self) -> Tensor:
        return self.probs

    @property
    def variance(self) -> Tensor:
        return self.probs * (1 - self.probs)


class Categorical(Distribution):
    """An integer below n, by probabilities or logits (*, n), which need not be normalised."""

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        _one("Categorical", probs, logits)
        argument = "probs" if logits is None else "logits"
        (given,) = tensors("Categorical", x=probs if logits is None else logits)
        if given.ndim < 1:
            raise bp.ShapeError("Categorical: found a parameter without axes, expected (*, n)")
        if logits is None:
            self._require(argument, given, given >= 0, "numbers of at least 0")
            self.probs = given / bp.sum(given, axis=-1, keepdims=True)
            self.logits = bp.log(self.probs)
        else:
            self.logits = bp.log_softmax(given, axis=-1)
            self.probs = bp.exp(self.logits)
        self._require(argument, given, is_number(self.probs), "finite numbers, at least one with a probability above 0")
        super().__init__(given.shape[:-1])

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self):
        return constraints.integer_interval(0, self.probs.shape[-1] - 1)

    def sample(self, sample_shape: Any = (), *, generator: Generator | None = None) -> Tensor:
        logits = bp.stop_gradient(self.logits)
        noise = -bp.log(-bp.log(open_uniform((*self._shape(sample_shape), logits.shape[-1]), logits, generator)))
        return bp.argmax(logits + noise, axis=-1)

    def log_prob(self, value: Any) -> Tensor:
        x = value if isinstance(value, Tensor) else bp.asarray(value, device=self.logits.device)
        count = self.logits.shape[-1]
        shape = bp.broadcast_shapes(x.shape, self.batch_shape)
        chosen = x.astype(bp.int64)
        inside = (chosen == x) & (chosen >= 0) & (chosen < count)
        chosen = bp.broadcast_to(bp.where(inside, chosen, 0), shape)
        logits = bp.broadcast_to(self.logits, (*shape, count))
        found = bp.take_along_axis(logits, chosen[..., None], axis=-1)[..., 0]
        return self._supported(x, inside, f"integers from 0 to {count - 1}", found)

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

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.nonnegative_integer

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        given = _given(self, probs, logits, above=True)
        self.probs = given if logits is None else bp.sigmoid(given)
        self._given, self._is_logits = given, logits is not None
        super().__init__(given.shape)

    def sample(self, sample_shape: Any = (), *, generator: Generator | None = None) -> Tensor:
        given = bp.stop_gradient(self._given)
        failure = bp.logsigmoid(-given) if self._is_logits else bp.log1p(-given)
        return bp.floor(bp.log(open_uniform(self._shape(sample_shape), failure, generator)) / failure)

    def log_prob(self, value: Any) -> Tensor:
        x = _values(value, self.probs)
        success, failure = _chances(self._given, self._is_logits, bp.ones_like(x), x)
        return self._supported(x, (x >= 0) & (x < bp.inf) & (x == bp.floor(x)), "integers of at least 0", times(x, failure) + success)

    def entropy(self) -> Tensor:
        return _entropy(self._given, self._is_logits) / self.probs

    @property
    def mean(self) -> Tensor:
        return bp.exp(-self._given) if self._is_logits else (1 - self.probs) / self.probs

    @property
    def variance(self) -> Tensor:
        return self.mean / self.probs
