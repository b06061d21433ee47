"""to_torch: every op of the registry computes the same in PyTorch as in Backplane, and programs of models go both ways."""

import pathlib
import sys

import comparison
import numpy
import pytest
import torch

import backplane as bp
import backplane.torch
from backplane.torch import _graph_control, _registry_rows, _to_torch

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "python/laws"))
law_inputs, law_registry = pytest.importorskip("law_inputs"), pytest.importorskip("law_registry")

# Where PyTorch's own function multiplies an infinity by zero, or passes over a NaN in a derivative.
OTHER_AT_EDGES = {"gelu", "gelu_grad", "gelu_tanh", "gelu_tanh_grad", "hardswish", "hardtanh_grad", "mish", "mish_grad", "shrink_grad", "silu", "silu_grad", "softsign",
                  "batch_norm"}  # fmt: skip
FREE = {"bp::eig"}  # eigenvectors have a free phase


def cases():
    seen = set()
    for case in law_registry.registry():
        name = case.entry.name
        takes_functions = any(argument.type == "Graph" for argument in case.entry.args)
        if case.error or takes_functions or any(argument.type == "Generator" for argument in case.entry.args) or name in FREE:
            continue
        yield pytest.param(case, id=str(case), marks=[pytest.mark.whole] if name in seen else [])
        seen.add(name)


def call_of(case):
    """(a function of tensors, the tensors) for a sample."""
    accepted = [set(argument.accepts) for argument in case.entry.args if argument.is_tensor and argument.promote]
    arrays = law_inputs.arrays_of(case, law_registry.widest(set.intersection(*accepted) if accepted else ()))
    tensors, op = [], getattr(bp.ops.bp, case.entry.python_name)

    def placed(value):
        if isinstance(value, numpy.ndarray):
            tensors.append(bp.asarray(value))
            return len(tensors) - 1, None
        if isinstance(value, (list, tuple)) and any(isinstance(x, numpy.ndarray) for x in value):
            return [placed(x) for x in value]
        return None, value

    def filled(value, given):
        if isinstance(value, list):
            return [filled(x, given) for x in value]
        place, constant = value
        return constant if place is None else given[place]

    places = {name: placed(value) for name, value in arrays.items()}
    parameters = {row[0]: row for row in op.parameters}

    def call(*given):
        args, kwargs, leading = [], {}, True
        for name, row in parameters.items():
            if name not in places:
                leading = False
            elif leading and not row[1]:
                args.append(filled(places[name], given))
            else:
                kwargs[name] = filled(places[name], given)
        return op(*args, **kwargs)

    return call, tensors


@pytest.mark.parametrize("case", list(cases()))
def test_every_op_has_the_same_results(case):
    call, tensors = call_of(case)
    try:
        graph = bp.make_graph(call)(*tensors)
    except bp.MissingRuleError:
        pytest.skip("the shapes of the results depend on values")
    if not graph.outputs:
        pytest.skip("no tensor among the results")
    expected = bp.tree.leaves(graph(*tensors))
    module = _to_torch.program_of(graph)
    found = module(*(torch.from_dlpack(x) for x in tensors))
    comparison.assert_same(found, expected, tolerance=1e-6)


def test_every_row_names_an_op():
    names = {case.entry.name for case in law_registry.registry()}
    assert {f"bp::{name}" for name in _registry_rows.names()} <= names
    assert _graph_control.OPS <= {f"bp::{name}" for name in dir(bp.ops.bp)}


def _of_tensors_alone(name):
    types = [row[4] for row in getattr(bp.ops.bp, name).parameters if row[0] not in ("out", "device") and not row[2]]
    return _registry_rows.has_row(f"bp::{name}") and set(types) == {"Tensor"} and len(types) <= 2


SPECIAL = [numpy.nan, numpy.inf, -numpy.inf, 0.0, -0.0, 1.0, -1.0, 0.5, 2.0, -2.5, 1e30, 1e-30]


@pytest.mark.parametrize("name", sorted({name for name in _registry_rows.names() if _of_tensors_alone(name)} - OTHER_AT_EDGES - {"argwhere", "cholesky"}))
def test_every_row_treats_special_values_alike(name):
    op = getattr(bp.ops.bp, name)
    x, y = numpy.meshgrid(numpy.array(SPECIAL), numpy.array(SPECIAL))
    count = len([row for row in op.parameters if row[4] == "Tensor" and not row[2]])
    try:
        tensors = [bp.asarray(value) for value in (x, y)[:count]]
        expected = op(*tensors)
    except (bp.DtypeError, bp.ShapeError):
        pytest.skip("takes other tensors")
    found = _to_torch.program_of(bp.make_graph(lambda *given: op(*given))(*tensors))(*(torch.from_dlpack(t) for t in tensors))
    comparison.assert_same(found, bp.tree.leaves(expected), tolerance=1e-12)


