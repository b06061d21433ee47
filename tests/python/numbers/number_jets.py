"""Values with their first two derivatives, in mpmath: what the reference formulas compute with.

A `Jet` holds f, f' and f'' at one point, along one variable. The functions below take jets and plain numbers. Their
derivatives are closed forms without cancellation, so that a formula loses no more digits than its own sums do; the
caller raises the precision until two precisions agree. Comparisons look at the value alone: a branch is a piece.
"""

import mpmath
from mpmath import mp


class Jet:
    __slots__ = ("value", "first", "second")

    def __init__(self, value, first=0, second=0):
        self.value, self.first, self.second = mp.mpf(value), mp.mpf(first), mp.mpf(second)

    def __add__(self, other):
        other = jet(other)
        return Jet(self.value + other.value, self.first + other.first, self.second + other.second)

    def __mul__(self, other):
        other = jet(other)
        return Jet(
            self.value * other.value,
            self.first * other.value + self.value * other.first,
            self.second * other.value + 2 * self.first * other.first + self.value * other.second,
        )

    def __neg__(self):
        return Jet(-self.value, -self.first, -self.second)

    def __sub__(self, other):
        return self + -jet(other)

    def __rsub__(self, other):
        return jet(other) - self

    def __truediv__(self, other):
        return self * reciprocal(other)

    def __rtruediv__(self, other):
        return jet(other) * reciprocal(self)

    def __abs__(self):
        return -self if self.value < 0 else self

    def __lt__(self, other):
        return self.value < jet(other).value

    def __le__(self, other):
        return self.value <= jet(other).value

    def __gt__(self, other):
        return self.value > jet(other).value

    def __ge__(self, other):
        return self.value >= jet(other).value

    __radd__, __rmul__ = __add__, __mul__


def jet(x):
    return x if isinstance(x, Jet) else Jet(x)


def through(x, value, first, second):
    """f(x) by the chain rule, of f, f' and f'' at the value of x."""
    return Jet(value, first * x.first, second * x.first * x.first + first * x.second)


def unary(value, first, second):
    """A function of jets from f, f' and f'' as functions of numbers. Terms of a derivative that is not asked for are not computed."""

    def function(x):
        x = jet(x)
        if x.first == 0 and x.second == 0:
            return Jet(value(x.value))
        return through(x, value(x.value), first(x.value), second(x.value))

    return function


def bounded(function, limit=10**5):
    """The function of an argument within the limit: beyond, its result is beyond every format, 0 in all of them, or constant."""
    return lambda x: function(min(max(x, -limit), limit))


_exp, _expm1, _sinh, _cosh, _tanh = map(bounded, (mp.exp, mp.expm1, mp.sinh, mp.cosh, mp.tanh))
_erf, _erfc = bounded(mp.erf, 30), bounded(mp.erfc, 30)


def _squared_sech(x):
    return 1 / _cosh(x) ** 2


def _logistic(x):
    return 1 / (1 + _exp(-x))


def _gaussian(x):
    return 2 / mp.sqrt(mp.pi) * _exp(-x * x)


