"""Linear algebra: the array API's extension of that name, with its signatures, and what NumPy's users expect beside it.

    q, r = bp.linalg.qr(a)

Arguments are matrices (*, m, n), or stacks of them over the leading axes. What is computed is in the registry's ops; the
functions here bring arguments and results into the standard's form. A factorisation that fails raises LinAlgError.
"""

from __future__ import annotations

import math

from . import _core
from ._calls._ops import ops, refuse_names as _refuse_names
from ._api._matrix_products import chain_product as _chain_product, of_triangle as _of_triangle
from ._api._data_type_functions import result_type as _result_type
from ._api._linalg_results import EigResult, EighResult, LstsqResult, LUFactorResult, LUResult, QRResult, SlogdetResult, SVDResult
from ._api._manipulation_functions import normalized_axes as _normalized_axes
from ._calls._tensor_argument import given_tensor as _given_tensor, known as _known, takes_dim as _takes_dim, takes_operands as _takes_operands, takes_tensor as _takes_tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, Literal, overload

    from ._core import DType, Tensor

_bp = ops.bp

__all__ = [
    "LinAlgError",
    "cholesky",
    "cond",
    "cross",
    "det",
    "diagonal",
    "eig",
    "eigh",
    "eigvals",
    "eigvalsh",
    "inv",
    "kron",
    "lstsq",
    "lu",
    "lu_factor",
    "matmul",
    "matrix_exp",
    "matrix_norm",
    "matrix_power",
    "matrix_rank",
    "matrix_transpose",
    "multi_dot",
    "norm",
    "outer",
    "pinv",
    "qr",
    "slogdet",
    "solve",
    "solve_triangular",
    "svd",
    "svdvals",
    "tensordot",
    "trace",
    "vecdot",
    "vector_norm",
]
__dir__ = __all__.copy

LinAlgError = _core.DataError  # what a kernel says of a matrix that it cannot factorise; it is a ValueError


def _word(function, argument, found, expected):
    if found not in expected:
        raise _core.ArgumentValueError(f"{function}: argument {argument}: found {found!r}, expected one of {', '.join(map(repr, expected))}")
    return found


# ---- factorisations ----


def cholesky(x: Tensor, *, upper: bool = False) -> Tensor:
    """The lower L with L L^H = x, or the upper U with U^H U = x, of positive definite matrices. Reads both triangles of x: factorises (x + x^H) / 2."""
    return _bp.cholesky(x, upper=upper)


def lu_factor(x: Tensor) -> LUFactorResult:
    """LU with x[permutation] = L U, packed: L below the diagonal, whose own is 1, and U. Row i was exchanged with row pivots[i] in turn.

    x: (*, m, n). pivots are (*, min(m, n)) and permutation (*, m), both int32 and counted from 0 as SciPy's are; PyTorch counts from 1.
    """
    return LUFactorResult(*_bp.lu_factor(x))


def lu(x: Tensor) -> LUResult:
    """P L U = x: a permutation (*, m, m), a lower triangle (*, m, k) with a diagonal of 1, and an upper one (*, k, n), where k = min(m, n)."""
    factors, _, permutation = _bp.lu_factor(x)
    m, n = factors.shape[-2:]
    k = min(m, n)
    one = _bp.eye(m, dtype=factors.dtype, device=factors.device)
    places = _bp.broadcast_to(_bp.expand_dims(_bp.cast(permutation, _core.int64), [-2]), (*factors.shape[:-2], m, m))
    p = _bp.take_along_axis(_bp.broadcast_to(one, places.shape), places, axis=-1)
    return LUResult(p, _bp.tril(factors[..., :, :k], k=-1) + one[:, :k], _bp.triu(factors[..., :k, :]))


def qr(x: Tensor, mode: str = "reduced") -> QRResult:
    """Q with orthonormal columns and upper triangular R, with Q R = x; mode 'complete' gives a square Q."""
    return QRResult(*_bp.qr(x, mode=_word("qr", "mode", mode, ("reduced", "complete"))))


if TYPE_CHECKING:

    @overload
    def svd(x: Tensor, full_matrices: bool = True, compute_uv: Literal[True] = True) -> SVDResult: ...

    @overload
    def svd(x: Tensor, full_matrices: bool, compute_uv: Literal[False]) -> Tensor: ...

    @overload
    def svd(x: Tensor, full_matrices: bool = True, *, compute_uv: Literal[False]) -> Tensor: ...


