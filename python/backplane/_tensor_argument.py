"""The checks of functions in Python that an argument is a tensor, as ops check theirs."""

import functools

from . import _core


def no_tensor(function, name, value):
    """The error that refuses another argument by name."""
    return _core.ArgumentTypeError(
        f"{function}: argument {name}: found {type(value).__name__}, expected a Tensor; use backplane.asarray"
    )


def require_tensor(function, name, value):
    """Refuses another argument by name, before the function would fail on an attribute that lists have not."""
    if not isinstance(value, _core.Tensor):
        raise no_tensor(function, name, value)


def tensor_like(x, like):
    """x, or the number or sequence as a tensor of like's dtype and device."""
    return x if isinstance(x, _core.Tensor) else _core.asarray(x, dtype=like.dtype, device=like.device)


def takes_tensor(function):
    """Refuses another first argument by name, before the function would fail on an attribute that lists have not."""
    name = next(iter(function.__code__.co_varnames))

    @functools.wraps(function)
    def checked(*args, **more):
        if args:
            require_tensor(function.__name__, name, args[0])
        return function(*args, **more)

    return checked
