"""Tensor.at: updates of selected elements that return a new tensor, with the names of JAX and MLX."""

from __future__ import annotations

from .. import _core
from .._calls._ops import NAMESPACE, ops
from ._members import extend

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .._core import Operand, Tensor

op = getattr(ops, NAMESPACE)


class IndexedUpdate:
    """x.at[index]: its methods return x with the selected elements changed, and leave x as it is.

    If index selects an element more than once, add, subtract, multiply, divide, power, min and max apply every value to it, where
    x[index] += value keeps one. The value broadcasts to the shape of x[index]. The result has the dtype of x; a value of a higher
    kind is refused, as by x[index] = value. An index out of range is an error.
    """

    __slots__ = ("_index", "_x")

    def __init__(self, x, index):
        self._x = x
        self._index = index

    def __repr__(self) -> str:
        return f"Tensor.at[{self._index!r}]"

    def get(self) -> Tensor:
        """x[index]."""
        return self._x[self._index]

    def set(self, value: Operand) -> Tensor:
        """x with the value written at the index. If an element is selected more than once, the last value stays."""
        x = op.copy(self._x)
        x[self._index] = value
        return x

    def add(self, value: Operand) -> Tensor:
        """x with the value added at the index."""
        return self._combined("add", value)

    def subtract(self, value: Operand) -> Tensor:
        """x with the value subtracted at the index."""
        return self._combined("subtract", value)

    def multiply(self, value: Operand) -> Tensor:
        """x multiplied by the value at the index."""
        return self._combined("multiply", value)

    def divide(self, value: Operand) -> Tensor:
        """x divided by the value at the index; x is floating or complex."""
        self._refuse_integers("divide")
        return self._x / op.ones_like(self._x).at[self._index].multiply(value)

    def power(self, value: Operand) -> Tensor:
        """x raised to the power of the value at the index."""
        return op.pow(self._x, op.ones_like(self._x).at[self._index].multiply(value))

    def min(self, value: Operand) -> Tensor:
        """The smaller of x and the value at the index."""
        return self._combined("min", value)

    def max(self, value: Operand) -> Tensor:
        """The larger of x and the value at the index."""
        return self._combined("max", value)

    def _refuse_integers(self, name):
        if self._x.dtype.kind not in ("real floating", "complex floating"):
            raise _core.DtypeError(f"Tensor.at[index].{name}: found a tensor of dtype {self._x.dtype.name}, expected a floating or complex one. Fix: cast it")

    def _combined(self, name, value):
        x = self._x
        value = value if isinstance(value, _core.Tensor) else _core.asarray(value, device=x.device)
        if _KINDS.index(value.dtype.kind) > _KINDS.index(x.dtype.kind):
            raise _core.DtypeError(
                f"Tensor.at[index].{name}: found a value of dtype {value.dtype.name} for a tensor of dtype {x.dtype.name}, which the result keeps. Fix: cast one of them"
            )
        value = op.cast(value, x.dtype)
        index = self._index
        if value.ndim == 0 and isinstance(index, _core.Tensor) and index.dtype is _core.bool and index.shape == x.shape[: index.ndim]:
            # The number of positions depends on the values of the mask: a traced or batched mask has none.
            return op.where(op.reshape(index, [*index.shape, *[1] * (x.ndim - index.ndim)]), _ONE_BY_ONE[name](x, value), x)
        positions = op.reshape(op.arange(0, x.size, device=x.device), x.shape)[index]
        extra = value.ndim - positions.ndim
        if extra > 0 and all(size == 1 for size in value.shape[:extra]):  # as x[index] = value
            value = op.reshape(value, value.shape[extra:])
        values = op.reshape(op.broadcast_to(value, positions.shape), [-1])
        flat, places = op.reshape(x, [-1]), op.reshape(positions, [-1])
        return op.reshape(_COMBINE[name](flat, places, values), x.shape)


def _added(x, places, values):
    return op.index_put(x, [places], values, accumulate=True)


_KINDS = ("bool", "unsigned integer", "signed integer", "real floating", "complex floating")  # from the lowest
_COMBINE = {
    "add": _added,
    "subtract": lambda x, places, values: _added(x, places, op.negative(values)),
    "multiply": lambda x, places, values: op.scatter_prod(x, places, values),
    "min": lambda x, places, values: op.scatter_min(x, places, values),
    "max": lambda x, places, values: op.scatter_max(x, places, values),
}
_ONE_BY_ONE = {"add": op.add, "subtract": op.subtract, "multiply": op.multiply, "min": op.minimum, "max": op.maximum}


class IndexedUpdates:
    """What x.at returns: takes the index."""

    __slots__ = ("_x",)

    def __init__(self, x):
        self._x = x

    def __getitem__(self, index: Any) -> IndexedUpdate:
        return IndexedUpdate(self._x, index)

    def __repr__(self) -> str:
        return "Tensor.at"


class TensorMembers:
    """The property at."""

    @property
    def at(x: Tensor) -> IndexedUpdates:
        """Updates of selected elements that return a new tensor: x.at[index].set(value), .add, .subtract, .multiply, .divide, .power, .min, .max."""
        return IndexedUpdates(x)


extend(_core.Tensor, TensorMembers)
