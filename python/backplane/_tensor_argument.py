"""The check of functions in Python that their first argument is a tensor, as ops check theirs."""

import functools

from . import _core


def takes_tensor(function):
    """Refuses another first argument by name, before the function would fail on an attribute that lists have not."""
    name = next(iter(function.__code__.co_varnames))

    @functools.wraps(function)
    def checked(*args, **more):
        if args and not isinstance(args[0], _core.Tensor):
            raise _core.ArgumentTypeError(
                f"{function.__name__}: argument {name}: found {type(args[0]).__name__}, expected a Tensor; use backplane.asarray"
            )
        return function(*args, **more)

    return checked
