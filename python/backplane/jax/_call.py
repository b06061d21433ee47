"""Backplane's functions as JAX primitives: values, derivatives of any order, batching, shapes.

One primitive calls a function of tensors, another calls one that is linear in its last arguments. Their rules make new functions
with Backplane's own transforms (jvp, vjp, vmap), and call these by the same primitives. So any nesting of JAX's transforms works.
"""

import ast
import functools

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir

import backplane as bp

from . import _ffi
from ._arrays import dtype_name, to_array, to_tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any


class Function:
    """A function of tensors that returns a list of tensors. Functions derived from it are kept, so that JAX's caches find them."""

    def __init__(self, run: "Callable[..., Sequence[bp.Tensor]]", name: str) -> None:
        self.run = run
        self.name = name
        self._derived: dict[Any, Function] = {}
        self._graphs: dict[Any, bp.Graph] = {}
        self._programs: dict[Any, _ffi.Program | None] = {}
        self.jitted: Any = None

    def derived(self, key: "Any", make: "Callable[[], Callable[..., Any]]") -> "Function":
        if key not in self._derived:
            self._derived[key] = Function(make(), f"{key[0]} of {self.name}")
        return self._derived[key]

    def graph(self, inputs: "Sequence[Any]") -> "tuple[Any, bp.Graph]":
        """The key of the shapes and dtypes, and the function's graph for them, with results in the dtypes that JAX has."""
        key = tuple((tuple(aval.shape), dtype_name(aval.dtype)) for aval in inputs)
        key = (key, jax.config.jax_enable_x64)
        if key not in self._graphs:
            names = self._names_of_sizes(key[0])
            numbers = {name: 7 + 4 * i for i, name in enumerate(names.values())}  # the example that a trace with dynamic sizes needs
            shapes = [[size if isinstance(size, int) else numbers[names[size]] for size in shape] for shape, _ in key[0]]
            examples = [bp.broadcast_to(bp.zeros((), dtype=getattr(bp, dtype)), shape) for shape, (_, dtype) in zip(shapes, key[0])]
            dynamic = [{axis: names[size] for axis, size in enumerate(shape) if not isinstance(size, int)} for shape, _ in key[0]] if names else None
            self._graphs[key] = bp.make_graph(lambda *tensors: tuple(map(in_dtype_of_jax, self.run(*tensors))), dynamic=dynamic)(*examples)
        return key, self._graphs[key]

    def _names_of_sizes(self, rows):
        """The symbolic sizes of jax.export by their names in a graph."""
        found: dict[Any, str] = {}
        for size in (size for shape, _ in rows for size in shape):
            if isinstance(size, int) or size in found:
                continue
            if not str(size).isidentifier():
                raise bp.ShapeError(f"{self.name}: found the symbolic size {size}, expected a name. Fix: name this size in jax.export.symbolic_shape")
            found[size] = f"size_{len(found)}"
        return found

    def avals(self, inputs: "Sequence[Any]") -> "list[Any]":
        """Shapes and dtypes of the results, by the ops' rules; nothing is computed."""
        key, graph = self.graph(inputs)
        sizes = {name: size for size, name in self._names_of_sizes(key[0]).items()}
        return [jax.ShapeDtypeStruct(tuple(_size(text, sizes) for text in value.dims), jnp.dtype(value.dtype)) for value in graph.outputs]

    def program(self, inputs: "Sequence[Any]") -> "_ffi.Program | None":
        key, graph = self.graph(inputs)
        if key not in self._programs:
            self._programs[key] = _ffi.program_of(graph)
        return self._programs[key]

    def on_arrays(self, *arrays: "Any") -> "tuple[np.ndarray, ...]":
        return tuple(to_array(tensor) for tensor in self.run(*map(to_tensor, arrays)))

    def tangents(self, moving: "tuple[int, ...]", count: int) -> "Function":
        """(primals, tangents of the moving ones) -> tangents of the floating results; linear in its last arguments."""

        def make():
            def run(*tensors):
                primals, directions = tensors[:count], tensors[count:]

                def of_moving(*values):
                    mixed = list(primals)
                    for place, value in zip(moving, values):
                        mixed[place] = value
                    return tuple(y for y in self.run(*mixed) if is_inexact(y))

                return bp.jvp(of_moving, tuple(primals[i] for i in moving), tuple(directions))[1]

            return run

        return self.derived(("jvp", moving, count), make)

    def transposed(self, n_fixed: int, shapes: "tuple[Any, ...]", wanted: "tuple[int, ...]") -> "Function":
        """(fixed arguments, cotangents) -> cotangents of the wanted ones of the linear arguments, whose shapes are given.

        JAX wants the transpose of a linear function, and a vjp of Backplane is its adjoint: both differ by conjugation.
        Where shapes are symbolic, zeros of these shapes stand behind the fixed arguments.
        """
        is_symbolic = not all(isinstance(size, int) for shape, _ in shapes for size in shape)
        n_before = n_fixed + len(shapes) if is_symbolic else n_fixed

        def make():
            def run(*tensors):
                fixed, cotangents = tensors[:n_fixed], tensors[n_before:]
                if is_symbolic:
                    zeros = [bp.zeros_like(like) for like in tensors[n_fixed:n_before]]
                else:
                    zeros = [bp.zeros(shape, dtype=getattr(bp, dtype)) for shape, dtype in shapes]

                def of_wanted(*values):
                    mixed = list(zeros)
                    for place, value in zip(wanted, values):
                        mixed[place] = value
                    return tuple(self.run(*fixed, *mixed))

                pullback = bp.vjp(of_wanted, *[zeros[i] for i in wanted])[1]
                return tuple(map(bp.conj, pullback(tuple(map(bp.conj, cotangents)))))

            return run

        return self.derived(("transpose", n_fixed, shapes, wanted), make)

    def batched(self, dims: "tuple[int | None, ...]") -> "Function":
        return self.derived(("vmap", dims), lambda: bp.vmap(lambda *tensors: tuple(self.run(*tensors)), in_axes=dims))


