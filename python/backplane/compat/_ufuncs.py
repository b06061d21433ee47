"""NumPy's elementwise functions: their arguments, and their methods reduce, accumulate, reduceat, outer and at.

Reductions that the registry has (sum, prod, max, ...) are used where they mean the same. Other functions are applied to slices, one
after the other as NumPy does; associative ones to halves, in as many calls as the logarithm of the size.
"""

from __future__ import annotations

from .. import _core
from .._api._indexing_functions import scatter
from .._tensors._numpy_protocol import REDUCTIONS
from ._calls import float64, given, op, require_one_of, written

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_KINDS = ("bool", "unsigned integer", "signed integer", "real floating", "complex floating")
_USUAL = ("same_kind", "K")
_PLAIN = (_core.Tensor, float, int)
# Running reductions of the registry that mean the same; REDUCTIONS are the others.
_RUNNING = {"add": "cumulative_sum", "multiply": "cumulative_prod", "maximum": "cummax", "minimum": "cummin"}
_ASSOCIATIVE = ("bitwise_and", "bitwise_or", "bitwise_xor", "fmax", "fmin", "gcd", "hypot", "lcm", "logaddexp", "logaddexp2", "logical_and", "logical_or", "logical_xor")
_IDENTITIES = {
    "add": 0, "multiply": 1, "logical_and": True, "logical_or": False, "logical_xor": False, "bitwise_and": -1, "bitwise_or": 0, "bitwise_xor": 0, "gcd": 0,
    "hypot": 0.0, "logaddexp": float("-inf"), "logaddexp2": float("-inf"),
}  # fmt: skip


class Elementwise:
    """An elementwise function with NumPy's arguments, as a ufunc has them."""

    nin, nout, signature = 1, 1, None

    def __init__(self, function: Callable[..., Any], name: str) -> None:
        self._function, self.__name__, self.__doc__ = function, name, function.__doc__

    def __repr__(self) -> str:
        return f"<function '{self.__name__}' of backplane.compat.numpy>"

    @property
    def nargs(self) -> int:
        """How many operands and results it has."""
        return self.nin + self.nout

    @property
    def identity(self) -> Any:
        """What a reduction of no elements gives; None where that is refused."""
        return _IDENTITIES.get(self.__name__)

    def _run(self, operands, out, where, casting, order, dtype, subok):
        require_one_of(self.__name__, "casting", casting, ("same_kind",))
        require_one_of(self.__name__, "order", order, ("K", "C", "A"))
        with float64:
            if dtype is not None:
                operands = [_core.asarray(x, dtype=dtype) if _promotes(x, dtype) else _refuse_dtype(self.__name__, x, dtype) for x in operands]
            else:
                operands = numpys_operands(self.__name__, operands)
            found = self._function(*operands)
        if where is not True:
            if out is None:
                raise _core.ArgumentValueError(f"{self.__name__}: found where without out, expected both; out holds the elements where `where` is false")
            target = out[0] if isinstance(out, tuple) else out
            found = op.where(_core.asarray(where), found, target)
        return written(self.__name__, found, out, broadcasts=True)

    def _changes(self, a):
        if not isinstance(a, _core.Tensor):
            raise _core.ArgumentTypeError(f"{self.__name__}.at: argument a: found {type(a).__name__}, expected a Tensor, which the call changes")
        return op.reshape(a, [-1]), op.reshape(op.iota(a.size, device=a.device), a.shape)


class Elementwise1(Elementwise):
    """An elementwise function of one operand."""

    def __call__(self, x: Any, /, out: Any = None, *, where: Any = True, casting: str = "same_kind", order: str = "K", dtype: Any = None, subok: bool = True) -> Any:
        if type(x) is _core.Tensor and x.dtype is _core.float64 and out is dtype is None and where is True and (casting, order) == _USUAL:
            return self._function(x)  # whose result does not depend on the default dtype
        return self._run([x], out, where, casting, order, dtype, subok)

    def at(self, a: Any, indices: Any, /) -> None:
        """Applies the function in place to the elements of a at the indices; to one that occurs twice, twice."""
        flat, positions = self._changes(a)
        values = op.copy(flat)
        for place in op.reshape(_core.asarray(positions[indices]), [-1]).tolist():
            values[place] = op.cast(self(values[place]), a.dtype)
        a[...] = op.reshape(values, a.shape)


