"""Elements read and written by position under NumPy's and PyTorch's names, and positions themselves."""

from __future__ import annotations

import math

from .. import _core
from ._data_type_functions import iinfo, isdtype
from .._calls._integer_argument import given_ints
from ._manipulation_functions import broadcast_arrays, normalized_axis, ravel
from .._calls._ops import NAMESPACE, ops
from .._calls._tensor_argument import given_tensor, takes_tensor, takes_words

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from .._core import DType, Device, Operand, Tensor

op = getattr(ops, NAMESPACE)

__all__ = [
    "gather",
    "index_copy",
    "index_fill",
    "index_select",
    "indices",
    "masked_select",
    "ravel_multi_index",
    "scatter",
    "scatter_add",
    "take_along_dim",
    "tril_indices",
    "triu_indices",
    "unravel_index",
]

_SAME = {"add": "sum", "multiply": "prod"}
_REDUCTIONS = ("sum", "prod", "mean", "amax", "amin")


def _count_below(n, m, k):
    """How many elements of an n by m matrix stand at and below diagonal k: row r has r + k + 1, at least none, at most m."""
    first = max(0, min(-k, n))
    last = max(first, min(m - 1 - k, n))
    return (n - last) * m + (last - first) * (first + last + 2 * k + 1) // 2


def _triangle(function, n, k, m, upper, device):
    """The positions of a triangle's elements, whose number follows from the sizes alone, so that a trace knows it."""
    n, m, k = given_ints(function, "n, m, k", (n, n if m is None else m, k))
    if min(n, m) < 0:
        raise _core.ShapeError(f"{function}: found {n} by {m}, expected sizes from 0 on")
    k = max(-n - 1, min(k, m + 1))
    edge = op.clip(op.iota(n, start=k if upper else k + 1, dtype=_core.int64, device=device), 0, m)
    ends = op.cumsum(op.subtract(m, edge) if upper else edge, 0)
    total = n * m - _count_below(n, m, k - 1) if upper else _count_below(n, m, k)
    rows = op.cumsum(op.segment_sum(op.full([n], 1, dtype=_core.int64, device=device), ends, total), 0)
    columns = op.subtract(op.iota(total, dtype=_core.int64, device=device), op.take(op.subtract(ends, m if upper else edge), rows))
    return rows, columns


def tril_indices(
    n: int, k: int = 0, m: int | None = None, *, device: Device | str | None = None
) -> tuple[Tensor, Tensor]:
    """The rows and columns of the elements at and below diagonal k of an n by m matrix, row by row."""
    return _triangle("tril_indices", n, k, m, False, device)


def triu_indices(
    n: int, k: int = 0, m: int | None = None, *, device: Device | str | None = None
) -> tuple[Tensor, Tensor]:
    """The rows and columns of the elements at and above diagonal k of an n by m matrix, row by row."""
    return _triangle("triu_indices", n, k, m, True, device)


def indices(
    dimensions: Sequence[int], dtype: DType | None = None, sparse: bool = False, *, device: Device | str | None = None
) -> Any:
    """For each axis of a grid the position along it: one tensor (len(dimensions), *dimensions), or with sparse a tuple that broadcasts."""
    sizes = given_ints("indices", "dimensions", dimensions)
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
    """Skipped inside a transform, where the value cannot be read."""
    if x.size and _core.has_values(x) and not bool(op.all(op.logical_and(op.greater_equal(x, low), op.less(x, high)))):
        raise _core.OutOfRangeError(f"{function}: argument {argument}: found a position out of range, expected {low} to {high - 1}")


def _check_order(function, order):
    if order not in ("C", "F"):
        raise _core.ArgumentValueError(f"{function}: argument order: found {order!r}, expected 'C' or 'F'")


def unravel_index(
    positions: Tensor | int | Sequence[int], shape: int | Sequence[int], order: str = "C"
) -> tuple[Tensor, ...]:
    """Positions in a tensor of a shape, flattened by rows ('C') or columns ('F'), as a tuple with the position along each axis.

    Errors: OutOfRangeError for a position out of range; inside compile, make_graph and vmap, where none is read, such a position is
        taken modulo the shape.
    """
    _check_order("unravel_index", order)
    positions = op.cast(_integers("unravel_index", "positions", positions), _core.int64)
    shape = given_ints("unravel_index", "shape", shape)
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


def ravel_multi_index(
    multi_index: Sequence[Tensor], dims: Sequence[int], mode: str | Sequence[str] = "raise", order: str = "C"
) -> Tensor:
    """The positions in a flattened tensor of sizes dims, from those along each axis; mode: of positions out of range.

    Errors: with mode 'raise' OutOfRangeError for a position out of range; inside compile, make_graph and vmap, where none is read, the
        sum of the steps is given as it is. 'clip' and 'wrap' hold everywhere.
    """
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


def _neutral(reduce, dtype):
    """What leaves every value as it is."""
    if reduce in ("sum", "mean", "prod"):
        return 1 if reduce == "prod" else 0
    if isdtype(dtype, "integral"):
        return iinfo(dtype).min if reduce == "amax" else iinfo(dtype).max
    return -float("inf") if reduce == "amax" else float("inf")


