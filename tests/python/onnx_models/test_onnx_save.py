"""Models that save writes, against onnx's reference implementation: values, names, dynamic sizes, and refusals."""

import inspect

import backplane as bp
import backplane.nn.functional as F
import numpy as np
import onnx
import pytest
from onnx.reference import ReferenceEvaluator

rng = np.random.default_rng(0)


def floats(*shape):
    return bp.asarray(rng.standard_normal(shape).astype(np.float32))


X, IMAGE, W, B = floats(3, 4), floats(1, 2, 6, 6), floats(4, 5), floats(5)
KERNEL = floats(3, 2, 3, 3)
CASES = {
    "arithmetic": lambda: (lambda x: ((x + 2) * x / 3 - 1, x // 0.7, x % 0.7, x**2), X),
    "choices": lambda: (lambda x: (bp.where(x > 0, x, -1), bp.clip(x, 0, 1), bp.argmax(x, axis=1), bp.sort(x, axis=1), bp.topk(x, 2)[1]), X),
    "perceptron": lambda: (lambda x: bp.softmax(F.gelu(x @ W) + B), X),
    "convolution": lambda: (lambda x: F.max_pool2d(F.relu(F.conv2d(x, KERNEL, padding=1)), 2).mean((2, 3)), IMAGE),
    "views": lambda: (lambda x: (x.T[1:, ::-1], bp.concat([x, x]), x.reshape(2, -1), x[bp.asarray([2, 0])], bp.pad(x, ((1, 0), (0, 1)))), X),
    "decompositions": lambda: (lambda x: (F.prelu(x, B[:1]), F.softshrink(x), F.logsigmoid(x), F.cosine_similarity(x, x[::-1]), bp.fmod(x, 0.7), bp.hypot(x, 2)), X),
    "exact differences": lambda: (lambda x: (bp.expm1(x * 1e-5), bp.log1p(x * 1e-5), bp.atan2(x, x[::-1])), X),
}  # fmt: skip


def flat(results):
    return list(results) if isinstance(results, (tuple, list)) else [results]


@pytest.mark.parametrize("name", list(CASES))
def test_a_saved_graph_computes_the_same(name, tmp_path):
    function, x = CASES[name]()
    path = tmp_path / "model.onnx"
    bp.onnx.save(function, path, [x])
    onnx.checker.check_model(str(path), full_check=True)
    model = onnx.load(path)
    found = ReferenceEvaluator(model).run(None, {model.graph.input[0].name: x.numpy()})
    again = bp.onnx.load(path)(x)
    for got, loaded, want in zip(found, again, flat(function(x)), strict=True):
        assert got.dtype == want.numpy().dtype and loaded.dtype == want.dtype
        np.testing.assert_allclose(got, want.numpy(), rtol=2e-5, atol=1e-6)
        np.testing.assert_allclose(loaded.numpy(), want.numpy(), rtol=2e-5, atol=1e-6)


def test_names_and_dynamic_sizes(tmp_path):
    path = tmp_path / "model.onnx"
    bp.onnx.save(lambda x: x.reshape(x.shape[0] * 2, -1) @ W[:2], path, [bp.ones((2, 4))], dynamic={"x": {0: "batch"}}, input_names=["in"], output_names=["out"])
    f = bp.onnx.load(path)
    assert [(v.name, v.dims) for v in f.inputs] == [("in", ["batch", 4])] and f.outputs[0].name == "out"
    assert f(bp.ones((5, 4)))[0].shape == (10, 5)


def test_graphs_and_loaded_models_are_saved_too(tmp_path):
    bp.export(lambda x: bp.tanh(x) @ W, [X], tmp_path / "m.safetensors")
    for i, graph in enumerate((bp.make_graph(lambda x: bp.tanh(x) @ W)(X), bp.load(tmp_path / "m.safetensors"))):
        bp.onnx.save(graph, tmp_path / f"{i}.onnx")
        assert bp.allclose(bp.onnx.load(tmp_path / f"{i}.onnx")(X)[0], bp.tanh(X) @ W)


@pytest.mark.parametrize(
    ("function", "error", "words"),
    [
        (lambda x: x + bp.uniform((3, 4)), bp.MissingRuleError, "the op bp::"),
        (lambda x: bp.fft.fft(x), bp.MissingRuleError, "onnx.save"),
        (lambda x: x.add_(1), bp.ArgumentValueError, "in place"),
    ],
)
def test_what_cannot_be_written_is_refused(function, error, words, tmp_path):
    with pytest.raises(error, match=words):
        bp.onnx.save(function, tmp_path / "model.onnx", [bp.ones((3, 4))])
    assert not (tmp_path / "model.onnx").exists()
    with pytest.raises(bp.ArgumentTypeError, match="args"):
        bp.onnx.save(function, tmp_path / "model.onnx")


DYNAMIC = {
    "group norm": (lambda x: F.group_norm(x, 2), {0: "b", 2: "h", 3: "w"}),
    "instance norm": (F.instance_norm, {0: "b", 2: "h", 3: "w"}),
    "transposed convolution": (lambda x: F.conv_transpose2d(x, bp.ones((4, 3, 3, 2)), stride=2, padding=1, output_padding=1), {0: "b", 2: "h", 3: "w"}),
    "transposed convolution of rows": (lambda x: F.conv_transpose2d(x, bp.ones((4, 3, 3, 2))), {0: "b", 3: "w"}),
    "a rest of a negative size": (lambda x: F.pad(x, (0, (-x.shape[3]) % 8)), {3: "w"}),
    "a quotient of a negative size": (lambda x: x[:, :, :, : -((1 - x.shape[3]) // 3)], {3: "w"}),
}


@pytest.mark.parametrize("name", DYNAMIC)
def test_sizes_that_stay_dynamic(name, tmp_path):
    function, axes = DYNAMIC[name]
    path = tmp_path / "model.onnx"
    bp.onnx.save(function, path, [bp.ones((2, 4, 5, 6))], dynamic={next(iter(inspect.signature(function).parameters)): axes})
    for sizes in ((1, 4, 7, 8), (3, 4, 9, 13), (2, 4, 4, 11)):
        x = np.random.default_rng(0).standard_normal([size if axis in axes else (2, 4, 5, 6)[axis] for axis, size in enumerate(sizes)]).astype("f4")
        (found,) = ReferenceEvaluator(str(path)).run(None, {onnx.load(path).graph.input[0].name: x})
        np.testing.assert_allclose(found, function(bp.asarray(x)).numpy(), rtol=1e-4, atol=1e-4)
