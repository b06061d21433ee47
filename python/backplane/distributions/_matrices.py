"""Distributions over matrices: Wishart, and LKJCholesky, the factors of random correlation matrices."""

from __future__ import annotations

import math
from typing import Any

import backplane as bp
from backplane import Generator, Tensor

from . import constraints
from ._constraints import Constraint
from ._continuous import MultivariateNormal
from ._distribution import Distribution, normal, tensors
from ._gamma import Beta, log_gamma_rsample
from ._transforms import broadcast

__all__ = ["LKJCholesky", "Wishart"]


def _halves(like: Tensor, count: int) -> Tensor:
    """0, 1/2, 1, …"""
    return bp.arange(count, dtype=like.dtype, device=like.device) / 2


def _log_multigamma(a: Tensor, count: int) -> Tensor:
    """The logarithm of the multivariate gamma function of dimension count."""
    return count * (count - 1) / 4 * math.log(math.pi) + bp.sum(bp.lgamma(a[..., None] - _halves(a, count)), axis=-1)


def _log_diagonal(root: Tensor) -> Tensor:
    return bp.sum(bp.log(bp.linalg.diagonal(root)), axis=-1)


class Wishart(Distribution):
    """The distribution of Σ z zᵀ over df normal vectors z, for real df above n - 1: positive definite matrices (*, n, n).

    df (*), and one of covariance_matrix, precision_matrix and scale_tril (*, n, n), of the vectors. Samples come from Bartlett's decomposition.
    """

    support = constraints.positive_definite
    has_rsample = True

    def __init__(self, df: Any, covariance_matrix: Tensor | None = None, precision_matrix: Tensor | None = None, scale_tril: Tensor | None = None, validate_args: bool | None = None) -> None:
        given = [x for x in (covariance_matrix, precision_matrix, scale_tril) if x is not None]
        if len(given) != 1 or given[0].ndim < 2 or given[0].shape[-1] != given[0].shape[-2]:
            raise bp.ArgumentValueError("Wishart: expected one of covariance_matrix, precision_matrix and scale_tril, square matrices (*, n, n)")
        n = given[0].shape[-1]
        zero = bp.zeros((n,), dtype=given[0].dtype, device=given[0].device)
        root = MultivariateNormal(zero, covariance_matrix, precision_matrix, scale_tril, validate_args=validate_args).scale_tril
        df = df if isinstance(df, Tensor) else bp.asarray(df, dtype=root.dtype, device=root.device)
        batch = broadcast(df.shape, root.shape[:-2])
        self._require("df", df, df > n - 1, f"numbers above {n - 1}")
        self.df, self.scale_tril = bp.broadcast_to(df, batch), bp.broadcast_to(root, (*batch, n, n))
        super().__init__(batch, (n, n))

    @property
    def arg_constraints(self) -> dict[str, Constraint]:
        matrices = {"covariance_matrix": constraints.positive_definite, "precision_matrix": constraints.positive_definite, "scale_tril": constraints.lower_cholesky}
        return {**matrices, "df": constraints.greater_than(self.event_shape[0] - 1)}

    @property
    def covariance_matrix(self) -> Tensor:
        return self.scale_tril @ self.scale_tril.mT

    @property
    def precision_matrix(self) -> Tensor:
        return bp.linalg.inv(self.covariance_matrix)

    def rsample(self, sample_shape: Any = (), *, generator: Generator | None = None) -> Tensor:
        shape, n = self._shape(sample_shape), self.event_shape[0]
        a = bp.broadcast_to(self.df[..., None] / 2 - _halves(self.df, n), shape[:-1])
        diagonal = bp.exp(0.5 * (math.log(2) + log_gamma_rsample(a, shape[:-1], generator)))
        eye = bp.eye(n, dtype=self.df.dtype, device=self.df.device)
        factor = self.scale_tril @ (bp.tril(normal(shape, self.df, generator), -1) + diagonal[..., None] * eye)
        return factor @ factor.mT

    def _log_norm(self):
        n = self.event_shape[0]
        return self.df * (n * math.log(2) / 2 + _log_diagonal(self.scale_tril)) + _log_multigamma(self.df / 2, n)

    def log_prob(self, value: Any) -> Tensor:
        x, n = self._number(value, self.df), self.event_shape[0]
        self._require("value", x, bp.isclose(x, x.mT, rtol=1e-4, atol=1e-6), "symmetric matrices")
        root = bp.linalg.cholesky(x)
        shape = broadcast(root.shape, self.scale_tril.shape)
        half = bp.linalg.solve_triangular(bp.broadcast_to(self.scale_tril, shape), bp.broadcast_to(root, shape), upper=False)
        return (self.df - n - 1) * _log_diagonal(root) - 0.5 * bp.sum(half * half, axis=[-2, -1]) - self._log_norm()

    def entropy(self) -> Tensor:
        n, df = self.event_shape[0], self.df
        log_det = bp.sum(bp.digamma(df[..., None] / 2 - _halves(df, n)), axis=-1) + n * math.log(2) + 2 * _log_diagonal(self.scale_tril)
        return self._log_norm() - 0.5 * (df - n - 1) * log_det + 0.5 * n * df

    @property
    def mean(self) -> Tensor:
        return self.df[..., None, None] * self.covariance_matrix

    @property
    def variance(self) -> Tensor:
        covariance = self.covariance_matrix
        diagonal = bp.linalg.diagonal(covariance)
        return self.df[..., None, None] * (covariance**2 + diagonal[..., :, None] * diagonal[..., None, :])


