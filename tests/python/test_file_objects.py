"""save and load take binary file objects, as NumPy's, PyTorch's and MLX's do."""

import io
import tempfile

import numpy as np
import pytest

import backplane as bp


@pytest.mark.parametrize("value", [
    {"w": bp.ones((2, 3)), "b": bp.arange(4)}, {"model": {"w": bp.zeros(3)}, "step": 3, "names": ["a", None]}, bp.asarray([1 + 2j]), bp.zeros((0, 2), dtype=bp.bfloat16),
])  # fmt: skip
@pytest.mark.parametrize("swapped", [False, True])
def test_what_is_saved_to_a_file_object_comes_back(value, swapped, tmp_path):
    memory = io.BytesIO(b"begin")
    memory.seek(5)
    bp.save(memory, value) if swapped else bp.save(value, memory)
    bp.save(value, tmp_path / "same")
    assert memory.getvalue() == b"begin" + (tmp_path / "same").read_bytes()
    memory.seek(5)
    assert repr(bp.load(memory)) == repr(value) and memory.read() == b""
    with open(tmp_path / "same", "rb") as file:
        assert repr(bp.load(file)) == repr(value)


def test_modules_and_other_formats_through_file_objects(tmp_path):
    model, other = bp.nn.Linear(2, 3), bp.nn.Linear(2, 3)
    memory = io.BytesIO()
    bp.save(model, memory)
    memory.seek(0)
    other.load_state_dict(bp.load(memory))
    assert other.weight.tolist() == model.weight.tolist()
    memory = io.BytesIO()
    np.savez(memory, a=np.arange(3), b=np.ones(2))
    memory.seek(0)
    assert {name: x.tolist() for name, x in bp.load(memory).items()} == {"a": [0, 1, 2], "b": [1, 1]}


def test_the_name_of_an_open_file_decides_about_the_format(tmp_path):
    with open(tmp_path / "x.npy", "wb") as file:
        bp.save(bp.arange(3), file)
    assert np.load(tmp_path / "x.npy").tolist() == [0, 1, 2]
    with open(tmp_path / "x.npz", "wb") as file:
        bp.save({"a": {"b": bp.ones(2)}}, file)
    assert np.load(tmp_path / "x.npz")["a.b"].tolist() == [1, 1]
    with tempfile.TemporaryFile() as file:  # its name is a number
        bp.save({"a": bp.ones(2)}, file)
        file.seek(0)
        assert bp.load(file)["a"].tolist() == [1, 1]


def test_refusals_of_file_objects(tmp_path):
    with pytest.raises(bp.ArgumentValueError, match="max_shard_size: several files need a path"):
        bp.save({"a": bp.ones(2)}, io.BytesIO(), max_shard_size=1)
    with pytest.raises(bp.ArgumentValueError, match="lazy: tensors can be read later from a path only"):
        bp.load(io.BytesIO(), lazy=True)
    with pytest.raises(bp.ArgumentTypeError, match="reads str, expected a binary one"):
        bp.load(io.StringIO("text"))
    with pytest.raises(bp.ArgumentValueError, match="<_io.BytesIO object .*is not a safetensors file"):
        bp.load(io.BytesIO(b"nothing of the kind"))
    with pytest.raises(bp.ArgumentTypeError, match="path: found int, expected a path or a binary file object"):
        bp.save(bp.ones(1), 3)
    with open(tmp_path / "text", "w") as file, pytest.raises(TypeError):
        bp.save(bp.ones(1), file)
