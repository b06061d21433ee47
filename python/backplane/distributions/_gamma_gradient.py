"""How a gamma variable moves with its concentration, where its probability stays the same: the derivative of samples.

With F the cumulative distribution and p the density of a variable z of concentration a and rate 1, a sample that keeps F(z; a) moves
by dz/da = -(dF/da) / p (Figurnov, Mohamed and Mnih, "Implicit reparameterization gradients", 2018). Here of log z:

    slope = -(dF/da) / (z p) = -∫ u ** (a - 1) · exp(z (1 - u)) · (log(z u) - digamma(a)) du over 0 to 1

or the same over 1 to ∞ with the other sign. Small z: the power series of the incomplete gamma function. Others: Gauss-Legendre
quadrature over the logarithm of u, on the side of the mode where the integrand falls. In float64, where relative errors are below 1e-11.
"""

import functools
import math

import backplane as bp

__all__ = []

_SMALL, _TERMS, _NODES = 4.0, 64, 48


@functools.cache
def legendre(n):
    """Nodes and weights of Gauss-Legendre quadrature over 0 to 1, by Newton's method."""
    nodes, weights = [], []
    for i in range(n):
        x = math.cos(math.pi * (i + 0.75) / (n + 0.5))
        for _ in range(8):
            before, now = 1.0, x
            for k in range(2, n + 1):
                before, now = now, ((2 * k - 1) * x * now - (k - 1) * before) / k
            slope = n * (x * now - before) / (x * x - 1)
            x -= now / slope
        nodes.append((x + 1) / 2)
        weights.append(1 / ((1 - x * x) * slope * slope))
    return nodes, weights


def _series(a, log_z):
    """-Σ z ** k / (a (a + 1) … (a + k)) · (log z - digamma(a + k + 1))."""
    z, term = bp.exp(log_z), 1 / a
    gap = log_z - bp.digamma(a) - term
    total = term * gap
    for k in range(1, _TERMS):
        term = term * z / (a + k)
        gap = gap - 1 / (a + k)
        total = total + term * gap
    return -total


def _integral(a, log_z):
    nodes, weights = legendre(_NODES)
    z = bp.exp(log_z)
    below = z < a
    # Where the exponent has fallen by 40, from bounds of exp.
    far = bp.where(below, (40 + z) / a, 40 / bp.maximum(z - a, 1e-9))
    curved = bp.where(below, bp.where(z > 120, bp.sqrt(120 / z), far), bp.sqrt(80 / z))
    width = bp.minimum(far, curved)
    start, sign = log_z - bp.digamma(a), bp.where(below, -1.0, 1.0)
    total = 0.0
    for node, weight in zip(nodes, weights):
        w = sign * width * node  # log u
        total = total + weight * bp.exp(a * w - z * bp.expm1(w)) * (start + w)
    return sign * width * total


def slope(a, log_z):
    """The derivative of log z with respect to a, in the dtype of a."""
    wide, log = a.astype(bp.float64), log_z.astype(bp.float64)
    is_small = log < math.log(_SMALL)
    small = _series(wide, bp.where(is_small, log, 0.0))
    large = _integral(wide, bp.where(is_small, math.log(2 * _SMALL), log))
    return bp.where(is_small, small, large).astype(a.dtype)


@bp.custom_function
def attached(a, log_z):
    """log_z, a sample of concentration a, with its derivative."""
    return bp.copy(log_z)


@attached.defjvp
def _rule(primals, tangents):
    a, log_z = primals
    made = attached(a, log_z)
    tangent = 0.0 if tangents[0] is None else tangents[0] * slope(a, made)
    return made, tangent if tangents[1] is None else tangent + tangents[1]
