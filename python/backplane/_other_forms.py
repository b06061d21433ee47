"""What calls of ops mean whose arguments their entries do not take: further spellings of NumPy and PyTorch, tensors for numbers.

An Op hands a call here once it has refused it; a form that returns NotImplemented leaves the call its error.
"""

from . import _core
from ._data_type_functions import result_type
from ._ops import NAMESPACE, ops
from ._searching_functions import nonzero

op = getattr(ops, NAMESPACE)

_MISSING = object()
_ALIASES = {"permute_dims": ("permute",)}
_WORDS = {"flip": {"dims": "axis"}, "permute_dims": {"dims": "axes"}, "roll": {"shifts": "shift", "dims": "axis"}, "tril": {"diagonal": "k"},
          "triu": {"diagonal": "k"}}  # fmt: skip


def _is_tensor(x):
    return isinstance(x, _core.Tensor)


def _names(text, name):
    """Whether the name stands in the text as a word."""
    words = "".join(c if c.isalnum() or c == "_" else " " for c in text)
    return name in words.split()


def _as_refused(name, form):
    """The form, which leaves arguments that it takes as little as the op to the op's error; errors of its steps name the op."""

    def answered(*args, **more):
        try:
            return form(*args, **more)
        except _core.BackplaneError as error:
            if not _names(str(error), name):
                error.args = (f"{name}: {error}", *error.args[1:])
            raise
        except TypeError:  # Python's own, of the form's parameters
            return NotImplemented

    return answered


def _full(shape, fill_value, dtype=None, *, device=None):
    if not _is_tensor(fill_value):
        return NotImplemented
    return op.copy(op.broadcast_to(_core.asarray(fill_value, dtype=dtype, device=device), shape))


def _full_like(x, fill_value, dtype=None, *, device=None):
    if not (_is_tensor(x) and _is_tensor(fill_value)):
        return NotImplemented
    return _full(x.shape, fill_value, x.dtype if dtype is None else dtype, device=x.device if device is None else device)


def _linspace(start, stop, num, dtype=None, *, device=None, endpoint=True):
    ends = [x for x in (start, stop) if _is_tensor(x)]
    if not ends:
        return NotImplemented
    device = ends[0].device if device is None else device
    start, stop = (x if _is_tensor(x) else op.full([], x, device=device) for x in (start, stop))
    dtype = result_type(start, stop, 0.0) if dtype is None else dtype
    share = op.divide(op.iota(num, dtype=_core.float64, device=device), max(num - 1 if endpoint else num, 1))
    share = op.reshape(share, [num] + [1] * max(start.ndim, stop.ndim))
    last = op.equal(share, 1)
    share = op.cast(share, result_type(start, stop, 0.0))
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
            "arange: found a tensor that requires a gradient, which is lost where a bound is read as a number; use x.detach() where it "
            "shall be a constant; linspace keeps the gradients of its ends"
        )
    return plain.item()


def _created(name, of_tensors):
    """requires_grad= of PyTorch's creation functions, and tensors for numbers."""

    def form(*args, requires_grad=_MISSING, **more):
        if requires_grad is _MISSING:
            return of_tensors(*args, **more) if of_tensors else NotImplemented
        return getattr(op, name)(*args, **more).requires_grad_(requires_grad)

    return form


def _spread(name):
    def form(*args, ddof=_MISSING, **more):
        if ddof is _MISSING:
            return NotImplemented
        if "correction" in more:
            raise _core.ArgumentTypeError(f"{name}: found ddof and correction, expected one of them")
        return getattr(op, name)(*args, correction=ddof, **more)

    return form


def _running(name):
    def form(x, **more):
        """Without an axis x is flattened, as NumPy has it."""
        if "axis" in more or "dim" in more:
            return NotImplemented
        return getattr(op, name)(op.reshape(x, [-1]), axis=0, **more)

    return form


def _renamed(name, words):
    """PyTorch's words for arguments."""

    def form(*args, **more):
        if not more.keys() & words.keys():
            return NotImplemented
        return getattr(op, name)(*args, **{words.get(word, word): value for word, value in more.items()})

    return form


def _tile(x, *repetitions):
    return op.tile(x, repetitions) if len(repetitions) > 1 else NotImplemented


def _where(*args):
    return nonzero(_core.asarray(args[0])) if len(args) == 1 else NotImplemented


def _mean(*args, dtype=_MISSING, **more):
    if dtype is _MISSING or not args:
        return NotImplemented
    x = args[0] if dtype is None or not _is_tensor(args[0]) else op.cast(args[0], dtype)
    return op.mean(x, *args[1:], **more)


def add_forms():
    of_tensors = {"arange": _arange, "full": _full, "full_like": _full_like, "linspace": _linspace}
    creations = ("arange", "eye", "full", "full_like", "linspace", "ones", "ones_like", "zeros", "zeros_like")
    forms = {
        **{name: _created(name, of_tensors.get(name)) for name in creations},
        **{name: _spread(name) for name in ("std", "var")},
        **{name: _running(name) for name in ("cumprod", "cumsum")},
        **{name: _renamed(name, words) for name, words in _WORDS.items()},
        "mean": _mean,
        "tile": _tile,
        "where": _where,
    }
    for name, form in forms.items():
        form.__name__ = form.__qualname__ = name
        for word in (name, *_ALIASES.get(name, ())):
            _core.set_other_form(f"{NAMESPACE}::{name}", word, _as_refused(name, form))
