"""Attention of half floats on the CUDA backend's tensor cores against the formula in float32 on the host; what the kernel declines is
composed. `./dev test cuda` runs this on the emulated driver."""

import backplane as bp
import numpy as np
import pytest
from device_calls import RNG

HALVES = [bp.float16, bp.bfloat16]


def expected(query, key, value, causal=False, scale=None):
    query, key, value = (np.asarray(x.astype(bp.float32).numpy(), np.float64) for x in (query, key, value))
    scores = query @ np.swapaxes(key, -1, -2) * (scale if scale is not None else query.shape[-1] ** -0.5)
    if causal:
        scores = np.where(np.arange(key.shape[-2]) <= np.arange(query.shape[-2])[:, None], scores, -np.inf)
    top = scores.max(-1, keepdims=True, initial=-np.inf)
    top = np.where(np.isneginf(top), 0, top)
    weights = np.exp(scores - top)
    total = weights.sum(-1, keepdims=True)
    with np.errstate(divide="ignore"):
        lse = (top + np.log(total))[..., 0]
    values = weights / np.where(total == 0, 1, total) @ value
    return values, np.broadcast_to(lse, values.shape[:-1])


def check(cuda, query, key, value, **options):
    wanted = expected(query, key, value, **options)
    found = bp.attention_with_lse(query.to(cuda), key.to(cuda), value.to(cuda), **options)
    tolerance = 4e-3 if query.dtype == bp.float16 else 3e-2
    for one, other in zip(found, wanted):
        assert one.device == cuda and one.dtype == query.dtype and one.shape == other.shape
        np.testing.assert_allclose(one.astype(bp.float32).to("cpu").numpy(), other, rtol=tolerance, atol=tolerance)


def halves(dtype, *shape, spread=1.0):
    return bp.asarray((RNG.standard_normal(shape) * spread).astype(np.float32)).astype(dtype)


@pytest.mark.parametrize("dtype", HALVES, ids=str)
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(
    "queries, keys, features, value_features",
    [(1, 1, 8, 8), (5, 3, 16, 16), (128, 64, 64, 64), (130, 129, 64, 64), (40, 200, 64, 16), (200, 40, 16, 64), (33, 70, 80, 80),
     (129, 97, 128, 128), (64, 40, 64, 128), (20, 0, 64, 64), (20, 0, 128, 72)],
)
def test_attention(cuda, dtype, causal, queries, keys, features, value_features):
    query, key = halves(dtype, queries, features), halves(dtype, keys, features)
    check(cuda, query, key, halves(dtype, keys, value_features), causal=causal)


@pytest.mark.parametrize("dtype", HALVES, ids=str)
@pytest.mark.parametrize(
    "query, key, value",
    [((2, 3), (2, 3), (2, 3)), ((3,), (), (2, 1)), ((2, 1, 3), (2, 2, 1), (1,)), ((), (4,), ()), ((0,), (), ())],
)
def test_batch_dims_broadcast(cuda, dtype, query, key, value):
    check(cuda, halves(dtype, *query, 9, 16), halves(dtype, *key, 12, 16), halves(dtype, *value, 12, 24), causal=True)


# References follow scores that grow from tile to tile, and keep away from those that shrink.
@pytest.mark.parametrize("order", [1, -1])
@pytest.mark.parametrize("features", [64, 128])
def test_scores_that_grow_and_shrink(cuda, features, order):
    key = halves(bp.float16, 150, features).numpy() * np.linspace(0, 4, 150, dtype=np.float16)[::order, None]
    query, value = halves(bp.float16, 17, features), halves(bp.float16, 150, features)
    check(cuda, query, bp.asarray(key), value, scale=0.5)


@pytest.mark.parametrize("scale", [0.25, -0.5, 0.0, 2])
def test_scales(cuda, scale):
    check(cuda, *(halves(bp.float16, 2, 7, 16) for _ in range(3)), causal=True, scale=scale)


