"""How many bins a histogram has: NumPy's rules of these names, from the number of elements and how they spread."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

from .. import _core
from .._calls._ops import NAMESPACE, ops
from .._calls._value_checks import is_readable

op = getattr(ops, NAMESPACE)

__all__ = []


class _Numbers:
    """The elements within the range, in order, and what the rules ask of them."""

    def __init__(self, x, low, high):
        self.x, self.low, self.high = x, low, high
        self.size = x.size
        self.extent = float(x[-1]) - float(x[0])

    def counts(self, bins: int) -> Any:
        """How many elements are in each of so many bins."""
        step = (self.high - self.low) / bins
        edges = _core.asarray([self.low + i * step for i in range(bins)] + [self.high], dtype=_core.float64, device=self.x.device)
        cuts = [op.searchsorted(self.x, edges[:-1], side="left"), op.searchsorted(self.x, edges[-1:], side="right")]
        return op.diff(op.concat(cuts))

    def deviation(self) -> float:
        middle = op.mean(self.x)
        return math.sqrt(float(op.mean(op.square(op.subtract(self.x, middle)))))

    def quantile(self, share: float) -> float:
        at = share * (self.size - 1)
        i = min(int(at), self.size - 1)
        low, high = float(self.x[i]), float(self.x[min(i + 1, self.size - 1)])
        return low + (high - low) * (at - i)


def _sqrt(x):
    return x.extent / math.sqrt(x.size)


def _sturges(x):
    return x.extent / (math.log2(x.size) + 1)


def _rice(x):
    return x.extent / (2 * x.size ** (1 / 3))


def _scott(x):
    return (24 * math.sqrt(math.pi) / x.size) ** (1 / 3) * x.deviation()


def _doane(x):
    spread = x.deviation() if x.size > 2 else 0.0
    if spread == 0:
        return 0.0
    n = x.size
    z = op.divide(op.subtract(x.x, op.mean(x.x)), spread)
    skewness = abs(float(op.mean(op.multiply(z, op.square(z)))))
    return x.extent / (1 + math.log2(n) + math.log2(1 + skewness / math.sqrt(6 * (n - 2) / ((n + 1) * (n + 3)))))


def _fd(x):
    return 2 * (x.quantile(0.75) - x.quantile(0.25)) / x.size ** (1 / 3)


def _auto(x):
    return min(max(_fd(x), _sqrt(x) / 2), _sturges(x))


def _stone(x):
    if x.size <= 1 or x.extent == 0:
        return 0.0
    most, n = max(100, int(math.sqrt(x.size))), x.size

    def error(count):
        shares = op.divide(x.counts(count), n)
        return (2 - (n + 1) * float(op.sum(op.square(shares)))) * count / x.extent

    best = min(range(1, most + 1), key=error)
    if best == most:
        warnings.warn("histogram: the rule 'stone' chose the largest number of bins that it tries", RuntimeWarning, stacklevel=5)
    return x.extent / best


_RULES: dict[str, Callable[[_Numbers], float]] = {
    "auto": _auto, "doane": _doane, "fd": _fd, "rice": _rice, "scott": _scott, "sqrt": _sqrt, "stone": _stone, "sturges": _sturges,
}  # fmt: skip


def bin_count(rule: str, x: Any, limits: tuple[float, float] | None, weights: Any) -> int:
    """The number of bins by a rule. Errors: ArgumentValueError for another rule, in a trace, and with weights."""
    if rule not in _RULES:
        raise _core.ArgumentValueError(f"histogram: argument bins: found {rule!r}, expected a number, edges, or one of {', '.join(_RULES)}")
    if weights is not None:
        raise _core.ArgumentValueError(f"histogram: argument bins: found {rule!r} with weights, expected a number or edges: no rule takes weights")
    if not is_readable(x):
        raise _core.ArgumentValueError(f"histogram: argument bins: found {rule!r} in a trace or a transform, where elements cannot be read; expected a number or edges")
    is_whole = x.dtype.kind != "real floating"
    x = op.sort(op.reshape(op.cast(x, _core.float64), [-1]))
    if limits is not None:
        x = x[op.logical_and(op.greater_equal(x, limits[0]), op.less_equal(x, limits[1]))]
    if x.size == 0:
        return 1
    low, high = limits if limits is not None else (float(x[0]), float(x[-1]))
    if low == high:
        low, high = low - 0.5, high + 0.5
    if not (math.isfinite(low) and math.isfinite(high)):
        raise _core.ArgumentValueError(f"histogram: found elements from {low} to {high}, expected finite numbers")
    width = _RULES[rule](_Numbers(x, low, high))
    width = 1.0 if is_whole and 0 < width < 1 else width
    return max(1, math.ceil((high - low) / width)) if width else 1
