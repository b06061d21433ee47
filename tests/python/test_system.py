"""Devices, plugins, counters and explanations."""

import inspect
import os
import subprocess
import sys

import backplane as bp
import pytest


def test_the_cpu_is_a_device():
    devices = bp.devices()
    assert "cpu" in [info.name for info in devices]
    info = next(info for info in devices if info.name == "cpu")
    assert info.device == bp.device("cpu") and info.plugin and info.total_memory > 0
    with pytest.raises(AttributeError):
        info.name = "gpu"
    assert info.ops["kernel"] > 150 and info.ops["view"] > 10
    # At one time: ops of earlier tests may go with the garbage.
    assert all(sum(other.ops.values()) == sum(info.ops.values()) for other in devices)


def test_the_cpu_runs_every_op_of_the_registry():
    program = "import backplane as bp; print(*next(info for info in bp.devices() if info.name == 'cpu').ops)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)  # other tests' ops are there
    assert done.returncode == 0 and "kernel" in done.stdout and "none" not in done.stdout, done.stdout + done.stderr


def test_the_cpu_plugin_is_loaded_once_it_was_used():
    bp.zeros(1)
    plugin = next(plugin for plugin in bp.plugins() if "cpu" in plugin.backends)
    assert plugin.state == "loaded" and plugin.path.endswith(".so")


def test_default_device():
    assert bp.default_device() == "cpu" and bp.zeros(1).device == "cpu"
    bp.set_default_device("cpu")
    with pytest.raises(ValueError, match="nowhere"):
        bp.set_default_device("nowhere")
    with pytest.raises(TypeError):
        bp.set_default_device(0)


def test_moving():
    x = bp.ones(2)
    assert x.to("cpu") is x and x.to_device("cpu") is x and x.to(x.device) is x
    assert x.to("float64").dtype is bp.float64 and x.to(bp.float32) is x


def test_counters():
    bp.reset_call_counts()
    assert bp.call_counts().kernels == 0
    bp.ones(2) + bp.ones(2)
    assert bp.call_counts().kernels >= 1 and bp.call_counts().host_fallbacks == 0
    assert "kernels=" in repr(bp.call_counts())


def test_explain():
    for way in (bp.add, "add", "bp::add"):
        text = bp.explain(way)
        assert "bp::add" in text and "cpu" in text and "ops/binary.yaml" in text
    with pytest.raises(TypeError):
        bp.explain(3)


def test_synchronize_takes_a_device_or_all():
    assert bp.synchronize() is None and bp.synchronize("cpu") is None
    with pytest.raises(ValueError, match="nope"):
        bp.synchronize("nope")


def test_a_file_that_is_no_plugin(tmp_path):
    path = tmp_path / "plugin.so"
    path.write_text("text")
    with pytest.raises(bp.BackplaneError, match="plugin.so"):
        bp.load_plugin(path)
    bp.add_plugin_path(tmp_path)
    assert (bp.ones(1) + 1).item() == 2


def test_namespaces_of_ops():
    assert "bp" in dir(bp.ops) and "add" in dir(bp.ops.bp)
    assert bp.ops.bp.add(bp.ones(1), 1).item() == 2
    assert "bp" in repr(bp.ops)


def test_attributes():
    x = bp.zeros((2, 3), dtype=bp.float64)
    assert (x.shape, x.ndim, x.size, x.nbytes, x.itemsize, x.strides) == ((2, 3), 2, 6, 48, 8, (24, 8))
    assert x.is_contiguous and not x.T.is_contiguous
    assert bp.empty((2, 3)).shape == bp.empty_like(x).shape == (2, 3)
    assert bp.empty_like(x).dtype is bp.float64 and bp.empty(4).dtype is bp.float32
    with pytest.raises(AttributeError):
        x.shape = (6,)


