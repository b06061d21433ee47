"""load takes files of NumPy, and says what another file is."""

import json
import pickle
import struct

import backplane as bp
import numpy as np
import pytest


def test_files_of_numpy_are_tensors(tmp_path):
    array, archive = tmp_path / "x.npy", tmp_path / "x.npz"
    np.save(array, np.ones(3))
    np.savez(archive, x=np.ones(3))
    assert bp.load(array).tolist() == [1, 1, 1] and bp.load(array).dtype == bp.float64
    assert {name: x.tolist() for name, x in bp.load(archive).items()} == {"x": [1, 1, 1]}


def test_pickles_are_not_run(tmp_path):
    file = tmp_path / "x.pkl"
    file.write_bytes(pickle.dumps({"x": 1}))
    with pytest.raises(bp.ArgumentValueError, match="x.pkl is a pickle, which can run code"):
        bp.load(file)


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(FileNotFoundError, match="absent"):
        bp.load(tmp_path / "absent.safetensors")


def test_elements_of_the_other_byte_order(tmp_path):
    np.save(tmp_path / "x.npy", np.asarray([1.5, -2], ">f4"))
    np.savez(tmp_path / "x.npz", x=np.asarray([1, 256], ">i2"))
    assert bp.load(tmp_path / "x.npy").tolist() == [1.5, -2]
    assert bp.load(tmp_path / "x.npz")["x"].tolist() == [1, 256]


def numpy_file(header, data=b""):
    return b"\x93NUMPY\1\0" + struct.pack("<H", len(header)) + header.encode() + data


def safetensors_file(entries, data):
    header = entries if isinstance(entries, bytes) else json.dumps(entries).encode()
    return struct.pack("<Q", len(header)) + header + data


def floats(begin, end):
    return {"dtype": "F32", "shape": [(end - begin) // 4], "data_offsets": [begin, end]}


DAMAGED = {
    "objects.npy": b"\x93NUMPY\1\0" + struct.pack("<H", 58) + b"{'descr':'|O','fortran_order':False,'shape':(1,)}".ljust(58) + pickle.dumps([1]),
    "code.npy": numpy_file("__import__('os').abort()"),
    "cut.npy": numpy_file("{'descr':'<f4','fortran_order':False,'shape':(9,)}", b"1234"),
    "negative.npy": numpy_file("{'descr':'<f4','fortran_order':False,'shape':(-1,)}"),
    "huge.npy": numpy_file("{'descr':'<f4','fortran_order':False,'shape':(4611686018427387904, 8)}"),
    "cut.npz": b"PK\3\4" + bytes(20),
    "cut.pt": b"PK\3\4" + bytes(20),
    "shared.safetensors": safetensors_file({"a": floats(0, 8), "b": floats(4, 12)}, bytes(12)),
    "hole.safetensors": safetensors_file({"a": floats(0, 4), "b": floats(8, 12)}, bytes(12)),
    "behind.safetensors": safetensors_file({"a": floats(0, 4)}, bytes(8)),
    "deep.safetensors": safetensors_file(b'{"a":' + b"[" * 100000 + b"]" * 100000 + b"}", b""),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_damaged_files_are_refused_by_name(name, tmp_path):
    (tmp_path / name).write_bytes(DAMAGED[name])
    with pytest.raises(bp.ArgumentValueError, match=name):
        bp.load(tmp_path / name)
