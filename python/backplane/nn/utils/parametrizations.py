"""Parametrisations of weights: a length times a direction, a bounded spectral norm, and orthogonal matrices."""

from __future__ import annotations

from typing import Any

import backplane as bp
from backplane import Tensor

from ..modules._module import Module
from ..modules._spectral_norm import as_matrix, checked_weight, random_unit, row_axis, unit
from ..modules._weight_norm import norm
from .parametrize import register_parametrization

__all__ = ["orthogonal", "spectral_norm", "weight_norm"]
__dir__ = __all__.copy


class _WeightNorm(Module):
    def __init__(self, dim: int | None) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, length: Tensor, direction: Tensor) -> Tensor:
        return direction * (length / norm(direction, self.dim))

    def right_inverse(self, weight: Tensor) -> tuple[Tensor, Tensor]:
        return norm(weight, self.dim), weight


def weight_norm(module: Any, name: str = "weight", dim: int | None = 0) -> Any:
    """The tensor as lengths times directions (Salimans and Kingma, 2016). Returns the module.

    `original0` has the norms of the slices along dim (None: of the whole), `original1` the direction. Errors: as register_parametrization.
    """
    return register_parametrization(module, name, _WeightNorm(dim), unsafe=True)


class _SpectralNorm(Module):
    _u: Tensor
    _v: Tensor

    def __init__(self, weight: Tensor, n_power_iterations: int, dim: int, eps: float) -> None:
        super().__init__()
        self.n_power_iterations, self.eps = n_power_iterations, eps
        self.dim = dim if dim >= 0 else dim + weight.ndim
        if weight.ndim > 1:
            matrix = as_matrix(weight.detach(), self.dim)
            self.register_buffer("_u", random_unit(matrix.shape[0], weight, eps))
            self.register_buffer("_v", random_unit(matrix.shape[1], weight, eps))
            self._iterate(matrix, 15)

    def _iterate(self, matrix: Tensor, count: int) -> None:
        u, v = self._u, self._v
        for _ in range(count):
            u = unit(matrix @ v, self.eps)
            v = unit(matrix.mT @ u, self.eps)
        self._u, self._v = u, v

    def forward(self, weight: Tensor) -> Tensor:
        if weight.ndim == 1:
            return unit(weight, self.eps)
        matrix = as_matrix(weight, self.dim)
        if self.training:
            with bp.no_grad():
                self._iterate(bp.stop_gradient(matrix), self.n_power_iterations)
        return weight / bp.vecdot(self._u, matrix @ self._v)

    def right_inverse(self, value: Tensor) -> Tensor:
        return value


def spectral_norm(module: Any, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12, dim: int | None = None) -> Any:
    """The tensor divided by its largest singular value (Miyato et al., 2018), which power iterations estimate. Returns the module.

    The matrix has the axis dim as its rows; the default is 1 for transposed convolutions, else 0. In training mode each use does
    n_power_iterations. eps: the smallest norm that a vector is divided by.
    Errors: ArgumentValueError for less than one iteration; as register_parametrization.
    """
    weight = checked_weight(module, name, n_power_iterations)
    return register_parametrization(module, name, _SpectralNorm(weight, n_power_iterations, row_axis(module, dim), eps))


class _Orthogonal(Module):
    base: Tensor

    def __init__(self, orthogonal_map: str, shape: tuple[int, ...], like: Tensor, use_trivialization: bool) -> None:
        super().__init__()
        self.orthogonal_map = orthogonal_map
        self.use_trivialization = use_trivialization
        if use_trivialization:
            size = max(shape[-2:])
            eye = bp.eye(size, dtype=like.dtype, device=like.device)
            self.register_buffer("base", bp.copy(bp.broadcast_to(eye, (*shape[:-2], size, size))))

    def forward(self, x: Tensor) -> Tensor:
        is_wide = x.shape[-2] < x.shape[-1]
        x = x.mT if is_wide else x
        q = _by_reflections(x) if self.orthogonal_map == "householder" else _by_skew(x, self.orthogonal_map)
        if self.use_trivialization:
            q = self.base @ q
        return q.mT if is_wide else q

    def right_inverse(self, value: Tensor) -> Tensor:
        is_wide = value.shape[-2] < value.shape[-1]
        tall = value.mT if is_wide else value
        n, k = tall.shape[-2:]
        if not self.use_trivialization:
            if self.orthogonal_map != "householder":
                raise NotImplementedError("orthogonal: matrix_exp and cayley have no inverse without use_trivialization")
            x = _reflections_of(_orthonormal(tall))
            return x.mT if is_wide else x
        if n != k:
            tall = bp.concat([tall, bp.normal((*tall.shape[:-2], n, n - k), dtype=tall.dtype, device=tall.device)], axis=-1)
        self.base = _orthonormal(tall)
        start = -bp.eye(*value.shape[-2:], dtype=value.dtype, device=value.device)  # for the reflections, too, it gives the base
        return bp.copy(bp.broadcast_to(start, value.shape))


