"""Elementwise functions in NumPy's forms that no op has: rounding to decimals, closeness, quotients and parts of numbers."""

from __future__ import annotations

import math

from .. import _core
from ._data_type_functions import isdtype
from .._calls._ops import NAMESPACE, ops
from .._calls._tensor_argument import given_tensor, require_real, takes_operands, takes_tensor, takes_words

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .._core import Operand, Tensor

op = getattr(ops, NAMESPACE)

__all__ = ["around", "divmod", "float_power", "modf", "round"]


@takes_operands
def round(x: Tensor, decimals: int = 0, *, out: Tensor | None = None) -> Tensor:
    """x to the nearest integer, or to so many decimal places; ties go to the even digit. Negative counts round before the point."""
    if decimals == 0:
        return op.round(x, out=out)
    x = given_tensor("round", "x", x)
    if not hasattr(decimals, "__index__"):
        raise _core.ArgumentTypeError(f"round: argument decimals: found {decimals!r}, expected an integer")
    scale = 10.0 ** abs(decimals) if abs(decimals) < 309 else math.inf
    down, up = (op.divide, op.multiply) if decimals < 0 else (op.multiply, op.divide)
    if x.dtype.kind == "complex floating":  # each part by itself: a product would take what is not finite from one to the other
        parts = (up(op.round(down(part, scale)), scale) for part in (op.real(x), op.imag(x)))
        found = op.complex_from(*parts)
        return found if out is None else op.subtract(found, 0, out=out)
    if x.dtype.kind not in ("signed integer", "unsigned integer"):
        return up(op.round(down(x, scale)), scale, out=out)
    if decimals < 0:
        x = op.cast(up(op.round(down(op.cast(x, _core.float64), scale)), scale), x.dtype)
    return op.round(x, out=out)


around = round


@takes_tensor
def divmod(x: Operand, y: Operand) -> tuple[Tensor, Tensor]:
    """The quotient rounded down, and the remainder."""
    return op.floor_divide(x, y), op.remainder(x, y)


@takes_words([("exponent", "y")])
@takes_tensor
def float_power(x: Tensor, y: Operand) -> Tensor:
    """x to the power of y in float64 or complex128, whatever the dtypes are."""
    given = given_tensor("float_power", "y", y)
    wide = _core.complex128 if "complex floating" in (x.dtype.kind, given.dtype.kind) else _core.float64
    # A value that is not a tensor keeps its digits, and goes to x's device.
    y = op.cast(y, wide) if isinstance(y, _core.Tensor) else _core.asarray(y, dtype=wide, device=x.device)
    return op.pow(op.cast(x, wide), y)


@takes_tensor
def modf(x: Tensor) -> tuple[Tensor, Tensor]:
    """The fraction and the whole part, both with x's sign, in floating point."""
    require_real("modf", "x", x)
    x = x if isdtype(x.dtype, "real floating") else op.cast(x, _core.default_float())
    return op.where(op.isinf(x), op.copysign(op.zeros_like(x), x), op.fmod(x, 1)), op.trunc(x)


def as_tensors(x, y):
    return tuple(v if isinstance(v, _core.Tensor) else _core.asarray(v) for v in (x, y))
