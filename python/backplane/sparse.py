"""Sparse matrices: csr(...) @ x, with gradients for the values and for x.

    A = bp.sparse.csr((values, columns, row_starts), shape=(m, n))
    y = A @ x
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from . import _core, tree
from ._api import _sparse_parts as _parts
from ._calls._ops import NAMESPACE, ops, refuse_names
from ._calls._value_checks import is_readable
from ._api._searching_functions import nonzero

__all__ = ["CSR", "coo", "csr"]
__dir__ = __all__.copy

op = getattr(ops, NAMESPACE)


class CSR:
    """A matrix by its nonzero elements, row by row: data (nnz), indices (nnz), their columns, and indptr (m + 1), where each row begins.

    `A @ x` for x (n) or (n, k), `x @ A`, `A + B`, `A - B`, `A * number`, `A / number`, `abs(A)`, `A.T`, `A.sum(axis)`, `A.mean(axis)`,
    `A.multiply(dense)`, `A.diagonal()` and `A.to_dense()`. `A[i]` and `A[:, j]` are dense vectors, `A[i, j]` is a number, and `A[i:k]` has
    some rows. A sum with a tensor is dense. It is a container for transforms: the gradient of a CSR has the gradient of data as its data.
    Made by csr and coo.
    """

    def __init__(self, data: Any, indices: Any, indptr: Any, shape: tuple[int, int]) -> None:
        self.data, self.indices, self.indptr, self.shape = data, indices, indptr, tuple(shape)

    @property
    def dtype(self) -> _core.DType:
        return self.data.dtype

    @property
    def device(self) -> _core.Device:
        return self.data.device

    @property
    def nnz(self) -> int:
        """The number of stored elements."""
        return self.data.shape[0]

    @property
    def ndim(self) -> int:
        return 2

    def rows(self) -> _core.Tensor:
        """The row of each stored element."""
        places = op.arange(0, self.nnz, 1, dtype=self.indptr.dtype, device=self.device)
        return op.searchsorted(self.indptr[1:], places, side="right")

    def __matmul__(self, x: Any) -> _core.Tensor:
        x = x if isinstance(x, _core.Tensor) else _core.asarray(x)
        if x.ndim not in (1, 2) or x.shape[0] != self.shape[1]:
            raise _core.ShapeError(f"matmul: found a sparse matrix of shape {self.shape} and a tensor of shape {tuple(x.shape)}, expected ({self.shape[1]},) or ({self.shape[1]}, k)")
        data = op.reshape(self.data, (-1,) + (1,) * (x.ndim - 1))
        return op.segment_sum(data * op.take(x, self.indices, axis=0), self.rows(), self.shape[0])

    def __rmatmul__(self, x: Any) -> _core.Tensor:
        x = x if isinstance(x, _core.Tensor) else _core.asarray(x)
        if x.ndim not in (1, 2) or x.shape[-1] != self.shape[0]:
            raise _core.ShapeError(f"matmul: found a tensor of shape {tuple(x.shape)} and a sparse matrix of shape {self.shape}, expected ({self.shape[0]},) or (k, {self.shape[0]})")
        data = op.reshape(self.data, (-1,) + (1,) * (x.ndim - 1))
        found = op.segment_sum(data * op.take(x.T if x.ndim == 2 else x, self.rows(), axis=0), self.indices, self.shape[1])
        return found.T if x.ndim == 2 else found

    def __mul__(self, number: Any) -> CSR:
        if isinstance(number, _core.Tensor) and number.ndim:
            raise _core.ShapeError(f"multiply: found a tensor of shape {tuple(number.shape)} beside a sparse matrix, expected a number")
        return CSR(self.data * number, self.indices, self.indptr, self.shape)

    __rmul__ = __mul__

    def __truediv__(self, number: Any) -> CSR:
        if isinstance(number, CSR) or getattr(number, "ndim", 0):
            raise _core.ArgumentTypeError(f"divide: found {type(number).__name__} beside a sparse matrix, expected a number")
        return CSR(op.divide(self.data, number), self.indices, self.indptr, self.shape)

    def __neg__(self) -> CSR:
        return self * -1

    def __pos__(self) -> CSR:
        return self

    def __abs__(self) -> CSR:
        once = _parts.merged(self)
        return CSR(op.abs(once.data), once.indices, once.indptr, once.shape)

    def _sum(self, other: Any, sign: int) -> Any:
        if isinstance(other, CSR):
            return _parts.added(self, other if sign > 0 else -other)
        if not isinstance(other, _core.Tensor) and isinstance(other, (int, float, complex)):
            if other == 0:
                return self
            raise _core.ArgumentTypeError(f"add: found {other!r} beside a sparse matrix, which would have no zeros. Fix: use A.to_dense()")
        return op.add(self.to_dense(), op.multiply(_core.asarray(other), sign))

    def __add__(self, other: Any) -> Any:
        return self._sum(other, 1)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        return self._sum(other, -1)

    def __rsub__(self, other: Any) -> Any:
        return (-self)._sum(other, 1)

    def __getitem__(self, index: Any) -> Any:
        return _parts.part(self, index)

    def __len__(self) -> int:
        return self.shape[0]

    def __iter__(self) -> Iterator[_core.Tensor]:
        """The rows, as dense vectors."""
        return (self[i] for i in range(self.shape[0]))

    __pow__, __mod__, __floordiv__ = (_parts.refused(symbol) for symbol in ("power", "remainder", "floor_divide"))
    __lt__, __le__, __gt__, __ge__ = (_parts.refused(symbol) for symbol in ("less", "less_equal", "greater", "greater_equal"))

    def __getattr__(self, name: str) -> Any:
        raise _parts.no_attribute(self, name)

    def sum(self, axis: int | None = None) -> _core.Tensor:
        """The sum of all elements, of each column (axis 0) or of each row (axis 1), as a dense tensor."""
        return _parts.total(self, axis)

    def mean(self, axis: int | None = None) -> _core.Tensor:
        """The mean over all places, zeros included; see sum."""
        count = self.shape[0] * self.shape[1] if axis is None else self.shape[axis]
        return op.divide(self.sum(axis), count)

    def sum_duplicates(self) -> CSR:
        """The matrix with each place stored once. In a trace the first element of a place has the sum, and the others are 0."""
        return _parts.merged(self)

    def multiply(self, other: Any) -> CSR:
        """The product with a number, or element by element with a dense tensor that broadcasts to the matrix."""
        x = other if isinstance(other, _core.Tensor) else _core.asarray(other)
        dense = op.broadcast_to(x, self.shape)
        return CSR(op.multiply(self.data, dense[self.rows(), self.indices]), self.indices, self.indptr, self.shape)

    @property
    def T(self) -> CSR:  # noqa: N802
        return coo((self.data, (self.indices, self.rows())), shape=self.shape[::-1])

    def transpose(self, axes: tuple[int, int] | None = None) -> CSR:
        """The matrix with rows and columns exchanged. axes: None, (1, 0) or (0, 1), which changes nothing."""
        if axes is not None and tuple(axes) not in ((0, 1), (1, 0)):
            raise _core.ArgumentValueError(f"transpose: argument axes: found {axes}, expected None, (1, 0) or (0, 1)")
        return self if axes is not None and tuple(axes) == (0, 1) else self.T

    def to_dense(self) -> _core.Tensor:
        """The matrix as a tensor; elements that are stored twice are added."""
        flat = op.segment_sum(self.data, self.rows() * self.shape[1] + self.indices, self.shape[0] * self.shape[1])
        return op.reshape(flat, self.shape)

    todense = toarray = to_dense

    def diagonal(self) -> _core.Tensor:
        on = op.where(self.rows() == self.indices, self.data, 0)
        return op.segment_sum(on, self.rows(), self.shape[0])[: min(self.shape)]

    def astype(self, dtype: Any) -> CSR:
        return CSR(self.data.astype(dtype), self.indices, self.indptr, self.shape)

    def to(self, device: Any) -> CSR:
        return CSR(self.data.to(device), self.indices.to(device), self.indptr.to(device), self.shape)

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        return self.to_dense().__array__(*args, **kwargs)

    __array_ufunc__ = None

    def __repr__(self) -> str:
        return f"CSR(shape={self.shape}, nnz={self.nnz}, dtype={self.dtype.name})"


def _index(x, device):
    return (x if isinstance(x, _core.Tensor) else _core.asarray(x)).astype(_core.int64).to(device)


def csr(given: Any, shape: tuple[int, int] | None = None, *, dtype: Any = None) -> CSR:
    """A sparse matrix: of (data, indices, indptr) with its shape, of a dense matrix, or of SciPy's, whose nonzero elements it takes.

    data: (nnz), numbers. indices: (nnz), columns from 0 on. indptr: (m + 1): row i has the elements indptr[i] to indptr[i + 1].
    Errors: ShapeError and IndexDataError for parts that do not fit; values are read for this where they can be.
    """
    if isinstance(given, CSR):
        return given if dtype is None else given.astype(dtype)
    if hasattr(given, "tocsr"):
        rows = given.tocsr()
        given, shape = (rows.data, rows.indices, rows.indptr), rows.shape
    if not isinstance(given, tuple):
        dense = given if isinstance(given, _core.Tensor) else _core.asarray(given)
        if dense.ndim != 2:
            raise _core.ShapeError(f"csr: found a tensor of shape {tuple(dense.shape)}, expected a matrix")
        rows, columns = nonzero(dense)
        return coo((dense[rows, columns], (rows, columns)), shape=tuple(dense.shape), dtype=dtype)
    if len(given) != 3:
        raise _core.ArgumentValueError(f"csr: found a tuple of {len(given)}, expected (data, indices, indptr)")
    data = given[0] if isinstance(given[0], _core.Tensor) else _core.asarray(given[0])
    data = data if dtype is None else data.astype(dtype)
    indices, starts = _index(given[1], data.device), _index(given[2], data.device)
    if data.ndim != 1 or tuple(indices.shape) != tuple(data.shape) or starts.ndim != 1 or not starts.shape[0]:
        raise _core.ShapeError(f"csr: found data {tuple(data.shape)}, indices {tuple(indices.shape)} and indptr {tuple(starts.shape)}, expected (nnz), (nnz) and (m + 1)")
    columns = shape[1] if shape is not None else _largest(indices) + 1
    shape = (starts.shape[0] - 1, columns) if shape is None else tuple(shape)
    if starts.shape[0] != shape[0] + 1:
        raise _core.ShapeError(f"csr: argument indptr: found {starts.shape[0]} numbers, expected {shape[0] + 1}, one more than rows")
    _check(indices, 0, shape[1] - 1, "indices")
    if is_readable(starts):
        numbers = starts.tolist()
        if numbers[0] != 0 or numbers[-1] != data.shape[0] or any(a > b for a, b in zip(numbers, numbers[1:])):
            raise _core.IndexDataError(f"csr: argument indptr: expected numbers from 0 to {data.shape[0]} that do not fall")
    return CSR(data, indices, starts, shape)


def coo(given: Any, shape: tuple[int, int] | None = None, *, dtype: Any = None) -> CSR:
    """The CSR matrix of (data, (rows, columns)), in any order."""
    data, (rows, columns) = given
    data = data if isinstance(data, _core.Tensor) else _core.asarray(data)
    data = data if dtype is None else data.astype(dtype)
    rows, columns = _index(rows, data.device), _index(columns, data.device)
    shape = (_largest(rows) + 1, _largest(columns) + 1) if shape is None else tuple(shape)
    _check(rows, 0, shape[0] - 1, "rows")
    _check(columns, 0, shape[1] - 1, "columns")
    order = op.argsort(rows * shape[1] + columns, stable=True)
    counts = op.segment_sum(op.ones_like(rows), rows, shape[0])
    starts = op.concat([op.zeros([1], dtype=_core.int64, device=data.device), op.cumulative_sum(counts, axis=0)])
    return CSR(data[order], columns[order], starts, shape)


def _largest(indices):
    if not is_readable(indices):
        raise _core.ArgumentValueError("csr: argument shape: found None in a traced function, expected (m, n)")
    return int(indices.max().item()) if indices.size else -1


def _check(indices, low, high, argument):
    if indices.size and is_readable(indices):
        least, most = indices.min().item(), indices.max().item()
        if least < low or most > high:
            raise _core.IndexDataError(f"csr: argument {argument}: found {least if least < low else most}, expected from {low} to {high}")


class _Pattern:
    """Where the stored elements are: what a matrix and its gradient share."""

    def __init__(self, indices, indptr, shape):
        self.indices, self.indptr, self.shape = indices, indptr, shape

    def __eq__(self, other):
        return isinstance(other, _Pattern) and (self.indices is other.indices, self.indptr is other.indptr, self.shape) == (True, True, other.shape)

    __hash__ = None  # type: ignore[assignment]


def _variables(matrix):
    pattern = _Pattern(matrix.indices, matrix.indptr, matrix.shape)
    return (matrix.data,), pattern, pattern


def _made(rest, parts):
    return CSR(*parts, rest.indices, rest.indptr, rest.shape) if isinstance(rest, _Pattern) else CSR(*parts, rest)


tree.register(CSR, lambda matrix: ((matrix.data, matrix.indices, matrix.indptr), matrix.shape), _made, _variables)

TYPE_CHECKING = False
if not TYPE_CHECKING:
    __getattr__ = refuse_names(__name__)
del TYPE_CHECKING
