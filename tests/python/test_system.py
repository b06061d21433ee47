"""Devices, plugins, counters and explanations."""

import backplane as bp
import pytest


def test_the_cpu_is_a_device():
    names = [info.name for info in bp.devices()]
    assert "cpu" in names
    info = next(info for info in bp.devices() if info.name == "cpu")
    assert info.device == bp.device("cpu") and info.plugin and info.total_memory > 0
    with pytest.raises(AttributeError):
        info.name = "gpu"


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
    assert (x.shape, x.ndim, x.size, x.nbytes, x.itemsize, x.strides) == ((2, 3), 2, 6, 48, 8, (3, 1))
    assert x.is_contiguous and not x.T.is_contiguous
    assert bp.empty((2, 3)).shape == bp.empty_like(x).shape == (2, 3)
    assert bp.empty_like(x).dtype is bp.float64 and bp.empty(4).dtype is bp.float32
    with pytest.raises(AttributeError):
        x.shape = (6,)
