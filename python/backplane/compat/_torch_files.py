"""torch.save and torch.load of paths and of open files."""

from __future__ import annotations

from .._files._saving import load as load_of
from .._files._saving import save as save_of

__all__ = ["load_file", "save_file"]


def save_file(obj, f):
    """Writes to a path, or to an open binary file at its position."""
    save_of(obj, f)


def load_file(f, map_location):
    """Reads a path, or an open binary file from its position on."""
    return load_of(f, map_location if map_location is None or isinstance(map_location, str) or not callable(map_location) else None)
