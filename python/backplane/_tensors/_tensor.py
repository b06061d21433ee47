"""Methods of Tensor that need no speed: conversions, printing, copying, pickling, hooks."""

from __future__ import annotations

from .. import _core
from . import _namespace
from .._core import DType, Tensor
from ._members import extend
from ._numpy_protocol import array_function, array_ufunc

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import ModuleType
    from typing import Any

    from .._core import Device, Operand

cast = _core.Op("bp::cast", "cast")
copy = _core.Op("bp::copy", "copy")
stop_gradient = _core.Op("bp::stop_gradient", "stop_gradient")


DLPACK_HOST = 1  # the device type by which DLPack says that the host may read the memory


def _in_host_memory(x):
    return x.__dlpack_device__()[0] == DLPACK_HOST


def _numpy(x: Tensor) -> Any:
    """The elements as a NumPy array: over the same memory on the host, else a copy, which is read-only, for a write would not be seen.

    Refused where the tensor requires a gradient, which NumPy would lose: x.detach().numpy(); and inside grad, vjp and
    jvp, which would lose their derivative: backplane.stop_gradient(x).numpy(). Under no_grad a tensor that requires a
    gradient is read. The array is then read-only, for a write would not be seen.
    """
    import numpy

    plain = _core.exportable(x, "numpy")
    if x.dtype is _core.bfloat16:
        return _bfloats(plain, x.shape)
    if _in_host_memory(x):
        return numpy.asarray(memoryview(x))
    copied = numpy.asarray(memoryview(_core.to_device(plain.detach(), "cpu")))
    copied.flags.writeable = False
    return copied


def _bfloats(plain, shape):
    """NumPy has bfloat16 through ml_dtypes alone; a copy."""
    import numpy

    try:
        from ml_dtypes import bfloat16
    except ImportError:
        raise _core.DtypeError(
            "numpy: found bfloat16, which NumPy has only from the package ml_dtypes. Fix: install it, or use x.astype(backplane.float32) first"
        ) from None
    return numpy.frombuffer(_core.to_bytes(plain.detach()), numpy.uint16).view(bfloat16).reshape(shape)


def _array(x: Tensor, dtype: Any = None, copy: bool | None = None) -> Any:
    """NumPy's conversion protocol."""
    if copy is False and not _in_host_memory(x):
        raise ValueError("__array__: argument copy: found False, but the tensor is not in host memory")
    array = _numpy(x)
    if dtype is not None and array.dtype != dtype:
        if copy is False:
            raise ValueError("__array__: argument copy: found False, but another dtype needs a copy")
        return array.astype(dtype)
    return array.copy() if copy else array


# The versions of the array API standard whose functions the module has: each version's are among the next one's.
API_VERSIONS = ("2021.12", "2022.12", "2023.12", "2024.12", "2025.12")


def _array_namespace(x: Tensor, /, *, api_version: str | None = None) -> ModuleType:
    """The module of the array API's functions."""
    if api_version is not None and api_version not in API_VERSIONS:
        raise _core.ArgumentValueError(
            f"__array_namespace__: argument api_version: found {api_version!r}, expected one of {', '.join(API_VERSIONS)}"
        )
    return _namespace.package


def _astype(x: Tensor, dtype: DType, /, *, copy: bool = True, device: Device | str | None = None) -> Tensor:
    """The tensor in another dtype, and on another device where one is named; itself where nothing changes and copy is False.

    Python's float is float64 and its complex complex128, as in NumPy and PyTorch.
    """
    if dtype is float or dtype is complex:
        dtype = _core.float64 if dtype is float else _core.complex128
    if dtype is None or x.dtype == dtype:
        return _core.asarray(x, device=device, copy=True if copy else None)
    made = cast(x, dtype)
    return made if device is None else _core.asarray(made, device=device)


def _to_device(x: Tensor, device: Device | str, /, *, stream: None = None, non_blocking: bool = False) -> Tensor:
    """The tensor on another device, ready to use; itself where it is there already. non_blocking: as in `to`."""
    if stream is not None:
        raise _core.ArgumentValueError(
            "to_device: argument stream: found a stream, expected None; the copy is ordered with the work of both devices"
        )
    device = _core.Device(device) if isinstance(device, str) else device
    return x if x.device == device else _core.to_device(x, device, non_blocking)


def _target(word):
    """The dtype or the device that a word names."""
    if isinstance(named := getattr(_core, word, None), DType):
        return named
    try:
        return _core.Device(word)
    except _core.BackplaneError as unknown:
        try:
            return _core.as_dtype(word, "to")
        except TypeError:
            raise unknown from None


