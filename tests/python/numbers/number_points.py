"""The arguments at which errors are measured, as float64 arrays whose elements are numbers of the dtype.

A third is uniform in the bits of the dtype (so in the exponent, with both signs and subnormals), a third uniform in the
exponent from 2^-12 to 2^8, a third uniform from -20 to 20; then the edges. Of several arguments each is drawn alone; a part of the points has
arguments that are equal, opposite or near each other.
"""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Format:
    """A binary floating format: bits of the significand with the implicit one, and exponents of the smallest and largest normal number."""

    digits: int
    least: int
    most: int

    @property
    def largest(self):
        return float((2 - 2.0 ** (1 - self.digits)) * 2.0**self.most)

    @property
    def smallest(self):
        return float(2.0 ** (self.least - self.digits + 1))

    @property
    def eps(self):
        return 2.0 ** (1 - self.digits)


FORMATS = {"float64": Format(53, -1022, 1023), "float32": Format(24, -126, 127), "float16": Format(11, -14, 15), "bfloat16": Format(8, -126, 127)}


def rounded(values, dtype):
    """The nearest numbers of the dtype, as float64."""
    values = np.asarray(values, np.float64)
    if dtype == "float64":
        return values
    if dtype == "bfloat16":
        with np.errstate(over="ignore"):
            bits = values.astype(np.float32).view(np.uint32)
        even = bits + 0x7FFF + (bits >> 16 & 1)
        return np.where(np.isnan(values), values, (even & np.uint32(0xFFFF0000)).view(np.float32).astype(np.float64))
    with np.errstate(over="ignore"):
        return values.astype(dtype).astype(np.float64)


def edges(dtype):
    f = FORMATS[dtype]
    normal = 2.0**f.least
    sizes = [0.0, f.smallest, normal - f.smallest, normal, f.eps, 0.5, 1.0, 1.0 + f.eps, 1.0 - f.eps / 2, 2.0, 15.0, 17.5, f.largest, np.inf]
    return np.asarray([s for size in sizes for s in (size, -size)] + [np.nan])


def spread(dtype, count, draw):
    f = FORMATS[dtype]
    third = count // 3
    sign = draw.choice([-1.0, 1.0], count)
    whole = 2.0 ** draw.uniform(f.least - f.digits + 1, f.most, third) * (1 + draw.uniform(0, 1, third))
    ordinary = 2.0 ** draw.uniform(-12, 8, third)
    near = draw.uniform(0, 20, count - 2 * third)
    values = rounded(sign * np.concatenate([whole, ordinary, near]), dtype)
    return draw.permutation(values[np.isfinite(values)])


def _unit(dtype, count, draw):
    """Numbers of [0, 1], near both ends too."""
    drawn = np.concatenate([draw.uniform(0, 1, count // 2), 2.0 ** draw.uniform(-30, 0, count - count // 2)])
    drawn[::3] = 1 - drawn[::3]
    return np.concatenate([rounded(draw.permutation(drawn), dtype), [0.0, 1.0, 0.5]])


def numbers(kind, dtype, count, draw):
    """`count` points and the edges, of one kind of argument."""
    if kind == "any":
        return np.concatenate([spread(dtype, count, draw), edges(dtype)])
    if kind == "positive":
        values = np.abs(np.concatenate([spread(dtype, count, draw), edges(dtype)]))
        return values[values > 0]
    if kind == "unit":
        return _unit(dtype, count, draw)
    if kind == "sign":
        return draw.choice([-1.0, 1.0], count)
    if kind == "label":
        return draw.choice([0.0, 1.0], count)
    if kind == "moderate":
        return rounded(draw.uniform(-20, 20, count), dtype)
    raise AssertionError(kind)


def points(kinds, dtype, count, seed=0):
    """One array per argument, of one length."""
    draw = np.random.default_rng([seed, FORMATS[dtype].digits, len(kinds)])
    if len(kinds) == 1:
        return [numbers(kinds[0], dtype, count, draw)]
    drawn = [draw.permutation(numbers(kind, dtype, count, draw)) for kind in kinds]
    size = max(len(values) for values in drawn)
    found = [np.resize(values, size) for values in drawn]
    if kinds[0] == kinds[1] == "any":  # near each other
        n = size // 8
        found[1][:n] = rounded(found[0][:n] * (1 + draw.integers(-3, 4, n) * FORMATS[dtype].eps), dtype)
        found[1][n : 2 * n] = found[0][n : 2 * n]
        found[1][2 * n : 3 * n] = -found[0][2 * n : 3 * n]
    return found


def vectors(dtype, count, length, magnitude=None, seed=0):
    """Rows of `length` numbers: of one exponent for all, and of an exponent for each."""
    draw = np.random.default_rng([seed, FORMATS[dtype].digits, length])
    f = FORMATS[dtype]
    sign = draw.choice([-1.0, 1.0], (count, length))
    size = 2.0 ** draw.uniform(f.least + f.digits, f.most, (count, 1))
    size[::2] = 2.0 ** draw.uniform(-6, 6, (len(size[::2]), 1))
    each = np.where(np.arange(count)[:, None] % 4 == 3, 2.0 ** draw.uniform(-20, 20, (count, length)), draw.uniform(0.1, 1, (count, length)))
    if magnitude is not None:
        size, each = magnitude, draw.uniform(-1, 1, (count, length))
    values = rounded(sign * size * each, dtype)
    return values[np.isfinite(values).all(axis=1)]