def _by_skew(x: Tensor, how: str) -> Tensor:
    """exp(a), or (1 - a/2)⁻¹ (1 + a/2), of the skew matrix a whose lower triangle x gives."""
    n, k = x.shape[-2:]
    x = bp.tril(x)
    if n != k:
        x = bp.concat([x, bp.zeros((*x.shape[:-2], n, n - k), dtype=x.dtype, device=x.device)], axis=-1)
    a = x - bp.conj(x.mT)
    if how == "matrix_exp":
        q = bp.linalg.matrix_exp(a)
    else:
        one = bp.eye(n, dtype=x.dtype, device=x.device)
        q = bp.linalg.solve(one - a / 2, one + a / 2)
    return q[..., :k]


def _by_reflections(x: Tensor) -> Tensor:
    """The first columns of the product of reflections 1 - tau v vᵀ, with v = e + tril(x, -1), times the diagonal of x as signs.

    The product is 1 - V T Vᵀ with T⁻¹ = triu(VᵀV, 1) + diag(1 / tau) (Schreiber and Van Loan, 1989).
    """
    n, k = x.shape[-2:]
    eye = bp.eye(n, k, dtype=x.dtype, device=x.device)
    v = bp.tril(x, -1) + eye
    products = bp.conj(v.mT) @ v
    inverse = bp.triu(products, 1) + bp.linalg.diagonal(products)[..., None, :] / 2 * bp.eye(k, dtype=x.dtype, device=x.device)
    q = eye - v @ bp.linalg.solve_triangular(inverse, bp.conj(v[..., :k, :].mT), upper=True)
    return q * bp.stop_gradient(bp.trunc(bp.linalg.diagonal(x)))[..., None, :]


def _reflections_of(q: Tensor) -> Tensor:
    """x with _by_reflections(x) == q, for orthonormal columns: q minus its signs has the reflections as a triangular factor."""
    n, k = q.shape[-2:]
    rest, columns = q, []
    at = bp.arange(n, device=q.device)
    for j in range(k):
        pivot = rest[..., j, j]
        sign = bp.where(pivot > 0, -1.0, 1.0).astype(q.dtype)
        column = rest[..., j] / (pivot - sign)[..., None]
        column = bp.where(at > j, column, 0.0)
        row = bp.where(bp.arange(k, device=q.device) > j, rest[..., j, :], 0.0)
        rest = rest - column[..., :, None] * row[..., None, :]
        columns.append(bp.where(at == j, sign[..., None], column))
    return bp.stack(columns, axis=-1)


def _orthonormal(x: Tensor) -> Tensor:
    """The orthonormal matrix nearest in the sense of QR with a positive diagonal; x itself if its columns are orthonormal."""
    q, r = bp.linalg.qr(x)
    signs = bp.where(bp.linalg.diagonal(r) < 0, -1.0, 1.0).astype(x.dtype)
    return q * signs[..., None, :]


def orthogonal(module: Any, name: str = "weight", orthogonal_map: str | None = None, *, use_trivialization: bool = True) -> Any:
    """Keeps a matrix, or each matrix of a batch, orthogonal: its columns are orthonormal, or its rows if it is wide. Returns the module.

    orthogonal_map: "matrix_exp", "cayley" or "householder"; by default "matrix_exp" for square matrices, else "householder".
    use_trivialization: the orthogonal matrix of now is a fixed factor, and the map starts from the identity (Lezcano-Casado, 2019).
    Without it, "matrix_exp" and "cayley" take the tensor's values as the original, and the matrix changes.
    Errors: ShapeError for less than two axes; DtypeError for complex tensors; ArgumentValueError for another map; as register_parametrization.
    """
    weight = getattr(module, name, None)
    if not isinstance(weight, Tensor):
        raise bp.ArgumentValueError(f"orthogonal: argument name: found {name!r}, expected a parameter or buffer of the module")
    if weight.ndim < 2:
        raise bp.ShapeError(f"orthogonal: argument name: found a tensor of shape {tuple(weight.shape)}, expected at least two axes")
    if weight.dtype.kind != "real floating":
        raise bp.DtypeError(f"orthogonal: argument name: found {weight.dtype.name}, expected a real floating dtype")
    if orthogonal_map is None:
        orthogonal_map = "matrix_exp" if weight.shape[-2] == weight.shape[-1] else "householder"
    if orthogonal_map not in ("matrix_exp", "cayley", "householder"):
        raise bp.ArgumentValueError(f"orthogonal: argument orthogonal_map: found {orthogonal_map!r}, expected 'matrix_exp', 'cayley' or 'householder'")
    return register_parametrization(module, name, _Orthogonal(orthogonal_map, tuple(weight.shape), weight, use_trivialization), unsafe=True)
