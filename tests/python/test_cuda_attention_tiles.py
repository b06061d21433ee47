"""Attention by tiles on the CUDA backend, of any dtype, with masks, and its gradient, against the formula in float64 on the host.
`./dev test cuda` runs this on the emulated driver."""

import backplane as bp
import numpy as np
import pytest
from device_calls import RNG

DTYPES = [bp.float16, bp.bfloat16, bp.float32, bp.float64]
TOLERANCE = {bp.float16: 1e-2, bp.bfloat16: 6e-2, bp.float32: 2e-5, bp.float64: 1e-12}


def numbers(dtype, *shape):
    return bp.asarray(RNG.standard_normal(shape)).astype(dtype)


def wide(x):
    return np.asarray(x.to("cpu").astype(bp.float64).numpy()) if x.dtype != bp.bool else x.to("cpu").numpy()


def scores_of(query, key, mask, causal, scale):
    scores = query @ np.swapaxes(key, -1, -2) * (query.shape[-1] ** -0.5 if scale is None else scale)
    if causal:
        scores = np.where(np.arange(key.shape[-2]) <= np.arange(query.shape[-2])[:, None], scores, -np.inf)
    if mask is not None:
        scores = np.where(mask, scores, -np.inf) if mask.dtype == bool else scores + mask
    return scores


def expected(query, key, value, mask=None, causal=False, scale=None):
    """Values, lse, and the weights."""
    scores = scores_of(query, key, mask, causal, scale)
    top = scores.max(-1, keepdims=True, initial=-np.inf)
    top = np.where(np.isneginf(top), 0, top)
    weights = np.exp(scores - top)
    total = weights.sum(-1, keepdims=True)
    with np.errstate(divide="ignore"):
        lse = (top + np.log(total))[..., 0]
    weights = weights / np.where(total == 0, 1, total)
    values = weights @ value
    return values, np.broadcast_to(lse, values.shape[:-1]), weights


def expected_grads(query, key, value, cotangent, mask=None, causal=False, scale=None):
    values, _, weights = expected(query, key, value, mask, causal, scale)
    factor = query.shape[-1] ** -0.5 if scale is None else scale
    inner = weights * (cotangent @ np.swapaxes(value, -1, -2) - (cotangent * values).sum(-1, keepdims=True)) * factor
    return inner @ key, np.swapaxes(inner, -1, -2) @ query, np.swapaxes(weights, -1, -2) @ cotangent


def near(found, wanted, dtype):
    assert found.dtype == dtype and found.shape == wanted.shape
    np.testing.assert_allclose(wide(found), wanted, rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype] * max(1, np.abs(wanted).max(initial=0, where=np.isfinite(wanted))))


def check(cuda, dtype, queries, keys, features, value_features, batch=((), (), ()), mask=None, **options):
    query, key = numbers(dtype, *batch[0], queries, features), numbers(dtype, *batch[1], keys, features)
    value = numbers(dtype, *batch[2], keys, value_features)
    on_device = [x.to(cuda) for x in (query, key, value)]
    device_mask = None if mask is None else mask.to(cuda)
    host_mask = None if mask is None else wide(mask)
    wanted = expected(wide(query), wide(key), wide(value), host_mask, **options)
    found = bp.attention_with_lse(*on_device, device_mask, **options)
    for one, other in zip(found, wanted):
        assert one.device == cuda
        near(one, other, dtype)
    cotangent = numbers(dtype, *found[0].shape)
    h = cotangent.to(cuda)
    delta = bp.sum(h * found[0], axis=-1)
    grads = bp.attention_grad(*on_device, h, found[1], delta, device_mask, **options)
    for one, other in zip(grads, expected_grads(*map(wide, (query, key, value, cotangent)), host_mask, **options)):
        near(one, np.broadcast_to(other, one.shape), dtype)


def boolean(*shape):
    return bp.asarray(RNG.integers(0, 4, shape) > 0)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(
    "queries, keys, features, value_features",
    [(1, 1, 1, 1), (5, 3, 8, 16), (64, 64, 64, 64), (65, 130, 40, 8), (130, 65, 16, 72), (33, 70, 128, 128), (20, 0, 8, 8)],
)
def test_tiles(cuda, dtype, causal, queries, keys, features, value_features):
    mask = boolean(queries, keys) if keys else None
    if mask is not None and queries > 1:
        mask = bp.concat([mask, bp.zeros((1, keys), dtype=bp.bool)])[1:]  # a query without a key
    check(cuda, dtype, queries, keys, features, value_features, mask=mask, causal=causal)


@pytest.mark.parametrize("dtype", [bp.float32, bp.float16], ids=str)
@pytest.mark.parametrize("features, value_features", [(7, 13), (130, 20), (20, 130), (200, 300)])
def test_features_that_fill_no_tile_or_several(cuda, dtype, features, value_features):
    check(cuda, dtype, 9, 12, features, value_features, causal=True)


@pytest.mark.parametrize("dtype", [bp.float32, bp.bfloat16], ids=str)
@pytest.mark.parametrize(
    "mask_dtype, shape",
    [(bp.bool, (70, 66)), (bp.float16, (66,)), (bp.bfloat16, (70, 1)), (bp.float32, (1,)), (bp.float64, (2, 1, 66)), (bp.bool, (2, 2, 70, 66)), (bp.bool, (2, 1, 1, 66))],
)
def test_masks(cuda, dtype, mask_dtype, shape):
    mask = boolean(*shape) if mask_dtype == bp.bool else numbers(mask_dtype, *shape)
    check(cuda, dtype, 70, 66, 8, 8, batch=((2, 2), (2, 2), (2, 2)), mask=mask, causal=True)


