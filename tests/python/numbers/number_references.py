"""What each op computes, as formulas of jets: elementwise ops, activations and element-by-element losses.

A row is Row(formula, kinds of its arguments, ...). `constant` arguments are not differentiated. `call` says how the op is
called where the arguments are not its first ones. `least` replaces the unit of results that are smaller (near a zero of the result that is
not a number of the dtype, digits cancel). The bound is that of value, first and second derivative, in units in the last place of the exact
result, for float32 and float64; `halves` that of float16 and bfloat16. Both are DEFAULT unless stated.
"""

import math
from dataclasses import dataclass, field

import number_jets as j
import number_special as special
import numpy as np
from mpmath import mp
from number_errors import PRECISIONS, QUICK
from number_jets import exp, jet, log, log1p, maximum, minimum, sigmoid, softplus, sqrt

DEFAULT = (4, 8, 16)
HALVES = (1, 4, 8)


@dataclass(frozen=True)
class Row:
    formula: object
    kinds: tuple = ("any",)
    options: dict = field(default_factory=dict)
    constant: tuple = ()
    bound: tuple = DEFAULT
    halves: tuple = HALVES
    least: tuple = (0, 0, 0)
    call: object = None
    orders: int = 2
    only: object = None  # a set of arguments that are measured: a predicate of their floats
    tail: float = 0  # results below this many times the smallest normal number have the unit of that
    ends: bool = False  # derivatives at infinite arguments too
    precisions: tuple = PRECISIONS


TWO, THREE = ("any", "any"), ("any", "any", "any")
half = mp.mpf("0.5")
SELU = (mp.mpf("1.6732632423543772848170429916717"), mp.mpf("1.0507009873554804934193349852946"))


def away_from_cancellation(x, y):
    """logaddexp is the larger argument plus a logarithm: where both cancel, the last digits of the arguments decide."""
    found = float(np.logaddexp(x, y))
    return not abs(found) <= 0.25 * min(abs(x), abs(y))


def kl_away_from_cancellation(x, t):
    """t (log t - x) and its derivative log t + 1 - x, away from their zeros."""
    return t == 0 or min(abs(math.log(t) - x), abs(math.log(t) + 1 - x)) > 0.5


def n(x):
    """A number that an entry writes, as the nearest float64."""
    return mp.mpf(float(x))


def elu(x, alpha=1, scale=1, input_scale=1):
    return x * scale if x > 0 else j.expm1(x * input_scale) * (alpha * scale)


def slope_of(function):
    """dy times the derivative of a function of jets. Its own derivatives are the function's second one, and are measured there."""
    return lambda dy, x: jet(dy.value * function(j.Jet(x.value, 1)).first)


def positive(x):
    return x > 0


def silu(x):
    return x * sigmoid(x)


def gelu(x):
    return x * j.normal_cdf(x)


def gelu_tanh(x):
    k = 2 * mp.sqrt(2 / mp.pi)
    return x * sigmoid(x * (x * x * (n(0.044715) * k) + k))


def mish(x):
    e = exp(minimum(x, 2000))
    m = e * (e + 2)
    return x * (m / (m + 2)) if x < 2000 else x


def softsign(x):
    return x / (abs(x) + 1)


def hard(x):
    return minimum(maximum(x + 3, 0), 6) / 6


def relu(x):
    return x if x > 0 else jet(0)


def shrunk(x):
    return jet(0) if abs(x) <= half else x - half * j.sign(x)


def threshold_softplus(x):
    return x if x > 20 else softplus(x)


def sinc(x):
    p = x * mp.pi
    return jet(1) + p * p * (-mp.mpf(1) / 6) if x.value == 0 else j.sin(p) / p


def logaddexp(x, y):
    high, low = (x, y) if x > y else (y, x)
    return high + log1p(exp(low - high))


def xlogy(x, y):
    return x * log(y)


def fmod(x, y):
    return x - y * mp.sign(x.value) * mp.sign(y.value) * mp.floor(abs(x.value) / abs(y.value))


def remainder(x, y):
    return x - y * mp.floor(x.value / y.value)


def bce(x, t):
    return -(t * maximum(log(x), -100) + (1 - t) * maximum(log1p(-x), -100))


