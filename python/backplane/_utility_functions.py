"""NumPy's comparisons of whole tensors: isclose, allclose, array_equal."""

from . import _core
from ._data_type_functions import isdtype
from ._ops import NAMESPACE, ops

op = getattr(ops, NAMESPACE)

__all__ = ["allclose", "array_equal", "isclose"]


def _tensors(x, y):
    return tuple(v if isinstance(v, _core.Tensor) else _core.asarray(v) for v in (x, y))


def isclose(x, y, /, rtol=1e-05, atol=1e-08, equal_nan=False):
    """Is |x - y| at most atol + rtol |y|? Infinities are close to themselves, NaN to itself with equal_nan."""
    x, y = _tensors(x, y)
    if not isdtype(x.dtype, ("real floating", "complex floating")) and not isdtype(y.dtype, ("real floating", "complex floating")):
        # In floating point a difference of integers cannot overflow.
        x, y = op.cast(x, _core.float64), op.cast(y, _core.float64)
    near = op.less_equal(op.abs(op.subtract(x, y)), op.add(op.multiply(op.abs(y), rtol), atol))
    close = op.logical_or(op.logical_and(near, op.isfinite(y)), op.equal(x, y))
    return op.logical_or(close, op.logical_and(op.isnan(x), op.isnan(y))) if equal_nan else close


def allclose(x, y, /, rtol=1e-05, atol=1e-08, equal_nan=False):
    """Are all elements close, by isclose? A Python bool."""
    return bool(op.all(isclose(x, y, rtol, atol, equal_nan)))


def array_equal(x, y, /, equal_nan=False):
    """Have x and y one shape and equal elements? A Python bool; equal_nan: NaN equals NaN."""
    x, y = _tensors(x, y)
    if x.shape != y.shape:
        return False
    same = op.equal(x, y)
    if equal_nan:
        both = [op.isnan(v) if isdtype(v.dtype, "numeric") else op.not_equal(v, v) for v in (x, y)]
        same = op.logical_or(same, op.logical_and(*both))
    return bool(op.all(same))
