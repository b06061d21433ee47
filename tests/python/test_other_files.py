"""load takes files of NumPy, and says what another file is."""

import pickle

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
