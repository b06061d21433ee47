"""kl_divergence and register_kl, and the formulas of two distributions of one kind. Those of two kinds are in _divergence_pairs.py."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import backplane as bp
from backplane import Tensor

from ._circular import VonMises
from ._continuous import Cauchy, Exponential, Gumbel, HalfNormal, Laplace, LogNormal, MultivariateNormal, Normal, Uniform
from ._continuous_bernoulli import ContinuousBernoulli
from ._counts import Binomial, Poisson
from ._discrete import Bernoulli, Categorical, Geometric
from ._distribution import Distribution, Independent, require, widened
from ._gamma import Beta, Dirichlet, Gamma, InverseGamma
from ._low_rank import LowRankMultivariateNormal
from ._made_of_others import TransformedDistribution
from ._matrices import Wishart
from ._powers import HalfCauchy, Pareto
from ._ratios import divergence, gamma_divergence
from ._relaxed import OneHotCategorical
from ._transforms import sum_last

__all__ = ["kl_divergence", "register_kl"]

Formula = Callable[[Any, Any], Tensor]
EULER = 0.5772156649015329


def _normal(p, q):
    return 0.5 * ((p.loc - q.loc) / q.scale) ** 2 + _half_normal(p, q)


def _half_normal(p, q):
    ratio = (p.scale / q.scale) ** 2
    return 0.5 * divergence(bp.ones_like(ratio), ratio)


def _columns(one):
    """A matrix (*, n, k) whose product with its transpose is the covariance."""
    if isinstance(one, MultivariateNormal):
        return one.scale_tril
    n = one.event_shape[0]
    return bp.concat([one.cov_factor, bp.sqrt(one.cov_diag)[..., None] * bp.eye(n, dtype=one.loc.dtype, device=one.loc.device)], axis=-1)


def _squares(q, x):
    """xᵀ · covariance⁻¹ · x of each column of x (*, n, k), summed."""
    if isinstance(q, LowRankMultivariateNormal):
        return bp.sum(q._squared_distance(bp.moveaxis(x, -1, 0)), axis=0)
    shape = bp.broadcast_shapes(q.scale_tril.shape[:-2], x.shape[:-2])
    root, x = (bp.broadcast_to(t, (*shape, *t.shape[-2:])) for t in (q.scale_tril, x))
    half = bp.linalg.solve_triangular(root, x, upper=False)
    return bp.sum(half * half, axis=[-2, -1])


def _multivariate(p, q):
    if p.event_shape != q.event_shape:
        raise bp.ShapeError(f"kl_divergence: found vectors of {p.event_shape[0]} and {q.event_shape[0]} numbers, expected equal lengths")
    squares = _squares(q, _columns(p)) + _squares(q, (p.loc - q.loc)[..., None])
    return 0.5 * (squares - p.event_shape[0]) + q._half_log_det() - p._half_log_det()


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


def _cauchy(p, q):
    ratio = (p.scale - q.scale) ** 2 / (4 * p.scale * q.scale)
    away = _location(p) - _location(q)
    return bp.log1p(ratio + away * away / (4 * p.scale * q.scale))


def _location(one):
    return one.loc if isinstance(one, Cauchy) else 0.0


def _gumbel(p, q):
    ratio, away = p.scale / q.scale, (p.loc - q.loc) / q.scale
    return away - bp.log(ratio) + EULER * (ratio - 1) + bp.exp(bp.lgamma(1 + ratio) - away) - 1


def _pareto(p, q):
    ratio = q.alpha / p.alpha
    found = q.alpha * bp.log(p.scale / q.scale) + divergence(bp.ones_like(ratio), ratio)
    return bp.where(p.scale >= q.scale, found, bp.inf)


def _binomial(p, q):
    more = q.total_count > p.total_count
    require("kl_divergence", "q", q.total_count, ~more, "Binomials with at most the total_count of p: others have no formula")
    found = p.total_count * (divergence(p.probs, q.probs) + divergence(1 - p.probs, 1 - q.probs))
    return bp.where(more, bp.nan, bp.where(q.total_count < p.total_count, bp.inf, found))


def _continuous_bernoulli(p, q):
    return p.mean * (p.logits - q.logits) + p._log_norm() - q._log_norm()


def _von_mises(p, q):
    half = bp.sin((p.loc - q.loc) / 2)
    a, b, slope = p.concentration, q.concentration, 1 - p.variance
    return bp.log(bp.i0e(b) / bp.i0e(a)) + (b - a) * p.variance + 2 * b * slope * half * half


def _wishart(p, q):
    n = p.event_shape[0]
    trace = _squares(MultivariateNormal(bp.zeros_like(q.scale_tril[..., 0]), scale_tril=q.scale_tril), p.scale_tril)
    parts = bp.arange(n, dtype=p.df.dtype, device=p.df.device) / 2
    slopes = bp.sum(bp.digamma(p.df[..., None] / 2 - parts), axis=-1) + n * math.log(2)
    own = bp.sum(bp.log(bp.linalg.diagonal(p.scale_tril)), axis=-1)
    return q._log_norm() - p._log_norm() + 0.5 * (p.df - q.df) * (slopes + 2 * own) + 0.5 * p.df * (trace - n)


def _one_hot(p, q):
    return _categorical(p._categorical, q._categorical)


def _independent(p, q):
    if p._count != q._count:
        raise bp.ArgumentTypeError(f"kl_divergence: found Independent of {p._count} and of {q._count} axes, expected equal numbers")
    return p._summed(kl_divergence(p.base_dist, q.base_dist))


def _transformed(p, q):
    if p.event_shape != q.event_shape or not _equal(p.transforms, q.transforms):
        raise bp.ArgumentTypeError("kl_divergence: found distributions of different transforms, expected equal ones")
    return sum_last(kl_divergence(p.base_dist, q.base_dist), p._base_event - len(p.base_dist.event_shape))


def _equal(a, b):
    """Are two transforms, or their contents, alike?"""
    if a is b:
        return True
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        return len(a) == len(b) and all(map(_equal, a, b))
    if isinstance(a, (int, float, str, Tensor)) or isinstance(b, (int, float, str, Tensor)):
        return bool(bp.all(bp.equal(a, b))) if not isinstance(a, str) else a == b
    return type(a) is type(b) and vars(a).keys() == vars(b).keys() and all(_equal(value, vars(b)[name]) for name, value in vars(a).items())


_FORMULAS: dict[tuple[type, type], Formula] = {
    (kind, kind): formula
    for kind, formula in {
        Normal: _normal, MultivariateNormal: _multivariate, Bernoulli: _bernoulli, Categorical: _categorical, Exponential: _exponential,
        Laplace: _laplace, Uniform: _uniform, Gamma: _gamma, InverseGamma: _gamma, Beta: _beta, Dirichlet: _dirichlet, Poisson: _poisson,
        LogNormal: _normal, HalfNormal: _half_normal, Geometric: _geometric, Cauchy: _cauchy, HalfCauchy: _cauchy, Gumbel: _gumbel,
        Pareto: _pareto, Binomial: _binomial, ContinuousBernoulli: _continuous_bernoulli, VonMises: _von_mises, Wishart: _wishart,
        OneHotCategorical: _one_hot, Independent: _independent, TransformedDistribution: _transformed,
        LowRankMultivariateNormal: _multivariate,
    }.items()
}  # fmt: skip
_FORMULAS[MultivariateNormal, LowRankMultivariateNormal] = _FORMULAS[LowRankMultivariateNormal, MultivariateNormal] = _multivariate


def register_kl(type_p: type, type_q: type) -> Callable[[Formula], Formula]:
    """A decorator: the function (p, q) computes kl_divergence of distributions of these classes and of their subclasses.

    Of several pairs of classes that fit, the one nearest to the class of p counts, then the nearest to the class of q.

    Example:
        >>> class Mine(bp.distributions.Normal):
        ...     pass
        >>> @bp.distributions.register_kl(Mine, Mine)
        ... def divergence(p, q):
        ...     return bp.zeros(p.batch_shape)
        >>> bp.distributions.kl_divergence(Mine(0.0, 1.0), Mine(0.0, 1.0))
        tensor(0.)
    """
    for kind in (type_p, type_q):
        if not (isinstance(kind, type) and issubclass(kind, Distribution)):
            raise bp.ArgumentTypeError(f"register_kl: found {kind!r}, expected a class of distributions")

    def register(function: Formula) -> Formula:
        _FORMULAS[type_p, type_q] = function
        return function

    return register


def _formula(p, q):
    for kind in p.__mro__:
        for other in q.__mro__:
            if (kind, other) in _FORMULAS:
                return _FORMULAS[kind, other]
    return None


def kl_divergence(p: Distribution, q: Distribution) -> Tensor:
    """The Kullback-Leibler divergence of q from p, per distribution of the batch. Infinite where p has values that q does not have.

    Errors: ArgumentTypeError for a pair without a formula. register_kl adds one.
    """
    formula = _formula(type(p), type(q))
    if formula is None:
        raise bp.ArgumentTypeError(f"kl_divergence: found {type(p).__name__} and {type(q).__name__}, which have no formula. Fix: average p.log_prob - q.log_prob over samples of p")
    (p, dtype), (q, other) = widened(p), widened(q)
    found = formula(p, q)
    return found if dtype is None or other is None else found.astype(bp.result_type(dtype, other))
