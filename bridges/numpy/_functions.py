"""function: an op as a function of NumPy's arrays."""

import functools

import numpy as np

import backplane as bp

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


def op_named(name: str, caller: str) -> "Any":
    space, _, short = name.rpartition("::")
    try:
        return getattr(getattr(bp.ops, space or "bp"), short)
    except AttributeError:
        raise bp.ArgumentValueError(f"numpy.{caller}: argument name: found {name!r}, but there is no such op. Fix: load its plugin first, or see bp.ops") from None


def function(name: str) -> "Callable[..., Any]":
    """An op of the registry as a function of NumPy's arrays: function("topk")(x, 2).

    name: the full name, or the part after bp:: for ops of Backplane's own. Arrays, also in lists and tuples, become tensors over their
        memory; other arguments pass as they are. Results are arrays, several of them a tuple. A view stays a view of its argument.

    Errors: ArgumentValueError if there is no such op; of the function: those of the op, and DtypeError for results in bfloat16, which NumPy
        does not have.

    Example:
        >>> bn.function("softmax")(np.zeros(2), axis=0)
        array([0.5, 0.5])
    """
    op = op_named(name, "function")

    @functools.wraps(op, assigned=("__doc__",), updated=())
    def call(*args, **kwargs):
        results = op(*map(_tensors, args), **{key: _tensors(value) for key, value in kwargs.items()})
        return _arrays(results)

    call.__name__ = call.__qualname__ = op.__name__
    return call


def _tensors(value):
    if isinstance(value, (np.ndarray, np.generic)):
        array = np.asarray(value)
        return bp.asarray(array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("=")))
    if type(value) in (list, tuple) and any(isinstance(part, (np.ndarray, np.generic)) for part in value):
        return type(value)(map(_tensors, value))
    return value


def _arrays(results):
    if isinstance(results, bp.Tensor):
        return results.detach().to("cpu").numpy()
    if isinstance(results, (tuple, list)):
        return tuple(map(_arrays, results))
    return results
