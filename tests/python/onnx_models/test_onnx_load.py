"""A loaded model is a function: of names and positions, compiled, batched, differentiated, exported, on other devices."""

import subprocess
import sys

import backplane as bp
import numpy as np
import onnx
import onnx_graphs as graphs
import pytest
from onnx.reference import ReferenceEvaluator

X = np.random.default_rng(1).standard_normal((5, 3)).astype(np.float32)


def reference(model, **inputs):
    return ReferenceEvaluator(model).run(None, inputs)


@pytest.fixture
def model():
    return graphs.perceptron()


def test_inputs_by_name_and_by_position_from_every_source(model, tmp_path):
    path = tmp_path / "model.onnx"
    onnx.save(model, path)
    expected = reference(model, x=X)[0]
    for source in (path, str(path), path.read_bytes(), model):
        f = bp.onnx.load(source)
        for found in (f(x=X), f(X), f(bp.asarray(X)), f(x=X.tolist())):
            assert type(found) is list and len(found) == 1
            np.testing.assert_allclose(found[0].numpy(), expected, rtol=1e-6)


def test_external_data(model, tmp_path):
    expected = reference(model, x=X)[0]
    onnx.save(model, tmp_path / "big.onnx", save_as_external_data=True, size_threshold=0, location="weights.bin")
    (y,) = bp.onnx.load(tmp_path / "big.onnx")(X)
    np.testing.assert_allclose(y.numpy(), expected, rtol=1e-6)


def test_the_function_says_what_it_takes(model):
    f = bp.onnx.load(model)
    assert [(v.name, v.dtype, v.dims) for v in f.inputs] == [("x", "float32", ["batch", 3])]
    assert [(v.name, v.dtype, v.dims) for v in f.outputs] == [("y", "float32", ["batch", 2])]
    assert f.opset == 21 and "x: float32" in f.__doc__


def test_transforms(model):
    f = bp.onnx.load(model)
    x = bp.asarray(X)
    expected = f(x)[0]
    assert bp.allclose(bp.compile(f)(x)[0], expected)
    assert bp.allclose(bp.compile(f)(x=x)[0], expected)
    assert bp.allclose(bp.vmap(lambda row: f(bp.expand_dims(row, axis=0))[0][0])(x), expected)
    gradient = bp.grad(lambda x: f(x)[0].sum())(x)
    step = bp.asarray(np.full_like(X, 1e-3))
    along = (f(x + step)[0].sum() - f(x - step)[0].sum()) / 2
    assert bp.allclose((gradient * step).sum(), along, rtol=1e-3)


def test_dynamic_sizes_and_files(model, tmp_path):
    f = bp.onnx.load(model)
    path = str(tmp_path / "model.safetensors")
    bp.export(f, [bp.ones((2, 3))], path, dynamic={"x": {0: "batch"}})
    loaded = bp.load(path)
    assert loaded.inputs[0].dims == ["batch", "3"]
    for n in (1, 5):
        assert bp.allclose(loaded(bp.asarray(X[:n]))[0], f(X[:n])[0])


def test_shapes_that_the_model_computes_stay_dynamic():
    f = bp.onnx.load(graphs.flattened())
    graph = bp.make_graph(f, dynamic={"x": {0: "n"}})(bp.ones((2, 2, 3)))
    assert graph.outputs[0].dims == ["n", "6"] and {node.op for node in graph} == {"bp::reshape"}
    assert graph(bp.ones((7, 2, 3)))[0].shape == (7, 6)


@pytest.mark.parametrize("flag", [True, False])
def test_if_runs_one_branch_and_a_trace_keeps_both(flag):
    f = bp.onnx.load(graphs.branching())
    x = bp.asarray([1.0, 2.0, 3.0])
    expected = [2.0, 3.0, 4.0] if flag else [2.0, 4.0, 6.0]
    assert f(flag, x)[0].tolist() == f(bp.asarray(flag), x)[0].tolist() == expected
    assert bp.compile(f)(bp.asarray(flag), x)[0].tolist() == expected
    graph = bp.make_graph(lambda x: f(flag, x))(x)
    assert len(graph) == 1  # the branch of a number is chosen in the trace


def test_loop_with_known_and_unknown_numbers_of_steps():
    f = bp.onnx.load(graphs.looping())
    y, each = f(3, [1.0, -1.0])
    assert y.tolist() == [8.0, -8.0] and each.tolist() == [[2.0, -2.0], [4.0, -4.0], [8.0, -8.0]]
    y, each = bp.compile(lambda x: f(3, x))(bp.asarray([1.0, -1.0]))
    assert y.tolist() == [8.0, -8.0] and each.shape == (3, 2)
    with pytest.raises(bp.MissingRuleError, match="Loop.*collect"):
        bp.compile(f)(bp.asarray(3), bp.asarray([1.0]))


def test_numbers_that_change_between_compiled_calls():
    f = bp.onnx.load(graphs.model_of([("Mul", ("x", "s"), ("y",))], {"x": (1, [2]), "s": (1, [])}, {"y": (1, [2])}))
    compiled = bp.compile(f)
    for number in (1.5, 2.5, 3.5, 0.5):
        assert compiled(bp.ones(2), number)[0].tolist() == [number] * 2
    steps = bp.compile(bp.onnx.load(graphs.looping()))
    for count in (3, 1, 4, 2):
        assert steps(count, bp.ones(1))[0].tolist() == [2.0**count]