def svd(x: Tensor, full_matrices: bool = True, compute_uv: bool = True) -> Any:
    """U, S, Vh with U diag(S) Vh = x; full_matrices gives square U and Vh. Without compute_uv S alone, as svdvals."""
    if not compute_uv:
        return svdvals(x)
    return SVDResult(*_bp.svd(x, full_matrices=full_matrices))


def svdvals(x: Tensor) -> Tensor:
    """The singular values, in descending order."""
    return _bp.svdvals(x)


@_takes_tensor
def eigh(x: Tensor, UPLO: str | None = None) -> EighResult:
    """Ascending eigenvalues and orthonormal eigenvectors (columns) of Hermitian matrices, of the Hermitian part of others.

    UPLO: 'L' or 'U', the triangle that alone is read.
    """
    return EighResult(*_bp.eigh(_of_triangle("eigh", x, UPLO)))


@_takes_tensor
def eigvalsh(x: Tensor, UPLO: str | None = None) -> Tensor:
    """The eigenvalues of Hermitian matrices, in ascending order. Other matrices and UPLO are treated as in eigh."""
    return _bp.eigvalsh(_of_triangle("eigvalsh", x, UPLO))


def eig(x: Tensor) -> EigResult:
    """Eigenvalues and eigenvectors (columns) of square matrices. The results are complex, also for a real x."""
    return EigResult(*_bp.eig(x))


def eigvals(x: Tensor) -> Tensor:
    """The eigenvalues of square matrices. They are complex, also for a real x."""
    return _bp.eigvals(x)


# ---- equations, inverses, determinants ----


def solve(x1: Tensor, x2: Tensor) -> Tensor:
    """The y with x1 y = x2. If x2 has one axis, it is a vector, else a stack of matrices."""
    return _bp.solve(x1, x2)


def solve_triangular(x1: Tensor, x2: Tensor, *, upper: bool = False, unit_diagonal: bool = False) -> Tensor:
    """The y with x1 y = x2. Reads only one triangle of x1; if its diagonal is stated to be 1, does not read the diagonal."""
    return _bp.solve_triangular(x1, x2, upper=upper, unit_diagonal=unit_diagonal)


def inv(x: Tensor) -> Tensor:
    """The inverses of square matrices."""
    return _bp.inv(x)


def pinv(
    x: Tensor, rcond: float | Tensor | None = None, hermitian: bool = False, *, rtol: float | Tensor | None = None
) -> Tensor:
    """The pseudo-inverses; singular values up to rtol (NumPy's rcond) times the largest count as 0. hermitian has no effect."""
    return _bp.pinv(x, rtol=rcond if rtol is None else rtol)


@_takes_tensor
def lstsq(a: Tensor, b: Tensor, rcond: float | Tensor | None = None, *, rtol: float | Tensor | None = None) -> LstsqResult:
    """The x of least norm that minimises |b - a x|, the squared residuals (none unless a has full column rank, which a trace
    and a batch take for given, and more rows than columns), a's rank and its singular values. b is a vector where it has one axis. rcond is NumPy's and PyTorch's word for rtol."""
    rtol = rcond if rtol is None else rtol
    b = _given_tensor("lstsq", "b", b, (a,))
    dtype = _result_type(a, b)
    a, b = a.astype(dtype), b.astype(dtype)
    columns = _bp.expand_dims(b, (-1,)) if b.ndim == 1 else b
    found = _bp.matmul(_bp.pinv(a, rtol=rtol), columns)
    rank = _bp.matrix_rank(a, rtol=rtol)
    residuals = _bp.zeros((0,), dtype=_bp.real(found).dtype, device=found.device)
    if a.shape[-2] > a.shape[-1] and _known(_bp.all(_bp.equal(rank, a.shape[-1])), True):
        residuals = _bp.sum(_bp.square(_bp.abs(_bp.subtract(columns, _bp.matmul(a, found)))), (-2,))
    return LstsqResult(_bp.squeeze(found, (-1,)) if b.ndim == 1 else found, residuals, rank, _bp.svdvals(a))


def det(x: Tensor) -> Tensor:
    """The determinants of square matrices."""
    return _bp.det(x)


def slogdet(x: Tensor) -> SlogdetResult:
    """Signs (phases) of the determinants, and the logarithms of their absolute values."""
    return SlogdetResult(*_bp.slogdet(x))