_WRITERS = {None: "put_along_axis", "sum": "put_along_axis", "mean": "put_along_axis", "prod": "scatter_prod", "amax": "scatter_max", "amin": "scatter_min"}


def _combined(x, index, src, axis, reduce, inplace=False):
    write = getattr(op, _WRITERS[reduce] + "_" * inplace)
    return write(x, index, src, axis=axis, **({"accumulate": True} if reduce in ("sum", "mean") else {}))


def _mean(total, index, axis, include_self):
    ones = op.full(index.shape, 1, dtype=_core.int64, device=total.device)
    start = op.full(total.shape, 1 if include_self else 0, dtype=_core.int64, device=total.device)
    count = op.maximum(op.put_along_axis(start, index, ones, axis=axis, accumulate=True), 1)
    if isdtype(total.dtype, "integral"):
        return op.floor_divide(total, op.cast(count, total.dtype))
    return op.divide(total, op.cast(count, total.dtype))


@takes_words([("value", "src")])
@takes_tensor
def scatter(
    x: Tensor, dim: int, index: Tensor, src: Tensor | float, reduce: str | None = None, *, include_self: bool = True
) -> Tensor:
    """x with src[i, j, ...] put at position index[i, j, ...] of dim and at i, j, ... of the others; src, or value, may be a number.

    reduce: None writes; 'sum', 'prod', 'mean', 'amax', 'amin' combine with what is there, or without include_self with one
    another alone. index has x's number of axes, and is nowhere longer than src, nor, but along dim, than x. Differentiable in
    x and src.
    """
    return _scattered(x, dim, index, src, reduce, include_self, False)


def _scattered(x, dim, index, src, reduce, include_self, inplace):
    index = given_tensor("scatter", "index", index, (x,))
    src = given_tensor("scatter", "src", src, (x,)) if hasattr(src, "__len__") else src
    if x.ndim == 0:  # PyTorch takes a number for a vector of one
        src = op.reshape(src, [-1]) if isinstance(src, _core.Tensor) else src
        found = _scattered(op.reshape(x, [1]), dim, op.reshape(index, [-1]), src, reduce, include_self, inplace)
        return x if inplace else op.reshape(found, [])
    axis = normalized_axis("scatter", dim, x.ndim, "dim")
    reduce = _SAME.get(reduce, reduce)
    if reduce is not None and reduce not in _REDUCTIONS:
        raise _core.ArgumentValueError(f"scatter: argument reduce: found {reduce!r}, expected None or one of {', '.join(_REDUCTIONS)}")
    fits = index.ndim == x.ndim and all(n <= m or place == axis for place, (n, m) in enumerate(zip(index.shape, x.shape)))
    if not fits:
        raise _core.ShapeError(f"scatter: argument index: found shape {tuple(index.shape)}, expected at most {tuple(x.shape)} but along dim")
    if not isinstance(src, _core.Tensor) or src.ndim == 0:
        src = op.full(index.shape, src, dtype=x.dtype, device=x.device) if not isinstance(src, _core.Tensor) else op.broadcast_to(src, index.shape)
    if src.ndim != x.ndim or any(n > m for n, m in zip(index.shape, src.shape)):
        raise _core.ShapeError(f"scatter: argument src: found shape {tuple(src.shape)}, expected at least {tuple(index.shape)}, that of index")
    places = list(range(x.ndim))
    src = op.slice(src, places, [0] * x.ndim, list(index.shape), [1] * x.ndim)
    stops = [x.shape[axis] if place == axis else n for place, n in enumerate(index.shape)]
    whole = list(stops) == list(x.shape)
    part = x if whole else op.slice(x, places, [0] * x.ndim, stops, [1] * x.ndim)
    if inplace and reduce != "mean" and (reduce is None or include_self):
        _combined(part, index, src, axis, reduce, inplace=True)
        return x
    start = part if reduce is None or include_self else op.put_along_axis(part, index, _neutral(reduce, x.dtype), axis=axis)
    found = _combined(start, index, src, axis, reduce)
    if reduce == "mean":
        found = _mean(found, index, axis, include_self)
    if inplace:
        part[...] = found
        return x
    return found if whole else op.slice_put(x, found, places, [0] * x.ndim, stops, [1] * x.ndim)


@takes_words([("value", "src")])
def scatter_(x: Tensor, dim: int, index: Tensor, src: Tensor | float, reduce: str | None = None, *, include_self: bool = True) -> Tensor:
    """Writes what scatter gives into x; returns x."""
    return _scattered(x, dim, index, src, reduce, include_self, True)


