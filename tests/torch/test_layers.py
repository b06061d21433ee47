"""Layers and functions whose rows are loops or gathers: recurrent cells, groups of rows, embedding bags, reflections, special functions."""

import copy

import comparison
import device_operators
import pytest
import torch
from torch import nn

import backplane as bp
import backplane.torch
from backplane.torch._rows import groups

# Operators that OpInfo samples: on the device without the host, forward, and in float64 with their gradients.
OPERATORS = ["frexp", "geqrf", "grid_sampler_3d", "i0", "linalg.eigvals", "linalg.householder_product", "masked_select", "nn.functional.ctc_loss",
             "nn.functional.embedding_bag", "nn.functional.pdist", "ormqr", "special.bessel_j0", "special.bessel_j1", "special.bessel_y0", "special.bessel_y1",
             "special.i0e", "special.i1", "special.i1e", "special.log_ndtr", "special.modified_bessel_k0", "special.ndtri", "special.scaled_modified_bessel_k1",
             "special.spherical_bessel_j0", "special.zeta"]  # fmt: skip


@pytest.mark.parametrize("differentiate", [False, True])
def test_operators_without_the_host(differentiate):
    chosen = [operator for operator in device_operators.op_db if operator.name in OPERATORS]
    assert {operator.name for operator in chosen} == set(OPERATORS)
    dtype = torch.float64 if differentiate else torch.float32
    passed, on_host, failed = device_operators.sweep(chosen, "cpu", dtype, differentiate)
    assert not failed and not on_host and len(passed) >= (14 if differentiate else 24)


def _trained(model, x):
    x = x.clone().requires_grad_()
    found, state = model(x)
    total = found.pow(2).sum() + sum(part.sum() for part in (state if isinstance(state, tuple) else (state,)))
    (slope,) = torch.autograd.grad(total, x, create_graph=True)
    slope.pow(2).sum().backward()
    return [y.detach().cpu() for y in (found, slope, x.grad, *(parameter.grad for parameter in model.parameters() if parameter.grad is not None))]


@pytest.mark.parametrize("options", [{}, {"num_layers": 2, "bidirectional": True}, {"bias": False, "batch_first": True}])
@pytest.mark.parametrize("layer", [nn.LSTM, nn.GRU, nn.RNN])
def test_recurrent_layers_on_the_device(layer, options):
    """Results, gradients, and gradients of gradients, without the host's help."""
    model, x, device = layer(5, 7, **options), torch.randn(4, 3, 5), backplane.torch.device("cpu")
    expected = _trained(copy.deepcopy(model), x)
    with backplane.torch.forbid_fallbacks():
        found = _trained(copy.deepcopy(model).to(device), x.to(device))
    comparison.assert_same(found, expected)


def _grouped(x, weight, ends):
    found, start = torch.zeros(x.shape[0], weight.shape[2]), 0
    for i, end in enumerate(ends):
        found[start:end] = x[start:end] @ weight[i]
        start = end
    return found


@pytest.mark.parametrize("gathered", [0, 1 << 22])
@pytest.mark.parametrize("ends", [[2, 2, 10], [0, 0, 10], [10, 10, 10], [3, 6, 8]])
def test_groups_of_rows_with_a_matrix_each(ends, gathered, monkeypatch):
    monkeypatch.setattr(groups, "_GATHERED", gathered)
    x, weight, cotangent = torch.randn(10, 4), torch.randn(3, 4, 5, requires_grad=True), torch.randn(10, 5)
    expected = _grouped(x.requires_grad_(), weight, ends)
    expected.backward(cotangent)
    ours = [backplane.torch.from_torch(y.detach()) for y in (x, weight)]
    ends = bp.asarray(ends, dtype=bp.int32)
    comparison.assert_same(groups.grouped_matmul(*ours, ends), expected)
    comparison.assert_same(groups.grouped_matmul_backward(*ours, ends, backplane.torch.from_torch(cotangent)), [x.grad, weight.grad])


@pytest.mark.parametrize("shapes", [[(10, 4), (3, 4, 8)], [(3, 4, 8), (8, 12)], [(4, 12), (12, 8)]])
def test_forms_of_grouped_mm_on_the_device(shapes):
    x, y = (torch.randn(shape) for shape in shapes)
    length = x.shape[0] if y.ndim == 3 else y.shape[1] if x.ndim == 3 else x.shape[1]
    ends, device = torch.tensor([2, 4, length], dtype=torch.int32), backplane.torch.device("cpu")
    with backplane.torch.forbid_fallbacks():
        found = torch._grouped_mm(x.to(device), y.to(device), offs=ends.to(device))
    comparison.assert_same([found.cpu()], [torch._grouped_mm(x, y, offs=ends)])


def test_ops_of_the_registry_run_on_the_device():
    """torch.ops.bp.<op> there: results, derivatives and transforms, without the host's help."""
    device, x, w = backplane.torch.device("cpu"), torch.randn(3, 4), torch.randn(4, 5)
    function = lambda x, w: torch.ops.bp.tanh(torch.ops.bp.layer_norm(x)) @ torch.ops.bp.softmax(w, [-1])  # noqa: E731
    slopes = torch.func.grad(lambda x, w: function(x, w).pow(2).sum(), argnums=(0, 1))
    with backplane.torch.forbid_fallbacks():
        found = [function(x.to(device), w.to(device)), *slopes(x.to(device), w.to(device)), torch.func.vmap(torch.ops.bp.tanh)(x.to(device))]
    assert all(y.device == device for y in found)
    comparison.assert_same([y.cpu() for y in found], [function(x, w), *slopes(x, w), x.tanh()])


def test_ops_of_the_registry_refuse_tensors_that_they_do_not_have():
    x, device = torch.eye(2), backplane.torch.device("cpu")
    for other, fix in ((x.to_sparse(), "to_dense"), (torch.quantize_per_tensor(x, 0.1, 0, torch.qint8), "dequantize"), (torch.nested.nested_tensor([x]), "to_padded")):
        with pytest.raises(bp.ArgumentTypeError, match=fix):
            torch.ops.bp.tanh(other)
    with pytest.raises(bp.DeviceError, match="expected one device"):
        torch.ops.bp.add(x, x.to(device))
