"""Small models for the tests of the importer, written with onnx.helper."""

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


def model_of(nodes, inputs, outputs, constants=None, opset=21, **options):
    """nodes: tuples (op, inputs, outputs, attributes); inputs and outputs: {name: (dtype, shape)}; constants: {name: array}."""
    protos = [helper.make_node(op, list(ins), list(outs), **(rest[0] if rest else {})) for op, ins, outs, *rest in nodes]
    values = [[helper.make_tensor_value_info(name, dtype, shape) for name, (dtype, shape) in side.items()] for side in (inputs, outputs)]
    initializers = [numpy_helper.from_array(np.asarray(array), name) for name, array in (constants or {}).items()]
    graph = helper.make_graph(protos, "small", *values, initializers)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset), *options.pop("domains", [])], ir_version=10, **options)


FLOAT, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL


def perceptron():
    """relu(x @ w + b) @ v, for batches of any size."""
    rng = np.random.default_rng(0)
    constants = {"w": rng.standard_normal((3, 4)), "b": rng.standard_normal(4), "v": rng.standard_normal((4, 2))}
    return model_of(
        [("MatMul", ("x", "w"), ("h",)), ("Add", ("h", "b"), ("a",)), ("Relu", ("a",), ("r",)), ("MatMul", ("r", "v"), ("y",))],
        {"x": (FLOAT, ["batch", 3])}, {"y": (FLOAT, ["batch", 2])}, {name: array.astype(np.float32) for name, array in constants.items()},
    )  # fmt: skip


def flattened():
    """Reshapes by a shape that the model computes: (n, 2, 3) to (n, 6), through Shape, Gather, Unsqueeze and Concat."""
    return model_of(
        [
            ("Shape", ("x",), ("s",)), ("Gather", ("s", "zero"), ("n",)), ("Unsqueeze", ("n", "axis"), ("m",)),
            ("Concat", ("m", "rest"), ("t",), {"axis": 0}), ("Reshape", ("x", "t"), ("y",)),
        ],
        {"x": (FLOAT, ["n", 2, 3])}, {"y": (FLOAT, ["n", "k"])},
        {"zero": np.int64(0), "axis": np.array([0]), "rest": np.array([-1])},
    )  # fmt: skip


def branching():
    """If flag: x + 1, else x * 2."""
    def body(op, number, name):
        node = helper.make_node(op, ["x", number], [name])
        return helper.make_graph([node], name, [], [helper.make_tensor_value_info(name, FLOAT, ["n"])])

    return model_of(
        [("If", ("flag",), ("y",), {"then_branch": body("Add", "one", "p"), "else_branch": body("Mul", "two", "q")})],
        {"flag": (BOOL, []), "x": (FLOAT, ["n"])}, {"y": (FLOAT, ["n"])}, {"one": np.float32(1), "two": np.float32(2)},
    )  # fmt: skip


def looping():
    """The sum of x and its doubles, k times: y = x * 2**k, and each step's value."""
    step = helper.make_graph(
        [helper.make_node("Add", ["v", "v"], ["w"]), helper.make_node("Identity", ["going"], ["still"]), helper.make_node("Identity", ["w"], ["each"])],
        "step",
        [helper.make_tensor_value_info(name, kind, shape) for name, kind, shape in (("i", INT64, []), ("going", BOOL, []), ("v", FLOAT, ["n"]))],
        [helper.make_tensor_value_info(name, kind, shape) for name, kind, shape in (("still", BOOL, []), ("w", FLOAT, ["n"]), ("each", FLOAT, ["n"]))],
    )
    return model_of([("Loop", ("k", "", "x"), ("y", "all"), {"body": step})], {"k": (INT64, []), "x": (FLOAT, ["n"])}, {"y": (FLOAT, ["n"]), "all": (FLOAT, ["k", "n"])})


__all__ = ["BOOL", "FLOAT", "INT64", "branching", "flattened", "looping", "model_of", "onnx", "perceptron"]