@_takes_tensor
def matrix_rank(
    x: Tensor, tol: float | Tensor | None = None, hermitian: bool = False, *, rtol: float | Tensor | None = None
) -> Tensor:
    """The numbers of singular values above rtol times the largest, or above tol. hermitian has no effect."""
    if tol is None:
        return _bp.matrix_rank(x, rtol=rtol)
    tol = _bp.expand_dims(tol, (-1,)) if getattr(tol, "ndim", 0) else tol
    return _bp.sum(_bp.greater(svdvals(x), tol), (-1,), dtype=_core.int64)


# ---- products ----


def matmul(x1: Tensor, x2: Tensor) -> Tensor:
    """The matrix product."""
    return _bp.matmul(x1, x2)


def matrix_exp(x: Tensor) -> Tensor:
    """The exponentials of square matrices."""
    return _bp.matrix_exp(x)


@_takes_tensor
def matrix_power(x: Tensor, n: int) -> Tensor:
    """The n-th powers of square matrices. If n is negative, the powers of their inverses; for an integer x, in the default float."""
    if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
        raise _core.ShapeError(f"matrix_power: argument x: found shape {x.shape}, expected square matrices")
    return _bp.matrix_power(x, n)


def multi_dot(arrays: Sequence[Tensor]) -> Tensor:
    """The product of matrices, in the order that takes the fewest operations. The first and the last operand may be a vector."""
    arrays = list(arrays)
    arrays = [_given_tensor("multi_dot", "arrays", x, arrays) for x in arrays]
    if len(arrays) < 2:
        raise _core.ArgumentValueError(f"multi_dot: argument arrays: found {len(arrays)} tensors, expected two or more")
    for place, x in enumerate(arrays):
        if x.ndim != 2 and not (x.ndim == 1 and place in (0, len(arrays) - 1)):
            raise _core.ShapeError(f"multi_dot: argument arrays: found {x.ndim} dimensions, expected matrices, or a vector at either end")
    dtype = _result_type(*arrays)
    arrays = [x.astype(dtype) for x in arrays]
    first, last = arrays[0].ndim == 1, arrays[-1].ndim == 1
    arrays[0] = _bp.expand_dims(arrays[0], (0,)) if first else arrays[0]
    arrays[-1] = _bp.expand_dims(arrays[-1], (1,)) if last else arrays[-1]
    product = _chain_product(arrays)
    ends = [axis for axis, is_vector in ((0, first), (1, last)) if is_vector]
    return _bp.squeeze(product, ends) if ends else product


def outer(x1: Tensor, x2: Tensor) -> Tensor:
    """The products of all pairs of elements of two vectors."""
    return _bp.outer(x1, x2)


def kron(x1: Tensor, x2: Tensor) -> Tensor:
    """The Kronecker product."""
    return _bp.kron(x1, x2)


@_takes_dim
def vecdot(x1: Tensor, x2: Tensor, *, axis: int = -1) -> Tensor:
    """The sums over axis of conj(x1) * x2."""
    return _bp.vecdot(x1, x2, axis=axis)


@_takes_dim
def cross(x1: Tensor, x2: Tensor, *, axis: int = -1) -> Tensor:
    """The cross products of vectors of three elements along axis."""
    return _bp.cross(x1, x2, axis=axis)


@_takes_tensor
def tensordot(
    x1: Tensor, x2: Tensor, axes: int | tuple[int | Sequence[int], int | Sequence[int]] = 2, *,
    dims: int | tuple[int | Sequence[int], int | Sequence[int]] | None = None
) -> Tensor:
    """The sums of products over pairs of axes: the last `axes` of x1 with the first of x2, or the two lists in `axes` (PyTorch's dims)."""
    axes = axes if dims is None else dims
    x2 = _given_tensor("tensordot", "x2", x2, (x1,))
    if hasattr(axes, "__index__"):
        n = axes.__index__()
        if not 0 <= n <= min(x1.ndim, x2.ndim):
            raise _core.ArgumentValueError(f"tensordot: argument axes: found {n} for {x1.ndim} and {x2.ndim} axes")
        first, second = range(x1.ndim - n, x1.ndim), range(n)
    else:
        pair = tuple(axes) if hasattr(axes, "__iter__") else ()
        if len(pair) != 2:
            raise _core.ArgumentTypeError(f"tensordot: argument axes: found {axes!r}, expected a count of axes or two lists of them")
        first, second = (_normalized_axes("tensordot", one, x.ndim) for one, x in zip(pair, (x1, x2)))
    if len(first) != len(second):
        raise _core.ArgumentValueError(f"tensordot: argument axes: found {len(first)} and {len(second)} axes, expected pairs")
    return _bp.tensordot(x1, x2, axes1=first, axes2=second)


