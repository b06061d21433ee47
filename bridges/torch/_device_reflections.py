"""Products of Householder's reflections on the device, by operations on whole columns: QR factors as LAPACK keeps them.

Rows of the table that need a loop over columns, as in _device_factors.py. Reflection k is 1 - tau[k] v v^H, where v is 0 above k, 1 at k,
and column k of the matrix below.
"""

from __future__ import annotations

import backplane as bp

__all__ = ["ROWS"]


def _vector(a, k):
    """(*batch, m, 1): the vector of reflection k."""
    places = bp.expand_dims(bp.arange(a.shape[-2]), [1])
    return bp.where(places > k, a[..., k : k + 1], bp.where(places == k, 1, bp.zeros((), dtype=a.dtype)))


def _reflected(x, vector, factor):
    """(1 - factor vector vector^H) x, with factor (*batch)."""
    scale = bp.reshape(factor, [*factor.shape, 1, 1])
    return x - scale * (vector @ (bp.conj(bp.matrix_transpose(vector)) @ x))


def householder_product(a, tau):
    """The first n columns of the product of the reflections, a (*batch, m, n)."""
    m, n = a.shape[-2:]
    found = bp.broadcast_to(bp.eye(m, n, dtype=a.dtype), a.shape)
    for k in reversed(range(tau.shape[-1])):
        found = _reflected(found, _vector(a, k), tau[..., k])
    return found


def ormqr(a, tau, other, left=True, transpose=False):
    """The product of the reflections, or its adjoint, times the other matrix, or the other matrix times it."""
    if not left:  # (C Q)^H = Q^H C^H
        return _adjoint(ormqr(a, tau, _adjoint(other), True, not transpose))
    order = range(tau.shape[-1])
    for k in order if transpose else reversed(order):
        factor = tau[..., k]
        other = _reflected(other, _vector(a, k), bp.conj(factor) if transpose else factor)
    return other


def _adjoint(x):
    return bp.conj(bp.matrix_transpose(x))


def geqrf(a):
    """(R above the diagonal and the reflections' vectors below, their factors), as LAPACK's xGEQRF has them."""
    m, n = a.shape[-2:]
    factors, places = [], bp.expand_dims(bp.arange(m), [1])
    is_complex = a.dtype.kind == "complex floating"
    for k in range(min(m, n)):
        column = a[..., k : k + 1]
        below = bp.where(places > k, column, bp.zeros((), dtype=a.dtype))
        head = column[..., k : k + 1, :]
        rest = bp.sum(bp.real(below * bp.conj(below)), [-2], keepdims=True)
        size = bp.sqrt(rest + bp.real(head * bp.conj(head)))
        is_done = rest == 0 if not is_complex else bp.logical_and(rest == 0, bp.imag(head) == 0)
        target = bp.where(bp.real(head) > 0, -size, size)
        safe = bp.where(is_done, bp.ones_like(target), target)
        factor = bp.where(is_done, bp.zeros_like(head), (safe - head) / safe)
        divisor = bp.where(is_done, bp.ones_like(head), head - safe)
        vector = bp.where(places == k, 1, below / divisor)
        conjugate = bp.conj(factor)[..., 0, 0]
        changed = _reflected(a, vector, conjugate)
        columns = bp.arange(n)
        kept = bp.where(places > k, vector, changed)  # column k: R down to the diagonal, then the vector
        a = bp.where(columns > k, changed, bp.where(columns == k, kept, a))
        factors.append(factor[..., 0, :])
    empty = bp.zeros([*a.shape[:-2], 0], dtype=a.dtype)
    return a, bp.concat(factors, axis=-1) if factors else empty


ROWS = {"linalg_householder_product": householder_product, "ormqr": ormqr, "geqrf": geqrf}
