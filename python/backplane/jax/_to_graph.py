"""to_graph: a JAX function as a graph of Backplane, by its jaxpr."""

import jax
import numpy as np

import backplane as bp

from . import _jaxpr_arrays, _jaxpr_elementwise, _jaxpr_folds, _jaxpr_linalg, _jaxpr_products  # noqa: F401 (fill the table)
from ._arrays import to_tensor
from ._call import call_p, linear_p
from ._jaxpr_keys import expanded, is_key, on_words
from ._jaxpr_table import MAKERS, ROWS, dtype_of, refuse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

_DEVICE = "device"  # where what is made before the trace lies, and what rows make

# Primitives that call a jaxpr once, and the parameter that holds it.
_CALLS = {
    "jit": "jaxpr", "pjit": "jaxpr", "closed_call": "call_jaxpr", "core_call": "call_jaxpr", "remat": "jaxpr", "remat2": "jaxpr", "checkpoint": "jaxpr",
    "custom_jvp_call": "call_jaxpr", "custom_vjp_call": "call_jaxpr", "custom_vjp_call_jaxpr": "fun_jaxpr", "custom_lin": "call_jaxpr", "composite": "jaxpr",
    "custom_vmap_call": "call",
}  # fmt: skip


def to_graph(fun: "Callable[..., Any]", *, device: "bp.Device | str" = "cpu") -> "Callable[..., bp.Graph]":
    """A function of fun's arguments that gives fun as a graph, which runs, compiles and exports on any device of Backplane.

    fun: a JAX function of arrays, in any containers of JAX. The graph takes the arrays of the arguments in the order of jax.tree.leaves, and its
        results are the leaves of fun's result, a tuple. Derivatives and batches of JAX in fun become ops; custom_jvp and custom_vjp keep their values, and
        their rules where fun differentiates. cond, while_loop and scan stay ops. A random key becomes a tensor of its uint32 words
        (jax.random.key_data), and gives JAX's own random bits.
    device: where the graph runs. A graph that was saved runs on the device that load is given.

    Errors: MissingRuleError for a primitive without a counterpart, by its name.

    Example:
        >>> graph = bj.to_graph(jax.nn.softmax)(jnp.ones((2, 3)))
        >>> (y,) = graph(bp.ones((2, 3)))  # doctest: +SKIP
    """

    def trace(*args, **kwargs):
        args, kwargs = jax.tree.map(_as_array, (args, kwargs))
        closed = jax.make_jaxpr(fun)(*args, **kwargs)
        constants = [to_tensor(constant, device) for constant in closed.consts]
        inputs = [to_tensor(leaf, device) for leaf in jax.tree.leaves((args, kwargs))]
        placed = _literals(closed.jaxpr, {_DEVICE: device})

        def run(*tensors):
            return tuple(_evaluate(closed.jaxpr, constants, tensors, placed))

        return bp.make_graph(lambda *tensors: bp.unguarded(run, *tensors))(*inputs)

    return trace


def _as_array(leaf):
    return leaf.numpy() if isinstance(leaf, bp.Tensor) else leaf if isinstance(leaf, (jax.Array, np.ndarray)) else jax.numpy.asarray(leaf)


def _inner(value):
    """(jaxpr, constants) of a closed jaxpr, or of a plain one."""
    return (value.jaxpr, list(value.consts)) if hasattr(value, "consts") else (value, [])


def _jaxprs_in(params):
    for value in params.values():
        for one in value if isinstance(value, (tuple, list)) else (value,):
            if hasattr(one, "eqns") or hasattr(one, "jaxpr"):
                yield _inner(one)


def _literals(jaxpr, found):
    """The objects that are made before the trace: tensors of the numbers that stand in a jaxpr and of its inner constants, and jaxprs of random primitives."""
    for equation in jaxpr.eqns:
        closed = None if id(equation) in found else expanded(equation)  # a jaxpr may be called in several places
        if closed is not None:
            found[id(equation)] = closed
            found.update((id(constant), to_tensor(constant, found[_DEVICE])) for constant in closed.consts)
            _literals(closed.jaxpr, found)
        for atom in equation.invars:
            if hasattr(atom, "val"):
                found[id(atom)] = to_tensor(np.asarray(atom.val, dtype=atom.aval.dtype), found[_DEVICE])
        for inner, constants in _jaxprs_in(equation.params):
            for constant in constants:
                found[id(constant)] = to_tensor(constant, found[_DEVICE])
            _literals(inner, found)
    for atom in jaxpr.outvars:
        if hasattr(atom, "val"):
            found[id(atom)] = to_tensor(np.asarray(atom.val, dtype=atom.aval.dtype), found[_DEVICE])
    return found


