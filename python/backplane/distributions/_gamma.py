"""Distributions of gamma variables and of their ratios: Gamma, Chi2, InverseGamma, Beta, Dirichlet, FisherSnedecor, StudentT.

Samples come from Marsaglia and Tsang, "A simple method for generating gamma variables", 2000; their gradients are implicit (_gamma_gradient.py).
"""

from __future__ import annotations

from typing import Any

import backplane as bp
from backplane import Generator, Tensor

from . import _gamma_gradient, constraints
from ._distribution import Distribution, above_zero, between_zero_and_one, is_number, normal, open_uniform, tensors
from ._incomplete_gamma import gammainc, gammaincc, log_density, quantile, upper_quantile
from ._ratios import dirichlet_entropy, gamma_entropy, log1p_square, log_beta, log_dirichlet, stirling_slope

__all__ = ["Beta", "Chi2", "Dirichlet", "FisherSnedecor", "Gamma", "InverseGamma", "StudentT"]

_ROUNDS = 12  # of candidates: each is accepted with a probability above 0.95


def log_gamma_sample(concentration: Tensor, shape: tuple[int, ...], generator: Generator | None) -> Tensor:
    """The logarithms of samples with rate 1: those of small concentrations lie below the least positive number."""
    a = bp.broadcast_to(bp.stop_gradient(concentration), shape)
    boosted = bp.where(a < 1, a + 1, a)
    d = boosted - 1 / 3
    x = normal((_ROUNDS, *shape), a, generator)
    v = (1 + x / bp.sqrt(9 * d)) ** 3
    u = open_uniform((_ROUNDS, *shape), a, generator)
    good = (v > 0) & (bp.log(u) < 0.5 * x * x + d - d * v + d * bp.log(bp.where(v > 0, v, 1)))
    first = bp.argmax(good.astype(bp.int32), axis=0)[None]
    chosen = bp.take_along_axis(bp.where(v > 0, v, 1), first, axis=0)[0]
    log = bp.log(d) + bp.log(chosen)
    return log + bp.where(a < 1, bp.log(open_uniform(shape, a, generator)) / a, 0)


def log_gamma_rsample(concentration: Tensor, shape: tuple[int, ...], generator: Generator | None) -> Tensor:
    """The same, with gradients."""
    return _gamma_gradient.attached(bp.broadcast_to(concentration, shape), log_gamma_sample(concentration, shape, generator))


class Gamma(Distribution):
    """The gamma distribution: density proportional to x ** (concentration - 1) · exp(-rate · x)."""

    arg_constraints = {"concentration": constraints.positive, "rate": constraints.positive}
    support = constraints.positive

    def __init__(self, concentration: Any, rate: Any, validate_args: bool | None = None) -> None:
        name = type(self).__name__
        self.concentration, self.rate = tensors(name, concentration=concentration, rate=rate)
        self._require("concentration", self.concentration, self.concentration > 0, "positive numbers")
        self._require("rate", self.rate, self.rate > 0, "positive numbers")
        super().__init__(self.concentration.shape)

    has_rsample = True

    def rsample(self, sample_shape: Any = (), *, generator: Generator | None = None) -> Tensor:
        z = bp.exp(log_gamma_rsample(self.concentration, self._shape(sample_shape), generator))
        return self._inside(z / self.rate)

    def _inside(self, x: Tensor) -> Tensor:
        return above_zero(x)

    def log_prob(self, value: Any) -> Tensor:
        x = self._number(value, self.rate)
        log = bp.log(bp.where(x > 0, x, 1))
        return self._supported(x, x > 0, "positive numbers", log_density(self.concentration, self.rate * x, bp.log(self.rate) + log) - log)

    def cdf(self, value: Any) -> Tensor:
        return gammainc(self.concentration, bp.maximum(self.rate * self._number(value, self.rate), 0))

    def icdf(self, value: Any) -> Tensor:
        return quantile(self.concentration, self._number(value, self.rate)) / self.rate

    def entropy(self) -> Tensor:
        return gamma_entropy(self.concentration) - bp.log(self.rate)

    @property
    def mean(self) -> Tensor:
        return self.concentration / self.rate

    @property
    def variance(self) -> Tensor:
        return self.concentration / self.rate**2


