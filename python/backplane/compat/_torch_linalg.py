"""PyTorch's factorisations and solvers beyond backplane.linalg's, its norms that clip, and sums to a smaller shape."""

from __future__ import annotations

import math

from .. import _core, linalg
from .._runtime._wraps import named_tuple
from ._calls import op

__all__ = [
    "cholesky_ex", "cholesky_inverse", "cholesky_solve", "householder_product", "inv_ex", "low_rank", "lu", "lu_factor", "lu_factor_ex", "lu_solve", "lu_unpack", "renorm",
    "solve", "solve_ex", "solve_triangular", "sum_to_size", "triangular_solve",
]  # fmt: skip


def _refuse_no_pivot(name, pivot):
    if pivot is not True:
        raise _core.ArgumentValueError(f"{name}: argument pivot: found {pivot!r}, expected True")


def lu(a, pivot):
    """P, L and U with a = P L U."""
    _refuse_no_pivot("lu", pivot)
    return linalg.lu(a)


def lu_factor(a, pivot):
    """L and U in one matrix, and the rows that were exchanged, counted from 1."""
    _refuse_no_pivot("lu_factor", pivot)
    found = linalg.lu_factor(a)
    return named_tuple("linalg_lu_factor", ("LU", "pivots"))(found[0], op.add(found[1], 1))


def _no_failures(x, batch):
    return op.full(batch, 0, dtype=_core.int32, device=x.device)


def lu_factor_ex(a, pivot):
    """lu_factor, and the row from 1 on of the first pivot that is 0, else 0."""
    factors, pivots = lu_factor(a, pivot)
    zero = op.equal(op.diagonal(factors, axis1=-2, axis2=-1), 0)
    info = op.where(op.any(zero, -1), op.add(op.argmax(op.cast(zero, _core.int32), -1), 1), 0)
    return named_tuple("linalg_lu_factor_ex", ("LU", "pivots", "info"))(factors, pivots, op.cast(info, _core.int32))


def _permutation(pivots, size):
    """The order of rows after the exchanges: row i of P^T a is row order[i] of a."""
    order = op.broadcast_to(op.iota(size, device=pivots.device), [*pivots.shape[:-1], size])
    places = op.iota(size, device=pivots.device)
    for step in range(pivots.shape[-1]):
        other = op.cast(op.subtract(pivots[..., step : step + 1], 1), _core.int64)
        here = op.take_along_axis(order, op.full_like(other, step), axis=-1)
        there = op.take_along_axis(order, other, axis=-1)
        order = op.where(op.equal(places, step), there, op.where(op.equal(places, other), here, order))
    return order


def lu_unpack(factors, pivots, unpack_data, unpack_pivots):
    """P, L and U of lu_factor's results; an empty tensor for what is not asked for."""
    rows, columns = factors.shape[-2:]
    k = min(rows, columns)
    empty = op.full([0], 0, dtype=factors.dtype, device=factors.device)
    lower = upper = permutation = empty
    if unpack_data:
        lower = op.add(op.tril(factors[..., :k], k=-1), op.eye(rows, k, dtype=factors.dtype, device=factors.device))
        upper = op.triu(factors[..., :k, :])
    if unpack_pivots:
        order = _permutation(pivots, rows)
        permutation = op.cast(op.equal(op.expand_dims(op.iota(rows, device=factors.device), -1), op.expand_dims(order, -2)), factors.dtype)
    return named_tuple("lu_unpack", ("P", "L", "U"))(permutation, lower, upper)


def lu_solve(factors, pivots, b, left, adjoint):
    """x with a x = b (x a = b with left=False) of a's lu_factor; adjoint: with the conjugate transpose of a."""
    if not left:
        return lu_solve(factors, pivots, b.mH, True, not adjoint).mH
    order = _permutation(pivots, factors.shape[-1])
    lower, upper = op.tril(factors, k=-1), op.triu(factors)
    lower = op.add(lower, op.eye(factors.shape[-1], dtype=factors.dtype, device=factors.device))
    index = op.broadcast_to(op.expand_dims(order, -1), [*b.shape[:-2], order.shape[-1], b.shape[-1]])
    if not adjoint:
        b = op.take_along_axis(b, index, axis=-2)
        return linalg.solve_triangular(upper, linalg.solve_triangular(lower, b, unit_diagonal=True), upper=True)
    x = linalg.solve_triangular(lower.mH, linalg.solve_triangular(upper.mH, b), upper=True, unit_diagonal=True)
    return op.take_along_axis(x, op.broadcast_to(op.expand_dims(op.argsort(order, -1), -1), x.shape), axis=-2)


