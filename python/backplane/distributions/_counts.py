"""Distributions of counts: Poisson, Binomial, NegativeBinomial, Multinomial.

Samples of small means come from inversion, others from Hörmann's transformed rejection (PTRS, 1993, and BTRS, 1993).
"""

from __future__ import annotations

from typing import Any

import backplane as bp
from backplane import Generator, Tensor

from . import constraints
from ._discrete import _chances, _given, _values
from ._distribution import Distribution, open_uniform, tensors
from ._gamma import log_gamma_sample
from ._ratios import log_binomial, log_poisson

__all__ = ["Binomial", "Multinomial", "NegativeBinomial", "Poisson"]

_ROUNDS = 16  # of candidates: each is accepted with a probability above 0.8
_LONGEST = 64  # counts that inversion tries; a mean of 10 exceeds it with a probability below 1e-28
_SMALL = 10.0


def _first_good(good, candidates):
    return bp.take_along_axis(candidates, bp.argmax(good.astype(bp.int32), axis=0)[None], axis=0)[0]


def _by_inversion(first, ratio, shape, generator):
    """Counts whose probabilities are first, first · ratio(0), first · ratio(0) · ratio(1), …"""
    u = open_uniform(shape, first, generator)
    p, below, count = first, first, bp.zeros_like(first)
    for k in range(_LONGEST):
        count = count + (u > below).astype(first.dtype)
        p = p * ratio(k)
        below = below + p
    return count


def poisson_sample(rate: Tensor, shape: tuple[int, ...], generator: Generator | None) -> Tensor:
    rate = bp.broadcast_to(bp.stop_gradient(rate), shape)
    little = bp.where(rate < _SMALL, rate, 0)
    small = _by_inversion(bp.exp(-little), lambda k: little / (k + 1), shape, generator)
    large = bp.where(rate < _SMALL, _SMALL, rate)
    b = 0.931 + 2.53 * bp.sqrt(large)
    a = -0.059 + 0.02483 * b
    u = open_uniform((_ROUNDS, *shape), rate, generator) - 0.5
    v = open_uniform((_ROUNDS, *shape), rate, generator)
    us = 0.5 - bp.abs(u)
    k = bp.floor((2 * a / us + b) * u + large + 0.43)
    bound = 1.1239 + 1.1328 / (b - 3.4)
    safe = bp.maximum(k, 0)
    inside = bp.log(v * bound / (a / (us * us) + b)) <= log_poisson(safe, large)
    good = ((us >= 0.07) & (v <= 0.9277 - 3.6224 / (b - 2))) | ((k >= 0) & ~((us < 0.013) & (v > us)) & inside)
    return bp.where(rate < _SMALL, small, _first_good(good & (k >= 0), safe))


def binomial_sample(count: Tensor, probs: Tensor, shape: tuple[int, ...], generator: Generator | None) -> Tensor:
    n, p = (bp.broadcast_to(bp.stop_gradient(x), shape) for x in (count, probs))
    q = bp.minimum(p, 1 - p)
    is_small = n * q < _SMALL
    little = bp.where(is_small, q, 0)
    odds = little / (1 - little)
    small = _by_inversion(bp.exp(n * bp.log1p(-little)), lambda k: bp.maximum(n - k, 0) / (k + 1) * odds, shape, generator)
    large = bp.where(is_small, 2 * _SMALL, n)
    r = bp.where(is_small, 0.5, q)
    spread = bp.sqrt(large * r * (1 - r))
    b = 1.15 + 2.53 * spread
    a = -0.0873 + 0.0248 * b + 0.01 * r
    c, alpha, limit = large * r + 0.5, (2.83 + 5.1 / b) * spread, 0.92 - 4.2 / b
    u = open_uniform((_ROUNDS, *shape), p, generator) - 0.5
    v = open_uniform((_ROUNDS, *shape), p, generator)
    us = 0.5 - bp.abs(u)
    k = bp.floor((2 * a / us + b) * u + c)
    inside = (k >= 0) & (k <= large)
    safe, mode = bp.where(inside, k, 0), bp.floor((large + 1) * r)
    log_v = bp.log(v * alpha / (a / (us * us) + b))
    chances = bp.log(r), bp.log1p(-r)
    density = log_binomial(safe, large - safe, *chances) - log_binomial(mode, large - mode, *chances)
    good = inside & (((us >= 0.07) & (v <= limit)) | (log_v <= density))
    found = bp.where(is_small, bp.minimum(small, n), _first_good(good, safe))
    return bp.where(p > 0.5, n - found, found)


def _whole(x):
    return (x >= 0) & (x < bp.inf) & (x == bp.floor(x))


class Poisson(Distribution):
    """The number of events that occur with this rate."""

    arg_constraints = {"rate": constraints.nonnegative}
    support = constraints.nonnegative_integer

    def __init__(self, rate: Any, validate_args: bool | None = None) -> None:
        (self.rate,) = tensors("Poisson", rate=rate)
        self._require("rate", self.rate, self.rate >= 0, "numbers of at least 0")
        super().__init__(self.rate.shape)

    def sample(self, sample_shape: Any = (), *, generator: Generator | None = None) -> Tensor:
        return poisson_sample(self.rate, self._shape(sample_shape), generator)

    def log_prob(self, value: Any) -> Tensor:
        x = _values(value, self.rate)
        return self._supported(x, _whole(x), "integers of at least 0", log_poisson(bp.maximum(x, 0), self.rate))

    @property
    def mean(self) -> Tensor:
        return self.rate

    @property
    def variance(self) -> Tensor:
        return self.rate


