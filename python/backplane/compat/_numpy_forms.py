"""What calls of backplane.compat.numpy mean where it takes statements: the list of names (python/spellings/numpy.txt) calls these functions.

They run under NumPy's default dtype, float64. Those for dtypes, grids and edits in place stand in _numpy_types.py and _numpy_edits.py.
"""

from __future__ import annotations

import math

from .. import _core, linalg
from .._creation_functions import empty_like
from .._joining_functions import concatenate
from .._manipulation_functions import broadcast_arrays, normalized_axis, ravel
from .._ops import NAMESPACE, ops
from .._searching_functions import nonzero
from .._set_functions import unique as unique_of
from .._statistical_functions import histogram as histogram_of
from . import _numpy_random as random
from ._calls import float64, given
from ._numpy_edits import choose as choose, copyto as copyto, fill_diagonal as fill_diagonal, place as place, put as put, put_along_axis as put_along_axis, putmask as putmask, resize as resize
from ._numpy_polynomials import poly as poly, polyder as polyder, polyfit as polyfit, polyint as polyint, polynomial_sum as polynomial_sum, roots as roots
from ._numpy_types import (
    Grid as Grid,
    Joined as Joined,
    array_repr as array_repr,
    array_str as array_str,
    complexfloating as complexfloating,
    dtype as dtype,
    errstate as errstate,
    floating as floating,
    floating_point_errors as floating_point_errors,
    generic as generic,
    index_exp as index_exp,
    inexact as inexact,
    integer as integer,
    issubdtype as issubdtype,
    iterable as iterable,
    number as number,
    numpy_dtype as numpy_dtype,
    of_numpy as of_numpy,
    s_ as s_,
    signedinteger as signedinteger,
    to_numpy_file as to_numpy_file,
    unsignedinteger as unsignedinteger,
)

__all__ = ["random"]

op = getattr(ops, NAMESPACE)


def in_dtype(x, dtype):
    """x, cast where a dtype is given."""
    return x if dtype is None else op.cast(x, dtype)


def _in_floats(name):
    """The function, which NumPy computes in floats alone."""

    def function(*operands):
        return getattr(op, name)(*(x if "floating" in x.dtype.kind else op.cast(x, _core.float64) for x in map(_core.asarray, operands)))

    function.__doc__ = getattr(op, name).__doc__
    return function


rint, heaviside, nextafter = _in_floats("round"), _in_floats("heaviside"), _in_floats("nextafter")


def _of_bools_too(name, of_bools):
    def function(x1, x2):
        x1, x2 = _core.asarray(x1), _core.asarray(x2)
        return (of_bools if x1.dtype is x2.dtype is _core.bool else getattr(op, name))(x1, x2)

    function.__doc__ = getattr(op, name).__doc__
    return function


fmax, fmin = _of_bools_too("fmax", op.logical_or), _of_bools_too("fmin", op.logical_and)


def reciprocal(x):
    """1 / x; of integers without the fraction."""
    x = _core.asarray(x)
    if x.dtype.kind not in ("signed integer", "unsigned integer"):
        return op.reciprocal(x)
    return op.where(op.equal(op.multiply(x, x), 1), x, op.zeros_like(x))


def logaddexp2(x1, x2):
    """log2(2**x1 + 2**x2), without overflow."""
    scale = math.log(2.0)
    return op.divide(op.logaddexp(op.multiply(x1, scale), op.multiply(x2, scale)), scale)


def clip(a, a_min, a_max, min, max):
    """NumPy's two spellings of the limits."""
    if (a_min is not None and min is not None) or (a_max is not None and max is not None):
        raise _core.ArgumentTypeError("clip: found a_min beside min, or a_max beside max, expected one of the two")
    low, high = (a_min if min is None else min), (a_max if max is None else max)
    x = _core.asarray(a)
    if any(isinstance(limit, (list, tuple)) for limit in (low, high)):
        low, high = (_core.asarray(limit) if isinstance(limit, (list, tuple)) else limit for limit in (low, high))
    return op.clip(x, low, high) if low is not None or high is not None else op.copy(x)


def where(condition, x, y):
    """Of the condition alone the positions where it holds."""
    if x is None and y is None:
        return nonzero(_core.asarray(condition))
    if x is None or y is None:
        raise _core.ArgumentTypeError("where: found one of x and y, expected both or neither")
    return op.where(op.not_equal(_core.asarray(condition), 0) if _core.asarray(condition).dtype is not _core.bool else condition, x, y)


def piecewise(x, condlist, funclist, args, more):
    """Of each element what the function (or the number) of the last condition that holds gives; 0, or the further function's, where none does."""
    x = _core.asarray(x)
    conditions = [_core.asarray(one) for one in (condlist if isinstance(condlist, (list, tuple)) else [condlist])]
    functions = list(funclist)
    value = op.zeros_like(x)
    if len(functions) == len(conditions) + 1:
        last = functions.pop()
        value = op.cast(last(x, *args, **more), x.dtype) if callable(last) else op.full_like(x, last)
    if len(functions) != len(conditions):
        raise _core.ArgumentValueError(f"piecewise: found {len(conditions)} conditions and {len(functions)} functions, expected as many, or one function more")
    for condition, function in zip(conditions, functions):
        value = op.where(condition, op.cast(function(x, *args, **more), x.dtype) if callable(function) else op.full_like(x, function), value)
    return value


