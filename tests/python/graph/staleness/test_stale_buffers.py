"""Kinds of staleness: memory and objects behind another object. Buffers, ctypes, weak references."""

import ctypes
import struct
import weakref

from staleness_kinds import GUARDED, X, kind


@kind(GUARDED)
def test_bytes(run):
    f = run(lambda x: x * held[0] + len(held) + struct.unpack("<H", held[:2])[0])
    for held in (b"ab", b"bb", bytes(bytearray(b"abc"))):
        yield f(X)


@kind
def test_structure_of_ctypes(run):
    class Pair(ctypes.Structure):
        _fields_ = [("a", ctypes.c_double), ("b", ctypes.c_int)]

    p = Pair(2.0, 1)
    f = run(lambda x: x * p.a + p.b)
    for p.a, p.b in ((2.0, 1), (3.0, 1), (3.0, 2)):
        yield f(X)


@kind
def test_number_of_ctypes(run):
    c = ctypes.c_double(2.0)
    f = run(lambda x: x * c.value)
    for c.value in (2.0, 3.0):
        yield f(X)


@kind
def test_pointer_of_ctypes(run):
    c = ctypes.c_double(2.0)
    pointer = ctypes.pointer(c)
    f = run(lambda x: x * pointer.contents.value + pointer[0])
    for c.value in (2.0, 3.0):
        yield f(X)


@kind
def test_unpacked_buffer(run):
    held = bytearray(struct.pack("<d", 2.0))
    f = run(lambda x: x * struct.unpack_from("<d", held)[0] + int.from_bytes(held, "little") % 7)
    yield f(X)
    struct.pack_into("<d", held, 0, 3.0)
    yield f(X)


@kind
def test_object_behind_a_weak_reference(run):
    o = type("A", (), {})()
    o.s = 2.0
    reference = weakref.ref(o)
    f = run(lambda x: x * (reference().s if reference() else 1.0))
    for o.s in (2.0, 3.0):
        yield f(X)
    del o
    yield f(X)


@kind
def test_object_behind_a_weak_proxy(run):
    o = type("A", (), {})()
    proxy = weakref.proxy(o)
    f = run(lambda x: x * proxy.s)
    for o.s in (2.0, 3.0):
        yield f(X)
