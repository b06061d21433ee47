"""GroupQueryAttention of com.microsoft: the attention of exported decoders, with its cache of keys and values."""

import backplane as bp

from ._microsoft_ops import attended, heads_of, joined, turned
from ._table import MICROSOFT, op, refuse


@op("GroupQueryAttention", static=(6,), domain=MICROSOFT)
def group_query_attention(
    node, q, k, v, past_key, past_value, lengths, total, cos=None, sin=None, position_ids=None, attention_bias=None, *others, do_rotary=0,
    kv_num_heads, local_window_size=-1, num_heads, rotary_interleaved=0, scale=0.0, smooth_softmax=0, softcap=0.0
):  # fmt: skip
    """lengths: the number of keys of each example less one. total: the largest of these numbers, a host value."""
    if smooth_softmax > 0 or any(value is not None for value in others):
        refuse("smooth_softmax, head_sink and quantized caches are not supported")
    if k is None:
        size = q.shape[2] // (num_heads + 2 * kv_num_heads)
        q, k, v = bp.split(q, [num_heads * size, (num_heads + kv_num_heads) * size], axis=2)
    q, k, v = heads_of(q, num_heads), heads_of(k, kv_num_heads), heads_of(v, kv_num_heads)
    length, total = q.shape[2], int(total.reshape(-1)[0])
    lengths = bp.cast(bp.reshape(lengths, (-1, 1)), bp.int64)
    # In a first call, rows beyond an example's length are padding behind it; later, all rows are new.
    before = bp.zeros_like(lengths) if length == total else lengths + 1 - length
    steps = bp.arange(length, device=q.device)
    if do_rotary:
        places = before + steps if position_ids is None else position_ids
        rows = [bp.expand_dims(bp.take(table, bp.reshape(places, (-1,)), axis=0).reshape((*places.shape, -1)), axis=1) for table in (cos, sin)]
        q, k = turned(q, *rows, rotary_interleaved), turned(k, *rows, rotary_interleaved)
    k, v = (_cached(past, new, before, total) for past, new in ((past_key, k), (past_value, v)))
    rows, columns = bp.expand_dims(before + steps, axis=(1, 3)), bp.arange(k.shape[2], device=q.device)
    allowed = columns <= rows
    if local_window_size >= 0:
        allowed = bp.logical_and(allowed, columns > rows - local_window_size)
    zero, least = (bp.full((), number, dtype=q.dtype, device=q.device) for number in (0.0, float("-inf")))
    bias = bp.where(allowed, zero, least)
    if attention_bias is not None:
        bias = bias + bp.pad(attention_bias, ((0, 0),) * 3 + ((0, k.shape[2] - attention_bias.shape[3]),))
    return joined(attended(q, k, v, bias, scale, False, softcap)), k, v


def _cached(past, new, before, total):
    """The cache with the new rows from `before` on, for each example, and zeros behind them; it grows where total is larger than it is."""
    if past is None:
        return new
    held, length = past.shape[2], new.shape[2]
    places = bp.arange(max(held, total), device=new.device)
    row = bp.clip(bp.where(places < before, places, held + places - before), 0, held + length - 1)
    row = bp.broadcast_to(bp.expand_dims(row, axis=(1, 3)), (*new.shape[:2], places.shape[0], new.shape[3]))
    found = bp.take_along_axis(bp.concat([past, new], axis=2), row, axis=2)
    filled = bp.expand_dims(places < before + length, axis=(1, 3))
    return bp.where(filled, found, bp.zeros((), dtype=new.dtype, device=new.device))