@pytest.mark.parametrize(
    ("inputs", "error", "words"),
    [
        ({"x": np.zeros((2, 3))}, bp.DtypeError, "float64.*expected float32"),
        ({"x": np.zeros((2, 4), np.float32)}, bp.ShapeError, "'x'.*expected"),
        ({"x": np.zeros(3, np.float32)}, bp.ShapeError, "expected 2 axes"),
        ({"z": X}, TypeError, "z"),
        ({}, TypeError, "x"),
        ({"x": None}, bp.ArgumentTypeError, "None"),
    ],
)
def test_inputs_that_do_not_fit_are_refused(model, inputs, error, words):
    with pytest.raises(error, match=words):
        bp.onnx.load(model)(**inputs)


def test_files_and_opsets_that_are_refused(model, tmp_path):
    with pytest.raises(FileNotFoundError):
        bp.onnx.load(tmp_path / "none.onnx")
    with pytest.raises(bp.ArgumentValueError, match="ONNX"):
        bp.onnx.load(b"\xff\xff\xff\xff not a model")
    with pytest.raises(bp.ArgumentValueError, match="ONNX"):
        bp.onnx.load(b"")
    model.opset_import[0].version = 6
    with pytest.raises(bp.MissingRuleError, match="opset 6"):
        bp.onnx.load(model)


def test_unknown_ops_and_attributes_name_the_node():
    unknown = graphs.model_of([("Frobnicate", ("x",), ("y",), {"domain": "acme", "name": "middle"})], {"x": (1, [2])}, {"y": (1, [2])}, domains=[onnx.helper.make_opsetid("acme", 1)])
    with pytest.raises(bp.MissingRuleError, match="'middle'.*acme::Frobnicate"):
        bp.onnx.load(unknown)
    odd = graphs.model_of([("Relu", ("x",), ("y",), {"slope": 2})], {"x": (1, [2])}, {"y": (1, [2])})
    with pytest.raises(bp.MissingRuleError, match="Relu.*attribute slope"):
        bp.onnx.load(odd)


def test_names_that_are_no_identifiers():
    model = graphs.model_of([("Add", ("in:0", "in.1"), ("out/0",))], {"in:0": (1, [2]), "in.1": (1, [2])}, {"out/0": (1, [2])})
    f = bp.onnx.load(model)
    assert f(**{"in:0": [1.0, 2.0], "in.1": [3.0, 4.0]})[0].tolist() == [4.0, 6.0]


def test_a_session_takes_onnxruntimes_place(model):
    session = bp.onnx.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    assert session.get_inputs()[0].name == "x" and session.get_inputs()[0].type == "tensor(float)" and session.get_inputs()[0].shape == ["batch", 3]
    assert session.get_outputs()[0].name == "y"
    for n in (5, 2):
        (y,) = session.run(None, {"x": X[:n]})
        np.testing.assert_allclose(y, reference(model, x=X[:n])[0], rtol=1e-6)
    assert session.run(["y"], {"x": X})[0].shape == (5, 2)
    with pytest.raises(bp.ArgumentValueError, match="'z'"):
        session.run(None, {"z": X})


def test_convert(model, tmp_path):
    onnx.save(model, tmp_path / "m.onnx")
    from backplane.onnx import __main__ as command

    assert command.convert([str(tmp_path / "m.onnx"), str(tmp_path / "m.safetensors")]) == 0
    assert bp.allclose(bp.load(tmp_path / "m.safetensors")(bp.asarray(X))[0], bp.onnx.load(model)(X)[0])
    assert command.convert([str(tmp_path / "m.onnx"), str(tmp_path / "m.safetensors"), "--size", "batch=4"]) == 0
    assert bp.load(tmp_path / "m.safetensors").inputs[0].dims == ["4", "3"]


def test_without_the_package_onnx_the_error_says_how_to_install_it():
    program = "import sys; sys.modules['onnx'] = None\nimport backplane as bp\ntry: bp.onnx.load('x.onnx')\nexcept ImportError as error: print(error)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert "pip install onnx" in done.stdout


@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
@pytest.mark.parametrize("operator", ["Resize", "Upsample"])
def test_a_batch_that_is_not_resized_stays_dynamic(operator, mode, tmp_path):
    if operator == "Upsample" and mode == "cubic":
        pytest.skip("an operator without this mode")
    scales = onnx.numpy_helper.from_array(np.array([1, 1, 2, 1.5], "f4"), "s")
    names = ["x", "", "s"] if operator == "Resize" else ["x", "s"]
    node = onnx.helper.make_node(operator, names, ["y"], mode=mode)
    value = lambda name, dims: onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, dims)
    graph = onnx.helper.make_graph([node], "g", [value("x", ["b", 3, 8, 8])], [value("y", None)], [scales])
    made = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 20 if operator == "Resize" else 9)], ir_version=9)
    f = bp.onnx.load(made)
    f(np.ones((2, 3, 8, 8), "f4"))
    path = tmp_path / "resized.safetensors"
    bp.export(f, [bp.ones((2, 3, 8, 8))], path, dynamic={"x": {0: "b"}})
    loaded = bp.load(path)
    for batch in (1, 3, 7):
        x = np.random.default_rng(batch).standard_normal((batch, 3, 8, 8)).astype("f4")
        np.testing.assert_allclose(loaded(x)[0].numpy(), f(x)[0].numpy(), rtol=1e-5, atol=1e-6)
