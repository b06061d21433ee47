"""Backplane as a device of PyTorch: one device type, with an ordinal for each device of Backplane."""

from __future__ import annotations

import torch

import backplane as bp
from backplane import _core

from . import _fallbacks, _tensors

__all__ = ["device", "is_registered", "register"]

# Errors after which PyTorch's CPU may compute the operator, or reports an error in its arguments.
_REFUSALS = (bp.DtypeError, bp.MissingRuleError, bp.ShapeError, bp.ArgumentTypeError, bp.ArgumentValueError, bp.OutOfRangeError, NotImplementedError)


class _State:
    name: str | None = None
    native = None


_state = _State()


def register(name: str = "backplane") -> torch.device:
    """Makes Backplane's devices available to PyTorch, as the device type `name`. Returns its first device, the CPU.

    Call it before the first use of the device; `device(name)` calls it. The native part is compiled at the first use on a machine.

    name: the name of the device type, and of the module torch.<name>.
    Errors: RuntimeError where the process has registered another name, of Backplane or of another backend.

    Example:
        >>> backplane.torch.register()
        device(type='backplane', index=0)
    """
    if not name.isidentifier():
        raise bp.ArgumentValueError(f"register: argument name: found {name!r}, expected a Python identifier")
    if _state.name is not None:
        if name != _state.name and name != "backplane":
            raise bp.ArgumentValueError(f"register: argument name: found {name!r}, but the device is registered as {_state.name!r}. Fix: call register first")
        return torch.device(_state.name, 0)
    _start(name)
    return torch.device(name, 0)


def _start(name):
    from . import _device_module, _device_modules, _device_operators, _device_processes
    from ._build import load_native

    taken = torch._C._get_privateuse1_backend_name()
    if taken not in ("privateuseone", name):
        raise bp.BackplaneError(
            f"register: the process has another private device, {taken!r}, and PyTorch has one per process. Fix: use a process without that backend"
        )
    native = load_native()
    dtypes = [getattr(bp, dtype) for dtype in _dtype_names()]
    _fallbacks.connect(native)
    native.start((_core.tensor_handle, _core.tensor_from_handle, dtypes, _REFUSALS))
    for info in bp.devices():
        native.add_device(str(info.device))
    _state.native = native
    torch.utils.rename_privateuse1_backend(name)
    torch._register_device_module(name, _device_module.module_of(name, native))
    torch.utils.generate_methods_for_privateuse1_backend(for_tensor=True, for_module=True, for_packed_sequence=True, for_storage=True)
    _state.name = name
    _register_rows(native)
    _device_operators.register()
    _device_modules.keep_shared_parameters()
    _device_processes.register(name)
    _tensors.set_device_bridge(native)


def _dtype_names():
    """In the order of the contract's numbers."""
    return ("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "bfloat16", "float32", "float64", "complex64", "complex128")


def _register_rows(native):
    from . import _device_programs
    from ._device_forms import forms, is_free_of_sizes

    done = set()
    for name, row, kinds, form in forms():
        if name not in done:
            done.add(name)
            native.add_row(name, row, kinds, form, is_free_of_sizes(row), _device_programs)


def is_registered() -> bool:
    """Is the device registered?"""
    return _state.name is not None


def device(name: bp.Device | str = "cpu") -> torch.device:
    """The torch.device of a device of Backplane, by its name there.

    Errors: ArgumentValueError for an unknown name, with those that exist.

    Example:
        >>> backplane.torch.device("cpu")
        device(type='backplane', index=0)
    """
    found = bp.Device(str(name))  # its error lists the devices
    register()
    return torch.device(_state.name, _state.native.add_device(str(found)))


def is_device(place):
    """Is a torch.device one of Backplane's?"""
    return place.type == _state.name


def name_of(place):
    """The name that Backplane has for one of its torch.devices; without an index, of the calling thread's current one."""
    return _state.native.device_name(torch._C._accelerator_getDeviceIndex() if place.index is None else place.index)
