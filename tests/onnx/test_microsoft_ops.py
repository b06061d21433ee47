"""Operators of com.microsoft that exported and optimised transformers use: the results of onnxruntime, called and compiled."""

import backplane as bp
import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import helper, numpy_helper

rng = np.random.default_rng(0)
onnxruntime.set_default_logger_severity(4)


def floats(*shape, scale=1.0):
    return (rng.standard_normal(shape) * scale).astype(np.float32)


def bytes_of(*shape, high=256, kind=np.uint8):
    return rng.integers(0, high, shape).astype(kind)


def int32(*values):
    return np.array(values, np.int32)


def rotation(rows, width):
    angles = np.arange(rows)[:, None] / 10000 ** (np.arange(width) / width)
    return np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)


def cache(n, heads, rows, size):
    return floats(n, heads, rows, size)


COS, SIN = rotation(32, 4)
HIDDEN = floats(2, 5, 16)
PACKED = {"K": 32, "N": 6, "block_size": 16, "bits": 4}
SCALE, ZERO = np.float32(0.03), np.uint8(120)
TABLES = (floats(10, 16), floats(12, 16), floats(2, 16))
IDS = rng.integers(0, 10, (2, 5)).astype(np.int32)
KEYS = np.array([[1, 1, 1, 1, 0], [1, 1, 1, 0, 0]], np.int32)
GROUPED = {"num_heads": 4, "kv_num_heads": 2}
Q, KV = floats(2, 5, 64), [floats(2, 5, 32), floats(2, 5, 32)]
NEXT, NEXT_KV = floats(2, 1, 64), [floats(2, 1, 32), floats(2, 1, 32)]
PAST = [cache(2, 2, 5, 16), cache(2, 2, 5, 16)]
WIDE_COS, WIDE_SIN = rotation(32, 8)
FIRST = (Q, *KV, None, None, int32(4, 4), int32(5))
SECOND = (NEXT, *NEXT_KV, *PAST, int32(5, 5), int32(6))