def _evaluate(jaxpr, constants, inputs, placed):
    env = dict(zip([*jaxpr.constvars, *jaxpr.invars], [*constants, *inputs]))

    def read(atom):
        return placed[id(atom)] if hasattr(atom, "val") else env[atom]

    for equation in jaxpr.eqns:
        values = [read(atom) for atom in equation.invars]
        try:
            results = _results(equation, values, placed)
        except TypeError as error:
            raise bp.MissingRuleError(f"jax.to_graph: the primitive {equation.primitive.name} has parameters that are not supported ({error})") from error
        for variable, value in zip(equation.outvars, results):
            _check(equation, variable.aval, value)
            env[variable] = value
    return [read(atom) for atom in jaxpr.outvars]


def _check(equation, aval, value):
    """A row that has another meaning of a primitive than JAX must not go unnoticed."""
    expected = (tuple(aval.shape), dtype_of(aval.dtype)) if hasattr(aval, "shape") and not is_key(aval) else None
    if expected is not None and (tuple(value.shape), value.dtype) != expected:
        refuse(f"the primitive {equation.primitive.name} gave {value.dtype.name} {tuple(value.shape)}, expected {expected[1].name} {expected[0]}")


def _results(equation, values, placed):
    name, params = equation.primitive.name, equation.params
    if id(equation) in placed:
        return _call(placed[id(equation)], values, placed)
    if name in _CALLS and _CALLS[name] in params:
        return _call(params[_CALLS[name]], values, placed)
    if name in _CONTROL:
        return _CONTROL[name](values, params, placed)
    if equation.primitive in (call_p, linear_p):
        return params["fun"].run(*values)
    row = ROWS.get(name)
    if row is None:
        raise bp.MissingRuleError(f"jax.to_graph: the primitive {name} is not supported")
    if not name.startswith("random_") and any(is_key(variable.aval) for variable in [*equation.invars, *equation.outvars]):
        return on_words(row, equation, values)
    found = row(*values, **params, device=placed[_DEVICE]) if name in MAKERS else row(*values, **params)
    return found if isinstance(found, (list, tuple)) else [found]


def _solve(values, params, placed):
    """A linear system, as JAX solves it: the functions of the product itself, and of the transposes, are for derivatives."""
    lengths, solve = params["const_lengths"], params["jaxprs"].solve
    start = lengths.matvec + lengths.vecmat
    return _call(solve, [*values[start : start + lengths.solve], *values[sum(lengths) :]], placed)


def _call(closed, values, placed):
    jaxpr, constants = _inner(closed)
    return _evaluate(jaxpr, [placed[id(constant)] for constant in constants], values, placed)


def _cond(values, params, placed):
    which, *operands = values
    branches = params["branches"]

    def run(branch):
        return lambda *tensors: _call(branch, list(tensors), placed)

    if which.dtype == bp.bool:
        return bp.cond(which, run(branches[1]), run(branches[0]), *operands)

    def choose(i):
        if i == len(branches) - 1:
            return run(branches[i])
        return lambda *tensors: bp.cond(which <= i, run(branches[i]), choose(i + 1), *tensors)

    return choose(0)(*operands)


def _while(values, params, placed):
    n_cond, n_body = params["cond_nconsts"], params["body_nconsts"]
    fixed_cond, fixed_body, carry = values[:n_cond], values[n_cond : n_cond + n_body], values[n_cond + n_body :]

    def goes_on(state):
        return _call(params["cond_jaxpr"], [*fixed_cond, *state], placed)[0]

    def step(state):
        return _call(params["body_jaxpr"], [*fixed_body, *state], placed)

    if not params["cond_jaxpr"].out_avals[0].shape:
        return bp.while_loop(goes_on, step, carry)

    def step_of_batch(state):
        """Elements of a batch whose own loop has ended keep their values."""
        going = goes_on(state)
        shapes = [going.shape + (1,) * (value.ndim - going.ndim) for value in state]
        return [bp.where(bp.reshape(going, shape), new, old) for shape, new, old in zip(shapes, step(state), state)]

    return bp.while_loop(lambda state: bp.any(goes_on(state)), step_of_batch, carry)


def _scan(values, params, placed):
    n_fixed, n_carry = params["num_consts"], params["num_carry"]
    fixed, carry, xs = values[:n_fixed], values[n_fixed : n_fixed + n_carry], values[n_fixed + n_carry :]

    def step(state, row):
        found = _call(params["jaxpr"], [*fixed, *state, *(row or [])], placed)
        return found[:n_carry], found[n_carry:]

    last, ys = bp.scan(step, carry, xs if xs else None, length=params["length"], reverse=params["reverse"])
    return [*last, *(ys or [])]


def _reduce(values, params, placed):
    return _jaxpr_folds.reduced(lambda *numbers: _call(params["jaxpr"], list(numbers), placed), values, params["dimensions"])


_CONTROL = {"cond": _cond, "reduce": _reduce, "while": _while, "scan": _scan, "custom_linear_solve": _solve}
__all__: "Sequence[str]" = ["to_graph"]
