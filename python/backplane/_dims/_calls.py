"""Calls of functions with named dimensions: elementwise ones broadcast, reductions name their axes, all others run under vmap."""

from __future__ import annotations

import inspect

from .. import _core, tree
from .._calls._ops import NAMESPACE, ops
from ._align import aligned, value_on
from ._product import product_of, summed
from ._tensor import Dim, DimTensor, is_among, listed, made, permuted, require_dim, union_of, without

__all__ = []

_ELEMENTWISE_FLAG = 1 << 4  # BP_OP_ELEMENTWISE of backplane/abi/op.h
_AXES = {"axis", "dim", "axes", "dims"}
_REDUCING = set(
    "all any argmax argmin count_nonzero logsumexp max mean min nanmax nanmean nanmin nanprod nanstd nansum nanvar prod ptp std sum var amax amin".split()
)
_KEEPING = set("softmax log_softmax cumulative_sum cumulative_prod cumsum cumprod sort argsort flip".split())
_elementwise = {}  # of the full name of an op: does it compute each element of broadcast operands alone?
_parameters = {}  # of a function, or its code: the names of its positional parameters


def call(function, args, kwargs):
    """function(*args, **kwargs), where at least one operand has named dimensions."""
    if kwargs.get("out") is not None:
        raise _core.ArgumentTypeError(f"{_name(function)}: argument out: found a tensor, expected none beside named dimensions; assign the result, y[i, j] = …")
    if isinstance(function, _core.Op):
        if function.__name__.endswith("_"):
            raise _core.ArgumentTypeError(f"{function.__name__}: a tensor with named dimensions cannot be changed in place. Fix: assign to its elements, y[i, j] = …")
        if function.full_name == "bp::multiply" and len(args) == 2 and not kwargs and (product := product_of(*args)) is not None:
            return product
        if _is_elementwise(function):
            return elementwise(function, args, kwargs)
        if function.__name__ in _REDUCING or function.__name__ in _KEEPING:
            found = _along(function, args, kwargs)
            if found is not NotImplemented:
                return found
    return batched(function, args, kwargs)


def asarray(x, dtype, device, copy):
    """bp.asarray of an operand with named dimensions, or of a list that has some."""
    if not isinstance(x, DimTensor):
        x = call(getattr(ops, NAMESPACE).stack, ([part if isinstance(part, (_core.Tensor, DimTensor)) else _core.asarray(part) for part in x],), {})
    if dtype is None and device is None and copy is None:
        return x
    return made(_core.asarray(x._value(), dtype=dtype, device=device, copy=copy), x.dims, x.is_free)


def elementwise(function, args, kwargs):
    words = [word for word, value in kwargs.items() if isinstance(value, (DimTensor, _core.Tensor))]
    arrays, dims = aligned([*args, *(kwargs[word] for word in words)])
    found = function(*arrays[: len(args)], **{**kwargs, **dict(zip(words, arrays[len(args) :]))})
    is_free = all(x.is_free if isinstance(x, DimTensor) else not isinstance(x, _core.Tensor) for x in [*args, *kwargs.values()])
    return tree.map(lambda x: made(x, dims, is_free), found)


def _is_elementwise(function):
    name = function.full_name
    if name not in _elementwise:
        _elementwise[name] = bool(_core.op_facts(function)["flags"] & _ELEMENTWISE_FLAG)
    return _elementwise[name]


def _name(function):
    return getattr(function, "__name__", "a function")


# ---- functions of axes --------------------------------------------------------------------------------------------------


def _along(function, args, kwargs):
    """A reduction of one tensor over axes that are given, or a function along one. NotImplemented: it is another call."""
    word = next((word for word in kwargs if word in _AXES), None)
    x, axis = args[0] if args else None, kwargs[word] if word else args[1] if len(args) > 1 else None
    others = [*args[1 if word else 2 :], *(value for key, value in kwargs.items() if key != word)]
    if not isinstance(x, DimTensor) or axis is None or any(isinstance(value, (DimTensor, _core.Tensor)) for value in others):
        return NotImplemented
    named, axes = _axes(function, axis, x)
    if not named and not isinstance(axis, (int, tuple, list)):
        return NotImplemented
    is_reducing = function.__name__ in _REDUCING
    if is_reducing and named and (kwargs.get("keepdims") or kwargs.get("keepdim")):
        raise _core.ArgumentValueError(f"{function.__name__}: argument keepdims: found True with a named dimension, which a reduction removes. Fix: order it first, x.order(i)")
    if function.__name__ in ("sum", "mean") and not others and len(named) == len(axes):
        found = summed(x, named, function.__name__ == "mean")
        if found is not None:
            return found
    array, count = x._value(), len(x.dims)
    places = [_place(a, x.dims, count) for a in axes]
    places = tuple(places) if isinstance(axis, (tuple, list)) else places[0]
    found = function(array, **{**kwargs, word: places}) if word else function(array, places, *args[2:], **kwargs)
    rest = without(x.dims, named) if is_reducing else x.dims
    return tree.map(lambda part: made(part, rest), found)