# How operands of 2 batches of 3 heads of 9 rows of 16 features may lie.
LAYOUTS = {
    "heads inside": lambda x: bp.permute_dims(bp.copy(bp.permute_dims(x, (0, 2, 1, 3))), (0, 2, 1, 3)),
    "rows that are not aligned": lambda x: bp.concat([x, x[..., :4]], axis=-1)[..., :16],
    "rows of padding": lambda x: bp.concat([x, x], axis=-1)[..., :16],
    "transposed": lambda x: bp.copy(x.mT).mT,
    "an odd offset": lambda x: bp.concat([bp.zeros(1, dtype=x.dtype, device=x.device), bp.reshape(x, (-1,))])[1:].reshape(x.shape),
    "backward": lambda x: bp.copy(x[:, :, ::-1])[:, :, ::-1],
    "every second": lambda x: bp.repeat(x, 2, axis=3)[..., ::2],
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_operands_in_any_layout(cuda, layout):
    tensors = [halves(bp.bfloat16, 2, 3, 9, 16) for _ in range(3)]
    wanted = expected(*tensors)
    for one, other in zip(bp.attention_with_lse(*(LAYOUTS[layout](x.to(cuda)) for x in tensors)), wanted):
        np.testing.assert_allclose(one.astype(bp.float32).to("cpu").numpy(), other, rtol=3e-2, atol=3e-2)


@pytest.mark.parametrize("place, value", [("query", np.nan), ("key", np.nan), ("key", np.inf), ("value", np.nan), ("value", np.inf)])
def test_what_is_not_finite_spreads_as_in_the_formula(cuda, place, value):
    operands = {name: RNG.standard_normal((70, 16)).astype(np.float16) for name in ("query", "key", "value")}
    operands[place][3, 2] = value
    tensors = [bp.asarray(x) for x in operands.values()]
    with np.errstate(invalid="ignore"):
        wanted = expected(*tensors)
    for one, other in zip(bp.attention_with_lse(*(x.to(cuda) for x in tensors)), wanted):
        np.testing.assert_allclose(one.astype(bp.float32).to("cpu").numpy(), other, rtol=4e-3, atol=4e-3)


def test_gradients_go_through_it(cuda):
    tensors = [halves(bp.float16, 2, 9, 16) for _ in range(3)]

    def total(*operands):
        return bp.sum(bp.attention(*operands, causal=True).astype(bp.float32))

    wanted = bp.grad(total, argnums=(0, 1, 2))(*tensors)
    found = bp.grad(total, argnums=(0, 1, 2))(*(x.to(cuda) for x in tensors))
    for one, other in zip(found, wanted):
        np.testing.assert_allclose(one.to("cpu").numpy(), other.numpy(), rtol=1e-2, atol=1e-2)


def test_it_is_recorded(cuda):
    query, key, value = (halves(bp.float16, 9, 16) for _ in range(3))
    on_device = [x.to(cuda) for x in (query, key, value)]
    with bp.capture(cuda) as recording:
        found = bp.attention(*on_device)
    recording.replay()
    np.testing.assert_allclose(found.to("cpu").numpy(), expected(query, key, value)[0], rtol=4e-3, atol=4e-3)


def test_what_the_kernel_declines_is_composed(cuda):
    query, key, value = (halves(bp.float16, 9, 12) for _ in range(3))
    check(cuda, query, key, value)
    mask = bp.asarray(RNG.integers(0, 2, (9, 9)).astype(bool))
    found = bp.attention(*(x.to(cuda) for x in (query, key, value)), mask.to(cuda))
    np.testing.assert_allclose(found.to("cpu").numpy(), bp.attention(query, key, value, mask).numpy(), rtol=1e-2, atol=1e-2)


def test_a_single_row_that_lies_between_multiples_of_16_bytes(cuda):
    query, key, value = halves(bp.float16, 1, 1, 1, 65), halves(bp.float16, 1, 1, 5, 64), halves(bp.float16, 1, 1, 1, 65)
    check(cuda, query.to(cuda)[..., :64], key, key)
    check(cuda, key, query.to(cuda)[..., :64], value.to(cuda)[..., :64])
