"""Grids, positions and spaced numbers in NumPy's forms: tri, tril_indices, indices, unravel_index, vander, logspace and kin."""

import math

from . import _core
from ._data_type_functions import isdtype
from ._ops import NAMESPACE, ops
from ._tensor_argument import require_room, takes_tensor

op = getattr(ops, NAMESPACE)

__all__ = [
    "geomspace",
    "indices",
    "logspace",
    "ravel_multi_index",
    "tri",
    "tril_indices",
    "triu_indices",
    "unravel_index",
    "vander",
]


def tri(n, m=None, /, k=0, *, dtype=None, device=None):
    """The n by m matrix (m is n unless stated) of ones at and below diagonal k, zeros above."""
    ones = op.full([n, n if m is None else m], 1, dtype=_core.float32 if dtype is None else dtype, device=device)
    return op.tril(ones, k=k)


def _positions(mask):
    at = op.argwhere(mask)
    return op.select(at, 1, 0), op.select(at, 1, 1)


def tril_indices(n, k=0, m=None, *, device=None):
    """The rows and columns of the elements at and below diagonal k of an n by m matrix, row by row."""
    return _positions(tri(n, m, k, dtype=_core.bool, device=device))


def triu_indices(n, k=0, m=None, *, device=None):
    """The rows and columns of the elements at and above diagonal k of an n by m matrix, row by row."""
    return _positions(op.logical_not(tri(n, m, k - 1, dtype=_core.bool, device=device)))


def indices(dimensions, dtype=None, sparse=False, *, device=None):
    """For each axis of a grid the position along it: one tensor (len(dimensions), *dimensions), or with sparse a tuple that broadcasts."""
    sizes = [size.__index__() for size in dimensions]
    dtype = _core.int64 if dtype is None else dtype
    rows = []
    for axis, size in enumerate(sizes):
        shape = [1] * len(sizes)
        shape[axis] = size
        rows.append(op.reshape(op.iota(size, dtype=dtype, device=device), shape))
    if sparse:
        return tuple(rows)
    if not rows:
        return op.full([0], 0, dtype=dtype, device=device)
    return op.stack([op.broadcast_to(row, sizes) for row in rows], axis=0)


def _integers(function, argument, x):
    if isinstance(x, _core.Tensor) and not isdtype(x.dtype, "integral"):
        raise _core.DtypeError(f"{function}: argument {argument}: found {x.dtype.name}, expected integers")
    return x if isinstance(x, _core.Tensor) else _core.asarray(x, dtype=_core.int64)


def _check_within(function, argument, x, low, high):
    """Inside a transform there is no one value to look at."""
    if x.size and not _core.transforms_of(x) and not bool(op.all(op.logical_and(op.greater_equal(x, low), op.less(x, high)))):
        raise _core.OutOfRangeError(f"{function}: argument {argument}: found a position out of range, expected {low} to {high - 1}")


def _check_order(function, order):
    if order not in ("C", "F"):
        raise _core.ArgumentValueError(f"{function}: argument order: found {order!r}, expected 'C' or 'F'")


def unravel_index(positions, shape, /, order="C"):
    """Positions in a tensor of a shape, flattened by rows ('C') or columns ('F'), as a tuple with the position along each axis."""
    _check_order("unravel_index", order)
    positions = op.cast(_integers("unravel_index", "positions", positions), _core.int64)
    shape = [shape.__index__()] if hasattr(shape, "__index__") else [size.__index__() for size in shape]
    if min(shape, default=0) < 0 or math.prod(shape) >= 2**63:
        raise _core.ArgumentValueError(
            f"unravel_index: argument shape: found {tuple(shape)}, expected sizes from 0 on whose product is below 2**63"
        )
    _check_within("unravel_index", "positions", positions, 0, math.prod(shape))
    found = []
    for size in shape[::-1] if order == "C" else shape:
        found.append(op.remainder(positions, max(size, 1)))
        positions = op.floor_divide(positions, max(size, 1))
    return tuple(found[::-1] if order == "C" else found)


