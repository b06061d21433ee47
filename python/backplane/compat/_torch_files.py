"""torch.save and torch.load of paths and of open files."""

from __future__ import annotations

import os
import tempfile

from .._files._saving import load as load_of
from .._files._saving import save as save_of

__all__ = ["load_file", "save_file"]


def save_file(obj, f):
    """Writes to a path, or to an open binary file at its position."""
    if not hasattr(f, "write"):
        save_of(obj, f)
        return
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "saved")
        save_of(obj, path)
        with open(path, "rb") as written:
            f.write(written.read())


def load_file(f, map_location):
    """Reads a path, or an open binary file from its position on."""
    device = map_location if map_location is None or isinstance(map_location, str) or not callable(map_location) else None
    if not hasattr(f, "read"):
        return load_of(f, device)
    content = f.read()
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "loaded")
        with open(path, "wb") as written:
            written.write(content)
        return load_of(path, device)
