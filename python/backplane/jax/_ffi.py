"""Calls from XLA's programs without Python: the handler of XLA's foreign function interface, and the lowering of a call to it.

The handler (bridges/jax) is one target for all functions. What a call runs stands in its attributes, as the text of a graph, so
that programs which jax.export wrote run in other processes too, once they have called backplane.jax.register.
"""

import ctypes
import functools
import hashlib
import pathlib
import re
import warnings

import jax
import jax.numpy as jnp
import numpy as np
from jax.interpreters import mlir

import backplane as bp

from ._arrays import to_array

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

TARGET = "backplane_call"
LIBRARY = pathlib.Path(__file__).with_name("_xla_ffi.so")
_FAR_CONSTANT = re.compile(r'^  constant (%\d+) "(.*)": (.*) = (?:digest \w+)$', re.MULTILINE)


@functools.cache
def is_registered() -> bool:
    """Registers the target once. Calls go through the host callback, with a warning, where that fails."""
    try:
        library = ctypes.CDLL(str(LIBRARY))
        jax.local_devices(backend="cpu")  # an older backend would hide that it refuses the version
        jax.ffi.register_ffi_target(TARGET, jax.ffi.pycapsule(library.backplane_xla_call), platform="cpu")
    except Exception as error:
        warnings.warn(f"backplane.jax: calls go through JAX's host callback, some 100 times slower, because the handler could not be registered: {error}", stacklevel=2)
        return False
    return True


def register() -> "tuple[Any, ...]":
    """Makes XLA know Backplane's calls, and gives the checks that jax.export has to leave out for them.

    Traced functions register by themselves. A process that only runs exported programs calls this first. It starts JAX's CPU backend.

    Errors: DeviceError if the handler cannot be registered.

    Example:
        >>> exported = jax.export.export(jax.jit(wave), disabled_checks=bj.register())(x)  # doctest: +SKIP
    """
    if not is_registered():
        raise bp.DeviceError("backplane.jax.register: the handler of XLA's calls could not be registered; the warning gives the reason")
    import jax.export

    return (jax.export.DisabledSafetyCheck.custom_call(TARGET),)


class Program:
    """A graph as an attribute of a call: its text, and constants that become operands because the text has a digest in their place."""

    def __init__(self, graph: bp.Graph) -> None:
        text = str(graph)
        names = [f"constant.{i}" for i in range(len(graph.constants))]
        lifted, rows = [], []

        def lift(match):
            place, name, kind = match[1], match[2], match[3]
            lifted.append(graph.constants[names.index(name)])
            rows.append(f'  input {place} "lifted_{len(lifted)}": {kind}')
            return ""

        text = _FAR_CONSTANT.sub(lift, text)
        if rows:  # behind the inputs, which come first
            head, separator, rest = text.rpartition('\n  input %') if "\n  input %" in text else ("", "", text)
            line, _, rest = rest.partition("\n")
            text = head + separator + line + "\n" + "\n".join(rows) + "\n" + rest
        self.text = "\n".join(line for line in text.splitlines() if line)
        self.key = int.from_bytes(hashlib.sha256(self.text.encode()).digest()[:8], "little", signed=True)
        self.constants = lifted
        bp.parse_graph(self.text)  # raises where the text is not all of the graph


def program_of(graph: bp.Graph) -> "Program | None":
    """None: the function is not a graph of ops alone, because it calls Python or draws random numbers."""
    if graph.updates or "\n  generator " in str(graph):
        return None
    try:
        return Program(graph)
    except (bp.BackplaneError, ValueError):
        return None


def lower(ctx, operands, program):
    constants = [mlir.ir_constant(np.asarray(to_array(x))) for x in program.constants]
    types = [jax.core.ShapedArray(tuple(x.shape), jnp.dtype(x.dtype.name)) for x in program.constants]
    whole = ctx.replace(avals_in=[*ctx.avals_in, *types])
    return jax.ffi.ffi_lowering(TARGET)(whole, *operands, *constants, graph=program.text, key=np.int64(program.key))
