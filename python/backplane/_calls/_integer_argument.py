"""The check of functions in Python that an argument is an int or a sequence of ints, as ops check theirs."""

from .. import _core


def given_ints(function, argument, value):
    """The ints of a sequence, an array or a tensor of ints, or of one int, as a list; refuses what is none of them by name."""
    if hasattr(value, "__index__") and not getattr(value, "shape", ()):
        return [value.__index__()]
    found = list(value) if hasattr(value, "__iter__") and not isinstance(value, (str, bytes)) else [value]
    for item in found:
        try:
            item.__index__()
        except (AttributeError, TypeError, ValueError):
            raise _core.ArgumentTypeError(f"{function}: argument {argument}: found {value!r}, expected an int or a sequence of ints") from None
    return [item.__index__() for item in found]
