"""What save writes: onnx's checker accepts it, and onnxruntime gives the results of the function."""

import backplane as bp
import backplane.nn.functional as F
import numpy as np
import onnx
import onnxruntime
import pytest

rng = np.random.default_rng(0)


def floats(*shape):
    return bp.asarray(rng.standard_normal(shape).astype(np.float32))


X, IMAGE, W = floats(3, 4), floats(2, 3, 8, 8), floats(4, 3, 3, 3)
ROWS, BACK, V, PLANE = floats(2, 8, 3), floats(3, 2, 3, 3), floats(3), floats(8, 8)
LSTM, GRU = bp.nn.LSTM(3, 4, num_layers=2), bp.nn.GRU(3, 4, bidirectional=True)
INTEGERS = bp.asarray(rng.integers(-9, 9, (3, 4)))


def transformer_block(x, q, k, v, o, up, down):
    heads = [bp.permute_dims(bp.reshape(x @ m, (2, 5, 2, 4)), (0, 2, 1, 3)) for m in (q, k, v)]
    y = F.scaled_dot_product_attention(*heads)
    x = F.layer_norm(x + bp.reshape(bp.permute_dims(y, (0, 2, 1, 3)), (2, 5, 8)) @ o, (8,))
    return x + F.gelu(x @ up) @ down


