"""Transforms to triangular and positive definite matrices, to Cholesky factors of correlation matrices, and to vectors whose sum is 1."""

from __future__ import annotations

import math
from collections.abc import Sequence

import backplane as bp
from backplane import Tensor

from . import constraints
from ._transforms import Transform

__all__ = ["CorrCholeskyTransform", "LowerCholeskyTransform", "PositiveDefiniteTransform", "StickBreakingTransform"]


def _with_diagonal(x: Tensor, diagonal: Tensor) -> Tensor:
    """The part of x below the diagonal, with another diagonal."""
    return bp.tril(x, -1) + diagonal[..., None] * bp.eye(x.shape[-1], dtype=x.dtype, device=x.device)


class LowerCholeskyTransform(Transform):
    """Matrices (*, n, n) to lower triangular ones with a positive diagonal: exp of the diagonal; what is above it is left out."""

    event_dim_in = event_dim_out = 2
    codomain = constraints.lower_cholesky

    def _call(self, x: Tensor) -> Tensor:
        return _with_diagonal(x, bp.exp(bp.linalg.diagonal(x)))

    def _inverse(self, y: Tensor) -> Tensor:
        return _with_diagonal(y, bp.log(bp.linalg.diagonal(y)))

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return bp.sum(bp.linalg.diagonal(x), axis=-1)


class PositiveDefiniteTransform(Transform):
    """Matrices (*, n, n) to positive definite ones: l · lᵀ of LowerCholeskyTransform's l."""

    event_dim_in = event_dim_out = 2
    codomain = constraints.positive_definite

    def _call(self, x: Tensor) -> Tensor:
        lower = LowerCholeskyTransform()(x)
        return lower @ lower.mT

    def _inverse(self, y: Tensor) -> Tensor:
        return LowerCholeskyTransform()._inverse(bp.linalg.cholesky(y))

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        n = x.shape[-1]
        counts = bp.arange(n + 1, 1, -1, dtype=x.dtype, device=x.device)  # of l lᵀ, with respect to the lower triangle: Π 2 l_ii ** (n - i)
        return n * math.log(2) + bp.sum(counts * bp.linalg.diagonal(x), axis=-1)


class CorrCholeskyTransform(Transform):
    """n (n - 1) / 2 numbers to the lower Cholesky factor (*, n, n) of a correlation matrix: each row lies on the unit sphere.

    tanh of a number is the share of what the row's earlier elements leave of its length (Stan's reference manual, "Cholesky factors of
    correlation matrices").
    """

    event_dim_in, event_dim_out = 1, 2
    codomain = constraints.corr_cholesky

    def _triangle(self, n: int) -> list[tuple[int, int]]:
        """The places below the diagonal, row by row."""
        return [(i, j) for i in range(n) for j in range(i)]

    def _spread(self, x: Tensor) -> Tensor:
        """The numbers at their places below the diagonal."""
        n = _rows(x.shape[-1])
        places = [x.shape[-1]] * (n * n)  # of the zero behind the numbers
        for k, (i, j) in enumerate(self._triangle(n)):
            places[i * n + j] = k
        padded = bp.concat([x, bp.zeros_like(x[..., :1])], axis=-1)
        return bp.take(padded, bp.asarray(places, device=x.device), axis=-1).reshape((*x.shape[:-1], n, n))

    def _call(self, x: Tensor) -> Tensor:
        shares = self._spread(bp.tanh(x))
        eye = bp.eye(shares.shape[-1], dtype=x.dtype, device=x.device)
        return (shares + eye) * bp.exp(self._log_left(x))

    def _log_left(self, x: Tensor) -> Tensor:
        """The logarithm of the length that is left before each element of a row."""
        used = bp.cumulative_sum(self._spread(_log_sech(x)), axis=-1)
        return bp.concat([bp.zeros_like(used[..., :1]), used[..., :-1]], axis=-1)

    def _inverse(self, y: Tensor) -> Tensor:
        n = y.shape[-1]
        used = bp.cumulative_sum(bp.tril(y, -1) ** 2, axis=-1)
        before = bp.concat([bp.zeros_like(used[..., :1]), used[..., :-1]], axis=-1)
        index = bp.asarray([i * n + j for i, j in self._triangle(n)], dtype=bp.int64, device=y.device)
        elements, earlier = (bp.take(t.reshape((*y.shape[:-2], n * n)), index, axis=-1) for t in (y, before))
        return bp.atanh(elements / bp.sqrt(1 - earlier))

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return bp.sum(bp.tril(self._log_left(x), -1), axis=[-2, -1]) + 2 * bp.sum(_log_sech(x), axis=-1)

    def forward_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        n = _rows(shape[-1])
        return (*shape[:-1], n, n)

    def inverse_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        if shape[-1] != shape[-2]:
            raise bp.ShapeError(f"CorrCholeskyTransform: found shape {tuple(shape)}, expected square matrices (*, n, n)")
        return (*shape[:-2], shape[-1] * (shape[-1] - 1) // 2)


def _log_sech(x):
    """The logarithm of 1 / cosh(x), which is sqrt(1 - tanh(x)²)."""
    size = bp.abs(x)
    return math.log(2) - size - bp.log1p(bp.exp(-2 * size))


def _rows(count):
    n = round((1 + math.sqrt(1 + 8 * count)) / 2)
    if n * (n - 1) // 2 != count:
        raise bp.ShapeError(f"CorrCholeskyTransform: found {count} numbers on the last axis, expected n (n - 1) / 2 of them")
    return n


class StickBreakingTransform(Transform):
    """n numbers to n + 1 positive ones whose sum is 1: the i-th takes the share sigmoid(x[i] - log(n - i)) of the rest."""

    codomain = constraints.simplex
    event_dim_in = event_dim_out = 1

    def _shifts(self, count: int, like: Tensor) -> Tensor:
        return bp.log(bp.arange(count, 0, -1, dtype=like.dtype, device=like.device))

    def _call(self, x: Tensor) -> Tensor:
        shares = bp.sigmoid(x - self._shifts(x.shape[-1], x))
        one = bp.ones_like(x[..., :1])
        left = bp.concat([one, bp.cumulative_prod(1 - shares, axis=-1)], axis=-1)
        return bp.concat([shares, one], axis=-1) * left

    def _inverse(self, y: Tensor) -> Tensor:
        left = bp.flip(bp.cumulative_sum(bp.flip(y[..., 1:], axis=-1), axis=-1), axis=-1)
        return bp.log(y[..., :-1]) - bp.log(left) + self._shifts(y.shape[-1] - 1, y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        shifted = x - self._shifts(x.shape[-1], x)
        return bp.sum(bp.log(y[..., :-1]) - bp.softplus(shifted), axis=-1)

    def forward_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        return (*shape[:-1], shape[-1] + 1)

    def inverse_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        return (*shape[:-1], shape[-1] - 1)

    def _inside(self, y: Tensor) -> Tensor | None:
        tolerance = max(1e-4, 4 * bp.finfo(y.dtype).eps)
        return bp.all(y > 0, axis=-1, keepdims=True) & (bp.abs(bp.sum(y, axis=-1, keepdims=True) - 1) < tolerance)
