"""Models as packages of the Python index ship them: results beside onnxruntime's, uncompiled and compiled, and as files."""

import importlib.util
import pathlib

import backplane as bp
import numpy as np
import onnxruntime
import pytest

TOLERANCE = 2e-4


def folder(package):
    found = importlib.util.find_spec(package)
    return pathlib.Path(found.submodule_search_locations[0])


def images(*shapes):
    return [{"x": shape} for shape in shapes]


# package, file, and the shapes of inputs (numbers are values)
MODELS = {
    "magika": ("magika", "models/standard_v3_3/model.onnx", [{"bytes": (n, 2048)} for n in (1, 2, 3)]),
    "text detection": ("rapidocr_onnxruntime", "models/ch_PP-OCRv4_det_infer.onnx", images((1, 3, 96, 96), (1, 3, 64, 160), (2, 3, 96, 64))),
    "text recognition": ("rapidocr_onnxruntime", "models/ch_PP-OCRv4_rec_infer.onnx", images((1, 3, 48, 96), (1, 3, 48, 160), (2, 3, 48, 64))),
    "text direction": ("rapidocr_onnxruntime", "models/ch_ppocr_mobile_v2.0_cls_infer.onnx", images((1, 3, 48, 192), (2, 3, 48, 192), (1, 3, 48, 96))),
    "voice": ("silero_vad", "data/silero_vad.onnx", [{"input": (n, 576), "state": (2, n, 128), "sr": 16000} for n in (1, 2, 5)]),
    "voice, 8 kHz": ("silero_vad", "data/silero_vad.onnx", [{"input": (n, 288), "state": (2, n, 128), "sr": 8000} for n in (1, 2)]),
    "voice, opset 18": ("silero_vad", "data/silero_vad_op18_ifless.onnx", [{"input": (n, 576), "state": (2, n, 128), "sr": 16000} for n in (1, 2)]),
}


@pytest.fixture(params=list(MODELS))
def model(request):
    package, file, shapes = MODELS[request.param]
    path = folder(package) / file
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    return path, onnxruntime.InferenceSession(str(path), options), shapes


def feed_of(session, shapes):
    rng = np.random.default_rng(0)
    feed = {}
    for argument in session.get_inputs():
        shape = shapes[argument.name]
        if isinstance(shape, int):
            feed[argument.name] = shape
        elif argument.type == "tensor(float)":
            feed[argument.name] = rng.random(shape).astype(np.float32)
        else:
            feed[argument.name] = rng.integers(0, 256, shape).astype(np.int32)
    return feed


def expected_of(session, feed):
    return session.run(None, {name: np.array(value) if isinstance(value, int) else value for name, value in feed.items()})


def assert_equal(found, expected):
    assert len(found) == len(expected)
    for got, want in zip(found, expected):
        got = np.asarray(got)
        assert got.shape == want.shape and got.dtype == want.dtype
        np.testing.assert_allclose(got, want, rtol=TOLERANCE, atol=TOLERANCE)


@pytest.mark.parametrize("compiled", [False, True], ids=["uncompiled", "compiled"])
def test_results_equal_onnxruntimes(model, compiled):
    path, session, rows = model
    f = bp.onnx.load(path)
    f = bp.compile(f) if compiled else f
    for shapes in rows:
        feed = feed_of(session, shapes)
        assert_equal([tensor.numpy() for tensor in f(**feed)], expected_of(session, feed))


def test_a_session_in_onnxruntimes_place(model):
    path, session, rows = model
    ours = bp.onnx.InferenceSession(str(path))
    for shapes in rows[:1]:
        feed = feed_of(session, shapes)
        assert_equal(ours.run(None, {name: np.asarray(value) for name, value in feed.items()}), expected_of(session, feed))


def test_converted_files_equal_onnxruntime(model, tmp_path):
    from backplane.onnx import __main__ as command

    path, session, rows = model
    feed = feed_of(session, rows[0])
    words = []
    for name, value in feed.items():
        words += ["--value", f"{name}={value}"] if isinstance(value, int) else ["--shape", f"{name}={','.join(map(str, value.shape))}"]
    assert command.convert([str(path), str(tmp_path / "m.safetensors"), *words]) == 0
    loaded = bp.load(tmp_path / "m.safetensors")
    found = loaded(*(bp.asarray(value) for value in feed.values() if not isinstance(value, int)))
    assert_equal([tensor.numpy() for tensor in found], expected_of(session, feed))


@pytest.mark.skipif("vulkan" not in {device.name for device in bp.devices()}, reason="no Vulkan device")
@pytest.mark.parametrize("compiled", [False, True], ids=["uncompiled", "compiled"])
def test_results_on_vulkan(model, compiled):
    path, session, rows = model
    f = bp.onnx.load(path)
    f = bp.compile(f) if compiled else f
    for shapes in rows[:1]:
        feed = feed_of(session, shapes)
        moved = {name: value if isinstance(value, int) else bp.asarray(value).to("vulkan") for name, value in feed.items()}
        found = f(**moved)
        assert all(tensor.device == moved[next(iter(moved))].device for tensor in found)
        assert_equal([tensor.to("cpu").numpy() for tensor in found], expected_of(session, feed))