CASES = {
    "arithmetic": (lambda x, y: (x + y * 2 - 1) / (abs(y) + 1) ** 2, X, floats(4)),
    "integers": (lambda x: (x // 3, x % 3, x % -3, -x, abs(x), x + 1.5, x & 3, x | 4, x ^ 1), INTEGERS),
    "comparisons": (lambda x: (x > 0, x <= 0.5, x == x, x != 0, bp.where(x > 0, x, -1)), X),
    "logic": (lambda x: ((x > 0) & (x < 1), (x > 0) | ~(x < 1), bp.logical_xor(x > 0, x > 1)), X),
    "elementary": (lambda x: (bp.sin(x), bp.exp(x), bp.expm1(x), bp.log1p(abs(x)), bp.atan2(x, x + 0.1), bp.rsqrt(abs(x) + 1), bp.erf(x), bp.trunc(x), bp.sign(x)), X),
    "activations": (
        lambda x: (F.relu(x), F.gelu(x), F.gelu(x, approximate="tanh"), F.silu(x), F.leaky_relu(x, 0.2), F.elu(x), F.selu(x), F.softplus(x), F.hardswish(x), F.hardsigmoid(x), F.relu6(x), F.mish(x), F.softsign(x)),
        X,
    ),
    "softmax": (lambda x: (bp.softmax(x, axis=0), bp.log_softmax(x, axis=1), bp.logsumexp(x, axis=1)), X),
    "reductions": (lambda x: (x.sum(), x.mean(0), x.max(), x.min(1, keepdims=True), bp.prod(x, axis=1), bp.var(x, axis=1), bp.std(x), bp.any(x > 1), bp.all(x > -9, axis=0)), X),
    "places": (lambda x: (bp.argmax(x), bp.argmin(x, axis=1), bp.sort(x, axis=0), bp.argsort(x, axis=1, descending=True), bp.topk(x, 2)[0], bp.cumsum(x, axis=1)), X),
    "views": (lambda x: (x.T, x[1], x[:, ::2], x[..., None], x[::-1, 1:-1], x.reshape(2, 6), bp.broadcast_to(x, (2, 3, 4)), bp.diagonal(x), bp.tril(x)), X),
    "joins": (lambda x: (bp.concat([x, x], axis=1), bp.stack([x, x]), bp.pad(x, ((1, 0), (0, 2)), constant_values=3.0), bp.split(x, [1], axis=1)[1], bp.tile(x, (2, 1))), X),
    "creation": (lambda x: (x + bp.arange(4), x * bp.ones((3, 1)), bp.zeros((2, 2)), bp.full((), 3)), X),
    "casts": (lambda x: (x.astype(bp.float64) * 2, x.astype(bp.int32), x.astype(bp.float16), (x > 0).astype(bp.float32)), X),
    "indices": (lambda x: (x[bp.asarray([2, 0])], x[bp.asarray([0, 1]), bp.asarray([1, 3])], bp.take(x, bp.asarray([1]), axis=1), bp.take_along_axis(x, bp.asarray([[0], [1], [2]]), axis=1)), X),
    "products": (lambda x, w, b: (x @ w, F.linear(x, w.T, b), bp.einsum("ij,jk->ki", x, w)), X, floats(4, 5), floats(5)),
    "convolutions": (lambda x, w, b: F.max_pool2d(F.relu(F.conv2d(x, w, b, stride=2, padding=1)), 2), IMAGE, W, floats(4)),
    "other convolutions": (lambda x, w: (F.conv2d(x, w, dilation=2), F.conv1d(x[0], ROWS), F.conv_transpose2d(x, BACK, stride=2, padding=1, output_padding=1)), IMAGE, W),
    "pools": (lambda x: (F.avg_pool2d(x, 3, 2, 1), F.adaptive_avg_pool2d(x, 1), F.max_pool2d(x, 3, 1, 1)), IMAGE),
    "norms": (lambda x: (F.batch_norm(x, V, V * V), F.layer_norm(x, (8, 8), PLANE, PLANE), F.group_norm(x, 3), F.rms_norm(x, (8,)), F.instance_norm(x)), IMAGE),
    "resizing": (lambda x: (F.interpolate(x, scale_factor=2), F.interpolate(x, scale_factor=2, mode="bilinear")), IMAGE),
    "branches": (lambda x, y: (bp.cond(x[0, 0] > 0, lambda x, y: (x + y, x * 2), lambda x, y: (x - y, y[0] * x), x, y), bp.cond(x[0, 1] > 9, lambda x: x, lambda x: -x, x)), X, floats(3, 4)),
    "nested branches": (lambda x: bp.cond(x.sum() > 0, lambda x: bp.cond(x[0, 0] > 0, bp.sin, bp.cos, x), lambda x: x * 3, x), X),
    "a loop until a value": (lambda x: bp.while_loop(lambda s: s[1].sum() < 100, lambda s: (s[0] + 1, s[1] * 1.5 + abs(x)), (bp.asarray(0), abs(x) + 1)), X),
    "a loop without steps": (lambda x: bp.while_loop(lambda y: y.sum() < -1e9, lambda y: y * 2, x), X),
    "scans": (
        lambda x: (
            bp.scan(lambda c, e: (c + bp.softmax(e), c * e), bp.zeros(4), x), bp.scan(lambda c, e: (c * e, c), bp.ones(4), x, reverse=True),
            bp.scan(lambda c, e: (c + x[0], c.sum()), bp.zeros(4), None, length=3), bp.map(lambda e: bp.sort(e), x),
        ),
        X,
    ),
    "a scan in a branch in a scan": (
        lambda x: bp.scan(lambda c, e: (bp.cond(e[0] > 0, lambda c, e: bp.scan(lambda d, f: (d + f, d * f), c, e)[0], lambda c, e: c - e[0], c, e), c), bp.asarray(0.0), x), X,
    ),
    "recurrent layers": (lambda x: (LSTM(x)[0], GRU(x)), ROWS),
    "a transformer block": (transformer_block, floats(2, 5, 8), *[floats(8, 8) for _ in range(4)], floats(8, 16), floats(16, 8)),
}  # fmt: skip


def flat(results):
    return [t for part in results for t in flat(part)] if isinstance(results, (tuple, list)) else [results]


def run(path, *args):
    session = onnxruntime.InferenceSession(str(path))
    return session.run(None, {value.name: arg.numpy() for value, arg in zip(session.get_inputs(), args)})


@pytest.mark.parametrize("name", list(CASES))
def test_onnxruntime_gives_equal_results(name, tmp_path):
    function, *args = CASES[name]
    path = tmp_path / "model.onnx"
    graph = bp.make_graph(function)(*args)
    bp.onnx.save(graph, path)
    onnx.checker.check_model(str(path), full_check=True)
    expected = flat(graph(*args))
    found = run(path, *args)
    assert len(found) == len(expected)
    for got, want in zip(found, expected):
        want = want.detach().numpy()
        assert got.shape == want.shape and got.dtype == want.dtype
        half = want.dtype == np.float16
        np.testing.assert_allclose(got.astype(np.float64), want.astype(np.float64), rtol=1e-3 if half else 2e-5, atol=1e-3 if half else 2e-6)


@pytest.mark.parametrize("name", list(CASES))
def test_what_is_saved_is_loaded(name, tmp_path):
    function, *args = CASES[name]
    graph = bp.make_graph(function)(*args)
    bp.onnx.save(graph, tmp_path / "model.onnx")
    for got, want in zip(bp.onnx.load(tmp_path / "model.onnx")(*args), flat(graph(*args))):
        assert got.dtype == want.dtype and bp.allclose(got.astype(bp.float64), want.astype(bp.float64), rtol=1e-3 if want.dtype == bp.float16 else 2e-5, atol=1e-5)


def test_dynamic_sizes_stay_dynamic(tmp_path):
    path = tmp_path / "model.onnx"
    w = floats(12, 5)
    bp.onnx.save(lambda x: bp.softmax(x.reshape(x.shape[0] * 2, -1) @ w), path, [bp.ones((2, 2, 12))], dynamic={"x": {0: "batch"}}, output_names=["y"])
    for n in (1, 3):
        x = floats(n, 2, 12)
        (y,) = run(path, x)
        np.testing.assert_allclose(y, bp.softmax(x.reshape(2 * n, -1) @ w).numpy(), rtol=1e-5)
    assert onnxruntime.InferenceSession(str(path)).get_outputs()[0].name == "y"


def test_what_cannot_be_written_is_refused_by_name(tmp_path):
    path = tmp_path / "model.onnx"
    with pytest.raises(bp.MissingRuleError, match="bp::normal|random_bits"):
        bp.onnx.save(lambda x: x + bp.normal((2,)), path, [bp.ones(2)])
    with pytest.raises(bp.MissingRuleError, match="scan.*dynamic sizes"):
        bp.onnx.save(lambda x: bp.scan(lambda c, e: (c + e, c), bp.asarray(0.0), x)[0], path, [bp.ones(2)], dynamic=[{0: "n"}])
    with pytest.raises(bp.ArgumentTypeError, match="args"):
        bp.onnx.save(lambda x: x, path)
    assert not path.exists()
