"""PyTorch's words of arithmetic that entries do not have: rounding_mode= of quotients, decimals= of round_."""

from .. import _core
from .._api._elementwise_functions import round as rounded
from ._ops import NAMESPACE, ops
from ._tensor_argument import takes_operands

op = getattr(ops, NAMESPACE)

_MISSING = object()


@takes_operands
def _divide(x, y, *, rounding_mode=_MISSING, **more):
    if rounding_mode is _MISSING:
        return NotImplemented
    if rounding_mode == "floor":
        return op.floor_divide(x, y, **more)
    if rounding_mode not in (None, "trunc"):
        raise _core.ArgumentValueError(f"divide: argument rounding_mode: found {rounding_mode!r}, expected None, 'floor' or 'trunc'")
    if rounding_mode is None:
        return op.divide(x, y, **more)
    if all(_whole(v) for v in (x, y)):
        is_below = op.logical_and(op.not_equal(op.remainder(x, y), 0), op.not_equal(op.less(x, 0), op.less(y, 0)))
        return op.add(op.floor_divide(x, y), is_below, **more)
    return op.trunc(op.divide(x, y), **more)


@takes_operands
def _divide_inplace(x, y, **more):
    return _divide(x, y, out=x, **more)


def _round_inplace(x, *, decimals=_MISSING):
    return NotImplemented if decimals is _MISSING else rounded(x, decimals, out=x)


def _whole(x):
    return x.dtype.kind in ("bool", "signed integer", "unsigned integer") if isinstance(x, _core.Tensor) else isinstance(x, int)


def arithmetic_forms():
    """By the op's name."""
    return {"divide": _divide}


def in_place_forms():
    """The op's name, the word that it goes by, and the form."""
    return [("divide", "div_", _divide_inplace), ("divide", "divide_", _divide_inplace), ("round", "round_", _round_inplace)]
