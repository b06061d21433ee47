"""NumPy's orders, grids, blocks and windows, and its functions of functions: what calls of backplane.compat.numpy mean where it takes statements."""

from __future__ import annotations

import math

from .. import _core, linalg
from .._api._creation_functions import tri
from .._api._indexing_functions import indices
from .._api._joining_functions import concatenate
from .._api._manipulation_functions import broadcast_arrays, normalized_axis, ravel
from .._calls._ops import NAMESPACE, ops
from .._api._searching_functions import nonzero
from .._api._set_functions import unique as unique_of

op = getattr(ops, NAMESPACE)

__all__ = ["apply_along_axis", "array", "block", "cross", "fromfunction", "lexsort", "ordered", "sort_complex", "square_size", "triangle", "trim_zeros", "unique", "window"]


def window(name, M):
    """Windows of signal processing, of M points."""
    if M < 1:
        return op.full([0], 0.0, dtype=_core.float64)
    n = op.cast(op.iota(M), _core.float64)
    turn = n * (2 * math.pi / (M - 1)) if M > 1 else n
    if name == "bartlett":
        return 1 - op.abs(n * (2.0 / (M - 1)) - 1) if M > 1 else op.add(n, 1.0)
    if M == 1:
        return op.add(n, 1.0)
    first, second = {"hanning": (0.5, 0.0), "hamming": (0.54, 0.0), "blackman": (0.42, 0.08)}[name]
    return first - (1 - first - second) * op.cos(turn) + second * op.cos(2 * turn)


def square_size(name, arr):
    arr = _core.asarray(arr)
    if arr.ndim < 2 or len(set(arr.shape)) != 1:
        raise _core.ShapeError(f"{name}: found shape {tuple(arr.shape)}, expected at least two axes, all of one size")
    return arr.shape[0]


def triangle(name, arr, k):
    """tril_indices_from and triu_indices_from."""
    arr = _core.asarray(arr)
    if arr.ndim != 2:
        raise _core.ShapeError(f"{name}: found {arr.ndim} dimensions, expected a matrix")
    below = tri(arr.shape[0], arr.shape[1], k if name.startswith("tril") else k - 1, dtype=_core.bool)
    return nonzero(below if name.startswith("tril") else op.logical_not(below))


def fromfunction(function, shape, dtype, more):
    places = (op.cast(one, _core.float64 if dtype is None else dtype) for one in indices(shape))
    return function(*places, **more)


def block(arrays):
    """Nested lists of blocks as one tensor: the innermost lists are joined along the last axis, the lists of them along the one before."""

    def depth(part):
        return 1 + max(map(depth, part)) if isinstance(part, list) else 0

    def blocks(part):
        return [one for inner in part for one in blocks(inner)] if isinstance(part, list) else [_core.asarray(part)]

    levels = depth(arrays)
    rank = max(levels, *(one.ndim for one in blocks(arrays)))

    def joined(part, level):
        if not isinstance(part, list):
            x = _core.asarray(part)
            return op.reshape(x, [1] * (rank - x.ndim) + list(x.shape))
        return concatenate([joined(one, level - 1) for one in part], axis=-level)

    return joined(arrays, levels)


def trim_zeros(filt, trim, axis):
    """A vector without the zeros at its ends: 'f' in front, 'b' at the back."""
    x = _core.asarray(filt)
    if x.ndim != 1 or axis not in (None, 0, -1):
        raise _core.ShapeError(f"trim_zeros: argument filt: found {x.ndim} dimensions, expected a vector")
    found = nonzero(x)[0].tolist()
    if isinstance(filt, (list, tuple)):
        x = filt  # a sequence stays one, as in NumPy
    if not found:
        return x[:0]
    return x[found[0] if "f" in trim.lower() else 0 : found[-1] + 1 if "b" in trim.lower() else len(x)]


