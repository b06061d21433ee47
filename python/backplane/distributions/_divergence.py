"""kl_divergence, of the pairs of distributions that have a formula."""

from __future__ import annotations

import backplane as bp
from backplane import Tensor

from ._continuous import Exponential, Laplace, MultivariateNormal, Normal, Uniform
from ._counts import Poisson
from ._discrete import Bernoulli, Categorical
from ._distribution import Distribution, Independent
from ._gamma import Beta, Dirichlet, Gamma

__all__ = ["kl_divergence"]


def _normal(p, q):
    ratio = (p.scale / q.scale) ** 2
    return 0.5 * (ratio + ((p.loc - q.loc) / q.scale) ** 2 - 1 - bp.log(ratio))


def _multivariate(p, q):
    n = p.event_shape[0]
    half = bp.linalg.solve_triangular(q.scale_tril, p.scale_tril, upper=False)
    away = bp.linalg.solve_triangular(q.scale_tril, (p.loc - q.loc)[..., None], upper=False)[..., 0]
    squares = bp.sum(half * half, axis=[-2, -1]) + bp.sum(away * away, axis=-1)
    return 0.5 * (squares - n) + q._half_log_det() - p._half_log_det()


def _bernoulli(p, q):
    a, b = p.probs, q.probs
    return bp.xlogy(a, a) - bp.xlogy(a, b) + bp.xlogy(1 - a, 1 - a) - bp.xlogy(1 - a, 1 - b)


def _categorical(p, q):
    terms = bp.where(p.probs > 0, p.probs * (p.logits - q.logits), 0)
    return bp.sum(terms, axis=-1)


def _exponential(p, q):
    ratio = q.rate / p.rate
    return ratio - 1 - bp.log(ratio)


def _laplace(p, q):
    away = bp.abs(p.loc - q.loc)
    return bp.log(q.scale / p.scale) + away / q.scale + p.scale / q.scale * bp.exp(-away / p.scale) - 1


def _uniform(p, q):
    inside = (q.low <= p.low) & (p.high <= q.high)
    return bp.where(inside, bp.log((q.high - q.low) / (p.high - p.low)), bp.inf)


def _gamma(p, q):
    a, b = p.concentration, q.concentration
    return b * (bp.log(p.rate) - bp.log(q.rate)) + bp.lgamma(b) - bp.lgamma(a) + (a - b) * bp.digamma(a) + (q.rate - p.rate) * (a / p.rate)


def _beta(p, q):
    return _of_concentrations(*(bp.stack([x.concentration1, x.concentration0], axis=-1) for x in (p, q)))


def _dirichlet(p, q):
    return _of_concentrations(*bp.broadcast_arrays(p.concentration, q.concentration))


def _of_concentrations(a, b):
    total = bp.sum(a, axis=-1)
    norm = bp.lgamma(total) - bp.lgamma(bp.sum(b, axis=-1)) + bp.sum(bp.lgamma(b) - bp.lgamma(a), axis=-1)
    return norm + bp.sum((a - b) * (bp.digamma(a) - bp.digamma(total)[..., None]), axis=-1)


def _poisson(p, q):
    return bp.xlogy(p.rate, p.rate) - bp.xlogy(p.rate, q.rate) - (p.rate - q.rate)


_FORMULAS = {Normal: _normal, MultivariateNormal: _multivariate, Bernoulli: _bernoulli, Categorical: _categorical, Exponential: _exponential,
             Laplace: _laplace, Uniform: _uniform, Gamma: _gamma, Beta: _beta, Dirichlet: _dirichlet, Poisson: _poisson}  # fmt: skip


def kl_divergence(p: Distribution, q: Distribution) -> Tensor:
    """The Kullback-Leibler divergence of q from p, per distribution of the batch.

    Errors: ArgumentTypeError for a pair without a formula.
    """
    if isinstance(p, Independent) and isinstance(q, Independent) and p._count == q._count:
        return p._summed(kl_divergence(p.base_dist, q.base_dist))
    if type(p) is not type(q) or type(p) not in _FORMULAS:
        raise bp.ArgumentTypeError(f"kl_divergence: found {type(p).__name__} and {type(q).__name__}, which have no formula. Fix: average p.log_prob - q.log_prob over samples of p")
    return _FORMULAS[type(p)](p, q)
