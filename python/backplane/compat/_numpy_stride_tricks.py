"""numpy.lib.stride_tricks: windows as views, and as_strided as a copy."""

from __future__ import annotations

from typing import Any

from .._api._manipulation_functions import broadcast_arrays as broadcast_arrays
from .._api._manipulation_functions import broadcast_shapes as broadcast_shapes
from .._calls._ops import NAMESPACE, ops
from . import _numpy_views
from ._calls import require_one_of

broadcast_to = getattr(ops, NAMESPACE).broadcast_to


def sliding_window_view(x: Any, window_shape: Any, axis: Any = None, *, subok: bool = False, writeable: bool = False) -> Any:
    """The windows of the size along the axes (all axes unless stated), as further axes at the end; a view."""
    return _numpy_views.sliding_window_view(x, window_shape, axis, subok, writeable)


def as_strided(x: Any, shape: Any = None, strides: Any = None, subok: bool = False, writeable: bool = True, *, check_bounds: Any = None) -> Any:
    """A copy of the elements of x at the strides, in bytes. Raises ValueError for positions outside of x."""
    require_one_of("as_strided", "writeable", writeable, (True, False))
    return _numpy_views.strided_copy(x, shape, strides)