class Elementwise2(Elementwise):
    """An elementwise function of two operands."""

    nin = 2

    def __call__(
        self, x1: Any, x2: Any, /, out: Any = None, *, where: Any = True, casting: str = "same_kind", order: str = "K", dtype: Any = None, subok: bool = True
    ) -> Any:
        if type(x1) is _core.Tensor and x1.dtype is _core.float64 and type(x2) in _PLAIN and out is dtype is None and where is True and (casting, order) == _USUAL:
            return self._function(x1, x2)
        return self._run([x1, x2], out, where, casting, order, dtype, subok)

    def outer(self, x1: Any, x2: Any, /, **more: Any) -> Any:
        """The function of each element of x1 with each of x2."""
        with float64:
            x1, x2 = _core.asarray(x1), _core.asarray(x2)
        return self(op.reshape(x1, [*x1.shape, *[1] * x2.ndim]), x2, **more)

    def reduce(self, array: Any, /, axis: Any = 0, dtype: Any = None, out: Any = None, keepdims: bool = False, initial: Any = None, where: Any = True) -> Any:
        """The function of all elements along axis (the first one unless stated; None for all of them), from left to right."""
        with float64:
            x = _core.asarray(array)
            alone = self.__name__.startswith("logical_")  # without such arguments
            if self.__name__ in REDUCTIONS and not (alone and (dtype, initial, where) != (None, None, True)):
                own = getattr(op, REDUCTIONS[self.__name__])
                found = own(x, axis, keepdims=keepdims, **given(dtype=dtype, initial=initial, where=None if where is True else where))
            else:
                found = self._folded(x if dtype is None else op.cast(x, dtype), axis, keepdims, initial, where)
        return written(self.__name__, found, out)

    def _folded(self, x, axis, keepdims, initial, where):
        axes = range(x.ndim) if axis is None else axis if isinstance(axis, tuple) else (axis,)
        if any(not -x.ndim <= one < x.ndim for one in axes):
            raise _core.OutOfRangeError(f"{self.__name__}.reduce: argument axis: found {axis}, expected axes of {x.ndim} dimensions")
        axes = [one % x.ndim for one in axes]
        if len(axes) > 1 and self.__name__ not in _ASSOCIATIVE:
            raise _core.ArgumentValueError(f"{self.__name__}.reduce: argument axis: found {len(axes)} axes, expected one: the order of the elements counts")
        start = self._start(initial)
        if where is not True:
            if start is None:
                raise _core.ArgumentValueError(f"{self.__name__}.reduce: found where without initial, expected both: this function has no identity")
            x = op.where(_core.asarray(where), x, start)
        rest = [one for one in range(x.ndim) if one not in axes]
        rows = op.reshape(op.permute_dims(x, axes + rest), [-1, *(x.shape[one] for one in rest)])
        found = self._fold(rows, start if initial is not None or not rows.shape[0] else None)
        return op.reshape(found, [1 if one in axes else size for one, size in enumerate(x.shape)]) if keepdims else found

    def _start(self, initial):
        return self.identity if initial is None else initial

    def _fold(self, rows, start):
        """The function of all rows."""
        if not rows.shape[0]:
            if start is None:
                raise _core.ShapeError(f"{self.__name__}.reduce: found no elements, expected at least one: this function has no identity")
            return self._typed(op.full(rows.shape[1:], start, dtype=rows.dtype))
        if self.__name__ in _ASSOCIATIVE:
            while rows.shape[0] > 1:
                half = rows.shape[0] // 2
                joined = self(rows[:half], rows[half : 2 * half])
                rows = joined if rows.shape[0] == 2 * half else op.concat([joined, op.cast(rows[2 * half :], joined.dtype)], axis=0)
            found = rows[0] if start is None else self(start, rows[0])
        else:
            found = rows[0] if start is None else self(start, rows[0])
            for place in range(1, rows.shape[0]):
                found = self(found, rows[place])
        return self._typed(found)

    def _typed(self, found):
        """A reduction of one element has the function's dtype too."""
        return op.cast(found, _core.bool) if self.__name__.startswith("logical_") else op.copy(found)

    def accumulate(self, array: Any, /, axis: int = 0, dtype: Any = None, out: Any = None) -> Any:
        """The running reduction along axis."""
        with float64:
            x = _core.asarray(array)
            if self.__name__ in _RUNNING:
                found = getattr(op, _RUNNING[self.__name__])(x, axis=axis, **given(dtype=dtype))
                found = found[0] if isinstance(found, tuple) else found
            else:
                rows = op.moveaxis(x if dtype is None else op.cast(x, dtype), axis, 0)
                parts = [self._typed(rows[place]) for place in range(min(rows.shape[0], 1))]
                for place in range(1, rows.shape[0]):
                    parts.append(self(parts[-1], rows[place]))
                found = op.moveaxis(op.stack(parts), 0, axis) if parts else x
        return written(self.__name__, found, out)

    def reduceat(self, array: Any, indices: Any, axis: int = 0, dtype: Any = None, out: Any = None) -> Any:
        """The reductions along axis from each index to the next; the element at an index that is not below the next."""
        with float64:
            x = op.moveaxis(_core.asarray(array), axis, 0)
        starts = op.reshape(_core.asarray(indices), [-1]).tolist()
        size = x.shape[0]
        if any(not 0 <= start < size for start in starts):
            raise _core.OutOfRangeError(f"{self.__name__}.reduceat: argument indices: found {starts}, expected numbers from 0 to {size - 1}")
        stops = [*starts[1:], size]
        parts = [self.reduce(x[start : max(stop, start + 1)], 0, dtype) for start, stop in zip(starts, stops)]
        found = op.moveaxis(op.stack(parts), 0, axis) if parts else x[:0]
        return written(self.__name__, found, out)

    def at(self, a: Any, indices: Any, b: Any, /) -> None:
        """Applies the function in place to the elements of a at the indices and b; repeated indices count each time."""
        flat, positions = self._changes(a)
        places = _core.asarray(positions[indices])
        with float64:
            b = op.broadcast_to(_core.asarray(b), places.shape)
            found = self(flat[:0], op.reshape(b, [-1])[:0]) if a.dtype is not b.dtype else None
        if found is not None and _KINDS.index(found.dtype.kind) > _KINDS.index(a.dtype.kind):
            raise _core.DtypeError(f"{self.__name__}.at: argument b: found {b.dtype.name} for a tensor of {a.dtype.name}, expected values of its kind; cast them")
        places, values = op.reshape(places, [-1]), op.reshape(op.cast(b, a.dtype), [-1])
        how = {"add": "sum", "multiply": "prod", "maximum": "amax", "minimum": "amin"}.get("add" if self.__name__ == "subtract" else self.__name__)
        if how is not None:
            flat = scatter(flat, 0, places, op.negative(values) if self.__name__ == "subtract" else values, how)
        else:
            flat = op.copy(flat)
            for step, place in enumerate(places.tolist()):
                flat[place] = op.cast(self(flat[place], values[step]), a.dtype)
        a[...] = op.reshape(flat, a.shape)


