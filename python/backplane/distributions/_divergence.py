"""kl_divergence, of the pairs of distributions that have a formula."""

from __future__ import annotations

import backplane as bp
from backplane import Tensor

from ._continuous import Exponential, HalfNormal, Laplace, LogNormal, MultivariateNormal, Normal, Uniform
from ._counts import Poisson
from ._discrete import Bernoulli, Categorical, Geometric
from ._distribution import Distribution, Independent, widened
from ._gamma import Beta, Chi2, Dirichlet, Gamma, InverseGamma
from ._ratios import divergence, gamma_divergence

__all__ = ["kl_divergence"]


def _normal(p, q):
    return 0.5 * ((p.loc - q.loc) / q.scale) ** 2 + _half_normal(p, q)


def _half_normal(p, q):
    ratio = (p.scale / q.scale) ** 2
    return 0.5 * divergence(bp.ones_like(ratio), ratio)


def _multivariate(p, q):
    n = p.event_shape[0]
    half = bp.linalg.solve_triangular(q.scale_tril, p.scale_tril, upper=False)
    away = bp.linalg.solve_triangular(q.scale_tril, (p.loc - q.loc)[..., None], upper=False)[..., 0]
    squares = bp.sum(half * half, axis=[-2, -1]) + bp.sum(away * away, axis=-1)
    return 0.5 * (squares - n) + q._half_log_det() - p._half_log_det()


def _bernoulli(p, q):
    return divergence(p.probs, q.probs) + divergence(_failure(p), _failure(q))


def _failure(one):
    return bp.sigmoid(-one._given) if one._is_logits else 1 - one.probs


def _geometric(p, q):
    return _bernoulli(p, q) / p.probs


def _categorical(p, q):
    terms = bp.where(p.probs > 0, p.probs * (p.logits - q.logits), 0)
    return bp.sum(terms, axis=-1)


def _exponential(p, q):
    ratio = q.rate / p.rate
    return divergence(bp.ones_like(ratio), ratio)


def _laplace(p, q):
    away = bp.abs(p.loc - q.loc)
    return bp.log(q.scale / p.scale) + away / q.scale + p.scale / q.scale * bp.exp(-away / p.scale) - 1


def _uniform(p, q):
    inside = (q.low <= p.low) & (p.high <= q.high)
    return bp.where(inside, bp.log((q.high - q.low) / (p.high - p.low)), bp.inf)


def _gamma(p, q):
    return gamma_divergence(p.concentration, q.concentration, q.rate / p.rate)


def _beta(p, q):
    return _of_concentrations(*(bp.stack([x.concentration1, x.concentration0], axis=-1) for x in (p, q)))


def _dirichlet(p, q):
    return _of_concentrations(*bp.broadcast_arrays(p.concentration, q.concentration))


def _of_concentrations(a, b):
    first, second = bp.sum(a, axis=-1), bp.sum(b, axis=-1)
    ratio = second / first  # which cancels in the difference, and makes its parts small
    return bp.sum(gamma_divergence(a, b, ratio[..., None]), axis=-1) - gamma_divergence(first, second, ratio)


def _poisson(p, q):
    return divergence(p.rate, q.rate)


_FORMULAS = {Normal: _normal, MultivariateNormal: _multivariate, Bernoulli: _bernoulli, Categorical: _categorical, Exponential: _exponential,
             Laplace: _laplace, Uniform: _uniform, Gamma: _gamma, Chi2: _gamma, InverseGamma: _gamma, Beta: _beta, Dirichlet: _dirichlet,
             Poisson: _poisson, LogNormal: _normal, HalfNormal: _half_normal, Geometric: _geometric}  # fmt: skip


def kl_divergence(p: Distribution, q: Distribution) -> Tensor:
    """The Kullback-Leibler divergence of q from p, per distribution of the batch.

    Errors: ArgumentTypeError for a pair without a formula.
    """
    if isinstance(p, Independent) and isinstance(q, Independent) and p._count == q._count:
        return p._summed(kl_divergence(p.base_dist, q.base_dist))
    if type(p) is not type(q) or type(p) not in _FORMULAS:
        raise bp.ArgumentTypeError(f"kl_divergence: found {type(p).__name__} and {type(q).__name__}, which have no formula. Fix: average p.log_prob - q.log_prob over samples of p")
    (p, dtype), (q, other) = widened(p), widened(q)
    found = _FORMULAS[type(p)](p, q)
    return found if dtype is None or other is None else found.astype(bp.result_type(dtype, other))
