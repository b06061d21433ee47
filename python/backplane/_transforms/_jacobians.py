"""Jacobians and Hessians as compositions of vjp, jvp and vmap, and stop_gradient over containers.

A Jacobian is one pullback (or one forward pass) for each element of the results (or of the arguments), all of them at once under
vmap: Griewank and Walther, "Evaluating Derivatives", 2nd ed., 2008, chapter 3.
"""

from __future__ import annotations

from .. import _core, tree
from .._calls._ops import ops

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

__all__ = ["hessian", "jacfwd", "jacrev", "linearize", "stop_gradient"]


def jacrev(
    fun: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False, holomorphic: bool = False,
    chunk_size: int | None = None,
) -> Callable[..., Any]:  # fmt: skip
    """The Jacobian of a function by reverse mode, as a function of the same arguments; cheap for few results.

    Arguments as for grad, but fun may return a tensor of any shape, or a container of tensors. For a result of shape
    (*m) and an argument of shape (*n) the Jacobian has shape (*m, *n) and the argument's dtype. Containers nest: the
    structure of the result, and at each of its leaves that of the argument (of several, a tuple). With has_aux the
    result is the pair (Jacobian, aux). chunk_size: how many rows are computed at once, None for all; fewer rows need
    less memory and more time.

    Errors: DtypeError for integer and boolean arguments or results, and for complex results without holomorphic;
        ArgumentValueError where argnums names no positional argument, or chunk_size is below 1.
    """
    several = _check("jacrev", fun, argnums)
    if chunk_size is not None and not (isinstance(chunk_size, int) and chunk_size > 0):
        raise _core.ArgumentValueError(f"jacrev: argument chunk_size: found {chunk_size!r}, expected a number of rows from 1 on, or None")

    def jacobian(*args, **kwargs):
        partial, chosen = _partial("jacrev", fun, argnums, args, kwargs)
        _check_arguments("jacrev", chosen, holomorphic)
        value, pullback, *aux = _core.vjp_as("jacrev", partial, tuple(chosen.values()), has_aux)
        results, structure = tree.flatten(value)
        _check_results("jacrev", results, holomorphic)

        def row(*cotangents):
            found = pullback(tree.unflatten(structure, cotangents))
            found = tree.map(ops.bp.conj, found) if holomorphic else found
            return found if several else found[0]

        total = sum(leaf.size for leaf in results)
        step = chunk_size or max(total, 1)
        chunks = [_core.vmap(row, randomness="same")(*_basis(results, i, min(i + step, total))) for i in range(0, max(total, 1), step) if results]
        rows = tree.map(lambda *parts: ops.bp.concat(list(parts)), *chunks) if len(chunks) > 1 else chunks[0] if chunks else ()
        blocks = [tree.map(lambda leaf: _block(leaf, part, shape, 0), rows) for part, shape in _parts(results)]
        whole = tree.unflatten(structure, blocks)
        return (whole, aux[0]) if has_aux else whole

    return _looking_like(fun, jacobian)


def jacfwd(
    fun: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False, holomorphic: bool = False
) -> Callable[..., Any]:
    """The Jacobian of a function by forward mode, as a function of the same arguments; cheap for few arguments.

    Arguments, result and errors as for jacrev, but the Jacobian has the result's dtype, and complex arguments need
    holomorphic.
    """
    several = _check("jacfwd", fun, argnums)

    def jacobian(*args, **kwargs):
        partial, chosen = _partial("jacfwd", fun, argnums, args, kwargs)
        _check_arguments("jacfwd", chosen, holomorphic)
        primals = tree.map(_tensor, tuple(chosen.values()) if several else next(iter(chosen.values())))
        inputs, structure = tree.flatten(primals)
        rest = []  # of aux: its leaves and structure, as the last call of the function left them

        def column(*tangents):
            directions = tree.unflatten(structure, tangents)
            pair = (primals, directions) if several else ((primals,), (directions,))
            value, derivative, *aux = _core.jvp_as("jacfwd", partial, *pair, has_aux)
            _check_results("jacfwd", tree.leaves(value), holomorphic)
            rest[:] = tree.flatten(aux[0]) if has_aux else ([], None)
            return derivative, [leaf for leaf in rest[0] if isinstance(leaf, _core.Tensor)]

        total = sum(leaf.size for leaf in inputs)
        # All columns are of one forward pass, and of its random numbers.
        along = _core.vmap(column, out_axes=(-1, None), axis_size=total, randomness="same")
        columns, tensors = along(*_basis(inputs))

        def split(leaf):
            return tree.unflatten(structure, [_block(leaf, part, shape, -1) for part, shape in _parts(inputs)])

        whole = tree.map(split, columns)
        if not has_aux:
            return whole
        tensors = iter(tensors)
        leaves = [next(tensors) if isinstance(leaf, _core.Tensor) else leaf for leaf in rest[0]]
        return whole, tree.unflatten(rest[1], leaves)

    return _looking_like(fun, jacobian)


def hessian(
    fun: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False, holomorphic: bool = False
) -> Callable[..., Any]:
    """The matrix of second derivatives, as a function of the same arguments: jacfwd of jacrev.

    Arguments and errors as for jacrev. For a value without dimensions and an argument of shape (*n) it has shape
    (*n, *n); containers nest once for each derivative.
    """
    return jacfwd(jacrev(fun, argnums, has_aux, holomorphic), argnums, has_aux, holomorphic)


