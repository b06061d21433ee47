"""Laws of export and load: every bit comes back, any reader of safetensors opens the file, and the runner needs no Python."""

import json
import shutil
import struct
import subprocess

import backplane as bp
import numpy as np
import pytest


def array(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype("float32")


W, B = bp.asarray(array(3, 4, seed=1)), bp.asarray(array(4, seed=2))


def model(x, scale):
    hidden = bp.tanh(x @ W + B)
    return hidden * scale["by"], hidden.sum()


@pytest.fixture
def exported(tmp_path):
    args = [bp.asarray(array(5, 3)), {"by": bp.asarray(array(4, seed=3))}]
    path = tmp_path / "model.safetensors"
    bp.export(model, args, path)
    return path, args


def test_loaded_gives_every_bit(exported):
    path, (x, scale) = exported
    loaded = bp.load(path)
    for seed in range(3):
        x = bp.asarray(array(5, 3, seed=seed + 7))
        for ours, eager in zip(loaded(x, scale["by"]), model(x, scale), strict=True):
            np.testing.assert_array_equal(ours.numpy(), eager.numpy())
    assert [v.dims for v in loaded.inputs] == [["5", "3"], ["4"]]
    assert "bp::tanh" in str(loaded)


def test_the_file_is_safetensors(exported):
    path, _ = exported
    data = path.read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8 : 8 + length])
    document = json.loads(header.pop("__metadata__")["backplane.graph"])
    assert document["format"] == "backplane.graph" and document["version"] == 1
    weights = {}
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        assert entry["dtype"] == "F32"
        weights[name] = np.frombuffer(data[8 + length + begin : 8 + length + end], "<f4").reshape(entry["shape"])
    assert len(weights) == len(document["graph"]["constants"])
    assert any(np.array_equal(w, W.numpy()) for w in weights.values())


def test_a_damaged_file_is_an_error(exported):
    path, _ = exported
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(ValueError, match="cut off"):
        bp.load(path)


@pytest.mark.skipif(shutil.which("backplane") is None, reason="the backplane command is not on the PATH")
def test_the_runner_gives_the_same(exported, tmp_path):
    path, (x, scale) = exported
    np.save(tmp_path / "x.npy", x.numpy())
    np.save(tmp_path / "by.npy", scale["by"].numpy())
    command = ["backplane", "run", path, "--input", tmp_path / "x.npy", "--input", tmp_path / "by.npy", "--output", tmp_path / "y.npy"]
    done = subprocess.run([*command, "--assignment"], capture_output=True, text=True, check=True)
    np.testing.assert_array_equal(np.load(tmp_path / "y.npy"), model(x, scale)[0].numpy())
    assert "memory between nodes" in done.stdout
    # No Python is loaded, nor asked for: it runs in an empty environment, with no library of it.
    libraries = subprocess.run(["ldd", shutil.which("backplane")], capture_output=True, text=True).stdout
    assert "libc.so" in libraries and "python" not in libraries
    (tmp_path / "y.npy").unlink()
    subprocess.run([shutil.which("backplane"), *command[1:]], env={}, check=True)
    np.testing.assert_array_equal(np.load(tmp_path / "y.npy"), model(x, scale)[0].numpy())
    wrong = subprocess.run(command[:5], capture_output=True, text=True)
    assert wrong.returncode == 1 and "takes 2 inputs, found 1" in wrong.stderr


def test_a_model_takes_arrays_and_refuses_what_is_no_tensor(exported):
    path, (x, scale) = exported
    loaded = bp.load(path)
    for ours, eager in zip(loaded(np.asarray(x), scale["by"].numpy()), model(x, scale), strict=True):
        np.testing.assert_array_equal(ours.numpy(), eager.numpy())
    for call in (loaded, loaded.explain):
        with pytest.raises(bp.ArgumentTypeError, match="Model: input 1: found a value of type dict, expected a Tensor. Fix: give one per input"):
            call(x, scale)
    with pytest.raises(TypeError, match="Model: input 0: found a value of type NoneType"):
        loaded(None, scale["by"])
    with pytest.raises(TypeError, match="found an argument x=; inputs have no names: give them by position"):
        loaded(x=x, seed=1)


@pytest.mark.parametrize("args", [bp.ones((2,)), {"x": bp.ones((2,))}], ids=["tensor", "dict"])
def test_the_arguments_are_a_sequence(args, tmp_path):
    with pytest.raises(bp.ArgumentTypeError, match=r"export: argument args: found a (Tensor|dict), expected the sequence .* write \[x\] for one"):
        bp.export(lambda x: x, args, tmp_path / "model.safetensors")


@pytest.mark.parametrize("give", [lambda n: n * 2, lambda n: {"n": [n]}, lambda n: None], ids=["number", "dict", "None"])
def test_a_function_that_gives_no_tensor_is_refused(give, tmp_path):
    with pytest.raises(bp.ArgumentValueError, match="export: found no tensor in what the function gives"):
        bp.export(give, [2.0], tmp_path / "model.safetensors")
    assert not list(tmp_path.iterdir())


def test_a_folder_that_is_not_there_is_the_reason(tmp_path):
    with pytest.raises(bp.ArgumentValueError, match="cannot be written: No such file or directory. Fix: make its folder first"):
        bp.export(lambda x: x + 1, [bp.ones(2)], tmp_path / "nowhere" / "model.safetensors")
