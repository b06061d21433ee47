"""What the calling thread or process is among the ranks of a program."""

from __future__ import annotations

import threading
from typing import Any

import backplane as bp


class World:
    """What this process, or a thread of run_threads, is among the ranks. has_device_provider: init was given `devices`."""

    def __init__(self, rank: int, size: int, provider: str, has_device_provider: bool = False) -> None:
        self.rank, self.size, self.provider, self.has_device_provider = rank, size, provider, has_device_provider
        self.group: Any = None  # of all ranks, made at its first use


class _Here(threading.local):
    world: World | None = None  # of a thread that is a rank by itself


here = _Here()
process: list[World] = []


def world(name: str) -> World:
    """The world of the caller; an error that names the function where there is none."""
    if here.world is not None:
        return here.world
    if not process:
        raise bp.DeviceError(f"{name}: this process is not connected to others; call bp.distributed.init() first")
    return process[0]