class LKJCholesky(Distribution):
    """Lower Cholesky factors (*, dim, dim) of correlation matrices with density proportional to det ** (concentration - 1).

    concentration (*), positive; 1 is uniform over correlation matrices. Samples by the onion method (Lewandowski, Kurowicka and Joe, 2009).
    """

    arg_constraints = {"concentration": constraints.positive}
    support = constraints.corr_cholesky
    has_rsample = True

    def __init__(self, dim: int, concentration: Any = 1.0, validate_args: bool | None = None) -> None:
        if dim < 2:
            raise bp.ArgumentValueError(f"LKJCholesky: argument dim: found {dim}, expected an int of at least 2")
        self.dim = int(dim)
        (self.concentration,) = tensors("LKJCholesky", concentration=concentration)
        self._require("concentration", self.concentration, self.concentration > 0, "positive numbers")
        self._tolerance = max(1e-4, 4 * bp.finfo(self.concentration.dtype).eps)  # of the length of a row
        super().__init__(self.concentration.shape, (self.dim, self.dim))

    def rsample(self, sample_shape: Any = (), *, generator: Generator | None = None) -> Tensor:
        shape, n, like = self._shape(sample_shape), self.dim, self.concentration
        i = bp.arange(1, n, dtype=like.dtype, device=like.device)
        square = Beta(i / 2, like[..., None] + (n - 1 - i) / 2).rsample(sample_shape, generator=generator)  # of the row's length left of the diagonal
        direction = bp.tril(normal((*shape[:-2], n - 1, n), like, generator))
        direction = direction / bp.linalg.vector_norm(direction, axis=-1, keepdims=True)
        first = bp.broadcast_to(bp.eye(1, n, dtype=like.dtype, device=like.device), (*shape[:-2], 1, n))
        diagonal = bp.sqrt(1 - square)[..., None] * bp.eye(n - 1, n, 1, dtype=like.dtype, device=like.device)
        return bp.concat([first, bp.sqrt(square)[..., None] * direction + diagonal], axis=-2)

    def log_prob(self, value: Any) -> Tensor:
        x, n, c = self._number(value, self.concentration), self.dim, self.concentration
        diagonal = bp.linalg.diagonal(x)
        length = bp.linalg.vector_norm(x, axis=-1)
        inside = bp.all(bp.tril(x) == x, axis=[-2, -1]) & bp.all((diagonal > 0) & (bp.abs(length - 1) < self._tolerance), axis=-1)
        powers = 2 * (c[..., None] - 1) + bp.arange(n - 2, -1, -1, dtype=c.dtype, device=c.device)
        whole = c + 0.5 * (n - 1)
        norm = (n - 1) * (math.log(math.pi) / 2 - bp.lgamma(whole)) + _log_multigamma(whole - 0.5, n - 1)
        found = bp.sum(powers * bp.log(bp.where(inside[..., None], diagonal, 1)[..., 1:]), axis=-1) - norm
        return self._supported(inside, inside, "Cholesky factors of correlation matrices", found)
