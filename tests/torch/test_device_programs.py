"""What users write around their models, on the device: the values of PyTorch's CPU, without the host's help."""

import copy

import comparison
import pytest
import torch
from torch import nn

import backplane.torch

DEVICE = backplane.torch.device("cpu")


@pytest.fixture(autouse=True)
def _without_the_host():
    with backplane.torch.forbid_fallbacks():
        yield


def _net():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, 3))


def _trained(device, make, scaler=None):
    net, x = _net().to(device), torch.randn(6, 4, generator=torch.Generator().manual_seed(1)).to(device)
    optimizer = make(net.parameters())
    for step in range(4):
        optimizer.zero_grad()
        loss = net(x).square().mean() * (float("inf") if step == 1 and scaler else 1.0)
        if scaler is None:
            loss.backward()
            optimizer.step()
        else:
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
    return [parameter.detach().cpu() for parameter in net.parameters()]


FUSED = {
    "adam": lambda ps: torch.optim.Adam(ps, 0.05, amsgrad=True, weight_decay=0.1, fused=True),
    "adamw": lambda ps: torch.optim.AdamW(ps, 0.05, maximize=True, fused=True),
    "tensor lr": lambda ps: torch.optim.AdamW(ps, torch.tensor(0.05), fused=True),
    "sgd": lambda ps: torch.optim.SGD(ps, 0.05, momentum=0.9, nesterov=True, weight_decay=0.1, fused=True),
    "sgd dampening": lambda ps: torch.optim.SGD(ps, 0.05, momentum=0.9, dampening=0.2, maximize=True, fused=True),
    "adagrad": lambda ps: torch.optim.Adagrad(ps, 0.05, lr_decay=0.1, weight_decay=0.1, fused=True),
}


@pytest.mark.parametrize("name", FUSED)
def test_fused_optimizers(name):
    comparison.assert_same(_trained(DEVICE, FUSED[name]), _trained("cpu", FUSED[name]), 1e-5)


@pytest.mark.parametrize("name", ["adamw", "sgd"])
def test_fused_optimizers_skip_steps_with_infinite_gradients(name):
    expected = _trained("cpu", FUSED[name], torch.amp.GradScaler("cpu", init_scale=8.0))
    comparison.assert_same(_trained(DEVICE, FUSED[name], torch.amp.GradScaler(DEVICE.type, init_scale=8.0)), expected, 1e-5)


MASKS = {
    "none": lambda: {},
    "padding": lambda: {"src_key_padding_mask": torch.tensor([[False] * 5, [False] * 3 + [True] * 2])},
    "causal": lambda: {"mask": nn.Transformer.generate_square_subsequent_mask(5)},
    "both": lambda: {"mask": torch.ones(5, 5).triu(1).bool(), "src_key_padding_mask": torch.tensor([[False] * 5, [True] + [False] * 3 + [True]])},
}


@pytest.mark.parametrize("masks", MASKS)
@pytest.mark.parametrize("first", [False, True], ids=["", "norm first"])
def test_encoders_in_evaluation(masks, first):
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(8, 2, 16, activation="gelu" if first else "relu", batch_first=True, norm_first=first)
    encoder, x = nn.TransformerEncoder(layer, 2, enable_nested_tensor=not first).eval(), torch.randn(2, 5, 8)
    given = MASKS[masks]()
    with torch.no_grad():
        expected = encoder(x, **given)
        found = copy.deepcopy(encoder).to(DEVICE)(x.to(DEVICE), **{key: mask.to(DEVICE) for key, mask in given.items()})
    valid = ~given.get("src_key_padding_mask", torch.zeros(2, 5, dtype=torch.bool))  # PyTorch's nested tensors leave 0 elsewhere
    comparison.assert_same(found.cpu()[valid], expected[valid], 1e-5)


def test_attention_with_weights_in_evaluation():
    torch.manual_seed(0)
    attention, x = nn.MultiheadAttention(8, 2, batch_first=True).eval(), torch.randn(2, 5, 8)
    with torch.no_grad():
        comparison.assert_same([y.cpu() for y in copy.deepcopy(attention).to(DEVICE)(*[x.to(DEVICE)] * 3)], attention(x, x, x), 1e-5)
        expected = attention(x, x, x, average_attn_weights=False)
        comparison.assert_same([y.cpu() for y in copy.deepcopy(attention).to(DEVICE)(*[x.to(DEVICE)] * 3, average_attn_weights=False)], expected, 1e-5)


def test_a_hessian_and_gradients_per_example():
    x = torch.randn(4)
    hessian = torch.func.hessian(lambda v: (v.sin() ** 2).sum())
    comparison.assert_same(hessian(x.to(DEVICE)).cpu(), hessian(x), 1e-5)


def test_an_embedding_with_a_largest_norm():
    torch.manual_seed(0)
    layer, rows = nn.Embedding(5, 3, max_norm=0.5), torch.tensor([[1, 3], [1, 4]])
    twin = copy.deepcopy(layer).to(DEVICE)
    comparison.assert_same(twin(rows.to(DEVICE)).cpu(), layer(rows))
    comparison.assert_same(twin.weight.cpu(), layer.weight)


def test_a_compiled_model_on_the_device():
    """Results, gradients and changed buffers lie on the device, and dropout draws PyTorch's numbers."""
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(4, 5), nn.BatchNorm1d(5), nn.Dropout(0.3), nn.Linear(5, 3))
    twin = copy.deepcopy(net).to(DEVICE)
    compiled = torch.compile(twin, backend="backplane", fullgraph=True)
    for n in (6, 6, 3):
        x = torch.randn(n, 4)

        def step(function, model, x):
            torch.manual_seed(2)
            model.zero_grad()
            y = function(x)
            y.square().mean().backward()
            return [y, *(parameter.grad for parameter in model.parameters()), *model.buffers()]

        found, expected = step(compiled, twin, x.to(DEVICE)), step(net, net, x)
        assert {y.device for y in found} == {DEVICE}
        comparison.assert_same([y.cpu() for y in found], expected)
    twin.eval(), net.eval()
    comparison.assert_same(step(compiled, twin, x.to(DEVICE))[0].cpu(), net(x))


def test_a_compiled_function_with_tensors_on_two_devices():
    compiled = torch.compile(lambda x, i: (x.t(), x[i], x.cpu() + 1, x.new_zeros(2) + torch.rand(2, device=x.device)), backend="backplane", fullgraph=True)
    x = torch.randn(3, 4)
    torch.manual_seed(5)
    found = compiled(x.to(DEVICE), torch.tensor([2, 0]))
    torch.manual_seed(5)
    assert [y.device for y in found] == [DEVICE, DEVICE, torch.device("cpu"), DEVICE] and found[0].stride() == (1, 4)
    comparison.assert_same([y.cpu() for y in found], [x.t(), x[[2, 0]], x + 1, torch.rand(2)])
