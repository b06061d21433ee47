"""Backplane's devices as PyTorch's: tensors, memory, random numbers, training, the host's help, and errors."""

import copy
import io
import os
import pickle
import subprocess
import sys
from multiprocessing.reduction import ForkingPickler

import device_operators
import numpy as np
import pytest
import torch
import training
from torch import nn

import backplane as bp
import backplane.torch

DEVICES = [str(info.device) for info in bp.devices()]
if "sim" not in DEVICES:
    simulator = os.path.join(os.environ.get("BACKPLANE_EXAMPLE_PLUGINS", ""), "simulator.so")
    if os.path.exists(simulator):
        bp.load_plugin(simulator)
        DEVICES.append("sim")
# Operators of the short form: each group of the table, an in-place, an out= and a view form.
SHORT = ["add", "addmm", "argmax", "bmm", "cat", "clamp", "cumsum", "div", "exp", "gather", "index_put", "linalg.lu_factor", "linalg.solve", "masked_fill", "matmul", "mean",
         "nn.functional.batch_norm", "nn.functional.conv2d", "nn.functional.cross_entropy", "nn.functional.gelu", "nn.functional.layer_norm", "nn.functional.max_pool2d",
         "nonzero", "permute", "scatter_add", "softmax", "sort", "sum", "topk", "transpose", "unfold", "view", "where"]  # fmt: skip


@pytest.fixture(params=DEVICES)
def device(request):
    return backplane.torch.device(request.param)


def test_a_device_is_an_ordinal_of_one_type():
    found = [backplane.torch.device(name) for name in DEVICES]
    assert len({x.index for x in found}) == len(DEVICES) and {x.type for x in found} == {"backplane"}
    assert [torch.backplane.get_device_name(x) for x in found] == DEVICES
    with pytest.raises(bp.ArgumentValueError, match="nowhere"):
        backplane.torch.device("nowhere")
    with pytest.raises(bp.ArgumentValueError, match="register: argument name"):
        backplane.torch.register(name="acme")


def test_every_way_to_write_and_read_an_element(device):
    x = torch.arange(12.0).reshape(3, 4).to(device)
    twin = x.cpu()
    for a in (x, twin):
        a[1] = 7
        a[:, ::2] += 1
        a[a > 8] = 0
        a.T[0, 1] = 5
        a[torch.tensor([0, 2]), torch.tensor([1, 3])] = -1
        a.view(-1)[3:5].mul_(2)
    assert torch.equal(x.cpu(), twin) and x.tolist() == twin.tolist()
    assert x[1, 2].item() == twin[1, 2].item() and str(x).replace(f", device='{device}'", "") == str(twin)
    y = torch.empty_strided((2, 3), (1, 2), device=device).fill_(2)
    assert y.stride() == (1, 2) and y.sum().item() == 12
    assert torch.equal(x.to(torch.int64).to("cpu"), twin.long())


def test_a_result_never_shares_memory_with_an_argument(device):
    x = torch.ones(3, device=device)
    for function in (lambda a: a.relu(), lambda a: a.sign(), lambda a: a.mean(()), lambda a: a.clone(), lambda a: torch.flip(a, [0]), lambda a: a.repeat(1)):
        assert function(x).data_ptr() != x.data_ptr()
    assert x.view(3, 1).data_ptr() == x.data_ptr()


def test_copies_of_objects_keep_device_and_values(device):
    x = torch.randn(3, 4, device=device)
    for made in (pickle.loads(pickle.dumps(x)), copy.deepcopy(x)):
        assert made.device == device and torch.equal(made, x)
    file = io.BytesIO()
    torch.save({"x": x, "row": x[1]}, file)
    for place in (None, "cpu"):
        file.seek(0)
        loaded = torch.load(file, map_location=place)
        assert torch.equal(loaded["x"].cpu(), x.cpu()) and torch.equal(loaded["row"].cpu(), x[1].cpu())
        assert loaded["x"].device == (device if place is None else torch.device("cpu"))


def test_memory_is_shared_with_backplane(device):
    x = torch.zeros(4, device=device)
    ours = backplane.torch.from_torch(x)
    ours[1] = 3
    assert x.tolist() == [0, 3, 0, 0]
    assert backplane.torch.to_torch_tensor(ours, device).data_ptr() == x.data_ptr()
    if torch.backplane.get_device_name(device) == "cpu":
        assert bp.from_dlpack(x).tolist() == np.from_dlpack(x).tolist() == torch.from_dlpack(x).tolist() == [0, 3, 0, 0]


def test_random_numbers_are_those_of_the_cpu(device):
    draws = [lambda d: torch.randn(5, device=d), lambda d: torch.rand(5, device=d).bernoulli_(0.5), lambda d: torch.randperm(7, device=d), lambda d: torch.randint(9, (4,), device=d),
             lambda d: torch.nn.functional.dropout(torch.ones(8, device=d), 0.5), lambda d: torch.multinomial(torch.ones(5, device=d), 3),
             lambda d: torch.rand(3, device=d, generator=torch.Generator(device=d).manual_seed(3))]  # fmt: skip
    for draw in draws:
        torch.manual_seed(4)
        expected = draw("cpu")
        torch.manual_seed(4)
        assert torch.equal(draw(device).cpu(), expected)
    state = torch.backplane.get_rng_state(device)
    first = torch.rand(2, device=device)
    torch.backplane.set_rng_state(state, device)
    assert torch.equal(torch.rand(2, device=device), first)