def _to(
    x: Tensor, /, *targets: Device | DType | Tensor | str, device: Device | str | None = None, dtype: DType | None = None, copy: bool = False,
    non_blocking: bool = False,
) -> Tensor:
    """The tensor on another device, in another dtype, or as another tensor is; itself where nothing changes and copy is False.

    non_blocking: between a device and memory that is pinned for it (`pin_memory`) it returns before the copy has run. Until the stream
    has passed it, a source on the host is left alone, and a result there (which is pinned) has no values.
    """
    for target in targets:
        target = _target(target) if isinstance(target, str) else target
        if isinstance(target, Tensor):
            device, dtype = target.device, target.dtype
        elif isinstance(target, _core.Device):
            device = target
        else:
            dtype = target
    found = x if dtype is None else _astype(x, dtype, copy=False)
    found = found if device is None else _to_device(found, device, non_blocking=non_blocking)
    return _core.asarray(found, copy=True) if copy and found is x else found


def _complex(x: Tensor) -> complex:
    """The only element of a tensor without axes, as Python's complex."""
    if x.ndim:
        raise TypeError(f"complex: found a tensor of {x.ndim} dimensions, expected 0. Fix: select an element")
    return complex(x.item())


def _contains(x: Tensor, value: Operand) -> bool:
    """Is any element equal to value? None, a text or another object without order equals none."""
    found = x == value
    return bool(found.any() if isinstance(found, Tensor) else found)


def _reversed(x: Tensor) -> Iterator[Tensor]:
    """The parts along axis 0 from the last to the first, as views."""
    return map(x.__getitem__, range(len(x) - 1, -1, -1))


def _repr(x: Tensor) -> str:
    from ._repr import tensor_repr

    return tensor_repr(x)


def _format(x: Tensor, spec: str) -> str:
    if spec or (x.ndim == 0 and not _core.transforms_of(x)):  # as NumPy's and PyTorch's numbers
        return format(x.item(), spec)
    return str(x)


def _rebuild(data, shape, dtype, device, requires_grad):
    """A tensor from its pickled parts; on the default device where the device is not there."""
    try:
        device = _core.Device(device)
    except _core.BackplaneError:
        device = _core.default_device()
    tensor = _core.from_bytes(data, shape, dtype, device)
    return tensor.requires_grad_() if requires_grad else tensor


def _leaf(x, who):
    """The tensor whose elements are copied; inside transforms, the value of a constant."""
    plain = _core.readable(x, who)
    if not plain.is_leaf:
        raise _core.ArgumentValueError(
            f"{who}: found a tensor with a history (made by {plain.grad_op}), expected a leaf; use x.detach() first"
        )
    return plain


def _reduce(x: Tensor) -> tuple[Any, ...]:
    x = _leaf(x, "pickle")
    return _rebuild, (_core.to_bytes(x), x.shape, x.dtype, str(x.device), x.requires_grad)


def _copy(x: Tensor) -> Tensor:
    """The same memory under a new object."""
    return x[...]


def _is_of_graph(x):
    """Is it copied in a graph, and in no transform there?"""
    found = {*_core.transforms_of(_core.asarray(0.0) + 1), *_core.transforms_of(x)}
    return bool(found) and found <= {"compile", "make_graph", "backward"}


def _deepcopy(x: Tensor, memo: dict[int, Any]) -> Tensor:
    if _core.unguarded(_is_of_graph, x):  # where a copy has no history
        return copy(stop_gradient(x))
    plain = _leaf(x, "deepcopy")
    copied = _core.asarray(plain.detach(), copy=True)
    if plain.requires_grad:
        copied.requires_grad_()
    if plain.grad is not None:
        copied.grad = _deepcopy(plain.grad, memo)
    memo[id(x)] = copied
    return copied


class _Hook:
    """What the tape calls. An in-place change gives a tensor another history, and the hook stays with the one before, where the
    handle does not reach it: so it can be emptied."""

    __slots__ = ("function",)

    def __init__(self, function):
        self.function = function

    def __call__(self, cotangent):
        return None if self.function is None else self.function(cotangent)


class HookHandle:
    """What register_hook returns: removes the hook."""

    __slots__ = ("_tensor", "_id", "_hook")

    def __init__(self, tensor, hook):
        self._tensor = tensor
        self._hook = hook
        self._id = _core.add_hook(tensor, hook)

    def remove(self):
        """Removes the hook; again: does nothing."""
        if self._tensor is not None:
            if not _core.remove_hook(self._tensor, self._id):
                self._hook.function = None
            self._tensor = None


def _register_hook(x: Tensor, function: Callable[[Tensor], Tensor | None]) -> HookHandle:
    """Calls function with this tensor's complete cotangent during backward; a Tensor that it returns replaces it."""
    if not callable(function):
        raise _core.ArgumentTypeError(f"register_hook: found a value of type {type(function).__name__}, expected a function of the cotangent")
    return HookHandle(x, _Hook(function))


class TensorMembers:
    """Conversions, printing, copying and pickling."""

    numpy = _numpy
    astype = _astype
    to = _to
    to_device = _to_device
    register_hook = _register_hook
    __array__ = _array
    __array_namespace__ = _array_namespace
    __array_ufunc__ = array_ufunc
    __array_function__ = array_function
    __complex__ = _complex
    __contains__ = _contains
    __reversed__ = _reversed
    __repr__ = _repr
    __format__ = _format
    __reduce__ = _reduce
    __copy__ = _copy
    __deepcopy__ = _deepcopy


extend(Tensor, TensorMembers)