def _held(place, size, axis, mode):
    if mode == "wrap":
        return op.remainder(place, size)
    if mode == "clip":
        return op.minimum(op.maximum(place, 0), size - 1)
    _check_within("ravel_multi_index", f"multi_index[{axis}]", place, 0, size)
    return place


def ravel_multi_index(multi_index, dims, /, mode="raise", order="C"):
    """The positions in a flattened tensor of sizes dims, from those along each axis; mode: of positions out of range."""
    _check_order("ravel_multi_index", order)
    modes = [mode] * len(dims) if isinstance(mode, str) else list(mode)
    if any(one not in ("raise", "wrap", "clip") for one in modes):
        raise _core.ArgumentValueError(f"ravel_multi_index: argument mode: found {mode!r}, expected 'raise', 'wrap' or 'clip'")
    if len(multi_index) != len(dims) or len(modes) != len(dims):
        raise _core.ArgumentValueError(f"ravel_multi_index: found {len(multi_index)} positions and {len(dims)} sizes, expected as many")
    if math.prod(dims) >= 2**63:
        raise _core.ArgumentValueError(f"ravel_multi_index: argument dims: found {math.prod(dims)} positions in all, expected less than 2**63")
    parts = list(zip((_integers("ravel_multi_index", "multi_index", x) for x in multi_index), dims, range(len(dims)), modes))
    found = None
    for place, size, axis, one in parts if order == "C" else parts[::-1]:
        place = _held(op.cast(place, _core.int64), size, axis, one)
        found = place if found is None else op.add(op.multiply(found, size), place)
    return found


@takes_tensor
def vander(x, /, n=None, increasing=False):
    """The Vandermonde matrix of the vector x: its powers as n columns, from the highest down, or from 0 up."""
    if x.ndim != 1:
        raise _core.ShapeError(f"vander: argument x: found {x.ndim} dimensions, expected a vector")
    n = x.shape[0] if n is None else n
    if n < 0:
        raise _core.ArgumentValueError(f"vander: argument n: found {n}, expected at least 0")
    if n == 0:
        return op.full([x.shape[0], 0], 0, dtype=x.dtype, device=x.device)
    number = op.cast(x, _core.int8) if x.dtype == _core.bool else x
    factors = op.concat([op.full([x.shape[0], 1], 1, dtype=number.dtype, device=x.device),
                         op.broadcast_to(op.expand_dims(number, [1]), [x.shape[0], n - 1])], axis=1)  # fmt: skip
    powers = op.cast(op.cumprod(factors, 1, dtype=number.dtype), x.dtype)
    return powers if increasing else op.flip(powers, [1])


def _spaced(values, dtype, device):
    return _core.asarray(values, dtype=_core.float32 if dtype is None else dtype, device=device)


def _steps(function, start, stop, num, endpoint):
    require_room(function, "num", num)
    parts = max(num - 1 if endpoint else num, 1)
    return [start + (stop - start) * i / parts for i in range(num)]


def logspace(start, stop, num=50, *, endpoint=True, base=10.0, dtype=None, device=None):
    """num powers of base, with exponents evenly spaced from start to stop, which endpoint includes."""
    return _spaced([base**exponent for exponent in _steps("logspace", start, stop, num, endpoint)], dtype, device)


def geomspace(start, stop, num=50, *, endpoint=True, dtype=None, device=None):
    """num numbers, each the same multiple of the one before, from start to stop, which endpoint includes."""
    if start == 0 or stop == 0 or (start < 0) != (stop < 0):
        raise _core.ArgumentValueError(f"geomspace: found {start} to {stop}, expected numbers of one sign, not 0")
    if isinstance(start, _core.Tensor) or isinstance(stop, _core.Tensor):
        return _spaced([start * (stop / start) ** part for part in _steps("geomspace", 0.0, 1.0, num, endpoint)], dtype, device)
    sign = -1.0 if start < 0 else 1.0
    found = [sign * math.exp(v) for v in _steps("geomspace", math.log(abs(start)), math.log(abs(stop)), num, endpoint)]
    if found:
        found[0] = float(start)
        if endpoint and num > 1:
            found[-1] = float(stop)
    return _spaced(found, dtype, device)
