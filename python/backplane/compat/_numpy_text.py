"""Arrays as text: array2string, array_repr and array_str, written by NumPy itself under the print options that are set here."""

from __future__ import annotations

from .. import _core
from .._runtime._settings import get_printoptions

__all__ = ["array2string", "array_repr", "array_str"]


def _text(function, arr, words):
    import numpy

    options = {word: value for word, value in get_printoptions().items() if word in ("precision", "threshold", "edgeitems", "linewidth", "suppress")}
    with numpy.printoptions(**options):
        return getattr(numpy, function)(_core.asarray(arr).detach().numpy(), **{word: value for word, value in words.items() if value is not None})


def array2string(a, max_line_width, precision, suppress_small, separator, prefix, suffix, formatter, threshold, edgeitems, sign, floatmode):
    """The array as text, with NumPy's options."""
    words = {
        "max_line_width": max_line_width, "precision": precision, "suppress_small": suppress_small, "separator": separator, "prefix": prefix, "suffix": suffix,
        "formatter": formatter, "threshold": threshold, "edgeitems": edgeitems, "sign": sign, "floatmode": floatmode,
    }  # fmt: skip
    return _text("array2string", a, words)


def array_repr(arr, max_line_width, precision, suppress_small):
    """NumPy's repr of the array, as `array([1, 2])`."""
    return _text("array_repr", arr, {"max_line_width": max_line_width, "precision": precision, "suppress_small": suppress_small})


def array_str(arr, max_line_width, precision, suppress_small):
    """NumPy's str of the array, as `[1 2]`."""
    return _text("array_str", arr, {"max_line_width": max_line_width, "precision": precision, "suppress_small": suppress_small})