reciprocal = unary(lambda x: 1 / x, lambda x: -1 / x**2, lambda x: 2 / x**3)
sqrt = unary(mp.sqrt, lambda x: 1 / (2 * mp.sqrt(x)), lambda x: -1 / (4 * x * mp.sqrt(x)))
exp = unary(_exp, _exp, _exp)
expm1 = unary(_expm1, _exp, _exp)
log = unary(mp.log, lambda x: 1 / x, lambda x: -1 / x**2)
log1p = unary(mp.log1p, lambda x: 1 / (1 + x), lambda x: -1 / (1 + x) ** 2)
sin = unary(mp.sin, mp.cos, lambda x: -mp.sin(x))
cos = unary(mp.cos, lambda x: -mp.sin(x), lambda x: -mp.cos(x))
tan = unary(mp.tan, lambda x: mp.sec(x) ** 2, lambda x: 2 * mp.tan(x) * mp.sec(x) ** 2)
atan = unary(mp.atan, lambda x: 1 / (1 + x * x), lambda x: -2 * x / (1 + x * x) ** 2)
asin = unary(mp.asin, lambda x: 1 / mp.sqrt((1 - x) * (1 + x)), lambda x: x / mp.power((1 - x) * (1 + x), mp.mpf(3) / 2))
acos = unary(mp.acos, lambda x: -1 / mp.sqrt((1 - x) * (1 + x)), lambda x: -x / mp.power((1 - x) * (1 + x), mp.mpf(3) / 2))
sinh = unary(_sinh, _cosh, _sinh)
cosh = unary(_cosh, _sinh, _cosh)
tanh = unary(_tanh, _squared_sech, lambda x: -2 * _tanh(x) * _squared_sech(x))
asinh = unary(mp.asinh, lambda x: 1 / mp.sqrt(1 + x * x), lambda x: -x / mp.power(1 + x * x, mp.mpf(3) / 2))
acosh = unary(mp.acosh, lambda x: 1 / mp.sqrt((x - 1) * (x + 1)), lambda x: -x / mp.power((x - 1) * (x + 1), mp.mpf(3) / 2))
atanh = unary(mp.atanh, lambda x: 1 / ((1 - x) * (1 + x)), lambda x: 2 * x / ((1 - x) * (1 + x)) ** 2)
erf = unary(_erf, _gaussian, lambda x: -2 * x * _gaussian(x))
erfc = unary(_erfc, lambda x: -_gaussian(x), lambda x: 2 * x * _gaussian(x))
sigmoid = unary(_logistic, lambda x: _logistic(x) * _logistic(-x), lambda x: -_logistic(x) * _logistic(-x) * _tanh(x / 2))
lgamma = unary(lambda x: mp.re(mp.loggamma(x)), mp.digamma, lambda x: mp.polygamma(1, x))


def polygamma(n, x):
    return unary(lambda v: mp.polygamma(n, v), lambda v: mp.polygamma(n + 1, v), lambda v: mp.polygamma(n + 2, v))(x)


def softplus(x):
    return log1p(exp(x)) if jet(x) < 0 else x + log1p(exp(-x))


def cbrt(x):
    def root(v):
        return mp.sign(v) * mp.power(abs(v), mp.mpf(1) / 3)

    return unary(root, lambda v: 1 / (3 * root(v) ** 2), lambda v: -2 / (9 * root(v) ** 5))(x)


def erfinv(x):
    """By Newton's method from mpmath's own value, which rounds near 1 and -1."""

    def value(p):
        if p == 0:
            return p
        z = mp.erfinv(p)
        for _ in range(2):
            z -= (mp.erf(z) - p if abs(p) < 0.5 else mp.sign(p) * (1 - abs(p) - mp.erfc(abs(z)))) / _gaussian(z)
        return z

    def first(p):
        return 1 / _gaussian(value(p))

    return unary(value, first, lambda p: 2 * value(p) * first(p) ** 2)(x)


def power(x, y):
    """x ** y: along x for any sign of x where y is an integer, along y for positive x."""
    x, y = jet(x), jet(y)
    if y.first == 0 and y.second == 0:
        n = y.value
        slope = n * x.value ** (n - 1) if n != 0 else mp.mpf(0)
        curve = n * (n - 1) * x.value ** (n - 2) if n not in (0, 1) else mp.mpf(0)
        return through(x, x.value**n, slope, curve)
    return exp(y * log(x))


def sign(x):
    return mpmath.sign(jet(x).value)


def maximum(x, y):
    return jet(x) if jet(x) > y else jet(y)


def minimum(x, y):
    return jet(x) if jet(x) < y else jet(y)


def hypot(x, y):
    return sqrt(x * x + y * y)


def atan2(x, y):
    """The angle of the point (y, x): the arc tangent of the smaller by the larger, turned into its octant."""
    x, y = jet(x), jet(y)
    if abs(x.value) <= abs(y.value):
        turn = 0 if y.value > 0 else mp.pi if x.value >= 0 else -mp.pi
        return atan(x / y) + turn
    return (mp.pi / 2 if x.value > 0 else -mp.pi / 2) - atan(y / x)


def normal_cdf(x):
    return erfc(-jet(x) / mp.sqrt(2)) * mp.mpf("0.5")


def normal_pdf(x):
    return exp(x * x * mp.mpf("-0.5")) / mp.sqrt(2 * mp.pi)
