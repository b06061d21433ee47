"""The libraries that `./dev bench cpu` compares: how each takes arrays in, and how an expression of a case becomes a timed call.

Loaded in the measuring process alone, whose environment already says how many threads each may use.
"""

import timeit

import cpu_epoch
import cpu_transformer


def array(value):
    return hasattr(value, "__array__")


class Library:
    def __init__(self, names, take):
        self.names, self.take = names, take

    def values(self, inputs):
        return {name: self.take(value) if array(value) else value for name, value in inputs.items()}

    def timer(self, expression, inputs):
        return timeit.Timer(expression, globals={**self.names, **self.values(inputs)})


class Jax(Library):
    """Compiled once per case, as its users do; a call ends when its result is there."""

    def timer(self, expression, inputs):
        import jax

        values = self.values(inputs)
        arrays = [name for name in inputs if array(inputs[name])]
        constants = {name: value for name, value in values.items() if name not in arrays}
        function = jax.jit(eval(f"lambda {', '.join(arrays)}: {expression}", {**self.names, **constants}))
        return timeit.Timer(f"block(function({', '.join(arrays)}))",
                            globals={"function": function, "block": jax.block_until_ready, **values})


def load(threads):
    import numpy as np
    import torch

    import backplane as bp

    torch.set_num_threads(threads)
    torch.set_num_interop_threads(1)
    libraries = {
        "ours": Library({"bp": bp, "epoch": cpu_epoch.epoch, "transformer_step": cpu_transformer.step}, lambda a: bp.asarray(a, copy=True)),
        "numpy": Library({"np": np}, lambda a: a.copy()),
        "torch": Library({"torch": torch, "F": torch.nn.functional, "epoch": cpu_epoch.epoch, "transformer_step": cpu_transformer.step}, lambda a: torch.from_numpy(a.copy())),
    }
    try:
        import jax
        import jax.numpy as jnp
        import jax.scipy.special  # noqa: F401 - an expression names it
    except ImportError:
        return libraries
    jax.config.update("jax_platforms", "cpu")
    libraries["jax"] = Jax({"jax": jax, "jnp": jnp, "jnn": jax.nn, "lax": jax.lax}, jnp.asarray)
    return libraries
