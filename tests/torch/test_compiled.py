"""torch.compile(backend="backplane"): one graph per function, with PyTorch's values, gradients, aliases, mutations and random numbers."""

import comparison
import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

import backplane as bp
from backplane.torch import _compiled


def leaf(*sizes):
    return torch.randn(*sizes, requires_grad=True)


def changed_arguments(x, y):
    x.mul_(2)
    y[0] = 5
    return x + y


def changed_view(x):
    view = x[1:]
    view.add_(1)
    return view, x * 2


def assigned_by_mask(x):
    y = x.clone()
    y[y > 0] = 0
    return y


def partly_unrecorded(x):
    with torch.no_grad():
        y = x * 2
    return y + x


def in_bfloat16(x, w):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        return (x @ w).float()


def layer_norms(x, w, b):
    norm = nn.functional.layer_norm
    return norm(x, (4,), w, b), norm(x, (3, 4)), norm(x, (4,), w), norm(x, (4,), None, b, 0.5), norm(x.double(), (4,), w.double(), b.double()), norm(x[:0], (4,), w, b)


def heads(x, w, b):
    q, k, v = (y.view(*y.shape[:2], 4, 2).transpose(1, 2) for y in nn.functional.linear(x, w, b).split(8, -1))
    return nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2)


CASES = {  # a function, and the arguments of each of its calls
    "sizes": (lambda x, w: torch.tanh(x @ w).sum(0) * x.shape[0], [lambda n=n: (leaf(n, 3), leaf(3, 4)) for n in (2, 5, 7)]),
    "views by sizes": (lambda x: (x.view(x.shape[0] // 2, -1), x.shape[0] * 2, x.new_zeros(x.shape[0])), [lambda n=n: (leaf(n, 3),) for n in (4, 6, 8)]),
    "aliases": (lambda x: (x.t(), x, x.view(-1)), [lambda: (torch.randn(2, 3),)]),
    "recorded aliases": (lambda x: (x.t(), x.view(-1) * 2), [lambda: (leaf(2, 3),)]),
    "changed arguments": (changed_arguments, [lambda: (torch.randn(3, 3), torch.randn(3, 3))]),
    "changed view": (changed_view, [lambda: (torch.randn(3, 3),)]),
    "constants": (lambda x: (x + 1, torch.zeros(3), torch.arange(4)), [lambda: (torch.randn(3),)]),
    "bools": (lambda x: (x > 0, torch.where(x > 0, x, -x), x.masked_fill(x > 0, 0.0)), [lambda: (leaf(3, 4),)]),
    "integers": (lambda x, k: x + k, [lambda k=k: (torch.arange(4), k) for k in (2, 3, 4)]),
    "floats": (lambda x, k: x * k, [lambda k=k: (leaf(4), k) for k in (2.5, 3.5, 4.5)]),
    "strided": (lambda x: x.sum(1) * 2, [lambda: (torch.randn(4, 6)[:, ::2],)]),
    "complex": (lambda x: torch.view_as_real(torch.fft.fft(x)), [lambda: (leaf(8),)]),
    "mask": (assigned_by_mask, [lambda: (leaf(5),)]),
    "no elements": (lambda x: (x * 2, x.sum()), [lambda: (leaf(0, 3),)]),
    "promotion": (lambda x: x.sum() * torch.tensor(2.0, dtype=torch.float64) + torch.tensor(1), [lambda: (leaf(3),)]),
    "autocast": (in_bfloat16, [lambda: (leaf(4, 4), leaf(4, 4))]),
    "cond": (lambda x: torch.cond(x.sum() > 0, torch.sin, torch.cos, (x,)), [lambda: (torch.ones(3),), lambda: (-torch.ones(3),)]),
    "no_grad": (partly_unrecorded, [lambda: (leaf(3),)]),
    "checkpoint": (lambda x, w: checkpoint(lambda a: torch.tanh(a @ w).sin(), x, use_reentrant=False), [lambda: (leaf(3, 3), leaf(3, 3))]),
    "attention": (lambda q, k, v: nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True), [lambda: (leaf(2, 2, 5, 4), leaf(2, 2, 5, 4), leaf(2, 2, 5, 4))]),
    "heads of one product": (heads, [lambda: (leaf(2, 5, 6), leaf(24, 6), leaf(24)), lambda: (leaf(3, 4, 6), leaf(24, 6), leaf(24))]),
    "views that are joined": (lambda x, y: torch.cat([x.view(2, 3, 8), y.view(2, 3, 2), x.view(2, 3, 8)], -1), [lambda: (leaf(2, 3, 4, 2), leaf(2, 3, 1, 2))]),
    "views that are joined elsewhere": (lambda x, y: torch.cat([x.view(2, 3, 8), y.view(2, 1, 8)], 1), [lambda: (leaf(2, 3, 4, 2), leaf(2, 1, 2, 4))]),
    "views of other widths": (lambda x, y: torch.cat([x.view(2, 3, 8), y.view(2, 3, 8)], 2), [lambda: (leaf(2, 3, 4, 2), leaf(2, 3, 2, 4))]),
    "layer norms": (layer_norms, [lambda: (leaf(2, 3, 4), leaf(4), leaf(4))]),
    "addmm": (lambda b, x, w: (torch.addmm(b, x, w), torch.addmm(b, x, w, beta=2, alpha=0.5), torch.addmm(b[:1], x, w), torch.addmm(b, x, w, beta=0)), [lambda: (leaf(4), leaf(3, 2), leaf(2, 4))]),
    "dropout": (lambda x: nn.functional.dropout(x, 0.3) + torch.rand_like(x), [lambda: (leaf(6, 7),)]),
    "dropout in another layout": (lambda x: nn.functional.dropout(x.transpose(0, 2), 0.3) + torch.rand_like(x.transpose(0, 1).contiguous().transpose(0, 2)), [lambda: (leaf(4, 4, 4),)]),
    "flip": (lambda x: x.flip(0), [lambda: (leaf(5),)]),
    "embedding": (lambda w, i: nn.functional.embedding(i, w, padding_idx=1), [lambda: (leaf(5, 3), torch.tensor([[1, 4], [4, 0]]))]),
}  # fmt: skip


def _called(function, arguments):
    torch.manual_seed(2)
    found = function(*arguments)
    recorded = [x for x in comparison.tensors(found) if x.requires_grad]
    if recorded:
        sum(x.sum() for x in recorded).backward()
    return found


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("dynamic", [None, True], ids=["", "dynamic"])
def test_a_compiled_function(name, dynamic):
    function, calls = CASES[name]
    compiled = torch.compile(function, backend="backplane", dynamic=dynamic, fullgraph=True)
    for make in calls:
        arguments = make()
        twins = comparison.copied(arguments)
        expected, found = _called(function, arguments), _called(compiled, twins)
        comparison.assert_same(found, expected)
        assert [x for x in torch.utils._pytree.tree_leaves(found) if isinstance(x, int)] == [
            x for x in torch.utils._pytree.tree_leaves(expected) if isinstance(x, int)]  # fmt: skip
        assert [x.stride() for x in comparison.tensors(found)] == [x.stride() for x in comparison.tensors(expected)]
        for x, y in zip(twins, arguments):
            if isinstance(x, torch.Tensor):
                comparison.assert_same(x, y)
                comparison.assert_same(x.grad, y.grad)


def test_the_backend_is_found_by_name():
    assert "backplane" in torch._dynamo.list_backends(exclude_tags=())


def test_training_equals_pytorch():
    net = nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.AvgPool2d(2), nn.Flatten(), nn.Linear(36, 3), nn.Dropout(0.5))
    x, y = torch.randn(6, 1, 8, 8), torch.tensor([0, 1, 2, 0, 1, 2])
    first = {name: value.clone() for name, value in net.state_dict().items()}

    def train(function):
        net.load_state_dict(first)
        torch.manual_seed(3)
        optimizer, losses = torch.optim.Adam(net.parameters(), 0.05), []
        for _ in range(4):
            loss = nn.functional.cross_entropy(function(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        return losses

    expected, found = train(net), train(torch.compile(net, backend="backplane"))
    assert found == pytest.approx(expected, rel=1e-4)


def test_parameters_whose_memory_is_replaced_are_seen():
    net = nn.Linear(3, 3)
    compiled, x = torch.compile(net, backend="backplane"), torch.randn(2, 3)
    compiled(x)
    for change in (lambda: net.weight.data.mul_(2), lambda: setattr(net.weight, "data", torch.ones(3, 3)), lambda: net.load_state_dict(nn.Linear(3, 3).state_dict())):
        change()
        comparison.assert_same(compiled(x), net(x))


def test_results_are_memory_of_their_own():
    compiled = torch.compile(lambda x: (torch.zeros(3), x * 1), backend="backplane")
    x = torch.ones(3)
    zeros, same = compiled(x)
    zeros += 1
    same += 1
    assert compiled(x)[0].tolist() == [0.0, 0.0, 0.0] and x.tolist() == [1.0, 1.0, 1.0]


def test_the_backward_graph_gets_row_major_tensors(monkeypatch):
    """Others would be copied at each step."""
    given = []
    convert = _compiled.CompiledGraph._converted
    monkeypatch.setattr(_compiled.CompiledGraph, "_converted", lambda self, place, x: given.append(x) or convert(self, place, x))
    x, w, b = torch.randn(2, 5, 6), torch.randn(24, 6, requires_grad=True), torch.randn(24, requires_grad=True)
    loss = torch.compile(heads, backend="backplane")(x, w, b).sum()
    given.clear()
    loss.backward()
    assert len(given) > 3 and all(x.is_contiguous() for x in given if x.dim() > 0 and 0 not in x.stride())


def test_another_device():
    if not any(info.device.backend == "vulkan" for info in bp.devices()):
        pytest.skip("no Vulkan device")
    net, x = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2)), torch.randn(3, 4)
    net(x).sum().backward()
    expected = [parameter.grad for parameter in net.parameters()]
    net.zero_grad()
    compiled = torch.compile(net, backend="backplane", options={"device": "vulkan"})
    comparison.assert_same(compiled(x), net(x))
    compiled(x).sum().backward()
    comparison.assert_same([parameter.grad for parameter in net.parameters()], expected)


def test_options_that_do_not_exist_are_refused():
    with pytest.raises(Exception, match='argument options: found \'devce\', expected "device"'):
        torch.compile(lambda x: x + 1, backend="backplane", options={"devce": "cpu"})(torch.ones(1))
