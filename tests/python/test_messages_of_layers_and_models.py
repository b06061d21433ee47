"""Messages that name the program's own words: functions of nn, arguments of modules, inputs of ONNX models, compiled steps, samples of opcheck."""

import inspect

import backplane as bp
import numpy as np
import pytest
from backplane import nn


class Scaled(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 4)

    def forward(self, x, scale=1.0):
        return self.layer(x) * scale


def test_a_function_of_nn_functional_is_named_as_it_is():
    with pytest.raises(AttributeError, match=r"use backplane\.nn\.functional\.relu$"):
        bp.nn.relu


def test_dynamic_takes_the_names_of_a_module_s_forward(tmp_path):
    module, path = Scaled(), tmp_path / "scaled.safetensors"
    bp.export(module, [bp.ones((2, 3))], path, dynamic={"x": {0: "b"}})
    assert bp.load(path)(bp.ones((7, 3)))[0].shape == (7, 4)
    assert str(inspect.signature(module)) == "(x, scale=1.0)" and str(inspect.signature(Scaled)) == "()"
    with pytest.raises(bp.ArgumentValueError, match='found no tensor in argument "y"; the call\'s tensors are x'):
        bp.export(module, [bp.ones((2, 3))], path, dynamic={"y": {0: "b"}})


def test_a_compiled_step_has_its_own_name():
    module = Scaled()

    def train_step(x):
        return module(x).sum()

    bp.compile(train_step, state=[module])(bp.ones((2, 3)))
    assert "train_step: traced" in bp.compile_log()[-1] and "_traced" not in bp.compile_log()[-1]


def test_minimize_says_that_the_function_gets_a_container():
    for method in ("BFGS", "L-BFGS-B"):
        with pytest.raises(bp.ArgumentTypeError, match=r"minimize: argument x0: found a tuple, .*bp\.asarray\(x0\)"):
            bp.minimize(lambda x: ((x - 2) ** 2).sum(), (0, 0), method=method)
    assert bp.allclose(bp.minimize(lambda x: ((x - 2) ** 2).sum(), [0, 0]).x, bp.asarray([2.0, 2.0]))
    assert bp.allclose(bp.stack(list(bp.minimize(lambda x: (x[0] - 2) ** 2 + x[1] ** 2, [0, 0]).x)), bp.asarray([2.0, 0.0]), atol=1e-4)


def test_onnx_save_names_the_dynamic_size_of_control_flow(tmp_path):
    layer = nn.LSTM(3, 4)
    with pytest.raises(bp.MissingRuleError, match="found control flow .* over the dynamic size 'b', expected numbers"):
        bp.onnx.save(lambda x: layer(x)[0], tmp_path / "lstm.onnx", [bp.ones((5, 2, 3))], dynamic={"x": {1: "b"}})


def test_a_session_names_the_inputs_that_are_missing():
    from onnx import TensorProto, helper

    value = lambda name: helper.make_tensor_value_info(name, TensorProto.FLOAT, [2])
    graph = helper.make_graph([helper.make_node("Add", ["a", "g"], ["y"])], "sum", [value("a"), value("g")], [value("y")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
    session = bp.onnx.InferenceSession(model.SerializeToString())
    with pytest.raises(bp.ArgumentValueError, match=r"found no array for the inputs \['g'\]"):
        session.run(None, {"a": np.ones(2, "f4")})


def test_opcheck_says_that_it_made_the_sample_without_elements():
    @bp.custom_op("words::times_first")
    def times_first(x: bp.Tensor) -> bp.Tensor:
        values = x.numpy()
        return bp.asarray(values * values[0])

    times_first.register_shape(lambda x: x)
    with pytest.raises(bp.OpCheckError, match="empty along axis 0: found IndexError: .*opcheck makes this sample of the given one"):
        bp.opcheck(times_first, (bp.asarray([1.0, 2.0]),))
