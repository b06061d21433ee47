"""JAX: Backplane's ops and functions as JAX functions, and JAX's functions as Backplane's graphs.

    import backplane.jax as bj

    wave = bj.op("mine::wave")
    jax.jit(jax.grad(lambda x: wave(x).sum()))(x)
    graph = bj.to_graph(f)(x)

Its functions need the Python package jax, an optional dependency: pip install jax.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ._ffi import register as register
    from ._function import function as function, op as op
    from ._to_graph import to_graph as to_graph

__all__ = ["function", "op", "register", "to_graph"]
_HOMES = {"function": "_function", "op": "_function", "register": "_ffi", "to_graph": "_to_graph"}


def __getattr__(name):
    """JAX takes long to import, so the first access imports it."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    try:
        import jax  # noqa: F401
    except ImportError as error:
        raise ImportError("backplane.jax needs the Python package jax. Fix: pip install jax") from error
    found = globals()[name] = getattr(importlib.import_module("." + _HOMES[name], __name__), name)
    return found


def __dir__():
    return sorted(__all__)
