"""save and load: containers come back as they were, files of others are read, damage is refused, and a write is whole or absent."""

import gc
import json
import os
import pickle
import signal
import subprocess
import sys
import time
import zipfile

import numpy as np
import pytest

import backplane as bp
from backplane import nn, optim


def same(a, b):
    assert type(a) is type(b)
    if isinstance(a, bp.Tensor):
        assert a.dtype == b.dtype and a.shape == b.shape and bp.all(a == b).item()
    elif isinstance(a, dict):
        assert list(a) == list(b)
        for key in a:
            same(a[key], b[key])
    elif isinstance(a, (list, tuple)):
        assert len(a) == len(b)
        for one, other in zip(a, b):
            same(one, other)
    else:
        assert a == b or (a != a and b != b)


DTYPES = ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "bfloat16", "float32", "float64", "complex64", "complex128"]


def test_containers_come_back(tmp_path):
    obj = {
        "dtypes": {name: bp.asarray([[0, 1], [1, 0]]).astype(name) for name in DTYPES},
        "nested": [(bp.ones(2), None, True), {"x": [1, 2.5, "text", float("inf"), -0.0]}, ()],
        3: {"empty": bp.zeros((0, 4)), "scalar": bp.asarray(2.0)}, "dtype": bp.float16, "big": 2**70, "": [],
    }  # fmt: skip
    bp.save(obj, tmp_path / "x")
    same(bp.load(tmp_path / "x"), obj)
    bp.save(tmp_path / "y", obj)  # NumPy's order of arguments
    same(bp.load(tmp_path / "y"), obj)
    bp.save({"a.b": bp.ones(1), "a": {"b": bp.zeros(1)}}, tmp_path / "x")
    same(bp.load(tmp_path / "x"), {"a.b": bp.ones(1), "a": {"b": bp.zeros(1)}})
    bp.save(bp.ones((2, 3)).T, tmp_path / "x")
    same(bp.load(tmp_path / "x"), bp.ones((3, 2)))
    with pytest.raises(bp.ArgumentTypeError, match=r"save: a\.1: found object"):
        bp.save({"a": [1, object()]}, tmp_path / "z")
    assert not (tmp_path / "z").exists() and len(list(tmp_path.iterdir())) == 2


def test_modules_and_optimisers(tmp_path):
    model = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3))
    optimizer = optim.Adam(model.parameters())
    optimizer.update(model, bp.grad(lambda m: m(bp.normal((4, 2))).sum())(model))
    bp.save(model, tmp_path / "model.safetensors")
    lazy = bp.load(tmp_path / "model.safetensors", lazy=True)
    assert list(lazy) == list(model.state_dict()) and lazy["0.bias"].shape == (3,)
    nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3)).load_state_dict(lazy)
    bp.save({"model": model, "optimizer": optimizer}, tmp_path / "both")
    other = optim.Adam(model.parameters())
    other.load_state_dict(bp.load(tmp_path / "both")["optimizer"])
    same(other.state_dict(), optimizer.state_dict())


def test_shards_and_their_index(tmp_path):
    state = {f"w{i}": bp.ones(4) * i for i in range(5)}
    bp.save(state, tmp_path / "m.safetensors", max_shard_size=40)
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == ["m-00001-of-00003.safetensors", "m-00002-of-00003.safetensors", "m-00003-of-00003.safetensors", "m.safetensors.index.json"]
    for path in (tmp_path / "m.safetensors.index.json", tmp_path):
        same(bp.load(path), state)
    assert bp.load(tmp_path, lazy=True)["w3"].tolist() == [3] * 4
    index = json.loads((tmp_path / names[-1]).read_text())
    index["weight_map"]["w0"] = "../elsewhere.safetensors"
    (tmp_path / names[-1]).write_text(json.dumps(index))
    with pytest.raises(bp.ArgumentValueError, match="another folder"):
        bp.load(tmp_path / names[-1])


def values(path):
    return {name: x.tolist()[0] for name, x in bp.load(path).items()}


