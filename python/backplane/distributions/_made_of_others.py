"""Distributions that are made of others: of one, through invertible functions, and of several, as a mixture."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import backplane as bp
from backplane import Generator, Tensor

from . import constraints
from ._continuous import Normal
from ._discrete import Categorical
from ._distribution import Distribution
from ._matrix_transforms import StickBreakingTransform
from ._transforms import ComposeTransform, Transform, broadcast, sum_last

__all__ = ["LogisticNormal", "MixtureSameFamily", "TransformedDistribution"]


class TransformedDistribution(Distribution):
    """The distribution of transform(x), where x has the base distribution.

    transforms: a Transform, or several that are applied one after the other.
    Errors: ArgumentTypeError for what is not a transform; ShapeError for a base distribution with fewer axes than the transform takes.

    Example:
        >>> d = bp.distributions
        >>> lognormal = d.TransformedDistribution(d.Normal(0.0, 1.0), d.ExpTransform())
        >>> round(lognormal.log_prob(2.0).item(), 4)
        -1.8523
    """

    def __init__(self, base_distribution: Distribution, transforms: Transform | Sequence[Transform], validate_args: bool | None = None) -> None:
        parts = [transforms] if isinstance(transforms, Transform) else list(transforms)
        for part in parts:
            if not isinstance(part, Transform):
                raise bp.ArgumentTypeError(f"TransformedDistribution: argument transforms: found {type(part).__name__}, expected a Transform")
        self.base_dist, self.transforms = base_distribution, parts
        self._whole = ComposeTransform(parts)
        self.has_rsample = base_distribution.has_rsample
        base = (*base_distribution.batch_shape, *base_distribution.event_shape)
        if len(base) < self._whole.event_dim_in:
            raise bp.ShapeError(
                f"TransformedDistribution: argument base_distribution: found samples of shape {base}, expected at least {self._whole.event_dim_in} axes"
            )
        shape = self._whole.forward_shape(base)
        own = len(base_distribution.event_shape)
        self._base_event = max(self._whole.event_dim_in, own)
        event = self._base_event + self._whole.event_dim_out - self._whole.event_dim_in
        self._is_whole = tuple(self._whole.inverse_shape(shape)) == base  # else the transform broadcasts, and samples need the larger shape
        split = len(shape) - event
        super().__init__(shape[:split], shape[split:])

    @constraints.dependent_property(is_discrete=False)
    def support(self):
        if not self.transforms:
            return self.base_dist.support
        last = self.transforms[-1].codomain
        more = len(self.event_shape) - last.event_dim
        return constraints.independent(last, more) if more > 0 else last

    def _base_sample(self, draw: Any, sample_shape: Any, generator: Generator | None) -> Tensor:
        if not self._is_whole:
            raise bp.ShapeError(
                f"TransformedDistribution: found a transform that broadcasts samples to {(*self.batch_shape, *self.event_shape)}; "
                "expected a base distribution of this shape, whose draws differ"
            )
        return draw(sample_shape, generator=generator)

    def rsample(self, sample_shape: Any = (), *, generator: Generator | None = None) -> Tensor:
        return self._whole(self._base_sample(self.base_dist.rsample, sample_shape, generator))

    def sample(self, sample_shape: Any = (), *, generator: Generator | None = None) -> Tensor:
        with bp.no_grad():
            y = self._whole(self._base_sample(self.base_dist.sample, sample_shape, generator))
            return self._whole._renamed(y, bp.stop_gradient(y))

    def _value(self, value: Any) -> Tensor:
        return self._number(value, any_tensor(self.base_dist))

    def _rises(self) -> Tensor:
        """1 where the transforms rise, -1 where they fall."""
        if self.event_shape:
            raise NotImplementedError(f"{type(self).__name__}: cdf and icdf are not defined, since a value is a vector")
        return bp.asarray(self._whole.sign)

    def cdf(self, value: Any) -> Tensor:
        y, rises = self._value(value), self._rises()
        inside = self._whole._inside(y)
        safe = y if inside is None else bp.where(inside, y, self._whole(bp.zeros_like(y)))
        below = self.base_dist.cdf(self._whole._before(safe))
        if inside is None:
            return bp.where(rises > 0, below, 1 - below)
        above = safe < y  # beyond the values of the transform, on the upper side
        return bp.where(inside, bp.where(rises > 0, below, 1 - below), above.astype(below.dtype))

    def icdf(self, value: Any) -> Tensor:
        p = self._value(value)
        return self._whole(self.base_dist.icdf(bp.where(self._rises() > 0, p, 1 - p)))

    def log_prob(self, value: Any) -> Tensor:
        y = self._value(value)
        inside = self._whole._inside(y)
        kept = y
        if inside is not None:
            if not self._require("value", y, bp.broadcast_to(inside, y.shape), "a value of the transform"):
                y = bp.where(inside, y, self._whole(bp.zeros(self._whole.inverse_shape(y.shape), dtype=y.dtype, device=y.device)))
        x = self._whole._before(y)
        slope = sum_last(self._whole.log_abs_det_jacobian(x, y), self._base_event - self._whole.event_dim_in)
        density = sum_last(self.base_dist.log_prob(x), self._base_event - len(self.base_dist.event_shape)) - slope
        if inside is None or kept is y:
            return density
        event = len(self.event_shape)
        everywhere = bp.broadcast_to(inside, y.shape)
        return bp.where(bp.all(everywhere, axis=list(range(-event, 0))) if event else everywhere, density, -bp.inf)


def any_tensor(one: Any) -> Tensor:
    """A floating tensor that a distribution, or one that it is made of, has as a parameter."""
    for value in vars(one).values():
        if isinstance(value, Tensor) and "floating" in value.dtype.kind:
            return value
        if isinstance(value, Distribution):
            return any_tensor(value)
    raise bp.ArgumentTypeError(f"{type(one).__name__}: found no floating parameter; give values as tensors")


class LogisticNormal(TransformedDistribution):
    """Probabilities (*, n + 1) made of normal numbers (*, n) of this mean (loc) and standard deviation (scale), by StickBreakingTransform."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.simplex

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        normal = Normal(loc, scale, validate_args=validate_args)
        super().__init__(normal if normal.batch_shape else Normal(normal.loc[None], normal.scale[None], validate_args=validate_args), StickBreakingTransform())

    @property
    def loc(self) -> Tensor:
        return self.base_dist.loc  # type: ignore[attr-defined]

    @property
    def scale(self) -> Tensor:
        return self.base_dist.scale  # type: ignore[attr-defined]