class Chi2(Gamma):
    """The distribution of a sum of df squared standard normal variables."""

    arg_constraints = {"df": constraints.positive}

    def __init__(self, df: Any, validate_args: bool | None = None) -> None:
        (self.df,) = tensors("Chi2", df=df)
        self._require("df", self.df, self.df > 0, "positive numbers")
        super().__init__(self.df / 2, bp.full_like(self.df, 0.5))


class InverseGamma(Distribution):
    """The distribution of 1 / x for a gamma variable x."""

    arg_constraints = {"concentration": constraints.positive, "rate": constraints.positive}
    support = constraints.positive

    def __init__(self, concentration: Any, rate: Any, validate_args: bool | None = None) -> None:
        self.base_dist = Gamma(concentration, rate, validate_args=validate_args)
        self.concentration, self.rate = self.base_dist.concentration, self.base_dist.rate
        super().__init__(self.base_dist.batch_shape)

    has_rsample = True

    def rsample(self, sample_shape: Any = (), *, generator: Generator | None = None) -> Tensor:
        return self._inside(1 / self.base_dist.rsample(sample_shape, generator=generator))

    def _inside(self, x: Tensor) -> Tensor:
        return above_zero(x)

    def log_prob(self, value: Any) -> Tensor:
        x = self._number(value, self.rate)
        safe = bp.where(x > 0, x, 1)
        log = bp.log(safe)
        return self._supported(x, x > 0, "positive numbers", log_density(self.concentration, self.rate / safe, bp.log(self.rate) - log) - log)

    def cdf(self, value: Any) -> Tensor:
        x = self._number(value, self.rate)
        return bp.where(x > 0, gammaincc(self.concentration, self.rate / bp.where(x > 0, x, 1)), 0.0)

    def icdf(self, value: Any) -> Tensor:
        return self.rate / upper_quantile(self.concentration, self._number(value, self.rate))

    def entropy(self) -> Tensor:
        a = self.concentration
        return gamma_entropy(a) + bp.log(self.rate) - 2 * bp.digamma(a)

    @property
    def mean(self) -> Tensor:
        a = self.concentration
        return bp.where(a > 1, self.rate / bp.where(a > 1, a - 1, 1), bp.inf)

    @property
    def variance(self) -> Tensor:
        a = self.concentration
        safe = bp.where(a > 2, a, 3)
        return bp.where(a > 2, self.rate**2 / ((safe - 1) ** 2 * (safe - 2)), bp.inf)


class Beta(Distribution):
    """The beta distribution: density proportional to x ** (concentration1 - 1) · (1 - x) ** (concentration0 - 1)."""

    arg_constraints = {"concentration1": constraints.positive, "concentration0": constraints.positive}
    support = constraints.unit_interval

    def __init__(self, concentration1: Any, concentration0: Any, validate_args: bool | None = None) -> None:
        self.concentration1, self.concentration0 = tensors("Beta", concentration1=concentration1, concentration0=concentration0)
        for argument in ("concentration1", "concentration0"):
            x = getattr(self, argument)
            self._require(argument, x, x > 0, "positive numbers")
        super().__init__(self.concentration1.shape)

    has_rsample = True

    def rsample(self, sample_shape: Any = (), *, generator: Generator | None = None) -> Tensor:
        shape = self._shape(sample_shape)
        a, b = (log_gamma_rsample(x, shape, generator) for x in (self.concentration1, self.concentration0))
        return self._inside(bp.sigmoid(a - b))

    def _inside(self, x: Tensor) -> Tensor:
        return between_zero_and_one(x)

    def log_prob(self, value: Any) -> Tensor:
        x = self._number(value, self.concentration1)
        within = (x > 0) & (x < 1)
        safe = bp.where(within, x, 0.5)
        parts = bp.stack([safe, 1 - safe], axis=-1), bp.stack([bp.log(safe), bp.log1p(-safe)], axis=-1)
        found = bp.where(within, log_dirichlet(self._concentrations(), *parts), self._at_edges(x))
        return self._supported(x, (x >= 0) & (x <= 1), "numbers from 0 to 1", found)

    def _concentrations(self):
        return bp.stack([self.concentration1, self.concentration0], axis=-1)

    def _at_edges(self, x):
        """The logarithm of the density at 0 and at 1."""
        a = bp.where(x < 0.5, self.concentration1, self.concentration0)
        return bp.where(a == 1, -log_beta(self.concentration1, self.concentration0), bp.where(a < 1, bp.inf, -bp.inf))

    def entropy(self) -> Tensor:
        return dirichlet_entropy(self._concentrations())

    @property
    def mean(self) -> Tensor:
        return self.concentration1 / (self.concentration1 + self.concentration0)

    @property
    def variance(self) -> Tensor:
        total = self.concentration1 + self.concentration0
        return self.concentration1 * self.concentration0 / (total**2 * (total + 1))


