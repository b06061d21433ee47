"""Modules: finding and changing their contents, and that transforms take them as containers of tensors."""

import copy
import pickle

import numpy as np
import pytest

import backplane as bp
from backplane import nn


class Net(nn.Module):
    """Parameters, buffers and submodules in attributes, a list and a dict."""

    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(bp.ones(3))
        self.seen = bp.zeros(3)
        self.layers = [nn.Linear(2, 2), {"last": nn.Linear(2, 3)}]
        self.extra = {"shift": nn.Parameter(bp.zeros(3)), "count": bp.zeros((), dtype=bp.int64)}
        self.register_buffer("hidden", bp.ones(1), persistent=False)

    def forward(self, x):
        return self.layers[1]["last"](bp.tanh(self.layers[0](x))) * self.scale + self.extra["shift"]


def loss_of(module, x):
    return (module(x) ** 2).mean()


X = bp.asarray(np.random.default_rng(0).normal(size=(5, 2)).astype("float32"))


def test_names_of_parameters_and_buffers():
    net = Net()
    layers = ["layers.0.weight", "layers.0.bias", "layers.1.last.weight", "layers.1.last.bias"]
    assert [name for name, _ in net.named_parameters()] == ["scale", "extra.shift", *layers]
    assert [name for name, _ in net.named_buffers()] == ["seen", "extra.count", "hidden"]
    assert list(net.state_dict()) == ["scale", "extra.shift", "seen", "extra.count", *layers]
    assert [name for name, _ in net.named_modules()] == ["", "layers.0", "layers.1.last"]
    assert net.get_submodule("layers.1.last") is net.layers[1]["last"] and net.get_parameter("scale") is net.scale
    assert "layers.0): Linear(in_features=2, out_features=2, bias=True)  # weight (2, 2), bias (2,), 6 parameters" in repr(net)
    assert "21 parameters" in repr(net).splitlines()[0]


def test_a_parameter_that_is_frozen_stays_one():
    net = Net()
    for p in net.parameters():
        p.requires_grad_(False)
    assert len(list(net.parameters())) == 6
    frozen = nn.Parameter(bp.ones(2), requires_grad=False)
    assert isinstance(frozen, nn.Parameter) and not isinstance(bp.ones(2), nn.Parameter)


def test_a_state_goes_from_one_module_to_another():
    net, other = Net(), Net()
    assert other.load_state_dict(net.state_dict()) == ([], [])
    np.testing.assert_array_equal(other(X).detach().numpy(), net(X).detach().numpy())
    state = net.state_dict()
    removed = state.pop("scale")
    before = other.scale.tolist()
    with pytest.raises(bp.ArgumentValueError, match="missing: scale"):
        other.load_state_dict({**state, "extra.shift": removed + 7})
    assert other.scale.tolist() == before and other.extra["shift"].tolist() == [0, 0, 0]
    assert other.load_state_dict({**state, "more": removed}, strict=False) == (["scale"], ["more"])
    with pytest.raises(bp.ArgumentValueError, match=r"scale has shape \(2,\), expected \(3,\)"):
        other.load_state_dict({**state, "scale": bp.ones(2)})
    assert state["layers.0.weight"].requires_grad is False


def test_moving_keeps_ties_and_gradients():
    net = Net()
    net.tied = net.layers[0].weight
    loss_of(net, X).backward()
    assert net.to(bp.float64) is net
    assert net.tied is net.layers[0].weight and net.tied.dtype == net.tied.grad.dtype == bp.float64 and net.tied.requires_grad
    assert net.extra["count"].dtype == bp.int64 and net(X.astype(bp.float64)).dtype == bp.float64
    with pytest.raises(bp.DtypeError, match="Linear: argument input: found backplane.float32|Linear: argument input: found float32"):
        net(X)


def test_copies_and_pickles():
    net = Net()
    for other in (copy.deepcopy(net), pickle.loads(pickle.dumps(net))):
        np.testing.assert_array_equal(other(X).detach().numpy(), net(X).detach().numpy())
        assert all(p.requires_grad for p in other.parameters()) and other.scale is not net.scale


def test_modes_hooks_and_gradients():
    net, calls = nn.Sequential(nn.Linear(2, 2), nn.Dropout(0.5)), []
    assert not net.eval()[1].training and net.train()[1].training
    handle = net[0].register_forward_hook(lambda module, args, output: calls.append("after") or output * 2)
    before = net[0].register_forward_pre_hook(lambda module, args: calls.append("before"))
    doubled = net.eval()(X)
    handle.remove()
    np.testing.assert_allclose(doubled.detach().numpy(), 2 * net(X).detach().numpy())
    before.remove()
    assert calls == ["before", "after", "before"]
    net(X).sum().backward()
    net.zero_grad()
    assert net[0].weight.grad is None