class MixtureSameFamily(Distribution):
    """A mixture: the last axis of the component distribution's batch is the component, which mixture_distribution chooses.

    Errors: ArgumentTypeError if mixture_distribution is not a Categorical; ShapeError for another number of components.

    Example:
        >>> d = bp.distributions
        >>> two = d.MixtureSameFamily(d.Categorical(bp.asarray([0.3, 0.7])), d.Normal(bp.asarray([-1.0, 1.0]), bp.ones(2)))
        >>> two.mean
        tensor(0.4)
    """

    def __init__(self, mixture_distribution: Categorical, component_distribution: Distribution, validate_args: bool | None = None) -> None:
        if not isinstance(mixture_distribution, Categorical):
            raise bp.ArgumentTypeError(
                f"MixtureSameFamily: argument mixture_distribution: found {type(mixture_distribution).__name__}, expected a Categorical"
            )
        batch = component_distribution.batch_shape
        count = mixture_distribution.probs.shape[-1]
        if not batch or batch[-1] != count:
            raise bp.ShapeError(
                f"MixtureSameFamily: argument component_distribution: found a batch of shape {batch}, expected {count} components on the last axis"
            )
        self.mixture_distribution, self.component_distribution = mixture_distribution, component_distribution
        super().__init__(broadcast(batch[:-1], mixture_distribution.batch_shape), component_distribution.event_shape)

    @constraints.dependent_property
    def support(self):
        return constraints.MixtureSameFamilyConstraint(self.component_distribution.support)

    def _weights(self) -> Tensor:
        probs = self.mixture_distribution.probs
        return probs.reshape((*probs.shape, *[1] * len(self.event_shape)))

    def _axis(self) -> int:
        return -1 - len(self.event_shape)

    @property
    def mean(self) -> Tensor:
        return bp.sum(self._weights() * self.component_distribution.mean, axis=self._axis())

    @property
    def variance(self) -> Tensor:
        """The mean of the variances, and the variance of the means."""
        apart = self.component_distribution.mean - bp.expand_dims(self.mean, axis=self._axis())
        return bp.sum(self._weights() * (self.component_distribution.variance + apart**2), axis=self._axis())

    def log_prob(self, value: Any) -> Tensor:
        x = self._number(value, self.component_distribution.mean)
        event = len(self.event_shape)
        own = bp.expand_dims(x, axis=x.ndim - event)
        probs = self.mixture_distribution.probs
        return bp.logsumexp(self.component_distribution.log_prob(own) + bp.log(probs), axis=-1)

    def cdf(self, value: Any) -> Tensor:
        """The mixture's probability of numbers up to value. Errors: NotImplementedError where the components have none, or values are vectors."""
        if self.event_shape:
            raise NotImplementedError("MixtureSameFamily: cdf is not defined, since a value is a vector")
        x = self._number(value, self.mixture_distribution.probs)
        return bp.sum(self.mixture_distribution.probs * self.component_distribution.cdf(x[..., None]), axis=-1)

    def sample(self, sample_shape: Any = (), *, generator: Generator | None = None) -> Tensor:
        with bp.no_grad():
            drawn = self.component_distribution.sample(sample_shape, generator=generator)
            chosen = self.mixture_distribution.sample(sample_shape, generator=generator)
            given = (sample_shape,) if hasattr(sample_shape, "__index__") else tuple(sample_shape)
            chosen = bp.broadcast_to(chosen, (*given, *self.batch_shape))
            drawn = bp.broadcast_to(drawn, (*given, *self.batch_shape, self.mixture_distribution.probs.shape[-1], *self.event_shape))
            index = chosen.reshape((*chosen.shape, 1, *[1] * len(self.event_shape)))
            index = bp.broadcast_to(index, (*chosen.shape, 1, *self.event_shape))
            return bp.stop_gradient(bp.squeeze(bp.take_along_axis(drawn, index, axis=self._axis()), axis=self._axis()))
