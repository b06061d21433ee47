"""to_graph's table: JAX's random keys. A key is the tensor of its words, whose last axis JAX's shapes do not show.

JAX states in Python how a key becomes bits, other keys, or a key of a number. These functions are traced before the graph is, and give JAX's own bits.
"""

import functools
import math

import jax
import jax.numpy as jnp

import backplane as bp

from ._jaxpr_special import function_of
from ._jaxpr_table import ROWS, computes, refuse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_PARITY = 0x1BD11BDA  # of Threefry-2x32: Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3", 2011


def is_key(aval: "Any") -> bool:
    return jax.dtypes.issubdtype(aval.dtype, jax.dtypes.prng_key)


def _implementation(equation):
    found = equation.params.get("impl")
    return found if found is not None else equation.invars[0].aval.dtype._impl


def _words(aval):
    return jax.ShapeDtypeStruct((*aval.shape, *aval.dtype._impl.key_shape), jnp.uint32) if is_key(aval) else jax.ShapeDtypeStruct(aval.shape, aval.dtype)


def _over(axes, function):
    """function of one key, over all axes of an array of keys."""
    return functools.reduce(lambda inner, _: jax.vmap(inner), range(axes), function)


def expanded(equation: "Any") -> "Any | None":
    """The jaxpr, over the words of keys, that stands for a primitive which JAX states in Python; None for other primitives."""
    name, params = equation.primitive.name, equation.params
    if (stated := function_of(equation)) is not None:
        return _of_function(stated, equation)
    if name not in ("random_seed", "random_bits", "random_split", "random_fold_in"):
        return None
    implementation, first = _implementation(equation), equation.invars[0].aval
    if implementation.name not in ("threefry2x32", "fry"):
        refuse(f"random keys of {implementation.name} are not supported. Fix: use jax.random.key(seed, impl='threefry2x32')")
    one = {
        "random_seed": implementation.seed,
        "random_bits": lambda key: implementation.random_bits(key, params["bit_width"], params["shape"]),
        "random_split": lambda key: implementation.split(key, params["shape"]),
        "random_fold_in": implementation.fold_in,
    }[name]
    if name == "random_fold_in":
        shape = jnp.broadcast_shapes(first.shape, equation.invars[1].aval.shape)

        def run(keys, numbers):
            return _over(len(shape), one)(jnp.broadcast_to(keys, (*shape, keys.shape[-1])), jnp.broadcast_to(numbers, shape))
    else:
        run = _over(len(first.shape), one)
    return jax.make_jaxpr(run)(*[_words(variable.aval) for variable in equation.invars])


def _of_function(function, equation):
    """The jaxpr of a function of keys and arrays."""

    def run(*inputs):
        keys = [jax.random.wrap_key_data(x, impl=v.aval.dtype._impl.name) if is_key(v.aval) else x for v, x in zip(equation.invars, inputs)]
        return function(*keys)

    return jax.make_jaxpr(run)(*[_words(variable.aval) for variable in equation.invars])


def on_words(row, equation, values):
    """A row that moves elements, over arrays of keys: each word moves alike."""
    axes = tuple(-1 if is_key(variable.aval) else None for variable in equation.invars)

    def run(*inputs):
        found = row(*inputs, **equation.params)
        return tuple(found) if isinstance(found, (list, tuple)) else (found,)

    return list(bp.vmap(run, in_axes=axes, out_axes=-1)(*values))


@computes("random_wrap", "random_unwrap", "random_clone")
def same_words(keys, *, impl=None):
    return keys


@computes("threefry2x32")
def threefry(key0, key1, x0, x1):
    """Twenty rounds of Threefry-2x32 over uint32 words."""
    keys = [key0, key1, bp.bitwise_xor(bp.bitwise_xor(key0, key1), bp.full((), _PARITY, dtype=bp.uint32, device=key0.device))]
    x0, x1 = x0 + keys[0], x1 + keys[1]
    for i in range(5):
        for rotation in _ROTATIONS[i % 2]:
            x0 = x0 + x1
            x1 = bp.bitwise_or(bp.bitwise_left_shift(x1, rotation), bp.bitwise_right_shift(x1, 32 - rotation))
            x1 = bp.bitwise_xor(x0, x1)
        x0, x1 = x0 + keys[(i + 1) % 3], x1 + keys[(i + 2) % 3] + bp.full((), i + 1, dtype=bp.uint32, device=x1.device)
    return [x0, x1]


@computes("iota_2x32_shape")
def counted(*, device, shape):
    """The row-major place of each element as two words, the high one first."""
    size = math.prod(shape)
    if size >= 1 << 32:
        refuse("random arrays of 2^32 elements and more are not supported")
    low = ROWS["iota"](device=device, dtype=jnp.uint32, shape=(size,), dimension=0)
    return [bp.zeros(shape, dtype=bp.uint32, device=device), bp.reshape(low, shape)]
