"""x[i, j], x[indices, k] and x[i, j] = values: keys with Dims, tuples of Dims, and index tensors that have dims."""

from __future__ import annotations

import math

from .. import _core
from .._calls._ops import NAMESPACE, ops
from ._align import aligned
from ._tensor import Dim, DimTensor, check_size, is_among, listed, made, union_of, without

__all__ = []

op = getattr(ops, NAMESPACE)


def get_item(x, key):
    """x[key] for a tensor x and a key with named dimensions."""
    if type(key) is Dim:
        key = (key,)
    if _names_all(x, key):
        return DimTensor(x, key)
    view, entries = _viewed(x, key)
    view, entries = _split(view, entries)
    _bind(view, entries)
    if not _arrays(entries):
        return _by_names(view, entries)
    view, indices, dims, rest, middle = _gathering(view, entries)
    found = view[indices]
    return _arranged(found, dims, rest, middle, indices)


def _names_all(x, key):
    """Is the key a different Dim for each axis? If so, the Dims get the sizes of the axes."""
    shape = x.shape
    if type(key) is not tuple or len(key) != len(shape):
        return False
    for place, dim in enumerate(key):
        if type(dim) is not Dim or (place and is_among(dim, key[:place])):
            return False
    for dim, size in zip(key, shape):
        if dim._size != size:
            check_size(dim, size)
    for dim, size in zip(key, shape):
        dim._size = size
    return True


def set_item(x, key, value):
    """x[key] = value, where the key or the value has named dimensions."""
    view, entries = _viewed(x, key)
    if any(isinstance(entry, tuple) for entry in entries):
        raise _core.ArgumentTypeError("setitem: found a tuple of dimensions in the index; assign to a reshaped view")
    _bind(view, entries)
    if not _arrays(entries):
        dims = [entry for entry in entries if isinstance(entry, Dim)]
        target = op.permute_dims(view, [*(i for i, e in enumerate(entries) if e is not None), *(i for i, e in enumerate(entries) if e is None)]) if entries else view
        target[...] = _assigned(value, dims, target.ndim - len(dims), view.device)
        return
    target, indices, dims, rest, middle = _gathering(view, entries)
    if middle is not None and rest.positional[:middle]:
        raise _core.ArgumentTypeError("setitem: found an index tensor behind a positional axis, expected it before")
    shape = (*dims, *rest.dims)
    own = _own_axes(indices, dims)
    ndim = target.ndim - len(indices) - len(rest.dims) + own
    assigned = _assigned(value, shape, ndim, view.device)
    if isinstance(assigned, _core.Tensor) and rest.dims and own:
        raise _core.ArgumentTypeError("setitem: found an index tensor with positional axes beside dimensions; give it dimensions")
    target[indices] = assigned


def _assigned(value, dims, ndim, device):
    """The value with the axes of the target; its first axes are dims."""
    if not isinstance(value, DimTensor):
        return value
    if extra := without(value.dims, dims):
        raise _core.ShapeError(f"setitem: found a value with the dimension {extra[0]}, expected those of the index, ({', '.join(map(repr, dims))})")
    (array, _), _ = aligned([value, op.zeros([1] * ndim, dtype=value.dtype, device=device)], tuple(dims))
    return array


# ---- the key --------------------------------------------------------------------------------------------------------------


def _viewed(x, key):
    """(the view after the ints, slices and None of the key; per axis what names or indexes it: None, a Dim, a tuple of Dims, or a tensor)."""
    key = list(key) if isinstance(key, tuple) else [key]
    count = sum(part is not None and part is not Ellipsis for part in key)
    if count > x.ndim:
        raise _core.OutOfRangeError(f"index: found {count} indices, expected at most {x.ndim}, one for each axis")
    dots = [place for place, part in enumerate(key) if part is Ellipsis]
    if len(dots) > 1:
        raise _core.ArgumentValueError("index: found several '...', expected one")
    place = dots[0] if dots else len(key)
    key[place : place + 1] = [slice(None)] * (x.ndim - count)
    basic, entries = [], []
    for part in key:
        entry = _entry(part)
        basic.append(slice(None) if entry is not None else part)
        if entry is not None:
            entries.append(entry)
        elif not hasattr(part, "__index__"):
            entries.append(None)
    return x if all(isinstance(part, slice) and part == slice(None) for part in basic) else x[tuple(basic)], entries


def _entry(part):
    """What the part of a key does with its axis beyond a slice: None for an int, a slice or None."""
    if part is None or isinstance(part, (slice, int)) and not isinstance(part, bool):
        return None
    if isinstance(part, tuple) and part and all(isinstance(dim, Dim) for dim in part):
        return part
    if not isinstance(part, (DimTensor, _core.Tensor)):
        part = _core.asarray(part)
    if isinstance(part, Dim):
        return part
    if part.dtype.kind not in ("signed integer", "unsigned integer"):
        raise _core.DtypeError(f"index: found a tensor of dtype {part.dtype.name} beside dimensions, expected integers. Fix: use where, or order the dimensions first")
    return part


