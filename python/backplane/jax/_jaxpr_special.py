"""to_graph's table: special functions that JAX has as primitives and Backplane has not as ops.

Bessel and zeta functions are series here. JAX states the others in Python, for its own compilers: these functions are traced before the graph is.
"""

import functools
import importlib
import math

import jax
import jax.numpy as jnp
import numpy as np

import backplane as bp

from ._jaxpr_table import computes, dtype_of, refuse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_LARGE = 20  # from here on the asymptotic series has its smallest term below 2^-53
_TERMS = (64, 24)  # of both series, enough for float64
# B(2k) / (2k)!, the factors of the Euler-Maclaurin sum (Digital Library of Mathematical Functions, 25.11.28 and 24.2).
_BERNOULLI = [1 / 12, -1 / 720, 1 / 30240, -1 / 1209600, 1 / 47900160, -691 / 1307674368000, 1 / 74724249600, -3617 / 10670622842880000, 43867 / 5109094217170944000]
_SUMMED = 10  # terms of the zeta series before that sum


def _at_least_float32(*inputs):
    """The inputs in float32 if they are halves, and the dtype of the result."""
    dtype = inputs[0].dtype
    return ([bp.cast(x, bp.float32) for x in inputs] if dtype.itemsize == 2 else list(inputs)), dtype


def _scaled_bessel(order, x):
    """exp(-|x|) I(order, x) for order 0 or 1: the power series (DLMF 10.25.2), whose terms are positive, or the expansion for large |x| (10.40.1)."""
    (x,), dtype = _at_least_float32(x)
    size = bp.abs(x)
    near = bp.minimum(size, _LARGE)
    quarter, total = near * near / 4, bp.ones_like(near)
    for k in reversed(range(1, _TERMS[0])):
        total = 1 + quarter / (k * (k + order)) * total
    small = total * bp.exp(-near) * (near / 2 if order else 1)
    far = bp.maximum(size, _LARGE)
    total = bp.ones_like(far)
    for k in reversed(range(1, _TERMS[1])):
        total = 1 - (4 * order - (2 * k - 1) ** 2) / (8 * k) / far * total
    found = bp.where(size < _LARGE, small, total / bp.sqrt(2 * math.pi * far))
    found = bp.where(bp.isnan(x), x, bp.copysign(found, x) if order else found)
    return bp.cast(found, dtype)


@computes("bessel_i0e")
def bessel_i0e(x):
    return _scaled_bessel(0, x)


@computes("bessel_i1e")
def bessel_i1e(x):
    return _scaled_bessel(1, x)


def _hurwitz(s, q):
    """sum (q + k)^-s over k >= 0: some terms, then the Euler-Maclaurin sum for the rest (DLMF 25.11.28)."""
    total = bp.zeros_like(q + s)
    for k in range(_SUMMED):
        total = total + bp.pow(q + k, -s)
    end = q + _SUMMED
    last = bp.pow(end, -s)
    total = total + last * end / (s - 1) + last / 2
    factor = s * last / end
    for k, number in enumerate(_BERNOULLI):
        total = total + number * factor
        factor = factor * (s + 2 * k + 1) / end * (s + 2 * k + 2) / end
    # A large s makes factors overflow or terms inexact where the first term is the sum already.
    total = bp.where(s >= 60, bp.pow(q, -s) + bp.pow(q + 1, -s) + bp.pow(q + 2, -s), total)
    return bp.where(bp.isinf(q) & (q > 0) & (s > 1), bp.zeros_like(total), total)


@computes("zeta")
def zeta(s, q):
    """Hurwitz's zeta function. Poles are infinite; where a negative number has no real power, it is NaN."""
    (s, q), dtype = _at_least_float32(s, q)
    total = _hurwitz(s, q)
    whole = bp.equal(q, bp.floor(q))
    nothing, pole = bp.full((), math.nan, dtype=q.dtype, device=q.device), bp.full((), math.inf, dtype=q.dtype, device=q.device)
    total = bp.where((q <= 0) & whole, pole, total)
    total = bp.where((q <= 0) & ~whole & bp.not_equal(s, bp.floor(s)), nothing, total)
    total = bp.where(bp.equal(s, 1), pole, bp.where(s < 1, nothing, total))
    return bp.cast(bp.where(bp.isnan(q) | bp.isnan(s), nothing, total), dtype)


@computes("polygamma")
def polygamma(n, x):
    """The n-th derivative of digamma, n a tensor (DLMF 25.11.12)."""
    (n, x), dtype = _at_least_float32(n, x)
    sign = bp.where(bp.equal(bp.remainder(n, 2), 0), -1, 1)
    found = sign * bp.exp(bp.lgamma(n + 1)) * bp.cast(zeta(n + 1, x), x.dtype)
    found = bp.where(bp.equal(n, 0), bp.digamma(x), found)
    good = (n >= 0) & bp.equal(n, bp.floor(n))
    return bp.cast(bp.where(good, found, bp.full((), math.nan, dtype=x.dtype, device=x.device)), dtype)


# ---- what JAX states in Python -------------------------------------------------------------------------------------

_STATED = ("igamma", "igammac", "igamma_grad_a", "random_gamma_grad", "regularized_incomplete_beta")
_MODULES = ("jax._src.lax.special", "jax._src.random.core", "jax._src.random")  # of all versions of JAX that are supported


def _stated_by_jax(name):
    for module in _MODULES:
        try:
            return getattr(importlib.import_module(module), name)
        except (ImportError, AttributeError):
            continue
    return refuse(f"this version of JAX has no function {name}, which computes a primitive. Found JAX {jax.__version__}, tried 0.8 to 0.10")


def function_of(equation: "Any") -> "Callable[..., Any] | None":
    """JAX's own function of the arrays of a primitive; None for other primitives."""
    name, params = equation.primitive.name, equation.params
    if name == "random_gamma":
        return functools.partial(_stated_by_jax("_gamma_impl"), use_vmap=True, **params)
    if name not in _STATED:
        return None
    function, dtype = _stated_by_jax(f"{name}_impl"), np.dtype(equation.outvars[0].aval.dtype)
    dtype_of(dtype)
    wide = jnp.float32 if dtype.itemsize == 2 else dtype

    def run(*inputs):
        inputs = jnp.broadcast_arrays(*(x.astype(wide) for x in inputs))
        return function(*inputs, dtype=wide).astype(dtype)

    return run
