"""from_exported: the function of an exported program, under Backplane's transforms, in files and with other sizes."""

import collections
import shutil
import subprocess

import comparison
import numpy
import pytest
import torch
from torch import nn

import backplane as bp
import backplane.torch


def exported(model, args, kwargs=None, **options):
    return backplane.torch.from_exported(torch.export.export(model, args, kwargs, **options))


class Module(nn.Module):
    """A module of one function."""

    def __init__(self, function):
        super().__init__()
        self.forward = function


def network():
    return nn.Sequential(nn.Conv2d(3, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(64, 5), nn.LayerNorm(5), nn.GELU())


def test_a_network_under_every_transform(tmp_path):
    model, x = network().eval(), torch.randn(2, 3, 8, 8)
    function, ours = exported(model, (x,)), bp.asarray(x.numpy())
    expected = model(x)
    for call in (function, bp.compile(function)):
        comparison.assert_same(call(ours), expected)
    pair = bp.vmap(function)(bp.stack([ours, 2 * ours]))
    comparison.assert_same([pair[0], pair[1]], [expected, model(2 * x)])
    leaf = x.clone().requires_grad_()
    model(leaf).square().sum().backward()
    comparison.assert_same(bp.grad(lambda x: (function(x) ** 2).sum())(ours), leaf.grad)
    path = tmp_path / "model.safetensors"
    bp.export(function, [ours], path)
    comparison.assert_same(bp.load(path)(ours), [expected])


def test_a_file_runs_without_python(tmp_path):
    model, x = nn.Linear(3, 2), torch.randn(4, 3)
    bp.export(exported(model, (x,)), [bp.asarray(x.numpy())], tmp_path / "m.safetensors")
    numpy.save(tmp_path / "x.npy", x.numpy())
    if shutil.which("backplane") is None:
        pytest.skip("the command backplane is not built")
    command = ["backplane", "run", "m.safetensors", "--input", "x.npy", "--output", "y.npy"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    numpy.testing.assert_allclose(numpy.load(tmp_path / "y.npy"), model(x).detach().numpy(), rtol=1e-5, atol=1e-6)


def test_gradients_of_parameters():
    model, x = nn.Linear(3, 2), torch.randn(4, 3)
    function = exported(model, (x,))
    gradients = bp.grad(lambda state: (function.functional(state, bp.asarray(x.numpy())) ** 2).sum())(function.parameters)
    model(x).square().sum().backward()
    comparison.assert_same([gradients["weight"], gradients["bias"]], [model.weight.grad, model.bias.grad])
    with pytest.raises(bp.ArgumentValueError, match="argument state: found 'wait'"):
        function.functional({"wait": bp.ones(3)}, bp.ones((4, 3)))


def test_dynamic_sizes_serve_every_batch():
    model, batch = network().eval(), torch.export.Dim("batch", min=3, max=64)
    function = exported(model, (torch.randn(4, 3, 8, 8),), dynamic_shapes=({0: batch},))
    for size in (3, 7):
        x = torch.randn(size, 3, 8, 8)
        comparison.assert_same(function(x), model(x))
    graph = bp.make_graph(lambda x: function(x), dynamic={"x": {0: "batch"}})(bp.zeros((4, 3, 8, 8)))
    comparison.assert_same(graph(bp.asarray(x.numpy())), model(x))
    with pytest.raises(bp.ShapeError, match=r"found the shape \(65, 3, 8, 8\)"):
        function(bp.zeros((65, 3, 8, 8)))


def test_sizes_are_computed_from_sizes():
    def f(x, y):
        return x.reshape(x.shape[0] // 2, -1), torch.arange(x.shape[0] * 3), y.new_zeros(y.shape[1] + x.shape[0]), x[: y.shape[1]]

    dims = ({0: torch.export.Dim("m") * 2}, {1: torch.export.Dim("n", max=4)})
    function = exported(Module(f), (torch.ones(6, 2), torch.ones(2, 3)), dynamic_shapes=dims)
    for m, n in ((6, 3), (8, 4), (10, 2)):
        x, y = torch.randn(m, 2), torch.randn(2, n)
        comparison.assert_same(function(x, y), f(x, y))


def test_structures_of_arguments_and_results():
    pair = collections.namedtuple("pair", "first second")

    def f(x, pairs, *, scale, offsets):
        return {"sum": x + pairs[0] * scale, "list": [pairs[1], offsets["a"] - x]}, pair(x, 3), None

    arguments = ((torch.ones(2), (torch.ones(2), torch.zeros(2))), {"scale": 2.0, "offsets": {"a": torch.ones(2)}})
    torch.utils._pytree._register_namedtuple(pair, serialized_type_name="tests.pair")
    found, named, nothing = exported(Module(f), *arguments)(*arguments[0], **arguments[1])
    assert found["sum"].tolist() == [3.0, 3.0] and found["list"][1].tolist() == [0.0, 0.0]
    assert type(named) is pair and named.second == 3 and nothing is None


def test_arguments_unlike_the_program_are_refused():
    function = exported(Module(lambda x, k: x * k), (torch.ones(2, 3), 2))
    with pytest.raises(bp.ShapeError, match=r"argument x: found the shape \(2, 4\), expected \(2, 3\)"):
        function(bp.ones((2, 4)), 2)
    with pytest.raises(bp.DtypeError, match="argument x: found float64, expected float32"):
        function(bp.ones((2, 3), dtype=bp.float64), 2)
    with pytest.raises(bp.ArgumentValueError, match="found 3, expected 2"):
        function(bp.ones((2, 3)), 3)
    with pytest.raises(bp.ArgumentTypeError, match="expected a tensor"):
        function("x", 2)
    with pytest.raises(bp.ArgumentTypeError, match="structure"):
        function(bp.ones((2, 3)))
    with pytest.raises(bp.ArgumentTypeError, match="keyword"):
        function(bp.ones((2, 3)), 2, other=1)
    with pytest.raises(bp.ArgumentTypeError, match=r"Fix: torch.export.export\(model, args\)"):
        backplane.torch.from_exported(nn.Linear(2, 2))


def test_buffers_and_arguments_that_a_program_changes():
    class Counter(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("count", torch.zeros(2))

        def forward(self, x):
            self.count.add_(x)
            x.mul_(2)
            return self.count * 3

    model = Counter()
    function = exported(model, (torch.ones(2),))
    x = bp.ones(2)
    assert [function(x).tolist(), function(x).tolist()] == [[3.0, 3.0], [9.0, 9.0]]
    assert x.tolist() == [4.0, 4.0] and function.buffers["count"].tolist() == [3.0, 3.0]
    assert model.count.tolist() == [0.0, 0.0]


def test_batch_norm_in_training_changes_its_statistics():
    model = nn.BatchNorm1d(3).train()
    x = torch.randn(5, 3)
    function = exported(model, (x,))
    comparison.assert_same(function(x), model(x))
    comparison.assert_same(function.buffers["running_var"], model.running_var)


CONTROL = {
    "cond": lambda x: torch.cond(x.sum() > 0, torch.sin, torch.cos, (x,)),
    "while_loop": lambda x: torch._higher_order_ops.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, y * 2), (torch.tensor(0), x)),
    "scan": lambda x: torch._higher_order_ops.scan(lambda carry, y: (carry + y, carry * y), x[0].clone(), x),
    "map": lambda x: torch._higher_order_ops.map(lambda y: y * 2 + 1, x),
}


@pytest.mark.parametrize("name", CONTROL)
@pytest.mark.parametrize("sign", [1, -1])
def test_control_flow(name, sign):
    x = sign * torch.rand(4, 3)
    function = exported(Module(CONTROL[name]), (x,))
    comparison.assert_same(function(x), CONTROL[name](x))
    comparison.assert_same(bp.compile(function)(bp.asarray(x.numpy())), CONTROL[name](x))


def test_strides_over_transposed_elements():
    def f(x):
        y = (x * 2).permute(1, 0, 2)
        return y.as_strided((2, 3, 3), (8, 2, 1), 1), torch.as_strided_scatter(y, x.new_zeros(2, 2), (2, 2), (3, 1))

    x = torch.randn(2, 3, 4)
    comparison.assert_same(exported(Module(f), (x,))(x), f(x))


def test_operators_without_a_row_are_named():
    program = torch.export.export(Module(lambda x: torch.special.airy_ai(x) + torch.linalg.ldl_factor(x.outer(x))[0]), (torch.ones(2),))
    with pytest.raises(bp.MissingRuleError, match=r"aten.linalg_ldl_factor\S*, aten.special_airy_ai.default, \S+ Fix: "):
        backplane.torch.from_exported(program)


def test_numbers_that_assertions_alone_read_are_not_computed():
    class Checked(nn.Module):
        def forward(self, lengths, x):
            torch._check(lengths.max().item() <= x.shape[1])
            return x * 2

    lengths, x = torch.tensor([1, 2]), torch.randn(2, 3)
    function = backplane.torch.from_exported(torch.export.export(Checked(), (lengths, x)))
    comparison.assert_same(bp.compile(function)(bp.asarray(lengths.numpy()), bp.asarray(x.numpy())), x * 2)


def test_tensors_of_other_kinds_are_refused():
    for make, fix in ((lambda: torch.eye(2).to_sparse(), "to_dense"), (lambda: torch.quantize_per_tensor(torch.ones(2), 0.1, 0, torch.qint8), "dequantize"),
                      (lambda: torch.nested.nested_tensor([torch.ones(2)]), "to_padded_tensor")):  # fmt: skip
        with pytest.raises(bp.ArgumentTypeError, match=fix):
            backplane.torch.from_torch(make())
    with pytest.raises(bp.ArgumentValueError, match="meta"):
        backplane.torch.from_torch(torch.ones(2, device="meta"))


def test_memory_is_shared_with_pytorch():
    x = torch.zeros(3)
    ours = backplane.torch.from_torch(x)
    x[1] = 5
    assert ours.tolist() == [0.0, 5.0, 0.0]
    back = backplane.torch.to_torch_tensor(ours)
    assert back.data_ptr() == x.data_ptr()
    assert backplane.torch.to_torch_tensor(bp.flip(bp.arange(3))).tolist() == [2, 1, 0]


def test_a_program_on_another_device():
    model, x = nn.Sequential(nn.Linear(3, 4), nn.ReLU()), torch.randn(2, 3)
    if not any(info.device.backend == "vulkan" for info in bp.devices()):
        pytest.skip("no Vulkan device")
    function = backplane.torch.from_exported(torch.export.export(model, (x,)), device="vulkan")
    found = function(x)
    assert found.device.backend == "vulkan"
    comparison.assert_same(found, model(x))