# name: (operator, inputs, attributes, the outputs that are compared)
CASES = {
    "FusedMatMul": ("FusedMatMul", (floats(2, 3, 4), floats(2, 5, 4)), {"alpha": 0.5, "transB": 1}, 1),
    "FusedMatMul, both transposed": ("FusedMatMul", (floats(4, 3), floats(5, 4)), {"transA": 1, "transB": 1}, 1),
    "FusedGemm": ("FusedGemm", (floats(3, 4), floats(4, 5), floats(5)), {"activation": "Relu"}, 1),
    "FusedConv": ("FusedConv", (floats(1, 2, 6, 6), floats(3, 2, 3, 3), floats(3)), {"activation": "Relu", "pads": [1, 1, 1, 1]}, 1),
    "FusedConv, leaky": ("FusedConv", (floats(1, 2, 6, 6), floats(3, 2, 3, 3)), {"activation": "LeakyRelu", "activation_params": [0.1]}, 1),
    "Gelu": ("Gelu", (HIDDEN,), {}, 1),
    "FastGelu": ("FastGelu", (HIDDEN,), {}, 1),
    "FastGelu with a bias": ("FastGelu", (HIDDEN, floats(16)), {}, 1),
    "BiasGelu": ("BiasGelu", (HIDDEN, floats(16)), {}, 1),
    "QuickGelu": ("QuickGelu", (HIDDEN,), {"alpha": 1.5}, 1),
    "SkipLayerNormalization": ("SkipLayerNormalization", (HIDDEN, floats(2, 5, 16), floats(16), floats(16), floats(16)), {"epsilon": 1e-5}, (0, 3)),
    "SkipLayerNormalization, short": ("SkipLayerNormalization", (HIDDEN, floats(2, 5, 16), floats(16)), {}, 1),
    "SkipSimplifiedLayerNormalization": ("SkipSimplifiedLayerNormalization", (HIDDEN, floats(2, 5, 16), floats(16)), {"epsilon": 1e-6}, (0, 3)),
    "EmbedLayerNormalization": ("EmbedLayerNormalization", (IDS, IDS % 2, *TABLES, floats(16), floats(16), KEYS), {"epsilon": 1e-5}, 3),
    "EmbedLayerNormalization without segments": ("EmbedLayerNormalization", (IDS, None, *TABLES[:2], None, floats(16), floats(16)), {}, 2),
    "Attention": ("Attention", (HIDDEN, floats(16, 48), floats(48)), {"num_heads": 2}, 1),
    "Attention, keys by number": ("Attention", (HIDDEN, floats(16, 48), floats(48), int32(3, 5)), {"num_heads": 2}, 1),
    "Attention, keys by mask": ("Attention", (HIDDEN, floats(16, 48), floats(48), KEYS), {"num_heads": 2}, 1),
    "Attention, causal with a cache": (
        "Attention", (HIDDEN, floats(16, 48), floats(48), None, floats(2, 2, 2, 3, 8)), {"num_heads": 2, "unidirectional": 1}, 2,
    ),
    "Attention with a bias": ("Attention", (HIDDEN, floats(16, 48), floats(48), None, None, floats(2, 2, 5, 5)), {"num_heads": 2, "scale": 0.3}, 1),
    "Attention, values of another size": ("Attention", (HIDDEN, floats(16, 40), floats(40)), {"num_heads": 2, "qkv_hidden_sizes": [16, 16, 8]}, 1),
    "MultiHeadAttention": ("MultiHeadAttention", (HIDDEN, floats(2, 7, 16), floats(2, 7, 16)), {"num_heads": 2}, 1),
    "MultiHeadAttention with biases": (
        "MultiHeadAttention", (HIDDEN, floats(2, 5, 16), floats(2, 5, 16), floats(48), KEYS, floats(1, 2, 5, 5)), {"num_heads": 2}, 1,
    ),
    "MultiHeadAttention with a cache": (
        "MultiHeadAttention", (HIDDEN, floats(2, 5, 16), floats(2, 5, 16), None, None, None, cache(2, 2, 3, 8), cache(2, 2, 3, 8)),
        {"num_heads": 2, "unidirectional": 1}, 3,
    ),
    "GroupQueryAttention, first call": ("GroupQueryAttention", FIRST, GROUPED, 3),
    "GroupQueryAttention, first call with rotation": ("GroupQueryAttention", (*FIRST, WIDE_COS, WIDE_SIN), {**GROUPED, "do_rotary": 1}, 3),
    "GroupQueryAttention, next call": ("GroupQueryAttention", SECOND, GROUPED, 3),
    "GroupQueryAttention, next call with rotation": (
        "GroupQueryAttention", (*SECOND, WIDE_COS, WIDE_SIN), {**GROUPED, "do_rotary": 1, "rotary_interleaved": 1, "scale": 0.2}, 3,
    ),
    "GroupQueryAttention, packed": ("GroupQueryAttention", (floats(2, 5, 128), None, None, None, None, int32(4, 4), int32(5)), GROUPED, 3),
    "GroupQueryAttention, examples of different lengths": (
        "GroupQueryAttention", (NEXT, *NEXT_KV, *PAST, int32(3, 5), int32(6), WIDE_COS, WIDE_SIN), {**GROUPED, "do_rotary": 1}, 3,
    ),
    "GroupQueryAttention, window and cap": ("GroupQueryAttention", FIRST, {**GROUPED, "local_window_size": 2, "softcap": 3.0}, 3),
    "RotaryEmbedding": ("RotaryEmbedding", (floats(2, 5, 16), np.arange(10).reshape(2, 5), COS, SIN), {}, 1),
    "RotaryEmbedding, interleaved, from an offset": ("RotaryEmbedding", (floats(2, 2, 5, 8), np.array([3]), COS, SIN), {"interleaved": 1}, 1),
    "RotaryEmbedding, a part": (
        "RotaryEmbedding", (floats(2, 2, 5, 12), np.arange(10).reshape(2, 5), COS, SIN), {"rotary_embedding_dim": 8, "num_heads": 2}, 1,
    ),
    "MatMulNBits": ("MatMulNBits", (floats(3, 32), bytes_of(6, 2, 8), floats(12) ** 2 + 0.1), PACKED, 1),
    "MatMulNBits with zero points": ("MatMulNBits", (floats(3, 32), bytes_of(6, 2, 8), floats(12) ** 2 + 0.1, bytes_of(6)), PACKED, 1),
    "MatMulNBits, 8 bits": ("MatMulNBits", (floats(3, 32), bytes_of(6, 2, 16), floats(12) ** 2 + 0.1), {**PACKED, "bits": 8}, 1),
    "DynamicQuantizeMatMul": ("DynamicQuantizeMatMul", (floats(3, 8), bytes_of(8, 5), np.float32(0.02), np.uint8(128), floats(5)), {}, 1),
    "MatMulIntegerToFloat": ("MatMulIntegerToFloat", (bytes_of(3, 8), bytes_of(8, 5), np.float32(0.1), np.float32(0.02), np.uint8(7), np.uint8(128)), {}, 1),
    "QuantizeLinear": ("QuantizeLinear", (floats(3, 4), np.float32(0.05), np.uint8(128)), {}, 1),
    "DequantizeLinear": ("DequantizeLinear", (bytes_of(3, 4), np.float32(0.05), np.uint8(128)), {}, 1),
    "QLinearAdd": ("QLinearAdd", (bytes_of(3, 4), SCALE, ZERO, bytes_of(4), np.float32(0.05), np.uint8(90), np.float32(0.06), np.uint8(128)), {}, 1),
    "QLinearMul": ("QLinearMul", (bytes_of(3, 4), SCALE, ZERO, bytes_of(4), np.float32(0.05), np.uint8(90), np.float32(0.06), np.uint8(128)), {}, 1),
    "QLinearSigmoid": ("QLinearSigmoid", (bytes_of(3, 4), SCALE, ZERO, np.float32(1 / 256), np.uint8(0)), {}, 1),
    "QLinearLeakyRelu": ("QLinearLeakyRelu", (bytes_of(3, 4), SCALE, ZERO, np.float32(0.02), np.uint8(60)), {"alpha": 0.2}, 1),
    "QLinearSoftmax": ("QLinearSoftmax", (bytes_of(3, 4), SCALE, ZERO, np.float32(1 / 256), np.uint8(0)), {"axis": 1, "opset": 13}, 1),
    "QLinearAveragePool": ("QLinearAveragePool", (bytes_of(1, 2, 6, 6), SCALE, ZERO, np.float32(0.02), np.uint8(100)), {"kernel_shape": [2, 2], "strides": [2, 2]}, 1),
    "QLinearGlobalAveragePool": ("QLinearGlobalAveragePool", (bytes_of(1, 2, 6, 6), SCALE, ZERO, np.float32(0.02), np.uint8(100)), {"channels_last": 0}, 1),
    "QLinearConcat": ("QLinearConcat", (np.float32(0.04), np.uint8(100), bytes_of(2, 3), SCALE, ZERO, bytes_of(2, 4), np.float32(0.02), np.uint8(80)), {"axis": 1}, 1),
    "QGemm": ("QGemm", (bytes_of(3, 8), SCALE, ZERO, bytes_of(8, 5), np.float32(0.02), np.uint8(110), bytes_of(5, kind=np.int32), np.float32(0.1), np.uint8(128)), {}, 1),
    "QAttention": (
        "QAttention", (bytes_of(2, 5, 16), bytes_of(16, 48), floats(48), SCALE, np.float32(0.01), int32(3, 5), ZERO, np.uint8(118)), {"num_heads": 2}, 1,
    ),
    "GatherBlockQuantized": (
        "GatherBlockQuantized", (bytes_of(10, 16), rng.integers(0, 10, (2, 3)), floats(10, 2), bytes_of(10, 1)),
        {"gather_axis": 0, "quantize_axis": 1, "block_size": 16, "bits": 4}, 1,
    ),
}  # fmt: skip
ROUNDED = {"DynamicQuantizeMatMul"}  # the scale of the quantized operand is a quotient, so a number may be rounded the other way