@takes_tensor
def gather(x: Tensor, dim: int, index: Tensor) -> Tensor:
    """The elements of x at position index[i, j, ...] along dim and at i, j, ... of the other axes; index's shape.

    index has x's number of axes, and is nowhere longer than x but along dim.
    """
    index = given_tensor("gather", "index", index, (x,))
    if x.ndim == 0:  # PyTorch takes a number for a vector of one
        normalized_axis("gather", dim, 1, "dim")
        return op.take(op.reshape(x, [1]), index)
    axis = normalized_axis("gather", dim, x.ndim, "dim")
    if index.ndim != x.ndim or any(n > m for place, (n, m) in enumerate(zip(index.shape, x.shape)) if place != axis):
        raise _core.ShapeError(f"gather: argument index: found shape {tuple(index.shape)}, expected at most {tuple(x.shape)} but along dim")
    stops = [x.shape[axis] if place == axis else size for place, size in enumerate(index.shape)]
    part = x if stops == list(x.shape) else op.slice(x, list(range(x.ndim)), [0] * x.ndim, stops, [1] * x.ndim)
    return op.take_along_axis(part, index, axis=axis)


@takes_tensor
def index_select(x: Tensor, dim: int, index: Tensor) -> Tensor:
    """The parts of x at the positions of a vector, along dim."""
    index = given_tensor("index_select", "index", index, (x,))
    if index.ndim > 1:
        raise _core.ShapeError(f"index_select: argument index: found {index.ndim} dimensions, expected a vector; backplane.take takes any")
    if x.ndim == 0:  # PyTorch takes a number for a vector of one
        normalized_axis("index_select", dim, 1, "dim")
        return op.reshape(op.take(op.reshape(x, [1]), op.reshape(index, [1])), [])
    return op.take(x, index if index.ndim else op.reshape(index, [1]), axis=dim)


@takes_tensor
def masked_select(x: Tensor, mask: Tensor) -> Tensor:
    """The elements of x where mask is true, a vector in row-major order; the two broadcast. x[mask] takes a mask over leading axes.

    The number of elements depends on the values, so it goes through no graph and no batch.
    """
    mask = given_tensor("masked_select", "mask", mask, (x,))
    try:
        return op.masked_select(x, mask) if x.shape == mask.shape else op.masked_select(*broadcast_arrays(x, mask))
    except _core.ShapeError:
        raise _core.ShapeError(
            f"masked_select: argument mask: found shape {tuple(mask.shape)}, expected one that broadcasts with x's, {tuple(x.shape)}; "
            "x[mask] takes one of x's leading axes"
        ) from None


@takes_tensor
def index_fill(x: Tensor, dim: int, index: Tensor, value: Operand) -> Tensor:
    """x with a number at the positions of a vector, along dim."""
    return op.index_put(x, _along_dim("index_fill", x, dim, index), value)


def index_fill_(x: Tensor, dim: int, index: Tensor, value: Operand) -> Tensor:
    """Writes what index_fill gives into x; returns x."""
    return op.index_put_(x, _along_dim("index_fill", x, dim, index), value)


def _along_dim(function, x, dim, index):
    return [None] * normalized_axis(function, dim, x.ndim, "dim") + [given_tensor(function, "index", index, (x,))]


def _copied_parts(x, dim, index, source):
    indices = _along_dim("index_copy", x, dim, index)
    source = given_tensor("index_copy", "source", source, (x,))
    axis = len(indices) - 1
    fits = source.ndim == x.ndim and all(n == (indices[-1].size if place == axis else x.shape[place]) for place, n in enumerate(source.shape))
    if not fits:
        raise _core.ShapeError(f"index_copy: argument source: found shape {tuple(source.shape)}, expected x's with {indices[-1].size} along dim")
    return indices, source


@takes_tensor
def index_copy(x: Tensor, dim: int, index: Tensor, source: Tensor) -> Tensor:
    """x with the parts of source written at the positions of a vector, along dim."""
    return op.index_put(x, *_copied_parts(x, dim, index, source))


def index_copy_(x: Tensor, dim: int, index: Tensor, source: Tensor) -> Tensor:
    """Writes what index_copy gives into x; returns x."""
    return op.index_put_(x, *_copied_parts(x, dim, index, source))


@takes_tensor
def take_along_dim(x: Tensor, indices: Tensor, dim: int | None = None) -> Tensor:
    """The elements of x at positions along dim, the other axes broadcast; without dim, of x and indices flattened."""
    indices = given_tensor("take_along_dim", "indices", indices, (x,))
    return op.take_along_axis(ravel(x), ravel(indices), axis=0) if dim is None else op.take_along_axis(x, indices, axis=dim)


@takes_tensor
def scatter_add(x: Tensor, dim: int, index: Tensor, src: Operand) -> Tensor:
    """x with src[i, j, ...] added at position index[i, j, ...] of dim and at i, j, ... of the others."""
    index = given_tensor("scatter_add", "index", index, (x,))
    return scatter(x, dim, index, src, "sum")


def scatter_add_(x: Tensor, dim: int, index: Tensor, src: Operand) -> Tensor:
    """Writes what scatter_add gives into x; returns x."""
    index = given_tensor("scatter_add", "index", index, (x,))
    return scatter_(x, dim, index, src, "sum")
