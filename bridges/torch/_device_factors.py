"""LU factors on the device, by operations on whole columns, and the operators of PyTorch whose derivatives read them.

Rows of the table that need a loop over columns: compiled graphs do not have them, where the loop would be unrolled.
"""

from __future__ import annotations

import backplane as bp
import backplane.compat.torch as spelled

from . import _device_reflections

op = bp.ops.bp

__all__ = ["ROWS"]


def lu_factor(a, pivot=True):
    """(L below the diagonal and U, the rows that were exchanged from 1 on, the first zero on U's diagonal from 1 on, or 0)."""
    m, n = a.shape[-2:]
    batch = list(a.shape[:-2])
    x = bp.reshape(a, [-1 if a.size else _product(batch), m, n])
    rows = bp.expand_dims(bp.arange(m), [0])
    pivots, info = [], bp.zeros((x.shape[0],), dtype=bp.int32)
    for j in range(min(m, n)):
        if pivot:
            chosen = bp.expand_dims(bp.argmax(bp.abs(x[:, j:, j]), axis=1) + j, [1])
            order = bp.where(rows == j, chosen, bp.where(rows == chosen, j, rows))
            x = op.take_along_axis(x, bp.broadcast_to(bp.expand_dims(order, [2]), x.shape), axis=1)
        else:
            chosen = bp.broadcast_to(bp.asarray(j), [x.shape[0], 1])
        pivots.append(op.cast(chosen + 1, bp.int32))
        diagonal = x[:, j : j + 1, j : j + 1]
        is_zero = diagonal == 0
        info = bp.where(bp.logical_and(info == 0, is_zero[:, 0, 0]), bp.asarray(j + 1, dtype=bp.int32), info)
        factors = x[:, j + 1 :, j : j + 1] / bp.where(is_zero, bp.ones_like(diagonal), diagonal)
        rest = x[:, j + 1 :, j + 1 :] - factors * x[:, j : j + 1, j + 1 :]
        x = bp.concat([x[:, : j + 1], bp.concat([x[:, j + 1 :, :j], factors, rest], axis=2)], axis=1)
    pivots = bp.concat(pivots, axis=1) if pivots else bp.zeros((x.shape[0], 0), dtype=bp.int32)
    return bp.reshape(x, a.shape), bp.reshape(pivots, [*batch, min(m, n)]), bp.reshape(info, batch)


def _product(sizes):
    found = 1
    for n in sizes:
        found *= n
    return found


def _checked(a, found, check_errors, name):
    info = found[2]
    if check_errors and bp.any(info != 0).item():
        raise bp.DataError(f"{name}: found a singular matrix of shape {tuple(a.shape)}")
    return found


def _order(pivots, m):
    """Which row of the matrix each row of L U is."""
    batch = list(pivots.shape[:-1])
    flat = bp.reshape(pivots, [_product(batch), pivots.shape[-1]])
    places = bp.expand_dims(bp.arange(m), [0])
    order = bp.broadcast_to(places, [flat.shape[0], m])
    for j in range(flat.shape[1]):
        chosen = op.cast(flat[:, j : j + 1], bp.int64) - 1
        exchanged = bp.where(places == j, chosen, bp.where(places == chosen, j, places))
        order = op.take_along_axis(order, bp.broadcast_to(exchanged, order.shape), axis=1)
    return bp.reshape(order, [*batch, m])


def _parts(lu):
    m, n = lu.shape[-2:]
    k = min(m, n)
    lower = bp.tril(lu[..., :, :k], k=-1) + bp.eye(m, k, dtype=lu.dtype)
    return lower, bp.triu(lu[..., :k, :])


def _permutation(order, dtype):
    """P with A = P L U."""
    m = order.shape[-1]
    return op.cast(bp.expand_dims(bp.arange(m), [-1]) == bp.expand_dims(order, [-2]), dtype)


def lu_unpack(lu, pivots, unpack_data=True, unpack_pivots=True):
    nothing = bp.zeros((0,), dtype=lu.dtype)
    lower, upper = _parts(lu) if unpack_data else (nothing, nothing)
    return _permutation(_order(pivots, lu.shape[-2]), lu.dtype) if unpack_pivots else nothing, lower, upper


def linalg_lu(a, pivot=True):
    lu, pivots, _ = lu_factor(a, pivot)
    p, lower, upper = lu_unpack(lu, pivots, True, pivot)
    return p, lower, upper


def lu_solve(lu, pivots, b, left=True, adjoint=False):
    """The x with A x = b, A^H x = b, x A = b or x A^H = b."""
    if not left:
        return _adjoint(lu_solve(lu, pivots, _adjoint(b), True, not adjoint))
    lower, upper = _parts(lu)
    p = _permutation(_order(pivots, lu.shape[-2]), lu.dtype)
    solve = spelled.linalg.solve_triangular
    if adjoint:
        y = solve(_adjoint(upper), b, upper=False)
        return p @ solve(_adjoint(lower), y, upper=True, unitriangular=True)
    return solve(upper, solve(lower, _adjoint(p) @ b, upper=False, unitriangular=True), upper=True)


def _adjoint(x):
    return bp.conj(bp.matrix_transpose(x))


def _sign(lu, pivots):
    places = bp.arange(1, pivots.shape[-1] + 1)
    return op.cast(bp.prod(bp.where(pivots == places, 1.0, -1.0), axis=-1), lu.dtype)


def det(a):
    lu, pivots, _ = lu_factor(a)
    return _sign(lu, pivots) * bp.prod(bp.linalg.diagonal(lu), axis=-1), lu, pivots


def slogdet(a):
    lu, pivots, _ = lu_factor(a)
    diagonal = bp.linalg.diagonal(lu)
    size = bp.abs(diagonal)
    unit = bp.prod(bp.sign(diagonal), axis=-1)
    return _sign(lu, pivots) * unit, bp.sum(bp.log(size), axis=-1), lu, pivots


def solve(a, b, left=True, check_errors=False):
    lu, pivots, info = _checked(a, lu_factor(a), check_errors, "linalg.solve")
    is_vector = b.ndim == 1 or (a.ndim - 1 == b.ndim and tuple(a.shape[:-1]) == tuple(b.shape))
    columns = bp.expand_dims(b, [-1]) if is_vector else b
    batch = list(bp.broadcast_shapes(a.shape[:-2], columns.shape[:-2]))
    columns = bp.broadcast_to(columns, [*batch, *columns.shape[-2:]])
    x = lu_solve(lu, pivots, columns, left or is_vector)
    return bp.squeeze(x, -1) if is_vector else x, lu, pivots, info


ROWS = {
    "linalg_lu_factor_ex": lambda a, pivot=True, check_errors=False: _checked(a, lu_factor(a, pivot), check_errors, "linalg.lu_factor"),
    "lu_unpack": lu_unpack,
    "linalg_lu": linalg_lu,
    "linalg_lu_solve": lu_solve,
    "_linalg_det": det,
    "_linalg_slogdet": slogdet,
    "_linalg_solve_ex": solve,
    **_device_reflections.ROWS,
}
