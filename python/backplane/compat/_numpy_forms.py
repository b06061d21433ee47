"""What calls of backplane.compat.numpy mean where it takes statements: the list of names (python/spellings/numpy.txt) calls these functions.

They run under NumPy's default dtype, float64. The modules that are imported with * hold further ones, by theme.
"""

from __future__ import annotations

import math

from .. import _core, linalg
from .._api._creation_functions import empty_like
from .._calls._ops import NAMESPACE, ops
from .._api._searching_functions import nonzero
from .._api._statistical_functions import histogram as histogram_of
from . import _numpy_random as random  # noqa: F401
from ._calls import given
from ._numpy_edits import *
from ._numpy_polynomials import *
from ._numpy_shapes import *
from ._numpy_types import *

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


def floats(a):
    """The matrix in a floating dtype."""
    x = _core.asarray(array(a))
    return x if "floating" in x.dtype.kind else op.cast(x, _core.float64)


def can_cast(from_, to, casting):
    if casting != "safe":
        raise _core.ArgumentValueError(f"can_cast: argument casting: found {casting!r}, expected 'safe'")
    from .._api._data_type_functions import can_cast

    return can_cast(from_, to)


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


