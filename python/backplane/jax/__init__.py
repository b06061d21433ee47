"""JAX: Backplane's ops and functions as JAX functions, and JAX's functions as Backplane's graphs.

    import backplane.jax as bj

    wave = bj.op("mine::wave")
    jax.jit(jax.grad(lambda x: wave(x).sum()))(x)
    graph = bj.to_graph(f)(x)

It needs the Python package jax, an optional dependency: pip install jax.
"""

try:
    import jax as _jax
except ImportError as error:
    raise ImportError("backplane.jax needs the Python package jax. Fix: pip install jax") from error

from ._function import function as function, op as op
from ._to_graph import to_graph as to_graph

__all__ = ["function", "op", "to_graph"]
