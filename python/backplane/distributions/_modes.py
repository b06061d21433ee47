"""Modes of distributions, and all values of those that have finitely many: tables by kind."""

from __future__ import annotations

import backplane as bp

from ._circular import VonMises
from ._continuous import Cauchy, Exponential, Gumbel, HalfNormal, Laplace, LogNormal, MultivariateNormal, Normal, Uniform
from ._counts import Binomial, NegativeBinomial, Poisson
from ._discrete import Bernoulli, Categorical, Geometric
from ._distribution import MODES, VALUES, Independent
from ._gamma import Beta, Dirichlet, FisherSnedecor, Gamma, InverseGamma, StudentT
from ._low_rank import LowRankMultivariateNormal
from ._matrices import Wishart
from ._powers import GeneralizedPareto, HalfCauchy, Kumaraswamy, Pareto, Weibull
from ._relaxed import OneHotCategorical

__all__ = []


def _nan_unless(good, found):
    return bp.where(good, found, bp.nan)


def _location(one):
    return one.loc


def _zero(one):
    return bp.zeros_like(one.mean)


def _beta(one):
    a, b = one.concentration1, one.concentration0
    inside = (a > 1) & (b > 1)
    found = bp.where(inside, (a - 1) / bp.where(inside, a + b - 2, 1), bp.where(a > b, 1.0, 0.0))
    return _nan_unless(~((a == b) & (a <= 1)), bp.where(~inside & (a >= 1) & (b >= 1), bp.where(a > 1, 1.0, 0.0), found))


def _dirichlet(one):
    a = one.concentration
    inside = bp.all(a > 1, axis=-1, keepdims=True)
    rest = bp.sum(a, axis=-1, keepdims=True) - a.shape[-1]
    corner = bp.one_hot(bp.argmax(a, axis=-1), a.shape[-1]).astype(a.dtype)  # where only one element is above 1
    single = bp.sum((a > 1).astype(a.dtype), axis=-1, keepdims=True) == 1
    return bp.where(inside, (a - 1) / bp.where(inside, rest, 1), bp.where(single, corner, bp.nan))


def _kumaraswamy(one):
    a, b = one.concentration1, one.concentration0
    inside = (a >= 1) & (b >= 1) & ((a > 1) | (b > 1))
    log = bp.log(bp.where(inside, a, 2) - 1) - bp.log(bp.where(inside, a * b, 2) - 1)
    return _nan_unless(inside, bp.exp(log / a))


def _weibull(one):
    k = one.concentration
    above = k > 1
    return bp.where(above, one.scale * bp.where(above, (k - 1) / k, 1.0) ** (1 / k), 0.0)


def _categorical(one):
    return bp.argmax(one.probs, axis=-1)


def _wishart(one):
    n = one.event_shape[0]
    factor = _nan_unless(one.df >= n + 1, one.df - n - 1)
    return factor[..., None, None] * one.covariance_matrix


MODES.update({
    Normal: _location, Laplace: _location, Gumbel: _location, Cauchy: _location, StudentT: _location, VonMises: _location,
    MultivariateNormal: _location, LowRankMultivariateNormal: _location, GeneralizedPareto: _location,
    HalfNormal: _zero, HalfCauchy: lambda one: bp.zeros_like(one.scale), Exponential: _zero, Geometric: _zero,
    LogNormal: lambda one: bp.exp(one.loc - one.scale**2),
    Uniform: lambda one: bp.full_like(one.low, bp.nan),
    Gamma: lambda one: bp.maximum(one.concentration - 1, 0) / one.rate,
    InverseGamma: lambda one: one.rate / (one.concentration + 1),
    FisherSnedecor: lambda one: _nan_unless(one.df1 > 2, (one.df1 - 2) / one.df1 * one.df2 / (one.df2 + 2)),
    Pareto: lambda one: one.scale, Beta: _beta, Dirichlet: _dirichlet, Kumaraswamy: _kumaraswamy, Weibull: _weibull,
    Bernoulli: lambda one: _nan_unless(one.probs != 0.5, (one.probs > 0.5).astype(one.probs.dtype)),
    Poisson: lambda one: bp.floor(one.rate),
    Binomial: lambda one: bp.minimum(bp.floor((one.total_count + 1) * one.probs), one.total_count),
    NegativeBinomial: lambda one: bp.maximum(bp.floor((one.total_count - 1) * one.probs / (1 - one.probs)), 0),
    Categorical: _categorical,
    OneHotCategorical: lambda one: bp.one_hot(_categorical(one), one.event_shape[0]).astype(one.probs.dtype),
    Independent: lambda one: one.base_dist.mode, Wishart: _wishart,
})  # fmt: skip


def _numbers_below(count, like, dtype):
    return bp.arange(count, dtype=dtype, device=like.device)


def _binomial_values(one):
    most = one.total_count.max()
    if not bool((one.total_count == most).all()):
        raise NotImplementedError("Binomial: enumerate_support is not defined where total_count differs within the batch")
    return _numbers_below(int(most.item()) + 1, one.probs, one.probs.dtype)


VALUES.update({
    Bernoulli: lambda one: _numbers_below(2, one.probs, one.probs.dtype), Binomial: _binomial_values,
    Categorical: lambda one: _numbers_below(one.probs.shape[-1], one.probs, bp.int64),
    OneHotCategorical: lambda one: bp.eye(one.event_shape[0], dtype=one.probs.dtype, device=one.probs.device),
})  # fmt: skip