def _axes(function, axis, x):
    """(the Dims among the axes, all axes)."""
    axes = list(axis) if isinstance(axis, (tuple, list)) else [axis]
    named = [a for a in axes if isinstance(a, DimTensor)]
    for dim in named:
        require_dim(_name(function), dim, x)
    return named, axes


def _place(axis, dims, count):
    """An axis as a number of the tensor whose first axes are dims."""
    if isinstance(axis, Dim):
        return next(place for place, dim in enumerate(dims) if dim is axis)
    return axis + count if isinstance(axis, int) and axis >= 0 else axis


# ---- any function -------------------------------------------------------------------------------------------------------


def batched(function, args, kwargs):
    """The function under vmap over all dims, except for those that its axis arguments name: these become its last axes."""
    args, kwargs, named = _with_numbered_axes(function, args, kwargs)
    leaves, structure = tree.flatten((args, kwargs))
    places = [place for place, leaf in enumerate(leaves) if isinstance(leaf, DimTensor)]
    operands = [leaves[place] for place in places]
    for x in operands:
        own = [dim for dim in named if is_among(dim, x.dims)]
        if own and len(own) != len(named):
            raise _core.ShapeError(f"{_name(function)}: found a tensor with the dimensions {listed(x)}, expected all of ({', '.join(map(repr, named))})")
    dims = without(union_of(operands), named)
    device = next((x.device for x in leaves if isinstance(x, _core.Tensor) or (isinstance(x, DimTensor) and not x.is_free)), None)

    def run(*arrays):
        full = list(leaves)
        for place, array in zip(places, arrays):
            full[place] = array
        args, kwargs = tree.unflatten(structure, full)
        return function(*args, **kwargs)

    for dim in reversed(dims):
        run = _core.vmap(run, tuple(0 if is_among(dim, x.dims) else None for x in operands), 0, randomness="different")
    found = run(*(_prepared(x, dims, named, device) for x in operands))
    ndim = max((x.ndim for x in operands if named and is_among(named[0], x.dims)), default=0)
    return tree.map(lambda x: _named_again(function, x, dims, named, ndim) if isinstance(x, _core.Tensor) else x, found)


def _with_numbered_axes(function, args, kwargs):
    """The arguments with numbers instead of Dims where they name axes, and these Dims. They count from the end."""
    key = getattr(function, "__code__", function)  # one for all functions that a lambda makes
    if key not in _parameters:
        _parameters[key] = _positional_names(function)
    names = _parameters[key]
    given = {place: value for place, value in enumerate(args) if place < len(names) and names[place] in _AXES}
    given.update({word: value for word, value in kwargs.items() if word in _AXES})
    given = {place: value for place, value in given.items() if _names_dims(value)}
    named = []
    for value in given.values():
        named += without([a for a in (value if isinstance(value, (tuple, list)) else [value]) if isinstance(a, Dim)], named)

    def number(axis):
        if isinstance(axis, Dim):
            return next(place for place, dim in enumerate(named) if dim is axis) - len(named)
        return axis - len(named) if isinstance(axis, int) and axis < 0 else axis

    numbers = {place: type(value)(map(number, value)) if isinstance(value, (tuple, list)) else number(value) for place, value in given.items()}
    return (
        tuple(numbers.get(place, value) for place, value in enumerate(args)),
        {word: numbers.get(word, value) for word, value in kwargs.items()},
        named,
    )


def _positional_names(function):
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return []
    return [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]


def _names_dims(value):
    return isinstance(value, Dim) or isinstance(value, (tuple, list)) and any(isinstance(a, Dim) for a in value)


def _prepared(x, dims, named, device):
    """The tensor with the axes to batch first, in order, and those that the function works along last."""
    array = value_on(x, device)
    own = [dim for dim in dims if is_among(dim, x.dims)]
    last = [dim for dim in named if is_among(dim, x.dims)]
    array = permuted(array, x.dims, (*own, *last))
    if not last or not x.ndim:
        return array
    first = len(own)
    middle = range(first + len(last), array.ndim)
    return array.permute((*range(first), *middle, *range(first, first + len(last))))


def _named_again(function, array, dims, named, ndim):
    """A result: its axes that the function worked along have their names again, unless it reduced them."""
    if not named or array.ndim - len(dims) == ndim:
        return made(array, dims)
    last = tuple(array.shape[array.ndim - len(named) :])
    if array.ndim - len(dims) != ndim + len(named) or last != tuple(dim.size for dim in named):
        names = ", ".join(map(repr, named))
        raise _core.ShapeError(f"{_name(function)}: the result has another size along ({names}). Fix: x.order({names}) before the call")
    first = len(dims)
    array = array.permute((*range(first), *range(array.ndim - len(named), array.ndim), *range(first, array.ndim - len(named))))
    return made(array, (*dims, *named))
