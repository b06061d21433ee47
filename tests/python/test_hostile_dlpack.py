"""DLPack capsules that no honest library would make: each field of the tensor wrong in turn, and refused with a message."""

import ctypes
import itertools

import numpy as np
import pytest

import backplane as bp


class Device(ctypes.Structure):
    _fields_ = [("device_type", ctypes.c_int), ("device_id", ctypes.c_int32)]


class DType(ctypes.Structure):
    _fields_ = [("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16)]


class Tensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p), ("device", Device), ("ndim", ctypes.c_int32), ("dtype", DType),
        ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]  # fmt: skip


class Managed(ctypes.Structure):
    _fields_ = [("tensor", Tensor), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p)]


class Versioned(ctypes.Structure):
    _fields_ = [
        ("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p), ("flags", ctypes.c_uint64), ("tensor", Tensor),
    ]  # fmt: skip


_new_capsule = ctypes.pythonapi.PyCapsule_New
_new_capsule.restype = ctypes.py_object
_new_capsule.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]


_alive = []


class Exporter:
    """An exporter of a 2 by 3 matrix of float32 whose fields a test may set. Memory that it lends is never taken back."""

    def __init__(self, versioned, shape=(2, 3), strides=(3, 1), **fields):
        _alive.append(self)
        # Eight elements on either side, so that a mistake would read this memory and not a stranger's.
        self.memory = np.arange(64, dtype=np.float32)
        self.ints = lambda values: (ctypes.c_int64 * max(len(values), 1))(*values)
        self.managed = Versioned(major=1, minor=0) if versioned else Managed()
        self.name = b"dltensor_versioned" if versioned else b"dltensor"
        t = self.managed.tensor
        t.data = self.memory.ctypes.data + 64
        t.device = Device(1, 0)
        t.ndim = len(shape) if shape is not None else 2
        t.dtype = DType(2, 32, 1)
        if shape is not None:
            self.shape = self.ints(shape)
            t.shape = ctypes.cast(self.shape, ctypes.POINTER(ctypes.c_int64))
        if strides is not None:
            self.strides = self.ints(strides)
            t.strides = ctypes.cast(self.strides, ctypes.POINTER(ctypes.c_int64))
        for field, value in fields.items():
            setattr(self.managed if field in ("major", "minor", "flags") else t, field, value)

    def __dlpack_device__(self):
        return (1, 0)

    def __dlpack__(self, **_):
        return _new_capsule(ctypes.addressof(self.managed), self.name, None)


BIG = 2**62
ATTACKS = {
    "null data": (dict(data=None), "data"),
    "null shape": (dict(shape=None), "shape"),
    "negative size": (dict(shape=(2, -3)), "negative"),
    "smallest size": (dict(shape=(-(2**63), 1), strides=(1, 1)), "negative"),
    "product of sizes": (dict(shape=(2**32, 2**32), strides=(1, 1)), "memory"),
    "product without strides": (dict(shape=(2**40, 2**40), strides=None), "memory"),
    "product of bytes": (dict(shape=(2**61, 1), strides=(1, 1)), "memory"),
    "address space": (dict(shape=(2**60,), strides=(1,)), "memory"),
    "broadcast address space": (dict(shape=(2**62, 2**40), strides=(0, 0)), "memory"),
    "stride": (dict(strides=(BIG, 1)), "stride"),
    "negative stride": (dict(strides=(-BIG, 1)), "stride"),
    "smallest stride": (dict(strides=(-(2**63), 1)), "stride"),
    "stride of one element": (dict(shape=(1, 3), strides=(BIG, 1)), "stride"),
    "below address 0": (dict(strides=(-(2**45), 1), data=4096), "memory"),
    "sum of strides": (dict(shape=(2, 2, 2, 2), strides=(2**60, 2**60, 2**60, 2**60)), "stride"),
    "negative ndim": (dict(ndim=-1), "rank"),
    "ndim": (dict(ndim=65), "rank"),
    "largest ndim": (dict(ndim=2**31 - 1), "rank"),
    "no code": (dict(dtype=DType(99, 32, 1)), "dtypes"),
    "no bits": (dict(dtype=DType(2, 0, 1)), "dtypes"),
    "odd bits": (dict(dtype=DType(0, 7, 1)), "dtypes"),
    "many bits": (dict(dtype=DType(2, 128, 1)), "dtypes"),
    "lanes": (dict(dtype=DType(2, 32, 4)), "dtypes"),
    "no lanes": (dict(dtype=DType(2, 32, 0)), "dtypes"),
    "device": (dict(device=Device(77, 0)), "device"),
    "negative device": (dict(device=Device(-1, -1)), "device"),
    "odd byte offset": (dict(byte_offset=1), "aligned"),
    "odd address": (dict(data=4097), "aligned"),
    "byte offset that wraps": (dict(byte_offset=2**64 - 4), "memory"),
    "largest byte offset": (dict(byte_offset=2**63), "memory"),
}


@pytest.mark.parametrize("versioned", [False, True], ids=["older", "versioned"])
@pytest.mark.parametrize("attack", ATTACKS)
def test_a_capsule_with_a_wrong_field_is_refused_in_words(attack, versioned):
    fields, word = ATTACKS[attack]
    for enter in (bp.from_dlpack, bp.asarray):
        with pytest.raises(bp.BackplaneError) as caught:
            enter(Exporter(versioned, **fields))
        assert "from_dlpack" in str(caught.value) and word in str(caught.value)


@pytest.mark.parametrize("field, value", [("major", 0), ("major", 2), ("major", 2**32 - 1)])
def test_a_capsule_of_another_major_version_is_refused(field, value):
    with pytest.raises(bp.BackplaneError, match="DLPack"):
        bp.from_dlpack(Exporter(True, **{field: value}))


@pytest.mark.parametrize("versioned", [False, True])
def test_what_no_element_lies_in_may_have_any_place(versioned):
    for shape, strides in itertools.product([(0,), (3, 0), (0, 2**62, 2**62)], ["given", None]):
        strides = strides and tuple(BIG for _ in shape)
        x = bp.from_dlpack(Exporter(versioned, shape=shape, strides=strides, data=None))
        assert x.shape == shape and x.size == 0 and x.tolist() == ([[], [], []] if shape == (3, 0) else [])


@pytest.mark.parametrize("versioned", [False, True])
def test_honest_capsules_are_taken(versioned):
    assert bp.from_dlpack(Exporter(versioned)).tolist() == [[16, 17, 18], [19, 20, 21]]
    assert bp.from_dlpack(Exporter(versioned, strides=None)).tolist() == [[16, 17, 18], [19, 20, 21]]
    assert bp.from_dlpack(Exporter(versioned, strides=(-3, -1))).tolist() == [[16, 15, 14], [13, 12, 11]]
    assert bp.from_dlpack(Exporter(versioned, strides=(0, 0), byte_offset=8)).tolist() == [[18] * 3] * 2
    assert bp.from_dlpack(Exporter(versioned, shape=(), strides=None)).item() == 16
    assert bp.from_dlpack(Exporter(versioned, shape=None, strides=None, ndim=0)).item() == 16
