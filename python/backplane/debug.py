"""Looking into programs that are traced, compiled, batched or differentiated: print and callback run when the program runs."""

from __future__ import annotations

import builtins

from . import _core, tree
from ._transforms._anomaly import detect_anomaly
from ._transforms._callbacks import is_plain, operation, registered
from ._calls._ops import refuse_names

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

__all__ = ["callback", "detect_anomaly", "print"]
__dir__ = __all__.copy


def print(fmt: str, *args: Any, **kwargs: Any) -> None:
    """Prints fmt.format(*args, **kwargs), with the values that tensors have when the program runs.

    Works in compiled functions, graphs, loops and transforms; under vmap it prints once for each element of the batch, and under grad
    the values themselves. A call in a compiled function is a step of its graph: it prints at each run. In a loop of a graph it
    prints at each step.
    Errors: ArgumentTypeError if fmt is not a text; those of str.format.

    Example:
        >>> def f(x):
        ...     bp.debug.print("x = {}, twice {y}", x, y=2 * x)
        ...     return x + 1
        >>> bp.compile(f)(bp.asarray(1.0)).item()
        x = 1.0, twice 2.0
        2.0
    """
    if not isinstance(fmt, str):
        raise _core.ArgumentTypeError(f"debug.print: argument fmt: found a value of type {type(fmt).__name__}, expected a text, as in print('x = {{}}', x)")
    _run(lambda args, kwargs: builtins.print(fmt.format(*args, **kwargs)), args, kwargs)


def callback(function: Callable[..., Any], *args: Any, **kwargs: Any) -> None:
    """Calls function(*args, **kwargs) with tensors when the program runs, for what it does: what it returns is dropped.

    Where and how often it runs: as print. The tensors that it gets are constants on the device of the program.
    """
    _run(lambda args, kwargs: function(*args, **kwargs), args, kwargs)


def _run(function, args, kwargs):
    leaves, structure = tree.flatten((args, kwargs))
    places = [place for place, leaf in enumerate(leaves) if isinstance(leaf, _core.Tensor)]
    tensors = [leaves[place].detach() for place in places]
    for place in places:  # the function outlives a trace, whose tensors do not
        leaves[place] = None

    def run(found):
        full = list(leaves)
        for place, tensor in zip(places, found):
            full[place] = tensor
        function(*tree.unflatten(structure, full))

    if is_plain(tensors):
        run(tensors)
    else:
        operation(len(tensors), None)(*tensors, callback=registered(run, None))


if not TYPE_CHECKING:
    __getattr__ = refuse_names(__name__)
del TYPE_CHECKING
