"""The module torch.<name> of the device, with the functions that torch.cuda has too."""

from __future__ import annotations

import os
import types

import torch

import backplane as bp

__all__ = ["module_of"]


class _Functions:
    """The functions of the module, over the native part. A device is an index, a torch.device, a name, or None: the current one."""

    def __init__(self, name, native):
        self._name, self._native = name, native
        self._process = os.getpid()

    def _index(self, device):
        if device is None:
            return torch._C._accelerator_getDeviceIndex()
        if isinstance(device, int):
            return device
        device = torch.device(device)
        if device.type != self._name:
            raise ValueError(f"torch.{self._name}: argument device: found {device}, expected a device of type {self._name}")
        return device.index if device.index is not None else torch._C._accelerator_getDeviceIndex()

    def _device(self, device):
        return bp.Device(self._native.device_name(self._index(device)))

    # ---- devices
    def is_available(self) -> bool:
        """Is there a device?"""
        return torch._C._accelerator_deviceCount() > 0 if hasattr(torch._C, "_accelerator_deviceCount") else True

    def is_initialized(self) -> bool:
        """Is the device in use in this process?"""
        return not self._is_in_bad_fork()

    def init(self) -> None:
        """Does nothing: registering the device initialises it."""

    def _is_in_bad_fork(self) -> bool:
        return os.getpid() != self._process

    def device_count(self) -> int:
        """How many devices there are."""
        return self._native.device_count()

    def current_device(self) -> int:
        """The index of the calling thread's current device."""
        return torch._C._accelerator_getDeviceIndex()

    def set_device(self, device) -> None:
        """Makes a device the calling thread's current one."""
        torch._C._accelerator_setDeviceIndex(self._index(device))

    def get_device_name(self, device=None) -> str:
        """Backplane's name of the device."""
        return self._native.device_name(self._index(device))

    def get_device_properties(self, device=None):
        """What bp.devices() says of the device."""
        wanted = self.get_device_name(device)
        return next(info for info in bp.devices() if str(info.device) == wanted)

    def synchronize(self, device=None) -> None:
        """Waits for all work of the device. Raises deferred errors of its ops, with their names."""
        bp.synchronize(self._device(device))

    # ---- random numbers
    def manual_seed(self, seed: int) -> None:
        """Seeds the generator of the current device, which is that of PyTorch's CPU."""
        torch.default_generator.manual_seed(int(seed))

    def manual_seed_all(self, seed: int) -> None:
        """Seeds the generators of all devices, which are that of PyTorch's CPU."""
        torch.default_generator.manual_seed(int(seed))

    def seed(self) -> None:
        """Seeds the generator of the current device with a random number."""
        torch.default_generator.seed()

    def seed_all(self) -> None:
        """Seeds the generators of all devices with a random number."""
        torch.default_generator.seed()

    def initial_seed(self) -> int:
        """The seed of the current device's generator."""
        return torch.default_generator.initial_seed()

    def get_rng_state(self, device=None) -> torch.Tensor:
        """The state of the device's generator."""
        return torch.default_generator.get_state()

    def get_rng_state_all(self) -> list[torch.Tensor]:
        """The states of all devices' generators."""
        return [torch.default_generator.get_state() for _ in range(self.device_count())]

    def set_rng_state(self, state: torch.Tensor, device=None) -> None:
        """Sets the state of the device's generator."""
        torch.default_generator.set_state(state)

    def set_rng_state_all(self, states) -> None:
        """Sets the states of all devices' generators."""
        for state in states:
            torch.default_generator.set_state(state)

    # ---- memory
    def memory_stats(self, device=None) -> dict[str, int]:
        """What bp.memory_stats says of the device."""
        return dict(bp.memory_stats(self._device(device)))

    def memory_allocated(self, device=None) -> int:
        """Bytes of the device's memory that tensors hold."""
        return self.memory_stats(device)["allocated_bytes"]

    def max_memory_allocated(self, device=None) -> int:
        """The largest memory_allocated so far."""
        return self.memory_stats(device)["peak_bytes"]

    def memory_reserved(self, device=None) -> int:
        """Bytes that Backplane holds of the device's memory."""
        return self.memory_stats(device)["reserved_bytes"]

    def reset_peak_memory_stats(self, device=None) -> None:
        """Begins a new peak."""
        bp.reset_peak_memory_stats(self._device(device))

    def empty_cache(self) -> None:
        """Returns the memory that is kept for reuse to the system."""
        bp.empty_cache(self._device(None))

    # ---- streams
    def Stream(self, device=None, priority=0):  # noqa: N802: PyTorch's name
        """A new stream of the device."""
        return torch.Stream(device=torch.device(self._name, self._index(device)), priority=priority)

    def Event(self, enable_timing=False):  # noqa: N802: PyTorch's name
        """A new event."""
        return torch.Event(device=self._name, enable_timing=enable_timing)

    def current_stream(self, device=None):
        """The calling thread's stream on the device."""
        return torch._C._accelerator_getStream(self._index(device))

    def set_stream(self, stream) -> None:
        """Makes a stream the calling thread's."""
        torch._C._accelerator_setStream(stream)

    def stream(self, stream):
        """A context manager that makes a stream the calling thread's."""
        return stream

    # ---- autocast
    def get_amp_supported_dtype(self) -> list[torch.dtype]:
        """The dtypes of torch.autocast on the device."""
        return [torch.float16, torch.bfloat16]

    def is_bf16_supported(self) -> bool:
        """Backplane computes bfloat16 on every device."""
        return True


def module_of(name, native):
    """The module torch.<name>."""
    functions = _Functions(name, native)
    module = types.ModuleType(f"torch.{name}", f"Backplane's devices as PyTorch's device type {name}.")
    for attribute in dir(functions):
        if attribute == "_is_in_bad_fork" or not attribute.startswith("_"):
            setattr(module, attribute, getattr(functions, attribute))
    module.device = _device_class(functions)
    module.random = module
    return module


def _device_class(functions):
    class device:
        """A context manager that makes a device the calling thread's current one."""

        def __init__(self, device):
            self.idx, self._before = functions._index(device), None

        def __enter__(self):
            self._before = functions.current_device()
            functions.set_device(self.idx)
            return self

        def __exit__(self, *failure):
            functions.set_device(self._before)

    return device
