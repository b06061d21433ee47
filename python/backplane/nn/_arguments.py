"""What functions of this package do with arguments that PyTorch takes in several forms."""

from .. import ArgumentTypeError, ArgumentValueError

_ABSENT = object()


def either(function, first, second, values, default=_ABSENT):
    """The one that is given of an argument with two names, as `dim` and `axis`; values: (dim, axis), None where not given."""
    found = [value for value in values if value is not None]
    if len(found) == 2:
        raise ArgumentTypeError(f"{function}: found both {first} and {second}, expected one of them: they are the same argument")
    if not found and default is _ABSENT:
        raise ArgumentTypeError(f"{function}: argument {first}: missing, expected {first} or {second}")
    return found[0] if found else default


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
