"""PyTorch's special functions that the registry does not have: orthogonal polynomials, the multivariate gamma function and their kin."""

from __future__ import annotations

import math

from .. import _core
from ._calls import op

__all__ = ["mvlgamma", "orthogonal", "spherical_bessel_j0"]


def _floats(x):
    x = _core.asarray(x)
    return x if x.dtype.kind == "real floating" else op.cast(x, _core.default_float())


# Of each family: the polynomial of degree 1, and the next one from the last two, of x and the degree k of the last.
_FAMILIES = {
    "chebyshev_polynomial_t": (lambda x: x, lambda x, k, p, q: 2 * x * p - q),
    "chebyshev_polynomial_u": (lambda x: 2 * x, lambda x, k, p, q: 2 * x * p - q),
    "chebyshev_polynomial_v": (lambda x: 2 * x - 1, lambda x, k, p, q: 2 * x * p - q),
    "chebyshev_polynomial_w": (lambda x: 2 * x + 1, lambda x, k, p, q: 2 * x * p - q),
    "hermite_polynomial_h": (lambda x: 2 * x, lambda x, k, p, q: 2 * x * p - 2 * k * q),
    "hermite_polynomial_he": (lambda x: x, lambda x, k, p, q: x * p - k * q),
    "laguerre_polynomial_l": (lambda x: 1 - x, lambda x, k, p, q: ((2 * k + 1 - x) * p - k * q) / (k + 1)),
    "legendre_polynomial_p": (lambda x: x, lambda x, k, p, q: ((2 * k + 1) * x * p - k * q) / (k + 1)),
}


def orthogonal(name, x, n):
    """The polynomial of degree n at x; 0 for a negative degree. n is an int, or a tensor of degrees."""
    x = _floats(x)
    if name.startswith("shifted_"):
        name, x = name.removeprefix("shifted_"), 2 * x - 1
    first, following = _FAMILIES[name]
    degrees = _core.asarray(n)
    most = int(op.max(degrees)) if degrees.size else -1
    shape = op.add(x, op.cast(degrees, x.dtype)).shape
    found, before, last = op.full(shape, 0, dtype=x.dtype, device=x.device), op.full_like(x, 1), first(x)
    for k in range(most + 1):
        value = before if k == 0 else last
        found = op.where(op.equal(degrees, k), value, found)
        if k:
            before, last = last, following(x, k, last, before)
    return found


def spherical_bessel_j0(x):
    """sin(x) / x."""
    x = _floats(x)
    small = op.less(op.abs(x), 0.5)
    square = op.square(op.where(small, x, 0))
    series = 1 - square / 6 * (1 - square / 20 * (1 - square / 42 * (1 - square / 72 * (1 - square / 110 * (1 - square / 156)))))
    return op.where(small, series, op.where(op.isinf(x), 0.0, op.divide(op.sin(op.where(op.isinf(x), 1.0, x)), op.where(small, 1, x))))


def mvlgamma(x, p):
    """The logarithm of the multivariate gamma function of dimension p."""
    x = _floats(x)
    if p < 1:
        raise _core.ArgumentValueError(f"mvlgamma: argument p: found {p}, expected 1 or more")
    if _core.has_values(x) and x.size and bool(op.any(op.less_equal(x, (p - 1) / 2))):
        raise _core.ArgumentValueError(f"mvlgamma: argument input: expected elements above {(p - 1) / 2}")
    found = op.lgamma(x)
    for step in range(1, p):
        found = found + op.lgamma(x - step / 2)
    return found + p * (p - 1) / 4 * math.log(math.pi)