class Dirichlet(Distribution):
    """The distribution over probabilities (*, n) with density proportional to the product of x ** (concentration - 1)."""

    arg_constraints = {"concentration": constraints.independent(constraints.positive, 1)}
    support = constraints.simplex

    def __init__(self, concentration: Any, validate_args: bool | None = None) -> None:
        (self.concentration,) = tensors("Dirichlet", concentration=concentration)
        if self.concentration.ndim < 1:
            raise bp.ShapeError("Dirichlet: argument concentration: found a tensor without axes, expected (*, n)")
        self._require("concentration", self.concentration, self.concentration > 0, "positive numbers")
        self._tolerance = max(1e-5, 4 * bp.finfo(self.concentration.dtype).eps)  # of the sum of a value
        super().__init__(self.concentration.shape[:-1], self.concentration.shape[-1:])

    has_rsample = True

    def rsample(self, sample_shape: Any = (), *, generator: Generator | None = None) -> Tensor:
        return self._inside(bp.softmax(log_gamma_rsample(self.concentration, self._shape(sample_shape), generator), axis=-1))

    def _inside(self, x: Tensor) -> Tensor:
        return above_zero(x)

    def log_prob(self, value: Any) -> Tensor:
        x = self._number(value, self.concentration)
        a = self.concentration
        inside = bp.all(x >= 0, axis=-1) & (bp.abs(bp.sum(x, axis=-1) - 1) < self._tolerance)
        zero = x <= 0
        safe = bp.where(zero, 1, x)
        at_zero = bp.sum(bp.where(zero & (a != 1), bp.where(a < 1, bp.inf, -bp.inf), 0), axis=-1)
        found = log_dirichlet(a, safe, bp.log(safe)) + at_zero
        return self._supported(inside, inside, "probabilities whose sum is 1", found)

    def entropy(self) -> Tensor:
        return dirichlet_entropy(self.concentration)

    @property
    def mean(self) -> Tensor:
        return self.concentration / bp.sum(self.concentration, axis=-1, keepdims=True)

    @property
    def variance(self) -> Tensor:
        total = bp.sum(self.concentration, axis=-1, keepdims=True)
        return self.mean * (1 - self.mean) / (total + 1)


