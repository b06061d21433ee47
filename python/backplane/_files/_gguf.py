"""GGUF files, read only: the tensors by name, quantised ones as float32, and the metadata.

A file is untrusted: every length is checked against the file's size before anything is read. Format: ggml-org/ggml, docs/gguf.md.
"""

from __future__ import annotations

import math
import mmap
import struct
from collections.abc import Mapping

from .. import _core
from ._gguf_blocks import BLOCKS

__all__ = []

_MOST_AXES = 8
_MOST_DEPTH = 4  # of arrays in arrays
_TEXT, _LIST = 8, 9
_NUMBERS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}  # kinds of metadata values
_DTYPES = {0: "float32", 1: "float16", 24: "int8", 25: "int16", 26: "int32", 27: "int64", 28: "float64", 30: "bfloat16"}


class _Header:
    """Reads values one after the other."""

    def __init__(self, path, data):
        self.path, self.data, self.at = path, data, 0

    def damaged(self, what):
        return _core.ArgumentValueError(f"load: {self.path}: found {what}, expected a GGUF file; the file is damaged or of another format")

    def take(self, count):
        if count > len(self.data) - self.at:
            raise self.damaged(f"an entry of {count} bytes at byte {self.at} of {len(self.data)}")
        self.at += count
        return self.data[self.at - count : self.at]

    def number(self, code):
        return struct.unpack("<" + code, self.take(struct.calcsize(code)))[0]

    def text(self):
        try:
            return self.take(self.number("Q")).decode()
        except UnicodeDecodeError:
            raise self.damaged("a name that is not UTF-8") from None

    def value(self, kind, depth=0):
        if kind in _NUMBERS:
            return self.number(_NUMBERS[kind])
        if kind == _TEXT:
            return self.text()
        if kind != _LIST or depth >= _MOST_DEPTH:
            raise self.damaged(f"a metadata value of kind {kind}")
        inner, count = self.number("I"), self.number("Q")
        if inner in _NUMBERS:
            code = _NUMBERS[inner]
            size = struct.calcsize("<" + code)
            if count > (len(self.data) - self.at) // size:
                raise self.damaged(f"an array of {count} numbers at byte {self.at} of {len(self.data)}")
            return list(struct.unpack(f"<{count}{code}", self.take(count * size)))
        if count > len(self.data) - self.at:  # each takes a byte at least
            raise self.damaged(f"an array of {count} values at byte {self.at} of {len(self.data)}")
        return [self.value(inner, depth + 1) for _ in range(count)]


class GgufTensors(Mapping):
    """The tensors of a file by name, each read when it is asked for. The file is mapped into memory. `metadata` is a dict."""

    def __init__(self, path, device=None):
        self.path, self.device = path, device
        with open(path, "rb") as file:
            self.map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        header = _Header(path, self.map)
        header.take(4)
        version = header.number("I")
        if version not in (2, 3):
            raise header.damaged(f"version {version}")
        count, entries = header.number("Q"), header.number("Q")
        self.metadata = {}
        for _ in range(entries):
            name = header.text()
            self.metadata[name] = header.value(header.number("I"))
        self.places = {}
        for _ in range(count):
            name = header.text()
            axes = header.number("I")
            if axes > _MOST_AXES:
                raise header.damaged(f"a tensor of {axes} axes")
            shape = [header.number("Q") for _ in range(axes)][::-1]  # the file states the last axis first
            if name in self.places:
                raise header.damaged(f"the name {name!r} twice")
            self.places[name] = (shape, header.number("I"), header.number("Q"))
        alignment = self.metadata.get("general.alignment", 32)
        if not isinstance(alignment, int) or alignment < 8 or alignment % 8:
            raise header.damaged(f"the alignment {alignment!r}")
        self.start = -(-header.at // alignment) * alignment
        for name, (shape, kind, offset) in self.places.items():
            size = self._size(name, shape, kind)
            if offset % alignment:
                raise header.damaged(f"the tensor {name!r} at byte {offset} of the data, which is not a multiple of {alignment}")
            if size is not None and self.start + offset + size > len(self.map):
                raise header.damaged(f"the tensor {name!r}, which ends at byte {self.start + offset + size} of {len(self.map)}")

    def _size(self, name, shape, kind):
        """In bytes; None for a kind that is not known."""
        count = math.prod(shape)
        if kind in _DTYPES:
            return count * _core.as_dtype(_DTYPES[kind], "load").itemsize
        if kind not in BLOCKS:
            return None
        block = BLOCKS[kind]
        if not shape or shape[-1] % block.elements:
            raise _core.ArgumentValueError(f"load: {self.path}: tensor {name!r}: found shape {tuple(shape)}, expected rows of blocks of {block.elements}")
        return count // block.elements * block.size

    def __getitem__(self, name):
        shape, kind, offset = self.places[name]
        size = self._size(name, shape, kind)
        if size is None:
            raise _core.ArgumentValueError(
                f"load: {self.path}: tensor {name!r}: found GGUF's type number {kind}, expected F32, F16, BF16, F64, I8 to I64, "
                f"{', '.join(block.name for block in BLOCKS.values())}. Fix: convert the file to one of these"
            )
        device = _core.default_device() if self.device is None else self.device
        data = self.map[self.start + offset : self.start + offset + size]
        if kind in _DTYPES:
            return _core.from_bytes(data, shape, _core.as_dtype(_DTYPES[kind], "load"), device)
        return _core.asarray(BLOCKS[kind].values(data).reshape(shape), device=device)

    def read_all(self):
        """A dict of all of them."""
        return {name: self[name] for name in self.places}

    def __iter__(self):
        return iter(self.places)

    def __len__(self):
        return len(self.places)

    def __repr__(self):
        return f"<{len(self)} tensors of {self.path}>"
