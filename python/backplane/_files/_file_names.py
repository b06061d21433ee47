"""Paths as the system knows them."""

from __future__ import annotations

from .. import _core

TYPE_CHECKING = False
if TYPE_CHECKING:
    import os


def file_name(function: str, path: str | os.PathLike[str], argument: str = "path") -> bytes:
    """The bytes of a path, which need not be text. A zero byte would end it for the system."""
    import os

    name = os.fsencode(path)
    if b"\0" in name:
        raise _core.ArgumentValueError(f"{function}: argument {argument}: found {path!r}, expected a path without zero bytes")
    return name
