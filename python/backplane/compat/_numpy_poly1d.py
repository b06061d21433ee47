"""NumPy's poly1d, a polynomial as an object, and polydiv."""

from __future__ import annotations

from .. import _core
from .._api._manipulation_functions import atleast_1d
from .._api._numeric_functions import convolve
from ._calls import float64, op
from ._numpy_polynomials import poly, polyder, polyint, polynomial_sum, roots

__all__ = ["poly1d", "polydiv"]


def _trimmed(c):
    """The coefficients without the zeros in front, at least one."""
    found = op.not_equal(c, 0).tolist()
    first = found.index(True) if True in found else len(found) - 1
    return c[first:]


def _value(p, x):
    """The polynomial of coefficients p (the highest power first) at x, by Horner's scheme."""
    result = op.zeros_like(x)
    for place in range(p.shape[0]):
        result = op.add(op.multiply(result, x), p[place])
    return result


class poly1d:
    """A polynomial of one variable: its coefficients with the highest power first, or its roots with r=True.

    p(x) is its value, or the composition if x is a poly1d. Sums, products, powers, quotients and comparisons of polynomials are as in NumPy.
    """

    def __init__(self, c_or_r, r=False, variable=None):
        if isinstance(c_or_r, poly1d):
            coefficients, variable = c_or_r.coeffs, variable or c_or_r.variable
        else:
            with float64:
                coefficients = atleast_1d(_core.asarray(c_or_r))
                coefficients = poly(coefficients) if r else coefficients
        if coefficients.ndim != 1:
            raise _core.ShapeError(f"poly1d: argument c_or_r: found {coefficients.ndim} dimensions, expected a vector of coefficients")
        self._coeffs, self.variable = _trimmed(coefficients), variable or "x"

    @property
    def coeffs(self):
        """The coefficients, the highest power first."""
        return self._coeffs

    c = coef = coefficients = coeffs

    @property
    def order(self):
        """The degree."""
        return self._coeffs.shape[0] - 1

    o = order

    @property
    def roots(self):
        """The roots."""
        with float64:
            return roots(self._coeffs)

    r = roots

    def __call__(self, val):
        if isinstance(val, poly1d):
            result = poly1d([0])
            for place in range(self.order + 1):
                result = result * val + self._coeffs[place]
            return result
        with float64:
            x = _core.asarray(val)
            return _value(self._coeffs, x)

    def __len__(self):
        return self.order

    def __iter__(self):
        return iter(self._coeffs)

    def __getitem__(self, power):
        """The coefficient of a power; 0 above the degree."""
        return self._coeffs[self.order - power] if 0 <= power <= self.order else op.full([], 0, dtype=self._coeffs.dtype)

    def __setitem__(self, power, value):
        if power < 0:
            raise _core.ArgumentValueError(f"poly1d: found the power {power}, expected 0 or more")
        with float64:
            value = _core.asarray(value)
            more = op.full([max(power - self.order, 0)], 0, dtype=self._coeffs.dtype)
            coefficients = op.concat([more, self._coeffs], axis=0)
            if value.dtype.kind != coefficients.dtype.kind and "integer" in coefficients.dtype.kind:
                value = op.cast(value, coefficients.dtype)
            coefficients[coefficients.shape[0] - 1 - power] = value
        self._coeffs = _trimmed(coefficients)

    def __repr__(self):
        return f"poly1d({self._coeffs.tolist()})"

    def __str__(self):
        import numpy

        return str(numpy.poly1d(self._coeffs.numpy(), variable=self.variable))

    def __array__(self, dtype=None, copy=None):
        return self._coeffs.numpy() if dtype is None else self._coeffs.numpy().astype(dtype)

    def __eq__(self, other):
        if not isinstance(other, poly1d):
            return NotImplemented
        return self._coeffs.shape == other._coeffs.shape and bool(op.all(op.equal(self._coeffs, other._coeffs)))

    def __hash__(self):
        raise TypeError("unhashable type: 'poly1d'")

    def __ne__(self, other):
        return NotImplemented if not isinstance(other, poly1d) else not self == other

    def __neg__(self):
        return poly1d(op.negative(self._coeffs))

    def __pos__(self):
        return self

    def _with(self, other, function):
        with float64:
            return poly1d(function(self._coeffs, poly1d(other).coeffs))

    def __add__(self, other):
        return self._with(other, lambda a, b: polynomial_sum(a, b, 1))

    __radd__ = __add__

    def __sub__(self, other):
        return self._with(other, lambda a, b: polynomial_sum(a, b, -1))

    def __rsub__(self, other):
        return poly1d(other) - self

    def __mul__(self, other):
        return self._with(other, convolve)

    __rmul__ = __mul__

    def __pow__(self, power):
        if not hasattr(power, "__index__") or power < 0:
            raise _core.ArgumentValueError(f"poly1d: found the power {power!r}, expected an int from 0 on")
        result = poly1d([1])
        for _ in range(power):
            result = result * self
        return result

    def __truediv__(self, other):
        if isinstance(other, poly1d):
            return polydiv(self, other)
        with float64:
            return poly1d(op.divide(self._coeffs, other))

    def deriv(self, m=1):
        """The m-th derivative."""
        return poly1d(polyder(self._coeffs, m))

    def integ(self, m=1, k=None):
        """The m-th integral, with the constants k."""
        with float64:
            return poly1d(polyint(self._coeffs, m, 0 if k is None else k))


def polydiv(u, v):
    """The quotient and the remainder of two polynomials; of poly1d objects as such objects."""
    as_objects = isinstance(u, poly1d) or isinstance(v, poly1d)
    with float64:
        u, v = (x.coeffs if isinstance(x, poly1d) else atleast_1d(_core.asarray(x)) for x in (u, v))
        u, v = (x if "floating" in x.dtype.kind else op.cast(x, _core.float64) for x in (u, v))
        dtype = _core.promote(u.dtype, v.dtype)
        u, v = op.copy(op.cast(u, dtype)), op.cast(v, dtype)
        steps = u.shape[0] - v.shape[0] + 1
        quotient = op.full([max(steps, 1)], 0, dtype=dtype)
        for place in range(steps):
            factor = op.divide(u[place], v[0])
            quotient[place] = factor
            u[place : place + v.shape[0]] = op.subtract(u[place : place + v.shape[0]], op.multiply(factor, v))
        # Rounding leaves coefficients in front, which the remainder does not have (NumPy's tolerance).
        while u.shape[0] > 1 and abs(complex(u[0])) <= 1e-8:
            u = u[1:]
    return (poly1d(quotient), poly1d(u)) if as_objects else (quotient, u)
