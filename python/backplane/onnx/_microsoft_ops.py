"""Ops of com.microsoft that exported and optimised transformers use."""

import math

import backplane as bp

from ._elementwise_ops import is_floating
from ._linear_ops import gemm
from ._table import MICROSOFT, op, refuse
from ._values import is_plain


def _plain(x):
    return x


_ACTIVATIONS = {
    "": _plain, "Relu": bp.relu, "Tanh": bp.tanh, "Sigmoid": bp.sigmoid, "Gelu": bp.gelu,
}  # fmt: skip


@op("FusedMatMul", domain=MICROSOFT)
@op("TransposeMatMul", domain=MICROSOFT)
def fused_matmul(a, b, *, alpha=1.0, transA=0, transB=0, transBatchA=0, transBatchB=0):
    if transBatchA or transBatchB:
        refuse("transBatchA and transBatchB are not supported")
    a, b = bp.matrix_transpose(a) if transA else a, bp.matrix_transpose(b) if transB else b
    found = bp.matmul(a, b)
    return found if alpha == 1 else found * alpha


@op("FusedGemm", domain=MICROSOFT)
def fused_gemm(a, b, c=None, *, activation="", alpha=1.0, beta=1.0, transA=0, transB=0):
    if activation not in _ACTIVATIONS:
        refuse(f"the activation {activation} is not supported")
    return _ACTIVATIONS[activation](gemm(a, b, c, alpha=alpha, beta=beta, transA=transA, transB=transB))


@op("FusedConv", domain=MICROSOFT)
def fused_convolution(
    x, w, b=None, z=None, *, activation="", activation_params=None, auto_pad="NOTSET", dilations=None, group=1, kernel_shape=None, pads=None, strides=None
):
    from ._linear_ops import convolved

    y = convolved(x, w, b, auto_pad, dilations, group, pads, strides)
    y = y if z is None else y + z
    if activation == "Clip":
        return bp.clip(y, *activation_params)
    if activation == "LeakyRelu":
        return bp.leaky_relu(y, negative_slope=activation_params[0])
    if activation == "HardSigmoid":
        return bp.clip(y * activation_params[0] + activation_params[1], 0, 1)
    if activation not in _ACTIVATIONS:
        refuse(f"the activation {activation} is not supported")
    return _ACTIVATIONS[activation](y)


@op("Gelu", domain=MICROSOFT)
def gelu(x):
    return bp.gelu(x)


@op("FastGelu", domain=MICROSOFT)
def fast_gelu(x, bias=None):
    return bp.gelu_tanh(x if bias is None else x + bias)


@op("BiasGelu", domain=MICROSOFT)
def bias_gelu(x, bias):
    return bp.gelu(x + bias)


@op("QuickGelu", domain=MICROSOFT)
def quick_gelu(x, *, alpha=1.702):
    return x * bp.sigmoid(x * alpha)


@op("BiasAdd", domain=MICROSOFT)
def bias_add(x, bias, skip):
    return x + bias + skip


@op("BiasSoftmax", domain=MICROSOFT)
def bias_softmax(x, bias, *, axis=1, is_inner_broadcast):
    if bias.ndim != x.ndim:
        refuse("a bias with fewer axes than the data is not supported")
    axis += x.ndim if axis < 0 else 0
    return bp.softmax(x + bias, axis=tuple(range(axis, x.ndim)))


def _normed(x, gamma, beta, epsilon):
    return bp.nn.functional.layer_norm(x, (x.shape[-1],), gamma, beta, epsilon)


@op("SkipLayerNormalization", domain=MICROSOFT)
def skip_layer_norm(node, x, skip, gamma, beta=None, bias=None, *, epsilon=1e-12):
    _refuse_statistics(node)
    total = x + skip if bias is None else x + skip + bias
    return _normed(total, gamma, beta, epsilon), None, None, total


@op("SkipSimplifiedLayerNormalization", domain=MICROSOFT)
def skip_rms_norm(node, x, skip, gamma, bias=None, *, epsilon=1e-12):
    _refuse_statistics(node)
    total = x + skip if bias is None else x + skip + bias
    return simplified_layer_norm(total, gamma, epsilon=epsilon), None, None, total


def _refuse_statistics(node):
    if node.wants(1) or node.wants(2):
        refuse("the outputs mean and inv_std_var are not supported")


