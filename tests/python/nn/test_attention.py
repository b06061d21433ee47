"""Attention of backplane.nn.functional: memory, masks, grouped heads; rotations."""

import backplane as bp
import backplane.nn.functional as F
import numpy as np
import pytest


def numbers(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape)


def operands(batch, queries, keys, features=4):
    shapes = ((*batch, queries, features), (*batch, keys, features), (*batch, keys, features))
    return [bp.asarray(numbers(*shape, seed=seed)) for seed, shape in enumerate(shapes)]


def plain(query, key, value, allowed=None, scale=None):
    query, key, value = (x.numpy() for x in (query, key, value))
    scores = query @ np.swapaxes(key, -1, -2) * (query.shape[-1] ** -0.5 if scale is None else scale)
    weights = np.exp(scores) if allowed is None else np.exp(scores) * allowed
    sums = weights.sum(-1, keepdims=True)
    return weights / np.where(sums == 0, 1, sums) @ value


# Lengths around the kernel's blocks of 256 queries and 256 keys.
@pytest.mark.parametrize("queries, keys", [(1, 1), (1, 600), (255, 257), (256, 256), (258, 515), (600, 2)])
def test_blocks_join_without_a_seam(queries, keys):
    q, k, v = operands((2,), queries, keys)
    np.testing.assert_allclose(F.scaled_dot_product_attention(q, k, v).numpy(), plain(q, k, v), rtol=1e-10, atol=1e-12)
    causal = np.tril(np.ones((queries, keys)))
    np.testing.assert_allclose(F.scaled_dot_product_attention(q, k, v, is_causal=True).numpy(), plain(q, k, v, causal), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("causal", [False, True])
def test_gradients_of_long_sequences_are_those_of_the_formula(causal):
    leaves = [x.requires_grad_() for x in operands((2,), 270, 530)]
    g = bp.asarray(numbers(2, 270, 4, seed=9))
    found = bp.gradients([F.scaled_dot_product_attention(*leaves, is_causal=causal)], leaves, [g])
    weights = bp.softmax(bp.attention_scores(*leaves[:2], causal=causal), axis=[-1])
    for a, b in zip(found, bp.gradients([weights @ leaves[2]], leaves, [g])):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-9, atol=1e-11)


def test_masks_allow_or_add_and_a_query_without_keys_gives_zero():
    q, k, v = operands((2, 3), 5, 7)
    allowed = np.random.default_rng(5).random((5, 7)) > 0.4
    allowed[2] = False
    expected = plain(q, k, v, allowed)
    np.testing.assert_allclose(F.scaled_dot_product_attention(q, k, v, bp.asarray(allowed)).numpy(), expected, rtol=1e-10)
    added = bp.asarray(np.where(allowed, 0.0, -np.inf))
    np.testing.assert_allclose(F.scaled_dot_product_attention(q, k, v, added).numpy(), expected, rtol=1e-10)
    assert (expected[:, :, 2] == 0).all()


def test_grouped_heads_share_keys_in_order():
    q, (_, k, v) = operands((2, 6), 5, 7)[0], operands((2, 3), 5, 7)
    found = F.scaled_dot_product_attention(q, k, v, enable_gqa=True)
    repeated = [bp.asarray(x.numpy().repeat(2, axis=1)) for x in (k, v)]
    np.testing.assert_allclose(found.numpy(), plain(q, *repeated), rtol=1e-10)


def test_dropout_of_weights_keeps_their_expectation():
    q, k, v = operands((1,), 4, 2000)
    v = bp.ones_like(v)
    found = F.scaled_dot_product_attention(q, k, v, dropout_p=0.5, generator=bp.Generator(3)).numpy()
    assert abs(found.mean() - 1) < 0.2 and found.std() > 0
    assert (F.scaled_dot_product_attention(q, k, v, dropout_p=1.0).numpy() == 0).all()


@pytest.mark.parametrize("interleaved", [False, True])
def test_rotations_keep_norms_and_make_products_relative(interleaved):
    """A rotated query at position p times a rotated key at q depends on p - q alone."""
    angles = np.arange(8)[:, None] * 10.0 ** -np.arange(3)
    cos, sin = bp.asarray(np.cos(angles)), bp.asarray(np.sin(angles))
    q, k = (bp.asarray(np.broadcast_to(numbers(6, seed=seed), (8, 6)).copy()) for seed in (0, 1))
    turned = [F.rotary_embedding(x, cos, sin, interleaved).numpy() for x in (q, k)]
    np.testing.assert_allclose(np.linalg.norm(turned[0], axis=-1), np.linalg.norm(q.numpy(), axis=-1), rtol=1e-12)
    products = turned[0] @ turned[1].T
    for offset in range(-7, 8):
        np.testing.assert_allclose(np.diagonal(products, offset), np.diagonal(products, offset)[0], rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize(
    "call, text",
    [
        (lambda q, k, v: F.scaled_dot_product_attention(q, k, v, bp.ones((5, 7)), is_causal=True), "attn_mask"),
        (lambda q, k, v: F.scaled_dot_product_attention(q, k, v, dropout_p=1.5), "dropout_p"),
        (lambda q, k, v: F.scaled_dot_product_attention(q, k, v, bp.ones((5, 6))), "mask"),
        (lambda q, k, v: F.scaled_dot_product_attention(q, k[..., :3], v), "features"),
        (lambda q, k, v: F.scaled_dot_product_attention(q, k, v[..., :6, :]), "values"),
        (lambda q, k, v: F.scaled_dot_product_attention(q, k[:, :2], v[:, :2], enable_gqa=True), "divisor"),
    ],
)
def test_arguments_out_of_their_domain(call, text):
    with pytest.raises(ValueError, match=text):
        call(*operands((2, 3), 5, 7))