def _split(view, entries):
    """Tuples of Dims split their axis; at most one Dim of a tuple may have no size yet."""
    if not any(isinstance(entry, tuple) for entry in entries):
        return view, entries
    shape, found = [], []
    for size, entry in zip(view.shape, entries):
        if not isinstance(entry, tuple):
            shape.append(size)
            found.append(entry)
            continue
        unknown = [dim for dim in entry if not dim.is_bound]
        known = math.prod(dim.size for dim in entry if dim.is_bound)
        if len(unknown) > 1:
            raise _core.ShapeError(f"index: found {unknown[0]} and {unknown[1]} without sizes in one tuple, expected at most one. Fix: {unknown[0]}.size = n")
        if unknown and known and size % known == 0:
            unknown[0].size = size // known
        elif unknown or known != size:
            raise _core.ShapeError(f"index: found an axis of size {size}, which ({', '.join(map(repr, entry))}) with sizes of product {known} do not split")
        shape += [dim.size for dim in entry]
        found += entry
    return op.reshape(view, tuple(shape)), found


def _bind(view, entries):
    pairs = [(dim, size) for dim, size in zip(entries, view.shape) if isinstance(dim, Dim)]
    sizes = {}
    for dim, size in pairs:
        if sizes.setdefault(id(dim), size) != size:
            raise _core.ShapeError(f"index: {dim} names axes of the sizes {sizes[id(dim)]} and {size}, expected one size")
        check_size(dim, size)
    for dim, size in pairs:
        dim.size = size


def _arrays(entries):
    """Are there index tensors, or is a Dim there twice, which takes a diagonal?"""
    dims = [entry for entry in entries if isinstance(entry, Dim)]
    return len(dims) != sum(entry is not None for entry in entries) or any(is_among(dim, dims[:place]) for place, dim in enumerate(dims))


def _by_names(view, entries):
    named = [place for place, entry in enumerate(entries) if entry is not None]
    order = [*named, *(place for place, entry in enumerate(entries) if entry is None)]
    array = view if order == list(range(len(order))) else op.permute_dims(view, order)
    return made(array, tuple(entries[place] for place in named))


# ---- index tensors ----------------------------------------------------------------------------------------------------------


class _Rest:
    """The axes that no index tensor takes: their dims, and the places of the positional ones."""

    def __init__(self, entries, indexed):
        self.dims = tuple(entry for place, entry in enumerate(entries) if isinstance(entry, Dim) and place not in indexed)
        self.positional = [place for place, entry in enumerate(entries) if entry is None]


def _gathering(view, entries):
    """(the view with the indexed axes first and dims next, the aligned index tensors, their dims, the rest, where their positional axes go)."""
    tensors = [entry for entry in entries if isinstance(entry, (DimTensor, _core.Tensor)) and not isinstance(entry, Dim)]
    names = [entry for entry in entries if isinstance(entry, Dim)]
    twice = [dim for place, dim in enumerate(names) if is_among(dim, names[:place])]
    dims = union_of([x for x in tensors if isinstance(x, DimTensor)])
    dims = (*dims, *without(twice, dims))
    indexed = [p for p, e in enumerate(entries) if isinstance(e, (DimTensor, _core.Tensor)) and (not isinstance(e, Dim) or is_among(e, dims))]
    rest = _Rest(entries, indexed)
    with_axes = [p for p in indexed if entries[p].ndim]
    if with_axes and with_axes[-1] - with_axes[0] >= len(with_axes):
        raise _core.ArgumentTypeError("index: found index tensors on both sides of an axis beside dimensions, expected them side by side")
    middle = sum(place < with_axes[0] for place in rest.positional) if with_axes else None
    on_device = [DimTensor(entries[p]._value().to_device(view.device), entries[p].dims) if isinstance(entries[p], DimTensor) else entries[p].to_device(view.device) for p in indexed]
    indices, _ = aligned(on_device, dims)
    named = [p for p, e in enumerate(entries) if isinstance(e, Dim) and p not in indexed]
    return op.permute_dims(view, [*indexed, *named, *rest.positional]), tuple(indices), dims, rest, middle


def _own_axes(indices, dims):
    """The number of positional axes of index tensors."""
    return max(x.ndim for x in indices) - len(dims)


def _arranged(found, dims, rest, middle, indices):
    """The result of a gather, with all dims first and the positional axes of the index tensors at their place."""
    count, own = len(dims), _own_axes(indices, dims)
    named, positional = len(rest.dims), len(rest.positional)
    if own:
        start = count + own
        places = [*range(count), *range(start, start + named)]
        after = list(range(start + named, start + named + positional))
        found = op.permute_dims(found, [*places, *after[:middle], *range(count, start), *after[middle:]])
    return made(found, (*dims, *rest.dims))


def get_of_named(x, key):
    """x[key] for a tensor with dims: the key is of its positional axes."""
    key = key if isinstance(key, tuple) else (key,)
    if sum(part is not None and part is not Ellipsis for part in key) > x.ndim:
        raise _core.OutOfRangeError(f"index: found {len(key)} indices, expected at most {x.ndim}: the tensor has {x.ndim} positional axes beside {listed(x)}")
    return get_item(x._value(), (*x.dims, *key))