def cross(a, b, axisa, axisb, axisc, axis):
    """The cross product of vectors of three elements along axisa of a and axisb of b, put along axisc."""
    axisa, axisb, axisc = (axisa, axisb, axisc) if axis is None else (axis, axis, axis)
    a, b = op.moveaxis(_core.asarray(a), axisa, -1), op.moveaxis(_core.asarray(b), axisb, -1)
    if a.shape[-1:] != (3,) or b.shape[-1:] != (3,):
        raise _core.ShapeError("cross: found vectors of another size, expected three elements each")
    a, b = broadcast_arrays(a, b)
    return op.moveaxis(linalg.cross(a, b, axis=-1), -1, axisc)


def apply_along_axis(function, axis, arr, args, more):
    """The function of each vector of arr along axis, one after the other."""
    arr = _core.asarray(arr)
    axis = normalized_axis("apply_along_axis", axis, arr.ndim)
    rows = op.moveaxis(arr, axis, -1)
    shape = rows.shape[:-1]
    rows = op.reshape(rows, [-1, arr.shape[axis]])
    found = op.stack([_core.asarray(function(rows[place], *args, **more)) for place in range(rows.shape[0])])
    inner = found.ndim - 1
    found = op.reshape(found, [*shape, *found.shape[1:]])
    for place in range(inner):
        found = op.moveaxis(found, len(shape) + place, axis + place)
    return found


def array(obj):
    """The object; a list that holds tensors with axes becomes a stack of them."""
    if isinstance(obj, (list, tuple)) and any(_has_axes(one) for one in obj):
        return op.stack([_core.asarray(array(one)) for one in obj])
    return obj


def _has_axes(obj):
    return obj.ndim > 0 if isinstance(obj, _core.Tensor) else isinstance(obj, (list, tuple)) and any(map(_has_axes, obj))


def lexsort(keys, axis):
    """The order by the last key, of equal ones by the key before it, and so on."""
    keys = [_core.asarray(key) for key in keys]
    order = op.argsort(keys[0], axis)
    for key in keys[1:]:
        order = op.take_along_axis(order, op.argsort(op.take_along_axis(key, order, axis=axis), axis), axis=axis)
    return order


def sort_complex(a):
    """The complex numbers sorted by real part; equal real parts are sorted by imaginary part."""
    x = _core.asarray(a)
    x = op.cast(x, _core.complex128) if x.dtype.kind != "complex floating" else x
    return op.take_along_axis(x, lexsort((op.imag(x), op.real(x)), -1), axis=-1)


def ordered(function, a, axis):
    """sort and argsort; complex numbers by their real parts, then by their imaginary parts."""
    x = _core.asarray(array(a))
    if x.dtype.kind != "complex floating":
        return function(x, axis)
    x, axis = (ravel(x), 0) if axis is None else (x, axis)
    order = lexsort((op.imag(x), op.real(x)), axis)
    return order if function.__name__ == "argsort" else op.take_along_axis(x, order, axis=axis)


def unique(ar, return_index, return_inverse, return_counts, axis, equal_nan):
    """The sorted unique elements; with equal_nan all NaNs are one."""
    x = _core.asarray(ar)
    found = unique_of(x, return_index, return_inverse, return_counts, axis)
    if not equal_nan or axis is not None or x.dtype.kind not in ("real floating", "complex floating"):
        return found
    parts = list(found) if isinstance(found, tuple) else [found]
    missing = int(op.sum(op.isnan(parts[0]), dtype=_core.int64))
    if missing < 2:
        return found
    last = parts[0].size - missing  # NaNs stand last
    parts[0] = parts[0][: last + 1]
    place = 1
    if return_index:
        parts[place] = parts[place][: last + 1]
        place += 1
    if return_inverse:
        parts[place] = op.minimum(parts[place], last)
        place += 1
    if return_counts:
        parts[place] = concatenate([parts[place][:last], op.reshape(op.sum(parts[place][last:], dtype=parts[place].dtype), [1])])
    return tuple(parts) if len(parts) > 1 else parts[0]
