"""Norms of lines and attention, which are kernels on the Vulkan backend: at the sizes and places where they take
another way they give what the CPU gives."""

import backplane as bp
import numpy as np
import pytest
from device_calls import RNG, normal

PRECISIONS = {"float32": 2e-6, "float64": 1e-12, "float16": 2e-3, "bfloat16": 2e-2}


def compare(function, device, *arrays, dtype="float32", rtol=0.0, atol=0.0, composed=False):
    """Compares what the device makes of arrays in dtype, by kernels alone unless it is composed, with the CPU's."""

    def of(device):
        operands = [x if x is None else bp.asarray(x, device=device).astype(getattr(bp, dtype)) for x in arrays]
        bp.reset_call_counts()
        results = function(*operands)
        assert composed or bp.call_counts().decompositions == 0
        results = results if isinstance(results, (tuple, list)) else [results]
        return [result.astype(bp.float64).numpy() for result in results]

    for ours, expected in zip(of(device), of("cpu"), strict=True):
        np.testing.assert_allclose(ours, expected, rtol=rtol, atol=atol, strict=True)


# An invocation takes a line where there are at least 16 or they are short, else a workgroup of 256; elements are read
# by two where the length is even and lines begin at whole words.
@pytest.mark.parametrize("length", [1, 2, 33, 64, 127, 514, 1000, 20001])
@pytest.mark.parametrize("lines", [3, 20])
@pytest.mark.parametrize("dtype", PRECISIONS)
def test_lines_are_normalised(vulkan, lines, length, dtype):
    x, g, w, b = normal(lines, length), normal(lines, length), normal(length), normal(length)
    rtol = PRECISIONS[dtype]

    def check(function, *arrays, atol=8 * rtol):
        compare(function, vulkan, *arrays, dtype=dtype, rtol=rtol, atol=atol)

    check(bp.rms_norm, x)
    check(bp.rms_norm, x, w)
    check(bp.layer_norm, x)
    check(lambda x, b: bp.layer_norm(x, None, b), x, b)
    check(bp.layer_norm, x, w, b)
    # Of one element, or of two that are nearly equal, it is a rounding error, times 1 / sqrt(eps) at most.
    slack = 1000 if length <= 2 else 60
    check(bp.layer_norm_grad, g, x, atol=slack * rtol)
    check(bp.layer_norm_grad, g, x, w, atol=slack * rtol)


VIEWS = {
    "several axes": lambda x: bp.layer_norm(x, axis=(1, 2)),
    "several axes, with a weight": lambda x: bp.rms_norm(x, x[0] + 2, axis=(-1, -2)),
    "lines that begin between words": lambda x: bp.layer_norm(x.reshape((-1,))[1:1121].reshape((40, 28))),
    "a weight that begins between words": lambda x: bp.layer_norm(x, bp.concat([x[0, 0, :1], x[1, 1]])[1:]),
    "a transposed operand": lambda x: bp.layer_norm_grad(x.mT, 2 - x.mT, eps=0.1),
    "every second element": lambda x: bp.rms_norm(x[..., ::2]),
}


