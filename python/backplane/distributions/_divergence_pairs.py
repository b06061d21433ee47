"""kl_divergence of two distributions of different kinds: minus the entropy of p, and the mean of -log q over p.

The mean needs few facts of p: its mean and variance, and the means of log x, log(1 - x) and exp(-x / s).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import backplane as bp
from backplane import Tensor

from ._continuous import Exponential, Gumbel, Laplace, Normal, Uniform
from ._continuous_bernoulli import ContinuousBernoulli
from ._counts import Binomial, Poisson
from ._discrete import Bernoulli
from ._distribution import HALF_LOG_2PI
from ._divergence import EULER, register_kl
from ._gamma import Beta, Gamma
from ._powers import Pareto
from ._ratios import log_beta

__all__ = []

_ON_A_LINE, _ABOVE_ZERO, _ON_A_UNIT = (Gumbel, Laplace, Normal), (Exponential, Gamma), (Beta, ContinuousBernoulli)


def _bounds(one: Any) -> tuple[Any, Any]:
    """The ends of the values that a distribution has."""
    if isinstance(one, Uniform):
        return one.low, one.high
    if isinstance(one, Pareto):
        return one.scale, bp.inf
    return (0.0, 1.0) if isinstance(one, _ON_A_UNIT) else (0.0, bp.inf) if isinstance(one, _ABOVE_ZERO) else (-bp.inf, bp.inf)


def _mean_x_log_x(low, high):
    """The mean of log x over low to high, for low >= 0."""
    return (bp.xlogy(high, high) - bp.xlogy(low, low)) / (high - low) - 1


def _mean_log(p: Any) -> Tensor:
    if isinstance(p, Beta):
        return bp.digamma(p.concentration1) - bp.digamma(p.concentration1 + p.concentration0)
    if isinstance(p, Exponential):
        return -EULER - bp.log(p.rate)
    if isinstance(p, Gamma):
        return bp.digamma(p.concentration) - bp.log(p.rate)
    if isinstance(p, Pareto):
        return bp.log(p.scale) + 1 / p.alpha
    inside = p.low >= 0
    return _mean_x_log_x(bp.where(inside, p.low, 0), bp.where(inside, p.high, 1))


def _mean_falling_exp(p: Any, q: Gumbel) -> Tensor:
    """The mean of exp(-(x - loc) / scale)."""
    s, loc = q.scale, q.loc
    if isinstance(p, Normal):
        return bp.exp((loc - p.loc) / s + 0.5 * (p.scale / s) ** 2)
    if isinstance(p, Exponential):
        return bp.exp(loc / s) * p.rate * s / (p.rate * s + 1)
    if isinstance(p, Gamma):
        return bp.exp(loc / s - p.concentration * bp.log1p(1 / (p.rate * s)))
    return s / (p.high - p.low) * (bp.exp((loc - p.low) / s) - bp.exp((loc - p.high) / s))


def _to_normal(p, q):
    return HALF_LOG_2PI + bp.log(q.scale) + 0.5 * (p.variance + (p.mean - q.loc) ** 2) / q.scale**2


def _to_exponential(p, q):
    return q.rate * p.mean - bp.log(q.rate)


def _to_gamma(p, q):
    a = q.concentration
    return bp.lgamma(a) - a * bp.log(q.rate) - (a - 1) * _mean_log(p) + q.rate * p.mean


def _to_gumbel(p, q):
    return bp.log(q.scale) + (p.mean - q.loc) / q.scale + _mean_falling_exp(p, q)


def _to_uniform(p, q):
    return bp.log(q.high - q.low)


def _to_pareto(p, q):
    return (q.alpha + 1) * _mean_log(p) - bp.log(q.alpha) - q.alpha * bp.log(q.scale)


def _to_continuous_bernoulli(p, q):
    return -q.logits * p.mean - q._log_norm()


def _to_beta(p, q):
    inside = (p.low >= 0) & (p.high <= 1)
    low, high = bp.where(inside, p.low, 0), bp.where(inside, p.high, 1)
    a, b = q.concentration1, q.concentration0
    return log_beta(a, b) - (a - 1) * _mean_x_log_x(low, high) - (b - 1) * _mean_x_log_x(1 - high, 1 - low)


def _to_laplace(p, q):
    away = p.loc - q.loc
    z = away / p.scale
    return bp.log(2 * q.scale) + (math.sqrt(2 / math.pi) * p.scale * bp.exp(-0.5 * z * z) + away * bp.erf(z / math.sqrt(2))) / q.scale


_KINDS: dict[type, tuple[Callable[[Any, Any], Tensor], tuple[type, ...]]] = {
    Normal: (_to_normal, (Beta, ContinuousBernoulli, Exponential, Gamma, Gumbel, Laplace, Pareto, Uniform)),
    Exponential: (_to_exponential, (Beta, ContinuousBernoulli, Gamma, Pareto, Uniform)),
    Gamma: (_to_gamma, (Beta, Exponential, Pareto, Uniform)),
    Gumbel: (_to_gumbel, (Exponential, Gamma, Normal, Uniform)),
    Uniform: (_to_uniform, (Beta, ContinuousBernoulli)),
    Pareto: (_to_pareto, (Uniform,)),
    ContinuousBernoulli: (_to_continuous_bernoulli, (Beta, Uniform)),
    Beta: (_to_beta, (Uniform,)),
    Laplace: (_to_laplace, (Normal,)),
}


def _register(kind, mean, others):
    def formula(p, q):
        (low, high), (least, most) = _bounds(p), _bounds(q)
        found = mean(p, q) - p.entropy()
        inside = bp.logical_and(bp.asarray(low >= least), bp.asarray(high <= most))
        return bp.where(inside, bp.where(bp.isnan(found) & (p.mean == bp.inf), bp.inf, found), bp.inf)

    for other in others:
        register_kl(other, kind)(formula)


for _kind, (_mean, _others) in _KINDS.items():
    _register(_kind, _mean, _others)


def _infinite(p, q):
    return bp.broadcast_to(bp.asarray(bp.inf, dtype=p.mean.dtype, device=p.mean.device), bp.broadcast_shapes(p.batch_shape, q.batch_shape))


for _wider, _narrower in (
    (_ON_A_LINE, (*_ABOVE_ZERO, *_ON_A_UNIT, Pareto, Uniform)), (_ABOVE_ZERO, (*_ON_A_UNIT, Pareto, Uniform)), (_ON_A_UNIT, (Pareto,)),
    ((Pareto,), (*_ON_A_UNIT, Uniform)), ((Poisson,), (Bernoulli, Binomial)),
):  # fmt: skip
    for _p in _wider:
        for _q in _narrower:
            register_kl(_p, _q)(_infinite)


@register_kl(Bernoulli, Poisson)
def _bernoulli_poisson(p, q):
    return q.rate - bp.xlogy(p.probs, q.rate) - p.entropy()
