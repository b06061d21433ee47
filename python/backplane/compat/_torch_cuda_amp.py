"""torch.cuda.amp, the older form of torch.amp: autocast and GradScaler without the name of the device.

As in PyTorch, both have no effect where no CUDA device is present, so that a program for CUDA runs on the CPU in full precision.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import backplane as bp

from .._runtime._system import devices

__all__ = ["GradScaler", "autocast", "custom_bwd", "custom_fwd"]
__dir__ = __all__.copy


def _is_present() -> bool:
    return any(device.device.backend == "cuda" for device in devices())


def autocast(enabled: bool = True, dtype: Any = bp.float16, cache_enabled: bool = True) -> bp.autocast:
    """backplane.autocast("cuda", dtype)."""
    return bp.autocast("cuda", dtype, enabled) if _is_present() else bp.autocast("cpu", bp.bfloat16, False)


class GradScaler(bp.GradScaler):
    """backplane.GradScaler for CUDA."""

    def __init__(
        self, init_scale: float = 65536.0, growth_factor: float = 2.0, backoff_factor: float = 0.5, growth_interval: int = 2000, enabled: bool = True
    ) -> None:
        super().__init__("cuda", init_scale, growth_factor, backoff_factor, growth_interval, enabled and _is_present())


def custom_fwd(fwd: Callable[..., Any] | None = None, *, cast_inputs: Any = None) -> Any:
    """Runs the forward part of a torch.autograd.Function: in full precision with its floating tensors in cast_inputs, or as it is."""
    if fwd is None:
        return functools.partial(custom_fwd, cast_inputs=cast_inputs)

    @functools.wraps(fwd)
    def run(*args: Any, **kwargs: Any) -> Any:
        if cast_inputs is None or not (_is_present() and bp.is_autocast_enabled("cuda")):
            return fwd(*args, **kwargs)

        def cast(x: Any) -> Any:
            return x.astype(cast_inputs) if isinstance(x, bp.Tensor) and x.dtype.kind == "real floating" else x

        with bp.autocast("cuda", enabled=False):
            return fwd(*bp.tree.map(cast, list(args)), **bp.tree.map(cast, kwargs))

    return run


def custom_bwd(bwd: Callable[..., Any]) -> Callable[..., Any]:
    """Runs the backward part of a torch.autograd.Function. Formulas of derivatives are never cast, so it changes nothing."""
    return bwd
