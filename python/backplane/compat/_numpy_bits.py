"""NumPy's functions of the bits of numbers: frexp, spacing, bitwise_count, packbits and unpackbits, base_repr and binary_repr."""

from __future__ import annotations

from .. import _core
from .._api._manipulation_functions import normalized_axis
from ._calls import op

__all__ = ["base_repr", "binary_repr", "bitwise_count", "frexp", "packbits", "spacing", "unpackbits"]

# Of each floating dtype: the integers of its width, stored bits of the significand, bits of the exponent.
_LAYOUTS = {"float16": ("int16", 10, 5), "float32": ("int32", 23, 8), "float64": ("int64", 52, 11)}


def _real_floats(function, x):
    x = _core.asarray(x)
    if "integer" in x.dtype.kind or x.dtype.kind == "bool":
        x = op.cast(x, {1: _core.float16, 2: _core.float32}.get(x.dtype.itemsize, _core.float64))
    if x.dtype.name not in _LAYOUTS:
        raise _core.DtypeError(f"{function}: argument x: found {x.dtype.name}, expected float16, float32 or float64")
    return x


def frexp(x):
    """(mantissa, exponent) with x = mantissa * 2**exponent and 0.5 <= abs(mantissa) < 1; 0, infinities and NaN have the exponent 0."""
    x = _real_floats("frexp", x)
    integers, stored, width = _LAYOUTS[x.dtype.name]
    integers, bias, all_ones = getattr(_core, integers), 2 ** (width - 1) - 1, 2**width - 1
    is_subnormal = op.less(op.abs(x), 2.0 ** (1 - bias))
    bits = op.bitcast(op.where(is_subnormal, op.multiply(x, 2.0**stored), x), integers)
    biased = op.bitwise_and(op.bitwise_right_shift(bits, stored), all_ones)
    is_plain = op.logical_or(op.equal(biased, 0), op.equal(biased, all_ones))  # zeros, infinities and NaNs
    exponent = op.subtract(op.subtract(biased, bias - 1), op.where(is_subnormal, stored, 0))
    half = op.bitwise_or(op.bitwise_and(bits, ~(all_ones << stored)), (bias - 1) << stored)
    return op.where(is_plain, x, op.bitcast(half, x.dtype)), op.cast(op.where(is_plain, 0, exponent), _core.int32)


def spacing(x):
    """The distance from x to the next number away from 0, with the sign of x."""
    x = _real_floats("spacing", x)
    away = op.nextafter(op.abs(x), op.full_like(x, float("inf")))
    distance = op.subtract(away, op.abs(x))
    return op.where(op.isfinite(x), op.where(op.signbit(x), op.negative(distance), distance), float("nan"))


def bitwise_count(x):
    """How many bits are 1 in the absolute value of each integer, as uint8."""
    x = _core.asarray(x)
    if x.dtype.kind == "bool":
        return op.cast(x, _core.uint8)
    if "integer" not in x.dtype.kind:
        raise _core.DtypeError(f"bitwise_count: argument x: found {x.dtype.name}, expected integers or bools")
    unsigned = getattr(_core, f"uint{8 * x.dtype.itemsize}")
    bits = op.bitcast(op.abs(x) if x.dtype.kind == "signed integer" else x, unsigned)
    count = op.zeros_like(bits)
    for place in range(8 * x.dtype.itemsize):
        count = op.add(count, op.bitwise_and(op.bitwise_right_shift(bits, place), 1))
    return op.cast(count, _core.uint8)


def _order(function, bitorder):
    if bitorder not in ("big", "little"):
        raise _core.ArgumentValueError(f"{function}: argument bitorder: found {bitorder!r}, expected 'big' or 'little'")
    places = op.iota(8) if bitorder == "little" else op.subtract(7, op.iota(8))
    return op.cast(places, _core.uint8)


def packbits(a, axis, bitorder):
    """Eight truths to a byte, along axis or of all elements; missing ones at the end are 0."""
    x, places = _core.asarray(a), _order("packbits", bitorder)
    if x.dtype.kind not in ("bool", "signed integer", "unsigned integer"):
        raise _core.DtypeError(f"packbits: argument a: found {x.dtype.name}, expected integers or bools")
    x, axis = (op.reshape(x, [-1]), 0) if axis is None else (x, normalized_axis("packbits", axis, x.ndim))
    rows = op.cast(op.moveaxis(op.not_equal(x, 0), axis, -1), _core.uint8)
    rest = -rows.shape[-1] % 8
    if rest:
        rows = op.concat([rows, op.full([*rows.shape[:-1], rest], 0, dtype=_core.uint8)], axis=-1)
    rows = op.reshape(rows, [*rows.shape[:-1], -1 if rows.size else rows.shape[-1] // 8, 8])
    return op.moveaxis(op.sum(op.bitwise_left_shift(rows, places), -1, dtype=_core.uint8), -1, axis)


def unpackbits(a, axis, count, bitorder):
    """The bits of bytes as 0 and 1, along axis or of all elements; `count` of them, or without the last -count."""
    x, places = _core.asarray(a), _order("unpackbits", bitorder)
    if x.dtype is not _core.uint8:
        raise _core.DtypeError(f"unpackbits: argument a: found {x.dtype.name}, expected uint8")
    x, axis = (op.reshape(x, [-1]), 0) if axis is None else (x, normalized_axis("unpackbits", axis, x.ndim))
    rows = op.expand_dims(op.moveaxis(x, axis, -1), -1)
    bits = op.bitwise_and(op.bitwise_right_shift(rows, places), 1)
    bits = op.reshape(bits, [*bits.shape[:-2], 8 * bits.shape[-2]])
    size = bits.shape[-1]
    if count is not None:
        if count < -size:
            raise _core.ArgumentValueError(f"unpackbits: argument count: found {count}, expected at least {-size}")
        if count > size:
            bits = op.concat([bits, op.full([*bits.shape[:-1], count - size], 0, dtype=_core.uint8)], axis=-1)
        else:
            bits = bits[..., : count if count >= 0 else size + count]
    return op.moveaxis(bits, -1, axis)


def _int(x):
    return int(x) if isinstance(x, _core.Tensor) else x


def binary_repr(num, width):
    """The binary digits of an integer; of a negative one a minus sign, or with a width its two's complement."""
    import numpy

    return numpy.binary_repr(_int(num), width)


def base_repr(number, base, padding):
    """The digits of an integer in a base from 2 to 36."""
    import numpy

    return numpy.base_repr(_int(number), base, padding)
