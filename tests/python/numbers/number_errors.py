"""Exact values of a reference formula, and the errors of the found values, in units in the last place of the exact result."""

import mpmath
import numpy as np
from mpmath import mp
from number_jets import Jet, jet
from number_points import FORMATS

PRECISIONS = (240, 720, 4000)
QUICK = (200, 400, 800)  # of the gamma function and its kin, which are slow and whose formulas do not cancel
AGREE = mpmath.mpf(2) ** -70


def evaluate(formula, arguments, along, precision):
    """(value, first, second) of the formula along one argument, or None where it is not defined."""
    with mp.workprec(precision):
        jets = [Jet(x, 1 if i == along else 0) for i, x in enumerate(arguments)]
        try:
            y = jet(formula(*jets))
        except (ZeroDivisionError, ValueError, TypeError, OverflowError, mpmath.libmp.NoConvergence):
            return None
        return (y.value, y.first, y.second)


def _agree(a, b):
    if a == b:
        return True
    if not (mp.isfinite(a) and mp.isfinite(b)):
        return False
    return abs(a - b) <= AGREE * abs(b)


def converged(formula, arguments, along, precisions):
    """By two precisions that agree; a third where they do not, or where a result is 0 and may have cancelled."""
    first, second = (evaluate(formula, arguments, along, p) for p in precisions[:2])
    if first is None and second is None:
        return None
    if first is not None and second is not None and all(b != 0 and _agree(a, b) for a, b in zip(first, second)):
        return second
    return evaluate(formula, arguments, along, precisions[2])


def _limit(formula, arguments, along, dtype, steady):
    """Where zeros and infinities leave the formula undefined: what it approaches, component by component, or None.

    Infinities become large numbers; zeros small ones, where there is no infinity. Two choices must agree.
    """
    if any(np.isnan(x) for x in arguments):
        return (None, None, None)
    infinite = any(np.isinf(x) for x in arguments)
    found = []
    for size, step in ((2100, 3), (2650, 11)):
        stand_ins = [mp.mpf(float(x)) for x in arguments]
        for i, x in enumerate(arguments):
            if np.isinf(x):
                stand_ins[i] = mp.ldexp(1 if x > 0 else -1, size + step * i)
            elif x == 0 and not infinite and i not in steady:
                stand_ins[i] = mp.ldexp(-1 if np.signbit(x) else 1, -size - step * i)
        found.append(evaluate(formula, stand_ins, along, 9000))
    if None in found:
        return (None, None, None)
    pairs = [(to_format(a, dtype), to_format(b, dtype)) for a, b in zip(*found)]
    return tuple(mp.mpf(a) if a == b else None for a, b in pairs)


def exact(formula, arguments, along, dtype, steady=(), precisions=PRECISIONS):
    """(value, first, second), each an mpf (perhaps infinite) or None where there is no such number. The arguments `steady` are not moved."""
    if all(np.isfinite(x) for x in arguments):
        found = converged(formula, [mp.mpf(float(x)) for x in arguments], along, precisions)
        if found is not None and all(mp.isfinite(v) for v in found):
            return found
        limits = _limit(formula, arguments, along, dtype, steady) if any(x == 0 for x in arguments) else (None, None, None)
        return tuple(v if found is not None and mp.isfinite(v) else limit for v, limit in zip(found or (mp.nan,) * 3, limits))
    return _limit(formula, arguments, along, dtype, steady)


def unit(x, dtype):
    """The unit in the last place of x in the dtype; of subnormals and 0 the smallest number."""
    f = FORMATS[dtype]
    exponent = mpmath.frexp(x)[1] - 1 if x != 0 else f.least
    return mp.ldexp(1, min(max(exponent, f.least), f.most) - f.digits + 1)


def to_format(x, dtype):
    """The nearest number of the dtype, as a float: with infinities, NaN as NaN."""
    if mp.isnan(x):
        return float("nan")
    f = FORMATS[dtype]
    if mp.isinf(x) or abs(x) >= mp.ldexp(2, f.most) - mp.ldexp(1, f.most - f.digits):
        return float("inf") if x > 0 else float("-inf")
    return float(mp.nint(x / unit(x, dtype)) * unit(x, dtype))


def error(found, expected, dtype, least=0):
    """In units in the last place of `expected`, or of `least` where that is larger. inf for a NaN in place of a number."""
    found = float(found)
    nearest = to_format(expected, dtype)
    if found == nearest:
        return 0.0 if np.isinf(nearest) else float(abs(found - expected) / unit(max(abs(expected), least), dtype))
    if np.isnan(found) or np.isinf(nearest) and np.isinf(found):
        return float("inf")
    f = FORMATS[dtype]
    over = mp.ldexp(1, f.most + 1)  # an infinity counts as the number after the largest
    shown = mp.mpf(found) if np.isfinite(found) else over * (1 if found > 0 else -1)
    wanted = expected if np.isfinite(nearest) else over * (1 if nearest > 0 else -1)
    return float(abs(shown - wanted) / unit(max(abs(wanted), least), dtype))
