"""The cases of `./dev bench half`: what is timed in float16 and bfloat16 beside float32, on 64 Ki elements.

Every elementwise entry of the registry makes a case by itself, of the values that its first sample with a tensor states; the others are
expressions over the tensors below, of which those in INEXACT take the dtype that is timed. Views, factories and what only rearranges the
calls of others are left out.
"""

import json
import pathlib
import re

import numpy as np

COUNT = 1 << 16
ROWS = 256


def normal(*shape):
    return np.random.default_rng(len(shape)).standard_normal(shape)


def positive(*shape):
    return np.abs(normal(*shape)) + 0.1


def indices(limit, *shape):
    return np.random.default_rng(0).integers(0, limit, shape)


# Vectors x and y, one without repeats (distinct in float16, nearly so in bfloat16), matrices, a row, a column, images, windows of images.
INEXACT = {
    "x": normal(COUNT), "y": positive(COUNT), "z": np.random.default_rng(1).permutation(2048).astype(float)[indices(2048, COUNT)],
    "m": normal(ROWS, ROWS), "q": positive(ROWS, ROWS), "r": positive(ROWS), "s": normal(ROWS), "k": positive(ROWS, 1),
    "near": 1 + 0.01 * normal(ROWS, ROWS), "i": normal(4, 64, 16, 16), "u": positive(64), "v": normal(64), "w": 0.05 * normal(64, 64, 3, 3),
    "d": normal(64, 1, 3, 3), "windows": normal(4, 64, 8, 8), "t": normal(4, 64, 256), "heads": normal(1, 4, 256, 64),
    "gates": normal(64, 1024), "states": normal(64, 256), "weights": 0.05 * normal(1024, 256), "update": 0.05 * normal(768, 256),
    "cubes": normal(COUNT // 4, 3), "wide": normal(ROWS, 2 * ROWS), "sorted": np.sort(normal(1 << 10)), "few": normal(ROWS, 4),
    "grid": np.random.default_rng(0).uniform(-1, 1, (4, 32, 32, 2)), "planes": normal(4, 16, 32, 32), "angles": normal(256, 32),
    "logs": -positive(32, 16, 128),
}
OTHERS = {
    "c": indices(2, COUNT).astype(bool), "b": indices(2, ROWS, ROWS).astype(bool), "j": indices(COUNT, COUNT), "h": indices(ROWS, ROWS),
    "g": indices(ROWS, ROWS, ROWS), "segments": np.sort(indices(ROWS, COUNT)), "labels": indices(ROWS, ROWS),
    "places": indices(16 * 16, 4, 64, 8, 8), "targets": indices(127, 16, 8) + 1, "lengths": np.full(16, 32), "shorts": np.full(16, 8),
    "bytes": indices(100, COUNT).astype(np.int8), "ints": indices(100, COUNT).astype(np.int32), "longs": indices(100, COUNT),
}

BINARY = ("add", "subtract", "multiply", "divide", "maximum", "minimum", "pow", "floor_divide", "remainder", "fmod", "atan2", "hypot", "less",
          "equal", "copysign", "fmax", "logaddexp", "nextafter")
UNARY = ("abs", "negative", "sqrt", "exp", "log", "sin", "tanh", "floor", "relu", "gelu", "sigmoid", "isnan", "sign", "square")
LAYOUTS = {f"{name}, {title}": f"bp.{name}({call})" for name in BINARY
           for title, call in (("a row", "q, r"), ("a column", "q, k"), ("a number", "y, 1.5"), ("every second", "y[::2], y[1::2]"),
                               ("transposed", "q, q.T"))}
LAYOUTS.update({f"{name}, {title}": f"bp.{name}({call})" for name in UNARY
                for title, call in (("every second", "y[::2]"), ("transposed", "q.T"))})
LAYOUTS.update({f"where, {title}": f"bp.where({call})" for title, call in (
    ("a row", "b, q, r"), ("a number", "b, q, 0.0"), ("transposed", "b, q, q.T"))})

CASTS = {f"cast to {name}": f"bp.astype(x, bp.{name})" for name in (
    "float16", "bfloat16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "bool", "complex64")}
CASTS.update({f"cast from {name}": f"bp.astype({values}, x.dtype)" for name, values in (
    ("int8", "bytes"), ("int32", "ints"), ("int64", "longs"), ("bool", "c"))})
CASTS.update({"copy": "bp.copy(x)", "copy, transposed": "bp.copy(m.T)", "copy, every second": "bp.copy(x[::2])", "flip": "bp.flip(x)",
              "full_like": "bp.full_like(x, 2.0)", "concat": "bp.concat([m, q], axis=1)", "stack": "bp.stack([x, y])",
              "tile": "bp.tile(r, [256])", "pad": "bp.pad(m, 1)", "roll": "bp.roll(x, [5])", "tril": "bp.tril(m)",
              "repeat_all": "bp.repeat_all(r, 256)", "slice_put": "bp.slice_put(m, m[:128], [0], [128], [256], [1])"})


def axes(name, operand="m", flat="x", more=""):
    """Over all elements, over the last axis, and over the first axis of a square matrix."""
    return {f"{name}, {title}": f"bp.{name}({values}{axis}{more})"
            for title, values, axis in (("whole", flat, ""), ("rows", operand, ", axis=1"), ("columns", operand, ", axis=0")) if values}


REDUCTIONS = {}
for reduction in ("sum", "mean", "var", "std", "max", "min", "any", "all", "count_nonzero", "argmax", "argmin", "logsumexp", "vector_norm"):
    REDUCTIONS.update(axes(reduction))
REDUCTIONS.update({**axes("prod", "near", None), **axes("nansum", "m", None), **axes("nanmean", "m", None), **axes("nanmax", "m", None),
                   **axes("median", "m", None), **axes("ptp", "m", None), **axes("quantile", "m, 0.3", None),
                   "vector_norm of order 1, rows": "bp.vector_norm(m, axis=1, ord=1)",
                   "vector_norm of order 3, rows": "bp.vector_norm(m, axis=1, ord=3)", "vecdot": "bp.vecdot(m, q)",
                   "vecdot, columns": "bp.vecdot(m, q, axis=0)", "trace": "bp.trace(m)", "sum_to a row": "bp.sum_to(m, [256])",
                   "sum of an image's channels": "bp.sum(i, axis=[0, 2, 3])"})

RUNNING = {}
for running in ("cumsum", "cumprod", "cummax", "cummin", "logcumsumexp", "diff", "softmax", "log_softmax"):
    RUNNING.update(axes(running, "near" if running == "cumprod" else "m", None))
RUNNING.update({"cumulative_sum": "bp.cumulative_sum(x)", "softmax of columns, an image's": "bp.softmax(i, axis=[1])",
                "linear_recurrence": "bp.linear_recurrence(near, m, 1)"})

LAYERS = {
    "layer_norm": "bp.layer_norm(m, r, s)", "rms_norm": "bp.rms_norm(m, r)", "batch_norm": "bp.batch_norm(i, u, v)",
    "batch_norm, rows": "bp.batch_norm(m, r, s)", "batch_norm_grad": "bp.batch_norm_grad(i, i, u)",
    "batch_norm_grad, rows": "bp.batch_norm_grad(m, m, r)", "batch_norm_inference": "bp.batch_norm_inference(i, v, u, u, v)",
    "batch_norm_inference, rows": "bp.batch_norm_inference(m, s, r, r, s)", "group_norm": "bp.group_norm(i, 8, u, v)",
    "local_response_norm": "bp.local_response_norm(i, 5)", "normalize": "bp.normalize(m)", "glu": "bp.glu(wide)",
    "max_pool2d": "bp.max_pool2d(i, [2, 2])", "max_pool2d, 3 by 3": "bp.max_pool2d(i, [3, 3], [2, 2], [1, 1])",
    "max_pool2d_with_indices": "bp.max_pool2d_with_indices(i, [2, 2])", "avg_pool2d": "bp.avg_pool2d(i, [2, 2])",
    "avg_pool2d, 3 by 3": "bp.avg_pool2d(i, [3, 3], [2, 2], [1, 1])", "lp_pool": "bp.lp_pool(i, 2, [2, 2])",
    "adaptive_avg_pool": "bp.adaptive_avg_pool(i, [4, 4])", "max_unpool": "bp.max_unpool(windows, places, [16, 16])",
    "conv2d": "bp.conv2d(i, w, padding=[1, 1])", "conv2d, depthwise": "bp.conv2d(i, d, padding=[1, 1], groups=64)",
    "conv2d_input_grad": "bp.conv2d_input_grad(i, w, [4, 64, 16, 16], padding=[1, 1])",
    "conv2d_weight_grad": "bp.conv2d_weight_grad(i, i, [64, 64, 3, 3], padding=[1, 1])",
    "conv_transpose": "bp.conv_transpose(i, w, stride=[1, 1], padding=[1, 1], output_padding=[0, 0], dilation=[1, 1])",
    "conv1d": "bp.conv(t, w[:, :, 0], padding=[1])", "im2col": "bp.im2col(i, [3, 3], padding=[1, 1])",
    "col2im": "bp.col2im(bp.im2col(i, [3, 3], padding=[1, 1]), [16, 16], [3, 3], padding=[1, 1])",
    "pixel_shuffle": "bp.pixel_shuffle(i, 4)", "pad_edges": "bp.pad_edges(i, [0, 0, 1, 1], [0, 0, 1, 1])",
    "resample_nearest": "bp.resample_nearest(i, -1, 32, 0.5)", "resample_linear": "bp.resample_linear(i, -1, 32, 0.5)",
    "resample_cubic": "bp.resample_cubic(i, -1, 32, 0.5)", "grid_sample": "bp.grid_sample(planes, grid)",
    "lstm_gates": "bp.lstm_gates(gates, gates, states)", "gru_gates": "bp.gru_gates(gates[:, :768], gates[:, 256:], states)",
    "lstm_cell": "bp.lstm_cell(states, states, states, weights, weights)", "gru_cell": "bp.gru_cell(states, states, update, update)",
    "rnn_tanh_cell": "bp.rnn_tanh_cell(states, states, m, m)", "attention": "bp.attention(heads, heads, heads)",
    "attention, causal": "bp.attention(heads, heads, heads, causal=True)",
    "rotary_embedding": "bp.rotary_embedding(heads, angles, angles)", "cross_entropy": "bp.cross_entropy(m, labels)",
    "nll_loss": "bp.nll_loss(m, labels)", "cosine_similarity": "bp.cosine_similarity(m, q)", "pairwise_distance": "bp.pairwise_distance(m, q)",
    "multi_margin_loss": "bp.multi_margin_loss(m, labels)", "ctc_loss": "bp.ctc_loss(logs, targets, lengths, shorts)",
}

PRODUCTS = {
    "matmul": "bp.matmul(m, q)", "matmul, transposed": "bp.matmul(m, q.T)", "matmul by a vector": "bp.matmul(m, r)",
    "linear": "bp.linear(m, q, r)",
    "outer": "bp.outer(r, s)", "kron": "bp.kron(few, few[:16])", "cross": "bp.cross(cubes, cubes)",
    "tensordot": "bp.tensordot(m, q, axes=1)",
    "matmul, batched": "bp.matmul(t, t.mT)",
}

MOVING = {
    "sort": "bp.sort(x)", "sort, rows": "bp.sort(m)", "sort, columns": "bp.sort(m, axis=0)", "argsort": "bp.argsort(x)",
    "argsort, rows": "bp.argsort(m)",
    "topk": "bp.topk(x, 16)", "topk, rows": "bp.topk(m, 16)", "take": "bp.take(x, j, axis=0)", "take rows": "bp.take(m, h, axis=0)",
    "take columns": "bp.take(m, h, axis=1)", "take_along_axis": "bp.take_along_axis(m, g)", "put_along_axis": "bp.put_along_axis(m, g, q)",
    "scatter-add": "bp.put_along_axis(m, g, q, accumulate=True)", "scatter_max": "bp.scatter_max(m, g, q)", "scatter_min": "bp.scatter_min(m, g, q)",
    "scatter_prod": "bp.scatter_prod(m, g, near)", "index_add": "bp.index_add(m, 0, h, q)", "segment_sum": "bp.segment_sum(x, segments, 256)",
    "segment_sum of rows": "bp.segment_sum(m, h, 256)", "segment_max": "bp.segment_max(x, segments, 256)",
    "segment_mean": "bp.segment_mean(x, segments, 256)", "index": "bp.index(m, [h, h])", "index_put": "bp.index_put(m, [h], q)",
    "masked_select": "bp.masked_select(x, c)", "masked_put": "bp.masked_put(x, c, y[:1])", "nonzero": "bp.argwhere(x)", "embedding": "bp.embedding(m, h)",
    "searchsorted": "bp.searchsorted(sorted, x)", "unique_values": "bp.unique_values(z)", "isin": "bp.isin(x, sorted)",
    "histogram": "bp.histogram(x, bins=64)", "digitize": "bp.digitize(x, sorted)", "interp": "bp.interp(x, sorted, sorted)",
}

GROUPS = {"layouts": LAYOUTS, "casts and copies": CASTS, "reductions": REDUCTIONS, "running": RUNNING, "layers": LAYERS, "products": PRODUCTS,
          "moving": MOVING}


def drawn(spec, count):
    """Values as the sample's generator makes them; `uniform(-2, 2)` where it says none."""
    name, numbers = re.match(r"(\w*)(?:\((.*)\))?$", spec["gen"]).groups()
    numbers = [float(number) for number in re.findall(r"[-\w.+]+", numbers or "")]
    rng = np.random.default_rng(2)
    if name in ("", "uniform"):
        return rng.uniform(*(numbers or (-2, 2)), count)
    if name == "positive":
        return rng.uniform(0.5, 2, count)
    if name == "away_from":
        values = rng.uniform(-2, 2, count)
        return np.where(abs(values - numbers[0]) < numbers[1], numbers[0] + 2 * numbers[1], values)
    if name == "index":
        return rng.integers(0, int(numbers[0]), count).astype(float)
    return np.resize(numbers, count) if name == "values" else rng.standard_normal(count)


def elementwise(path):
    """Case -> (expression, the tensors that it names): of the first sample of each elementwise entry, with 64 Ki elements a tensor."""
    found = {}
    for entry in json.loads(pathlib.Path(path).read_text())["ops"]:
        arguments = {argument["name"]: argument for argument in entry["args"]}
        if "elementwise" not in entry["flags"] or not any(a["promote"] and "float16" in a["accepts"] for a in arguments.values()):
            continue
        name, sample = entry["name"].partition("::")[2], entry["samples"][0]["args"]
        if any("generator" in value for value in sample.values()):
            continue
        tensors, written = {}, []
        for argument, value in sample.items():
            if "tensor" in value:
                values, accepts = drawn(value["tensor"], COUNT), arguments[argument]["accepts"]
                tensors[argument] = values if "float16" in accepts else (values > 0 if "bool" in accepts else values.astype(np.int32))
                written.append(argument if not arguments[argument]["keyword_only"] else f"{argument}={argument}")
            else:
                written.append(f"{argument}={value['value']!r}" if arguments[argument]["keyword_only"] else repr(value["value"]))
        found[name] = (f"op({', '.join(written)})", tensors)
    return found
