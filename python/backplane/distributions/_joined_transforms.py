"""Transforms that are made of others or of distributions, and those that have no inverse."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import backplane as bp
from backplane import Tensor

from . import constraints
from ._constraints import Constraint
from ._distribution import Distribution
from ._transforms import ComposeTransform, Transform, sum_last

__all__ = [
    "AbsTransform", "CatTransform", "CumulativeDistributionTransform", "IndependentTransform", "ReshapeTransform", "SoftmaxTransform", "StackTransform",
    "identity_transform",
]  # fmt: skip

identity_transform = ComposeTransform([])


class AbsTransform(Transform):
    """|x|. The inverse is the positive one; the function has no log_abs_det_jacobian."""

    codomain = constraints.nonnegative
    bijective = False

    def _call(self, x: Tensor) -> Tensor:
        return bp.abs(x)

    def _inverse(self, y: Tensor) -> Tensor:
        return y


class SoftmaxTransform(Transform):
    """softmax(x) over the last axis. The inverse is log(y), one of many; the function has no log_abs_det_jacobian."""

    codomain = constraints.simplex
    event_dim_in = event_dim_out = 1
    bijective = False

    def _call(self, x: Tensor) -> Tensor:
        return bp.softmax(x, axis=-1)

    def _inverse(self, y: Tensor) -> Tensor:
        return bp.log(y)


class CumulativeDistributionTransform(Transform):
    """The cumulative distribution function of a distribution of numbers, from the numbers to (0, 1)."""

    codomain = constraints.unit_interval
    sign = 1

    def __init__(self, distribution: Distribution, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.distribution = distribution

    @property
    def domain(self) -> Constraint:
        return self.distribution.support

    def _call(self, x: Tensor) -> Tensor:
        return self.distribution.cdf(x)

    def _inverse(self, y: Tensor) -> Tensor:
        return self.distribution.icdf(y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return self.distribution.log_prob(x)

    def _inside(self, y: Tensor) -> Tensor | None:
        return (y >= 0) & (y <= 1)

    def __repr__(self) -> str:
        return f"CumulativeDistributionTransform({self.distribution!r})"


class IndependentTransform(Transform):
    """Another transform, whose values have reinterpreted_batch_ndims more axes: the logarithm is summed over them."""

    def __init__(self, base_transform: Transform, reinterpreted_batch_ndims: int, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.base_transform, self.reinterpreted_batch_ndims = base_transform, int(reinterpreted_batch_ndims)
        self.event_dim_in = base_transform.event_dim_in + self.reinterpreted_batch_ndims
        self.event_dim_out = base_transform.event_dim_out + self.reinterpreted_batch_ndims

    @property
    def domain(self) -> Constraint:
        return constraints.independent(self.base_transform.domain, self.reinterpreted_batch_ndims)

    @property
    def codomain(self) -> Constraint:
        return constraints.independent(self.base_transform.codomain, self.reinterpreted_batch_ndims)

    @property
    def sign(self) -> Any:
        return self.base_transform.sign

    def _call(self, x: Tensor) -> Tensor:
        return self.base_transform(x)

    def _inverse(self, y: Tensor) -> Tensor:
        return self.base_transform._before(y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return sum_last(self.base_transform.log_abs_det_jacobian(x, y), self.reinterpreted_batch_ndims)

    def forward_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        return self.base_transform.forward_shape(shape)

    def inverse_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        return self.base_transform.inverse_shape(shape)

    def _inside(self, y: Tensor) -> Tensor | None:
        return None if self.base_transform._remembered(y) is not None else self.base_transform._inside(y)

    def _renamed(self, y: Tensor, other: Tensor) -> Tensor:
        super()._renamed(y, other)
        return self.base_transform._renamed(y, other)

    def __repr__(self) -> str:
        return f"IndependentTransform({self.base_transform!r}, {self.reinterpreted_batch_ndims})"


class ReshapeTransform(Transform):
    """The last axes, of shape in_shape, as axes of shape out_shape. Errors: ShapeError for another number of elements."""

    def __init__(self, in_shape: Sequence[int], out_shape: Sequence[int], cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.in_shape, self.out_shape = tuple(in_shape), tuple(out_shape)
        if _count(self.in_shape) != _count(self.out_shape):
            raise bp.ShapeError(f"ReshapeTransform: found in_shape {self.in_shape} and out_shape {self.out_shape}, expected equal numbers of elements")
        self.event_dim_in, self.event_dim_out = len(self.in_shape), len(self.out_shape)

    def _call(self, x: Tensor) -> Tensor:
        return x.reshape(self.forward_shape(x.shape))

    def _inverse(self, y: Tensor) -> Tensor:
        return y.reshape(self.inverse_shape(y.shape))

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return bp.zeros(x.shape[: x.ndim - len(self.in_shape)], dtype=x.dtype, device=x.device)

    def forward_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        return _with_end(shape, self.in_shape, self.out_shape)

    def inverse_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        return _with_end(shape, self.out_shape, self.in_shape)

    def __repr__(self) -> str:
        return f"ReshapeTransform({self.in_shape}, {self.out_shape})"


def _count(shape):
    total = 1
    for size in shape:
        total *= size
    return total


def _with_end(shape, before, after):
    shape, split = tuple(shape), len(shape) - len(before)
    if split < 0 or shape[split:] != before:
        raise bp.ShapeError(f"ReshapeTransform: found shape {shape}, expected (*, {', '.join(map(str, before))})")
    return (*shape[:split], *after)


class CatTransform(Transform):
    """Each transform on its part of axis dim, of the length that lengths names; by default one element each."""

    def __init__(self, tseq: Sequence[Transform], dim: int = 0, lengths: Sequence[int] | None = None, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.transforms, self.dim = list(tseq), dim
        self.lengths = [1] * len(self.transforms) if lengths is None else list(lengths)
        if len(self.lengths) != len(self.transforms):
            raise bp.ArgumentValueError(f"CatTransform: argument lengths: found {len(self.lengths)} numbers, expected one per transform, {len(self.transforms)}")
        self.event_dim_in = self.event_dim_out = max(part.event_dim_in for part in self.transforms)

    @property
    def domain(self) -> Constraint:
        return constraints.cat([part.domain for part in self.transforms], self.dim, self.lengths)

    @property
    def codomain(self) -> Constraint:
        return constraints.cat([part.codomain for part in self.transforms], self.dim, self.lengths)

    def _parts(self, x: Tensor) -> list[Tensor]:
        if x.shape[self.dim] != sum(self.lengths):
            raise bp.ShapeError(f"CatTransform: found {x.shape[self.dim]} elements on axis {self.dim}, expected {sum(self.lengths)}")
        places = [sum(self.lengths[: i + 1]) for i in range(len(self.lengths) - 1)]
        return list(bp.split(x, places, axis=self.dim))

    def _joined(self, parts: list[Tensor]) -> Tensor:
        return bp.concat(parts, axis=self.dim)

    def _call(self, x: Tensor) -> Tensor:
        return self._joined([part(piece) for part, piece in zip(self.transforms, self._parts(x))])

    def _inverse(self, y: Tensor) -> Tensor:
        return self._joined([part._inverse(piece) for part, piece in zip(self.transforms, self._parts(y))])

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        before, after = self._parts(x), self._parts(y)
        found = [
            sum_last(part.log_abs_det_jacobian(a, b), self.event_dim_in - part.event_dim_in) for part, a, b in zip(self.transforms, before, after)
        ]
        dim = self.dim - x.ndim if self.dim >= 0 else self.dim
        dim += self.event_dim_in  # an axis of one event is summed already
        return bp.concat(found, axis=dim) if dim < 0 else sum(found[1:], found[0])

    def _inside(self, y: Tensor) -> Tensor | None:
        found = [part._inside(piece) for part, piece in zip(self.transforms, self._parts(y))]
        if all(x is None for x in found):
            return None
        pieces = self._parts(y)
        return self._joined([bp.ones_like(piece, dtype=bp.bool) if x is None else bp.broadcast_to(x, piece.shape) for x, piece in zip(found, pieces)])

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.transforms!r}, dim={self.dim})"


class StackTransform(CatTransform):
    """Each transform on its slice of axis dim, which has one slice per transform."""

    def __init__(self, tseq: Sequence[Transform], dim: int = 0, cache_size: int = 0) -> None:
        super().__init__(tseq, dim, cache_size=cache_size)

    @property
    def domain(self) -> Constraint:
        return constraints.stack([part.domain for part in self.transforms], self.dim)

    @property
    def codomain(self) -> Constraint:
        return constraints.stack([part.codomain for part in self.transforms], self.dim)

    def _parts(self, x: Tensor) -> list[Tensor]:
        if x.shape[self.dim] != len(self.transforms):
            raise bp.ShapeError(f"StackTransform: found {x.shape[self.dim]} slices on axis {self.dim}, expected {len(self.transforms)}")
        return [bp.squeeze(piece, axis=self.dim) for piece in bp.split(x, len(self.transforms), axis=self.dim)]

    def _joined(self, parts: list[Tensor]) -> Tensor:
        return bp.stack(parts, axis=self.dim)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        before, after = self._parts(x), self._parts(y)
        dim = self.dim - x.ndim if self.dim >= 0 else self.dim
        return bp.stack([part.log_abs_det_jacobian(a, b) for part, a, b in zip(self.transforms, before, after)], axis=dim)