def in_dtype_of_jax(tensor: bp.Tensor) -> bp.Tensor:
    name = str(tensor.dtype).rpartition(".")[2]
    wanted = jax.dtypes.canonicalize_dtype(jnp.dtype(name)).name
    return tensor if name == wanted else tensor.astype(getattr(bp, wanted))


def _size(text, sizes):
    """A size in a graph's text, with JAX's sizes for its names."""
    return int(text) if text.isdigit() else eval(compile(ast.parse(text, mode="eval"), "size", "eval"), {"__builtins__": {}}, sizes)


def is_inexact(tensor: bp.Tensor) -> bool:
    return bp.isdtype(tensor.dtype, ("real floating", "complex floating"))


call_p, linear_p = Primitive("backplane_call"), Primitive("backplane_linear_call")
call_p.multiple_results = linear_p.multiple_results = True


def _abstract(*avals, fun, n_linear=0):
    return [jax.core.ShapedArray(row.shape, row.dtype) for row in fun.avals(avals)]


def _evaluate(primitive, *arrays, fun, n_linear=0):
    try:
        fun.graph(arrays)
    except bp.BackplaneError:  # it needs values, or is wrong: then this says so
        return [jnp.asarray(array) for array in fun.on_arrays(*arrays)]
    if fun.jitted is None:
        fun.jitted = jax.jit(functools.partial(primitive.bind, fun=fun, n_linear=n_linear))
    return fun.jitted(*arrays)


def _callback(*arrays, fun, n_linear=0):
    return jax.pure_callback(fun.on_arrays, fun.avals(arrays), *arrays)


def _lowering(ctx, *arguments, **parameters):
    """A call of the host, from a program for one device; an array on several devices would be gathered without a word."""
    where = ctx.module_context.axis_context
    if type(where).__name__ == "ShardingContext" and where.num_devices > 1:
        raise bp.DeviceError(f"{parameters['fun'].name}: the arguments lie on {where.num_devices} devices. Fix: call it under jax.shard_map, on the part of each device")
    program = parameters["fun"].program(ctx.avals_in) if ctx.module_context.platforms == ("cpu",) and _ffi.is_registered() else None
    if program is not None:
        return _ffi.lower(ctx, arguments, program)
    return mlir.lower_fun(functools.partial(_callback, **parameters), multiple_results=True)(ctx, *arguments)


def _zero_tangent(value):
    aval = jax.typeof(value)
    return ad.Zero(aval.to_tangent_aval() if hasattr(aval, "to_tangent_aval") else aval.at_least_vspace())


def _jvp(primitive, primals, tangents, **parameters):
    """Of both primitives: a linear function is differentiated in its fixed arguments, too."""
    fun = parameters["fun"]
    results = primitive.bind(*primals, **parameters)
    moving = tuple(i for i, tangent in enumerate(tangents) if type(tangent) is not ad.Zero)
    linear = fun.tangents(moving, len(primals))
    directions = [tangents[i] for i in moving]
    found = iter(linear_p.bind(*primals, *directions, fun=linear, n_linear=len(moving)) if moving else [])
    moved = []
    for y in results:
        is_floating = jnp.issubdtype(y.dtype, jnp.inexact)
        moved.append(next(found) if is_floating and moving else _zero_tangent(y))
    return results, moved


def _transpose(cotangents, *arguments, fun, n_linear):
    fixed, linear = arguments[: len(arguments) - n_linear], arguments[len(arguments) - n_linear :]
    if any(ad.is_undefined_primal(value) for value in fixed):
        raise NotImplementedError(f"{fun.name} is not linear in its first arguments")
    avals = [value.aval if ad.is_undefined_primal(value) else jax.typeof(value) for value in linear]
    shapes = tuple((tuple(aval.shape), dtype_name(aval.dtype)) for aval in avals)
    wanted = tuple(i for i, value in enumerate(linear) if ad.is_undefined_primal(value))
    cotangents = [ad.instantiate_zeros(value) for value in cotangents]
    symbolic = not all(isinstance(size, int) for shape, _ in shapes for size in shape)
    likes = [jnp.zeros(aval.shape, aval.dtype) for aval in avals] if symbolic else []
    found = linear_p.bind(*fixed, *likes, *cotangents, fun=fun.transposed(len(fixed), shapes, wanted), n_linear=len(cotangents))
    results = [None] * len(arguments)
    for place, value in zip(wanted, found):
        results[len(fixed) + place] = value
    return results


def _batch(primitive, arguments, dims, **parameters):
    parameters["fun"] = parameters["fun"].batched(tuple(dims))  # None: not batched
    results = primitive.bind(*arguments, **parameters)
    return results, [0] * len(results)


for _primitive in (call_p, linear_p):
    _primitive.def_impl(functools.partial(_evaluate, _primitive))
    _primitive.def_abstract_eval(_abstract)
    ad.primitive_jvps[_primitive] = functools.partial(_jvp, _primitive)
    batching.primitive_batchers[_primitive] = functools.partial(_batch, _primitive)
    mlir.register_lowering(_primitive, _lowering)
ad.primitive_transposes[linear_p] = _transpose
