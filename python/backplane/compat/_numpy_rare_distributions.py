"""The distributions of numpy.random that few programs draw: angles, and counts whose samplers reject candidates until one is accepted."""

from __future__ import annotations

import math

from .. import _core
from ._calls import float64, op
from ._numpy_distributions import Distributions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .._core import Tensor

_LARGEST = 2.0**63 - 1024  # the largest float64 that int64 holds
_POPULATION = 10**9  # above, the logarithms of factorials lose the digits that a probability needs


class RareDistributions(Distributions):
    """Draws of these distributions, with NumPy's names and arguments."""

    def _accepted(self, shape, propose):
        """Candidates of propose(), each drawn again until it is accepted, as int64."""
        result, left = op.zeros(shape, dtype=_core.float64), op.ones(shape, dtype=_core.bool)
        while bool(op.any(left)):
            candidate, is_good = propose()
            taken = op.logical_and(left, is_good)
            result = op.where(taken, candidate, result)
            left = op.logical_and(left, op.logical_not(taken))
        return op.cast(result, _core.int64)

    def vonmises(self, mu: Any, kappa: Any, size: Any = None) -> Tensor:
        """Angles in radians, from -π to π, of a von Mises distribution around mu; kappa, not negative, says how narrow it is, and 0 is uniform."""
        from ..distributions import VonMises

        shape, mu, kappa = self._parameters("vonmises", size, mu=(mu, "finite"), kappa=(kappa, "not negative"))
        with float64:
            narrow = VonMises(mu, op.maximum(kappa, 1e-8), validate_args=False)
            return narrow.sample(generator=self._generator)

    def noncentral_f(self, dfnum: Any, dfden: Any, nonc: Any, size: Any = None) -> Tensor:
        """Numbers of a noncentral F distribution: of the ratio of a noncentral and a central chi-squared variable, each divided by its degrees of freedom."""
        shape, dfnum, dfden, nonc = self._parameters(
            "noncentral_f", size, dfnum=(dfnum, "positive"), dfden=(dfden, "positive"), nonc=(nonc, "not negative")
        )
        return self.noncentral_chisquare(dfnum, nonc) / dfnum / (self.chisquare(dfden) / dfden)

    def zipf(self, a: Any, size: Any = None) -> Tensor:
        """Counts from 1 on with probabilities proportional to k ** -a, for a above 1; those that int64 does not hold are drawn again (Devroye, 1986)."""
        shape, a = self._parameters("zipf", size, a=(a, "finite"))
        if not bool(op.all(op.greater(a, 1))):
            raise _core.ArgumentValueError(f"zipf: argument a: found {a.tolist()}, expected numbers above 1")
        less = a - 1
        power = op.pow(op.full_like(less, 2.0), less)
        least = op.pow(op.full_like(less, _LARGEST), op.negative(less))

        def propose():
            u = self._open(shape)
            x = op.floor(op.pow(u + (1 - u) * least, op.negative(1 / less)))
            t = op.pow(1 + 1 / x, less)
            is_good = op.less_equal(self._open(shape) * x * (t - 1) / (power - 1), t / power)
            return x, op.logical_and(is_good, op.logical_and(op.greater_equal(x, 1), op.less_equal(x, _LARGEST)))

        return self._accepted(shape, propose)

    def logseries(self, p: Any, size: Any = None) -> Tensor:
        """Counts from 1 on with probabilities proportional to p ** k / k (Kemp, 1981)."""
        shape, p = self._parameters("logseries", size, p=(p, "a probability"))
        if not bool(op.all(op.less(p, 1))):
            raise _core.ArgumentValueError("logseries: argument p: found 1, expected probabilities below 1")
        v, u = self._open(shape), self._open(shape)
        q = op.negative(op.expm1(op.log1p(op.negative(p)) * u))
        safe = op.where(op.greater(q, 0), q, 0.5)
        large = op.floor(1 + op.log(v) / op.log(safe))
        small = op.where(op.less(v, q), 2.0, 1.0)
        return op.cast(op.where(op.less_equal(v, q * q), large, small), _core.int64)

    def hypergeometric(self, ngood: Any, nbad: Any, nsample: Any, size: Any = None) -> Tensor:
        """How many of nsample draws without replacement, from ngood and nbad elements, are good (Stadlober, 1990).

        Errors: ArgumentValueError for numbers that are not integers, are negative or from 10 ** 9 on, and for more draws than elements.
        """
        given = {"ngood": ngood, "nbad": nbad, "nsample": nsample}
        shape, good, bad, count = self._parameters("hypergeometric", size, **{name: (x, "not negative") for name, x in given.items()})
        for name, x in zip(given, (good, bad, count)):
            if not bool(op.all(op.logical_and(op.equal(op.floor(x), x), op.less(x, _POPULATION)))):
                raise _core.ArgumentValueError(f"hypergeometric: argument {name}: found {x.tolist()}, expected integers from 0 to {_POPULATION - 1}")
        whole = good + bad
        if not bool(op.all(op.less_equal(count, whole))):
            raise _core.ArgumentValueError(f"hypergeometric: argument nsample: found {count.tolist()}, expected at most ngood + nbad")
        few, many, drawn = op.minimum(good, bad), op.maximum(good, bad), op.minimum(count, whole - count)

        def log_ways(k):
            """-log of the product of factorials in the probability of k."""
            return op.negative(op.lgamma(k + 1) + op.lgamma(few - k + 1) + op.lgamma(drawn - k + 1) + op.lgamma(many - drawn + k + 1))

        share = few / op.maximum(whole, 1.0)
        deviation = op.sqrt((whole - drawn) * drawn * share * (1 - share) / op.maximum(whole - 1, 1.0) + 0.5)
        middle = drawn * share + 0.5
        width = 2 * math.sqrt(2 / math.e) * deviation + (3 - 2 * math.sqrt(3 / math.e))
        most = op.minimum(drawn, few)
        highest = log_ways(op.floor((drawn + 1) * (few + 1) / (whole + 2)))

        def propose():
            u = self._open(shape)
            k = op.floor(middle + width * (self._open(shape) - 0.5) / u)
            inside = op.logical_and(op.greater_equal(k, 0), op.less_equal(k, most))
            k = op.minimum(op.maximum(k, 0.0), most)
            return k, op.logical_and(inside, op.less_equal(2 * op.log(u), log_ways(k) - highest))

        k = self._accepted(shape, propose)
        k = op.where(op.greater(good, bad), op.cast(drawn, _core.int64) - k, k)
        return op.where(op.less(drawn, count), op.cast(good, _core.int64) - k, k)
