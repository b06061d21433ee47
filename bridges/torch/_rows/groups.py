"""What rows of aten.txt call for products of groups of rows, each with a matrix of its own: the experts of a mixture.

Groups lie one behind the other along an axis; `ends` (groups,) says where each one ends. Ends are data: rows do not read them as sizes.
"""

from __future__ import annotations

import backplane as bp

__all__ = ["grouped_mm", "grouped_matmul", "grouped_matmul_backward"]

# A matrix per row is gathered up to so many elements in all; beyond, each group's matrix multiplies all rows.
_GATHERED = 1 << 22


def _groups(ends, count):
    """(count,): the group of each place, and the number of groups behind the last end."""
    return bp.searchsorted(ends, bp.arange(count, dtype=ends.dtype), side="right")


def grouped_matmul(x, weight, ends):
    """x (rows, k), weight (groups, k, n) -> (rows, n): each row times its group's matrix, and 0 behind the last end."""
    rows, (count, k, n) = x.shape[0], weight.shape
    group = _groups(ends, rows)
    if type(rows) is int and rows * k * n <= _GATHERED:
        found = (bp.expand_dims(x, [1]) @ bp.take(weight, bp.minimum(group, count - 1), axis=0))[:, 0]
        return bp.where(bp.expand_dims(group < count, [1]), found, 0)
    found = bp.zeros([rows, n], dtype=x.dtype)
    for i in range(count):
        found = bp.where(bp.expand_dims(group == i, [1]), x @ weight[i], found)
    return found


def _products_over_groups(x, y, ends):
    """x (rows, m), y (rows, n) -> (groups, m, n): each group's x^T y."""
    (rows, m), count = x.shape, ends.shape[0]
    members = bp.expand_dims(_groups(ends, rows), [1]) == bp.arange(count)
    parts = bp.where(bp.expand_dims(members, [2]), bp.expand_dims(x, [1]), 0)
    return bp.reshape(bp.matrix_transpose(bp.reshape(parts, [rows, count * m])) @ y, [count, m, y.shape[1]])


def grouped_matmul_backward(x, weight, ends, cotangent):
    """(x's gradient, the weight's)."""
    return grouped_matmul(cotangent, bp.matrix_transpose(weight), ends), _products_over_groups(x, cotangent, ends)


def grouped_mm(x, y, ends, bias, dtype):
    """PyTorch's four forms: the axis that the groups divide is the rows of x, the columns of y, the axis of the sums, or an axis of its own."""
    if x.ndim == 3 and y.ndim == 3:
        found = x @ y
    elif x.ndim == 2 and y.ndim == 3:
        found = grouped_matmul(x, y, ends)
    elif x.ndim == 3:
        found = bp.matrix_transpose(grouped_matmul(bp.matrix_transpose(y), bp.matrix_transpose(x), ends))
    else:
        found = _products_over_groups(bp.matrix_transpose(x), y, ends)
    found = found if bias is None else found + bias
    return found if dtype is None else bp.ops.bp.cast(found, dtype)