class FisherSnedecor(Distribution):
    """The F distribution: of the ratio of two chi-squared variables of df1 and df2 degrees of freedom, each divided by its degrees."""

    arg_constraints = {"df1": constraints.positive, "df2": constraints.positive}
    support = constraints.positive
    has_rsample = True

    def __init__(self, df1: Any, df2: Any, validate_args: bool | None = None) -> None:
        self.df1, self.df2 = tensors("FisherSnedecor", df1=df1, df2=df2)
        self._require("df1", self.df1, self.df1 > 0, "positive numbers")
        self._require("df2", self.df2, self.df2 > 0, "positive numbers")
        super().__init__(self.df1.shape)

    def rsample(self, sample_shape: Any = (), *, generator: Generator | None = None) -> Tensor:
        shape = self._shape(sample_shape)
        first, second = (log_gamma_rsample(x / 2, shape, generator) - bp.log(x) for x in (self.df1, self.df2))
        return self._inside(bp.exp(first - second))

    def _inside(self, x: Tensor) -> Tensor:
        return above_zero(x)

    def log_prob(self, value: Any) -> Tensor:
        x = self._number(value, self.df1)
        odds = self.df1 / self.df2 * bp.where(x > 0, x, 1)  # of a beta variable of half the degrees
        below, above = bp.log(odds) - bp.log1p(odds), -bp.log1p(odds)
        parts = bp.stack([odds / (1 + odds), 1 / (1 + odds)], axis=-1), bp.stack([below, above], axis=-1)
        density = log_dirichlet(bp.stack([self.df1, self.df2], axis=-1) / 2, *parts)
        return self._supported(x, x > 0, "positive numbers", density + bp.log(self.df1 / self.df2) + 2 * above)

    @property
    def mean(self) -> Tensor:
        return bp.where(self.df2 > 2, self.df2 / bp.where(self.df2 > 2, self.df2 - 2, 1), bp.nan)

    @property
    def variance(self) -> Tensor:
        df1, df2 = self.df1, bp.where(self.df2 > 4, self.df2, 5)
        return bp.where(self.df2 > 4, 2 * df2**2 * (df1 + df2 - 2) / (df1 * (df2 - 2) ** 2 * (df2 - 4)), bp.nan)


class StudentT(Distribution):
    """Student's distribution of df degrees of freedom, moved to loc and stretched by scale."""

    arg_constraints = {"df": constraints.positive, "loc": constraints.real, "scale": constraints.positive}
    support = constraints.real

    def __init__(self, df: Any, loc: Any = 0.0, scale: Any = 1.0, validate_args: bool | None = None) -> None:
        self.df, self.loc, self.scale = tensors("StudentT", df=df, loc=loc, scale=scale)
        self._require("df", self.df, self.df > 0, "positive numbers")
        self._require("loc", self.loc, is_number(self.loc), "numbers")
        self._require("scale", self.scale, self.scale > 0, "positive numbers")
        super().__init__(self.df.shape)

    has_rsample = True

    def rsample(self, sample_shape: Any = (), *, generator: Generator | None = None) -> Tensor:
        shape, df = self._shape(sample_shape), self.df
        z = normal(shape, df, generator)
        return self.loc + self.scale * z * bp.exp(0.5 * (bp.log(df / 2) - log_gamma_rsample(df / 2, shape, generator)))

    def log_prob(self, value: Any) -> Tensor:
        x = self._number(value, self.df)
        z, df = (x - self.loc) / self.scale, self.df
        norm = bp.log(self.scale) + 0.5 * bp.log(df) + log_beta(df / 2, bp.full_like(df, 0.5))
        return self._supported(x, is_number(x), "numbers", -0.5 * (df + 1) * log1p_square(z / bp.sqrt(df)) - norm)

    def entropy(self) -> Tensor:
        df = self.df
        slopes = bp.log1p(1 / df) + 1 / (df * (df + 1)) + stirling_slope(0.5 * (df + 1)) - stirling_slope(0.5 * df)
        return bp.log(self.scale) + 0.5 * (df + 1) * slopes + 0.5 * bp.log(df) + log_beta(0.5 * df, bp.full_like(df, 0.5))

    @property
    def mean(self) -> Tensor:
        return bp.where(self.df > 1, self.loc, bp.nan)

    @property
    def variance(self) -> Tensor:
        df = self.df
        found = self.scale**2 * df / bp.where(df > 2, df - 2, 1)
        return bp.where(df > 2, found, bp.where(df > 1, bp.inf, bp.nan))
