"""Laws of export and load: every bit comes back, any reader of safetensors opens the file, and the runner needs no Python."""

import json
import re
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


@pytest.mark.skipif(shutil.which("backplane") is None, reason="the backplane command is not on the PATH")
def test_the_runner_reads_bfloat16_and_columns(tmp_path):
    path, file, result = (tmp_path / name for name in ("m.safetensors", "x.npy", "y.npy"))
    values = np.arange(6, dtype="float32").reshape(2, 3) + np.float32(0.001)

    def run():
        done = subprocess.run(["backplane", "run", path, "--input", file, "--output", result], capture_output=True, text=True)
        return done.stderr or np.load(result).tolist()

    x = bp.asarray(values, dtype=bp.bfloat16)
    bp.export(lambda x: x * 2, [x], path)
    np.save(file, values)
    assert run() == (x * 2).tolist()
    np.save(file, (x.astype(bp.float32).numpy().view("uint32") >> 16).astype("uint16").view("V2"))
    assert run() == (x * 2).tolist()
    np.save(file, values.astype("float64"))
    assert "found float64" in run()
    bp.export(lambda x: x * 2, [bp.asarray(values)], path)
    np.save(file, np.asfortranarray(values))
    assert run() == (values * 2).tolist()
    np.save(file, values.astype("float16").view("V2"))
    assert "its dtype is" in run()


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


def test_a_model_takes_its_inputs_by_name(tmp_path):
    path = tmp_path / "model.safetensors"
    a, b = bp.ones((2, 3)), bp.arange(3.0)
    bp.export(lambda a, b: a - b, [a, b], path)
    loaded = bp.load(path)
    assert [value.name for value in loaded.inputs] == ["a", "b"]
    for found in (loaded(b=b, a=a), loaded(a, b=b), loaded(a=a, b=b, seed=1)):
        assert found[0].tolist() == (a - b).tolist()
    assert loaded.explain(b=b, a=a) == loaded.explain(a, b)
    for call, words in {
        "loaded(a, z=b)": "found an argument z=, expected the inputs by position or by name: b. Fix: see model.inputs",
        "loaded(a, b, b=b)": "found an argument b=, .*all have been given by position",
        "loaded(a, a=a)": "found an argument a=, .* by name: b",
        "loaded(b=b)": 'input 0 "a" is missing',
        "loaded(a=[1], b=b)": "input a: found a value of type list",
    }.items():
        with pytest.raises(bp.ArgumentTypeError, match=f"Model: {words}"):
            eval(call)
    for call in (loaded, loaded.edit(lambda node, *tensors: None), loaded.explain):
        with pytest.raises(bp.DtypeError, match=f'{re.escape(str(path))}: input 0 "a": found int64'):
            call(bp.astype(a, bp.int64), b)
        with pytest.raises(bp.ShapeError, match=re.escape(f"{path}: ")):
            call(bp.ones((2, 4)), b)


@pytest.mark.parametrize("args", [bp.ones((2,)), {"x": bp.ones((2,))}], ids=["tensor", "dict"])
def test_the_arguments_are_a_sequence(args, tmp_path):
    with pytest.raises(bp.ArgumentTypeError, match=r"export: argument args: found a (Tensor|dict), expected the sequence .* write \[x\] for one"):
        bp.export(lambda x: x, args, tmp_path / "model.safetensors")


@pytest.mark.parametrize("give", [lambda n: n * 2, lambda n: {"n": [n]}, lambda n: None], ids=["number", "dict", "None"])
def test_a_function_that_gives_no_tensor_is_refused(give, tmp_path):
    with pytest.raises(bp.ArgumentValueError, match="export: the function returned no tensor"):
        bp.export(give, [2.0], tmp_path / "model.safetensors")
    assert not list(tmp_path.iterdir())


def test_a_folder_that_is_not_there_is_the_reason(tmp_path):
    with pytest.raises(bp.ArgumentValueError, match="cannot be written: No such file or directory. Fix: make its folder first"):
        bp.export(lambda x: x + 1, [bp.ones(2)], tmp_path / "nowhere" / "model.safetensors")


def test_weights_keep_their_names(tmp_path):
    model = bp.nn.Sequential(bp.nn.Linear(3, 2), bp.nn.BatchNorm1d(2)).eval()
    scale, tables = bp.full((2,), 2.0), {"shift": bp.asarray([5.0, 7.0])}
    x = bp.normal((4, 3))
    for fun, start in ((model, ""), (model.forward, ""), (lambda x: model(x) * scale + tables["shift"], "model.")):
        path = tmp_path / "m.safetensors"
        bp.export(fun, [x], path)
        names = _tensor_names(path)
        assert {f"{start}0.weight", f"{start}0.bias", f"{start}1.running_mean", f"{start}1.running_var"} <= names
        assert not start or {"scale", "tables.shift"} <= names
        np.testing.assert_allclose(bp.load(path)(x)[0].numpy(), fun(x).detach().numpy(), rtol=1e-5)


def _tensor_names(path):
    data = path.read_bytes()
    return json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")]).keys() - {"__metadata__"}
