"""The array API's constants, and questions about dtypes."""

from __future__ import annotations

import math

from .. import _core
from .._core import DType
from .._tensors._members import extend

TYPE_CHECKING = False
if TYPE_CHECKING:
    import builtins
    from typing import Any

    from .._core import Number, Tensor

__all__ = [
    "DTYPES",
    "can_cast",
    "double",
    "e",
    "finfo",
    "half",
    "iinfo",
    "inf",
    "isdtype",
    "long",
    "nan",
    "newaxis",
    "pi",
    "promote_types",
    "result_type",
    "short",
    "single",
]

e = 2.718281828459045
pi = 3.141592653589793
inf = float("inf")
nan = float("nan")
newaxis = None
DTYPES = {
    name: value for name, value in vars(_core).items() if isinstance(value, _core.DType)
}
# Names that NumPy and PyTorch have for them.
double, single, half, long, short = _core.float64, _core.float32, _core.float16, _core.int64, _core.int16
# Bits of fraction and exponent of the floating types. A complex type has the bits of its parts.
_FRACTION_BITS = {"float16": (10, 5), "bfloat16": (7, 8), "float32": (23, 8), "float64": (52, 11)}
KINDS = {
    "bool": ("bool",),
    "signed integer": ("signed integer",),
    "unsigned integer": ("unsigned integer",),
    "integral": ("signed integer", "unsigned integer"),
    "real floating": ("real floating",),
    "complex floating": ("complex floating",),
    "numeric": ("signed integer", "unsigned integer", "real floating", "complex floating"),
}
# Python's numbers in the order of their kinds; one promotes weakly, and never to another width of its own kind.
_NUMBERS = (bool, int, float, complex)
_NUMBER_OF_KIND = {
    "bool": bool,
    "signed integer": int,
    "unsigned integer": int,
    "real floating": float,
    "complex floating": complex,
}


def promote_types(type1: DType, type2: DType) -> DType:
    """The dtype to which two dtypes promote."""
    return result_type(type1, type2)


def _dtype_of(value, who):
    """Of a tensor, a dtype, its name, or a type of Python's or NumPy's."""
    if isinstance(value, _core.Tensor):
        return value.dtype
    try:
        return value if isinstance(value, _core.DType) else _core.as_dtype(value, who)
    except _core.DtypeError as error:
        raise _core.DtypeError(f"{who}: {error}") from None
    except _core.ArgumentTypeError:
        raise _core.ArgumentTypeError(f"{who}: found a value of type {type(value).__name__}, expected a tensor or a dtype") from None


def isdtype(dtype: DType, kind: DType | str | tuple[DType | str, ...]) -> bool:
    """True if dtype is of the given kind ('bool', 'integral', 'real floating', ...) or equals the given dtype. For a tuple, any of its elements."""
    dtype = dtype if isinstance(dtype, _core.DType) else _core.as_dtype(dtype, "isdtype")
    if isinstance(kind, tuple):
        return any(isdtype(dtype, one) for one in kind)
    if isinstance(kind, str):
        if kind not in KINDS:
            expected = ", ".join(KINDS)
            raise _core.ArgumentValueError(f"isdtype: argument kind: found {kind!r}, expected one of {expected}")
        return dtype.kind in KINDS[kind]
    return dtype is kind


def _with_number(dtype, number):
    """The dtype of a tensor of `dtype` with a Python number of type `number`."""
    if _NUMBERS.index(number) <= _NUMBERS.index(_NUMBER_OF_KIND[dtype.kind]):
        return dtype
    if number is complex and dtype.kind == "real floating":
        return _core.promote(dtype, _core.complex64)
    return {int: _core.int64, float: _core.default_float(), complex: _core.default_complex()}[number]


def _number_type(value):
    return next((number for number in _NUMBERS if isinstance(value, number)), None)


