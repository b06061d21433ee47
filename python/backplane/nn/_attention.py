"""Attention, and the embedding of positions by rotation."""

import backplane as bp
from backplane import Generator, Tensor

__all__ = ["rotary_embedding", "scaled_dot_product_attention"]


def scaled_dot_product_attention(
    query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None = None, dropout_p: float = 0.0, is_causal: bool = False,
    scale: float | None = None, enable_gqa: bool = False, *, generator: Generator | None = None
) -> Tensor:
    """softmax(query keyᵀ · scale) value over (*batch, length, features); scale: 1 / sqrt(features) unless given. attn_mask broadcasts
    to the scores: a bool one is true where a key is attended to, another is added. is_causal: query i attends to keys up to i.
    enable_gqa: axis -3 counts heads, and consecutive query heads share a head of key and value. Memory is linear in the lengths, but
    with dropout_p > 0, which drops weights at random (by generator), it holds all weights. A query without keys gives 0."""
    if attn_mask is not None and is_causal:
        raise bp.ArgumentValueError("scaled_dot_product_attention: argument attn_mask: found a mask with is_causal, expected one of them")
    if not 0 <= dropout_p <= 1:
        raise bp.ArgumentValueError(f"scaled_dot_product_attention: argument dropout_p: found {dropout_p}, expected a number from 0 to 1")
    if enable_gqa:
        return _grouped(query, key, value, attn_mask, dropout_p, is_causal, scale, generator)
    return _attend(query, key, value, attn_mask, dropout_p, is_causal, scale, generator)


def _attend(query, key, value, mask, dropout_p, is_causal, scale, generator):
    if dropout_p == 0:
        return bp.attention(query, key, value, mask, causal=is_causal, scale=scale)
    scores = bp.attention_scores(query, key, mask, causal=is_causal, scale=scale)
    lse = bp.attention_with_lse(query, key, value, mask, causal=is_causal, scale=scale)[1]
    weights = bp.exp(scores - bp.expand_dims(bp.where(lse == -bp.inf, bp.inf, lse), [-1]))
    how = {} if generator is None else {"generator": generator}
    return bp.dropout(weights, p=dropout_p, **how) @ value


def _grouped(query, key, value, mask, dropout_p, is_causal, scale, generator):
    """Query heads as (heads of key, queries that share one): key and value broadcast over the second."""
    if min(query.ndim, key.ndim, value.ndim) < 3:
        raise bp.ShapeError("scaled_dot_product_attention: argument enable_gqa: expected query, key and value of at least three axes")
    heads, shared = query.shape[-3], key.shape[-3]
    if shared == 0 or value.shape[-3] != shared or heads % shared:
        raise bp.ShapeError(
            f"scaled_dot_product_attention: argument key: found {shared} heads with {value.shape[-3]} of value and {heads} of query, "
            "expected as many as of value, and a divisor of the query's"
        )

    def split(x):
        return bp.reshape(x, [*x.shape[:-3], shared, heads // shared, *x.shape[-2:]])

    if mask is not None and mask.ndim >= 3:
        mask = split(mask) if mask.shape[-3] == heads else bp.expand_dims(mask, [-3])
    y = _attend(split(query), bp.expand_dims(key, [-3]), bp.expand_dims(value, [-3]), mask, dropout_p, is_causal, scale, generator)
    return bp.reshape(y, [*y.shape[:-4], heads, *y.shape[-2:]])


def rotary_embedding(x: Tensor, cos: Tensor, sin: Tensor, interleaved: bool = False) -> Tensor:
    """x (*, length, features) with pairs of features turned by angles whose cosines and sines, (length, features / 2), broadcast. A
    pair is feature i of the first half and i of the second, as in GPT-NeoX and Llama; interleaved: features 2i and 2i + 1, as in
    RoFormer and GPT-J. The angles of position p are p · base ** (-2i / features), with base 10000 in the paper."""
    return bp.rotary_embedding(x, cos, sin, interleaved=interleaved)