def model_of(op, inputs, attributes, n_outputs):
    """The model, its inputs by name, and the outputs of onnxruntime, whose dtypes the model's outputs get."""
    names = ["" if x is None else f"x{i}" for i, x in enumerate(inputs)]
    given = {name: np.asarray(x) for name, x in zip(names, inputs) if name}
    sizes = [given.pop("x6")] if op == "GroupQueryAttention" else []  # a size, which a compiled function has to know
    outputs = [f"y{i}" if i in n_outputs else "" for i in range(max(n_outputs) + 1)]
    infos = [helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape) for name, x in given.items()]
    results = [onnx.ValueInfoProto(name=name) for name in outputs if name]
    node = helper.make_node(op, names, outputs, domain="com.microsoft", **attributes)
    domains = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    graph = helper.make_graph([node], "one", infos, results, [numpy_helper.from_array(size, "x6") for size in sizes])
    model = helper.make_model(graph, opset_imports=domains, ir_version=10)
    found = onnxruntime.InferenceSession(model.SerializeToString()).run(None, given)
    for info, y in zip(model.graph.output, found):
        info.CopyFrom(helper.make_tensor_value_info(info.name, helper.np_dtype_to_tensor_dtype(y.dtype), y.shape))
    return model, given, found


@pytest.mark.parametrize("name", CASES)
def test_results_equal_those_of_onnxruntime(name):
    op, inputs, attributes, wanted = CASES[name]
    model, given, expected = model_of(op, inputs, attributes, tuple(range(wanted)) if isinstance(wanted, int) else wanted)
    f = bp.onnx.load(model)
    for found in (f(**given), bp.compile(lambda **tensors: f(**tensors))(**given)):
        assert len(found) == len(expected)
        for y, ours in zip(expected, found):
            ours = ours.numpy()
            assert ours.shape == y.shape and ours.dtype == y.dtype
            if y.dtype.kind in "iu":
                assert np.abs(ours.astype(int) - y.astype(int)).max() <= 0
            else:
                np.testing.assert_allclose(ours, y, rtol=1e-5, atol=2e-2 if name in ROUNDED else 2e-5)


def test_what_is_left_out_is_refused_by_name():
    model, given, _ = model_of("GroupQueryAttention", FIRST, {**GROUPED, "smooth_softmax": 1}, (0, 1, 2))
    with pytest.raises(bp.MissingRuleError, match="GroupQueryAttention.*smooth_softmax"):
        bp.onnx.load(model)(**given)
    model.graph.node[0].op_type = "BeamSearch"
    with pytest.raises(bp.MissingRuleError, match="BeamSearch"):
        bp.onnx.load(model)
