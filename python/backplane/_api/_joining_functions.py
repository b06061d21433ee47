"""Joins and splits under the names of the array API, NumPy and PyTorch, with their order of arguments."""

from __future__ import annotations

import itertools

from .. import _core
from .._calls._integer_argument import given_ints
from ._manipulation_functions import atleast_1d, atleast_2d, atleast_3d, normalized_axis
from .._calls._ops import NAMESPACE, ops
from .._calls._tensor_argument import given_tensor, names_errors, takes_operands, takes_tensor, tensor_like
from .._runtime._wraps import wraps

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from .._core import DType, Tensor

op = getattr(ops, NAMESPACE)

__all__ = [
    "append",
    "array_split",
    "cat",
    "chunk",
    "column_stack",
    "concat",
    "concatenate",
    "dsplit",
    "dstack",
    "hsplit",
    "hstack",
    "row_stack",
    "split",
    "tensor_split",
    "unbind",
    "unstack",
    "vsplit",
    "vstack",
]

_MOST_EMPTY = 1 << 20  # pieces, as of the lists in formulas


@takes_operands
def concat(
    arrays: Sequence[Tensor], axis: int | None = 0, *, dim: int | None = None, dtype: DType | None = None
) -> Tensor:
    """Joins tensors along an axis, which PyTorch calls dim; without one (None), their elements in row-major order. dtype: the result's."""
    axis = axis if dim is None else dim
    if axis is None:
        arrays, axis = [op.reshape(x, (-1,)) for x in arrays], 0
    return op.concat(arrays if dtype is None else [_core.asarray(x, dtype=dtype) for x in arrays], axis=axis)


concatenate = concat


@takes_tensor
def unstack(x: Tensor, *, axis: int = 0) -> tuple[Tensor, ...]:
    """The parts of x along axis, as views without that axis."""
    return parts_along("unstack", x, normalized_axis("unstack", axis, x.ndim))


def parts_along(function, x, axis):
    """The same for an axis that was checked."""
    _check_count(function, "x", x.shape[axis], x, axis)
    return tuple(op.select(x, axis, position) for position in range(x.shape[axis]))


@names_errors
def cat(tensors: Sequence[Tensor], dim: int | None = 0) -> Tensor:
    """Joins tensors along dim."""
    return concat(tensors, axis=dim)


@takes_tensor
def append(x: Tensor, values: Any, axis: int | None = None) -> Tensor:
    """x joined with values along axis; without one, the elements of both in row-major order."""
    return concat([x, tensor_like(values, x)], axis=axis)


def _given(function, arrays):
    arrays = list(arrays)
    return [given_tensor(function, "arrays", x, arrays) for x in arrays]


@names_errors
@takes_operands
def column_stack(arrays: Sequence[Tensor]) -> Tensor:
    """Joins tensors along axis 1, vectors as columns."""
    arrays = [atleast_1d(x) for x in _given("column_stack", arrays)]
    return op.concat([op.expand_dims(x, [1]) if x.ndim == 1 else x for x in arrays], axis=1)


def _needs_axes(function, x, count):
    if x.ndim < count:
        raise _core.ShapeError(f"{function}: argument x: found {x.ndim} dimensions, expected at least {count}")


@takes_tensor
def hsplit(x: Tensor, indices_or_sections: int | Sequence[int]) -> list[Tensor]:
    """split along axis 1, of a vector along axis 0."""
    _needs_axes("hsplit", x, 1)
    return split(x, indices_or_sections, axis=1 if x.ndim > 1 else 0)


@takes_tensor
def vsplit(x: Tensor, indices_or_sections: int | Sequence[int]) -> list[Tensor]:
    """split along axis 0 of at least two axes."""
    _needs_axes("vsplit", x, 2)
    return split(x, indices_or_sections, axis=0)


@takes_tensor
def dsplit(x: Tensor, indices_or_sections: int | Sequence[int]) -> list[Tensor]:
    """split along axis 2."""
    _needs_axes("dsplit", x, 3)
    return split(x, indices_or_sections, axis=2)


@takes_tensor
def tensor_split(x: Tensor, indices_or_sections: int | Sequence[int], dim: int = 0) -> list[Tensor]:
    """Pieces of x along dim, views: so many, the first ones longer by one where sizes differ, or those between positions."""
    return array_split(x, indices_or_sections, axis=dim)


@takes_tensor
def unbind(x: Tensor, dim: int = 0) -> tuple[Tensor, ...]:
    """The parts of x along dim, as views without that axis."""
    return parts_along("unbind", x, normalized_axis("unbind", dim, x.ndim, "dim"))


@names_errors
@takes_operands
def vstack(arrays: Sequence[Tensor]) -> Tensor:
    """Joins tensors of at least two axes along axis 0."""
    return op.concat([atleast_2d(x) for x in _given("vstack", arrays)], axis=0)


row_stack = vstack


@names_errors
@takes_operands
def hstack(arrays: Sequence[Tensor]) -> Tensor:
    """Joins tensors along axis 1; vectors along axis 0."""
    arrays = [atleast_1d(x) for x in _given("hstack", arrays)]
    return op.concat(arrays, axis=1 if arrays and arrays[0].ndim > 1 else 0)


