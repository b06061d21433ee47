"""NumPy's form of the entries of linear algebra and of Fourier transforms."""

import math

import numpy as np


def triangular_solution(x1, x2, upper=False, unit_diagonal=False):
    triangle = np.triu(x1) if upper else np.tril(x1)
    if unit_diagonal:
        triangle = triangle - triangle * np.eye(x1.shape[-1]) + np.eye(x1.shape[-1])
    return solution(triangle, x2)


def solution(x1, x2):
    """A vector is one to every matrix, whatever their number."""
    return np.linalg.solve(x1, x2[:, None])[..., 0] if x2.ndim == 1 else np.linalg.solve(x1, x2)


def eig(x):
    """NumPy gives real numbers where it can."""
    return [np.asarray(result, complex) for result in np.linalg.eig(x)]


def matrix_exp(x):
    """Taylor's series of a small part of x, squared again and again."""
    part = x.astype(np.promote_types(x.dtype, np.longdouble)) / 2**8
    term = result = np.broadcast_to(np.eye(x.shape[-1], dtype=part.dtype), x.shape)
    for k in range(1, 20):
        term = term @ part / k
        result = result + term
    for _ in range(8):
        result = result @ result
    return result.astype(x.dtype)


def lu_factor(x):
    """By elimination with the largest pivot of each column."""
    m, n = x.shape[-2:]
    k = min(m, n)
    flat = np.array(x).reshape(-1 if x.size else math.prod(x.shape[:-2]), m, n)
    pivots = np.zeros((len(flat), k), np.int32)
    orders = np.tile(np.arange(m, dtype=np.int32), (len(flat), 1))
    for a, exchanged, order in zip(flat, pivots, orders):
        for j in range(k):
            other = j + np.argmax(abs(a[j:, j]))
            a[[j, other]], order[[j, other]], exchanged[j] = a[[other, j]], order[[other, j]], other
            a[j + 1 :, j] /= a[j, j]
            a[j + 1 :, j + 1 :] -= np.outer(a[j + 1 :, j], a[j, j + 1 :])
    return flat.reshape(x.shape), pivots.reshape(*x.shape[:-2], k), orders.reshape(*x.shape[:-2], m)


ORDERS = {**{str(n): n for n in (1, -1, 2, -2)}, "inf": np.inf, "-inf": -np.inf}
LINALG = {
    "cholesky": lambda x, upper=False: np.linalg.cholesky(x, upper=upper),
    "solve_triangular": triangular_solution,
    "solve": solution,
    "inv": lambda x: np.linalg.inv(x),
    "det": lambda x: np.linalg.det(x),
    "adjugate": lambda x: np.linalg.det(x)[..., None, None] * np.linalg.inv(x),
    "slogdet": lambda x: np.linalg.slogdet(x),
    "lu_factor": lu_factor,
    "qr": lambda x, mode="reduced": np.linalg.qr(x, mode),
    "qr_reduced": lambda x: np.linalg.qr(x),
    "qr_complete": lambda x: np.linalg.qr(x, "complete"),
    "svd": lambda x, full_matrices=True: np.linalg.svd(x, full_matrices),
    "svd_reduced": lambda x: np.linalg.svd(x, False),
    "svd_full": lambda x: np.linalg.svd(x),
    "svdvals": lambda x: np.linalg.svdvals(x),
    "eigh": lambda x: np.linalg.eigh(x),
    "eigvalsh": lambda x: np.linalg.eigvalsh(x),
    "eig": eig,
    "eigvals": lambda x: eig(x)[0],
    "pinv": lambda x, rtol=None: np.linalg.pinv(x, rtol=rtol if rtol is not None else max(x.shape[-2:]) * 2e-16),
    "matrix_rank": lambda x, rtol=None: np.linalg.matrix_rank(x, rtol=rtol) if x.size else np.zeros(x.shape[:-2], int),
    "matrix_exp": matrix_exp,
    "matrix_power": lambda x, n: np.linalg.matrix_power(x, n),
    "matrix_norm": lambda x, keepdims=False, ord="fro": np.linalg.matrix_norm(x, keepdims=keepdims, ord=ORDERS.get(ord, ord)),
    "vector_norm": lambda x, axis=None, keepdims=False, ord=2: np.linalg.vector_norm(x, axis=axis and tuple(axis), keepdims=keepdims, ord=ord),
    "outer": lambda x1, x2: np.outer(x1, x2),
    "vecdot": lambda x1, x2, axis=-1: np.vecdot(x1, x2, axis=axis),
    "tensordot": lambda x1, x2, axes1, axes2: np.tensordot(x1, x2, (axes1, axes2)),
    "cross": lambda x1, x2, axis=-1: np.cross(x1, x2, axis=axis),
    "kron": lambda x1, x2: np.kron(x1, x2),
    "trace": lambda x, offset=0, axis1=0, axis2=1, dtype=None: np.trace(x, offset, axis1, axis2, dtype),
    "fft_c2c": lambda x, axes, norm="backward", forward=True: (np.fft.fftn if forward else np.fft.ifftn)(x, axes=axes, norm=norm),
    "fft_r2c": lambda x, axes, norm="backward": np.fft.rfftn(x, axes=axes, norm=norm),
    "fft_c2r": lambda x, axes, n, norm="backward": np.fft.irfftn(x, [*(x.shape[a] for a in axes[:-1]), n], axes, norm),
}
