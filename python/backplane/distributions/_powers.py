"""Distributions whose samples are functions of uniform numbers: Weibull, Pareto, GeneralizedPareto, Kumaraswamy, HalfCauchy."""

from __future__ import annotations

import math
from typing import Any

import backplane as bp
from backplane import Generator, Tensor

from . import constraints
from ._distribution import Distribution, above_zero, between_zero_and_one, is_number, open_uniform, tensors, uniform
from ._ratios import log1mexp, log1p_square, log_beta

__all__ = ["GeneralizedPareto", "HalfCauchy", "Kumaraswamy", "Pareto", "Weibull"]

_EULER = 0.5772156649015329


class _OfTwo(Distribution):
    """A distribution of two positive parameters."""

    has_rsample = True
    _names: tuple[str, str]

    def __init__(self, first: Any, second: Any, validate_args: bool | None = None) -> None:
        name = type(self).__name__
        found = tensors(name, **dict(zip(self._names, (first, second))))
        for argument, x in zip(self._names, found):
            setattr(self, argument, x)
            self._require(argument, x, x > 0, "positive numbers")
        super().__init__(found[0].shape)


class Weibull(_OfTwo):
    """The Weibull distribution: P(X > x) = exp(-(x / scale) ** concentration)."""

    arg_constraints = {"scale": constraints.positive, "concentration": constraints.positive}
    support = constraints.positive

    _names = ("scale", "concentration")
    scale: Tensor
    concentration: Tensor

    def __init__(self, scale: Any, concentration: Any, validate_args: bool | None = None) -> None:
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

    def cdf(self, value: Any) -> Tensor:
        x = self._number(value, self.scale)
        z = bp.where(x > 0, x, 1) / self.scale
        return bp.where(x > 0, -bp.expm1(-(z**self.concentration)), 0.0)

    def icdf(self, value: Any) -> Tensor:
        return self.scale * (-bp.log1p(-self._number(value, self.scale))) ** (1 / self.concentration)

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

    arg_constraints = {"alpha": constraints.positive, "scale": constraints.positive}

    _names = ("scale", "alpha")
    scale: Tensor
    alpha: Tensor

    def __init__(self, scale: Any, alpha: Any, validate_args: bool | None = None) -> None:
        super().__init__(scale, alpha)

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self):
        return constraints.greater_than_eq(self.scale)

    def rsample(self, sample_shape: Any = (), *, generator: Generator | None = None) -> Tensor:
        return self.scale * open_uniform(self._shape(sample_shape), self.scale, generator) ** (-1 / self.alpha)

    def log_prob(self, value: Any) -> Tensor:
        x = self._number(value, self.scale)
        safe = bp.where(x >= self.scale, x, self.scale)
        return self._supported(x, x >= self.scale, "numbers from scale on", bp.log(self.alpha) + self.alpha * bp.log(self.scale) - (self.alpha + 1) * bp.log(safe))

    def cdf(self, value: Any) -> Tensor:
        x = self._number(value, self.scale)
        above = bp.where(x > self.scale, x, self.scale) - self.scale
        return bp.where(x > self.scale, -bp.expm1(-self.alpha * bp.log1p(above / self.scale)), 0.0)

    def icdf(self, value: Any) -> Tensor:
        return self.scale * bp.exp(-bp.log1p(-self._number(value, self.scale)) / self.alpha)

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


