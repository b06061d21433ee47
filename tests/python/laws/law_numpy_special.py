"""Bessel functions, the normal distribution's functions and Hurwitz's zeta function, by mpmath."""

import numpy as np
from mpmath import mp

SQRT_2 = mp.sqrt(2)


def each(function):
    """A function of mpmath's numbers over the elements of arrays."""
    over_all = np.vectorize(lambda *values: float(mp.re(function(*map(mp.mpf, map(float, values))))), otypes=[float])
    return lambda **arrays: over_all(*arrays.values()) if (all_of := np.broadcast(*arrays.values())).size else np.zeros(all_of.shape)


def bessel(function, order, scale=lambda x: 0):
    return each(lambda x: function(order, x) * mp.exp(scale(x)))


def ndtr(x):
    return mp.erfc(-x / SQRT_2) / 2


SPECIAL = {
    "i0": bessel(mp.besseli, 0),
    "i1": bessel(mp.besseli, 1),
    "i0e": bessel(mp.besseli, 0, lambda x: -abs(x)),
    "i1e": bessel(mp.besseli, 1, lambda x: -abs(x)),
    "bessel_j0": bessel(mp.besselj, 0),
    "bessel_j1": bessel(mp.besselj, 1),
    "bessel_y0": bessel(mp.bessely, 0),
    "bessel_y1": bessel(mp.bessely, 1),
    "modified_bessel_k0": bessel(mp.besselk, 0),
    "modified_bessel_k1": bessel(mp.besselk, 1),
    "scaled_modified_bessel_k0": bessel(mp.besselk, 0, lambda x: x),
    "scaled_modified_bessel_k1": bessel(mp.besselk, 1, lambda x: x),
    "erfcx": each(lambda x: mp.exp(x * x) * mp.erfc(x)),
    "ndtr": each(ndtr),
    "log_ndtr": each(lambda x: mp.log(ndtr(x))),
    "ndtri": each(lambda p: -SQRT_2 * mp.erfinv(1 - 2 * p)),
    "zeta": each(mp.zeta),
}