class Binomial(Distribution):
    """How many of total_count draws succeed, each with probability probs; logits: log(probs / (1 - probs))."""

    arg_constraints = {"total_count": constraints.nonnegative_integer, "probs": constraints.unit_interval, "logits": constraints.real}

    def __init__(self, total_count: Any = 1, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        given = _given(self, probs, logits)
        self.total_count, self._parameter = tensors("Binomial", total_count=_values(total_count, given), given=given)
        self._require("total_count", self.total_count, _whole(self.total_count), "integers of at least 0")
        self._is_logits = logits is not None
        super().__init__(self._parameter.shape)

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self):
        return constraints.integer_interval(0, self.total_count)

    @property
    def probs(self) -> Tensor:
        return bp.sigmoid(self._parameter) if self._is_logits else self._parameter

    @property
    def logits(self) -> Tensor:
        return self._parameter if self._is_logits else bp.log(self._parameter) - bp.log1p(-self._parameter)

    def sample(self, sample_shape: Any = (), *, generator: Generator | None = None) -> Tensor:
        return binomial_sample(self.total_count, self.probs, self._shape(sample_shape), generator)

    def log_prob(self, value: Any) -> Tensor:
        x, n = _values(value, self._parameter), self.total_count
        inside = _whole(x) & (x <= n)
        hits, misses = bp.where(inside, x, 0), bp.where(inside, n - x, 0)
        return self._supported(x, inside, "integers from 0 to total_count", log_binomial(hits, misses, *_chances(self._parameter, self._is_logits, hits, misses)))

    @property
    def mean(self) -> Tensor:
        return self.total_count * self.probs

    @property
    def variance(self) -> Tensor:
        return self.total_count * self.probs * (1 - self.probs)


class NegativeBinomial(Distribution):
    """How often a draw succeeds, with probability probs, before it has failed total_count times."""

    arg_constraints = {"total_count": constraints.positive, "probs": constraints.half_open_interval(0.0, 1.0), "logits": constraints.real}
    support = constraints.nonnegative_integer

    def __init__(self, total_count: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        given = _given(self, probs, logits)
        self.total_count, given = tensors("NegativeBinomial", total_count=_values(total_count, given), given=given)
        self.probs = given if logits is None else bp.sigmoid(given)
        self._given, self._is_logits = given, logits is not None
        self._require("total_count", self.total_count, self.total_count > 0, "positive numbers")
        self._require("probs", self.probs, self.probs < 1, "probabilities below 1")
        super().__init__(given.shape)

    def sample(self, sample_shape: Any = (), *, generator: Generator | None = None) -> Tensor:
        shape = self._shape(sample_shape)
        p = bp.stop_gradient(self.probs)
        return poisson_sample(bp.exp(log_gamma_sample(self.total_count, shape, generator)) * p / (1 - p), shape, generator)

    def log_prob(self, value: Any) -> Tensor:
        x, n = _values(value, self.probs), self.total_count
        k = bp.maximum(x, 0)
        found = log_binomial(k, n, *_chances(self._given, self._is_logits, k, n)) - bp.log1p(k / n)
        return self._supported(x, _whole(x), "integers of at least 0", found)

    @property
    def mean(self) -> Tensor:
        return self.total_count * self.probs / (1 - self.probs)

    @property
    def variance(self) -> Tensor:
        return self.mean / (1 - self.probs)


class Multinomial(Distribution):
    """How often each of n categories is drawn in total_count draws, by probabilities or logits (*, n), which need not be normalised."""

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}

    def __init__(self, total_count: int = 1, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        from ._discrete import Categorical

        if not isinstance(total_count, int) or total_count < 0:
            raise bp.ArgumentValueError(f"Multinomial: argument total_count: found {total_count!r}, expected an int of at least 0")
        self._categorical = Categorical(probs, logits, validate_args=validate_args)
        self.total_count, self.probs, self.logits = total_count, self._categorical.probs, self._categorical.logits
        super().__init__(self._categorical.batch_shape, self.probs.shape[-1:])

    @constraints.dependent_property(is_discrete=True, event_dim=1)
    def support(self):
        return constraints.multinomial(self.total_count)

    def sample(self, sample_shape: Any = (), *, generator: Generator | None = None) -> Tensor:
        shape = self._shape(sample_shape)
        probs = bp.broadcast_to(bp.stop_gradient(self.probs), shape)
        left, rest, counts = bp.full_like(probs[..., 0], self.total_count), bp.ones_like(probs[..., 0]), []
        for category in range(shape[-1] - 1):
            p = probs[..., category]
            share = bp.clip(bp.where(rest > 0, p / bp.where(rest > 0, rest, 1), 0), 0, 1)
            counts.append(binomial_sample(left, share, tuple(left.shape), generator))
            left, rest = left - counts[-1], rest - p
        return bp.stack([*counts, left], axis=-1)

    def log_prob(self, value: Any) -> Tensor:
        x = _values(value, self.probs)
        inside = bp.all(_whole(x), axis=-1) & (bp.sum(x, axis=-1) == self.total_count)
        k = bp.maximum(x, 0)
        n = bp.sum(k, axis=-1, keepdims=True)
        parts = log_poisson(k, n * self.probs, bp.log(bp.maximum(n, 1)) + self.logits)
        found = bp.sum(parts, axis=-1) - log_poisson(n, n)[..., 0]
        return self._supported(inside, inside, f"counts of {self.total_count} draws", found)

    @property
    def mean(self) -> Tensor:
        return self.total_count * self.probs

    @property
    def variance(self) -> Tensor:
        return self.total_count * self.probs * (1 - self.probs)
