"""op and function: ops and functions of Backplane, to be called with JAX's arrays."""

import functools

import jax
import numpy as np

import backplane as bp

from ._arrays import to_array
from ._call import Function, call_p

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


def op(name: str) -> "Callable[..., Any]":
    """An op of the registry as a JAX function: op("mine::wave")(x, speed=2.5).

    name: the full name, or the part after bp:: for ops of Backplane's own. Arrays and traced values are the inputs; all other arguments
        (numbers, axes, dtypes, strings) are static. The function has derivatives of any order in both modes, and batches, under any nesting of
        jit, grad, jvp, vmap, hessian, scan and checkpoint. Results in 64 bits are cast to 32 bits unless jax_enable_x64 is set.

    Errors: ArgumentValueError if there is no such op; of the function: those of the op, and DeviceError for arguments that lie on several
        devices: call it under jax.shard_map.

    Example:
        >>> wave = bj.op("bp::sinc")
        >>> jax.grad(lambda x: wave(x).sum())(jnp.ones(3))  # doctest: +SKIP
    """
    space, _, short = name.rpartition("::")
    try:
        found = getattr(getattr(bp.ops, space or "bp"), short)
    except AttributeError:
        raise bp.ArgumentValueError(f"jax.op: argument name: found {name!r}, but there is no such op. Fix: load its plugin first, or see bp.ops") from None
    return _jax_function(found, name)


def function(fun: "Callable[..., Any]") -> "Callable[..., Any]":
    """A function of Backplane's tensors as a JAX function, with derivatives and batches as op has them.

    fun: takes tensors in any containers of JAX, and other arguments, which are static; it returns a container of tensors. It must be pure.

    Errors: those of fun.
    """
    return _jax_function(fun, getattr(fun, "__name__", "function"))


def _is_array(leaf):
    return isinstance(leaf, (jax.Array, np.ndarray, np.generic))


_array_types: "set[type]" = set()  # of JAX's arrays that have values


def _jax_function(fun, name):
    made: dict[Any, Any] = {}
    known: dict[Any, Any] = {}  # entries of calls with arrays alone, by these arrays' shapes and dtypes

    @functools.wraps(fun, assigned=("__doc__",), updated=())
    def call(*args, **kwargs):
        if not kwargs and _array_types.issuperset(map(type, args)):
            entry = known.get(tuple([(array.shape, array.dtype) for array in args]))
            if entry is not None:
                return jax.tree.unflatten(entry[1][-1], entry[0].jitted(*args))
        leaves, structure = jax.tree.flatten((args, kwargs), is_leaf=lambda leaf: leaf is None)
        leaves = [to_array(leaf) if isinstance(leaf, bp.Tensor) else leaf for leaf in leaves]
        places = tuple(i for i, leaf in enumerate(leaves) if _is_array(leaf))
        static = tuple((type(leaf), repr(leaf) if isinstance(leaf, float) else leaf) for i, leaf in enumerate(leaves) if i not in places)
        key = (structure, places, static, tuple((leaves[i].shape, leaves[i].dtype) for i in places))
        try:
            entry = made.get(key)
        except TypeError as error:
            raise bp.ArgumentTypeError(f"{name}: found an argument that is neither an array nor hashable ({error})") from None
        if entry is None:
            entry = made[key] = _entry(fun, name, structure, leaves, places)
        wrapped, structures = entry
        results = call_p.bind(*[leaves[i] for i in places], fun=wrapped)
        if wrapped.jitted is not None and not kwargs and len(args) == len(places) == len(leaves):
            _array_types.update(type(leaf) for leaf in leaves if isinstance(leaf, jax.Array) and not isinstance(leaf, jax.core.Tracer))
            known[tuple([(leaf.shape, leaf.dtype) for leaf in leaves])] = entry
        return jax.tree.unflatten(structures[-1], results)

    call.__name__ = call.__qualname__ = name
    return call


def _entry(fun, name, structure, leaves, places):
    """The function of the arrays alone, and the list of the structures that it returned."""
    fixed = [None if i in places else leaf for i, leaf in enumerate(leaves)]
    structures: list[Any] = []

    def run(*tensors):
        mixed = list(fixed)
        for place, tensor in zip(places, tensors):
            mixed[place] = tensor
        args, kwargs = jax.tree.unflatten(structure, mixed)
        return bp.unguarded(_flat, fun(*args, **kwargs), structures)

    return Function(run, name), structures


def _flat(results, structures):
    if isinstance(results, tuple) and not hasattr(results, "_fields"):  # a result with names, as topk's, is a tuple for JAX
        results = tuple(results)
    leaves, structure = jax.tree.flatten(results)
    structures[:] = [structure]
    return leaves
