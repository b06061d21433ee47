"""NumPy's functions that change an array: put, place, copyto and their kin, and two that read one by positions."""

from __future__ import annotations

from .. import _core
from .._api._manipulation_functions import ravel
from .._calls._ops import NAMESPACE, ops
from .._api._searching_functions import true_places

op = getattr(ops, NAMESPACE)

__all__ = ["choose", "copyto", "fill_diagonal", "place", "put", "put_along_axis", "putmask", "resize"]


def _changed(function, x):
    if not isinstance(x, _core.Tensor):
        raise _core.ArgumentTypeError(f"{function}: found {type(x).__name__}, expected a Tensor, which the call changes")
    return x


def _repeated(values, dtype, count):
    """As many values, which are repeated as often as it takes, in the dtype."""
    values = ravel(_core.asarray(values, dtype=dtype))
    if values.size == 0:
        raise _core.ArgumentValueError("found no values to put, expected at least one")
    return op.take(values, op.remainder(op.iota(count), values.size), axis=0)


def put_along_axis(arr, indices, values, axis):
    """Writes values at the positions along axis into arr; without an axis arr is taken for a vector."""
    _changed("put_along_axis", arr)
    if axis is None:
        arr[...] = op.reshape(op.put_along_axis(ravel(arr), indices, _core.asarray(values, dtype=arr.dtype), axis=0), arr.shape)
    else:
        indices = _core.asarray(indices)
        arr[...] = op.put_along_axis(arr, indices, op.broadcast_to(_core.asarray(values, dtype=arr.dtype), indices.shape), axis=axis)


def put(a, ind, v, mode):
    """Writes values at positions of a taken for a vector."""
    _changed("put", a)
    places = ravel(_core.asarray(ind))
    if mode not in ("raise", "wrap", "clip"):
        raise _core.ArgumentValueError(f"put: argument mode: found {mode!r}, expected 'raise', 'wrap' or 'clip'")
    if mode != "raise":
        places = op.remainder(places, a.size) if mode == "wrap" else op.clip(places, 0, a.size - 1)
    if places.size:
        flat = op.copy(ravel(a))
        flat[places] = _repeated(v, a.dtype, places.size)
        a[...] = op.reshape(flat, a.shape)


def place(arr, mask, vals):
    """Writes values, one after the other, where the mask is true."""
    put(_changed("place", arr), true_places(ravel(_core.asarray(mask, dtype=_core.bool))), vals, "raise")


def putmask(a, mask, values):
    """Writes values, repeated to a's size, where the mask is true."""
    _changed("putmask", a)
    values = _core.asarray(values, dtype=a.dtype)
    values = values if values.shape == a.shape else op.reshape(_repeated(values, a.dtype, a.size), a.shape)
    a[...] = op.where(_core.asarray(mask, dtype=_core.bool), values, a)


def copyto(dst, src, where):
    """Writes src, broadcast, into dst where the condition holds."""
    _changed("copyto", dst)
    dst[...] = src if where is True else op.where(_core.asarray(where), _core.asarray(src, dtype=dst.dtype), dst)


def fill_diagonal(a, val, wrap):
    """Writes val to the diagonal of a."""
    if _changed("fill_diagonal", a).ndim < 2:
        raise _core.ShapeError(f"fill_diagonal: argument a: found {a.ndim} dimensions, expected at least 2")
    if a.ndim > 2 and len(set(a.shape)) != 1:
        raise _core.ShapeError(f"fill_diagonal: argument a: found shape {tuple(a.shape)}, expected axes of one size")
    if a.ndim == 2:
        stop = a.size if wrap or a.shape[0] <= a.shape[1] else a.shape[1] * a.shape[1]
        step = a.shape[1] + 1
    else:
        stop, step = a.size, 1 + sum(a.shape[0] ** power for power in range(1, a.ndim))
    put(a, list(range(0, stop, step)), val, "raise")


def choose(a, choices, mode):
    """Of each position the element of the choice that a names there."""
    a = _core.asarray(a)
    stacked = [_core.asarray(one) for one in choices]
    from .._api._manipulation_functions import broadcast_arrays

    a, *stacked = broadcast_arrays(a, *stacked)
    if mode == "wrap":
        a = op.remainder(a, len(stacked))
    elif mode == "clip":
        a = op.clip(a, 0, len(stacked) - 1)
    elif a.size and not 0 <= int(op.min(a)) <= int(op.max(a)) < len(stacked):
        raise _core.ArgumentValueError(f"choose: argument a: found a number outside 0 to {len(stacked) - 1}, the positions of the choices")
    return op.take_along_axis(op.stack(stacked), op.expand_dims(a, 0), axis=0)[0]


def resize(a, new_shape):
    """The elements of a, repeated as often as it takes, at another shape."""
    a = ravel(_core.asarray(a))
    shape = (new_shape,) if hasattr(new_shape, "__index__") else tuple(new_shape)
    count = 1
    for size in shape:
        count *= size
    return op.reshape(_repeated(a, a.dtype, count), shape) if a.size else op.full(shape, 0, dtype=a.dtype)
