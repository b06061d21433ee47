"""to_graph's table: reductions by a function of two elements that is associative, in the order that JAX leaves open."""

import functools
import math

import backplane as bp

from ._jaxpr_table import ROWS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any


def folded(combine: "Callable[..., Sequence[Any]]", inputs: "Sequence[Any]", axes: "Sequence[int]") -> "list[Any]":
    """The arrays, all of one shape, without these axes: combine(*left, *right) of halves, again and again. There is at least one element per result."""
    shape = inputs[0].shape
    kept = [axis for axis in range(len(shape)) if axis not in axes]
    size, rest = math.prod(shape[axis] for axis in axes), [shape[axis] for axis in kept]
    rows: list[Any] = [bp.reshape(bp.permute_dims(x, [*axes, *kept]), (size, *rest)) for x in inputs]
    while size > 1:
        half = size // 2
        parts = [[bp.slice(x, [0], [start], [start + half], [1]) for x in rows] for start in (0, half)]
        merged = list(combine(*parts[0], *parts[1]))
        if size % 2:
            merged = [bp.concat([x, bp.slice(row, [0], [size - 1], [size], [1])]) for x, row in zip(merged, rows)]
        rows, size = merged, half + size % 2
    return [bp.reshape(x, rest) for x in rows]


def _bits(of_bools, combine, unit):
    """A reduction of the bits of integers, and of bools by an op of their own."""

    def reduce(x, *, axes, out_sharding=None):
        if x.dtype == bp.bool and of_bools is not None:
            return of_bools(x, axis=tuple(axes)) if axes else x
        if math.prod(x.shape[axis] for axis in axes) == 0:
            return bp.full([size for axis, size in enumerate(x.shape) if axis not in axes], unit(x.dtype), dtype=x.dtype, device=x.device)
        return folded(lambda a, b: [combine(a, b)], [x], list(axes))[0]

    return reduce


def _all_ones(dtype):
    return int(bp.iinfo(dtype).max) if bp.isdtype(dtype, "unsigned integer") else -1


ROWS["reduce_or"] = _bits(bp.any, bp.bitwise_or, lambda dtype: 0)
ROWS["reduce_and"] = _bits(bp.all, bp.bitwise_and, _all_ones)
ROWS["reduce_xor"] = _bits(None, bp.bitwise_xor, lambda dtype: 0)


def reduced(run: "Callable[..., Sequence[Any]]", values: "Sequence[Any]", axes: "Sequence[int]") -> "list[Any]":
    """jax.lax.reduce: values are the arrays, then their units; run computes with two numbers of each array."""
    n = len(values) // 2
    inputs, units = values[:n], values[n:]
    rest = [size for axis, size in enumerate(inputs[0].shape) if axis not in axes]

    def combine(*parts):
        of_all = functools.reduce(lambda inner, _: bp.vmap(inner), range(parts[0].ndim), lambda *numbers: tuple(run(*numbers)))
        return list(of_all(*parts))

    if 0 in inputs[0].shape:
        return [bp.broadcast_to(unit, rest) for unit in units]
    # The unit may be any number that is added once.
    return combine(*[bp.broadcast_to(unit, rest) for unit in units], *folded(combine, inputs, list(axes)))
