"""The distributions of numpy.random beyond the uniform and the normal one: methods of its generators, over Backplane's generators.

Parameters are numbers or arrays that broadcast; without a size the result has their shape. Results are float64, counts int64.
"""

from __future__ import annotations

import math

from .. import _core
from ._calls import float64, op

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .._core import Tensor


class Distributions:
    """Draws of further distributions. A class that has it brings _generator."""

    _generator: Any

    def _parameters(self, name, size, **given):
        """The shape of the result, and the parameters as float64 tensors of that shape; each must hold its condition."""
        from .._api._manipulation_functions import broadcast_shapes

        with float64:
            values = {word: op.cast(_core.asarray(value), _core.float64) for word, (value, _) in given.items()}
        for word, (_, condition) in given.items():
            holds = {"positive": op.greater, "not negative": op.greater_equal}.get(condition)
            value = values[word]
            good = op.isfinite(value) if holds is None else holds(value, 0)
            if condition == "a probability":
                good = op.logical_and(op.greater_equal(value, 0), op.less_equal(value, 1))
            if not bool(op.all(good)):
                raise _core.ArgumentValueError(f"{name}: argument {word}: found {value.tolist()}, expected numbers that are {condition}")
        shape = broadcast_shapes(*(x.shape for x in values.values()))
        if size is not None:
            wanted = (size,) if hasattr(size, "__index__") else tuple(size)
            if broadcast_shapes(shape, wanted) != wanted:
                raise _core.ShapeError(f"{name}: argument size: found {wanted}, expected a shape to which the parameters of shape {shape} broadcast")
            shape = wanted
        return shape, *(op.broadcast_to(x, shape) for x in values.values())

    def _open(self, shape):
        """Uniform numbers in (0, 1)."""
        u = op.uniform(shape, dtype=_core.float64, generator=self._generator)
        return op.maximum(u, 2.0**-54)

    def _exponential(self, shape):
        return op.negative(op.log(self._open(shape)))

    def _normal(self, shape):
        return op.normal(shape, dtype=_core.float64, generator=self._generator)

    def _log_gamma(self, shape, concentration):
        from ..distributions._gamma import log_gamma_sample

        with float64:
            return log_gamma_sample(concentration, tuple(shape), self._generator)

    def gamma(self, shape: Any, scale: Any = 1.0, size: Any = None) -> Tensor:
        """Numbers of a gamma distribution of this shape and scale."""
        shape, a, scale = self._parameters("gamma", size, shape=(shape, "positive"), scale=(scale, "positive"))
        return op.exp(self._log_gamma(shape, a)) * scale

    def standard_gamma(self, shape: Any, size: Any = None) -> Tensor:
        """Numbers of a gamma distribution of scale 1."""
        return self.gamma(shape, 1.0, size)

    def beta(self, a: Any, b: Any, size: Any = None) -> Tensor:
        """Numbers of a beta distribution."""
        shape, a, b = self._parameters("beta", size, a=(a, "positive"), b=(b, "positive"))
        return op.sigmoid(self._log_gamma(shape, a) - self._log_gamma(shape, b))

    def chisquare(self, df: Any, size: Any = None) -> Tensor:
        """Numbers of a chi-squared distribution."""
        shape, df = self._parameters("chisquare", size, df=(df, "positive"))
        return 2 * op.exp(self._log_gamma(shape, df / 2))

    def noncentral_chisquare(self, df: Any, nonc: Any, size: Any = None) -> Tensor:
        """Numbers of a noncentral chi-squared distribution."""
        shape, df, nonc = self._parameters("noncentral_chisquare", size, df=(df, "positive"), nonc=(nonc, "not negative"))
        return self.chisquare(df + 2 * op.cast(self.poisson(nonc / 2), _core.float64))

    def f(self, dfnum: Any, dfden: Any, size: Any = None) -> Tensor:
        """Numbers of an F distribution."""
        shape, dfnum, dfden = self._parameters("f", size, dfnum=(dfnum, "positive"), dfden=(dfden, "positive"))
        return self.chisquare(dfnum) / dfnum / (self.chisquare(dfden) / dfden)

    def standard_t(self, df: Any, size: Any = None) -> Tensor:
        """Numbers of Student's t distribution."""
        shape, df = self._parameters("standard_t", size, df=(df, "positive"))
        return self._normal(shape) / op.sqrt(self.chisquare(df) / df)

    def dirichlet(self, alpha: Any, size: Any = None) -> Tensor:
        """Vectors of a Dirichlet distribution, whose sums are 1."""
        _, alpha = self._parameters("dirichlet", None, alpha=(alpha, "positive"))
        wanted = () if size is None else (size,) if hasattr(size, "__index__") else tuple(size)
        logs = self._log_gamma((*wanted, *alpha.shape), op.broadcast_to(alpha, [*wanted, *alpha.shape]))
        return op.softmax(logs, -1)

    def gumbel(self, loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> Tensor:
        """Numbers of a Gumbel distribution."""
        shape, loc, scale = self._parameters("gumbel", size, loc=(loc, "finite"), scale=(scale, "not negative"))
        return loc - scale * op.log(self._exponential(shape))

    def laplace(self, loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> Tensor:
        """Numbers of a Laplace distribution."""
        shape, loc, scale = self._parameters("laplace", size, loc=(loc, "finite"), scale=(scale, "not negative"))
        return loc + scale * (self._exponential(shape) - self._exponential(shape))

    def logistic(self, loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> Tensor:
        """Numbers of a logistic distribution."""
        shape, loc, scale = self._parameters("logistic", size, loc=(loc, "finite"), scale=(scale, "not negative"))
        u = self._open(shape)
        return loc + scale * (op.log(u) - op.log1p(op.negative(u)))

    def lognormal(self, mean: Any = 0.0, sigma: Any = 1.0, size: Any = None) -> Tensor:
        """Numbers whose logarithms have a normal distribution."""
        shape, mean, sigma = self._parameters("lognormal", size, mean=(mean, "finite"), sigma=(sigma, "not negative"))
        return op.exp(mean + sigma * self._normal(shape))

    def pareto(self, a: Any, size: Any = None) -> Tensor:
        """Numbers of a Lomax distribution, which is a Pareto distribution less 1."""
        shape, a = self._parameters("pareto", size, a=(a, "positive"))
        return op.expm1(self._exponential(shape) / a)

    def power(self, a: Any, size: Any = None) -> Tensor:
        """Numbers in [0, 1] with the density a * x**(a - 1)."""
        shape, a = self._parameters("power", size, a=(a, "positive"))
        return op.exp(op.negative(self._exponential(shape)) / a)

    def rayleigh(self, scale: Any = 1.0, size: Any = None) -> Tensor:
        """Numbers of a Rayleigh distribution."""
        shape, scale = self._parameters("rayleigh", size, scale=(scale, "not negative"))
        return scale * op.sqrt(2 * self._exponential(shape))

    def standard_cauchy(self, size: Any = None) -> Tensor:
        """Numbers of a Cauchy distribution."""
        shape, _ = self._parameters("standard_cauchy", size, loc=(0.0, "finite"))
        return op.tan(math.pi * (self._open(shape) - 0.5))

    def triangular(self, left: Any, mode: Any, right: Any, size: Any = None) -> Tensor:
        """Numbers of a triangular distribution."""
        shape, left, mode, right = self._parameters("triangular", size, left=(left, "finite"), mode=(mode, "finite"), right=(right, "finite"))
        if not bool(op.all(op.logical_and(op.logical_and(op.less_equal(left, mode), op.less_equal(mode, right)), op.less(left, right)))):
            raise _core.ArgumentValueError("triangular: expected left <= mode <= right, and left < right")
        u, whole = self._open(shape), right - left
        rising = left + op.sqrt(u * whole * (mode - left))
        return op.where(op.less(u * whole, mode - left), rising, right - op.sqrt((1 - u) * whole * (right - mode)))

    def weibull(self, a: Any, size: Any = None) -> Tensor:
        """Numbers of a Weibull distribution of scale 1."""
        shape, a = self._parameters("weibull", size, a=(a, "positive"))
        return op.exp(op.log(self._exponential(shape)) / a)

    def wald(self, mean: Any, scale: Any, size: Any = None) -> Tensor:
        """Numbers of an inverse Gaussian distribution."""
        shape, mean, scale = self._parameters("wald", size, mean=(mean, "positive"), scale=(scale, "positive"))
        # Michael, Schucany and Haas, 1976: the smaller root of a quadratic, or mean**2 over it; written without cancellation.
        y = mean * op.square(self._normal(shape)) / (2 * scale)
        smaller = mean / (1 + y + op.sqrt(y * (y + 2)))
        return op.where(op.less_equal(self._open(shape) * (mean + smaller), mean), smaller, mean * mean / smaller)

    def poisson(self, lam: Any = 1.0, size: Any = None) -> Tensor:
        """Counts of a Poisson distribution."""
        from ..distributions._counts import poisson_sample

        shape, lam = self._parameters("poisson", size, lam=(lam, "not negative"))
        with float64:
            return op.cast(poisson_sample(lam, tuple(shape), self._generator), _core.int64)

    def binomial(self, n: Any, p: Any, size: Any = None) -> Tensor:
        """Counts of successes in n trials."""
        from ..distributions._counts import binomial_sample

        shape, n, p = self._parameters("binomial", size, n=(n, "not negative"), p=(p, "a probability"))
        with float64:
            return op.cast(binomial_sample(n, p, tuple(shape), self._generator), _core.int64)

    def negative_binomial(self, n: Any, p: Any, size: Any = None) -> Tensor:
        """Counts of failures before n successes."""
        shape, n, p = self._parameters("negative_binomial", size, n=(n, "positive"), p=(p, "a probability"))
        if not bool(op.all(op.greater(p, 0))):
            raise _core.ArgumentValueError("negative_binomial: argument p: found 0, expected probabilities above 0")
        return self.poisson(op.exp(self._log_gamma(shape, n)) * (1 - p) / p)

    def geometric(self, p: Any, size: Any = None) -> Tensor:
        """Counts of trials until the first success, from 1 on."""
        shape, p = self._parameters("geometric", size, p=(p, "a probability"))
        if not bool(op.all(op.greater(p, 0))):
            raise _core.ArgumentValueError("geometric: argument p: found 0, expected probabilities above 0")
        trials = op.ceil(self._exponential(shape) / op.negative(op.log1p(op.negative(p))))
        return op.cast(op.maximum(trials, 1.0), _core.int64)

    def multinomial(self, n: Any, pvals: Any, size: Any = None) -> Tensor:
        """How often each outcome occurs in n trials."""
        with float64:
            pvals = op.cast(_core.asarray(pvals), _core.float64)
        if pvals.ndim != 1 or bool(op.any(op.less(pvals, 0))) or float(op.sum(pvals[:-1])) > 1 + 1e-12:
            raise _core.ArgumentValueError("multinomial: argument pvals: expected a vector of probabilities, whose sum is 1")
        wanted = () if size is None else (size,) if hasattr(size, "__index__") else tuple(size)
        left, rest, counts = op.full(wanted, n, dtype=_core.int64), 1.0, []
        for p in pvals.tolist()[:-1]:
            drawn = self.binomial(left, min(max(p / rest, 0.0), 1.0) if rest > 0 else 0.0)
            counts.append(drawn)
            left, rest = left - drawn, rest - p
        return op.stack([*counts, left], axis=-1)

    def multivariate_normal(self, mean: Any, cov: Any, size: Any = None, check_valid: str = "warn", tol: float = 1e-8, **method: Any) -> Tensor:
        """Vectors of a normal distribution with these means and covariances."""
        from .. import linalg

        with float64:
            mean, cov = (op.cast(_core.asarray(x), _core.float64) for x in (mean, cov))
        if mean.ndim != 1 or cov.shape != (mean.shape[0],) * 2:
            raise _core.ShapeError(f"multivariate_normal: found mean of shape {tuple(mean.shape)} and cov of {tuple(cov.shape)}, expected (n,) and (n, n)")
        values, vectors = linalg.eigh(cov)
        if bool(op.any(op.less(values, -tol * op.max(op.abs(values))))):
            raise _core.ArgumentValueError("multivariate_normal: argument cov: found a negative eigenvalue, expected a positive semidefinite matrix")
        wanted = () if size is None else (size,) if hasattr(size, "__index__") else tuple(size)
        factor = vectors * op.sqrt(op.maximum(values, 0.0))
        return mean + op.matmul(self._normal((*wanted, 1, mean.shape[0])), factor.mT)[..., 0, :]

    def bytes(self, length: int) -> bytes:
        """Random bytes."""
        return op.cast(op.randint(0, 256, (length,), generator=self._generator), _core.uint8).tobytes()