@names_errors
@takes_operands
def dstack(arrays: Sequence[Tensor]) -> Tensor:
    """Joins tensors of at least three axes along axis 2."""
    return op.concat([atleast_3d(x) for x in _given("dstack", arrays)], axis=2)


def _is_count(value):
    """Of pieces; an array has __index__, whatever its shape."""
    return hasattr(value, "__index__") and not getattr(value, "ndim", 0)


def _pieces(x, axis, bounds):
    return [op.slice(x, [axis], [start], [stop], [1]) for start, stop in zip(bounds, bounds[1:])]


def _by_step(size, step):
    """The bounds of pieces of `step` elements, the last one of what is left; by comparisons, which a trace for any size follows."""
    bounds = [0]
    while bounds[-1] + step < size:
        bounds.append(bounds[-1] + step)
    return [*bounds, size]


def _check_count(function, argument, count, x, axis):
    """Of pieces: a list of so many is made. They are empty or the same beyond the elements that the axis has in memory."""
    if count <= _MOST_EMPTY:
        return
    size = x.shape[axis]
    if count <= size and x.size > 0 and x.strides[axis] != 0:
        return
    what = "its size or " if count > size else ""
    why = "" if count > size else ", because it does not have so many elements in memory; index it instead"
    raise _core.ArgumentValueError(
        f"{function}: argument {argument}: found {count} pieces of an axis of size {size}, expected at most {what}{_MOST_EMPTY}{why}"
    )


def _check_positive(function, argument, count):
    if not hasattr(count, "__index__"):
        raise _core.ArgumentTypeError(f"{function}: argument {argument}: found {count!r}, expected an integer")
    if count <= 0:
        raise _core.ArgumentValueError(f"{function}: argument {argument}: found {count}, expected more than 0")


def _at(function, x, axis, places):
    """The pieces between positions, which count from the end where they are negative, as in a slice."""
    bounds = [0, *given_ints(function, "indices_or_sections", places), x.shape[axis]]
    return _pieces(x, axis, bounds)


@takes_tensor
def array_split(x: Tensor, indices_or_sections: int | Sequence[int], axis: int = 0) -> list[Tensor]:
    """Pieces of x along axis, views: so many, the first ones longer by one where sizes differ, or those between positions."""
    axis = normalized_axis("array_split", axis, x.ndim)
    if not _is_count(indices_or_sections):
        return _at("array_split", x, axis, indices_or_sections)
    count = indices_or_sections.__index__()
    _check_positive("array_split", "indices_or_sections", count)
    _check_count("array_split", "indices_or_sections", count, x, axis)
    size = x.shape[axis]
    return _pieces(x, axis, [0, *itertools.accumulate((size + i) // count for i in range(count - 1, -1, -1))])


def _takes_split_size(function):
    """PyTorch's word, which goes along dim, the axis 0 where none is named."""

    @wraps(function)
    def named(*args, **more):
        if "split_size_or_sections" in more:
            more["indices_or_sections"] = more.pop("split_size_or_sections")
            more.setdefault("dim", 0)
        return function(*args, **more)

    return named


@_takes_split_size
@takes_tensor
def split(x: Tensor, indices_or_sections: int | Sequence[int], axis: int = 0, *, dim: int | None = None) -> list[Tensor]:
    """Pieces of x along axis, views: so many of one size, or those between positions, as NumPy has it.

    Along dim, as PyTorch has it: pieces of so many elements, the last one of what is left, or of the sizes that are listed.
    """
    if dim is not None:
        return _of_sizes(x, indices_or_sections, normalized_axis("split", dim, x.ndim, "dim"))
    axis = normalized_axis("split", axis, x.ndim)
    if not _is_count(indices_or_sections):
        return _at("split", x, axis, indices_or_sections)
    count = indices_or_sections.__index__()
    if count <= 0 or x.shape[axis] % count:
        raise _core.ArgumentValueError(
            f"split: argument indices_or_sections: found {count} for an axis of size {x.shape[axis]}, expected a divisor of it; "
            "array_split takes any"
        )
    return array_split(x, count, axis=axis)


def _of_sizes(x, sizes, axis):
    """PyTorch's pieces."""
    whole = x.shape[axis]
    if _is_count(sizes):
        step = sizes.__index__()
        _check_positive("split", "split_size", step)
        _check_count("split", "split_size", -(-whole // step), x, axis)
        return _pieces(x, axis, _by_step(whole, step))
    sizes = given_ints("split", "split_sizes", sizes)
    if any(size < 0 for size in sizes) or sum(sizes) != whole:
        raise _core.ArgumentValueError(f"split: found sizes {sizes} along dim, expected counts whose sum is the axis's size, {whole}; positions go with axis=")
    return _pieces(x, axis, [0, *itertools.accumulate(sizes)])


@takes_tensor
def chunk(x: Tensor, chunks: int, dim: int = 0) -> tuple[Tensor, ...]:
    """At most `chunks` pieces of x along dim, views, all of one size but for the last."""
    axis = normalized_axis("chunk", dim, x.ndim, "dim")
    size = x.shape[axis]
    _check_positive("chunk", "chunks", chunks)
    if chunks > _MOST_EMPTY:
        _check_count("chunk", "chunks", chunks if size == 0 else min(chunks, size), x, axis)
    return tuple(_pieces(x, axis, _by_step(size, -(-size // chunks)) if size else [0] * (chunks + 1)))
