"""Constraints of vectors and matrices, and constraints for the parts of a tensor."""

from __future__ import annotations

import functools
import operator
from collections.abc import Sequence

import backplane as bp
from backplane import Tensor

from ._constraints import Constraint, UpTo, all_last, require_constraint


class OneHot(Constraint):
    """Vectors (*, n) of zeros and one 1."""

    is_discrete = True
    event_dim = 1

    def check(self, value: Tensor) -> Tensor:
        return bp.all((value == 0) | (value == 1), axis=-1) & (bp.sum(value, axis=-1) == 1)


class Simplex(Constraint):
    """Probabilities (*, n): numbers of at least 0 whose sum is 1."""

    event_dim = 1

    def check(self, value: Tensor) -> Tensor:
        tolerance = max(1e-5, 4 * bp.finfo(value.dtype).eps)
        return bp.all(value >= 0, axis=-1) & (bp.abs(bp.sum(value, axis=-1) - 1) < tolerance)


class Multinomial(UpTo):
    """Counts (*, n): integers of at least 0 whose sum is at most upper_bound."""

    is_discrete = True
    event_dim = 1

    def check(self, value: Tensor) -> Tensor:
        return bp.all((value >= 0) & (value % 1 == 0), axis=-1) & (bp.sum(value, axis=-1) <= self.upper_bound)


class _OfMatrices(Constraint):
    """Matrices (*, n, n); others do not fulfil the constraint."""

    event_dim = 2

    def check(self, value: Tensor) -> Tensor:
        if value.ndim < 2:
            raise bp.ShapeError(f"{self!r}.check: found a value of {value.ndim} axes, expected matrices (*, n, n)")
        if value.shape[-1] != value.shape[-2]:
            return bp.zeros(value.shape[:-2], dtype=bp.bool, device=value.device)
        return self._check(value)

    def _check(self, value: Tensor) -> Tensor:
        return bp.ones(value.shape[:-2], dtype=bp.bool, device=value.device)


class Square(_OfMatrices):
    """Square matrices."""


class LowerTriangular(_OfMatrices):
    """Lower triangular matrices."""

    def _check(self, value: Tensor) -> Tensor:
        return all_last(bp.tril(value) == value, 2)


class LowerCholesky(_OfMatrices):
    """Lower triangular matrices with a positive diagonal."""

    def _check(self, value: Tensor) -> Tensor:
        return all_last(bp.tril(value) == value, 2) & bp.all(bp.linalg.diagonal(value) > 0, axis=-1)


class CorrCholesky(LowerCholesky):
    """Lower triangular matrices with a positive diagonal and rows of length 1."""

    def _check(self, value: Tensor) -> Tensor:
        tolerance = 10 * value.shape[-1] * bp.finfo(value.dtype).eps
        return super()._check(value) & bp.all(bp.abs(bp.linalg.vector_norm(value, axis=-1) - 1) <= tolerance, axis=-1)


class Symmetric(_OfMatrices):
    """Symmetric matrices."""

    def _check(self, value: Tensor) -> Tensor:
        return all_last(bp.isclose(value, value.mT, atol=1e-6), 2)


class PositiveSemidefinite(Symmetric):
    """Symmetric matrices without a negative eigenvalue."""

    def _check(self, value: Tensor) -> Tensor:
        return super()._check(value) & bp.all(bp.linalg.eigvalsh(value) >= 0, axis=-1)


class PositiveDefinite(Symmetric):
    """Symmetric matrices whose eigenvalues are positive."""

    def _check(self, value: Tensor) -> Tensor:
        return super()._check(value) & bp.all(bp.linalg.eigvalsh(value) > 0, axis=-1)


class _Parts(Constraint):
    """One constraint for each part of axis dim."""

    def __init__(self, cseq: Sequence[Constraint], dim: int) -> None:
        self.cseq, self.dim = [require_constraint(type(self).__name__.lower(), c) for c in cseq], dim

    @property
    def is_discrete(self) -> bool:
        return any(c.is_discrete for c in self.cseq)

    @property
    def event_dim(self) -> int:
        return max(c.event_dim for c in self.cseq)


class Cat(_Parts):
    """A constraint for each part of axis dim; the parts have the lengths of `lengths`, by default 1. Errors: ArgumentValueError, ShapeError."""

    def __init__(self, cseq: Sequence[Constraint], dim: int = 0, lengths: Sequence[int] | None = None) -> None:
        super().__init__(cseq, dim)
        self.lengths = [1] * len(self.cseq) if lengths is None else list(lengths)
        if len(self.lengths) != len(self.cseq):
            raise bp.ArgumentValueError(f"cat: argument lengths: found {len(self.lengths)} numbers, expected one per constraint, {len(self.cseq)}")

    def check(self, value: Tensor) -> Tensor:
        if not -value.ndim <= self.dim < value.ndim or value.shape[self.dim] != sum(self.lengths):
            raise bp.ShapeError(f"cat.check: found a value of shape {tuple(value.shape)}, expected {sum(self.lengths)} elements on axis {self.dim}")
        places = [sum(self.lengths[: i + 1]) for i in range(len(self.lengths) - 1)]
        parts = bp.split(value, places, axis=self.dim)
        found = [all_last(c.check(part), self.event_dim - c.event_dim) for c, part in zip(self.cseq, parts)]
        axis = (self.dim - value.ndim if self.dim >= 0 else self.dim) + self.event_dim
        return bp.concat(found, axis=axis) if axis < 0 else functools.reduce(operator.and_, found)  # an axis of one event is reduced already


class Stack(_Parts):
    """A constraint for each slice of axis dim. Errors: ShapeError for another number of slices."""

    def __init__(self, cseq: Sequence[Constraint], dim: int = 0) -> None:
        super().__init__(cseq, dim)

    @property
    def event_dim(self) -> int:
        return super().event_dim + (1 if self.dim + super().event_dim < 0 else 0)

    def check(self, value: Tensor) -> Tensor:
        if not -value.ndim <= self.dim < value.ndim or value.shape[self.dim] != len(self.cseq):
            raise bp.ShapeError(f"stack.check: found a value of shape {tuple(value.shape)}, expected {len(self.cseq)} slices on axis {self.dim}")
        slices = bp.split(value, len(self.cseq), axis=self.dim)
        found = [c.check(bp.squeeze(part, axis=self.dim)) for c, part in zip(self.cseq, slices)]
        return bp.stack(found, axis=min(self.dim % value.ndim, found[0].ndim))
