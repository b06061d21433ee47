"""Forms of creation ops that their entries do not take: tensors for numbers, further words and places of NumPy's and PyTorch's arguments."""

import math

from .. import _core
from .._api._data_type_functions import result_type
from ._ops import NAMESPACE, ops

op = getattr(ops, NAMESPACE)

_MISSING = object()
_POINTS = 50  # of linspace where no number is named, as in NumPy
_DTYPE_PLACES = {"arange": 3, "eye": 3, "ones": 1, "zeros": 1}  # NumPy's


def _is_tensor(x):
    return isinstance(x, _core.Tensor)


def _full(shape, fill_value, dtype=None, *, device=None):
    if not (_is_tensor(fill_value) or isinstance(fill_value, (list, tuple))):
        return NotImplemented
    return op.copy(op.broadcast_to(_core.asarray(fill_value, dtype=dtype, device=device), shape))


def _full_like(x, fill_value, dtype=None, *, device=None):
    if not _is_tensor(x):
        return NotImplemented
    return _full(x.shape, fill_value, x.dtype if dtype is None else dtype, device=x.device if device is None else device)


def _linspace(start, stop, num=_MISSING, *places, steps=_MISSING, dtype=None, device=None, endpoint=True, retstep=_MISSING):
    """Of tensors, of PyTorch's steps, of NumPy's 50 points where no number is named, with NumPy's step, and in its places."""
    if places:
        named = dict(zip(("endpoint", "retstep", "dtype"), places))
        return op.linspace(start, stop, num, device=device, **named) if isinstance(places[0], bool) else NotImplemented
    ends = [x for x in (start, stop) if _is_tensor(x)]
    if not ends and num is not _MISSING and retstep is _MISSING:
        return NotImplemented
    num = (_POINTS if steps is _MISSING else steps) if num is _MISSING else num
    if not ends or retstep is not _MISSING:
        values = op.linspace(start, stop, num, dtype=dtype, device=device, endpoint=endpoint)
        parts = num - 1 if endpoint else num
        return (values, (stop - start) / parts if parts > 0 else math.nan) if retstep is True else values
    device = ends[0].device if device is None else device
    wished = None if dtype is None else _core.as_dtype(dtype, "linspace")
    floats = result_type(*ends, 0.0)
    floats = result_type(floats, wished) if wished and "floating" in wished.kind else floats
    start, stop = (op.cast(x, floats) if _is_tensor(x) else op.full([], x, dtype=result_type(floats, 0j) if isinstance(x, complex) else floats, device=device)
                   for x in (start, stop))  # fmt: skip
    dtype = result_type(start, stop) if dtype is None else dtype
    share = op.divide(op.iota(num, dtype=_core.float64, device=device), max(num - 1 if endpoint else num, 1))
    share = op.reshape(share, [num] + [1] * max(start.ndim, stop.ndim))
    last = op.equal(share, 1)
    share = op.cast(share, result_type(start, stop))
    values = op.add(op.multiply(op.subtract(1, share), start), op.multiply(share, stop))
    return op.cast(op.where(last, stop, values) if endpoint and num > 1 else values, dtype)


def _arange(*args, **more):
    """Tensors are read, since the size of the result depends on them; none whose derivative would be lost in silence."""
    if not any(map(_is_tensor, (*args, *more.values()))):
        return NotImplemented
    return op.arange(*(_bound(x) for x in args), **{name: _bound(x) for name, x in more.items()})


def _bound(x):
    if not _is_tensor(x):
        return x
    try:
        plain = _core.readable(x, "arange")
    except _core.ArgumentValueError as error:
        raise type(error)(f"{error}; linspace keeps the derivatives of its ends") from None
    if x.requires_grad and _core.grad_enabled():
        raise _core.ArgumentValueError(
            "arange: found a bound that requires a gradient, which arange would lose, because it reads the bound as a number. Fix: x.detach() if it "
            "is a constant; linspace keeps the gradients of its ends"
        )
    return plain.item()


def _is_dtype(x):
    try:
        return isinstance(x, str) or bool(_core.as_dtype(x, "dtype"))
    except _core.BackplaneError:
        return False


def _with_dtype_by_name(name, args, named):
    """NumPy's positional dtype among the named arguments; of zeros(shape, dtype) the arguments came as the sizes of one shape."""
    place = _DTYPE_PLACES.get(name)
    found = args[0] if place == 1 and len(args) == 1 and isinstance(args[0], tuple) else args
    if place is None or len(found) != place + 1 or "dtype" in named or not _is_dtype(found[place]):
        return args, named
    return found[:place], {**named, "dtype": found[place]}


def _created(name, of_tensors):
    """requires_grad= and other words and places of NumPy's and PyTorch's creation functions, and tensors for numbers."""
    def form(*given, requires_grad=_MISSING, **more):
        args, named = _with_dtype_by_name(name, given, more)
        if name.endswith("_like") and "shape" in named and args and _is_tensor(args[0]):
            args = (_core.empty(named.pop("shape"), args[0].dtype, args[0].device), *args[1:])
        if requires_grad is not _MISSING:
            found = getattr(op, name)(*args, **named)
            return found.requires_grad_() if requires_grad else found
        if args is not given or named.keys() != more.keys():
            return getattr(op, name)(*args, **named)
        return of_tensors(*args, **more) if of_tensors else NotImplemented

    return form


def creation_forms():
    """By the op's name."""
    of_tensors = {"arange": _arange, "full": _full, "full_like": _full_like, "linspace": _linspace}
    names = ("arange", "eye", "full", "full_like", "linspace", "ones", "ones_like", "zeros", "zeros_like")
    return {name: _created(name, of_tensors.get(name)) for name in names}
