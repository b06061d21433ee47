"""torch.amp: mixed precision, and the scaling of losses."""

from __future__ import annotations

from .. import GradScaler, autocast

__all__ = ["GradScaler", "autocast", "is_autocast_available"]
__dir__ = __all__.copy


def is_autocast_available(device_type: str) -> bool:
    """Can autocast take this kind of device? It takes every kind."""
    return isinstance(device_type, str)