def real_if_close(a, tol):
    """The real part, where all imaginary parts are within tol epsilons (or tol itself, below 1) of 0."""
    x = _core.asarray(a)
    if x.dtype.kind != "complex floating":
        return x
    epsilon = 2.0**-52 if x.dtype is _core.complex128 else 2.0**-23
    return op.real(x) if bool(op.all(op.less(op.abs(op.imag(x)), tol * epsilon if tol > 1 else tol))) else x


def spread(name, a, axis, dtype, ddof, keepdims, where, correction):
    """std, var and their forms without NaN."""
    if correction is not None and ddof != 0:
        raise _core.ArgumentTypeError(f"{name}: found ddof and correction, expected one of them")
    return getattr(op, name)(a, axis, ddof=ddof if correction is None else correction, keepdims=keepdims, **given(dtype=dtype, where=where))


def histogram(a, bins, range, density, weights):
    if isinstance(bins, str):
        raise _core.ArgumentTypeError(f"histogram: argument bins: found {bins!r}, expected a number of bins, or their edges")
    bins = _core.asarray(bins) if isinstance(bins, (list, tuple)) else bins
    a = _core.asarray(a)
    weights = None if weights is None else _core.asarray(weights)
    return histogram_of(op.cast(a, _core.float64) if a.dtype.kind != "real floating" else a, bins, range, bool(density), weights)


def histogram2d(x, y, bins, range, density, weights):
    """The counts of pairs in cells of two rows of edges."""
    x, y = _core.asarray(x), _core.asarray(y)
    of_axes = bins if isinstance(bins, (list, tuple)) and len(bins) == 2 else [bins, bins]
    limits = [None, None] if range is None else range
    edges = [histogram(one, count, limit, None, None)[1] for one, count, limit in zip((x, y), of_axes, limits)]
    places = [op.subtract(op.searchsorted(edge, one, side="right"), 1) for edge, one in zip(edges, (x, y))]
    places = [op.where(op.equal(one, edge[-1]), edge.size - 2, place) for edge, one, place in zip(edges, (x, y), places)]
    inside = op.logical_and(*(op.logical_and(op.greater_equal(place, 0), op.less(place, edge.size - 1)) for edge, place in zip(edges, places)))
    shape = [edge.size - 1 for edge in edges]
    cell = op.where(inside, op.add(op.multiply(places[0], shape[1]), places[1]), 0)
    weights = op.full(x.shape, 1.0, dtype=_core.float64) if weights is None else _core.asarray(weights, dtype=_core.float64)
    counts = op.reshape(op.segment_sum(op.where(inside, weights, 0.0), cell, shape[0] * shape[1]), shape)
    if density:
        counts = op.divide(counts, op.multiply(op.sum(counts), op.outer(op.diff(edges[0]), op.diff(edges[1]))))
    return counts, *edges


def lexsort(keys, axis):
    """The order by the last key, of equal ones by the key before it, and so on."""
    keys = [_core.asarray(key) for key in keys]
    order = op.argsort(keys[0], axis)
    for key in keys[1:]:
        order = op.take_along_axis(order, op.argsort(op.take_along_axis(key, order, axis=axis), axis), axis=axis)
    return order


def sort_complex(a):
    """Complex numbers in the order of their real parts, of equal ones of their imaginary parts."""
    x = _core.asarray(a)
    x = op.cast(x, _core.complex128) if x.dtype.kind != "complex floating" else x
    return op.take_along_axis(x, lexsort((op.imag(x), op.real(x)), -1), axis=-1)


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


def asarray_chkfinite(a, dtype):
    x = _core.asarray(a, dtype)
    if not bool(op.all(op.isfinite(x))):
        raise _core.ArgumentValueError("asarray_chkfinite: argument a: found infinities or NaNs, expected finite numbers")
    return x


def like(make, a, dtype, shape, device):
    """zeros_like and its kin, of lists too, at another shape where one is given."""
    x = _core.asarray(a)
    return make(x if shape is None else empty_like(x, shape=shape), dtype=dtype, device=device)


def full_like(a, fill_value, dtype, shape, device):
    x = _core.asarray(a)
    x = x if shape is None else empty_like(x, shape=shape)
    if isinstance(fill_value, (list, tuple)):
        fill_value = _core.asarray(fill_value)
    return op.full_like(x, fill_value, dtype=dtype, device=device)


def arange(start, stop, step, dtype, device):
    start, stop = (0, start) if stop is None else (start, stop)
    return op.arange(start, stop, 1 if step is None else step, dtype=dtype, device=device)


