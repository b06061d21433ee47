"""The layers of transformers in evaluation that PyTorch calls as one operator, on the device composed of its others.

nn.TransformerEncoderLayer and nn.MultiheadAttention call these where no gradient is recorded.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F

__all__ = ["OPERATORS"]

_ATTENTION, _PADDING, _BOTH = range(3)  # the meanings of a mask: (L, L), (batch, L), (batch, heads, L, L) or what broadcasts to it


def _scores_masked(scores, mask, mask_type):
    if mask is None:
        return scores
    if mask_type == _PADDING:
        mask = mask[:, None, None, :]
    elif mask_type not in (_ATTENTION, _BOTH):
        raise ValueError(f"_native_multi_head_attention: argument mask_type: found {mask_type}, expected 0, 1 or 2")
    return scores.masked_fill(mask, float("-inf")) if mask.dtype == torch.bool else scores + mask


def native_multi_head_attention(
    query, key, value, embed_dim, num_head, qkv_weight, qkv_bias, proj_weight, proj_bias, mask=None, need_weights=True, average_attn_weights=True, mask_type=None
):
    """(the attention of all heads, the weights or an empty tensor), for batches first."""
    heads = []
    for x, weight, bias in zip((query, key, value), qkv_weight.chunk(3), qkv_bias.chunk(3)):
        heads.append(F.linear(x, weight, bias).unflatten(-1, (num_head, -1)).transpose(1, 2))
    q, k, v = heads
    scores = (q * (embed_dim // num_head) ** -0.5) @ k.transpose(-2, -1)
    weights = torch.softmax(_scores_masked(scores, mask, mask_type), -1)
    found = F.linear((weights @ v).transpose(1, 2).flatten(2), proj_weight, proj_bias)
    if not need_weights:
        return found, query.new_empty((0,))
    return found, weights.mean(1) if average_attn_weights else weights


def transformer_encoder_layer_fwd(
    src, embed_dim, num_heads, qkv_weight, qkv_bias, proj_weight, proj_bias, use_gelu, norm_first, eps, norm_weight_1, norm_bias_1, norm_weight_2, norm_bias_2,
    ffn_weight_1, ffn_bias_1, ffn_weight_2, ffn_bias_2, mask=None, mask_type=None,
):  # fmt: skip
    """A layer of an encoder, for batches first."""
    first = lambda x: F.layer_norm(x, (embed_dim,), norm_weight_1, norm_bias_1, eps)  # noqa: E731
    second = lambda x: F.layer_norm(x, (embed_dim,), norm_weight_2, norm_bias_2, eps)  # noqa: E731

    def attend(x):
        return native_multi_head_attention(x, x, x, embed_dim, num_heads, qkv_weight, qkv_bias, proj_weight, proj_bias, mask, False, True, mask_type)[0]

    def feed_forward(x):
        hidden = F.linear(x, ffn_weight_1, ffn_bias_1)
        return F.linear(F.gelu(hidden) if use_gelu else F.relu(hidden), ffn_weight_2, ffn_bias_2)

    if norm_first:
        x = src + attend(first(src))
        return x + feed_forward(second(x))
    x = first(src + attend(src))
    return second(x + feed_forward(x))


OPERATORS = {"_native_multi_head_attention": native_multi_head_attention, "_transformer_encoder_layer_fwd": transformer_encoder_layer_fwd}