class GeneralizedPareto(Distribution):
    """The generalised Pareto distribution: P(X > x) = (1 + concentration · z) ** (-1 / concentration), with z = (x - loc) / scale, from loc on.

    A negative concentration ends the support at loc - scale / concentration; 0 gives the exponential distribution.
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive, "concentration": constraints.real}
    has_rsample = True

    def __init__(self, loc: Any, scale: Any, concentration: Any, validate_args: bool | None = None) -> None:
        self.loc, self.scale, self.concentration = tensors("GeneralizedPareto", loc=loc, scale=scale, concentration=concentration)
        for argument in ("loc", "concentration"):
            x = getattr(self, argument)
            self._require(argument, x, is_number(x), "numbers")
        self._require("scale", self.scale, self.scale > 0, "positive numbers")
        super().__init__(self.loc.shape)

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self):
        ends = self.concentration < 0
        return constraints.interval(self.loc, bp.where(ends, self.loc - self.scale / bp.where(ends, self.concentration, 1), bp.inf))

    def _log_above(self, z: Tensor) -> Tensor:
        """log P(X > x) for z >= 0 within the support."""
        c = self.concentration
        small = bp.abs(c * z) < 1e-3  # where the quotient log1p(c z) / c loses the slope in c
        series = z * (1 - c * z * (1 / 2 - c * z * (1 / 3 - c * z * (1 / 4 - c * z * (1 / 5 - c * z / 6)))))
        safe_c, safe_z = bp.where(small, 1.0, c), bp.where(small, 1.0, z)
        return -bp.where(small, series, bp.log1p(safe_c * safe_z) / safe_c)

    def _inside_of(self, x: Tensor) -> tuple[Tensor, Tensor]:
        z = (x - self.loc) / self.scale
        inside = (z >= 0) & (1 + self.concentration * z > 0)
        return inside, bp.where(inside, z, 0.0)

    def rsample(self, sample_shape: Any = (), *, generator: Generator | None = None) -> Tensor:
        return self.icdf(uniform(self._shape(sample_shape), self.loc, generator))

    def log_prob(self, value: Any) -> Tensor:
        x = self._number(value, self.loc)
        inside, z = self._inside_of(x)
        found = (1 + self.concentration) * self._log_above(z) - bp.log(self.scale)
        return self._supported(x, inside, "numbers of the support", found)

    def cdf(self, value: Any) -> Tensor:
        x = self._number(value, self.loc)
        inside, z = self._inside_of(x)
        return bp.where(inside, -bp.expm1(self._log_above(z)), bp.where(x < self.loc, 0.0, 1.0))

    def icdf(self, value: Any) -> Tensor:
        c, log = self.concentration, -bp.log1p(-self._number(value, self.loc))
        power = c * log
        small = bp.abs(power) < 1e-3
        series = log * (1 + power / 2 * (1 + power / 3 * (1 + power / 4 * (1 + power / 5))))
        safe_c, safe_log = bp.where(small, 1.0, c), bp.where(small, 1.0, log)
        return self.loc + self.scale * bp.where(small, series, bp.expm1(safe_c * safe_log) / safe_c)

    def entropy(self) -> Tensor:
        return bp.log(self.scale) + self.concentration + 1

    @property
    def mean(self) -> Tensor:
        c = bp.where(self.concentration < 1, self.concentration, 0.0)
        return bp.where(self.concentration < 1, self.loc + self.scale / (1 - c), bp.inf)

    @property
    def variance(self) -> Tensor:
        c = bp.where(self.concentration < 0.5, self.concentration, 0.0)
        return bp.where(self.concentration < 0.5, self.scale**2 / ((1 - c) ** 2 * (1 - 2 * c)), bp.inf)


class Kumaraswamy(_OfTwo):
    """A distribution on (0, 1) like Beta, with samples that carry gradients: P(X <= x) = 1 - (1 - x ** a) ** b."""

    arg_constraints = {"concentration1": constraints.positive, "concentration0": constraints.positive}
    support = constraints.unit_interval

    _names = ("concentration1", "concentration0")
    concentration1: Tensor
    concentration0: Tensor

    def __init__(self, concentration1: Any, concentration0: Any, validate_args: bool | None = None) -> None:
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
        found = bp.log(a * b) + (a - 1) * bp.log(safe) + (b - 1) * log1mexp(a * bp.log(safe))
        return self._supported(x, inside, "numbers between 0 and 1", found)

    def cdf(self, value: Any) -> Tensor:
        x = self._number(value, self.concentration1)
        inside = (x > 0) & (x < 1)
        rest = log1mexp(self.concentration1 * bp.log(bp.where(inside, x, 0.5)))
        return bp.where(inside, -bp.expm1(self.concentration0 * rest), bp.where(x < 0.5, 0.0, 1.0))

    def icdf(self, value: Any) -> Tensor:
        log = log1mexp(bp.log1p(-self._number(value, self.concentration1)) / self.concentration0)
        return bp.exp(log / self.concentration1)

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

    arg_constraints = {"scale": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True

    def __init__(self, scale: Any, validate_args: bool | None = None) -> None:
        (self.scale,) = tensors("HalfCauchy", scale=scale)
        self._require("scale", self.scale, self.scale > 0, "positive numbers")
        super().__init__(self.scale.shape)

    def rsample(self, sample_shape: Any = (), *, generator: Generator | None = None) -> Tensor:
        return self.scale * bp.tan(math.pi / 2 * open_uniform(self._shape(sample_shape), self.scale, generator))

    def log_prob(self, value: Any) -> Tensor:
        x = self._number(value, self.scale)
        return self._supported(x, x >= 0, "numbers of at least 0", math.log(2 / math.pi) - bp.log(self.scale) - log1p_square(x / self.scale))

    def cdf(self, value: Any) -> Tensor:
        return 2 / math.pi * bp.atan(bp.maximum(self._number(value, self.scale), 0) / self.scale)

    def icdf(self, value: Any) -> Tensor:
        x = self._number(value, self.scale)
        is_tail = x > 0.5  # where the tangent of the small angle keeps 1 - x
        tail, rest = bp.where(is_tail, 1 - x, 0.5), bp.where(is_tail, 0.5, x)
        return self.scale * bp.where(is_tail, 1 / bp.tan(math.pi / 2 * tail), bp.tan(math.pi / 2 * rest))

    def entropy(self) -> Tensor:
        return math.log(2 * math.pi) + bp.log(self.scale)

    @property
    def mean(self) -> Tensor:
        return bp.full_like(self.scale, bp.inf)

    @property
    def variance(self) -> Tensor:
        return bp.full_like(self.scale, bp.inf)
