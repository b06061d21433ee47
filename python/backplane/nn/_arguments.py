"""What functions of this package do with arguments that PyTorch takes in several forms."""

import functools
import inspect
import sys
import warnings

from .. import ArgumentTypeError, ArgumentValueError, BackplaneError, Tensor
from .._calls._tensor_argument import given_tensor, name_function, no_tensor

_ABSENT = object()


def either(function, first, second, values, default=_ABSENT):
    """The one that is given of an argument with two names, as `dim` and `axis`; values: (dim, axis), None where not given."""
    found = [value for value in values if value is not None]
    if len(found) == 2:
        raise ArgumentTypeError(f"{function}: found both {first} and {second}, expected one of them: they are the same argument")
    if not found and default is _ABSENT:
        raise ArgumentTypeError(f"{function}: argument {first}: missing, expected {first} or {second}")
    return found[0] if found else default


def warn(text):
    """A UserWarning at the line that called the package."""
    frame, level = sys._getframe(), 1
    while frame.f_back and frame.f_globals.get("__name__", "").startswith("backplane."):
        frame, level = frame.f_back, level + 1
    warnings.warn(text, stacklevel=level)


def sizes(function, argument, value, count):
    """`count` integers, from an integer for all axes or a sequence with one for each."""
    if hasattr(value, "__index__"):
        return [value.__index__()] * count
    found = list(value) if hasattr(value, "__iter__") and not isinstance(value, str) else [value]
    if not all(hasattr(item, "__index__") for item in found):
        raise ArgumentTypeError(f"{function}: argument {argument}: found {value!r}, expected an integer or {count} of them")
    if len(found) == 1:
        found = found * count
    if len(found) != count:
        raise ArgumentValueError(f"{function}: argument {argument}: found {len(found)} integers, expected 1 or {count}")
    return [item.__index__() for item in found]


TENSORS = frozenset(
    "input weight bias target other query key value attn_mask running_mean running_var input1 input2 x1 x2 indices pos_weight "
    "log_probs targets offsets per_sample_weights var grid logits tensor x cos sin anchor positive negative w_ih w_hh b_ih b_hh theta".split()
)
WRITTEN = frozenset({"running_mean", "running_var"})  # in place, of which a list would not know


def names_tensors(function):
    """The function; where it fails over lists or arrays for tensors, it is called with tensors of them. An error names the function, and the
    argument that should be a tensor and is none."""
    names = inspect.signature(function).parameters
    tensors = TENSORS - {"value"} if "pad" in names else TENSORS

    def with_tensors(args, more):
        """The arguments by name, with tensors of what is none; None where all are tensors already."""
        given = {**dict(zip(names, args)), **more}
        missing = [name for name, value in given.items() if name in tensors and not isinstance(value, Tensor) and not hasattr(type(value), "named_dims")]
        missing = [name for name in missing if given[name] is not None or names[name].default is not None]
        for name in missing:
            if name in WRITTEN or not (isinstance(given[name], (list, tuple)) or hasattr(given[name], "__array__")):
                raise no_tensor(function.__name__, name, given[name])
        return {**given, **{name: given_tensor(function.__name__, name, given[name], given.values()) for name in missing}} if missing else None

    @functools.wraps(function)
    def named(*args, **more):
        try:
            return function(*args, **more)
        except (AttributeError, TypeError) as error:
            given = with_tensors(args, more) if more.keys() <= names.keys() and len(args) <= len(names) else None
            if given is None:
                if isinstance(error, BackplaneError):
                    name_function(error, function.__name__)
                raise
        except BackplaneError as error:
            name_function(error, function.__name__)
            raise
        return named(**given)

    return named
