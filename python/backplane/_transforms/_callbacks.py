"""Functions of Python as steps of programs that are traced, compiled or batched: pure_callback, and what bp.debug stands on."""

from __future__ import annotations

from .. import _core, tree

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

__all__ = ["pure_callback"]

_NAMESPACE = "backplane_callbacks"
_registered: list[Any] = []  # of calls in traces and transforms: (function, results). A graph knows its place here
_ops: dict[tuple[int, int | None], Any] = {}  # by the numbers of tensors and results


def pure_callback(callback: Callable[..., Any], result_shape_dtypes: Any, *args: Any) -> Any:
    """callback(*args) with NumPy arrays, in Python, when the program runs: also in compiled functions, graphs and under vmap.

    result_shape_dtypes: a tensor, bp.types.TensorSpec, or a container of these, with the shapes and dtypes of what callback returns.
    callback: must not have side effects; a call may be left out, made again, or merged with an equal one. It gets read-only arrays of
    CPU memory; what it returns is copied.
    Under vmap it is called once for each element of the batch.
    There is no gradient: a tensor that is differentiated raises MissingRuleError; use stop_gradient, or custom_function around it.
    Errors: ShapeError and DtypeError where callback returns something else than result_shape_dtypes says.

    Example:
        >>> import numpy as np
        >>> double = bp.compile(lambda x: bp.pure_callback(lambda a: np.multiply(a, 2), x, x))
        >>> double(bp.ones(2)).tolist()
        [2.0, 2.0]
    """
    leaves, structure = tree.flatten(args)
    specs, result_structure = tree.flatten(result_shape_dtypes)
    results = [(tuple(spec.shape), _core.as_dtype(spec.dtype, "pure_callback")) for spec in specs]
    places = [place for place, leaf in enumerate(leaves) if isinstance(leaf, _core.Tensor)]
    tensors = [leaves[place] for place in places]
    for place in places:  # the function outlives a trace, whose tensors do not
        leaves[place] = None

    def run(found):
        full = list(leaves)
        for place, x in zip(places, found):
            full[place] = x.detach().to("cpu").numpy()
            full[place].setflags(write=False)
        values, returned = tree.flatten(callback(*tree.unflatten(structure, full)))
        if returned != result_structure:
            raise _core.ArgumentTypeError(f"pure_callback: the function returned {returned}, expected the structure of result_shape_dtypes, {result_structure}")
        return _checked(values, results, found[0].device if found else None)

    if is_plain(tensors) and not any(x.requires_grad and _records() for x in tensors):
        found = run(tensors)
    else:
        found = operation(len(tensors), len(results))(*tensors, callback=registered(run, results))
        found = [found] if len(results) == 1 else list(found)
    return tree.unflatten(result_structure, found)


def is_plain(tensors: list[Any]) -> bool:
    """Do all have values, outside of traces and transforms? Without tensors: is there no trace?"""
    from .._calls._ops import NAMESPACE, ops

    # In a trace, what an op makes of nothing has no values either.
    return all(_core.has_values(x) and not _core.transforms_of(x) for x in tensors or [getattr(ops, NAMESPACE).zeros([])])


def _records():
    from ._grad import is_grad_enabled

    return is_grad_enabled()


def _checked(values, results, device):
    tensors = []
    for value, (shape, dtype) in zip(values, results, strict=True):
        x = _core.asarray(value, copy=True)  # the function may keep what it returned, and use it again
        if tuple(x.shape) != shape:
            raise _core.ShapeError(f"pure_callback: the function returned shape {tuple(x.shape)}, expected {shape}")
        if x.dtype != dtype:
            raise _core.DtypeError(f"pure_callback: the function returned {x.dtype.name}, expected {dtype.name}")
        tensors.append(x if device is None or x.device == device else x.to(device))
    return tensors


# ---- ops that call a function ---------------------------------------------------------------------------------------------


def registered(function: Callable[[list[Any]], Any], results: Any) -> int:
    """A number for a function of tensors, by which an op finds it. results: (shape, dtype) of each; None: it is run for its effect."""
    _registered.append((function, results))
    return len(_registered) - 1


def operation(count: int, n_results: int | None) -> Any:
    """The op of calls with so many tensors and results. None: it has an effect, and a result that means nothing."""
    key = (count, n_results)
    if key not in _ops:
        _ops[key] = _core.unguarded(lambda: _defined(count, n_results))
    return _ops[key]


def _defined(count, n_results):
    from .._custom_ops import _custom_op, _op_methods
    from ..types import TensorSpec

    words = [f"x{i}" for i in range(count)]
    name = f"{'effect' if n_results is None else 'call'}_{count}_{n_results or 0}"
    returned = "Tensor" if n_results in (1, None) else f"({', '.join(f'Tensor y{i}' for i in range(n_results))})"
    signature = f"{name}({''.join(f'Tensor {word}, ' for word in words)}Size callback) -> {returned}"
    scope = {"kernel": _kernel, "shapes": _shapes, "TensorSpec": TensorSpec}
    given = "".join(f"{word}, " for word in words)
    exec(f"def run({given}callback): return kernel(callback, [{given}])\ndef shape(callback): return shapes(callback, TensorSpec)", scope)
    op = _op_methods.custom_op(f"{_NAMESPACE}::{name}", signature=signature, doc="Calls a function of Python.")(scope["run"])
    op.register_shape(scope["shape"])
    op.register_batch("loop")
    if n_results is None:
        _custom_op.mark_effect(op)
    return op


def _kernel(callback, tensors):
    function, results = _registered[callback]
    found = function(tensors)
    if results is None:
        return _core.asarray(True, device=tensors[0].device if tensors else None)
    return found[0] if len(found) == 1 else tuple(found)


def _shapes(callback, spec):
    results = _registered[callback][1]
    if results is None:
        return spec((), _core.bool)
    found = [spec(shape, dtype) for shape, dtype in results]
    return found[0] if len(found) == 1 else tuple(found)