@pytest.mark.parametrize("name", VIEWS)
def test_views_are_normalised(vulkan, name):
    def result(device):
        return VIEWS[name](bp.asarray(x, device=device)).numpy()

    x = normal(5, 9, 28)
    np.testing.assert_allclose(result(vulkan), result("cpu"), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("lines", [3, 20])
@pytest.mark.parametrize("outlier", [0, -40])  # the first element, which is no better an origin than others
def test_a_mean_far_from_0_costs_no_digits(vulkan, lines, outlier):
    x = RNG.integers(-3, 4, (lines, 600)).astype(np.float32) + 2.0**16
    x[:, 0] += outlier
    distances = x.astype(np.float64) - np.mean(x, axis=1, keepdims=True, dtype=np.float64)
    expected = distances / np.sqrt(np.mean(distances**2, axis=1, keepdims=True) + 1e-5)
    np.testing.assert_allclose(bp.layer_norm(bp.asarray(x, device=vulkan)).numpy(), expected, rtol=2e-6, atol=2e-6)


def test_gradients_of_norms(vulkan):
    def gradients(x, w, b):
        x, w, b = (tensor.detach().requires_grad_() for tensor in (x, w, b))
        bp.sum(bp.sin(bp.layer_norm(x, w, b))).backward()
        return x.grad, w.grad, b.grad

    compare(gradients, vulkan, normal(4, 30, 32), normal(32), normal(32), rtol=1e-4, atol=1e-4, composed=True)


def test_norms_over_other_axes_are_composed(vulkan):
    x = normal(20, 7)
    compare(lambda x: bp.layer_norm(x, axis=0), vulkan, x, rtol=1e-5, atol=1e-5, composed=True)
    compare(bp.layer_norm, vulkan, x, x, rtol=1e-5, atol=1e-5, composed=True)


def attention_and_gradients(query, key, value, mask=None, **options):
    operands = [x.detach().requires_grad_() for x in (query, key, value)]
    values, lse = bp.attention_with_lse(*operands, mask, **options)
    bp.sum(bp.sin(values) + bp.where(lse == -bp.inf, 0, lse * 0.1).astype(values.dtype)[..., None]).backward()
    return values.detach(), lse.detach(), *(x.grad for x in operands)


def attend(device, query, key, value, mask=None, dtype="float32", **options):
    """Checks attention's results and gradients against the CPU's; the mask keeps its dtype."""

    def of(device):
        operands = [bp.asarray(x, device=device).astype(getattr(bp, dtype)) for x in (query, key, value)]
        given = None if mask is None else bp.asarray(mask, device=device)
        results = attention_and_gradients(*operands, given, **options)
        return [result.astype(bp.float64).numpy() for result in results]

    tolerance = max(1e-5, 4 * PRECISIONS[dtype])
    for ours, expected in zip(of(device), of("cpu"), strict=True):
        scale = np.abs(expected[np.isfinite(expected)]).max(initial=1)
        np.testing.assert_allclose(ours, expected, rtol=tolerance, atol=tolerance * scale, strict=True)


# Queries, keys, their features, values'. A block has up to 32 rows, which meet 16 others at a time; more than 64
# features are slices.
SIZES = {
    "several blocks and tiles": (70, 45, 32, 24),
    "more keys than queries": (9, 70, 32, 24),
    "odd features": (33, 50, 7, 9),
    "slices": (20, 40, 66, 130),
    "one query": (1, 90, 32, 24),
    "one key": (40, 1, 32, 24),
    "no keys": (5, 0, 32, 24),
    "no queries": (0, 5, 32, 24),
    "no features": (5, 6, 0, 24),
}


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("causal", [False, True])
def test_attention(vulkan, size, causal):
    queries, keys, features, value_features = SIZES[size]
    query, key, value = normal(2, queries, features), normal(2, keys, features), normal(2, keys, value_features)
    attend(vulkan, query, key, value, causal=causal)


@pytest.mark.parametrize("dtype", PRECISIONS)
def test_attention_in_every_dtype(vulkan, dtype):
    query, key, value = normal(2, 7, 10), normal(2, 40, 10), normal(2, 40, 12)
    attend(vulkan, query, key, value, normal(7, 40), dtype=dtype, causal=True, scale=-0.7)


# Over 3 batches of 2 heads of 20 queries and 40 keys.
MASKS = {
    "bools": RNG.random((3, 2, 20, 40)) < 0.3,
    "bools per key": RNG.random(40) < 0.3,
    "bools per query and head": RNG.random((2, 20, 1)) < 0.5,
    "one bool": np.array(True),
    "numbers": normal(3, 1, 20, 40),
    "numbers per query": normal(20, 1),
    "numbers of another dtype": RNG.standard_normal((3, 1, 1, 40)),
    "numbers that repeat": np.broadcast_to(RNG.standard_normal((20, 1)).astype(np.float16), (3, 2, 20, 40)),
    "numbers that hide keys": np.where(RNG.random((20, 40)) < 0.9, -np.inf, 0).astype(np.float32),
}


@pytest.mark.parametrize("mask", MASKS)
def test_masks(vulkan, mask):
    attend(vulkan, normal(3, 2, 20, 8), normal(3, 2, 40, 8), normal(3, 2, 40, 8), MASKS[mask], causal="keys" in mask)


@pytest.mark.parametrize(
    "query, key, value, mask",
    [
        ((2, 3), (3,), (2, 1), (1, 1)),
        ((), (4,), (), ()),
        ((2, 1), (2, 3), (1,), (2, 1)),
        ((2,), (), (), (3, 1)),
        ((0,), (), (), ()),
    ],
)
def test_batch_dims_broadcast(vulkan, query, key, value, mask):
    attend(vulkan, normal(*query, 7, 8), normal(*key, 6, 8), normal(*value, 6, 8), normal(*mask, 7, 6))


# How operands of 2 batches of 3 heads of 7 rows of 8 features may lie.
LAYOUTS = {
    "heads inside": lambda x: bp.permute_dims(bp.copy(bp.permute_dims(x, (0, 2, 1, 3))), (0, 2, 1, 3)),
    "rows of padding": lambda x: bp.concat([x, x], axis=-1)[..., :8],
    "rows that begin between words": lambda x: bp.concat([x[..., :1], x, x[..., :1]], axis=-1)[..., 1:9],
    "transposed": lambda x: bp.copy(x.mT).mT,
    "backward": lambda x: bp.copy(x[:, ::-1, ::-1])[:, ::-1, ::-1],
    "every second": lambda x: bp.repeat(x, 2, axis=3)[..., ::2],
    "repeated": lambda x: bp.broadcast_to(x[:, :1, :1], x.shape),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_operands_in_any_layout(vulkan, layout):
    def laid(*operands):
        return bp.attention_with_lse(*(LAYOUTS[layout](x) for x in operands[:3]))

    def laid_gradient(query, key, value, *rest):
        return bp.ops.bp.attention_grad(*(LAYOUTS[layout](x) for x in (query, key, value, rest[0])), *rest[1:])

    operands = [normal(2, 3, 7, 8) for _ in range(4)] + [normal(2, 3, 7), normal(3, 7)]
    compare(laid, vulkan, *operands[:3], rtol=1e-5, atol=1e-5, composed=True)  # repeat is
    compare(laid_gradient, vulkan, *operands, rtol=1e-4, atol=1e-4, composed=True)


@pytest.mark.parametrize("order", [1, -1])
def test_scores_that_grow_and_shrink(vulkan, order):
    key = normal(150, 8) * np.linspace(0, 40, 150, dtype=np.float32)[::order, None]
    attend(vulkan, normal(17, 8), key, normal(150, 8))


def test_what_is_not_finite_stays_in_its_query_and_feature(vulkan):
    value = normal(70, 8)
    value[69, 2] = np.inf  # of a tile that ends behind it
    query = normal(20, 8)
    query[3, 1] = np.nan
    compare(bp.attention_with_lse, vulkan, query, normal(70, 8), value, rtol=1e-5, atol=1e-5)


def test_results_that_are_not_wanted(vulkan):
    def lse(*operands):
        return bp.attention_with_lse(*operands)[1]

    def gradients_of_lse(*operands):
        result, pull_back = bp.vjp(lse, *operands)
        return pull_back(bp.cos(result))

    operands = normal(2, 20, 8), normal(2, 40, 8), normal(2, 40, 8)
    compare(lse, vulkan, *operands, rtol=1e-5, atol=1e-5)
    compare(bp.attention, vulkan, *operands, rtol=1e-5, atol=1e-5, composed=True)
    compare(gradients_of_lse, vulkan, *operands, rtol=1e-4, atol=1e-5, composed=True)


def test_attention_and_its_gradient_are_kernels_of_linear_memory(vulkan):
    query, key, value, g = (bp.asarray(normal(3000, 4), device=vulkan) for _ in range(4))
    values, lse = bp.attention_with_lse(query, key, value, causal=True)
    bp.reset_peak_memory_stats(vulkan)
    before = bp.memory_stats(vulkan)["allocated_bytes"]
    bp.reset_call_counts()
    bp.attention_with_lse(query, key, value)[0].numpy()
    bp.ops.bp.attention_grad(query, key, value, g, lse, lse, causal=True)[0].numpy()
    assert bp.call_counts().decompositions == 0
    assert bp.memory_stats(vulkan)["peak_bytes"] - before < 2**20  # a matrix of scores takes 34 MiB


def test_a_gradient_of_shapes_that_are_not_of_one_attention_is_refused(vulkan):
    matrix, line = bp.zeros((5, 4), device=vulkan), bp.zeros(5, device=vulkan)
    for operands in (
        [matrix, matrix[:, :3], matrix, matrix, line, line],
        [matrix, matrix, matrix, matrix[:, :3], line, line],
        [matrix, matrix, matrix, matrix, line[:4], line],
        [bp.zeros((2, 5, 4), device=vulkan), matrix, matrix, matrix, line, line],
    ):
        with pytest.raises(bp.ShapeError):
            bp.ops.bp.attention_grad(*operands)