def linspace(start, stop, num, endpoint, retstep, dtype, axis, device):
    """NumPy's, of lists too; integers are rounded down."""
    start, stop = (_core.asarray(end) if isinstance(end, (list, tuple)) else end for end in (start, stop))
    whole = dtype is not None and _core.as_dtype(dtype, "linspace").kind in ("signed integer", "unsigned integer")
    values = op.linspace(start, stop, num, endpoint=endpoint, device=device, **given(dtype=None if whole else dtype))
    if whole:
        values = op.cast(op.floor(values), dtype)
    if axis != 0:
        values = op.moveaxis(values, 0, axis)
    parts = num - 1 if endpoint else num
    return (values, (stop - start) / parts if parts > 0 else math.nan) if retstep else values


def along(values, axis):
    if axis not in (0, -1):
        raise _core.OutOfRangeError(f"argument axis: found {axis}, expected 0: the ends are numbers")
    return values


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
    from .._creation_functions import tri

    below = tri(arr.shape[0], arr.shape[1], k if name.startswith("tril") else k - 1, dtype=_core.bool)
    return nonzero(below if name.startswith("tril") else op.logical_not(below))


def fromfunction(function, shape, dtype, more):
    places = (op.cast(one, _core.float64 if dtype is None else dtype) for one in _places(shape))
    return function(*places, **more)


def _places(shape):
    from .._indexing_functions import indices

    return indices(shape)


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
    if not found:
        return x[:0]
    return x[found[0] if "f" in trim.lower() else 0 : found[-1] + 1 if "b" in trim.lower() else x.size]


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


class Vectorized:
    """NumPy's vectorize: a function of numbers, called for each element; vmap computes a function of tensors at once."""

    def __init__(self, pyfunc, otypes=None, doc=None, excluded=None, cache=False, signature=None):
        if excluded or signature:
            raise _core.ArgumentTypeError("vectorize: found excluded or signature, expected a function of numbers alone; use backplane.vmap")
        self.pyfunc, self.otypes = pyfunc, otypes
        self.__doc__ = doc or getattr(pyfunc, "__doc__", None)

    def __call__(self, *args):
        with float64:
            arrays = broadcast_arrays(*(_core.asarray(arg) for arg in args))
        rows = [ravel(x).tolist() for x in arrays]
        numbers = [self.pyfunc(*row) for row in zip(*rows)]
        with float64:
            found = _core.asarray(numbers)
        dtype = None if self.otypes is None else self.otypes[0]
        return op.reshape(in_dtype(found, dtype), arrays[0].shape)


def array(obj):
    """The object; a list that holds tensors with axes becomes a stack of them."""
    if isinstance(obj, (list, tuple)) and any(_has_axes(one) for one in obj):
        return op.stack([_core.asarray(array(one)) for one in obj])
    return obj


def _has_axes(obj):
    return obj.ndim > 0 if isinstance(obj, _core.Tensor) else isinstance(obj, (list, tuple)) and any(map(_has_axes, obj))


def floats(a):
    """The matrix in a floating dtype."""
    x = _core.asarray(array(a))
    return x if "floating" in x.dtype.kind else op.cast(x, _core.float64)


def can_cast(from_, to, casting):
    if casting != "safe":
        raise _core.ArgumentValueError(f"can_cast: argument casting: found {casting!r}, expected 'safe'")
    from .._data_type_functions import can_cast

    return can_cast(from_, to)


def ordered(function, a, axis):
    """sort and argsort; complex numbers by their real parts, then by their imaginary parts."""
    x = _core.asarray(array(a))
    if x.dtype.kind != "complex floating":
        return function(x, axis)
    x, axis = (ravel(x), 0) if axis is None else (x, axis)
    order = lexsort((op.imag(x), op.real(x)), axis)
    return order if function.__name__ == "argsort" else op.take_along_axis(x, order, axis=axis)


def eigen(function, a):
    """eig and eigvals: real results where all eigenvalues of a real matrix are."""
    x = floats(a)
    found = function(x)
    values = found if isinstance(found, _core.Tensor) else found[0]
    if x.dtype.kind == "complex floating" or not _core.has_values(values) or bool(op.any(op.not_equal(op.imag(values), 0))):
        return found
    return op.real(found) if isinstance(found, _core.Tensor) else type(found)(*map(op.real, found))


def qr(a, mode):
    """Of mode 'r' the triangular factor alone."""
    return linalg.qr(floats(a), mode="reduced").R if mode == "r" else linalg.qr(floats(a), mode=mode)


def shares_memory(a, b):
    """Do two tensors see the same memory?"""
    return _core.shares_memory(_core.asarray(a), _core.asarray(b))


def matrix_rank(A, tol, hermitian, rtol):
    """How many singular values lie above tol, or above rtol times the largest."""
    if tol is None:
        return linalg.matrix_rank(floats(A), rtol=rtol) if rtol is not None else linalg.matrix_rank(floats(A))
    return op.sum(op.greater(linalg.svdvals(floats(A)), op.expand_dims(_core.asarray(tol), -1)), -1, dtype=_core.int64)


def pinv(a, rcond, hermitian, rtol):
    rtol = rcond if rtol is None else rtol
    return linalg.pinv(floats(a)) if rtol is None else linalg.pinv(floats(a), rtol=rtol)


def svd(a, full_matrices, compute_uv):
    return linalg.svd(floats(a), full_matrices=full_matrices) if compute_uv else linalg.svdvals(floats(a))


