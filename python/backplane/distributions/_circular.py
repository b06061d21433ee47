"""VonMises, the distribution of angles."""

from __future__ import annotations

import math
from typing import Any

import backplane as bp
from backplane import Generator, Tensor

from . import constraints
from ._distribution import Distribution, is_number, open_uniform, tensors

__all__ = ["VonMises"]

_ROUNDS = 32  # of candidates: each is accepted with a probability above 0.65
_LARGE = 300.0  # from here on, six terms are exact to float64
_TAIL = (1 / 2, 1 / 8, 1 / 8, 25 / 128, 13 / 32, 1073 / 1024)


def _shortfall(k: Tensor) -> Tensor:
    """1 - I1(k) / I0(k)."""
    is_large = k > _LARGE
    large, small = bp.where(is_large, k, _LARGE), bp.where(is_large, 1.0, k)
    total: Any = 0.0
    for factor in reversed(_TAIL):
        total = (total + factor) / large
    return bp.where(is_large, total, (bp.i0e(small) - bp.i1e(small)) / bp.i0e(small))


class VonMises(Distribution):
    """The von Mises distribution of angles in radians: density proportional to exp(concentration · cos(x - loc)).

    Samples lie from -π to π (Best and Fisher, 1979). mean is loc, the circular mean, and variance the circular one, 1 - E cos(x - loc).
    """

    arg_constraints = {"loc": constraints.real, "concentration": constraints.positive}
    support = constraints.real

    def __init__(self, loc: Any, concentration: Any, validate_args: bool | None = None) -> None:
        self.loc, self.concentration = tensors("VonMises", loc=loc, concentration=concentration)
        self._require("loc", self.loc, is_number(self.loc), "numbers")
        self._require("concentration", self.concentration, self.concentration > 0, "positive numbers")
        super().__init__(self.loc.shape)

    def sample(self, sample_shape: Any = (), *, generator: Generator | None = None) -> Tensor:
        shape = self._shape(sample_shape)
        like = self.loc
        k = bp.broadcast_to(bp.stop_gradient(self.concentration), shape).astype(bp.float64)
        tau = 1 + bp.sqrt(1 + 4 * k * k)
        rho = (tau - bp.sqrt(2 * tau)) / (2 * k)
        is_tiny = k < 1e-5  # where rho loses its digits
        above = bp.where(is_tiny, 1 / k + k - 1, (1 - rho) ** 2 / bp.where(is_tiny, 1.0, 2 * rho))  # r - 1
        z, u = (open_uniform((_ROUNDS, *shape), like, generator).astype(bp.float64) for _ in range(2))
        z = bp.cos(math.pi * z)
        away = above * (1 - z) / (1 + above + z)  # 1 - cos of the angle
        c = k * (above + away)
        good = (c * (2 - c) > u) | (bp.log(c / u) + 1 - c >= 0)
        first = bp.argmax(good.astype(bp.int32), axis=0)[None]
        away = bp.take_along_axis(away, first, axis=0)[0]
        angle = 2 * bp.asin(bp.sqrt(bp.clip(away / 2, 0, 1)))
        angle = bp.where(open_uniform(shape, like, generator) < 0.5, -angle, angle) + bp.stop_gradient(self.loc).astype(bp.float64)
        return bp.stop_gradient((bp.remainder(angle + math.pi, 2 * math.pi) - math.pi).astype(like.dtype))

    def log_prob(self, value: Any) -> Tensor:
        x = self._number(value, self.loc)
        half = bp.sin((x - self.loc) / 2)
        found = -2 * self.concentration * half * half - math.log(2 * math.pi) - bp.log(bp.i0e(self.concentration))
        return self._supported(x, is_number(x), "numbers", found)

    def entropy(self) -> Tensor:
        return math.log(2 * math.pi) + bp.log(bp.i0e(self.concentration)) + self.concentration * _shortfall(self.concentration)

    @property
    def mean(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        return _shortfall(self.concentration)