def test_grad_gives_a_module_of_gradients():
    net = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3), nn.Tanh())
    found = bp.grad(loss_of)(net, X)
    loss_of(net, X).backward()
    for name, p in net.named_parameters():
        np.testing.assert_array_equal(found.get_parameter(name).numpy(), p.grad.numpy())
    assert found[1].running_mean is None and net[1].num_batches_tracked.item() == 2
    value, pullback = bp.vjp(lambda module: module(X), net)
    assert pullback(bp.ones_like(value))[0][0].weight.shape == (3, 2)
    assert bp.jvp(lambda module: module(X), (net,), (found,))[1].shape == (5, 3)
    net.requires_grad_(False)
    both = bp.grad(loss_of)(nn.Sequential(net, nn.Linear(3, 1)), X)
    assert both[0][0].weight is None and both[1].weight.shape == (1, 3)


def test_a_tied_weight_has_the_sum_of_its_gradients():
    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Linear(2, 2, bias=False), nn.Linear(2, 2, bias=False)
            self.b.weight = self.a.weight

        def forward(self, x):
            return self.b(bp.tanh(self.a(x)))

    net = Tied()
    assert len(list(net.parameters())) == 1 and list(net.state_dict()) == ["a.weight", "b.weight"]
    found = bp.grad(loss_of)(net, X)
    loss_of(net, X).backward()
    np.testing.assert_allclose(found.a.weight.numpy(), net.a.weight.grad.numpy(), rtol=1e-6)
    assert found.a.weight is found.b.weight


def test_vmap_over_an_ensemble():
    nets = [nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3)).eval() for _ in range(3)]
    stacked = bp.tree.map(lambda *x: bp.stack(x), *nets)
    found = bp.vmap(lambda net, x: net(x), in_axes=(0, None))(stacked, X)
    for i, net in enumerate(nets):
        np.testing.assert_allclose(found[i].detach().numpy(), net(X).detach().numpy(), rtol=1e-6)
    each = bp.vmap(bp.grad(lambda net, x: (net(x[None]) ** 2).sum()), in_axes=(None, 0))(nets[0], X)
    assert each[0].weight.shape == (5, 3, 2)


def test_compile_checkpoint_and_export_take_modules(tmp_path):
    net = Net()
    np.testing.assert_allclose(bp.compile(net)(X).detach().numpy(), net(X).detach().numpy(), rtol=1e-6)
    run = bp.compile(lambda module, x: module(x))
    expected = net(X).detach().numpy()
    np.testing.assert_allclose(run(net, X).detach().numpy(), expected, rtol=1e-6)
    log = bp.compile_log()
    run(Net(), X)
    assert bp.compile_log() == log
    saved = bp.checkpoint(net)(X)
    (saved**2).mean().backward()
    np.testing.assert_allclose(net.scale.grad.numpy(), bp.grad(loss_of)(net, X).scale.numpy(), rtol=1e-6)
    bp.export(net, [X], tmp_path / "net.safetensors")
    np.testing.assert_allclose(bp.load(tmp_path / "net.safetensors")(X)[0].numpy(), expected, rtol=1e-6)


def test_a_changed_option_of_a_module_argument_makes_another_trace():
    net = nn.Sequential(nn.Linear(2, 2), nn.Dropout(0.0))
    net.factor = 2.0
    run = bp.compile(lambda module, x: module(x) * module.factor)
    first = run(net, X)
    net.factor = 3.0
    np.testing.assert_allclose(run(net, X).detach().numpy(), 1.5 * first.detach().numpy(), rtol=1e-6)


def test_functional_call():
    net = Net()
    params = {name: bp.zeros_like(p) for name, p in net.named_parameters()}
    assert nn.functional_call(net, params, (X,)).tolist() == [[0.0] * 3] * 5
    assert bp.abs(net(X)).max().item() > 0
    gradients = bp.grad(lambda params: (nn.functional_call(net, params, X) ** 2).mean())(dict(net.named_parameters()))
    np.testing.assert_allclose(gradients["scale"].detach().numpy(), bp.grad(loss_of)(net, X).scale.numpy(), rtol=1e-6)
    with pytest.raises(bp.ArgumentValueError, match="'absent', which Net does not have"):
        nn.functional_call(net, {"absent": bp.ones(1)}, X)