@op("SimplifiedLayerNormalization", 1)  # exporters write it without a domain, too
@op("SimplifiedLayerNormalization", domain=MICROSOFT)
def simplified_layer_norm(x, scale, *, axis=-1, epsilon=1e-5, stash_type=1):
    from ._normalization_ops import rms_norm

    return rms_norm(x, scale, axis=axis, epsilon=epsilon, stash_type=stash_type)


@op("EmbedLayerNormalization", domain=MICROSOFT)
def embed_layer_norm(
    node, tokens, segments, words, positions, segment_rows=None, gamma=None, beta=None, mask=None, position_ids=None, *, epsilon=1e-12, mask_index_type=0
):
    from ._index_ops import gather

    length = tokens.shape[1]
    total = gather(words, tokens)
    places = bp.slice(positions, [0], [0], [length], [1]) if position_ids is None else gather(positions, position_ids)
    total = total + places
    if segment_rows is not None:
        total = total + gather(segment_rows, segments)
    counts = bp.zeros((tokens.shape[0],), dtype=bp.int32, device=tokens.device)
    if mask is not None:
        counts = bp.sum(bp.cast(mask, bp.int32), axis=1, dtype=bp.int32)
    return _normed(total, gamma, beta, epsilon), counts, total


def heads_of(x, n_heads):
    """(batch, length, hidden) as (batch, heads, length, size)."""
    return bp.permute_dims(bp.reshape(x, (x.shape[0], x.shape[1], n_heads, x.shape[2] // n_heads)), (0, 2, 1, 3))


def joined(x):
    """(batch, heads, length, size) as (batch, length, hidden)."""
    n, heads, length, size = x.shape
    return bp.reshape(bp.permute_dims(x, (0, 2, 1, 3)), (n, length, heads * size))


def key_mask(mask, q, n_keys, least):
    """A mask of com.microsoft's attention as numbers to add to the scores; its form follows from its rank."""
    if is_floating(mask):
        refuse("a mask of floating numbers is not supported")
    if mask.ndim == 1:  # the number of keys of each example
        if not mask.shape[0] == q.shape[0]:
            refuse("a mask_index of start and end positions is not supported")
        allowed = bp.arange(n_keys, dtype=mask.dtype, device=q.device) < bp.reshape(mask, (-1, 1, 1, 1))
    elif mask.ndim == 2:
        allowed = bp.reshape(bp.not_equal(mask, 0), (mask.shape[0], 1, 1, mask.shape[1]))
    elif mask.ndim == 3:
        allowed = bp.expand_dims(bp.not_equal(mask, 0), axis=1)
    else:
        refuse(f"a mask with {mask.ndim} axes is not supported")
    zero = bp.zeros((), dtype=q.dtype, device=q.device)
    return bp.where(allowed, zero, bp.full((), least, dtype=q.dtype, device=q.device))


def attended(q, k, v, bias, scale, causal, softcap=0.0):
    """Scores, softmax and the weighted sum, of (batch, heads, length, size); more query heads than key heads share the keys."""
    if k.shape[1] != q.shape[1]:
        each = q.shape[1] // k.shape[1]
        k, v = bp.repeat(k, each, axis=1), bp.repeat(v, each, axis=1)
    scale = scale if scale else 1 / math.sqrt(q.shape[-1])
    if causal:
        rows = bp.arange(q.shape[2], device=q.device) + (k.shape[2] - q.shape[2])
        allowed = bp.arange(k.shape[2], device=q.device) <= bp.expand_dims(rows, axis=1)
        zero, least = (bp.full((), number, dtype=q.dtype, device=q.device) for number in (0.0, float("-inf")))
        mask = bp.where(allowed, zero, least)
        bias = mask if bias is None else bias + mask
    if not softcap:
        mask = None if bias is None else bp.broadcast_to(bias, (*q.shape[:3], k.shape[2]))
        return bp.attention(q, k, v, mask, scale=scale)
    scores = bp.matmul(q * scale, bp.matrix_transpose(k))
    scores = bp.tanh(scores / softcap) * softcap
    return bp.matmul(bp.softmax(scores if bias is None else scores + bias, axis=-1), v)


@op("Attention", domain=MICROSOFT)
def attention(
    node, x, weights, bias=None, mask=None, past=None, attention_bias=None, past_length=None, *, do_rotary=0, mask_filter_value=-10000.0, num_heads,
    past_present_share_buffer=0, qkv_hidden_sizes=None, rotary_embedding_dim=0, scale=0.0, unidirectional=0
):  # fmt: skip
    if do_rotary or past_present_share_buffer or past_length is not None:
        refuse("do_rotary and a shared buffer of past and present are not supported")
    packed = bp.matmul(x, weights)
    return packed_attention(
        node, packed if bias is None else packed + bias, mask, past, attention_bias, mask_filter_value, num_heads, qkv_hidden_sizes, scale, unidirectional
    )


def packed_attention(node, packed, mask, past, bias, mask_filter_value, n_heads, sizes, scale, unidirectional):
    """The attention of queries, keys and values that lie side by side on the last axis."""
    third = packed.shape[-1] // 3
    parts, start = [], 0
    for size in sizes or [third] * 3:
        parts.append(heads_of(bp.slice(packed, [2], [start], [start + size], [1]), n_heads))
        start += size
    q, k, v = parts
    if past is not None:
        k, v = bp.concat([past[0], k], axis=2), bp.concat([past[1], v], axis=2)
    added = None if mask is None else key_mask(mask, q, k.shape[2], mask_filter_value)
    if bias is not None:
        added = bias if added is None else added + bias
    present = bp.stack([k, v]) if node.wants(1) else None
    return joined(attended(q, k, v, added, scale, unidirectional)), present


@op("MultiHeadAttention", domain=MICROSOFT)
def multi_head_attention(
    node, q, k=None, v=None, bias=None, mask=None, attention_bias=None, past_key=None, past_value=None, *others, mask_filter_value=-10000.0, num_heads,
    scale=0.0, unidirectional=0
):  # fmt: skip
    if k is None or v is None or any(value is not None for value in others):
        refuse("packed queries, keys and values, and a shared cache, are not supported")
    if bias is not None:
        widths, start = [q.shape[-1], q.shape[-1], v.shape[-1] if v.ndim == 3 else q.shape[-1]], 0
        rows = []
        for width in widths:
            rows.append(bp.slice(bias, [0], [start], [start + width], [1]))
            start += width
        q, k, v = q + rows[0], k if k.ndim == 4 else k + rows[1], v if v.ndim == 4 else v + rows[2]
    q, k, v = (x if x.ndim == 4 else heads_of(x, num_heads) for x in (q, k, v))
    if past_key is not None:
        k, v = bp.concat([past_key, k], axis=2), bp.concat([past_value, v], axis=2)
    added = None if mask is None else key_mask(mask, q, k.shape[2], mask_filter_value)
    if attention_bias is not None:
        added = attention_bias if added is None else added + attention_bias
    return joined(attended(q, k, v, added, scale, unidirectional)), k, v


@op("RotaryEmbedding", domain=MICROSOFT)
def rotary_embedding(x, position_ids, cos, sin, *, interleaved=0, is_packed_batching=0, num_heads=0, rotary_embedding_dim=0, scale=1.0):
    from ._index_ops import gather

    if is_packed_batching or scale != 1:
        refuse("is_packed_batching and a scale are not supported")
    flat = x.ndim == 3
    if flat:
        x = heads_of(x, num_heads or x.shape[-1] // (rotary_embedding_dim or 2 * cos.shape[-1]))
    length = x.shape[2]
    if position_ids.ndim == 1:
        places = bp.expand_dims(position_ids + bp.arange(length, dtype=position_ids.dtype, device=x.device), axis=0)
    else:
        places = position_ids
    rows = [bp.expand_dims(gather(table, places), axis=1) for table in (cos, sin)]
    y = turned(x, *rows, interleaved)
    return joined(y) if flat else y


def turned(x, cos, sin, interleaved):
    """Pairs of features, turned; those beyond twice the width of cos stay."""
    width = 2 * cos.shape[-1]
    rest = x[..., width:]
    x = x[..., :width]
    if interleaved:
        a, b = x[..., 0::2], x[..., 1::2]
        y = bp.reshape(bp.stack([a * cos - b * sin, a * sin + b * cos], axis=-1), x.shape)
    else:
        a, b = x[..., : width // 2], x[..., width // 2 :]
        y = bp.concat([a * cos - b * sin, a * sin + b * cos], axis=-1)
    return y if is_plain(rest.shape[-1]) and rest.shape[-1] == 0 else bp.concat([y, rest], axis=-1)