def linearize(fun: Callable[..., Any], *primals: Any) -> tuple[Any, Callable[..., Any]]:
    """The function's value at the primals, and its derivative there: a linear function of tangents, which runs fun no more.

    fun: takes as many positional arguments, tensors or containers of tensors, and returns a tensor or a container. The
    derivative takes one tangent per primal, of its structure, shapes and dtypes, and gives one of the value's. It keeps what
    a pullback keeps, and is the pullback's pullback. For one tangent, jvp needs less.

    Errors: as for vjp.
    """
    vjp: Any = _core.vjp_as
    value, pullback = vjp("linearize", fun, primals, False)
    _, derivative = vjp("linearize", pullback, (tree.map(ops.bp.zeros_like, value),), False)
    return value, lambda *tangents: derivative(tangents)[0]


def stop_gradient(x: Any) -> Any:
    """x as a constant: no derivative passes, forward or in reverse, at any level. x is a tensor or a container.

    What is no tensor stays as it is.
    """
    return tree.map(lambda leaf: leaf.detach() if isinstance(leaf, _core.Tensor) else leaf, x)


def _basis(leaves, start=0, stop=None):
    """Per leaf the elements start to stop of the standard basis of all leaves together, stacked: its part of each."""
    count = (sum(leaf.size for leaf in leaves) if stop is None else stop) - start
    offset, parts = 0, []
    for leaf in leaves:
        ones = ops.bp.eye(count, leaf.size, k=start - offset, dtype=leaf.dtype, device=leaf.device)
        parts.append(ones.reshape((count, *leaf.shape)))
        offset += leaf.size
    return parts


def _parts(leaves):
    """Per leaf its place in the stacked basis, and its shape."""
    offset = 0
    for leaf in leaves:
        yield slice(offset, offset + leaf.size), leaf.shape
        offset += leaf.size


def _block(leaf, part, shape, axis):
    """The part of the stacked axis, first or last, that belongs to one leaf of this shape."""
    if axis == 0:
        return leaf[part].reshape((*shape, *leaf.shape[1:]))
    return leaf[..., part].reshape((*leaf.shape[:-1], *shape))


def _tensor(leaf):
    return _core.asarray(leaf)


def _check(name, fun, argnums):
    """Whether argnums is a sequence."""
    if not callable(fun):
        raise _core.ArgumentTypeError(
            f"{name}: argument fun: found a value of type {type(fun).__name__}, expected a function"
        )
    several = isinstance(argnums, (tuple, list))
    if not all(hasattr(number, "__index__") for number in (argnums if several else [argnums])):
        raise _core.ArgumentTypeError(f"{name}: argument argnums: found {argnums!r}, expected an int or a tuple of ints")
    return several


def _partial(name, fun, argnums, args, kwargs):
    """fun as a function of the chosen arguments alone, and those by their position."""
    chosen = {}
    for number in argnums if isinstance(argnums, (tuple, list)) else (argnums,):
        position = number + len(args) if number < 0 else number
        if not 0 <= position < len(args):
            raise _core.ArgumentValueError(
                f"{name}: argument argnums: found {number}, but the call has {len(args)} positional arguments; "
                "give the argument by position"
            )
        if position in chosen:
            raise _core.ArgumentValueError(
                f"{name}: argument argnums: found argument {position} twice, expected each once"
            )
        chosen[position] = args[position]

    def partial(*values):
        full = list(args)
        for position, value in zip(chosen, values):
            full[position] = value
        return fun(*full, **kwargs)

    return partial, chosen


def _check_arguments(name, chosen, holomorphic):
    """Dtypes that the general checks of vjp and jvp leave to their callers."""
    for position, argument in chosen.items():
        for leaf in tree.leaves(argument):
            kind = leaf.dtype.kind if isinstance(leaf, _core.Tensor) else ""
            found = f"{name}: args[{position}]: found a tensor of dtype {leaf.dtype.name}, expected " if kind else ""
            if kind and holomorphic and kind != "complex floating":
                raise _core.DtypeError(found + "a complex one, because of holomorphic=True")
            if name == "jacfwd" and not holomorphic and kind == "complex floating":
                raise _core.DtypeError(found + "a real one, or holomorphic=True where the function is holomorphic")


def _check_results(name, results, holomorphic):
    for result in results:
        found = f"{name}: the function returned a tensor of dtype {result.dtype.name}; expected "
        if result.dtype.kind not in ("real floating", "complex floating"):
            raise _core.DtypeError(found + "a floating one; cast it with astype")
        if name == "jacrev" and not holomorphic and result.dtype.kind == "complex floating":
            raise _core.DtypeError(found + "a real one, or holomorphic=True where the function is holomorphic")
        if holomorphic and result.dtype.kind != "complex floating":
            raise _core.DtypeError(found + "a complex one, because of holomorphic=True")


def _looking_like(fun, made):
    """The function made, with fun's name and documentation."""
    for attribute in ("__module__", "__name__", "__qualname__", "__doc__", "__annotations__"):
        if hasattr(fun, attribute):
            setattr(made, attribute, getattr(fun, attribute))
    made.__wrapped__ = fun
    return made