def cholesky_solve(b, factor, upper):
    """x with a x = b, of a's Cholesky factor."""
    lower = factor.mH if upper else factor
    return linalg.solve_triangular(lower.mH, linalg.solve_triangular(lower, b), upper=True)


def cholesky_inverse(factor, upper):
    """The inverse of the matrix with this Cholesky factor."""
    return cholesky_solve(op.eye(factor.shape[-1], dtype=factor.dtype, device=factor.device), factor, upper)


def cholesky_ex(a, upper):
    """The Cholesky factor, and zeros: a matrix without one raises LinAlgError."""
    return named_tuple("linalg_cholesky_ex", ("L", "info"))(linalg.cholesky(a, upper=upper), _no_failures(a, a.shape[:-2]))


def inv_ex(a):
    """The inverse, and zeros: a singular matrix raises LinAlgError."""
    return named_tuple("linalg_inv_ex", ("inverse", "info"))(linalg.inv(a), _no_failures(a, a.shape[:-2]))


def solve(a, b, left):
    return linalg.solve(a, b) if left else linalg.solve(a.mT, b.mT).mT


def solve_triangular(a, b, upper, left, unitriangular):
    if left:
        return linalg.solve_triangular(a, b, upper=upper, unit_diagonal=unitriangular)
    return linalg.solve_triangular(a.mT, b.mT, upper=not upper, unit_diagonal=unitriangular).mT


def solve_ex(a, b, left):
    """The solution, and zeros: a singular matrix raises LinAlgError."""
    return named_tuple("linalg_solve_ex", ("result", "info"))(solve(a, b, left), _no_failures(a, a.shape[:-2]))


def triangular_solve(b, a, upper, transpose, unitriangular):
    """x with a x = b for a triangular a, and a itself."""
    matrix, is_upper = (a.mT, not upper) if transpose else (a, upper)
    solution = linalg.solve_triangular(matrix, b, upper=is_upper, unit_diagonal=unitriangular)
    return named_tuple("triangular_solve", ("solution", "cloned_coefficient"))(solution, op.copy(a))


def householder_product(a, tau):
    """The first columns of the product of the reflections in the columns of a, of lengths tau."""
    rows, columns = a.shape[-2:]
    q = op.broadcast_to(op.eye(rows, columns, dtype=a.dtype, device=a.device), a.shape)
    places = op.iota(rows, device=a.device)
    for step in reversed(range(tau.shape[-1])):
        below = op.where(op.greater(places, step), a[..., step], op.cast(op.equal(places, step), a.dtype))
        v = op.expand_dims(below, -1)
        q = op.subtract(q, op.multiply(op.expand_dims(op.expand_dims(tau[..., step], -1), -1), op.matmul(v, op.matmul(v.mH, q))))
    return q


def renorm(x, p, dim, maxnorm):
    """x with each slice at a position of dim scaled down to the p-norm maxnorm where its norm is larger."""
    axes = [axis for axis in range(x.ndim) if axis != dim % x.ndim]
    norm = linalg.vector_norm(x, axis=tuple(axes), keepdims=True, ord=p)
    scale = op.where(op.greater(norm, maxnorm), op.divide(maxnorm, op.add(norm, 1e-7)), 1.0)
    return op.multiply(x, op.cast(scale, x.dtype))


def sum_to_size(x, size):
    """x summed over the axes that broadcasting from the size to x's shape adds or repeats."""
    size = tuple(size[0]) if len(size) == 1 and isinstance(size[0], (tuple, list)) else size
    more = x.ndim - len(size)
    if more < 0 or any(own != wanted and wanted != 1 for own, wanted in zip(x.shape[max(more, 0) :], size)):
        raise _core.ShapeError(f"sum_to_size: argument size: found {tuple(size)}, expected a shape that broadcasts to {tuple(x.shape)}")
    axes = [*range(more), *(axis for axis in range(more, x.ndim) if size[axis - more] == 1 and x.shape[axis] != 1)]
    found = op.sum(x, axes, keepdims=True, dtype=x.dtype) if axes else x
    return op.reshape(found, size) if math.prod(size) or found.size == 0 else found


def low_rank(a, q):
    """The first q singular vectors and values, U, S and V: exact, from the whole decomposition."""
    if not 0 < q <= min(a.shape[-2:]):
        raise _core.ArgumentValueError(f"svd_lowrank: argument q: found {q}, expected at most {min(a.shape[-2:])}, the smaller size of the matrix")
    u, s, vh = linalg.svd(a, full_matrices=False)
    return named_tuple("svd_lowrank", ("U", "S", "V"))(u[..., :q], s[..., :q], vh[..., :q, :].mH)