def _models():
    lstm = bp.nn.LSTM(4, 8, batch_first=True)
    cnn = bp.nn.Sequential(bp.nn.Conv2d(3, 8, 3, padding=1), bp.nn.BatchNorm2d(8), bp.nn.ReLU(), bp.nn.MaxPool2d(2), bp.nn.Flatten(), bp.nn.Linear(128, 4))
    transformer = bp.nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)
    return {
        "cnn": (cnn.eval(), (5, 3, 8, 8)),
        "transformer": (transformer.eval(), (2, 5, 16)),
        "lstm": (lambda x: lstm(x)[0], (2, 5, 4)),
        "gradient": (bp.grad(lambda x: (bp.tanh(x @ x.T) ** 2).sum()), (3, 4)),
        "cond": (lambda x: bp.cond(x.sum() > 0, lambda v: v * 2, lambda v: v - 1, x), (6, 3)),
        "while_loop": (lambda x: bp.while_loop(lambda v: (v * v).sum() < 100, lambda v: v * 2, x), (6, 3)),
        "reverse scan": (lambda x: bp.scan(lambda c, v: (c * 0.5 + v, c.sum()), bp.zeros((3,)), x, reverse=True), (6, 3)),
    }


@pytest.mark.parametrize("name", ["cnn", "transformer", "lstm", "gradient", "cond", "while_loop", "reverse scan"])
def test_models_go_both_ways(name):
    function, shape = _models()[name]
    x = bp.asarray(numpy.random.default_rng(1).standard_normal(shape).astype(numpy.float32))
    expected = bp.tree.leaves(function(x))
    program = backplane.torch.to_torch(function, [x])
    comparison.assert_same(program.module()(torch.from_dlpack(x)), expected)
    comparison.assert_same(bp.tree.leaves(backplane.torch.from_exported(program)(x)), expected)


def test_a_model_is_of_pytorchs_operators():
    function, shape = _models()["transformer"]
    program = backplane.torch.to_torch(function, [bp.ones(shape)])
    assert {node.target.namespace for node in program.graph.nodes if node.op == "call_function"} == {"aten"}
    assert len(list(program.parameters())) == 12


def test_dynamic_sizes_stay_dynamic():
    def function(x):
        return bp.reshape(bp.concat([x, x]), (2, -1)) / x.shape[0]

    program = backplane.torch.to_torch(function, [bp.ones((3, 4))], dynamic={"x": {0: "batch"}})
    for size in (2, 5, 9):
        x = torch.arange(4.0 * size).reshape(size, 4)
        comparison.assert_same(program.module()(x), function(bp.from_dlpack(x)))


def test_changes_of_arguments_and_buffers_stay():
    total = bp.zeros((2,))

    def function(x):
        total.add_(x) if hasattr(total, "add_") else total.__iadd__(x)
        x *= 2
        return x + 1

    program = backplane.torch.to_torch(function, [bp.ones((2,))])
    assert total.tolist() == [0.0, 0.0]
    module, x = program.module(), torch.ones(2)
    assert module(x).tolist() == [3.0, 3.0] and x.tolist() == [2.0, 2.0]
    assert [value.tolist() for value in module.buffers()] == [[1.0, 1.0]]


def test_parameters_are_trained_in_pytorch():
    layer = bp.nn.Linear(3, 1)
    module = backplane.torch.to_torch(layer, [bp.ones((2, 3))]).module()
    module(torch.ones(2, 3)).sum().backward()
    assert [parameter.grad.tolist() for parameter in module.parameters()] == [[[2.0, 2.0, 2.0]], [2.0]]


def test_random_numbers_follow_pytorchs_seed():
    module = backplane.torch.to_torch(lambda x: bp.nn.functional.dropout(x, 0.5), [bp.ones((64,))]).module()
    torch.manual_seed(1)
    first, second = module(torch.ones(64)), module(torch.ones(64))
    torch.manual_seed(1)
    assert torch.equal(module(torch.ones(64)), first) and not torch.equal(first, second) and set(first.tolist()) == {0.0, 2.0}


def test_what_cannot_be_written_is_refused():
    with pytest.raises(bp.ArgumentTypeError, match="to_torch: argument args: found None"):
        backplane.torch.to_torch(lambda x: x)
    with pytest.raises(bp.MissingRuleError, match="random_bits: PyTorch has no operator"):
        backplane.torch.to_torch(lambda x: x + bp.ops.bp.random_bits((2,)).astype(bp.float32), [bp.ones((2,))])

    @bp.custom_op("to_torch_test::halved", dtypes="floating")
    def halved(x: bp.Tensor) -> bp.Tensor:
        return bp.asarray(x.numpy() / 2)

    halved.register_shape(lambda x: x)
    program = backplane.torch.to_torch(lambda x: halved(x) + 1, [bp.ones((2,))])
    assert program.module()(torch.ones(2)).tolist() == [1.5, 1.5]
    assert "to_torch_test.halved.default" in str(program.graph)
