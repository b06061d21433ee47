"""LowRankMultivariateNormal: normal vectors whose covariance is a matrix of low rank and a diagonal."""

from __future__ import annotations

import math
from typing import Any

import backplane as bp
from backplane import Generator, Tensor

from . import constraints
from ._distribution import HALF_LOG_2PI, Distribution, is_number, normal, tensors
from ._transforms import broadcast

__all__ = ["LowRankMultivariateNormal"]


class LowRankMultivariateNormal(Distribution):
    """The normal distribution of vectors with covariance cov_factor · cov_factorᵀ + diag(cov_diag).

    loc (*, n), cov_factor (*, n, k), cov_diag (*, n), positive. The work of log_prob grows with n · k², and no n x n matrix is made.
    """

    arg_constraints = {"loc": constraints.real_vector, "cov_factor": constraints.independent(constraints.real, 2), "cov_diag": constraints.independent(constraints.positive, 1)}
    support = constraints.real_vector
    has_rsample = True

    def __init__(self, loc: Any, cov_factor: Any, cov_diag: Any, validate_args: bool | None = None) -> None:
        name = "LowRankMultivariateNormal"
        (factor,) = tensors(name, cov_factor=cov_factor)
        loc, diag = (x if isinstance(x, Tensor) else bp.asarray(x, dtype=factor.dtype, device=factor.device) for x in (loc, cov_diag))
        n = loc.shape[-1] if loc.ndim else None
        if n is None or factor.ndim < 2 or factor.shape[-2] != n or diag.ndim < 1 or diag.shape[-1] != n:
            raise bp.ShapeError(
                f"{name}: found loc {tuple(loc.shape)}, cov_factor {tuple(factor.shape)} and cov_diag {tuple(diag.shape)}, expected (*, n), (*, n, k) and (*, n)"
            )
        self._require("loc", loc, is_number(loc), "numbers")
        self._require("cov_diag", diag, diag > 0, "positive numbers")
        batch = broadcast(loc.shape[:-1], factor.shape[:-2], diag.shape[:-1])
        self.loc, self.cov_diag = (bp.broadcast_to(x, (*batch, n)) for x in (loc, diag))
        self.cov_factor = bp.broadcast_to(factor, (*batch, *factor.shape[-2:]))
        self._scaled = self.cov_factor / bp.sqrt(self.cov_diag)[..., None]
        eye = bp.eye(factor.shape[-1], dtype=factor.dtype, device=factor.device)
        self._root = bp.linalg.cholesky(eye + self._scaled.mT @ self._scaled)  # of the capacitance matrix
        super().__init__(batch, (n,))

    @property
    def covariance_matrix(self) -> Tensor:
        n = self.event_shape[0]
        return self.cov_factor @ self.cov_factor.mT + self.cov_diag[..., None] * bp.eye(n, dtype=self.loc.dtype, device=self.loc.device)

    @property
    def precision_matrix(self) -> Tensor:
        part = bp.linalg.solve_triangular(self._root, self._scaled.mT, upper=False)
        n = self.event_shape[0]
        scale = 1 / bp.sqrt(self.cov_diag)
        return scale[..., None] * (bp.eye(n, dtype=self.loc.dtype, device=self.loc.device) - part.mT @ part) * scale[..., None, :]

    @property
    def scale_tril(self) -> Tensor:
        n = self.event_shape[0]
        inner = bp.eye(n, dtype=self.loc.dtype, device=self.loc.device) + self._scaled @ self._scaled.mT
        return bp.sqrt(self.cov_diag)[..., None] * bp.linalg.cholesky(inner)

    def rsample(self, sample_shape: Any = (), *, generator: Generator | None = None) -> Tensor:
        shape = self._shape(sample_shape)
        few = normal((*shape[:-1], self.cov_factor.shape[-1]), self.loc, generator)
        each = normal(shape, self.loc, generator)
        return self.loc + (self.cov_factor @ few[..., None])[..., 0] + bp.sqrt(self.cov_diag) * each

    def _half_log_det(self):
        return bp.sum(bp.log(bp.linalg.diagonal(self._root)), axis=-1) + 0.5 * bp.sum(bp.log(self.cov_diag), axis=-1)

    def _squared_distance(self, away: Tensor) -> Tensor:
        """awayᵀ · covariance⁻¹ · away (*): the least |y - B c|² + |c|², whose terms do not cancel."""
        y = (away / bp.sqrt(self.cov_diag))[..., None]
        batch = y.shape[:-2]
        root = bp.broadcast_to(self._root, (*batch, *self._root.shape[-2:]))
        inner = bp.linalg.solve_triangular(root, self._scaled.mT @ y, upper=False)
        c = bp.linalg.solve_triangular(root.mT, inner, upper=True)
        rest = y - self._scaled @ c
        return bp.sum(rest * rest, axis=[-2, -1]) + bp.sum(c * c, axis=[-2, -1])

    def log_prob(self, value: Any) -> Tensor:
        x = self._number(value, self.loc)
        self._require("value", x, is_number(x), "numbers")
        return -0.5 * self._squared_distance(x - self.loc) - self._half_log_det() - self.event_shape[0] * HALF_LOG_2PI

    def entropy(self) -> Tensor:
        return self.event_shape[0] * (0.5 + 0.5 * math.log(2 * math.pi)) + self._half_log_det()

    @property
    def mean(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        return bp.sum(self.cov_factor**2, axis=-1) + self.cov_diag