@pytest.mark.parametrize("title", training.RUNS)
def test_training_has_the_losses_of_the_cpu(device, title):
    make, inputs, autocast = training.RUNS[title]
    expected, _ = training.train(make, inputs(), torch.device("cpu"), 4, autocast)
    found, state = training.train(make, inputs(), device, 4, autocast)
    torch.testing.assert_close(torch.tensor(found), torch.tensor(expected), rtol=0, atol=2e-2 if autocast else 2e-4)
    file = io.BytesIO()
    torch.save(state, file)
    file.seek(0)
    make().load_state_dict(torch.load(file, map_location="cpu"))


def test_a_module_that_moves_keeps_shared_parameters(device):
    model = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.Linear(3, 3))
    model[1].weight = model[0].weight
    model.to(device)
    assert model[1].weight is model[0].weight and model[0].weight.device == device and len(list(model.parameters())) == 3


def test_streams_and_events(device):
    stream, x = torch.Stream(device=device), torch.ones(1000, device=device)
    with stream:
        assert torch.accelerator.current_stream(device) == stream
        y = x * 2
        event = stream.record_event()
    event.synchronize()
    torch.backplane.synchronize(device)
    assert event.query() and stream.query() and y.sum().item() == 2000


def test_the_host_computes_only_what_it_may():
    x = torch.ones(3, device=backplane.torch.device("cpu"))
    backplane.torch.reset_fallbacks()
    with backplane.torch.forbid_fallbacks(), pytest.raises(NotImplementedError, match="special_airy_ai"):
        torch.special.airy_ai(x)
    assert backplane.torch.fallbacks() == {}
    with pytest.warns(UserWarning, match="airy_ai"):
        torch.special.airy_ai(x)
    torch.special.airy_ai(x)
    assert list(backplane.torch.fallbacks().values()) == [2]


def test_errors_say_what_to_do(device):
    x = torch.ones(3, 4, device=device)
    with pytest.raises(NotImplementedError, match=r"sparse tensor.*to_dense\(\)"):
        torch.eye(3).to_sparse().to(device)
    with pytest.raises(NotImplementedError, match=r"nested tensor.*to_padded_tensor\(\)"):
        torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]).to(device)
    with pytest.raises(TypeError, match="Float8"):
        x.to(torch.float8_e4m3fn)
    with pytest.raises(RuntimeError, match="same device"):
        x + torch.ones(3, 4)
    with pytest.raises(RuntimeError, match="result type Float can't be cast"):
        torch.ones(3, dtype=torch.int32, device=device).add_(1.5)
    with pytest.raises(RuntimeError, match="size of tensor a|do not broadcast"):
        x + torch.ones(5, device=device)
    with pytest.raises(IndexError):
        x[7]


def _python(program, **environment):
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env={**os.environ, **environment})


def test_several_processes_and_devices_are_refused(device):
    for x in (torch.ones(2, device=device), nn.Parameter(torch.ones(2, device=device))):
        with pytest.raises(bp.DeviceError, match="torch.multiprocessing: found a tensor on .*Fix: send x.cpu()"):
            ForkingPickler.dumps(x)
    assert len(ForkingPickler.dumps(torch.ones(2))) > 10
    net, x = nn.Linear(2, 2), torch.ones(1, 2)
    expected = net(x)
    torch.testing.assert_close(nn.DataParallel(net)(x), expected)
    one = nn.DataParallel(net, device_ids=[device])
    assert one(x.to(device)).device == device
    torch.testing.assert_close(one(x.to(device)).cpu(), expected)
    with pytest.raises(bp.DeviceError, match="DataParallel: argument device_ids: found 2 devices"):
        nn.DataParallel(net, device_ids=[0, 1])


def test_the_type_has_the_name_that_the_user_registers():
    done = _python("import torch, backplane.torch as t\nt.register(name='acme')\nprint(torch.ones(2, device='acme').acme(), t.device('cpu'), torch.acme.device_count() > 0)")
    assert done.stdout == "tensor([1., 1.], device='acme:0') acme:0 True\n", done.stderr


def test_a_device_that_is_added_behind_the_first_backward_pass_has_gradients():
    lines = ["import torch", "w = torch.ones(2, requires_grad=True)", "(w * w).sum().backward()", "import backplane.torch",
             "x = torch.ones(2, device=backplane.torch.device('cpu'), requires_grad=True)", "(x * 3).sum().backward()", "print(x.grad.cpu())"]  # fmt: skip
    done = _python("\n".join(lines))
    assert done.returncode == 0 and "tensor([3., 3.])" in done.stdout, done.stderr


def test_the_environment_forbids_the_host():
    done = _python("import torch, backplane.torch as t\ntorch.special.airy_ai(torch.ones(2, device=t.device('cpu')))", BACKPLANE_TORCH_FALLBACK="forbid")
    assert "NotImplementedError: aten::special_airy_ai" in done.stderr


def test_operators_equal_the_cpu():
    chosen = [operator for operator in device_operators.op_db if operator.name in SHORT]
    for differentiate in (False, True):
        dtype = torch.float64 if differentiate else torch.float32
        passed, on_host, failed = device_operators.sweep(chosen, "cpu", dtype, differentiate)
        assert not failed and not on_host and len(passed) >= 30


@pytest.mark.whole
@pytest.mark.parametrize(("name", "differentiate", "wanted"), [("cpu", False, 640), ("cpu", True, 500), ("vulkan", False, 600), ("sim", False, 600)])
def test_all_operators_equal_the_cpu(name, differentiate, wanted):
    if name not in DEVICES:
        pytest.skip(f"there is no device {name}")
    dtype = torch.float64 if differentiate else torch.float32
    passed, on_host, failed = device_operators.sweep(device_operators.op_db, name, dtype, differentiate)
    print(f"{name}: {len(passed)} operators pass, {len(on_host)} of them with the host's help; fail: {' '.join(failed)}")
    assert len(passed) >= wanted
    assert name != "cpu" or len(passed) - len(on_host) >= 0.9 * len(passed)