def _promotes(x, dtype):
    """May x be computed in the dtype, as NumPy's same_kind casts allow?"""
    return _KINDS.index(_core.asarray(x).dtype.kind) <= _KINDS.index(_core.as_dtype(dtype, "dtype").kind)


def _refuse_dtype(name, x, dtype):
    raise _core.DtypeError(f"{name}: argument dtype: found {dtype} for {_core.asarray(x).dtype.name} elements, expected a dtype of their kind or a wider kind")


# Bits of the integers that a floating dtype holds; NumPy promotes wider ones to a wider float.
_HELD_BITS = {"float16": 8, "float32": 16, "complex64": 16}
# Functions that NumPy computes in the smallest float that holds an integer dtype.
_OF_FLOATS = set(
    "acos acosh arccos arccosh arcsin arcsinh arctan arctanh asin asinh atan atanh cbrt cos cosh deg2rad degrees exp exp2 expm1 log log10 log1p log2 rad2deg "
    "radians sin sinh spacing sqrt tan tanh arctan2 atan2 copysign heaviside hypot logaddexp logaddexp2 nextafter".split()
)
_COMPARISONS = ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal")


def promoted(first: Any, second: Any) -> Any:
    """NumPy's common dtype of two: a float must hold the integers of the other."""
    if "integer" in first.kind:
        first, second = second, first
    if "floating" in first.kind and "integer" in second.kind:
        bits = 8 * second.itemsize
        if bits <= _HELD_BITS.get(first.name, 64):
            return first
        return _core.complex128 if first.kind == "complex floating" else _core.float32 if bits <= 16 else _core.float64
    if {first.kind, second.kind} == {"signed integer", "unsigned integer"} and max(first.itemsize, second.itemsize) == 8:
        signed, unsigned = (first, second) if first.kind == "signed integer" else (second, first)
        return _core.float64 if unsigned.itemsize == 8 else signed
    return _core.promote(first, second)


def _in_floats(x: Any) -> Any:
    if isinstance(x, (float, int, complex)) and not isinstance(x, bool):
        return x
    x = _core.asarray(x)
    if "floating" in x.dtype.kind or x.dtype.itemsize > 2:
        return x
    return op.cast(x, _core.float16 if x.dtype.itemsize == 1 else _core.float32)


def numpys_operands(name: str, operands: list[Any]) -> list[Any]:
    """The operands in the dtypes in which NumPy computes the function, where Backplane would use others."""
    if name in _OF_FLOATS:
        operands = [_in_floats(x) for x in operands]
    if len(operands) != 2 or name == "ldexp":
        return operands
    x1, x2 = (_core.asarray(x) if isinstance(x, (list, tuple)) else x for x in operands)
    if not isinstance(x1, _core.Tensor) or not isinstance(x2, _core.Tensor) or x1.dtype is x2.dtype:
        return [x1, x2]
    if name in _COMPARISONS and not any("floating" in x.dtype.kind for x in (x1, x2)):
        return [x1, x2]  # whole numbers are compared exactly, or refused
    dtype = promoted(x1.dtype, x2.dtype)
    return [x if x.dtype.kind == "bool" or x.dtype is dtype else op.cast(x, dtype) for x in (x1, x2)]