def test_containers():
    layers = nn.ModuleList([nn.Linear(1, 1), nn.Linear(1, 2)])
    layers.append(nn.ReLU()).insert(0, nn.Identity())
    assert len(layers) == 4 and isinstance(layers[-1], nn.ReLU) and list(layers.state_dict())[0] == "1.weight"
    del layers[0]
    assert list(layers[:2].state_dict()) == ["0.weight", "0.bias", "1.weight", "1.bias"]
    named = nn.ModuleDict({"a": nn.Linear(1, 1)})
    named["b"] = nn.ReLU()
    assert list(named) == ["a", "b"] and "a" in named and list(named.state_dict()) == ["a.weight", "a.bias"]
    weights = nn.ParameterList([bp.ones(1), bp.zeros(2)])
    assert [p.requires_grad for p in weights] == [True, True]
    assert list(nn.ParameterDict({"w": bp.ones(1)}).state_dict()) == ["w"]
    assert list(nn.Sequential({"first": nn.Linear(1, 1), "then": nn.ReLU()}).state_dict()) == ["first.weight", "first.bias"]


def test_weight_norm_and_clipping():
    layer = nn.utils.weight_norm(nn.Linear(3, 2))
    plain = layer.weight.detach().numpy()
    layer(bp.ones((1, 3))).sum().backward()
    assert sorted(layer.state_dict()) == ["bias", "weight_g", "weight_v"] and layer.weight_g.grad.shape == (2, 1)
    nn.utils.remove_weight_norm(layer)
    np.testing.assert_allclose(layer.weight.detach().numpy(), plain, rtol=1e-6)
    parameters = [nn.Parameter(bp.ones(2)), nn.Parameter(bp.ones(2))]
    for p in parameters:
        p.grad = bp.ones(2) * 3
    assert abs(nn.utils.clip_grad_norm_(parameters, 1.0).item() - 6) < 1e-5
    assert abs(nn.utils.get_total_norm([p.grad for p in parameters]).item() - 1) < 1e-5
    vector = nn.utils.parameters_to_vector(parameters)
    nn.utils.vector_to_parameters(vector * 2, parameters)
    assert parameters[1].tolist() == [2, 2]


