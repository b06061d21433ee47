"""Modules that move to the device keep the parameters that they share.

PyTorch replaces the parameters of a module that moves to a private device, each place on its own, where it keeps them on a move to
CUDA. So two places with one parameter would have two afterwards.
"""

from __future__ import annotations

import functools
import threading

import torch

__all__ = ["keep_shared_parameters"]

_moving = threading.local()


def keep_shared_parameters():
    """Wraps Module._apply, which all moves call, for the process."""
    apply = torch.nn.Module._apply

    @functools.wraps(apply)
    def apply_and_tie(self, *args, **kwargs):
        if getattr(_moving, "active", False):
            return apply(self, *args, **kwargs)
        places = {}
        for module in self.modules():
            for name, parameter in module._parameters.items():
                if parameter is not None:
                    places.setdefault(id(parameter), []).append((module, name, parameter))
        _moving.active = True
        try:
            found = apply(self, *args, **kwargs)
        finally:
            _moving.active = False
        for (first, first_name, before), *others in places.values():
            if first._parameters[first_name] is not before:
                for module, name, _ in others:
                    module._parameters[name] = first._parameters[first_name]
        return found

    torch.nn.Module._apply = apply_and_tie
