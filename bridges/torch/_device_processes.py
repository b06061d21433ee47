"""What PyTorch's modules for several devices or processes, which know CUDA alone, do with the device."""

from __future__ import annotations

import functools
from multiprocessing.reduction import ForkingPickler

import torch
from torch import _utils
from torch.multiprocessing import reductions

import backplane as bp

__all__ = ["register"]


def register(name: str):
    """For the process: tensors of the device `name` are not sent to other processes, and DataParallel runs a module where it is."""
    for kind in (torch.Tensor, torch.nn.Parameter):
        ForkingPickler.register(kind, _reduced_by(ForkingPickler._extra_reducers.get(kind, reductions.reduce_tensor), name))
    torch.nn.DataParallel.__init__ = _on_one_device(torch.nn.DataParallel.__init__, name)


def _reduced_by(reduce, name):
    @functools.wraps(reduce)
    def reduced(x):
        if x.device.type == name:
            raise bp.DeviceError(f"torch.multiprocessing: found a tensor on {x.device}, whose memory other processes cannot share. Fix: send x.cpu()")
        return reduce(x)

    return reduced


def _on_one_device(start, name):
    @functools.wraps(start)
    def started(self, module, device_ids=None, *args, **kwargs):
        if _utils._get_available_device_type() != name:
            return start(self, module, device_ids, *args, **kwargs)
        if device_ids is not None and len(device_ids) > 1:
            raise bp.DeviceError(f"torch.nn.DataParallel: argument device_ids: found {len(device_ids)} devices of Backplane, expected one. Fix: use bp.distributed")
        torch.nn.Module.__init__(self)
        self.module = module if not device_ids else module.to(torch.device(name, _utils._get_device_index(device_ids[0])))
        self.device_ids = []  # as on PyTorch's CPU: forward calls the module

    return started
