"""Distributions over real numbers and vectors, all with samples that carry gradients."""

from __future__ import annotations

import math
from typing import Any

import backplane as bp
from backplane import Generator, Tensor

from . import constraints
from ._constraints import Constraint
from ._distribution import HALF_LOG_2PI, Distribution, above_zero, is_number, normal, open_uniform, tensors, uniform
from ._ratios import log1p_square

__all__ = ["Cauchy", "Exponential", "Gumbel", "HalfNormal", "Laplace", "LogNormal", "MultivariateNormal", "Normal", "Uniform"]


class _LocScale(Distribution):
    """A distribution of loc + scale · z."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        self.loc, self.scale = tensors(type(self).__name__, loc=loc, scale=scale)
        self._require("loc", self.loc, is_number(self.loc), "numbers")
        self._require("scale", self.scale, self.scale > 0, "positive numbers")
        super().__init__(self.loc.shape)

    def _standard(self, shape: tuple[int, ...], generator: Generator | None) -> Tensor:
        raise NotImplementedError

    def rsample(self, sample_shape: Any = (), *, generator: Generator | None = None) -> Tensor:
        return self.loc + self.scale * self._standard(self._shape(sample_shape), generator)

    def _z(self, value: Any) -> Tensor:
        return (value - self.loc) / self.scale

    def _real(self, value: Any, found: Tensor) -> Tensor:
        x = self._number(value, self.loc)
        return self._supported(x, is_number(x), "numbers", found)


class Normal(_LocScale):
    """The normal distribution of this mean (loc) and standard deviation (scale)."""

    def _standard(self, shape, generator):
        return normal(shape, self.loc, generator)

    def log_prob(self, value: Any) -> Tensor:
        z = self._z(value)
        return self._real(value, -0.5 * z * z - bp.log(self.scale) - HALF_LOG_2PI)

    def cdf(self, value: Any) -> Tensor:
        return bp.ndtr(self._z(value))

    def icdf(self, value: Any) -> Tensor:
        return self.loc + self.scale * bp.ndtri(self._number(value, self.loc))

    def entropy(self) -> Tensor:
        return 0.5 + HALF_LOG_2PI + bp.log(self.scale)

    @property
    def mean(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        return self.scale**2


class LogNormal(_LocScale):
    """The distribution of exp(x) for normal x of this mean and standard deviation."""

    support = constraints.positive

    def rsample(self, sample_shape: Any = (), *, generator: Generator | None = None) -> Tensor:
        return self._inside(bp.exp(self.loc + self.scale * normal(self._shape(sample_shape), self.loc, generator)))

    def _inside(self, x: Tensor) -> Tensor:
        return above_zero(x)

    def log_prob(self, value: Any) -> Tensor:
        x = self._number(value, self.loc)
        log = bp.log(bp.where(x > 0, x, 1))
        z = self._z(log)
        return self._supported(x, x > 0, "positive numbers", -0.5 * z * z - bp.log(self.scale) - HALF_LOG_2PI - log)

    def cdf(self, value: Any) -> Tensor:
        x = self._number(value, self.loc)
        return bp.where(x > 0, bp.ndtr(self._z(bp.log(bp.where(x > 0, x, 1)))), 0.0)

    def icdf(self, value: Any) -> Tensor:
        return bp.exp(self.loc + self.scale * bp.ndtri(self._number(value, self.loc)))

    def entropy(self) -> Tensor:
        return 0.5 + HALF_LOG_2PI + bp.log(self.scale) + self.loc

    @property
    def mean(self) -> Tensor:
        return bp.exp(self.loc + self.scale**2 / 2)

    @property
    def variance(self) -> Tensor:
        return bp.expm1(self.scale**2) * bp.exp(2 * self.loc + self.scale**2)


class Laplace(_LocScale):
    """The Laplace distribution: density exp(-|x - loc| / scale) / (2 scale)."""

    def _standard(self, shape, generator):
        u = uniform(shape, self.loc, generator, bp.finfo(self.loc.dtype).eps - 1, 1)
        return -bp.sign(u) * bp.log1p(-bp.abs(u))

    def log_prob(self, value: Any) -> Tensor:
        return self._real(value, -bp.abs(self._z(value)) - bp.log(2 * self.scale))

    def cdf(self, value: Any) -> Tensor:
        z = self._z(value)
        below = z < 0
        return bp.where(below, 0.5 * bp.exp(bp.where(below, z, 0)), 1 - 0.5 * bp.exp(-bp.where(below, 0, z)))

    def icdf(self, value: Any) -> Tensor:
        x = self._number(value, self.loc)
        below = x < 0.5
        tail = bp.log(2 * bp.where(below, x, 1 - x))
        return self.loc + self.scale * bp.where(below, tail, -tail)

    def entropy(self) -> Tensor:
        return 1 + bp.log(2 * self.scale)

    @property
    def mean(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        return 2 * self.scale**2


class Gumbel(_LocScale):
    """The distribution of the maximum of many numbers with exponential tails."""

    def _standard(self, shape, generator):
        return -bp.log(-bp.log(open_uniform(shape, self.loc, generator)))

    def log_prob(self, value: Any) -> Tensor:
        z = self._z(value)
        return self._real(value, -(z + bp.exp(-z)) - bp.log(self.scale))

    def cdf(self, value: Any) -> Tensor:
        return bp.exp(-bp.exp(-self._z(value)))

    def icdf(self, value: Any) -> Tensor:
        return self.loc - self.scale * bp.log(-bp.log(self._number(value, self.loc)))

    def entropy(self) -> Tensor:
        return bp.log(self.scale) + (1 + 0.5772156649015329)

    @property
    def mean(self) -> Tensor:
        return self.loc + self.scale * 0.5772156649015329

    @property
    def variance(self) -> Tensor:
        return self.scale**2 * (math.pi**2 / 6)


def _cauchy_quantile(x: Tensor) -> Tensor:
    """tan(π (x - 1/2)). In the tails, the tangent of the small angle: x - 1/2 loses a small x."""
    is_tail = (x < 0.25) | (x > 0.75)
    small = bp.where(is_tail, bp.where(x < 0.5, x, x - 1), 0.25)
    return bp.where(is_tail, -1 / bp.tan(math.pi * small), bp.tan(math.pi * (bp.where(is_tail, 0.5, x) - 0.5)))


class Cauchy(_LocScale):
    """The Cauchy distribution of this median and half width. Its mean and variance do not exist: NaN."""

    def _standard(self, shape, generator):
        return _cauchy_quantile(open_uniform(shape, self.loc, generator))

    def log_prob(self, value: Any) -> Tensor:
        return self._real(value, -math.log(math.pi) - bp.log(self.scale) - log1p_square(self._z(value)))

    def cdf(self, value: Any) -> Tensor:
        z = self._z(value)
        return bp.atan2(bp.ones_like(z), -z) / math.pi

    def icdf(self, value: Any) -> Tensor:
        return self.loc + self.scale * _cauchy_quantile(self._number(value, self.loc))

    def entropy(self) -> Tensor:
        return math.log(4 * math.pi) + bp.log(self.scale)

    @property
    def mean(self) -> Tensor:
        return bp.full_like(self.loc, bp.nan)

    @property
    def variance(self) -> Tensor:
        return bp.full_like(self.loc, bp.nan)


class HalfNormal(Distribution):
    """The distribution of |x| for normal x of mean 0."""

    arg_constraints = {"scale": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True

    def __init__(self, scale: Any, validate_args: bool | None = None) -> None:
        (self.scale,) = tensors("HalfNormal", scale=scale)
        self._require("scale", self.scale, self.scale > 0, "positive numbers")
        super().__init__(self.scale.shape)

    def rsample(self, sample_shape: Any = (), *, generator: Generator | None = None) -> Tensor:
        return self.scale * bp.abs(normal(self._shape(sample_shape), self.scale, generator))

    def log_prob(self, value: Any) -> Tensor:
        x = self._number(value, self.scale)
        z = x / self.scale
        return self._supported(x, x >= 0, "numbers of at least 0", -0.5 * z * z - bp.log(self.scale) - HALF_LOG_2PI + math.log(2))

    def cdf(self, value: Any) -> Tensor:
        return bp.erf(bp.maximum(self._number(value, self.scale), 0) / (self.scale * math.sqrt(2)))

    def icdf(self, value: Any) -> Tensor:
        return self.scale * math.sqrt(2) * bp.erfinv(self._number(value, self.scale))

    def entropy(self) -> Tensor:
        return 0.5 + HALF_LOG_2PI + bp.log(self.scale) - math.log(2)

    @property
    def mean(self) -> Tensor:
        return self.scale * math.sqrt(2 / math.pi)

    @property
    def variance(self) -> Tensor:
        return self.scale**2 * (1 - 2 / math.pi)


class Exponential(Distribution):
    """The exponential distribution: density rate · exp(-rate · x)."""

    arg_constraints = {"rate": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True

    def __init__(self, rate: Any, validate_args: bool | None = None) -> None:
        (self.rate,) = tensors("Exponential", rate=rate)
        self._require("rate", self.rate, self.rate > 0, "positive numbers")
        super().__init__(self.rate.shape)

    def rsample(self, sample_shape: Any = (), *, generator: Generator | None = None) -> Tensor:
        return -bp.log1p(-uniform(self._shape(sample_shape), self.rate, generator)) / self.rate

    def log_prob(self, value: Any) -> Tensor:
        x = self._number(value, self.rate)
        return self._supported(x, x >= 0, "numbers of at least 0", bp.log(self.rate) - self.rate * x)

    def cdf(self, value: Any) -> Tensor:
        x = self._number(value, self.rate)
        return bp.where(x < 0, 0.0, -bp.expm1(-self.rate * bp.maximum(x, 0)))

    def icdf(self, value: Any) -> Tensor:
        return -bp.log1p(-self._number(value, self.rate)) / self.rate

    def entropy(self) -> Tensor:
        return 1 - bp.log(self.rate)

    @property
    def mean(self) -> Tensor:
        return 1 / self.rate

    @property
    def variance(self) -> Tensor:
        return 1 / self.rate**2


class Uniform(Distribution):
    """The uniform distribution on [low, high)."""

    has_rsample = True

    def __init__(self, low: Any, high: Any, validate_args: bool | None = None) -> None:
        self.low, self.high = tensors("Uniform", low=low, high=high)
        self._require("high", self.high, self.low < self.high, "numbers above low")
        super().__init__(self.low.shape)

    @property
    def arg_constraints(self) -> dict[str, Constraint]:
        return {"low": constraints.less_than(self.high), "high": constraints.greater_than(self.low)}

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self):
        return constraints.interval(self.low, self.high)

    def rsample(self, sample_shape: Any = (), *, generator: Generator | None = None) -> Tensor:
        return self._inside(self.low + (self.high - self.low) * uniform(self._shape(sample_shape), self.low, generator))

    def _inside(self, x: Tensor) -> Tensor:
        return bp.minimum(x, bp.nextafter(bp.stop_gradient(self.high), bp.stop_gradient(self.low)))

    def log_prob(self, value: Any) -> Tensor:
        x = self._number(value, self.low)
        found = bp.where(x < self.high, -bp.log(self.high - self.low), -bp.inf)
        return self._supported(x, (x >= self.low) & (x <= self.high), "numbers from low to high", found)

    def cdf(self, value: Any) -> Tensor:
        return bp.clip((self._number(value, self.low) - self.low) / (self.high - self.low), 0, 1)

    def icdf(self, value: Any) -> Tensor:
        return self.low + self._number(value, self.low) * (self.high - self.low)

    def entropy(self) -> Tensor:
        return bp.log(self.high - self.low)

    @property
    def mean(self) -> Tensor:
        return (self.low + self.high) / 2

    @property
    def variance(self) -> Tensor:
        return (self.high - self.low) ** 2 / 12


class MultivariateNormal(Distribution):
    """The normal distribution of vectors: loc (*, n), and covariance_matrix or its Cholesky factor scale_tril (*, n, n)."""

    arg_constraints = {
        "loc": constraints.real_vector, "covariance_matrix": constraints.positive_definite, "precision_matrix": constraints.positive_definite, "scale_tril": constraints.lower_cholesky,
    }  # fmt: skip
    support = constraints.real_vector
    has_rsample = True

    def __init__(self, loc: Any, covariance_matrix: Tensor | None = None, precision_matrix: Tensor | None = None, scale_tril: Tensor | None = None, validate_args: bool | None = None) -> None:
        given = [x for x in (covariance_matrix, precision_matrix, scale_tril) if x is not None]
        if len(given) != 1:
            raise bp.ArgumentValueError("MultivariateNormal: expected one of covariance_matrix, precision_matrix and scale_tril")
        for argument, x in {"covariance_matrix": covariance_matrix, "precision_matrix": precision_matrix}.items():
            if x is not None:
                self._require(argument, x, bp.isclose(x, x.mT, atol=1e-6), "a symmetric matrix")
        if scale_tril is not None:
            self._require("scale_tril", scale_tril, bp.tril(scale_tril) == scale_tril, "a lower triangular matrix")
            diagonal = bp.linalg.diagonal(scale_tril)
            self._require("scale_tril", diagonal, diagonal > 0, "a positive diagonal")
        if precision_matrix is not None:
            covariance_matrix = bp.linalg.inv(precision_matrix)
        self.scale_tril = scale_tril if scale_tril is not None else bp.linalg.cholesky(covariance_matrix)
        loc = loc if isinstance(loc, Tensor) else bp.asarray(loc, dtype=self.scale_tril.dtype)
        if loc.ndim < 1 or loc.shape[-1] != self.scale_tril.shape[-1]:
            raise bp.ShapeError(f"MultivariateNormal: argument loc: found shape {tuple(loc.shape)} with matrices {tuple(self.scale_tril.shape)}")
        batch = bp.broadcast_shapes(loc.shape[:-1], self.scale_tril.shape[:-2])
        self._require("loc", loc, is_number(loc), "numbers")
        self.loc = bp.broadcast_to(loc, (*batch, loc.shape[-1]))
        self.scale_tril = bp.broadcast_to(self.scale_tril, (*batch, *self.scale_tril.shape[-2:]))
        super().__init__(batch, (loc.shape[-1],))

    @property
    def covariance_matrix(self) -> Tensor:
        return self.scale_tril @ self.scale_tril.mT

    def rsample(self, sample_shape: Any = (), *, generator: Generator | None = None) -> Tensor:
        z = normal(self._shape(sample_shape), self.loc, generator)
        return self.loc + (self.scale_tril @ z[..., None])[..., 0]

    def _half_log_det(self):
        return bp.sum(bp.log(bp.linalg.diagonal(self.scale_tril)), axis=-1)

    def log_prob(self, value: Any) -> Tensor:
        n, value = self.event_shape[0], self._number(value, self.loc)
        difference = value - self.loc
        shape = bp.broadcast_shapes(difference.shape[:-1], self.scale_tril.shape[:-2])
        factor = bp.broadcast_to(self.scale_tril, (*shape, n, n))
        z = bp.linalg.solve_triangular(factor, bp.broadcast_to(difference, (*shape, n))[..., None], upper=False)[..., 0]
        self._require("value", value, is_number(value), "numbers")
        return -0.5 * bp.sum(z * z, axis=-1) - self._half_log_det() - n * HALF_LOG_2PI

    def entropy(self) -> Tensor:
        found = self.event_shape[0] * (0.5 + HALF_LOG_2PI) + self._half_log_det()
        return bp.broadcast_to(found, self.batch_shape)

    @property
    def mean(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        return bp.broadcast_to(bp.sum(self.scale_tril**2, axis=-1), (*self.batch_shape, *self.event_shape))
