"""Models in ONNX's format: load reads one as a function of tensors, save writes a graph or a function.

    import backplane as bp

    f = bp.onnx.load("model.onnx")
    (y,) = f(x=bp.ones((1, 3, 224, 224)))

Reading needs the Python package onnx, an optional dependency: pip install onnx.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ._model import load as load
    from ._save import save as save
    from ._session import InferenceSession as InferenceSession
    from ._table import supported_ops as supported_ops

__all__ = ["InferenceSession", "load", "save", "supported_ops"]
_HOMES = {"InferenceSession": "_session", "load": "_model", "save": "_save", "supported_ops": "_every_op"}


def __getattr__(name):
    """The importer needs NumPy, so the first access imports it."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    found = globals()[name] = getattr(importlib.import_module("." + _HOMES[name], __name__), name)
    return found


def __dir__():
    return sorted(__all__)
