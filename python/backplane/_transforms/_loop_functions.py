"""Functions of JAX's names over the control flow of the package: fori_loop and switch; closure_convert, ravel_pytree and hvp."""

from __future__ import annotations

from .. import _core, tree
from ._control import cond, scan, while_loop
from .._calls._ops import NAMESPACE, ops

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from .._core import Tensor

__all__ = ["closure_convert", "fori_loop", "hvp", "ravel_pytree", "switch"]

op = getattr(ops, NAMESPACE)


def fori_loop(lower: int | Tensor, upper: int | Tensor, body_fun: Callable[[Any, Any], Any], init_val: Any) -> Any:
    """body_fun(i, value) for each i from lower to below upper: the last value.

    body_fun: i is an int64 tensor without axes; it returns a container of the structure, shapes and dtypes of the value.
    lower, upper: with ints, the loop is a scan and can be differentiated in reverse; with tensors it is a while_loop.
    Errors: those of scan and while_loop.
    """
    if isinstance(lower, int) and isinstance(upper, int):
        numbers = op.arange(lower, max(lower, upper), dtype=_core.int64)
        return scan(lambda value, i: (body_fun(i, value), None), init_val, numbers)[0]
    start = op.cast(_core.asarray(lower), _core.int64)
    end = op.cast(_core.asarray(upper), _core.int64)
    return while_loop(lambda state: state[0] < end, lambda state: (state[0] + 1, body_fun(*state)), (start, init_val))[1]


def switch(index: int | Tensor, branches: Sequence[Callable[..., Any]], *operands: Any) -> Any:
    """branches[index](*operands); an index that is out of range is limited to the first or the last.

    index: an integer, or an integer tensor without axes. All branches return tensors of the same structure, shapes and dtypes.
    Errors: ArgumentValueError for no branches; those of cond.
    """
    functions = list(branches)
    if not functions:
        raise _core.ArgumentValueError("switch: argument branches: found none, expected at least one function")
    if isinstance(index, int):
        return functions[min(max(index, 0), len(functions) - 1)](*operands)
    return _chosen(_core.asarray(index), functions, 0, operands)


def _chosen(index, functions, first, operands):
    """By halves, so that few conditions lie in each other."""
    if len(functions) == 1:
        return functions[0](*operands)
    half = len(functions) // 2
    return cond(
        index < first + half,
        lambda *given: _chosen(index, functions[:half], first, given),
        lambda *given: _chosen(index, functions[half:], first + half, given),
        *operands,
    )


def closure_convert(fun: Callable[..., Any], *example_args: Any) -> tuple[Callable[..., Any], list[Tensor]]:
    """(converted, the tensors that fun uses from outside): converted(*args, *tensors) computes fun(*args).

    A function with rules of its own cannot differentiate what it captures, so pass it these tensors as arguments. fun is traced once,
    with arguments like example_args: containers of tensors and numbers. Other arguments of converted have the same structure, shapes
    and dtypes. fun draws no random numbers, and returns containers of tensors and numbers.
    Errors: ArgumentTypeError if the structure of the arguments differs from the examples.

    Example:
        >>> w = bp.asarray([2.0, 3.0])
        >>> converted, captured = bp.closure_convert(lambda x: (w * x).sum(), bp.ones(2))
        >>> converted(bp.asarray([1.0, 10.0]), *captured).item(), len(captured)
        (32.0, 1)
    """
    examples, structure = tree.flatten(example_args)
    returned = []

    def flat(found):
        values, returned_structure = tree.flatten(fun(*tree.unflatten(structure, found)))
        returned.append(returned_structure)
        return [_core.asarray(value) for value in values]

    call, captured = _closed(flat, examples)

    def converted(*args: Any) -> Any:
        count = len(args) - len(captured)
        leaves, found = tree.flatten(args[: max(count, 0)])
        if found != structure:
            raise _core.ArgumentTypeError(
                f"the result of closure_convert: found arguments of the structure {found}, expected {structure} and then {len(captured)} captured tensors"
            )
        return tree.unflatten(returned[0], call([*(_core.asarray(x) for x in leaves), *args[max(count, 0) :]]))

    return converted, captured


def _closed(function, examples):
    return _core.closed_function("closure_convert", function, [_core.asarray(x) for x in examples])


def ravel_pytree(pytree: Any) -> tuple[Tensor, Callable[[Tensor], Any]]:
    """(all elements of a container's tensors in one vector, the function that gives the container again).

    The vector has the common dtype; the function casts back. Errors: ArgumentTypeError for leaves that are not tensors or numbers.
    """
    from .._api._joining_functions import concat

    leaves, structure = tree.flatten(pytree)
    for leaf in leaves:
        if not isinstance(leaf, (_core.Tensor, int, float, complex)) and not hasattr(leaf, "__dlpack__"):
            raise _core.ArgumentTypeError(f"ravel_pytree: found {type(leaf).__name__} in the container, expected tensors and numbers")
    tensors = [leaf if isinstance(leaf, _core.Tensor) else _core.asarray(leaf) for leaf in leaves]
    vector = concat([op.reshape(x, [-1]) for x in tensors]) if tensors else op.zeros([0])
    kinds = [(tuple(x.shape), x.size, x.dtype) for x in tensors]

    def unravel(flat: Tensor) -> Any:
        total = sum(size for _, size, _ in kinds)
        if flat.ndim != 1 or flat.size != total:
            raise _core.ShapeError(f"ravel_pytree: found a tensor of shape {tuple(flat.shape)}, expected ({total},)")
        parts, start = [], 0
        for shape, size, dtype in kinds:
            part = op.reshape(flat[start : start + size], shape)
            parts.append(part if part.dtype == dtype else op.cast(part, dtype))
            start += size
        return tree.unflatten(structure, parts)

    return vector, unravel


def hvp(fun: Callable[..., Tensor], primals: tuple[Any, ...], tangents: tuple[Any, ...]) -> tuple[Tensor, Any]:
    """(fun(*primals), the product of its Hessian with the tangents): forward over reverse mode.

    fun returns a tensor without dimensions. The product has the structure of primals; of one primal, that of it alone.
    """
    numbers = tuple(range(len(primals)))

    def value_and_gradient(*given: Any) -> Any:
        value, gradient = _core.value_and_grad(fun, numbers)(*given)
        return value, gradient

    (value, _), (_, product) = _core.jvp(value_and_gradient, primals, tangents)
    return value, product[0] if len(primals) == 1 else product
