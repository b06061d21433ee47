"""load says what a file is that another library wrote."""

import io

import backplane as bp
import numpy as np
import pytest


def test_files_of_others_are_named(tmp_path):
    array, archive = tmp_path / "x.npy", tmp_path / "x.npz"
    np.save(array, np.ones(3))
    np.savez(archive, x=np.ones(3))
    with pytest.raises(bp.ArgumentValueError, match=r"x.npy is an array of NumPy's. Fix: backplane.asarray\(numpy.load"):
        bp.load(array)
    with pytest.raises(bp.ArgumentValueError, match="x.npz is an archive, as numpy.savez and torch.save"):
        bp.load(archive)
    assert bp.asarray(np.load(io.BytesIO(array.read_bytes()))).tolist() == [1, 1, 1]


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(FileNotFoundError, match="absent"):
        bp.load(tmp_path / "absent.safetensors")
