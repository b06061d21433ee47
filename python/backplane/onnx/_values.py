"""Values of a model while it runs: tensors, and host values, which Python knows while a function is traced.

Shapes, axes and what a model computes of them are host values: NumPy arrays, with dtype object where sizes are dynamic. So the
shapes of later tensors do not depend on the values of tensors, and the model can be traced.
"""

import _thread

import numpy as np

import backplane as bp
from backplane import Tensor

from ._types import carried

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

HOST_LIMIT = 4096  # elements; larger values are tensors


class Host:
    """A value that Python knows. fixed: it is the same at each call, so its tensors are kept, one per device."""

    __slots__ = ("array", "fixed", "tensors")

    def __init__(self, array: "np.ndarray | None", fixed: bool = False) -> None:
        self.array = array
        self.fixed = fixed
        self.tensors: dict[str, Tensor] = {}

    @property
    def is_small(self) -> bool:
        return self.array is not None and self.array.size <= HOST_LIMIT

    def tensor(self, device: "bp.Device") -> Tensor:
        name = str(device)
        found = self.tensors.get(name)
        if found is None:
            if not self.fixed:
                return _tensor_of_numbers(self.array, device)
            found = self.tensors[name] = bp.unguarded(_outside_of_traces, self._made, device)
        return found

    def place(self, device: "bp.Device") -> None:
        """Makes the tensor of a fixed value, outside of traces."""
        self.tensors.setdefault(str(device), self._made(device))

    def _made(self, device):
        for tensor in self.tensors.values():
            return tensor.to(device)
        return to_tensor(self.array, device)


def fixed_tensor(tensor: Tensor) -> Host:
    """A value that is the same at each call, computed when the model was loaded."""
    host = Host(None, fixed=True)
    host.tensors[str(tensor.device)] = tensor
    if tensor.size <= HOST_LIMIT and tensor.dtype != bp.bfloat16:
        host.array = tensor.numpy()
    return host


def to_tensor(array: np.ndarray, device: "bp.Device | None" = None) -> Tensor:
    array = carried(np.asarray(array))
    if array.dtype.name == "bfloat16":
        return bp.cast(bp.asarray(array.astype(np.float32), device=device), bp.bfloat16)
    return bp.asarray(np.ascontiguousarray(array).reshape(array.shape), device=device)


def _outside_of_traces(function, *args):
    """function(*args) where no transform and no trace is active: these belong to a thread."""
    results: list[Any] = []
    errors: list[BaseException] = []
    done = _thread.allocate_lock()
    done.acquire()

    def run():
        try:
            results.append(function(*args))
        except BaseException as error:
            errors.append(error)
        finally:
            done.release()

    _thread.start_new_thread(run, ())
    done.acquire()
    if errors:
        raise errors[0]
    return results[0]


def _tensor_of_numbers(array, device):
    if array.dtype == object:  # sizes, of which a trace keeps the expressions
        parts = [bp.full((1,), number, dtype=bp.int64, device=device) for number in array.reshape(-1)]
        return bp.reshape(bp.concat(parts), array.shape) if parts else bp.zeros(array.shape, dtype=bp.int64, device=device)
    if array.size == 0:
        return bp.zeros(array.shape, dtype=getattr(bp, array.dtype.name), device=device)
    return bp.asarray(array.tolist(), dtype=getattr(bp, array.dtype.name), device=device)


def host_array(value: "Host | Tensor", argument: str) -> np.ndarray:
    """The elements of a value that an op needs to know before it runs: axes, sizes, pads.

    Errors: ArgumentValueError in a trace, where the value depends on the values of the inputs.
    """
    if isinstance(value, Host):
        if value.array is not None:
            return value.array
        value = next(iter(value.tensors.values()))
    try:
        return value.detach().numpy()
    except bp.ArgumentValueError as error:
        raise bp.ArgumentValueError(
            f"{argument} depends on the values of the model's inputs, which a traced function does not know. Fix: call the model uncompiled"
        ) from error


def integers(array: "np.ndarray | None") -> "list[int]":
    """The numbers of a host array of integers, as Python ints or as sizes."""
    return [] if array is None else [number if array.dtype == object else int(number) for number in array.reshape(-1)]


def is_plain(*sizes: int) -> bool:
    """Whether none is a dynamic size of a trace. type() of such a size says int where Python calls it, but not where map does."""
    return set(map(type, sizes)) <= {int}


def shape_array(shape: "Sequence[int]") -> np.ndarray:
    """The int64 array of a shape; an object array where a size is dynamic."""
    if is_plain(*shape):
        return np.array(shape, dtype=np.int64)
    array = np.empty(len(shape), dtype=object)
    for i, size in enumerate(shape):
        array[i] = size
    return array


def prod(sizes: "Sequence[int]") -> int:
    result = 1
    for size in sizes:
        result = result * size
    return result
