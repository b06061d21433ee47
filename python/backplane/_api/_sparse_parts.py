"""Sums, rows, columns and elements of sparse matrices, and sums of two: what the operators of sparse.CSR compute."""

from __future__ import annotations

import operator
from typing import Any

from .. import _core
from .._calls._ops import NAMESPACE, ops
from .._calls._value_checks import is_readable

op = getattr(ops, NAMESPACE)

__all__ = []


def _keys(matrix):
    """The place of each stored element as one number, row by row."""
    return op.add(op.multiply(matrix.rows(), matrix.shape[1]), matrix.indices)


def _runs(keys):
    """(the order of the elements by place, the number of the run of equal places of each, whether it is the first of its run)."""
    order = op.argsort(keys, stable=True)
    ordered = op.take(keys, order, axis=0)
    first = op.concat([op.full([1], 1, dtype=_core.bool, device=keys.device), op.not_equal(ordered[1:], ordered[:-1])])
    return order, op.subtract(op.cumulative_sum(op.cast(first, _core.int64), axis=0), 1), first


def merged(matrix: Any) -> Any:
    """The matrix with each place stored once. In a trace the elements of a place stay: the first has their sum, the others are 0."""
    if matrix.nnz == 0:
        return matrix
    keys = _keys(matrix)
    order, run, first = _runs(keys)
    if not is_readable(first):
        total = op.segment_sum(op.take(matrix.data, order, axis=0), run, matrix.nnz)
        ordered = op.take(keys, order, axis=0)
        data = op.where(first, op.take(total, run, axis=0), 0)
        return _like(matrix, data, op.floor_divide(ordered, matrix.shape[1]), op.remainder(ordered, matrix.shape[1]), in_order=True)
    count = int(run[-1].item()) + 1
    if count == matrix.nnz:
        return matrix
    data = op.segment_sum(op.take(matrix.data, order, axis=0), run, count)
    places = op.take(op.take(keys, order, axis=0), op.select(op.argwhere(first), 1, 0), axis=0)
    return _like(matrix, data, op.floor_divide(places, matrix.shape[1]), op.remainder(places, matrix.shape[1]), in_order=True)


def _like(matrix, data, rows, columns, *, shape=None, in_order=False):
    """A matrix of elements at rows and columns, which are in order of rows or become so."""
    shape = matrix.shape if shape is None else shape
    if not in_order:
        order = op.argsort(op.add(op.multiply(rows, shape[1]), columns), stable=True)
        data, rows, columns = (op.take(x, order, axis=0) for x in (data, rows, columns))
    counts = op.segment_sum(op.full_like(rows, 1), rows, shape[0])
    starts = op.concat([op.full([1], 0, dtype=_core.int64, device=data.device), op.cumulative_sum(counts, axis=0)])
    return type(matrix)(data, columns, starts, shape)


def added(first: Any, second: Any) -> Any:
    """The sum of two matrices of one shape."""
    if first.shape != second.shape:
        raise _core.ShapeError(f"add: found sparse matrices of shapes {first.shape} and {second.shape}, expected equal shapes")
    if first.indices is second.indices and first.indptr is second.indptr:
        return type(first)(op.add(first.data, second.data), first.indices, first.indptr, first.shape)
    dtype = _core.promote(first.dtype, second.dtype)
    data = op.concat([op.cast(first.data, dtype), op.cast(second.data, dtype)])
    rows, columns = op.concat([first.rows(), second.rows()]), op.concat([first.indices, second.indices])
    return merged(_like(first, data, rows, columns))


def total(matrix: Any, axis: Any) -> Any:
    """The sum of all elements, or of each column (axis 0) or row (axis 1)."""
    if axis is None:
        return op.sum(matrix.data, dtype=matrix.dtype if "floating" in matrix.dtype.kind else None)
    axis = _axis(axis)
    return op.segment_sum(matrix.data, matrix.indices, matrix.shape[1]) if axis == 0 else op.segment_sum(matrix.data, matrix.rows(), matrix.shape[0])


def _axis(axis):
    found = operator.index(axis)
    if not -2 <= found < 2:
        raise _core.OutOfRangeError(f"sum: argument axis: found {axis}, expected -2 to 1, an axis of a matrix")
    return found % 2