def test_a_device_is_the_default_for_a_block():
    with bp.device("cpu") as device:
        assert device == "cpu" and bp.default_device() == "cpu"
        with bp.device("cpu:0"):
            assert bp.zeros(1).device == "cpu"
    with pytest.raises(ZeroDivisionError):
        with bp.device("cpu"):
            1 / 0
    assert bp.default_device() == "cpu"


@pytest.mark.parametrize("setting", [bp.allow_host_fallback, bp.allow_batch_loop, bp.set_grad_enabled])
def test_a_setting_is_set_back_at_the_end_of_a_block(setting):
    first = setting(True)
    assert first == True and repr(first) in ("True", "False")  # noqa: E712 - it is a number that is one
    with setting(False) as before:
        assert before
        with setting(True) as inner:
            assert not inner
        assert setting(False) == 0
    assert setting(True) == 1
    with pytest.raises(TypeError, match=f"{setting.__name__}: argument .*found a value of type str, expected a bool"):
        setting("yes")


def test_the_number_of_threads_is_set_and_read():
    before = bp.get_num_threads()
    try:
        bp.set_num_threads(1)
        assert bp.get_num_threads() == 1
    finally:
        bp.set_num_threads(before)
    for bad in (0, -1, 2000, 2**70):
        with pytest.raises(ValueError, match="set_num_threads: .*1 to"):
            bp.set_num_threads(bad)
    with pytest.raises(TypeError, match="set_num_threads: argument count: found a value of type str"):
        bp.set_num_threads("2")


def test_the_number_of_threads_of_the_environment():
    done = subprocess.run([sys.executable, "-c", "import backplane as bp; print(bp.get_num_threads(), bp.devices()[0].description)"],
                          env={**os.environ, "BACKPLANE_NUM_THREADS": "3"}, capture_output=True, text=True, timeout=60)  # fmt: skip
    assert done.stdout.strip() == "3 host processor", done.stderr


def test_the_directory_has_what_users_call():
    names = dir(bp)
    assert {"nn", "fft", "linalg", "add", "asarray", "grad", "Tensor", "float32"} <= set(names)
    assert names == sorted(set(names)) and not [name for name in names if name.startswith("_")]
    assert not {"gelu_grad", "slice_put", "lstm_gates", "im2col", "run_starts", "DTYPES"} & set(names)
    assert all(hasattr(bp, name) for name in names)


MODULES = [bp.data, bp.data.transforms, bp.debug, bp.distributed, bp.distributions, bp.fft, bp.linalg, bp.nn.init, bp.nn.utils, bp.nn.utils.parametrizations,
           bp.nn.utils.parametrize, bp.nn.utils.rnn, bp.optim, bp.optim.lr_scheduler, bp.random, bp.sparse, bp.tree]  # fmt: skip


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__)
def test_the_directory_of_a_module_is_what_it_offers(module):
    public = [name for name in dir(module) if not name.startswith("_")]
    assert public == sorted(module.__all__) and all(hasattr(module, name) for name in public)


@pytest.mark.parametrize(
    "one", [bp.ones((1, 1)), bp.Generator(), bp.ops.bp.add, bp.nn.Linear(1, 1), bp.random.default_rng(0), bp.make_graph(bp.sin)(bp.ones(2))], ids=lambda one: type(one).__name__
)
def test_no_name_in_the_directory_of_an_object_raises(one):
    assert len(dir(one)) > 20 and [name for name in dir(one) if not hasattr(one, name)] == []


BUILT_IN = [name for name in dir(bp) if inspect.isbuiltin(getattr(bp, name))]


@pytest.mark.parametrize("name", [*BUILT_IN, "default_device", "set_default_device", "set_grad_enabled", "grad_enabled", "reset_call_counts", "set_num_threads"])
def test_an_error_shows_no_internals(name):
    function = getattr(bp, name)
    for args, more in (((1, 2, 3, 4, 5, 6, 7, 8), {}), ((object(),), {}), ((), {"nothing": 1})):
        try:
            function(*args, **more)
        except Exception as error:
            assert "incompatible function arguments" not in str(error) and "Invoked with" not in str(error)