def bce_with_logits(x, t):
    return t * softplus(-x) + (1 - t) * softplus(x)


def kl_div(x, t):
    steep = j.Jet(0, -mp.inf, mp.inf) if t.first else jet(0)  # at 0
    return (t * log(t) if t > 0 else steep) - t * x


def smooth_l1(x, t):
    d = abs(x - t)
    return d * d * half if d < 1 else d - half


def huber(x, t):
    d = abs(x - t)
    return d * d * half if d <= 1 else d - half


def gaussian_nll(x, t, v):
    v = maximum(v, n(1e-6)) if v.first == 0 else jet(v) + (max(v.value, n(1e-6)) - v.value)
    return (log(v) + (x - t) * (x - t) / v) * half


def clip(x):
    return minimum(maximum(x, -1), 1)


def steps(function):
    return lambda x: jet(function(jet(x).value))


def finite(*xs):
    return bool(np.isfinite(xs).all())


def divisor(x, y):
    return abs(y) > 1e-30 and finite(x, y)


def ordinary(*xs):
    """Finite, with powers of each in range."""
    return all(x == 0 or 1e-9 < abs(x) < 1e9 for x in xs)


REFERENCES = {
    # arithmetic
    "copy": Row(lambda x: x + 0),
    "cast": Row(lambda x: x + 0, call=lambda op, x: op(x, x.dtype)),
    "positive": Row(lambda x: x + 0),
    "negative": Row(lambda x: -x),
    "conj": Row(lambda x: x + 0),
    "stop_gradient": Row(lambda x: jet(x.value)),
    "reverse_constant": Row(lambda x: jet(x.value)),
    "abs": Row(abs),
    "fabs": Row(abs),
    "sign": Row(lambda x: jet(j.sign(x))),
    "square": Row(lambda x: x * x),
    "add": Row(lambda x, y: x + y, TWO, only=finite),
    "subtract": Row(lambda x, y: x - y, TWO, only=finite),
    "multiply": Row(lambda x, y: x * y, TWO),
    "divide": Row(lambda x, y: x / y, TWO, only=divisor, tail=2.0**10),
    "maximum": Row(maximum, TWO),
    "minimum": Row(minimum, TWO),
    "fmax": Row(maximum, TWO),
    "fmin": Row(minimum, TWO),
    "clip": Row(clip, call=lambda op, x: op(x, -1, 1)),
    "copysign": Row(lambda x, y: abs(x) if y >= 0 else -abs(x), TWO, only=lambda x, y: y != 0),
    "where": Row(lambda c, x, y: x + 0 if c.value else y + 0, ("label", "any", "any"), constant=(0,), call=lambda op, c, x, y: op(c != 0, x, y)),
    "masked_fill": Row(lambda x, m, v: v + 0 if m.value else x + 0, ("any", "label", "any"), constant=(1,), call=lambda op, x, m, v: op(x, m != 0, v)),
    "nan_to_num": Row(lambda x: x + 0, only=np.isfinite),
    "heaviside": Row(lambda x, y: jet(0) if x < 0 else jet(1) if x > 0 else y + 0, TWO),
    "lerp": Row(lambda x, y, w: x + (y - x) * w, ("moderate", "moderate", "unit"), least=(16, 1, 1)),
    "addcmul": Row(lambda x, y, z: x + y * z, ("moderate",) * 3, least=(64, 0, 0)),
    "addcdiv": Row(lambda x, y, z: x + y / z, ("moderate",) * 3, least=(16, 0, 0)),
    "fmod": Row(fmod, TWO, only=divisor),
    "remainder": Row(remainder, TWO, only=divisor),
    "floor_divide": Row(lambda x, y: jet(mp.floor(x.value / y.value)), TWO, only=divisor),
    "frac": Row(lambda x: x - mp.sign(x.value) * mp.floor(abs(x.value)), only=np.isfinite),
    "floor": Row(steps(mp.floor)),
    "ceil": Row(steps(mp.ceil)),
    "trunc": Row(steps(lambda v: mp.sign(v) * mp.floor(abs(v)))),
    "round": Row(steps(mp.nint)),
    "round_ste": Row(lambda x: x + (mp.nint(x.value) - x.value), only=np.isfinite),
    "ldexp": Row(lambda x, e: x * mp.ldexp(1, int(e.value)), ("any", "moderate"), constant=(1,), call=lambda op, x, e: op(x, e.astype("int32"))),
    "deg2rad": Row(lambda x: x * (mp.pi / 180)),
    "rad2deg": Row(lambda x: x * (180 / mp.pi)),
    "angle": Row(lambda x: jet(mp.pi if x < 0 else 0), only=lambda x: x != 0),
    # powers
    "sqrt": Row(sqrt),
    "rsqrt": Row(lambda x: 1 / sqrt(x)),
    "reciprocal": Row(lambda x: 1 / x),
    "cbrt": Row(j.cbrt),
    # Derivatives are x^y times powers of log x, and lose what x^y loses where it is subnormal.
    "pow": Row(j.power, ("positive", "moderate"), bound=(4, 128, 128), halves=(1, 4, 32), only=lambda x, y: x > 1e-30, tail=2.0**12),
    "hypot": Row(j.hypot, TWO),
    "atan2_slope": Row(lambda x, y: y / (x * x + y * y), TWO, orders=1, tail=2.0**10, bound=(4, 16, 32), only=lambda x, y: ordinary(x, y) and abs(abs(x) - abs(y)) > 0.1 * max(abs(x), abs(y))),
    "asin_slope": Row(lambda x: 1 / sqrt((1 - x) * (1 + x)), only=lambda x: abs(x) < 1),
    "atanh_slope": Row(lambda x: 1 / ((1 - x) * (1 + x)), only=lambda x: abs(x) < 1),
    "hypot_slope": Row(lambda x, y: x / j.hypot(x, y), TWO, tail=2.0**10, bound=(4, 16, 32), only=ordinary),
    # exponentials and logarithms
    "exp": Row(exp),
    "exp2": Row(lambda x: exp(x * mp.log(2))),
    "expm1": Row(j.expm1),
    "log": Row(log),
    "log1p": Row(log1p),
    "log2": Row(lambda x: log(x) / mp.log(2)),
    "log10": Row(lambda x: log(x) / mp.log(10)),
    "logaddexp": Row(logaddexp, TWO, bound=(8, 128, 128), only=away_from_cancellation),
    "xlogy": Row(xlogy, ("any", "positive"), only=finite),
    "logit": Row(lambda x: log(x / (1 - x)), ("unit",), least=(0, 0, 1)),
    # trigonometry
    "sin": Row(j.sin),
    "cos": Row(j.cos),
    "tan": Row(j.tan),
    "asin": Row(j.asin),
    "acos": Row(j.acos),
    "atan": Row(j.atan),
    "atan2": Row(j.atan2, TWO, tail=2.0**10, only=lambda x, y: x != 0),
    "sinh": Row(j.sinh),
    "cosh": Row(j.cosh),
    "tanh": Row(j.tanh),
    "asinh": Row(j.asinh),
    "acosh": Row(j.acosh),
    "atanh": Row(j.atanh),
    "sinc": Row(sinc, least=(0, 0.1, 1), only=np.isfinite),
    # special functions
    "erf": Row(j.erf),
    "erfc": Row(j.erfc),
    "erfinv": Row(j.erfinv, bound=(4, 128, 256), halves=(1, 16, 32), precisions=QUICK),
    "gaussian": Row(lambda x: exp(-x * x), least=(0, 0, 1), tail=64),
    "lgamma": Row(j.lgamma, bound=(64, 8, 16), kinds=("moderate",), least=(1, 1, 1), precisions=QUICK),
    "digamma": Row(lambda x: j.polygamma(0, x), ("moderate",), bound=(8, 8, 64), least=(1, 1, 1), precisions=QUICK),
    "polygamma": Row(lambda x: j.polygamma(1, x), bound=(8, 64, 16), kinds=("moderate",), call=lambda op, x: op(1, x), least=(1, 1, 1), precisions=QUICK),
    # Near their zeros, and where a derivative is the difference of two of them, Bessel functions have absolute errors alone.
    "i0": Row(special.i0, ("moderate",), bound=(8, 8, 16), precisions=special.PRECISIONS),
    "i1": Row(special.i1, ("moderate",), bound=(8, 8, 16), precisions=special.PRECISIONS),
    "i0e": Row(special.i0e, ("moderate",), bound=(8, 64, 512), precisions=special.PRECISIONS),
    "i1e": Row(special.i1e, ("moderate",), bound=(8, 256, 8192), precisions=special.PRECISIONS),
    "bessel_j0": Row(special.j0, ("moderate",), bound=(16, 16, 64), least=(0.25, 0.25, 0.25), precisions=special.PRECISIONS),
    "bessel_j1": Row(special.j1, ("moderate",), bound=(16, 16, 64), least=(0.25, 0.25, 0.25), precisions=special.PRECISIONS),
    "bessel_y0": Row(special.y0, ("moderate",), bound=(16, 16, 64), least=(0.25, 0.25, 0.25), precisions=special.PRECISIONS, only=positive),
    "bessel_y1": Row(special.y1, ("moderate",), bound=(16, 64, 64), least=(0.25, 0.25, 0.25), precisions=special.PRECISIONS, only=positive),
    "modified_bessel_k0": Row(special.k0, ("moderate",), bound=(16, 16, 16), precisions=special.PRECISIONS, only=positive),
    "modified_bessel_k1": Row(special.k1, ("moderate",), bound=(16, 16, 16), precisions=special.PRECISIONS, only=positive),
    "scaled_modified_bessel_k0": Row(special.k0e, ("moderate",), bound=(16, 64, 128), precisions=special.PRECISIONS, only=positive),
    "scaled_modified_bessel_k1": Row(special.k1e, ("moderate",), bound=(16, 64, 128), precisions=special.PRECISIONS, only=positive),
    "erfcx": Row(special.erfcx, ("moderate",), bound=(8, 16, 128)),
    "ndtr": Row(special.ndtr, bound=(8, 8, 16), tail=64),
    "log_ndtr": Row(special.log_ndtr, bound=(16, 16, 64), tail=64, kinds=("moderate",)),
    "ndtri": Row(special.ndtri, ("unit",), bound=(8, 64, 128), halves=(1, 16, 32), only=lambda p: 0 < p < 1, precisions=special.PRECISIONS),
    "zeta": Row(special.zeta, ("moderate", "positive"), bound=(16, 16, 16), constant=(0,), only=lambda s, q: s > 1.01 and 1e-3 < q < 1e6, precisions=special.PRECISIONS),
    # activations
    "relu": Row(relu),
    "relu6": Row(lambda x: minimum(relu(x), 6)),
    "sigmoid": Row(sigmoid, ends=True),
    "silu": Row(silu, ends=True, tail=2.0**12, least=(0, 0.25, 1)),
    "gelu": Row(gelu, only=lambda x: not x < -1e4, tail=2.0**12, least=(0, 0.25, 1), bound=(1024, 16, 32)),
    "gelu_tanh": Row(gelu_tanh, ends=True, least=(0, 0.25, 0), tail=2.0**12, bound=(1024, 1024, 2048)),
    "mish": Row(mish, ends=True, tail=2.0**12, least=(0, 0.25, 1)),
    "elu": Row(elu, ends=True),
    "celu": Row(elu),
    "selu": Row(lambda x: elu(x, *map(n, SELU)), ends=True),
    "leaky_relu": Row(lambda x: x + 0 if x > 0 else x * n(0.01)),
    "prelu": Row(lambda x, w: x + 0 if x > 0 else x * w, TWO),
    "softplus": Row(threshold_softplus, ends=True),
    "logsigmoid": Row(lambda x: -softplus(-x)),
    "softsign": Row(softsign, ends=True),
    "tanhshrink": Row(lambda x: x - j.tanh(x), ends=True, bound=(16, 8, 16)),
    "hardtanh": Row(clip),
    "hardsigmoid": Row(hard),
    "hardswish": Row(lambda x: x * hard(x)),
    "hardshrink": Row(lambda x: jet(0) if abs(x) <= half else x + 0),
    "softshrink": Row(shrunk),
    "threshold": Row(lambda x: x + 0 if x > n(0.1) else jet(20), call=lambda op, x: op(x, 0.1, 20)),
    # derivatives of activations
    "sigmoid_grad": Row(lambda dy, y: dy * (y * (1 - y)), ("moderate", "unit"), least=(0, 20, 20)),
    "tanh_grad": Row(lambda dy, y: dy * ((1 - y) * (1 + y)), ("moderate", "unit"), least=(20, 20, 20)),
    "sigmoid_slope": Row(slope_of(sigmoid), ("moderate", "any"), orders=0),
    "tanh_slope": Row(slope_of(j.tanh), ("moderate", "any"), orders=0, tail=2.0**5),
    "log_softmax_slope": Row(lambda dy, y, t: exp(y) * (dy - t) - dy * j.expm1(y), ("moderate", "moderate", "moderate"), orders=0, least=(20, 0, 0), only=lambda dy, y, t: -80 < y <= 0),
    "silu_grad": Row(slope_of(silu), ("moderate", "any"), orders=0, tail=2.0**12, least=(5, 0, 0)),
    "gelu_grad": Row(slope_of(gelu), ("moderate", "any"), orders=0, tail=2.0**12, least=(5, 0, 0), bound=(8, 8, 16)),
    "gelu_tanh_grad": Row(slope_of(gelu_tanh), ("moderate", "any"), orders=0, tail=2.0**12, bound=(1024, 1024, 2048)),
    "mish_grad": Row(slope_of(mish), ("moderate", "any"), orders=0, tail=2.0**12, least=(5, 0, 0)),
    "elu_grad": Row(slope_of(elu), ("moderate", "any"), orders=0),
    "leaky_relu_grad": Row(lambda dy, x: dy + 0 if x > 0 else dy * n(0.01), ("moderate", "any")),
    "softplus_grad": Row(slope_of(threshold_softplus), ("moderate", "any"), orders=0),
    "softsign_grad": Row(slope_of(softsign), ("moderate", "any"), orders=0),
    "tanhshrink_grad": Row(slope_of(lambda x: x - j.tanh(x)), ("moderate", "any"), orders=0, tail=64),
    "hardtanh_grad": Row(lambda dy, x: dy + 0 if -1 < x.value < 1 else jet(0), ("moderate", "any")),
    "hardsigmoid_grad": Row(lambda dy, x: dy / 6 if -3 < x.value < 3 else jet(0), ("moderate", "any")),
    "hardswish_grad": Row(slope_of(lambda x: x * hard(x)), ("moderate", "any"), orders=0),
    "shrink_grad": Row(lambda dy, x: dy + 0 if abs(x) > half else jet(0), ("moderate", "any")),
    "threshold_grad": Row(lambda dy, x: dy + 0 if x > 0 else jet(0), ("moderate", "any")),
    # losses, element by element
    "mse_loss": Row(lambda x, t: (x - t) * (x - t), TWO, only=finite),
    "l1_loss": Row(lambda x, t: abs(x - t), TWO, only=finite),
    "smooth_l1_loss": Row(smooth_l1, TWO, only=lambda x, t: abs(abs(x - t) - 1) > 1e-6),
    "huber_loss": Row(huber, TWO, only=lambda x, t: abs(abs(x - t) - 1) > 1e-6),
    "binary_cross_entropy": Row(bce, ("unit", "unit"), only=lambda x, t: 1e-7 < x < 1, least=(0, 1, 0), bound=(4, 32, 4096)),
    "binary_cross_entropy_with_logits": Row(bce_with_logits, ("any", "label"), only=lambda x, t: np.isfinite(x)),
    "kl_div": Row(kl_div, ("moderate", "unit"), only=kl_away_from_cancellation, bound=(64, 64, 16)),
    "poisson_nll_loss": Row(lambda x, t: exp(x) - t * x, ("moderate", "unit")),
    "gaussian_nll_loss": Row(gaussian_nll, ("moderate", "moderate", "positive"), bound=(8, 512, 512)),
    "hinge_embedding_loss": Row(lambda x, t: x + 0 if t.value == 1 else relu(1 - x), ("any", "sign"), constant=(1,)),
    "margin_ranking_loss": Row(lambda x, y, t: relu(-t * (x - y)), ("any", "any", "sign"), constant=(2,), only=finite),
    "soft_margin_loss": Row(lambda x, t: softplus(-t * x), ("any", "sign"), tail=2.0**12),
}