def part(matrix: Any, index: Any) -> Any:
    """A[i], A[i, j], A[:, j], A[i:k] and A[:]."""
    row, column = index if isinstance(index, tuple) and len(index) == 2 else (index, slice(None))
    if _is_whole(row) and _is_whole(column):
        return matrix
    if _is_whole(column) and isinstance(row, slice):
        return _rows(matrix, row)
    if not _is_integer(row) and not _is_whole(row) or not _is_integer(column) and not _is_whole(column):
        raise _core.ArgumentTypeError(
            f"getitem: found the index {index!r} of a sparse matrix, expected A[i], A[i, j], A[:, j] or A[i:k]. Fix: index A.to_dense(), or multiply by a selection"
        )
    data = matrix.data
    if not _is_whole(row):
        data = op.where(op.equal(matrix.rows(), _place(row, matrix.shape[0], 0)), data, 0)
    if not _is_whole(column):
        data = op.where(op.equal(matrix.indices, _place(column, matrix.shape[1], 1)), data, 0)
    if _is_whole(column):
        return op.segment_sum(data, matrix.indices, matrix.shape[1])
    return op.segment_sum(data, matrix.rows(), matrix.shape[0]) if _is_whole(row) else op.sum(data, dtype=data.dtype)


def _is_whole(index):
    return isinstance(index, slice) and index == slice(None)


def _is_integer(index):
    if isinstance(index, _core.Tensor):
        return index.ndim == 0 and "integer" in index.dtype.kind
    return hasattr(index, "__index__") and not isinstance(index, bool)


def _place(index, size, axis):
    if isinstance(index, _core.Tensor) and not is_readable(index):
        place = op.where(op.less(index, 0), op.add(index, size), index)
        return op.take(op.arange(0, size, 1, dtype=_core.int64, device=index.device), place, axis=0)  # which refuses a place that is out of range
    found = operator.index(index)
    if not -size <= found < size:
        raise _core.OutOfRangeError(f"getitem: found the index {found} for axis {axis} of {size} elements, expected from {-size} to {size - 1}")
    return found % size if found < 0 else found


def _rows(matrix, index):
    first, end, step = index.indices(matrix.shape[0])
    if step != 1 or not is_readable(matrix.indptr):
        why = f"a step of {step}, expected 1" if step != 1 else "rows in a trace, where their number of elements is not known; cut the matrix outside of it"
        raise _core.ArgumentValueError(f"getitem: found {why}")
    end = max(first, end)
    low, high = int(matrix.indptr[first].item()), int(matrix.indptr[end].item())
    return type(matrix)(matrix.data[low:high], matrix.indices[low:high], op.subtract(matrix.indptr[first : end + 1], low), (end - first, matrix.shape[1]))


_ADVICE = {
    "dot": "A @ x", "matvec": "A @ x", "rmatvec": "A.T @ x", "nonzero": "bp.nonzero(A.to_dense())", "tocsr": "the matrix itself, which is CSR",
    "tocsc": "A.T, whose rows are the columns", "tocoo": "A.rows(), A.indices and A.data", "todok": "A.rows(), A.indices and A.data",
    "eliminate_zeros": "bp.sparse.csr(A.to_dense())", "getrow": "A[i]",
    "getcol": "A[:, j]", "reshape": "A.to_dense().reshape(shape)", "max": "A.to_dense().max(axis)", "min": "A.to_dense().min(axis)",
    "argmax": "A.to_dense().argmax(axis)", "argmin": "A.to_dense().argmin(axis)", "power": "bp.sparse.CSR(A.data ** n, A.indices, A.indptr, A.shape)",
}  # fmt: skip


def no_attribute(matrix: Any, name: str) -> AttributeError:
    """The error for a name that a sparse matrix does not have."""
    advice = _ADVICE.get(name, "A.to_dense(), which is a tensor, or A.data, the stored elements")
    return AttributeError(f"CSR has no attribute '{name}'; use {advice}", name=name, obj=matrix)


def refused(symbol: str) -> Any:
    """An operator that sparse matrices do not have."""

    def operator_of(self, *_):
        raise _core.ArgumentTypeError(f"{symbol}: found a sparse matrix, which does not have this operator. Fix: use A.to_dense(), or CSR with other data for functions that keep 0")

    return operator_of
