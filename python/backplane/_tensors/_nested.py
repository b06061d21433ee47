"""Nested sequences that hold tensors among their numbers and rows: one tensor of them, which keeps their history.

`asarray` and assignments call this with a sequence whose shape they have checked.
"""

from .. import _core
from .._api._data_type_functions import result_type
from .._calls._ops import NAMESPACE, ops

op = getattr(ops, NAMESPACE)


def stacked(nested, shape):
    """The elements in the common dtype of tensors and arrays, numbers weakly, on the tensors' device."""
    elements = [nested]
    for _ in shape:
        elements = [element for part in elements for element in ([part] if isinstance(part, _core.Tensor) else part)]
    device = next(element.device for element in elements if isinstance(element, _core.Tensor))
    elements = [_core.asarray(element, device=device) if _is_array(element) else element for element in elements]
    dtype = result_type(*(_plain(element) for element in elements))
    if any(isinstance(element, _core.Tensor) and element.ndim for element in elements):
        return _stacked_rows(nested, shape, dtype, device)
    return op.reshape(op.stack([_element(element, dtype, device) for element in elements]), shape)


def _stacked_rows(part, shape, dtype, device):
    """The same where some of the rows are tensors."""
    if not shape or isinstance(part, _core.Tensor):
        return _element(_core.asarray(part, device=device) if _is_array(part) else part, dtype, device)
    return op.stack([_stacked_rows(row, shape[1:], dtype, device) for row in part])


def _is_array(element):
    return hasattr(element, "__dlpack__") and not isinstance(element, _core.Tensor)  # NumPy's numbers have it not


def _plain(element):
    """Other libraries' numbers as Python's."""
    return element.item() if hasattr(element, "item") and not isinstance(element, _core.Tensor) else element


def _element(element, dtype, device):
    if isinstance(element, _core.Tensor):
        return element if element.dtype == dtype else op.cast(element, dtype)
    return op.full((), _plain(element), dtype=dtype, device=device)
