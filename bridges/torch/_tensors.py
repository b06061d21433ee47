"""Tensors, dtypes and devices of PyTorch as Backplane's, and back: over the same memory on the CPU."""

from __future__ import annotations

import functools

import torch

import backplane as bp

NAMES = ("bool", "uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64", "complex64", "complex128")
_TO_BACKPLANE = {getattr(torch, name): getattr(bp, name) for name in NAMES}
_PLAIN = (torch.Tensor, torch.nn.Parameter)
_TO_TORCH = {ours: theirs for theirs, ours in _TO_BACKPLANE.items()}


def dtype_of(dtype):
    """Backplane's dtype for one of PyTorch's."""
    found = _TO_BACKPLANE.get(dtype)
    if found is None:
        raise bp.DtypeError(f"backplane.torch: found the dtype {dtype}, which Backplane does not have. Fix: cast to one of {', '.join(NAMES)}")
    return found


def torch_dtype_of(dtype):
    """PyTorch's dtype for one of Backplane's."""
    return _TO_TORCH[dtype]


def _refuse(x):
    if x.layout != torch.strided:
        raise bp.ArgumentTypeError(f"backplane.torch: found a tensor with layout {x.layout}, expected a strided one. Fix: call to_dense() first")
    if x.is_nested:
        raise bp.ArgumentTypeError("backplane.torch: found a nested tensor, expected a strided one. Fix: call to_padded_tensor() first")
    if x.is_quantized:
        raise bp.ArgumentTypeError("backplane.torch: found a quantized tensor. Fix: call dequantize() first")
    if x.device.type == "meta":
        raise bp.ArgumentValueError("backplane.torch: found a tensor on the device meta, which has no elements")


def from_torch(x, device=None):
    """A tensor of Backplane over the memory of x, without its history; a copy if device names another device than x's.

    Errors: ArgumentTypeError for sparse, quantized and nested tensors; DtypeError for a dtype that Backplane does not have;
        DeviceError for a tensor on a device that no backend of Backplane drives.
    """
    if is_plain(x):
        return view_of(x) if device is None else view_of(x).to(device)
    if not isinstance(x, torch.Tensor):
        raise bp.ArgumentTypeError(f"from_torch: argument x: found a {type(x).__name__}, expected a torch.Tensor")
    _refuse(x)
    dtype_of(x.dtype)
    x = x.detach()
    if x.is_conj() or x.is_neg():
        x = x.resolve_conj().resolve_neg()
    if x.device.type == torch._C._get_privateuse1_backend_name() and _device_bridge is not None:
        found = _device_bridge.to_backplane(x)
        return found if device is None else found.to(device)
    if x.device.type != "cpu" and x.device.type not in {str(info.device).partition(":")[0] for info in bp.devices()}:
        raise bp.DeviceError(
            f"backplane.torch: found a tensor on {x.device}, but no backend of Backplane drives that device. Fix: build the backend, or move the tensor with cpu()"
        )
    found = bp.from_dlpack(x)
    return found if device is None else found.to(device)


class _Memory:
    """A strided tensor of PyTorch on the CPU, as DLPack wants it: without the checks that Tensor.__dlpack__ repeats at each call."""

    __slots__ = ("tensor",)

    def __init__(self, tensor):
        self.tensor = tensor

    def __dlpack__(self, **_):
        return torch._C._to_dlpack_versioned(self.tensor)

    def __dlpack_device__(self):
        return 1, 0  # kDLCPU


_device_bridge = None  # the native part of the PyTorch device, once it is registered


def set_device_bridge(native):
    """From now on tensors of the PyTorch device are converted without a copy, and exported by DLPack as Backplane's."""
    global _device_bridge
    _device_bridge = native
    for name in ("__dlpack__", "__dlpack_device__"):
        setattr(torch.Tensor, name, _exporting_device_tensors(getattr(torch.Tensor, name), name))


def _exporting_device_tensors(method, name):
    """PyTorch's method, which knows private devices by a number that no other library reads."""

    @functools.wraps(method)
    def export(self, *args, **kwargs):
        if self.device.type != torch._C._get_privateuse1_backend_name():
            return method(self, *args, **kwargs)
        if self.requires_grad:
            raise BufferError(f"{name}: a tensor that requires a gradient cannot be exported. Fix: call detach() first")
        return getattr(_device_bridge.to_backplane(self.resolve_conj().resolve_neg()), name)(*args, **kwargs)

    return export


def is_plain(x):
    """Is x a strided tensor on the CPU, of a dtype that both have, whose memory holds its elements as they are?"""
    return type(x) in _PLAIN and x.is_cpu and x.layout is torch.strided and x.dtype in _TO_BACKPLANE and not (x.is_nested or x.is_conj() or x.is_neg())


def view_of(x):
    """from_torch for a plain tensor."""
    return bp.from_dlpack(_Memory(x.detach() if x.requires_grad else x))


def to_torch_tensor(x, device=None):
    """A tensor of PyTorch over the memory of x, without its history.

    device: "cpu" for a tensor of PyTorch's CPU (the default), which copies one that lies elsewhere. A device of the type that
    backplane.torch.register() made gives a tensor there, over the same memory if x lies on that device.
    A tensor with negative strides is copied.
    """
    if x.requires_grad:
        x = x.detach()
    if device is not None and torch.device(device).type != "cpu":
        from ._device import device as named

        wanted = torch.device(device)
        found = _device_bridge.from_backplane(x) if _device_bridge is not None else None
        if found is None or wanted.type != found.device.type:
            raise bp.DeviceError(f"to_torch_tensor: argument device: found {device}, expected cpu or {named(str(x.device))}")
        return found if wanted.index in (None, found.device.index) else found.to(wanted)
    backend = x.device.backend
    if backend != "cpu" and backend != "cuda":
        x = x.to("cpu")
        backend = "cpu"
    if not x.is_contiguous and min(x.stride(), default=0) < 0:  # PyTorch has no such tensors, and ends the process over one
        x = bp.ops.bp.copy(x)
    return torch._C._from_dlpack(x.__dlpack__(max_version=(1, 0))) if backend == "cpu" else torch.from_dlpack(x)