def test_a_mask_adds_batch_dims(cuda):
    check(cuda, bp.float32, 5, 6, 8, 8, mask=numbers(bp.float32, 4, 5, 6))


@pytest.mark.parametrize("dtype", [bp.float32, bp.float16], ids=str)
@pytest.mark.parametrize("batch", [((2, 3), (2, 3), (2, 3)), ((3,), (), (2, 1)), ((2, 1, 3), (2, 2, 1), (1,)), ((), (4,), ()), ((0,), (), ())])
def test_batch_dims_broadcast(cuda, dtype, batch):
    check(cuda, dtype, 9, 12, 16, 24, batch=batch, causal=True)


@pytest.mark.parametrize("scale", [0.25, -0.5, 0.0, 2])
def test_scales(cuda, scale):
    check(cuda, bp.float32, 7, 9, 16, 16, causal=True, scale=scale)
    check(cuda, bp.float16, 7, 9, 16, 16, causal=True, scale=scale)


LAYOUTS = {
    "heads inside": lambda x: bp.permute_dims(bp.copy(bp.permute_dims(x, (0, 2, 1, 3))), (0, 2, 1, 3)),
    "transposed": lambda x: bp.copy(x.mT).mT,
    "backward": lambda x: bp.copy(x[:, :, ::-1])[:, :, ::-1],
    "every second": lambda x: bp.repeat(x, 2, axis=3)[..., ::2],
}


@pytest.mark.parametrize("dtype", [bp.float32, bp.bfloat16], ids=str)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_operands_in_any_layout(cuda, dtype, layout):
    query, key, value = (numbers(dtype, 1, 2, 70, 16) for _ in range(3))
    mask = numbers(dtype, 1, 2, 70, 70)
    lie = [LAYOUTS[layout](x.to(cuda)) for x in (query, key, value)]
    lie_mask = LAYOUTS[layout](mask.to(cuda))
    found = bp.attention_with_lse(*lie, lie_mask)
    for one, other in zip(found, expected(*map(wide, (query, key, value, mask)))):
        near(one, other, dtype)
    cotangent = numbers(dtype, 1, 2, 70, 16)
    h = LAYOUTS[layout](cotangent.to(cuda))
    grads = bp.attention_grad(*lie, h, found[1], bp.sum(h * found[0], axis=-1), lie_mask)
    for one, other in zip(grads, expected_grads(*map(wide, (query, key, value, cotangent, mask)))):
        near(one, other, dtype)


@pytest.mark.parametrize("dtype", [bp.float32, bp.float16], ids=str)
def test_results_that_nobody_wants(cuda, dtype):
    query, key, value = (numbers(dtype, 70, 16).to(cuda) for _ in range(3))

    def total(query, key, value):
        return bp.sum(bp.attention(query, key, value, causal=True).astype(bp.float32))

    wanted = bp.grad(total, argnums=(0, 1, 2))(query, key, value)
    for k in range(3):
        found = bp.grad(total, argnums=k)(query, key, value)
        np.testing.assert_array_equal(wide(found), wide(wanted[k]))


@pytest.mark.parametrize("place, value", [("query", np.nan), ("key", np.nan), ("key", np.inf), ("value", np.nan)])
def test_what_is_not_finite_spreads_as_in_the_formula(cuda, place, value):
    operands = {name: RNG.standard_normal((70, 16)).astype(np.float32) for name in ("query", "key", "value")}
    operands[place][3, 2] = value
    with np.errstate(invalid="ignore"):
        wanted = expected(*(x.astype(np.float64) for x in operands.values()))
    for one, other in zip(bp.attention_with_lse(*(bp.asarray(x).to(cuda) for x in operands.values())), wanted):
        np.testing.assert_allclose(wide(one), other, rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("dtype", [bp.float32, bp.float16], ids=str)
def test_memory_is_linear_in_the_lengths(cuda, dtype):
    length = 512
    query, key, value = (numbers(dtype, length, 8).to(cuda) for _ in range(3))
    mask = boolean(1, length).to(cuda)

    def total(query, key, value):
        return bp.sum(bp.attention(query, key, value, mask).astype(bp.float32))

    bp.synchronize(cuda)
    bp.reset_peak_memory_stats(cuda)
    before = bp.memory_stats(cuda)["peak_bytes"]
    bp.grad(total, argnums=(0, 1, 2))(query, key, value)
    bp.synchronize(cuda)
    assert bp.memory_stats(cuda)["peak_bytes"] - before < length * length // 2


REFUSED = [
    ("query", (9, 7)), ("key", (12, 7)), ("value", (11, 16)), ("mask", (8, 12)), ("mask", (9, 11)), ("mask", (2, 9, 12)), ("cotangent", (9, 8)),
    ("cotangent", (8, 16)), ("lse", (8,)), ("delta", (3,)), ("lse", (3, 9)), ("query", (3, 9, 8)),
]  # fmt: skip


@pytest.mark.parametrize("dtype", [bp.float32, bp.float16], ids=str)
@pytest.mark.parametrize("name, shape", REFUSED)
def test_operands_that_do_not_belong_together(cuda, dtype, name, shape):
    shapes = {"query": (9, 8), "key": (12, 8), "value": (12, 16), "cotangent": (9, 16), "lse": (9,), "delta": (9,), "mask": (9, 12)}
    operands = {key: numbers(dtype, *size).to(cuda) for key, size in {**shapes, name: shape}.items()}
    with pytest.raises(bp.ShapeError):
        bp.attention_grad(**operands)
    if name in ("query", "key", "value") and len(shape) == 2:
        with pytest.raises(bp.ShapeError):
            bp.attention_with_lse(*(operands[key] for key in ("query", "key", "value")))
        with pytest.raises(bp.ShapeError):
            bp.attention_with_lse(*(operands[key] for key in ("query", "key", "value", "mask")))
