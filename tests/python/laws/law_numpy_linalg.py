"""NumPy's form of the entries of linear algebra."""

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


LINALG = {
    "cholesky": lambda x, upper=False: np.linalg.cholesky(x, upper=upper),
    "solve_triangular": triangular_solution,
    "solve": solution,
    "inv": lambda x: np.linalg.inv(x),
    "det": lambda x: np.linalg.det(x),
    "slogdet": lambda x: np.linalg.slogdet(x),
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
}
