"""ContinuousBernoulli, the distribution on [0, 1] with an exponential density (Loaiza-Ganem and Cunningham, 2019)."""

from __future__ import annotations

import math
from typing import Any

import backplane as bp
from backplane import Generator, Tensor

from . import constraints
from ._discrete import _given
from ._distribution import Distribution, uniform
from ._ratios import log1mexp

__all__ = ["ContinuousBernoulli"]

_TERMS = 10  # of power series in h², for |h| < 1


def _polynomial(square, factor):
    """factor(0) + factor(1) · square + …"""
    total: Any = 0.0
    for k in range(_TERMS, -1, -1):
        total = total * square + factor(k)
    return total


def _split(logits):
    """Is h = logits / 2 near 0, and h for the formulas near and far."""
    h = logits / 2
    near = bp.abs(h) < 1
    return near, bp.where(near, h, 0.5), bp.where(near, 2.0, h)


def _excess(square):
    """(sinh(h) / h - 1) / h²."""
    return _polynomial(square, lambda k: 1 / math.factorial(2 * k + 3))


def log_sinhc(logits: Tensor) -> Tensor:
    """log(sinh(h) / h), of h = logits / 2."""
    near, h, far = _split(logits)
    size = bp.abs(far)
    return bp.where(near, bp.log1p(h * h * _excess(h * h)), size + log1mexp(-2 * size) - bp.log(2 * size))


class ContinuousBernoulli(Distribution):
    """The density on [0, 1] proportional to probs ** x · (1 - probs) ** (1 - x); logits: log(probs / (1 - probs)).

    probs of 0 and 1 are moved inwards by the precision of the dtype, as in PyTorch. lims has no effect: no formula is unstable near 1/2.
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.unit_interval
    has_rsample = True

    def __init__(self, probs: Any = None, logits: Any = None, lims: tuple[float, float] = (0.499, 0.501), validate_args: bool | None = None) -> None:
        given = _given(self, probs, logits)
        if logits is None:
            eps = bp.finfo(given.dtype).eps
            self.probs = bp.clip(given, eps, 1 - eps)
            self.logits = bp.log(self.probs) - bp.log1p(-self.probs)
        else:
            self.logits, self.probs = given, bp.sigmoid(given)
        super().__init__(given.shape)

    def _log_norm(self):
        """The logarithm of the normalising factor of exp(logits · x)."""
        return -self.logits / 2 - log_sinhc(self.logits)

    def rsample(self, sample_shape: Any = (), *, generator: Generator | None = None) -> Tensor:
        return self.icdf(uniform(self._shape(sample_shape), self.logits, generator))

    def _inside(self, x: Tensor) -> Tensor:
        return bp.clip(x, 0, 1)

    def log_prob(self, value: Any) -> Tensor:
        x = self._number(value, self.logits)
        return self._supported(x, (x >= 0) & (x <= 1), "numbers from 0 to 1", self.logits * x + self._log_norm())

    def _exponent(self):
        """Are the logits so near 0 that series are used, and logits for the other formulas."""
        flat = bp.abs(self.logits) < 1e-3
        return flat, bp.where(flat, 1.0, self.logits)

    def cdf(self, value: Any) -> Tensor:
        x = bp.clip(self._number(value, self.logits), 0, 1)
        flat, slope = self._exponent()
        falling = -bp.abs(slope)
        ratio = bp.expm1(falling * x) / bp.expm1(falling) * bp.exp(bp.where(slope > 0, falling * (1 - x), 0))
        t = self.logits
        series = x * (1 + t * (x - 1) / 2 + t * t * (x - 1) * (2 * x - 1) / 12 + t**3 * x * (x - 1) ** 2 / 24)
        return bp.where(flat, series, ratio)

    def icdf(self, value: Any) -> Tensor:
        p = self._number(value, self.logits)
        flat, slope = self._exponent()
        is_steep = slope > 60  # where exp(slope) may overflow, and 1 is nothing beside it
        steep = bp.softplus(bp.where(is_steep, slope, 60) + bp.log(bp.where(is_steep & (p > 0), p, 1)))
        other = bp.log1p(p * bp.expm1(bp.where(is_steep, 1, slope)))
        found = bp.where(is_steep & (p > 0), steep, other) / slope
        t = self.logits
        series = p * (1 + t * (1 - p) / 2 + t * t * (1 - p) * (1 - 2 * p) / 6 + t**3 * (1 - p) * (1 - 6 * p + 6 * p * p) / 24)
        return bp.where(flat, series, found)

    def entropy(self) -> Tensor:
        return -self._log_norm() - self.logits * self.mean

    @property
    def mean(self) -> Tensor:
        near, h, far = _split(self.logits)
        ratio = h * _polynomial(h * h, lambda k: (2 * k + 2) / math.factorial(2 * k + 3)) / (1 + h * h * _excess(h * h))
        return 0.5 + bp.where(near, ratio, 1 / bp.tanh(far) - 1 / far) / 2

    @property
    def variance(self) -> Tensor:
        near, h, far = _split(self.logits)
        excess = _excess(h * h)
        near_zero = excess * (2 + h * h * excess) / (1 + h * h * excess) ** 2
        size = bp.abs(far)
        sinh = 2 * bp.exp(-size - log1mexp(-2 * size))  # 1 / sinh
        return bp.where(near, near_zero, 1 / (far * far) - sinh * sinh) / 4
