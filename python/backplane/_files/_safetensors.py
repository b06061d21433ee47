"""The safetensors format: a header of names, dtypes, shapes and places as JSON, then the elements; and atomic writes of files.

Complex tensors are stored as pairs of reals, with a last axis of 2; the metadata names them.
"""

from __future__ import annotations

import gc
import json
import os
import tempfile
from collections.abc import Mapping

from .. import _core

__all__ = []

_CODES = {"bool": "BOOL", "uint8": "U8", "int8": "I8", "uint16": "U16", "int16": "I16", "float16": "F16", "bfloat16": "BF16", "uint32": "U32"}
_CODES |= {"int32": "I32", "float32": "F32", "float64": "F64", "int64": "I64", "uint64": "U64"}
_COMPLEX = {"complex64": "float32", "complex128": "float64"}
COMPLEX_KEY = "backplane.complex"


def write(path, tensors, metadata):
    """One file of {name: tensor}, whole or not at all: it is written beside its place, then moved there."""
    with replaced(path) as file:
        write_to(file, tensors, metadata)


def write_to(file, tensors, metadata):
    """Writes {name: tensor} at the position of an open file."""
    header, parts, offset = {}, [], 0
    pairs = [name for name, x in tensors.items() if x.dtype.name in _COMPLEX]
    metadata = {**metadata, **({COMPLEX_KEY: json.dumps(pairs)} if pairs else {})}
    if metadata:
        header["__metadata__"] = metadata
    for name, x in tensors.items():
        shape, dtype = list(x.shape), x.dtype.name
        if dtype in _COMPLEX:
            shape, dtype = [*shape, 2], _COMPLEX[dtype]
        size = x.nbytes
        header[name] = {"dtype": _CODES[dtype], "shape": shape, "data_offsets": [offset, offset + size]}
        offset += size
        parts.append(x)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    file.write(len(text).to_bytes(8, "little") + text)
    for x in parts:
        file.write(_core.to_bytes(x))


class replaced:
    """A file to write that takes the place of `path` at the end of the block, and only if the block ends well."""

    def __init__(self, path):
        self.path = os.path.abspath(os.fspath(path))

    def __enter__(self):
        folder, name = os.path.split(self.path)
        number, self.temporary = tempfile.mkstemp(prefix=f".{name}.", suffix=".part", dir=folder)
        self.file = os.fdopen(number, "wb")
        return self.file

    def __exit__(self, kind, error, trail):
        try:
            if kind is None:
                self.file.flush()
                os.fsync(self.file.fileno())
            self.file.close()
            if kind is None:
                os.chmod(self.temporary, _mode(self.path))
                os.replace(self.temporary, self.path)
                _sync_folder(os.path.dirname(self.path))
        finally:
            if os.path.exists(self.temporary):
                os.unlink(self.temporary)


def _mode(path):
    """The permissions of the existing file, or the default permissions of a new file."""
    try:
        return os.stat(path).st_mode & 0o777
    except FileNotFoundError:
        mask = os.umask(0)
        os.umask(mask)
        return 0o666 & ~mask


def _sync_folder(folder):
    number = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)


class CollectorPaused:
    """A block that makes many objects, without garbage. The collector would look at all of them again and again."""

    def __enter__(self):
        self.was_enabled = gc.isenabled()
        gc.disable()

    def __exit__(self, *failure):
        if self.was_enabled:
            gc.enable()


class Tensors(Mapping):
    """The tensors of a file by name, each read when it is asked for."""

    def __init__(self, path, device=None):
        self.path, self.device = os.fspath(path), device
        os.stat(self.path)  # Python's errors for a file that is not there
        self.file = _core.TensorFileReader(os.fsencode(self.path))
        self.metadata = self.file.metadata()

    def _place(self):
        return _core.default_device() if self.device is None else self.device

    def __getitem__(self, name):
        return self.file.read(name, self._place())

    def read_all(self):
        """A dict of all of them."""
        with CollectorPaused():
            return self.file.read_all(self._place())

    def __contains__(self, name):
        return name in self.file

    def __iter__(self):
        return iter(self.file.names())

    def __len__(self):
        return len(self.file)

    def __repr__(self):
        return f"<{len(self)} tensors of {self.path}>"
