"""The checks of functions in Python that an argument is a tensor, as ops check theirs."""

from __future__ import annotations

from .. import _core
from .._api._data_type_functions import floating_type, result_type
from ._ops import is_helper
from .._runtime._wraps import wraps

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from .._core import Function

_WIDER = {"float32": _core.float64, "complex64": _core.complex128}
_WIDE = {dtype.name for dtype in _WIDER.values()}
_ASSIGNMENT = "x[index] = value"  # as errors of one begin
# Containers of a tensor that ops take by their other forms, and functions as they are: {type: (remedy for errors, einsum)}.
KEPT = {}
_ZEROS = {"bool": False, "real floating": 0.0, "complex floating": 0j}


def no_tensor(function, name, value):
    """The error that refuses another argument by name."""
    return _core.ArgumentTypeError(
        f"{function}: argument {name}: found {type(value).__name__}, expected a Tensor; {KEPT[type(value)][0] if type(value) in KEPT else 'use backplane.asarray'}"
    )


def require_tensor(function, name, value):
    """Refuses another argument by name, before the function would fail on an attribute that lists have not."""
    if not isinstance(value, _core.Tensor):
        raise no_tensor(function, name, value)


def require_real(function, name, x):
    """Refuses complex elements, whose imaginary parts a cast would drop."""
    if x.dtype.kind == "complex floating":
        raise _core.DtypeError(f"{function}: argument {name}: found {x.dtype.name}, expected real elements; take real(x), imag(x) or abs(x)")


def require_room(function, argument, count):
    """Raises if count is not a count, or if a vector of this length cannot fit into memory, before computing it."""
    try:
        _core.empty([count], _core.float64, _core.default_device())
    except _core.BackplaneError as error:
        raise type(error)(f"{function}: argument {argument}: found {count!r}, expected a size that memory has; {error}") from None


def known(x, otherwise):
    """The bool of a tensor of one element; otherwise, where a trace or a batch leaves it without one."""
    try:
        return bool(x)
    except _core.ArgumentValueError:
        return otherwise


def tensor_like(x, like):
    """x, or the number or sequence as a tensor of like's device and dtype, or the next of a kind that holds it."""
    if isinstance(x, _core.Tensor):
        return x
    try:
        number = _ZEROS.get(_core.asarray(x).dtype.kind, 0)
    except _core.ArgumentValueError:  # ints beyond int64
        number = 0
    return _core.asarray(x, dtype=result_type(like, number), device=like.device)


def given_tensor(function, name, value, beside=()):
    """The value, or the list, array or number as a tensor; refuses what is none of them by name.

    Floats, those of a list too, keep their digits where a tensor of the values `beside` holds them. It lies where the first of these does.
    """
    if isinstance(value, _core.Tensor) or type(value) in KEPT:
        return value
    beside = [v for v in beside if isinstance(v, _core.Tensor)]
    device = beside[0].device if beside else None
    try:
        made = _core.asarray(value, device=device)
        wide = isinstance(value, (list, tuple, float, complex)) and any(v.dtype.name in _WIDE for v in beside)
        return _core.asarray(value, dtype=_WIDER[made.dtype.name], device=device) if wide and made.dtype.name in _WIDER else made
    except (TypeError, ValueError, AttributeError):
        raise no_tensor(function, name, value) from None


def _further_tensors(function):
    """The names of the arguments after the first, and those that the annotations let be tensors, but for those whose sequences have a meaning of
    their own."""
    names = function.__code__.co_varnames[1 : function.__code__.co_argcount + function.__code__.co_kwonlyargcount]
    hints = {name: function.__annotations__.get(name, "").split(" | ") for name in names}
    return names, {name for name, parts in hints.items() if "Tensor" in parts and not any(part.startswith("Sequence") for part in parts)}


def _with_tensors(function, names, tensors, args, more):
    """The arguments with tensors for the lists and arrays that stand where tensors do, and for numbers that stand where a tensor must."""
    beside = [*args, *more.values()]

    def given(name, value):
        if name not in tensors or value is None or isinstance(value, _core.Tensor) or type(value).__name__ in function.__annotations__[name].split(" | "):
            return value
        return given_tensor(function.__name__, name, value, beside)

    return [args[0], *map(given, names, args[1:]), *args[1 + len(names) :]], {name: given(name, value) for name, value in more.items()}


def _is_word(text, name):
    words = "".join(c if c.isalnum() or c == "_" else " " for c in text)
    return name in words.split()


def name_function(error, function):
    """Puts the function before an error of a step of its own; an op that is none of users' is not named."""
    text = str(error)
    if _is_word(text, function) or not text:
        return
    step, colon, rest = text.partition(": ")
    is_own_step = colon and (step == _ASSIGNMENT or is_helper(step))
    error.args = (f"{function}: {rest if is_own_step else text}", *error.args[1:])


