"""Parameter and Buffer, what makes a tensor of a module one of them, and the tensors that took the place of others."""

import weakref

import backplane as bp
from backplane import DType, Device, Tensor

from .. import _core

__all__ = ["Buffer", "Parameter"]

_frozen = {}  # id -> weak reference: parameters that were made without a gradient
_successors = {}  # id -> (weak reference to the old tensor, the new one)


class _ParameterType(type):
    def __instancecheck__(cls, x):
        return isinstance(x, Tensor) and (is_frozen(x) or (x.requires_grad and x.is_leaf))


class Parameter(metaclass=_ParameterType):
    """A tensor that a module trains: a leaf that requires a gradient.

    data: a tensor or an array of floating or complex dtype. A tensor that is a leaf without a gradient shares its memory.
    requires_grad: False for a parameter that is frozen.
    Returns a Tensor. `isinstance(x, Parameter)` is True for leaves that require a gradient.
    Errors: DtypeError for integers and bools that require a gradient.
    """

    def __new__(cls, data=None, requires_grad: bool = True) -> Tensor:
        x = bp.empty((0,)) if data is None else data if isinstance(data, Tensor) else bp.asarray(data)
        x = x.detach()
        if requires_grad:
            if "floating" not in x.dtype.kind:
                raise bp.DtypeError(f"Parameter: argument data: found {x.dtype.name}, expected a floating or complex dtype")
            return x.requires_grad_()
        _frozen[id(x)] = weakref.ref(x, lambda _, key=id(x): _frozen.pop(key, None))
        return x


class Buffer:
    """A tensor that belongs to a module and is not trained. persistent: whether state_dict contains it."""

    def __init__(self, data, *, persistent: bool = True):
        self.tensor = data if isinstance(data, Tensor) or data is None else bp.asarray(data)
        self.persistent = persistent


def is_frozen(x):
    """Was the tensor made by Parameter(…, requires_grad=False)?"""
    reference = _frozen.get(id(x))
    return reference is not None and reference() is x


def is_plain(x):
    """Does the tensor have values of its own, outside of traces and transforms?"""
    return _core.has_values(x) and not _core.transforms_of(x)


def without_tape(x):
    """A leaf without its history; in a trace, which has no tape, x itself, since a detached tensor would be another one."""
    return x.detach() if is_plain(x) and x.requires_grad and x.is_leaf else x


def outside(value, beside):
    """A value as it is outside of the innermost transform, in which a buffer was computed; beside: what stood there."""
    if not isinstance(value, Tensor) or not isinstance(beside, Tensor) or not _core.transforms_of(value):
        return value
    return _core.value_beside(value, beside, "a buffer of a module").detach()


def replace(old, new):
    """Notes that `new` stands where `old` stood, for those who hold the old tensor."""
    key = id(old)
    _successors[key] = (weakref.ref(old, lambda _: _successors.pop(key, None)), new)


def latest(x):
    """The tensor that took the place of x in its module, or x."""
    while (entry := _successors.get(id(x))) is not None and entry[0]() is x:
        x = entry[1]
    return x


def moved(x, dtype: DType | None, device: Device | None):
    """x in this dtype and on this device: x itself where it is so already, else a leaf of the same kind."""
    dtype = x.dtype if dtype is None or "floating" not in x.dtype.kind else dtype
    if dtype.kind == "real floating" and x.dtype.kind == "complex floating":
        dtype = x.dtype
    if x.dtype == dtype and (device is None or x.device == device):
        return x
    with bp.no_grad():
        new = x.detach().astype(dtype)
        new = new if device is None else new.to(device)
    if x.requires_grad:
        new.requires_grad_()
    elif is_frozen(x):
        new = Parameter(new, requires_grad=False)
    replace(x, new)
    return new
