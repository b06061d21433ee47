"""Element types of ONNX: the dtype that carries each, and rounding to the types that have no dtype.

float8, float4, int4 and int2 have no dtype. A value of such a type is a tensor of a wider dtype, its carrier, that holds
numbers of the narrow type only: float32 for floats, int8 and uint8 for integers. Casts round to the narrow type.
"""

import numpy as np

import backplane as bp
from backplane import Tensor

NAMES = {
    1: "float32", 2: "uint8", 3: "int8", 4: "uint16", 5: "int16", 6: "int32", 7: "int64", 9: "bool", 10: "float16", 11: "float64",
    12: "uint32", 13: "uint64", 14: "complex64", 15: "complex128", 16: "bfloat16",
}  # fmt: skip
# Name, exponent of the smallest normal number, mantissa bits, largest number, whether infinity exists, whether -0 exists.
FLOATS = {
    17: ("float8e4m3fn", -6, 3, 448.0, False, True),
    18: ("float8e4m3fnuz", -7, 3, 240.0, False, False),
    19: ("float8e5m2", -14, 2, 57344.0, True, True),
    20: ("float8e5m2fnuz", -15, 2, 57344.0, False, False),
    23: ("float4e2m1", 0, 1, 6.0, False, True),
}
INTEGERS = {21: ("uint4", 4, False), 22: ("int4", 4, True), 25: ("uint2", 2, False), 26: ("int2", 2, True)}
FLOAT4, FLOAT8E8M0 = 23, 24
NARROW = {*FLOATS, *INTEGERS, FLOAT8E8M0}


def type_name(element_type: int) -> str:
    if element_type == FLOAT8E8M0:
        return "float8e8m0"
    narrow = FLOATS.get(element_type) or INTEGERS.get(element_type)
    return narrow[0] if narrow else NAMES.get(element_type, "string" if element_type == 8 else f"type {element_type}")


def carrier_name(element_type: int) -> str:
    """The name of the dtype that carries an element type of ONNX.

    Errors: MissingRuleError for strings and unknown types.
    """
    if element_type in FLOATS or element_type == FLOAT8E8M0:
        return "float32"
    if element_type in INTEGERS:
        return "int8" if INTEGERS[element_type][2] else "uint8"
    if element_type not in NAMES:
        raise bp.MissingRuleError(f"onnx: tensors of {type_name(element_type)} are not supported")
    return NAMES[element_type]


def dtype_of(element_type: int) -> bp.DType:
    return getattr(bp, carrier_name(element_type))


def element_type_of(dtype: bp.DType) -> int:
    name = str(dtype)
    return next(number for number, known in NAMES.items() if known == name.rpartition(".")[2])


def limits(element_type: int) -> tuple[int, int]:
    """The least and the greatest integer of an integer type."""
    if element_type in INTEGERS:
        _, bits, signed = INTEGERS[element_type]
        return (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
    info = bp.iinfo(dtype_of(element_type))
    return int(info.min), int(info.max)


def cast_to(x: Tensor, element_type: int, saturate: int = 1, round_mode: str = "up") -> Tensor:
    """x in the carrier of an element type, rounded to it as ONNX's Cast does."""
    if element_type == FLOAT8E8M0:
        return _round_to_power(x, saturate, round_mode)
    if element_type in FLOATS:
        return _round_to_float(x, element_type, saturate)
    if element_type in INTEGERS:
        return _wrap(x, element_type)
    return cast_dtype(x, dtype_of(element_type))


def cast_dtype(x: Tensor, dtype: bp.DType) -> Tensor:
    if x.dtype == dtype:
        return x
    if bp.isdtype(x.dtype, "real floating") and dtype not in (bp.int64, bp.uint64, bp.bool) and bp.isdtype(dtype, "integral"):
        x = bp.cast(x, bp.int64)  # narrower integers keep the low bits, as NumPy's do
    return bp.cast(x, dtype)


def _wide(x):
    return x if x.dtype == bp.float64 else bp.cast(x, bp.float32)


def _exponent(x):
    """floor(log2(abs(x))) of normal numbers, and the dtype's bits."""
    bits, mantissa, bias = (bp.int64, 52, 1023) if x.dtype == bp.float64 else (bp.int32, 23, 127)
    exponent = bp.bitwise_right_shift(bp.bitcast(bp.abs(x), bits), mantissa) - bias
    return exponent, lambda e: bp.bitcast(bp.bitwise_left_shift(bp.cast(e + bias, bits), mantissa), x.dtype)


def _round_to_float(x, element_type, saturate):
    _, least, mantissa, largest, has_infinity, has_minus_zero = FLOATS[element_type]
    x = _wide(x)
    exponent, power = _exponent(x)
    step = power(bp.clip(exponent, least, 64) - mantissa)
    rounded = bp.rint(x / step) * step
    if saturate or element_type == FLOAT4:
        beyond = bp.copysign(bp.full_like(x, largest), x)
    else:
        beyond = bp.copysign(bp.full_like(x, float("inf") if has_infinity else float("nan")), x)
    rounded = bp.where(bp.abs(rounded) > largest, beyond, rounded)
    rounded = bp.where(bp.isinf(x), beyond, rounded)
    if element_type == FLOAT4:  # it has no NaN; as ml_dtypes, which ONNX's reference uses
        rounded = bp.where(bp.isnan(x), bp.full_like(x, -0.0), rounded)
    else:
        rounded = bp.where(bp.isnan(x), x, rounded)
    if not has_minus_zero:
        rounded = bp.where(rounded == 0, bp.zeros_like(rounded), rounded)
    return bp.cast(rounded, bp.float32)


def _round_to_power(x, saturate, round_mode):
    x = _wide(x)
    exponent, power = _exponent(x)
    fraction = bp.abs(x) / power(exponent)  # from 1 to 2
    if round_mode == "up":
        exponent = exponent + bp.cast(fraction > 1, exponent.dtype)
    elif round_mode == "nearest":
        exponent = exponent + bp.cast(fraction >= 1.5, exponent.dtype)
    least, largest = 2.0**-127, 2.0**127
    found = bp.where(exponent < -126, bp.full_like(x, least), power(bp.clip(exponent, -126, 127)))
    nan = bp.full_like(x, float("nan"))
    above = exponent > 127
    found = bp.where(above, bp.full_like(x, largest) if saturate else nan, found)
    bad = bp.isnan(x) | (x < 0) if saturate else bp.isnan(x) | (x <= 0)
    return bp.cast(bp.where(bad, nan, found), bp.float32)


def _wrap(x, element_type):
    """The low bits of an integer; numbers are truncated first."""
    _, bits, signed = INTEGERS[element_type]
    number = bp.cast(x, bp.int64)
    low = bp.bitwise_and(number, (1 << bits) - 1)
    if signed:
        low = bp.where(low >= 1 << bits - 1, low - (1 << bits), low)
    return bp.cast(low, bp.int8 if signed else bp.uint8)


def carried(array: np.ndarray) -> np.ndarray:
    """A NumPy array in the dtype that carries it: arrays of ml_dtypes' narrow types in their carriers."""
    name = array.dtype.name
    if name.startswith(("float8", "float4")):
        return array.astype(np.float32)
    if name in ("int4", "int2"):
        return array.astype(np.int8)
    if name in ("uint4", "uint2"):
        return array.astype(np.uint8)
    return array
