"""What calls of backplane.compat.numpy mean where it takes statements: the list of names (python/spellings/numpy.txt) calls these functions.

They run under NumPy's default dtype, float64. The modules that are imported with * hold further ones, by theme.
"""

from __future__ import annotations

import math

from .. import _core, linalg
from .._api._creation_functions import empty_like
from .._api._numeric_functions import logaddexp2  # noqa: F401
from .._calls._ops import NAMESPACE, ops
from .._api._searching_functions import nonzero
from . import _numpy_random as random  # noqa: F401
from . import _numpy_stride_tricks as stride_tricks  # noqa: F401
from ._calls import given
from ._numpy_bits import *
from ._numpy_edits import *
from ._numpy_histograms import *
from ._numpy_poly1d import *
from ._numpy_polynomials import *
from ._numpy_shapes import *
from ._numpy_text import *
from ._numpy_types import *
from ._numpy_vectorize import *
from ._numpy_views import *
from ._ufuncs import Elementwise, Elementwise1, Elementwise2, numpys_operands, promoted  # noqa: F401

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
    """1 / x; of integers, and of bools as int8, without the fraction."""
    x = _core.asarray(x)
    x = op.cast(x, _core.int8) if x.dtype.kind == "bool" else x
    if x.dtype.kind not in ("signed integer", "unsigned integer"):
        return op.reciprocal(x)
    return op.where(op.logical_or(op.equal(x, 1), op.equal(x, -1)), x, op.zeros_like(x))


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
    x, y = numpys_operands("where", [x, y])
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
    """NumPy's rules, asked of NumPy; a Python number has no dtype here."""
    import numpy

    if isinstance(from_, (int, float, complex)) and not isinstance(from_, type):
        raise _core.ArgumentTypeError("can_cast: argument from_: found a number, expected a dtype or an array")
    source, target = (one.dtype if isinstance(one, _core.Tensor) else _core.as_dtype(one, "can_cast") for one in (from_, to))
    return numpy.can_cast(source.name, target.name, casting)


def lstsq(a, b, rcond):
    """NumPy's four results; the rank is an int32."""
    found = linalg.lstsq(floats(a), floats(b), rcond)
    return found[0], found[1], op.cast(found[2], _core.int32), found[3]


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




def tensorinv(a, ind):
    """The inverse of the linear map that tensordot(a, b, ind) is."""
    a = floats(a)
    if ind <= 0:
        raise _core.ArgumentValueError(f"tensorinv: argument ind: found {ind}, expected a number above 0")
    rows, columns = a.shape[:ind], a.shape[ind:]
    if math.prod(rows) != math.prod(columns):
        raise _core.ShapeError(f"tensorinv: argument a: found shape {tuple(a.shape)}, expected as many elements in the first {ind} axes as in the others")
    return op.reshape(linalg.inv(op.reshape(a, [math.prod(rows), -1])), [*columns, *rows])


def tensorsolve(a, b, axes):
    """x with tensordot(a, x, x.ndim) equal to b."""
    a, b = floats(a), floats(b)
    if axes is not None:
        axes = [axis % a.ndim for axis in axes]
        a = op.permute_dims(a, [axis for axis in range(a.ndim) if axis not in axes] + axes)
    shape = a.shape[b.ndim :]
    if a.shape[: b.ndim] != b.shape or math.prod(shape) != b.size:
        raise _core.ShapeError(f"tensorsolve: found a of shape {tuple(a.shape)} and b of {tuple(b.shape)}, expected b's shape first, then as many elements")
    return op.reshape(linalg.solve(op.reshape(a, [b.size, b.size]), op.reshape(b, [-1])), shape)


_REAL_DOMAINS = {"sqrt": (0, None), "log": (0, None), "log2": (0, None), "log10": (0, None), "arccos": (-1, 1), "arcsin": (-1, 1), "arctanh": (-1, 1)}


def widened(name, x):
    """emath: the function, of complex numbers where an element lies outside of its real domain."""
    x = _core.asarray(x)
    low, high = _REAL_DOMAINS[name]
    outside = x.dtype.kind != "complex floating" and (bool(op.any(op.less(x, low))) or (high is not None and bool(op.any(op.greater(x, high)))))
    return getattr(op, name)(op.cast(x, _core.complex64 if x.dtype is _core.float32 else _core.complex128) if outside else x)


def widened_power(x, p):
    """emath.power: complex where a negative number has a power that is not whole."""
    x, p = _core.asarray(x), _core.asarray(p)
    negative = x.dtype.kind != "complex floating" and bool(op.any(op.less(x, 0)))
    if negative:
        x = op.cast(x, _core.complex128)
    elif "integer" in p.dtype.kind and p.dtype.kind == "signed integer" and bool(op.any(op.less(p, 0))):
        p = op.cast(p, _core.float64)
    return op.pow(x, p)
