"""NumPy: Backplane's elementwise ops as ufuncs, and its other ops as functions of arrays.

    import backplane.numpy as bn

    wave = bn.ufunc("mine::wave")
    wave(np.linspace(0, 1, 5), out=result, where=mask)
    bn.softmax(np.ones((2, 3)), axis=-1)

bn.NAME is the op bp::NAME, and bn.SPACE.NAME the op of a plugin: a ufunc where the op is elementwise, a function otherwise. All of it
needs the Python package numpy, version 2 or later, an optional dependency: pip install numpy.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ._functions import function as function
    from ._ufuncs import ufunc as ufunc

__all__ = ["function", "ufunc"]
_HOMES = {"function": "_functions", "ufunc": "_ufuncs"}


class _Namespace:
    """The ops of a plugin's namespace."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> "Any":
        found = _named(self._name, name)
        setattr(self, name, found)
        return found

    def __repr__(self) -> str:
        return f"<backplane.numpy, ops of {self._name}>"


def _named(space, name):
    """The op as a ufunc, or as a function where it is not elementwise or has an argument without a value."""
    import backplane as bp

    op = getattr(getattr(bp.ops, space), name)
    full_name = op.full_name
    if op.__name__.endswith("_") and not full_name.endswith("_"):
        raise AttributeError(f"backplane.numpy has no {name}: ops in place belong to tensors. Fix: pass out=")
    from ._functions import function
    from ._ufuncs import is_elementwise, ufunc

    if is_elementwise(op):
        try:
            return ufunc(full_name)
        except (bp.ArgumentTypeError, bp.ArgumentValueError):
            return function(full_name)
    return function(full_name)


def __getattr__(name):
    """NumPy takes long to import, so the first use of a name imports it."""
    if name.startswith("__"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    import backplane as bp

    try:
        import numpy
    except ImportError as error:
        raise ImportError("backplane.numpy needs the Python package numpy. Fix: pip install numpy") from error
    if int(numpy.__version__.partition(".")[0]) < 2:
        raise ImportError(f"backplane.numpy: found numpy {numpy.__version__}, expected version 2 or later. Fix: pip install -U numpy")
    if name in _HOMES:
        found = getattr(importlib.import_module("." + _HOMES[name], __name__), name)
    elif name in dir(bp.ops):
        found = _Namespace(name)
    else:
        try:
            found = _named("bp", name)
        except AttributeError as error:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}: {error}") from None
    globals()[name] = found
    return found


def __dir__():
    import backplane as bp

    return sorted({*__all__, *(name for name in dir(bp.ops.bp) if not name.endswith("_")), *dir(bp.ops)})
