"""Sets of values under NumPy's and PyTorch's names."""

from __future__ import annotations

from .. import _core
from ._manipulation_functions import normalized_axis, ravel
from .._calls._ops import NAMESPACE, ops
from .._calls._tensor_argument import given_tensor, takes_tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .._core import Tensor

op = getattr(ops, NAMESPACE)

__all__ = ["intersect1d", "setdiff1d", "setxor1d", "union1d", "unique"]


def _unique_parts(x, axis):
    """As unique_all, of the parts along axis in lexicographic order."""
    size = x.shape[axis]
    rows = op.reshape(op.moveaxis(x, axis, 0), [size, x.size // size if size else 0])
    order = op.iota(size, device=x.device)
    for column in reversed(range(rows.shape[1])):
        order = op.take(order, op.argsort(op.take(rows[:, column], order)))
    rows = op.take(rows, order, axis=0)
    new = op.any(op.not_equal(rows[1:], rows[:-1]), [1])
    new = op.concat([op.full([min(size, 1)], True, device=x.device), new], axis=0)
    starts = op.argwhere(new)[:, 0]
    inverse = op.put_along_axis(op.zeros_like(order), order, op.subtract(op.cumsum(new, 0), 1))
    ends = op.concat([starts[1:], op.full([min(size, 1)], size, device=x.device)], axis=0)
    first = op.take(order, starts)
    return op.take(x, first, axis=axis), first, inverse, op.subtract(ends, starts)


@takes_tensor
def unique(
    x: Tensor, return_index: bool = False, return_inverse: bool = False, return_counts: bool = False, axis: int | None = None,
    *, dim: int | None = None, sorted: bool = True, equal_nan: bool = False
) -> Any:
    """The elements of x, or its parts along axis (dim), each once and in rising order, whether or not sorted asks for it; each NaN is one of its own.
    NumPy's equal_nan, which makes one of them, is refused where it is True.

    On request a tuple with them: the first positions of each in x flattened (along axis), positions that rebuild x from them, and
    how often each occurs.
    """
    if equal_nan:
        raise _core.ArgumentValueError("unique: argument equal_nan: found True, expected False: each NaN counts as a different value. Fix: leave NaN out, unique(x[~isnan(x)])")
    axis = axis if dim is None else dim
    if axis is not None:
        values, *others = _unique_parts(x, normalized_axis("unique", axis, x.ndim))
        found = [one for wish, one in zip((return_index, return_inverse, return_counts), others) if wish]
        return (values, *found) if found else values
    if not (return_index or return_inverse or return_counts):
        return op.unique_values(x)
    values, first, inverse, counts = op.unique_all(x)
    wanted = zip((return_index, return_inverse, return_counts), (first, inverse, counts))
    return (values, *(found for wish, found in wanted if wish))


@takes_tensor
def union1d(x: Tensor, y: Tensor) -> Tensor:
    """The elements of x or y, each once and in rising order."""
    y = given_tensor("union1d", "y", y, (x,))
    return op.unique_values(op.concat([ravel(x), ravel(y)], axis=0))


@takes_tensor
def intersect1d(x: Tensor, y: Tensor, assume_unique: bool = False, return_indices: bool = False) -> Any:
    """The elements of both x and y, each once and in rising order. assume_unique changes nothing.

    return_indices: a tuple with them, and with their first positions in x and in y, both flattened.
    """
    y = given_tensor("intersect1d", "y", y, (x,))
    if not return_indices:
        once = op.unique_values(x)
        return once[op.isin(once, y)]
    (values, first, *_), (others, second, *_) = op.unique_all(x), op.unique_all(y)
    is_common = op.isin(values, others)
    return values[is_common], first[is_common], second[op.isin(others, values)]


@takes_tensor
def setdiff1d(x: Tensor, y: Tensor, assume_unique: bool = False) -> Tensor:
    """The elements of x that y has not, each once and in rising order; with assume_unique as they stand in x flattened."""
    y = given_tensor("setdiff1d", "y", y, (x,))
    once = ravel(x) if assume_unique else op.unique_values(x)
    return once[op.isin(once, y, invert=True)]


@takes_tensor
def setxor1d(x: Tensor, y: Tensor, assume_unique: bool = False) -> Tensor:
    """The elements of one of x and y that the other has not, each once and in rising order. assume_unique changes nothing."""
    y = given_tensor("setxor1d", "y", y, (x,))
    return union1d(setdiff1d(x, y), setdiff1d(y, x))
