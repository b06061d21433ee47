"""Tensors in containers that torch.save wrote, read without running what a pickle asks for.

The archive has a pickle of the containers and a file of bytes per storage. Of the pickle's functions and classes a list is known
here, each with a plain stand-in; every other name is refused.
"""

from __future__ import annotations

import io
import pickle
import zipfile
from collections import OrderedDict

from .. import _core
from .._calls._ops import ops

__all__ = []

_STORAGES = {
    "BoolStorage": "bool", "ByteStorage": "uint8", "CharStorage": "int8", "ShortStorage": "int16", "IntStorage": "int32",
    "LongStorage": "int64", "HalfStorage": "float16", "BFloat16Storage": "bfloat16", "FloatStorage": "float32",
    "DoubleStorage": "float64", "ComplexFloatStorage": "complex64", "ComplexDoubleStorage": "complex128",
    "UInt16Storage": "uint16", "UInt32Storage": "uint32", "UInt64Storage": "uint64", "UntypedStorage": "uint8",
}  # fmt: skip
_DTYPES = {name: name for name in _STORAGES.values()} | {"half": "float16", "float": "float32", "double": "float64", "long": "int64", "int": "int32"}


class _Storage:
    """The elements behind tensors: a vector."""

    def __init__(self, read, key, dtype, count):
        self.read, self.key, self.dtype, self.count = read, key, dtype, count
        self.tensors = {}

    def elements(self, dtype):
        if dtype not in self.tensors:
            data = self.read(self.key)
            kind = _core.as_dtype(dtype, "load")
            if len(data) % kind.itemsize or (dtype == self.dtype and len(data) != self.count * kind.itemsize):
                raise pickle.UnpicklingError(f"storage {self.key} has {len(data)} bytes")
            self.tensors[dtype] = _core.from_bytes(data, [len(data) // kind.itemsize], kind, _core.Device("cpu"))
        return self.tensors[dtype]


def _view(elements, offset, shape, strides):
    """A copy of the elements at these places."""
    shape, strides = [int(n) for n in shape], [int(n) for n in strides]
    if len(shape) != len(strides) or offset < 0 or min([*shape, *strides], default=0) < 0:
        raise pickle.UnpicklingError(f"a tensor of shape {shape} and strides {strides}")
    last = offset + sum((n - 1) * s for n, s in zip(shape, strides))
    count = 1
    for n in shape:
        count *= n
    if count == 0:
        return ops.bp.reshape(elements[:0], shape)
    if last >= elements.size:
        raise pickle.UnpicklingError(f"a tensor of shape {shape} and strides {strides} beyond its storage")
    dense = [1] * len(shape)
    for axis in range(len(shape) - 2, -1, -1):
        dense[axis] = dense[axis + 1] * shape[axis + 1]
    if all(n == 1 or s == d for n, s, d in zip(shape, strides, dense)):
        return ops.bp.copy(ops.bp.reshape(elements[offset : offset + count], shape))
    if count > 4 * elements.size:
        raise pickle.UnpicklingError(f"a tensor of shape {shape}, which repeats the elements of its storage")
    places = ops.bp.full([1] * len(shape), offset, dtype=_core.int64)
    for axis, (n, s) in enumerate(zip(shape, strides)):
        steps = ops.bp.iota(n, dtype=_core.int64, device=_core.Device("cpu")) * s
        places = places + ops.bp.reshape(steps, [-1 if i == axis else 1 for i in range(len(shape))])
    return ops.bp.reshape(ops.bp.take(elements, ops.bp.reshape(places, [-1])), shape)


class _Reader(pickle.Unpickler):
    def __init__(self, data, read, device):
        super().__init__(io.BytesIO(data))
        self.read_bytes, self.device, self.storages = read, device, {}

    def find_class(self, module, name):
        found = self._known(module, name)
        if found is None:
            raise pickle.UnpicklingError(f"{module}.{name}, which is not a tensor or a container")
        return found

    def _known(self, module, name):
        if (module, name) == ("collections", "OrderedDict"):
            return OrderedDict
        if module in ("torch._utils", "torch._tensor"):
            own = {"_rebuild_tensor_v2": self._tensor, "_rebuild_tensor": self._tensor, "_rebuild_tensor_v3": self._tensor_of, "_rebuild_parameter": self._parameter,
                   "_rebuild_parameter_with_state": self._parameter, "_rebuild_from_type_v2": self._of_type}  # fmt: skip
            return own.get(name)
        if module in ("torch", "torch.storage") and name in _STORAGES:
            return _StorageType(_STORAGES[name])
        if module == "torch" and name in _DTYPES:
            return _core.as_dtype(_DTYPES[name], "load")
        plain = {("torch", "Size"): tuple, ("torch", "device"): str, ("builtins", "set"): set, ("torch", "Tensor"): _StorageType(""),
                 ("torch.nn.parameter", "Parameter"): self._parameter}  # fmt: skip
        return plain.get((module, name))

    def persistent_load(self, pid):
        kind, storage_type, key, _, count = pid
        if kind != "storage" or not isinstance(storage_type, _StorageType):
            raise pickle.UnpicklingError("a storage of another form")
        return self.storages.setdefault(key, _Storage(self.read_bytes, key, storage_type.dtype, count))

    def _tensor(self, storage, offset, shape, strides, requires_grad=False, hooks=None, metadata=None):
        return self._tensor_of(storage, offset, shape, strides, requires_grad, hooks, _core.as_dtype(storage.dtype, "load"))

    def _tensor_of(self, storage, offset, shape, strides, requires_grad, hooks, dtype, metadata=None):
        x = _view(storage.elements(dtype.name), offset, shape, strides)
        x = x if self.device is None else x.to(self.device)
        return x.requires_grad_() if requires_grad and "floating" in x.dtype.kind else x

    def _parameter(self, data, requires_grad=True, *rest):
        return data.detach().requires_grad_() if requires_grad else data

    def _of_type(self, function, kind, arguments, state):
        return function(*arguments)


class _StorageType:
    def __init__(self, dtype):
        self.dtype = dtype


def load_torch(path, device):
    """The object in a file of torch.save."""
    with zipfile.ZipFile(path) as archive:
        names = archive.namelist()
        pickled = next(name for name in names if name.endswith("data.pkl"))
        folder = pickled.removesuffix("data.pkl")
        order = archive.read(f"{folder}byteorder") if f"{folder}byteorder" in names else b"little"
        if order != b"little":
            raise _core.ArgumentValueError(f"load: {path} has big-endian elements, expected little-endian ones")

        def read(key):
            return archive.read(f"{folder}data/{key}")

        try:
            return _Reader(archive.read(pickled), read, device).load()
        except (pickle.UnpicklingError, KeyError, ValueError, TypeError, IndexError, AttributeError, EOFError, ImportError) as error:
            if isinstance(error, _core.BackplaneError):
                raise
            raise _core.ArgumentValueError(
                f"load: {path}: found {error}; expected a file of torch.save that contains tensors, numbers and strings in dicts, lists and tuples"
            ) from None
