"""The medians of PyTorch's `dim=`: the middle element, of two the smaller, and its position."""

from .. import _core
from .._calls._ops import NAMESPACE, ops
from .._calls._tensor_argument import given_tensor, require_real
from .._runtime._wraps import named_tuple
from ._manipulation_functions import normalized_axis

op = getattr(ops, NAMESPACE)


def _pair(function, values, indices):
    return named_tuple(function, ("values", "indices"))(values, indices)


def lower_median(function, x, dim, keepdim):
    """The middle element along dim, of two the smaller, and its position: NaN where there is one, or (nanmedian) of the others."""
    x = given_tensor(function, "x", x)
    require_real(function, "x", x)
    if not hasattr(dim, "__index__"):
        raise _core.ArgumentTypeError(
            f"{function}: argument dim: found {dim!r}, expected one axis (an int); axis takes several, for the mean of the two middle elements"
        )
    dim = normalized_axis(function, dim, max(x.ndim, 1), "dim")  # a tensor without dimensions accepts the axes 0 and -1
    if x.ndim == 0:
        return _pair(function, x, op.full([], 0, dtype=_core.int64, device=x.device))
    size = x.shape[dim]
    if size == 0:
        raise _core.ArgumentValueError(f"{function}: argument x: found no elements along axis {dim}, expected at least one")
    order, missing = op.argsort(x, dim), op.isnan(x)  # NaN last
    count = op.subtract(size, op.sum(missing, dim, dtype=_core.int64, keepdims=True))
    if function == "nanmedian":
        at = op.maximum(op.floor_divide(op.subtract(count, 1), 2), 0)
    else:
        at = op.where(op.equal(count, size), (size - 1) // 2, count)
    indices = op.take_along_axis(order, at, axis=dim)
    values = op.take_along_axis(x, indices, axis=dim)
    return _pair(function, *((values, indices) if keepdim else (op.squeeze(values, dim), op.squeeze(indices, dim))))