def result_type(*arrays_and_dtypes: Tensor | DType | Number) -> DType:
    """The dtype to which tensors, dtypes and Python's numbers (weakly) promote."""
    result, numbers = None, []
    for value in arrays_and_dtypes:
        if number := _number_type(value):
            numbers.append(number)
            continue
        dtype = _dtype_of(value, "result_type")
        result = dtype if result is None else _core.promote(result, dtype)
    if result is None:
        raise _core.ArgumentValueError("result_type: found no tensor and no dtype, expected at least one")
    return _with_number(result, max(numbers, key=_NUMBERS.index)) if numbers else result


def floating_type(*tensors):
    """The dtype to which the floating and complex tensors promote; the default dtype if there are none."""
    found = [x.dtype for x in tensors if x.dtype.kind in ("real floating", "complex floating")]
    return result_type(*found) if found else _core.default_float()


def real_type(dtype):
    """That of the parts of a complex dtype; a real one itself."""
    return {"complex64": _core.float32, "complex128": _core.float64}.get(dtype.name, dtype)


def can_cast(from_: Tensor | DType, to: DType) -> bool:
    """Does promotion take dtype (or tensor) from_ to dtype to?"""
    from_, to = _dtype_of(from_, "can_cast"), _dtype_of(to, "can_cast")
    try:
        return _core.promote(from_, to) is to
    except _core.DtypeError:
        return False


class finfo:
    """Limits of a floating dtype: bits, eps, max, min, smallest_normal (also called tiny), smallest_subnormal, and resolution, 10 to the
    minus of the decimal digits that it keeps."""
    dtype: DType
    bits: int
    eps: float
    max: float
    min: float
    resolution: float
    smallest_normal: float
    smallest_subnormal: float
    tiny: float

    def __init__(self, type: DType | Tensor | str | builtins.type, /) -> None:
        dtype = _dtype_of(type, "finfo")
        part = real_type(dtype)
        if part.name not in _FRACTION_BITS:
            raise _core.DtypeError(f"finfo: found {dtype.name}, expected a floating or complex dtype")
        fraction, exponent = _FRACTION_BITS[part.name]
        top = 2 ** (exponent - 1)
        self.dtype = part
        self.bits = part.itemsize * 8
        self.eps = 2.0**-fraction
        self.max = (2.0 - self.eps) * 2.0 ** (top - 1)
        self.min = -self.max
        self.resolution = float(f"1e-{int(fraction * math.log10(2))}")
        self.smallest_normal = self.tiny = 2.0 ** (2 - top)
        self.smallest_subnormal = self.smallest_normal * self.eps

    def __repr__(self):
        return f"finfo({self.dtype.name}: eps={self.eps}, max={self.max}, smallest_normal={self.smallest_normal})"


class iinfo:
    """Limits of an integer dtype: bits, max, min."""
    dtype: DType
    bits: int
    max: int
    min: int

    def __init__(self, type: DType | Tensor | str | builtins.type, /) -> None:
        dtype = _dtype_of(type, "iinfo")
        if not isdtype(dtype, "integral"):
            raise _core.DtypeError(f"iinfo: found {dtype.name}, expected an integer dtype")
        signed = dtype.kind == "signed integer"
        self.dtype = dtype
        self.bits = dtype.itemsize * 8
        self.max = 2 ** (self.bits - signed) - 1
        self.min = -(2 ** (self.bits - 1)) if signed else 0

    def __repr__(self):
        return f"iinfo({self.dtype.name}: min={self.min}, max={self.max})"


class DTypeMembers:
    """Of dtypes."""

    @property
    def dtype(x: DType) -> Any:
        """NumPy's dtype of the name, by which NumPy takes ours for its own; an AttributeError where it has none: bfloat16 without ml_dtypes."""
        import numpy

        if x.name != "bfloat16":
            return numpy.dtype(x.name)
        try:
            from ml_dtypes import bfloat16
        except ImportError:
            raise AttributeError("backplane.bfloat16: NumPy has this dtype only from the package ml_dtypes, which is not installed. Fix: pip install ml_dtypes", name="dtype", obj=x) from None
        return numpy.dtype(bfloat16)


extend(_core.DType, DTypeMembers)
