"""Distributions whose samples are functions of uniform numbers: Weibull, Pareto, Kumaraswamy, HalfCauchy."""

from __future__ import annotations

import math
from typing import Any

import backplane as bp
from backplane import Generator, Tensor

from ._distribution import Distribution, above_zero, between_zero_and_one, open_uniform, require, tensors
from ._ratios import log1p_square, log_beta

__all__ = ["HalfCauchy", "Kumaraswamy", "Pareto", "Weibull"]

_EULER = 0.5772156649015329


class _OfTwo(Distribution):
    """A distribution of two positive parameters."""

    has_rsample = True
    _names: tuple[str, str]

    def __init__(self, first: Any, second: Any) -> None:
        name = type(self).__name__
        found = tensors(name, **dict(zip(self._names, (first, second))))
        for argument, x in zip(self._names, found):
            setattr(self, argument, x)
            require(name, argument, x, x > 0, "positive numbers")
        super().__init__(found[0].shape)


class Weibull(_OfTwo):
    """The Weibull distribution: P(X > x) = exp(-(x / scale) ** concentration)."""

    _names = ("scale", "concentration")
    scale: Tensor
    concentration: Tensor

    def __init__(self, scale: Any, concentration: Any) -> None:
        super().__init__(scale, concentration)

    def rsample(self, sample_shape: Any = (), *, generator: Generator | None = None) -> Tensor:
        u = open_uniform(self._shape(sample_shape), self.scale, generator)
        return self._inside(self.scale * (-bp.log(u)) ** (1 / self.concentration))

    def _inside(self, x: Tensor) -> Tensor:
        return above_zero(x)

    def log_prob(self, value: Any) -> Tensor:
        x = self._number(value, self.scale)
        z = bp.where(x > 0, x, 1) / self.scale
        k = self.concentration
        return self._supported(x, x > 0, "positive numbers", bp.log(k / self.scale) + (k - 1) * bp.log(z) - z**k)

    def entropy(self) -> Tensor:
        return _EULER * (1 - 1 / self.concentration) + bp.log(self.scale / self.concentration) + 1

    @property
    def mean(self) -> Tensor:
        return self.scale * bp.exp(bp.lgamma(1 + 1 / self.concentration))

    @property
    def variance(self) -> Tensor:
        return self.scale**2 * (bp.exp(bp.lgamma(1 + 2 / self.concentration)) - bp.exp(2 * bp.lgamma(1 + 1 / self.concentration)))


class Pareto(_OfTwo):
    """The Pareto distribution: P(X > x) = (scale / x) ** alpha from scale on."""

    _names = ("scale", "alpha")
    scale: Tensor
    alpha: Tensor

    def __init__(self, scale: Any, alpha: Any) -> None:
        super().__init__(scale, alpha)

    def rsample(self, sample_shape: Any = (), *, generator: Generator | None = None) -> Tensor:
        return self.scale * open_uniform(self._shape(sample_shape), self.scale, generator) ** (-1 / self.alpha)

    def log_prob(self, value: Any) -> Tensor:
        x = self._number(value, self.scale)
        safe = bp.where(x >= self.scale, x, self.scale)
        return self._supported(x, x >= self.scale, "numbers from scale on", bp.log(self.alpha) + self.alpha * bp.log(self.scale) - (self.alpha + 1) * bp.log(safe))

    def entropy(self) -> Tensor:
        return bp.log(self.scale / self.alpha) + 1 + 1 / self.alpha

    @property
    def mean(self) -> Tensor:
        a = bp.where(self.alpha > 1, self.alpha, 2)
        return bp.where(self.alpha > 1, a * self.scale / (a - 1), bp.inf)

    @property
    def variance(self) -> Tensor:
        a = bp.where(self.alpha > 2, self.alpha, 3)
        return bp.where(self.alpha > 2, self.scale**2 * a / ((a - 1) ** 2 * (a - 2)), bp.inf)


class Kumaraswamy(_OfTwo):
    """A distribution on (0, 1) like Beta, with samples that carry gradients: P(X <= x) = 1 - (1 - x ** a) ** b."""

    _names = ("concentration1", "concentration0")
    concentration1: Tensor
    concentration0: Tensor

    def __init__(self, concentration1: Any, concentration0: Any) -> None:
        super().__init__(concentration1, concentration0)

    def rsample(self, sample_shape: Any = (), *, generator: Generator | None = None) -> Tensor:
        u = open_uniform(self._shape(sample_shape), self.concentration1, generator)
        return self._inside((-bp.expm1(bp.log(u) / self.concentration0)) ** (1 / self.concentration1))

    def _inside(self, x: Tensor) -> Tensor:
        return between_zero_and_one(x)

    def log_prob(self, value: Any) -> Tensor:
        x = self._number(value, self.concentration1)
        inside = (x > 0) & (x < 1)
        safe, a, b = bp.where(inside, x, 0.5), self.concentration1, self.concentration0
        power = a * bp.log(safe)
        is_near = power > -0.5  # where safe ** a is near 1
        near, far = bp.where(is_near, power, -1), bp.where(is_near, -1, power)
        rest = bp.where(is_near, bp.log(-bp.expm1(near)), bp.log1p(-bp.exp(far)))
        return self._supported(x, inside, "numbers between 0 and 1", bp.log(a * b) + (a - 1) * bp.log(safe) + (b - 1) * rest)

    def _moment(self, n: int) -> Tensor:
        a, b = self.concentration1, self.concentration0
        return b * bp.exp(log_beta(1 + n / a, b))

    def entropy(self) -> Tensor:
        a, b = self.concentration1, self.concentration0
        return (1 - 1 / a) * (bp.digamma(b + 1) + _EULER) + (1 - 1 / b) - bp.log(a) - bp.log(b)

    @property
    def mean(self) -> Tensor:
        return self._moment(1)

    @property
    def variance(self) -> Tensor:
        return self._moment(2) - self._moment(1) ** 2


class HalfCauchy(Distribution):
    """The distribution of |x| for a Cauchy variable x around 0. Its mean and variance do not exist: infinite."""

    has_rsample = True

    def __init__(self, scale: Any) -> None:
        (self.scale,) = tensors("HalfCauchy", scale=scale)
        require("HalfCauchy", "scale", self.scale, self.scale > 0, "positive numbers")
        super().__init__(self.scale.shape)

    def rsample(self, sample_shape: Any = (), *, generator: Generator | None = None) -> Tensor:
        return self.scale * bp.tan(math.pi / 2 * open_uniform(self._shape(sample_shape), self.scale, generator))

    def log_prob(self, value: Any) -> Tensor:
        x = self._number(value, self.scale)
        return self._supported(x, x >= 0, "numbers of at least 0", math.log(2 / math.pi) - bp.log(self.scale) - log1p_square(x / self.scale))

    def entropy(self) -> Tensor:
        return math.log(2 * math.pi) + bp.log(self.scale)

    @property
    def mean(self) -> Tensor:
        return bp.full_like(self.scale, bp.inf)

    @property
    def variance(self) -> Tensor:
        return bp.full_like(self.scale, bp.inf)