def names_errors(function: Function) -> Function:
    """An error of a step names the function."""

    @wraps(function)
    def named(*args, **more):
        try:
            return function(*args, **more)
        except _core.BackplaneError as error:
            name_function(error, function.__name__)
            raise

    return named


# What NumPy and PyTorch call the first operand of a function, and the second.
_FIRST = ("x", "a", "input", "arr", "ary", "array", "m", "v", "ar", "x1", "A", "a1", "elements", "element", "tup", "p", "arrays", "tensors")
_SECOND = ("y", "x2", "b", "B", "other", "a2", "v")


def _operand_words(function):
    """{word: the operand's own name}, of a function of x, or of x and y, whatever decorates it; and its own names."""
    while hasattr(function, "__wrapped__"):
        function = function.__wrapped__
    code = function.__code__
    own = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    words = {word: own[0] for word in _FIRST if word not in own}
    if len(own) > 1 and own[1] in ("x2", "y", "b"):
        words.update({word: own[1] for word in _SECOND if word not in own})
    return words, frozenset(own)


def _renamed(words, more):
    """A word whose operand is named otherwise too stays as it is, and is refused."""
    renamed = {}
    for word, value in more.items():
        own = words.get(word, word)
        renamed[word if own in renamed or (own != word and own in more) else own] = value
    return renamed


def takes_operands(function: Function, whole_numbers: bool = True) -> Function:
    """Takes NumPy's and PyTorch's names of its operands, x or x1 and x2, where it is called by name.

    whole_numbers: does it compute in them? Else they are computed in the dtype of the floats beside them, or in the default.
    """
    words, own = _operand_words(function)

    @wraps(function)
    def named(*args, **more):
        if not own.issuperset(more):
            more = _renamed(words, more)
        if not whole_numbers:
            args, more = _in_floats(args, more)
        return function(*args, **more)

    return named


def _in_floats(args, more):
    tensors = [value for value in (*args, *more.values()) if isinstance(value, _core.Tensor)]
    whole = [value for value in tensors if value.dtype.kind in ("bool", "signed integer", "unsigned integer")]
    if not whole:
        return args, more
    arrays = [_core.asarray(value) for value in (*args, *more.values()) if getattr(value, "ndim", 0) and not isinstance(value, _core.Tensor)]
    dtype = floating_type(*tensors, *arrays)

    def cast(value):
        return value.astype(dtype) if any(value is one for one in whole) else value

    return tuple(map(cast, args)), {word: cast(value) for word, value in more.items()}


def takes_tensor(function: Function) -> Function:
    """Takes lists, arrays and numbers for the first argument and further tensors, as ops do, the first by NumPy's and PyTorch's names too, and
    refuses by name what is none of them.

    An error of a step names the function.
    """
    name = next(iter(function.__code__.co_varnames))
    words, own = _operand_words(function)
    names, tensors = _further_tensors(function)

    @wraps(function)
    def checked(*args, **more):
        if not own.issuperset(more):
            more = _renamed(words, more)
        if not args and name in more:
            args = (more.pop(name),)
        if args and not isinstance(args[0], _core.Tensor):
            args = (given_tensor(function.__name__, name, args[0], args[1:]), *args[1:])
        if tensors and args:
            args, more = _with_tensors(function, names, tensors, args, more)
        try:
            return function(*args, **more)
        except _core.BackplaneError as error:
            name_function(error, function.__name__)
            raise

    return checked


def takes_requires_grad(function: Function) -> Function:
    """Takes PyTorch's requires_grad= of functions that make tensors."""

    @wraps(function)
    def made(*args, requires_grad=False, **more):
        tensor = function(*args, **more)
        return tensor.requires_grad_() if requires_grad else tensor

    return made


def takes_words(words: Sequence[tuple[str, str]]) -> Callable[[Function], Function]:
    """Takes PyTorch's words for arguments in place of the function's own ones: pairs of the two."""

    def decorated(function):
        @wraps(function)
        def named(*args, **more):
            for word, own in words:
                if word in more:
                    if own in more:
                        raise _core.ArgumentTypeError(f"{function.__name__}: found {word} and {own}, expected one of them")
                    more[own] = more.pop(word)
            return function(*args, **more)

        return named

    return decorated


def takes_dim(function: Function) -> Function:
    """Takes PyTorch's dim, dims and keepdim for axis, axes and keepdims, where they mean the same."""

    code = getattr(function, "__wrapped__", function).__code__
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    words = [(word, own) for word, own in (("dim", "axis"), ("dim", "axes"), ("dims", "axes"), ("keepdim", "keepdims")) if own in names]
    return takes_words(words)(function)
