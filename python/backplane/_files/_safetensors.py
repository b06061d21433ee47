"""The safetensors format: a header of names, dtypes, shapes and places as JSON, then the elements; and atomic writes of files.

A file is untrusted: its header is checked against the file's size before anything is read. Complex tensors are stored as pairs of
reals, with a last axis of 2; the metadata names them.
"""

from __future__ import annotations

import gc
import json
import mmap
import os
import tempfile
from collections.abc import Mapping

from .. import _core

__all__ = []

_CODES = {"bool": "BOOL", "uint8": "U8", "int8": "I8", "uint16": "U16", "int16": "I16", "float16": "F16", "bfloat16": "BF16", "uint32": "U32"}
_CODES |= {"int32": "I32", "float32": "F32", "float64": "F64", "int64": "I64", "uint64": "U64"}
_COMPLEX = {"complex64": "float32", "complex128": "float64"}
_NAMES = {code: name for name, code in _CODES.items()}
_MOST_HEADER = 100_000_000  # bytes, as in the reference implementation
COMPLEX_KEY = "backplane.complex"


def dtype_of(name):
    return _core.as_dtype(name, "load")


_DTYPES = {code: dtype_of(name) for code, name in _NAMES.items()}
_SIZES = {code: dtype.itemsize for code, dtype in _DTYPES.items()}
_WHOLE = {dtype_of(half): dtype_of(whole) for whole, half in _COMPLEX.items()}


def write(path, tensors, metadata):
    """One file of {name: tensor}, whole or not at all: it is written beside its place, then moved there."""
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
    with replaced(path) as file:
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
    """The tensors of a file by name, each read when it is asked for. The file is mapped into memory."""

    def __init__(self, path, device=None):
        self.path, self.device = os.fspath(path), device
        with open(path, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            with CollectorPaused():
                self.header, self.metadata, self.start = _header(self.path, file, size)
            self.map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        self.pairs = frozenset(json.loads(self.metadata.get(COMPLEX_KEY, "[]")))

    def __getitem__(self, name):
        return self._read(name, self.header[name], _core.default_device() if self.device is None else self.device)

    def _read(self, name, entry, device):
        begin, end = entry["data_offsets"]
        dtype, shape = _DTYPES[entry["dtype"]], entry["shape"]
        if name in self.pairs:
            dtype, shape = _WHOLE[dtype], shape[:-1]
        return _core.from_bytes(self.map[self.start + begin : self.start + end], shape, dtype, device)

    def read_all(self):
        """A dict of all of them."""
        device = _core.default_device() if self.device is None else self.device
        with CollectorPaused():
            return {name: self._read(name, entry, device) for name, entry in self.header.items()}

    def __iter__(self):
        return iter(self.header)

    def __len__(self):
        return len(self.header)

    def __repr__(self):
        return f"<{len(self)} tensors of {self.path}>"


def _damaged(path, what):
    return _core.ArgumentValueError(f"load: {path}: found {what}, expected a safetensors file; the file is damaged or of another format")


def _header(path, file, size):
    """(entries, metadata, where the elements begin), checked."""
    length = int.from_bytes(file.read(8), "little")
    if size < 8 or length > min(size - 8, _MOST_HEADER):
        raise _damaged(path, f"a header of {length} bytes in a file of {size}")
    try:
        header = json.loads(file.read(length))
        metadata = header.pop("__metadata__", None) or {}
        for name, entry in header.items():
            _check_entry(path, name, entry, size - 8 - length)
        _check_ranges(path, [entry["data_offsets"] for entry in header.values()], size - 8 - length)
        pairs = json.loads(metadata.get(COMPLEX_KEY, "[]"))
        if any(header[name]["dtype"] not in ("F32", "F64") or header[name]["shape"][-1:] != [2] for name in pairs):
            raise _damaged(path, "a complex tensor that is not of pairs")
    except (ValueError, AttributeError, KeyError, TypeError, RecursionError) as error:
        if isinstance(error, _core.BackplaneError):
            raise
        raise _damaged(path, f"a header that cannot be read ({error})") from None
    return header, metadata, 8 + length


def _check_entry(path, name, entry, room):
    code, shape, (begin, end) = entry["dtype"], entry["shape"], entry["data_offsets"]
    if code not in _DTYPES:
        raise _core.DtypeError(f"load: {path}: {name}: found dtype {code}, expected one of {', '.join(_NAMES)}")
    bytes_of_shape, whole = _SIZES[code], type(begin) is int and type(end) is int and type(shape) is list
    for n in shape:
        whole = whole and type(n) is int and n >= 0
        bytes_of_shape *= n
    if not whole or not 0 <= begin <= end <= room or end - begin != bytes_of_shape:
        raise _damaged(path, f"{name} of shape {shape} at bytes {begin} to {end} of {room}")


def _check_ranges(path, ranges, room):
    """Every byte belongs to one tensor, as the format demands. A name that the header states twice leaves a hole, too."""
    end = 0
    for first, last in sorted(ranges):
        if first != end:
            raise _damaged(path, f"{'a hole' if first > end else 'tensors that share bytes'} at byte {min(first, end)} of {room}")
        end = last
    if end != room:
        raise _damaged(path, f"{room - end} bytes behind the last tensor")