def test_packed_sequences_stop_at_their_lengths():
    bp.manual_seed(0)
    net, x = nn.LSTM(2, 3, 2, bidirectional=True), bp.normal((4, 3, 2))
    lengths = [2, 4, 1]
    packed = nn.utils.rnn.pack_padded_sequence(x, lengths, enforce_sorted=False)
    y, (h, c) = net(packed)
    padded, found = nn.utils.rnn.pad_packed_sequence(y)
    assert found.tolist() == lengths
    for i, n in enumerate(lengths):
        alone, (h1, c1) = net(x[:n, i : i + 1])
        np.testing.assert_allclose(padded[:n, i].detach().numpy(), alone[:, 0].detach().numpy(), rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(h[:, i].detach().numpy(), h1[:, 0].detach().numpy(), rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(c[:, i].detach().numpy(), c1[:, 0].detach().numpy(), rtol=1e-5, atol=1e-6)


def test_initial_values_have_the_spread_that_is_stated():
    bp.manual_seed(1)
    x = nn.init.kaiming_normal_(bp.zeros((200, 300)), nonlinearity="relu")
    assert abs(x.std().item() - (2 / 300) ** 0.5) < 1e-3
    x = nn.init.xavier_uniform_(bp.zeros((200, 300)))
    assert abs(x.std().item() - (2 / 500) ** 0.5) < 1e-3 and bp.abs(x).max().item() <= (6 / 500) ** 0.5
    q = nn.init.orthogonal_(bp.zeros((4, 6)))
    np.testing.assert_allclose((q @ q.T).numpy(), np.eye(4), atol=1e-5)
    x = nn.init.trunc_normal_(bp.zeros(20000), std=1.0, a=-1.0, b=1.0)
    assert bp.abs(x).max().item() <= 1 and abs(x.std().item() - 0.54) < 0.01
    assert nn.Linear(4, 3).weight.abs().max().item() <= 0.5


class Running(nn.Module):
    """A buffer that is replaced and a number that is counted, at each call."""

    def __init__(self):
        super().__init__()
        self.weight, self.count = nn.Parameter(bp.ones(2)), 0
        self.register_buffer("mean", bp.zeros(2))

    def forward(self, x):
        self.mean, self.count = 0.5 * self.mean + x.mean(axis=0) * self.weight, self.count + 1
        return x * self.weight


@pytest.mark.parametrize("compiled", [False, True])
def test_what_a_module_sets_under_grad_stays(compiled):
    module = Running()
    step = bp.value_and_grad(lambda m, x: m(x).sum())
    run = bp.compile(lambda x: step(module, x)[0], state=[module]) if compiled else lambda x: step(module, x)[0]
    for _ in range(3):
        run(bp.ones((4, 2)))
    assert module.mean.tolist() == [1.75, 1.75] and module.count == 3 and not module.mean.requires_grad
    hessian = bp.grad(lambda m, x: bp.grad(lambda m, x: (m(x) ** 2).sum())(m, x).weight.sum())(module, bp.ones((4, 2)))
    assert hessian.weight.tolist() == [8, 8] and module.count == 4


def test_what_a_module_sets_under_functional_call_stays():
    module, x = Running(), bp.ones((4, 2))
    for _ in range(2):
        bp.grad(lambda params: nn.functional_call(module, params, x).sum())(dict(module.named_parameters()))
    assert module.mean.tolist() == [1.5, 1.5] and module.count == 2
    nn.functional_call(module, {"mean": bp.zeros(2)}, x)
    assert module.mean.tolist() == [1.5, 1.5] and module.count == 2 and module.weight.requires_grad


def test_a_result_that_forward_keeps_is_not_state():
    class Keeps(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(2, 2)

        def forward(self, x):
            self.kept = self.layer(x)
            return self.kept.sum()

    module, x = Keeps(), bp.ones((1, 2))
    names = list(module.state_dict())
    bp.grad(lambda m: m(x))(module)
    module(x).backward()
    assert list(module.state_dict()) == names and module.kept.shape == (1, 2)
    assert bp.grad(lambda m: m(x))(module).layer.weight.shape == (2, 2)


@pytest.mark.parametrize("ndim", [1, 2, 3])
def test_instance_norm_without_momentum_keeps_its_statistics(ndim):
    layer = getattr(nn, f"InstanceNorm{ndim}d")(3, momentum=None, track_running_stats=True)
    x = bp.normal((2, 3, *[4] * ndim))
    plain = getattr(nn, f"InstanceNorm{ndim}d")(3)
    np.testing.assert_allclose(layer(x).numpy(), plain(x).numpy())
    assert layer.running_mean.tolist() == [0.0] * 3 and layer.running_var.tolist() == [1.0] * 3


@pytest.mark.parametrize("ndim", [1, 2, 3])
def test_a_convolution_that_no_call_can_compute_is_refused_when_it_is_made(ndim):
    kind = getattr(nn, f"Conv{ndim}d")
    for options in ({"padding": "same", "stride": 2}, {"padding": "same", "stride": [1] * (ndim - 1) + [3]}, {"padding": "full"}):
        with pytest.raises(bp.ArgumentValueError, match=f"Conv{ndim}d: argument padding: found"):
            kind(1, 1, 3, **options)
    assert kind(1, 1, 3, padding="same")(bp.ones((1, 1, *[5] * ndim))).shape[2:] == (5,) * ndim


@pytest.mark.parametrize("run", [lambda f, m: f(m), lambda f, m: bp.make_graph(f)(m)(m), lambda f, m: bp.compile(f)(m)], ids=["eager", "graph", "compiled"])
def test_trees_of_modules_are_mapped_in_every_mode(run):
    model = nn.Sequential(nn.Linear(2, 3), nn.LayerNorm(3), nn.Dropout(0.5), nn.Linear(3, 1)).eval()
    x = bp.ones(4, 2)

    def step(model):
        gradients = bp.grad(lambda m: (m(x) ** 2).sum())(model)
        doubled = bp.tree.map(lambda a, b: a + b, gradients, gradients)
        return bp.tree.map(lambda p, g: p - 0.05 * g, model, doubled)

    found = bp.tree.leaves(run(step, model))
    gradients = bp.tree.leaves(bp.grad(lambda m: (m(x) ** 2).sum())(model))
    for new, old, gradient in zip(found, bp.tree.leaves(model), gradients, strict=True):
        assert bp.allclose(new, old - 0.1 * gradient, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("module", [bp.nn.Dropout(0.0), bp.nn.Dropout1d(0.0), bp.nn.TransformerEncoderLayer(4, 2, 8, dropout=0.0)])
def test_a_probability_of_0_draws_no_random_numbers(module):
    x = bp.ones((3, 2, 5, 4))
    state = bp.default_generator.state
    rows = bp.vmap(module)(x[..., 0, :])  # which refuses random numbers
    assert rows.shape == (3, 2, 4) and bp.default_generator.state == state