@pytest.mark.parametrize("name", ["m.safetensors", "m"])
def test_a_save_replaces_the_other_form(tmp_path, name):
    path = tmp_path / name
    for number, most in enumerate([None, 16, 32, None, 16, 16, 16]):
        bp.save({f"k{i}": bp.ones(4) * number for i in range(4)}, path, max_shard_size=most)
        for way in (path, tmp_path if name != "m" or most else path):
            assert values(way) == {f"k{i}": number for i in range(4)}
        assert len(list(tmp_path.iterdir())) == (1 if most is None else 1 + 64 // most)
    with pytest.raises(FileNotFoundError, match=r"no such file, and no index other\.safetensors\.index\.json"):
        bp.load(tmp_path / "other")


def test_an_unsharded_save_leaves_the_shards_of_another_name(tmp_path):
    state = {f"k{i}": bp.ones(4) for i in range(4)}
    bp.save(state, tmp_path / "m.safetensors", max_shard_size=16)
    bp.save({"k0": bp.zeros(1)}, tmp_path / "m")
    same(bp.load(tmp_path / "m.safetensors"), state)


def test_an_interrupted_save_in_shards_leaves_the_old_values(tmp_path, monkeypatch):
    replace = os.replace
    for start, stops in {"nothing": [2], "one file": [4], "shards": [0, 2, 4, 5]}.items():
        for stop in stops:
            folder = tmp_path / f"{start}{stop}"
            folder.mkdir()
            state = {f"k{i}": bp.zeros(4) for i in range(4)}
            if start != "nothing":
                bp.save(state, folder / "m.safetensors", max_shard_size=16 if start == "shards" else None)
            before = sorted(folder.iterdir())
            left = [stop]

            def interrupted(old, new):
                left[0] -= 1
                if left[0] < 0:
                    raise KeyboardInterrupt
                replace(old, new)

            with monkeypatch.context() as patch:
                patch.setattr(os, "replace", interrupted)
                try:
                    bp.save({name: x + 1 for name, x in state.items()}, folder / "m.safetensors", max_shard_size=16)
                except KeyboardInterrupt:
                    assert stop < 5 and sorted(folder.iterdir()) == before
                    assert not before or values(folder / "m.safetensors") == dict.fromkeys(state, 0)
                else:
                    assert stop == 5 and values(folder / "m.safetensors") == dict.fromkeys(state, 1)


def test_what_is_not_a_tree_is_refused(tmp_path):
    inside = [bp.ones(1)]
    inside.append({"again": inside})
    with pytest.raises(bp.ArgumentValueError, match="save: argument obj: found a container that contains itself"):
        bp.save({"x": inside}, tmp_path / "x")
    with pytest.raises(bp.ArgumentTypeError, match=r"save: argument obj: found the key \(1, 2\)"):
        bp.save({(1, 2): 3}, tmp_path / "x")
    manager = bp.CheckpointManager(tmp_path / "run")
    with pytest.raises(bp.ArgumentValueError, match="contains itself"):
        manager.save(0, inside)
    shared = bp.ones(1)
    bp.save([shared, shared], tmp_path / "x")
    one, other = bp.load(tmp_path / "x")
    one[...] = 2.0
    assert other.tolist() == [1]


def test_files_of_numpy(tmp_path):
    bp.save(bp.ones((2, 3)), tmp_path / "x.npy")
    assert np.load(tmp_path / "x.npy").tolist() == [[1] * 3] * 2
    same(bp.load(tmp_path / "x.npy"), bp.ones((2, 3)))
    bp.save({"a": bp.ones(2), "b": bp.zeros(1)}, tmp_path / "x.npz")
    same(bp.load(tmp_path / "x.npz"), {"a": bp.ones(2), "b": bp.zeros(1)})


def torch_file(path, pickled, **storages):
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("archive/data.pkl", pickled)
        for key, data in storages.items():
            archive.writestr(f"archive/data/{key[1:]}", data)


# {"w": a tensor of shape (2, 3) and strides (1, 2)} as torch.save writes it; the storage "0" has six floats.
TORCH = (
    b"\x80\x02}q\x00X\x01\x00\x00\x00wq\x01ctorch._utils\n_rebuild_tensor_v2\nq\x02((X\x07\x00\x00\x00storageq\x03ctorch\nFloatStorage\nq\x04"
    b"X\x01\x00\x00\x000q\x05X\x03\x00\x00\x00cpuq\x06K\x06tq\x07QK\x00K\x02K\x03\x86q\x08K\x01K\x02\x86q\t\x89ccollections\nOrderedDict\n"
    b"q\n)Rq\x0btq\x0cRq\rs."
)


def test_files_of_torch(tmp_path):
    torch_file(tmp_path / "x.pt", TORCH, s0=np.arange(6, dtype=np.float32).tobytes())
    same(bp.load(tmp_path / "x.pt"), {"w": bp.asarray([[0.0, 2, 4], [1, 3, 5]])})
    torch_file(tmp_path / "x.pt", TORCH, s0=np.arange(4, dtype=np.float32).tobytes())
    with pytest.raises(bp.ArgumentValueError, match="storage 0 has 16 bytes"):
        bp.load(tmp_path / "x.pt")


class Runs:
    def __reduce__(self):
        return os.mkdir, (os.environ["MARK"],)


def test_nothing_in_a_pickle_runs(tmp_path, monkeypatch):
    monkeypatch.setenv("MARK", str(tmp_path / "mark"))
    torch_file(tmp_path / "x.pt", pickle.dumps({"x": Runs()}))
    with pytest.raises(bp.ArgumentValueError, match="mkdir, which is not a tensor or a container"):
        bp.load(tmp_path / "x.pt")
    assert not (tmp_path / "mark").exists()


def test_damaged_files_are_refused(tmp_path):
    path = tmp_path / "x.safetensors"
    bp.save({"a": bp.ones(8), "b": [bp.zeros(3, dtype=bp.complex64)]}, path)
    whole = path.read_bytes()
    random = np.random.default_rng(0)
    for _ in range(200):
        data = bytearray(whole)
        if random.random() < 0.3:
            data = data[: random.integers(0, len(data))]
        for _ in range(random.integers(1, 4)):
            if data:
                data[random.integers(0, len(data))] = random.integers(0, 256)
        path.write_bytes(data)
        try:
            bp.load(path)
        except (bp.BackplaneError, UnicodeDecodeError) as error:
            assert "x.safetensors" in str(error) or "header" in str(error)


WRITER = """
import sys
import backplane as bp
state = [bp.ones(20000), bp.ones(20000)]
number = 0
while True:
    number += 1
    bp.save({"number": number, "state": [x * number for x in state]}, sys.argv[1])
    if number == 1:
        print("ready", flush=True)
"""


def test_a_killed_writer_leaves_a_whole_file(tmp_path):
    path = tmp_path / "state.safetensors"
    random = np.random.default_rng(1)
    for _ in range(int(os.environ.get("BACKPLANE_SAVING_KILLS", 4))):
        with subprocess.Popen([sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE) as process:
            process.stdout.readline()
            time.sleep(random.uniform(0.001, 0.05))
            process.send_signal(signal.SIGKILL)
        found = bp.load(path)
        assert all(bp.all(x == found["number"]).item() for x in found["state"])


def test_checkpoints(tmp_path):
    model = nn.Linear(2, 2)
    for asynchronous in (False, True):
        folder = tmp_path / str(asynchronous)
        with bp.CheckpointManager(folder, max_to_keep=2, best_fn=lambda m: m["loss"], asynchronous=asynchronous) as manager:
            for step, loss in enumerate([3.0, 1.0, 2.0, 2.5]):
                with bp.no_grad():
                    model.weight[...] = float(step)
                manager.save(step, {"model": model, "note": "x"}, metrics={"loss": bp.asarray(loss)})
                with bp.no_grad():
                    model.weight[...] = -1.0
        assert manager.all_steps() == [1, 2, 3] and manager.latest_step() == 3 and manager.best_step() == 1
        manager.restore(1, into={"model": model})
        assert model.weight.tolist() == [[1, 1], [1, 1]] and manager.restore()["note"] == "x"
    with pytest.raises(FileNotFoundError, match="no checkpoint of step 9"):
        manager.restore(9)


def test_a_header_of_any_length_is_read(tmp_path):
    """The length comes first in the file, and may look like the first bytes of a pickle, of JSON or of an archive."""
    path = tmp_path / "state.safetensors"
    seen = set()
    for extra in range(0, 700, 8):
        bp.save({"w": bp.ones(2), "text": "x" * extra}, path)
        seen.add(path.read_bytes()[:2])
        found = bp.load(path)
        assert found["w"].tolist() == [1, 1] and len(found["text"]) == extra
    assert b"\x80\x02" in seen


def test_the_newest_checkpoint_is_the_one_saved_last(tmp_path):
    manager = bp.CheckpointManager(tmp_path, max_to_keep=2)

    def saved(step):
        manager.save(step, {"w": bp.ones(1) * step})
        for one in (manager, bp.CheckpointManager(tmp_path)):
            assert one.latest_step() == step and one.restore()["w"].item() == step
        return manager.all_steps()

    assert [saved(step) for step in (10, 20, 30)] == [[10], [10, 20], [20, 30]]
    manager.restore(20)
    assert [saved(step) for step in (21, 25, 15, 25)] == [[21, 30], [21, 25], [15, 25], [15, 25]]
    with pytest.raises(bp.ArgumentValueError, match="argument step: found -1"):
        manager.save(-1, {})


@pytest.mark.parametrize("compiled", [False, True])
def test_a_resumed_run_has_the_same_bits(tmp_path, compiled):
    """Dropout, shuffled batches, a schedule and clipping: a run that goes on from a file, in new objects, ends as the run that went on."""
    rows = np.random.default_rng(0).normal(size=(32, 6)).astype(np.float32)
    data = bp.data.TensorDataset(bp.asarray(rows), bp.asarray(np.sin(rows.sum(axis=1, keepdims=True))))

    class Run:
        def __init__(self):
            bp.manual_seed(3)
            self.model = nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Dropout(0.2), nn.Linear(16, 1))
            self.optimizer = optim.AdamW(self.model.parameters(), lr=1e-2)
            self.schedule = optim.lr_scheduler.CosineAnnealingLR(self.optimizer, T_max=16)
            self.loader = bp.data.DataLoader(data, batch_size=8, shuffle=True, generator=bp.Generator(7))
            self.step = bp.compile(self.one, state=[self.model, self.optimizer, bp.default_generator]) if compiled else self.one

        def one(self, x, y):
            loss, gradients = bp.value_and_grad(lambda model: nn.functional.mse_loss(model(x), y))(self.model)
            gradients, _ = nn.utils.clip_grad_norm(gradients, 0.5)
            self.optimizer.update(self.model, gradients)
            return loss

        def train(self, epochs, most=100):
            losses = []
            for _ in range(epochs):
                for batch in self.loader:
                    losses.append(self.step(*batch).item())
                    self.schedule.step()
                    if len(losses) == most:
                        return losses
            return losses

    whole = Run()
    expected = whole.train(4)
    first = Run()
    before = first.train(4, most=6)  # within the second epoch
    state = {"model": first.model, "optimizer": first.optimizer, "schedule": first.schedule.state_dict(), "loader": first.loader.state_dict()}
    bp.save({**state, "random": bp.default_generator.state}, tmp_path / "run.safetensors")
    second = Run()
    saved = bp.load(tmp_path / "run.safetensors")
    second.model.load_state_dict(saved["model"])
    second.optimizer.load_state_dict(saved["optimizer"])
    second.schedule.load_state_dict(saved["schedule"])
    second.loader.load_state_dict(saved["loader"])
    bp.default_generator.state = saved["random"]
    after = second.train(3)
    assert before + after == expected
    for p, q in zip(second.model.parameters(), whole.model.parameters()):
        assert p.detach().numpy().tobytes() == q.detach().numpy().tobytes()


@pytest.mark.parametrize("enabled", [True, False])
def test_load_leaves_the_collector_as_it_was(tmp_path, enabled):
    bp.save({str(i): bp.asarray(float(i)) for i in range(50)}, tmp_path / "whole")
    (tmp_path / "damaged").write_bytes((tmp_path / "whole").read_bytes().replace(b'"F32"', b'"F33"'))
    gc.enable() if enabled else gc.disable()
    try:
        assert bp.load(tmp_path / "whole")["7"].item() == 7 and gc.isenabled() is enabled
        with pytest.raises(bp.BackplaneError):
            bp.load(tmp_path / "damaged")
        assert gc.isenabled() is enabled
    finally:
        gc.enable()