# ---- norms, and parts of matrices ----


@_takes_dim
@_takes_tensor
def vector_norm(
    x: Tensor, ord: float = 2, axis: int | Sequence[int] | None = None, keepdims: bool = False
) -> Tensor:
    """The ord-norm over axes, or of all elements."""
    return _bp.vector_norm(x, axis=(axis,) if hasattr(axis, "__index__") else axis, keepdims=keepdims, ord=ord)


_NORMS = ("fro", "nuc", 1, -1, 2, -2, math.inf, -math.inf)


@_takes_dim
def matrix_norm(x: Tensor, *, keepdims: bool = False, ord: float | str = "fro") -> Tensor:
    """A norm of each matrix: 'fro', 'nuc', 1, -1 (sums of columns), 2, -2 (singular values), inf, -inf (sums of rows)."""
    ord = _NORMS[_NORMS.index(_word("matrix_norm", "ord", ord, _NORMS))]  # 1 for 1.0
    return _bp.matrix_norm(x, keepdims=keepdims, ord=str(ord))


@_takes_dim
@_takes_tensor
def norm(
    x: Tensor, ord: float | str | None = None, axis: int | Sequence[int] | None = None, keepdims: bool = False
) -> Tensor:
    """NumPy's norm: vector norms along one axis, matrix norms over two. Without ord and axis, the norm of all elements."""
    if axis is None and (ord is None or x.ndim == 1):
        flat = vector_norm(x, ord=2 if ord is None else ord)
        return _bp.reshape(flat, (1,) * x.ndim) if keepdims else flat
    axes = tuple(range(x.ndim)) if axis is None else _normalized_axes("norm", axis, x.ndim, "axis")
    if len(axes) == 1:
        return vector_norm(x, axis=axes, keepdims=keepdims, ord=2 if ord is None else ord)
    if len(axes) != 2:
        raise _core.ArgumentValueError(f"norm: argument axis: found {len(axes)} axes, expected one or two")
    rows, columns = axes
    rest = tuple(one for one in range(x.ndim) if one not in (rows, columns))
    found = matrix_norm(_bp.permute_dims(x, (*rest, rows, columns)), ord="fro" if ord is None else ord)
    return _bp.expand_dims(found, sorted((rows, columns))) if keepdims else found


@_takes_tensor
def cond(x: Tensor, p: float | str | None = None) -> Tensor:
    """The condition number of each matrix in a norm: the ratio of the singular values (None, 2, -2), or norm(x) norm(inv(x)), inf of a singular one."""
    if p in (None, 2, -2):
        s = svdvals(x)
        first, last = s[..., 0], s[..., -1]
        ratio = _bp.divide(last, first) if p == -2 else _bp.divide(first, last)
        return _bp.where(_bp.equal(first, 0), math.inf, ratio)
    norms = matrix_norm(x, ord=p)
    try:
        return _bp.multiply(norms, matrix_norm(inv(x), ord=p))
    except LinAlgError:  # of a stack perhaps one alone is singular
        is_singular = _bp.equal(slogdet(x).sign, 0)
        regular = _bp.where(is_singular[..., None, None], _bp.eye(x.shape[-1], dtype=x.dtype, device=x.device), x)
        return _bp.where(is_singular, math.inf, _bp.multiply(norms, matrix_norm(inv(regular), ord=p)))


def matrix_transpose(x: Tensor) -> Tensor:
    """The matrices with rows and columns exchanged."""
    return _bp.matrix_transpose(x)


def diagonal(x: Tensor, *, offset: int = 0) -> Tensor:
    """A diagonal of each matrix."""
    return _bp.diagonal(x, offset, -2, -1)


def trace(x: Tensor, *, offset: int = 0, dtype: DType | None = None) -> Tensor:
    """The sum along a diagonal of each matrix."""
    return _bp.trace(x, offset, -2, -1, dtype=dtype)


_OF_ANY_NUMBERS = {"cross", "diagonal", "kron", "matmul", "matrix_transpose", "outer", "trace", "vecdot"}
for _name in set(__all__) - {"LinAlgError", "matrix_power", "multi_dot", "tensordot", "vector_norm"}:
    globals()[_name] = _takes_operands(globals()[_name], whole_numbers=_name in _OF_ANY_NUMBERS)

if not TYPE_CHECKING:  # to whom a name that is in no list is an error
    __getattr__ = _refuse_names(__name__)
