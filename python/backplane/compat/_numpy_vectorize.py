"""NumPy's vectorize: a function that is called for each element, or for each part that a signature describes."""

from __future__ import annotations

import re
from typing import Any

from .. import _core
from .._api._manipulation_functions import broadcast_arrays, broadcast_shapes, ravel
from ._calls import float64, library_dtype, op

__all__ = ["Vectorized"]

_PART = r"\(\s*(?:[A-Za-z_]\w*|\d+)?\s*(?:,\s*(?:[A-Za-z_]\w*|\d+)\s*)*\)"
_WHOLE = re.compile(rf"\s*{_PART}(\s*,\s*{_PART})*\s*->\s*{_PART}(\s*,\s*{_PART})*\s*")


def _parsed(signature):
    """([names of the last axes of each argument], [the same of each result])."""
    if not _WHOLE.fullmatch(signature):
        raise _core.ArgumentValueError(f"vectorize: argument signature: found {signature!r}, expected a form like '(n),(n)->()'")
    return [[[name.strip() for name in part.strip("() ").split(",") if name.strip()] for part in re.findall(_PART, side)] for side in signature.split("->")]


class Vectorized:
    """NumPy's vectorize: a function of numbers, called for each element; vmap computes a function of tensors at once.

    signature: the last axes of each argument and of each result, as "(m,n),(n)->(m)": the function is called with tensors of these axes.
    excluded: places and names of arguments that go to the function as they are. otypes: a dtype per result.
    """

    def __init__(self, pyfunc: Any, otypes: Any = None, doc: str | None = None, excluded: Any = None, cache: bool = False, signature: str | None = None) -> None:
        self.pyfunc, self.otypes, self.excluded = pyfunc, otypes, set(excluded or ())
        self.signature = signature
        self._axes = None if signature is None else _parsed(signature)
        self.__doc__ = doc or getattr(pyfunc, "__doc__", None)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        names = [*range(len(args)), *kwargs]
        values = [*args, *kwargs.values()]
        mapped = [i for i, name in enumerate(names) if name not in self.excluded]

        def call(*row):
            given = list(values)
            for i, value in zip(mapped, row):
                given[i] = value
            return self.pyfunc(*given[: len(args)], **dict(zip(kwargs, given[len(args) :])))

        with float64:
            arrays = [_core.asarray(values[i]) for i in mapped]
        return self._by_element(call, arrays) if self._axes is None else self._by_part(call, arrays)

    def _by_element(self, call, arrays):
        arrays = broadcast_arrays(*arrays)
        numbers = [call(*row) for row in zip(*(ravel(x).tolist() for x in arrays))]
        if numbers and isinstance(numbers[0], tuple):
            return tuple(self._as_result([row[i] for row in numbers], arrays[0].shape, i) for i in range(len(numbers[0])))
        return self._as_result(numbers, arrays[0].shape, 0)

    def _as_result(self, numbers, shape, place):
        with float64:
            found = op.stack([_core.asarray(x) for x in numbers]) if numbers and isinstance(numbers[0], _core.Tensor) else _core.asarray(numbers)
        if self.otypes is not None:
            found = op.cast(found, library_dtype(self.otypes[place]))
        return op.reshape(found, [*shape, *found.shape[1:]])

    def _by_part(self, call, arrays):
        inputs, results = self._axes
        if len(inputs) != len(arrays):
            raise _core.ArgumentTypeError(f"vectorize: found {len(arrays)} arguments, expected {len(inputs)}, those of the signature {self.signature!r}")
        sizes: dict[str, int] = {}
        for place, (x, axes) in enumerate(zip(arrays, inputs)):
            if x.ndim < len(axes):
                raise _core.ShapeError(f"vectorize: argument {place}: found shape {tuple(x.shape)}, expected at least {len(axes)} axes, ({', '.join(axes)})")
            for name, size in zip(axes, x.shape[x.ndim - len(axes) :]):
                self._check(name, size, sizes, f"argument {place}")
        loops = [tuple(x.shape[: x.ndim - len(axes)]) for x, axes in zip(arrays, inputs)]
        shape = broadcast_shapes(*loops)
        count = 1
        for size in shape:
            count *= size
        if count == 0:
            raise _core.ShapeError(f"vectorize: found arguments that broadcast to {tuple(shape)} calls, expected at least one: results of no call have no shape")
        rows = []
        for x, axes in zip(arrays, inputs):
            inner = list(x.shape[x.ndim - len(axes) :])
            rows.append(op.reshape(op.broadcast_to(x, [*shape, *inner]), [count, *inner]))
        found = [call(*(x[i] for x in rows)) for i in range(count)]
        if len(results) == 1:
            return self._checked([(one,) for one in found], 0, results[0], sizes, shape)
        return tuple(self._checked(found, place, axes, sizes, shape) for place, axes in enumerate(results))

    def _checked(self, found, place, axes, sizes, shape):
        with float64:
            parts = [_core.asarray(row[place]) for row in found]
        for part in parts:
            if part.ndim != len(axes):
                raise _core.ShapeError(f"vectorize: result {place}: found shape {tuple(part.shape)}, expected ({', '.join(axes)})")
            for name, size in zip(axes, part.shape):
                self._check(name, size, sizes, f"result {place}")
        return self._as_result(parts, shape, place)

    def _check(self, name, size, sizes, where):
        expected = int(name) if name.isdigit() else sizes.setdefault(name, size)
        if size != expected:
            raise _core.ShapeError(f"vectorize: {where}: found size {size} for {name!r}, expected {expected}, as elsewhere in the signature {self.signature!r}")
