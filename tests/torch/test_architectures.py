"""Architectures of the package transformers through torch.export and torch.compile: values and gradients are PyTorch's."""

import copy

import comparison
import pytest
import torch

import backplane as bp
import backplane.torch

architectures = pytest.importorskip("architectures", reason="the package transformers is not installed")

more = pytest.importorskip("more_architectures")
architectures.ROWS.update(more.ROWS)
SHORT = ("bert", "llama", "phi3", "mixtral", "regnet")
NAMES = [name if name in SHORT else pytest.param(name, marks=pytest.mark.whole) for name in architectures.ROWS]
# In training they mask at random by NumPy.
IN_EVALUATION = {"wav2vec2", "hubert", "wavlm", "sew", "unispeech", "data2vec_audio", "wav2vec2_conformer", "speecht5"}
NOT_EXPORTED = {"longformer", "nystromformer", "led", "longt5", "switch_transformers", "vilt", "encodec", "time_series_transformer"}  # by torch.export itself
NOT_COMPILED = {"nystromformer", "longt5", "patchtst"}  # by Dynamo and AOTAutograd themselves
BREAKS = {"deberta", "longformer", "xlm", "led", "m2m_100", "vilt", "encodec", "time_series_transformer", "switch_transformers", "segformer", "detr", "dpt"}  # PyTorch's own backends break these graphs too
SIZES_FROM_DATA = {"vits"}  # bp.compile refuses them: a size that is an element of a tensor
IN_FLOAT32 = {"mixtral", "qwen2_moe", "qwen3_moe", "olmoe", "gpt_oss", "deepseek_v3", "jamba"}  # PyTorch's products of groups have no float64
IN_FLOAT64 = {"vit_mae", "audio_spectrogram_transformer"}  # a layer norm of a token that is 0 enlarges rounding errors by 1 / sqrt(eps)


@pytest.mark.parametrize("name", NAMES)
def test_an_exported_architecture(name):
    if name in NOT_EXPORTED:
        pytest.skip(f"torch.export refuses {name}")
    model, arguments = architectures.architecture(name)
    with torch.no_grad():
        expected = model(**arguments)
    function = backplane.torch.from_exported(torch.export.export(model, (), arguments))
    comparison.assert_same(function(**arguments), expected)
    if name in SIZES_FROM_DATA:
        return
    ours = {key: bp.asarray(value) for key, value in arguments.items()}
    comparison.assert_same(bp.compile(function)(**ours), expected)


def _step(function, model, arguments):
    model.zero_grad()
    torch.manual_seed(1)
    found = [x for x in comparison.tensors(function(**arguments)) if x.requires_grad]
    sum((x**2).mean() for x in found).backward()
    return found, [parameter.grad for parameter in model.parameters() if parameter.grad is not None]


@pytest.mark.parametrize("name", NAMES)
def test_a_compiled_architecture_in_training(name):
    """In float64, as batch norms of two examples enlarge rounding errors. Dropout draws PyTorch's numbers."""
    if name in NOT_COMPILED:
        pytest.skip(f"torch.compile refuses {name}")
    model, arguments = architectures.architecture(name)
    dtype, tolerance = (torch.float32, 1e-4) if name in IN_FLOAT32 else (torch.float64, 1e-6)
    model = model.to(dtype).train(name not in IN_EVALUATION)
    arguments = {key: x.to(dtype) if x.is_floating_point() else x for key, x in arguments.items()}
    twin = copy.deepcopy(model)
    expected = _step(twin, twin, arguments)
    torch._dynamo.utils.counters.clear()
    compiled = torch.compile(model, backend="backplane")
    found = _step(compiled, model, arguments)
    assert name in BREAKS or not torch._dynamo.utils.counters["graph_break"]
    comparison.assert_same(found, expected, tolerance)
    for x, y in zip(model.buffers(), twin.buffers()):
        comparison.assert_same(x, y, tolerance)


@pytest.mark.parametrize("name", NAMES)
def test_an_architecture_on_the_device(name):
    """Eagerly, forward and backward, without the host's help."""
    (model, arguments), twin = architectures.architecture(name), architectures.architecture(name)[0]
    device = backplane.torch.device("cpu")
    if name in IN_FLOAT64:
        model, twin, arguments = model.double(), twin.double(), {key: x.double() if x.is_floating_point() else x for key, x in arguments.items()}
    expected = _step(model, model, arguments)
    twin.to(device)
    with backplane.torch.forbid_fallbacks():
        found = _step(twin, twin, {key: value.to(device) for key, value in arguments.items()})
    comparison.assert_same([[x.cpu() for x in part] for part in found], expected, 1e-3)
