"""Arithmetic on host values: sizes, axes, and scalars that are computed of them."""

import numpy as np

from ._table import on_host

_BINARY = {
    "Add": np.add, "Sub": np.subtract, "Mul": np.multiply, "Equal": np.equal, "Less": np.less, "LessOrEqual": np.less_equal, "Greater": np.greater,
    "GreaterOrEqual": np.greater_equal, "And": np.logical_and, "Or": np.logical_or, "Xor": np.logical_xor,
}  # fmt: skip
_UNARY = {"Neg": np.negative, "Not": np.logical_not, "Identity": lambda x: x}
_FLOATS = {"Floor": np.floor, "Ceil": np.ceil, "Sqrt": np.sqrt, "Round": np.rint, "Reciprocal": np.reciprocal, "Exp": np.exp, "Log": np.log}


def _binary(function, gives_bool):
    def of_arrays(x, y):
        found = function(x, y)
        return found.astype(bool) if gives_bool else found

    return of_arrays


for _name, _function in _BINARY.items():
    on_host(_name)(_binary(_function, _name not in ("Add", "Sub", "Mul")))
for _name, _function in _UNARY.items():
    on_host(_name)(_function)
for _name, _function in _FLOATS.items():
    on_host(_name)(lambda x, function=_function: NotImplemented if x.dtype == object else function(x))


@on_host("Div")
def divide(x, y):
    if object in (x.dtype, y.dtype):
        return np.floor_divide(x, y)  # sizes are not negative
    if x.dtype.kind == "f":
        return np.divide(x, y)
    if not np.all(y):
        return NotImplemented
    quotient = np.floor_divide(x, y)
    return quotient + ((quotient * y != x) & ((x < 0) != (y < 0))).astype(x.dtype)


@on_host("Mod")
def modulo(x, y, *, fmod=0):
    if object in (x.dtype, y.dtype):
        return NotImplemented if fmod else np.mod(x, y)
    return np.fmod(x, y) if fmod else np.mod(x, y) if np.all(y) else NotImplemented


@on_host("Max")
def maximum(*inputs):
    found = inputs[0]
    for x in inputs[1:]:
        found = np.maximum(found, x)
    return found


@on_host("Min")
def minimum(*inputs):
    found = inputs[0]
    for x in inputs[1:]:
        found = np.minimum(found, x)
    return found


@on_host("Where")
def where(condition, x, y):
    return np.where(condition.astype(bool), x, y)


@on_host("Gather")
def gather(x, indices, *, axis=0):
    if indices.dtype == object:
        return NotImplemented
    found = np.take(x, indices.astype(np.int64), axis)
    if x.dtype != object or isinstance(found, np.ndarray):
        return found
    array = np.empty((), dtype=object)
    array[()] = found
    return array


def _reduction(function):
    def of_array(x, given=None, *, axes=None, keepdims=1, noop_with_empty_axes=0):
        axes = axes if given is None else [int(axis) for axis in given.reshape(-1)]
        if not axes and noop_with_empty_axes:
            return x
        places = tuple(range(x.ndim)) if not axes else tuple(axes)
        found = function.reduce(x, axis=places, keepdims=bool(keepdims))
        array = np.empty(np.shape(found), dtype=x.dtype)
        array[...] = found
        return array

    return of_array


for _name, _function in {"ReduceProd": np.multiply, "ReduceSum": np.add, "ReduceMax": np.maximum, "ReduceMin": np.minimum}.items():
    on_host(_name)(_reduction(_function))
