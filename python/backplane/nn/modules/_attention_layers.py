"""MultiheadAttention, and the Transformer's layers and stacks."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import backplane as bp
from backplane import DType, Device, Tensor

from .. import functional as F
from .. import init
from ._containers import ModuleList
from .._dropout import dropout
from ._layer_arguments import check_dtype, new_parameter
from ._linear_layers import Linear
from ._module import Module
from ._normalization_layers import LayerNorm
from ._simple_layers import Dropout

__all__ = [
    "MultiheadAttention", "Transformer", "TransformerDecoder", "TransformerDecoderLayer", "TransformerEncoder", "TransformerEncoderLayer",
]  # fmt: skip


def _are_one(query, key, value):
    return query is key and key is value


class MultiheadAttention(Module):
    """Attention of num_heads heads: projections of query, key and value, softmax(q kᵀ / sqrt(size of a head)) v, and a projection.

    query (target, n, embed_dim), key (source, n, kdim), value (source, n, vdim); with batch_first n comes first; n may be absent.
    """

    def __init__(
        self, embed_dim: int, num_heads: int, dropout: float = 0.0, bias: bool = True, add_bias_kv: bool = False, add_zero_attn: bool = False,
        kdim: int | None = None, vdim: int | None = None, batch_first: bool = False, device: Device | str | None = None, dtype: DType | None = None,
    ) -> None:
        super().__init__()
        if embed_dim <= 0 or num_heads <= 0 or embed_dim % num_heads:
            raise bp.ArgumentValueError(f"MultiheadAttention: found embed_dim {embed_dim} and num_heads {num_heads}, expected a multiple and its positive divisor")
        self.embed_dim, self.num_heads, self.dropout, self.batch_first = embed_dim, num_heads, dropout, batch_first
        self.kdim, self.vdim = kdim or embed_dim, vdim or embed_dim
        self.head_dim, self.add_zero_attn = embed_dim // num_heads, add_zero_attn
        self._qkv_same_embed_dim = self.kdim == embed_dim and self.vdim == embed_dim
        if self._qkv_same_embed_dim:
            self.in_proj_weight = new_parameter((3 * embed_dim, embed_dim), device, dtype)
            for name in ("q_proj_weight", "k_proj_weight", "v_proj_weight"):
                self.register_parameter(name, None)
        else:
            for name, inputs in (("q_proj_weight", embed_dim), ("k_proj_weight", self.kdim), ("v_proj_weight", self.vdim)):
                setattr(self, name, new_parameter((embed_dim, inputs), device, dtype))
            self.register_parameter("in_proj_weight", None)
        self.in_proj_bias = new_parameter((3 * embed_dim,), device, dtype) if bias else None
        self.out_proj = Linear(embed_dim, embed_dim, bias=bias, device=device, dtype=dtype)
        self.bias_k = new_parameter((1, 1, embed_dim), device, dtype) if add_bias_kv else None
        self.bias_v = new_parameter((1, 1, embed_dim), device, dtype) if add_bias_kv else None
        self._reset_parameters()

    def _reset_parameters(self):
        for x in (self.in_proj_weight, self.q_proj_weight, self.k_proj_weight, self.v_proj_weight):
            if x is not None:
                init.xavier_uniform_(x)
        if self.in_proj_bias is not None:
            init.zeros_(self.in_proj_bias)
            init.zeros_(self.out_proj.bias)
        for x in (self.bias_k, self.bias_v):
            if x is not None:
                init.xavier_normal_(x)

    def forward(
        self, query: Tensor, key: Tensor, value: Tensor, key_padding_mask: Tensor | None = None, need_weights: bool = True,
        attn_mask: Tensor | None = None, average_attn_weights: bool = True, is_causal: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        """(output like query, weights (n, target, source), or None without need_weights, or (n, heads, target, source) where they are not averaged).

        key_padding_mask (n, source), attn_mask (target, source) or (n · heads, target, source): True where attention is not allowed, or
        numbers that are added to the scores. is_causal needs attn_mask, as in PyTorch, and says that it is causal.
        """
        weight = self.out_proj.weight
        check_dtype(self, weight, query, key, value)
        if is_causal and attn_mask is None:
            raise bp.ArgumentValueError("MultiheadAttention: argument is_causal: found True without attn_mask, expected the causal mask as attn_mask")
        single = query.ndim == 2
        if self.batch_first and not single:
            q, k, v = query, key, value
        else:
            q, k, v = (bp.expand_dims(x, 0) if single else x.swapaxes(0, 1) for x in (query, key, value))
        if single and key_padding_mask is not None:
            key_padding_mask = bp.expand_dims(key_padding_mask, 0)
        y, weights = self._attend(q, k, v, key_padding_mask, attn_mask, need_weights)
        y = y[0] if single else y if self.batch_first else y.swapaxes(0, 1)
        if weights is not None:
            weights = bp.mean(weights, axis=1) if average_attn_weights else weights
            weights = weights[0] if single else weights
        return y, weights

    def _attend(self, query, key, value, padding, mask, need_weights):
        """Of (n, length, features); the weights (n, heads, target, source)."""
        q, k, v = self._projections(query, key, value)
        n, target = q.shape[:2]
        added = 0
        if self.bias_k is not None:
            k = bp.concat([k, bp.broadcast_to(self.bias_k, (n, 1, self.embed_dim))], axis=1)
            v = bp.concat([v, bp.broadcast_to(self.bias_v, (n, 1, self.embed_dim))], axis=1)
            added += 1
        q, k, v = (self._heads(x) for x in (q, k, v))
        if self.add_zero_attn:
            k, v = (bp.concat([x, bp.zeros((n, self.num_heads, 1, self.head_dim), dtype=x.dtype, device=x.device)], axis=2) for x in (k, v))
            added += 1
        bias = self._mask(mask, padding, added, n, target, key.shape[1], q)
        p = self.dropout if self.training else 0.0
        if need_weights:
            scores = (q @ k.mT) * (self.head_dim**-0.5)
            weights = F.softmax(scores if bias is None else scores + bias, dim=-1)
            weights = dropout(weights, p, True) if p else weights
            y = weights @ v
        else:
            weights, y = None, F.scaled_dot_product_attention(q, k, v, bias, p)
        y = y.swapaxes(1, 2).reshape((n, target, self.embed_dim))
        return self.out_proj(y), weights

    def _projections(self, query, key, value):
        e, bias = self.embed_dim, self.in_proj_bias
        if self._qkv_same_embed_dim:
            if bp.unguarded(_are_one, query, key, value):  # which changes how they are computed, and not the values
                return bp.split(F.linear(query, self.in_proj_weight, bias), [e, e, e], dim=-1)
            weights = [self.in_proj_weight[i * e : (i + 1) * e] for i in range(3)]
        else:
            weights = [self.q_proj_weight, self.k_proj_weight, self.v_proj_weight]
        biases = [None] * 3 if bias is None else [bias[i * e : (i + 1) * e] for i in range(3)]
        return [F.linear(x, w, b) for x, w, b in zip((query, key, value), weights, biases)]

    def _heads(self, x):
        return x.reshape((x.shape[0], x.shape[1], self.num_heads, self.head_dim)).swapaxes(1, 2)

    def _mask(self, mask, padding, added, n, target, source, like):
        """The mask as a tensor that is added to the scores, or None."""
        total = None
        for name, x in (("attn_mask", mask), ("key_padding_mask", padding)):
            if x is None:
                continue
            x = _additive(x, like.dtype)
            if name == "key_padding_mask":
                _check_mask(name, x, (n, source))
                x = x[:, None, None]
            elif x.ndim == 3:
                _check_mask(name, x, (n * self.num_heads, target, source))
                x = x.reshape((n, self.num_heads, target, source))
            else:
                _check_mask(name, x, (target, source))
            total = x if total is None else total + x
        if total is not None and added:
            total = bp.concat([total, bp.zeros((*total.shape[:-1], added), dtype=total.dtype, device=total.device)], axis=-1)
        return total


def _check_mask(name, x, expected):
    if tuple(x.shape) != tuple(expected):
        raise bp.ShapeError(f"MultiheadAttention: argument {name}: found shape {tuple(x.shape)}, expected {tuple(expected)}")


def _additive(mask, dtype):
    """A mask as numbers that are added: -inf where a bool is True."""
    if mask.dtype == bp.bool:
        return bp.where(mask, bp.asarray(-bp.inf, dtype=dtype, device=mask.device), bp.asarray(0, dtype=dtype, device=mask.device))
    return mask.astype(dtype)


_ACTIVATIONS = {"relu": F.relu, "gelu": F.gelu}


def _activation(name, activation):
    if callable(activation):
        return activation
    if activation not in _ACTIVATIONS:
        raise bp.ArgumentValueError(f"{name}: argument activation: found {activation!r}, expected 'relu', 'gelu' or a function")
    return _ACTIVATIONS[activation]


class TransformerEncoderLayer(Module):
    """Self-attention and a network of two linear layers, each with a residual, dropout and layer norm (before it, with norm_first)."""

    def __init__(
        self, d_model: int, nhead: int, dim_feedforward: int = 2048, dropout: float = 0.1, activation: str | Callable[[Tensor], Tensor] = "relu",
        layer_norm_eps: float = 1e-5, batch_first: bool = False, norm_first: bool = False, bias: bool = True,
        device: Device | str | None = None, dtype: DType | None = None,
    ) -> None:
        super().__init__()
        how: dict[str, Any] = {"device": device, "dtype": dtype}
        self.self_attn = MultiheadAttention(d_model, nhead, dropout, bias, batch_first=batch_first, **how)
        self.linear1 = Linear(d_model, dim_feedforward, bias, **how)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, bias, **how)
        self.norm_first = norm_first
        self.norm1 = LayerNorm(d_model, layer_norm_eps, bias=bias, **how)
        self.norm2 = LayerNorm(d_model, layer_norm_eps, bias=bias, **how)
        self.dropout1, self.dropout2 = Dropout(dropout), Dropout(dropout)
        self.activation = _activation("TransformerEncoderLayer", activation)

    def forward(self, src: Tensor, src_mask: Tensor | None = None, src_key_padding_mask: Tensor | None = None, is_causal: bool = False) -> Tensor:
        """src (length, n, d_model), or (n, length, d_model) with batch_first; masks as of MultiheadAttention."""
        x = src
        if self.norm_first:
            x = x + self._attended(self.norm1(x), src_mask, src_key_padding_mask)
            return x + self._fed_forward(self.norm2(x))
        x = self.norm1(x + self._attended(x, src_mask, src_key_padding_mask))
        return self.norm2(x + self._fed_forward(x))

    def _attended(self, x, mask, padding):
        return self.dropout1(self.self_attn(x, x, x, padding, need_weights=False, attn_mask=mask)[0])

    def _fed_forward(self, x):
        return self.dropout2(self.linear2(self.dropout(self.activation(self.linear1(x)))))


class TransformerDecoderLayer(Module):
    """Self-attention, attention to memory, and a network of two linear layers, each with a residual, dropout and layer norm."""

    def __init__(
        self, d_model: int, nhead: int, dim_feedforward: int = 2048, dropout: float = 0.1, activation: str | Callable[[Tensor], Tensor] = "relu",
        layer_norm_eps: float = 1e-5, batch_first: bool = False, norm_first: bool = False, bias: bool = True,
        device: Device | str | None = None, dtype: DType | None = None,
    ) -> None:
        super().__init__()
        how: dict[str, Any] = {"device": device, "dtype": dtype}
        self.self_attn = MultiheadAttention(d_model, nhead, dropout, bias, batch_first=batch_first, **how)
        self.multihead_attn = MultiheadAttention(d_model, nhead, dropout, bias, batch_first=batch_first, **how)
        self.linear1 = Linear(d_model, dim_feedforward, bias, **how)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, bias, **how)
        self.norm_first = norm_first
        self.norm1 = LayerNorm(d_model, layer_norm_eps, bias=bias, **how)
        self.norm2 = LayerNorm(d_model, layer_norm_eps, bias=bias, **how)
        self.norm3 = LayerNorm(d_model, layer_norm_eps, bias=bias, **how)
        self.dropout1, self.dropout2, self.dropout3 = Dropout(dropout), Dropout(dropout), Dropout(dropout)
        self.activation = _activation("TransformerDecoderLayer", activation)

    def forward(
        self, tgt: Tensor, memory: Tensor, tgt_mask: Tensor | None = None, memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None, memory_key_padding_mask: Tensor | None = None, tgt_is_causal: bool = False,
        memory_is_causal: bool = False,
    ) -> Tensor:
        """tgt and memory (length, n, d_model), or (n, length, d_model) with batch_first; masks as of MultiheadAttention."""
        own, cross = (tgt_mask, tgt_key_padding_mask), (memory_mask, memory_key_padding_mask)
        x = tgt
        if self.norm_first:
            x = x + self._attended(self.norm1(x), *own)
            x = x + self._remembered(self.norm2(x), memory, *cross)
            return x + self._fed_forward(self.norm3(x))
        x = self.norm1(x + self._attended(x, *own))
        x = self.norm2(x + self._remembered(x, memory, *cross))
        return self.norm3(x + self._fed_forward(x))

    def _attended(self, x, mask, padding):
        return self.dropout1(self.self_attn(x, x, x, padding, need_weights=False, attn_mask=mask)[0])

    def _remembered(self, x, memory, mask, padding):
        return self.dropout2(self.multihead_attn(x, memory, memory, padding, need_weights=False, attn_mask=mask)[0])

    def _fed_forward(self, x):
        return self.dropout3(self.linear2(self.dropout(self.activation(self.linear1(x)))))


class TransformerEncoder(Module):
    """num_layers copies of an encoder layer, and norm behind them."""

    def __init__(self, encoder_layer: Module, num_layers: int, norm: Module | None = None, enable_nested_tensor: bool = True, mask_check: bool = True) -> None:
        super().__init__()
        self.layers = ModuleList([copy.deepcopy(encoder_layer) for _ in range(num_layers)])
        self.num_layers, self.norm = num_layers, norm

    def forward(self, src: Tensor, mask: Tensor | None = None, src_key_padding_mask: Tensor | None = None, is_causal: bool | None = None) -> Tensor:
        for layer in self.layers:
            src = layer(src, src_mask=mask, src_key_padding_mask=src_key_padding_mask)
        return src if self.norm is None else self.norm(src)


class TransformerDecoder(Module):
    """num_layers copies of a decoder layer, and norm behind them."""

    def __init__(self, decoder_layer: Module, num_layers: int, norm: Module | None = None) -> None:
        super().__init__()
        self.layers = ModuleList([copy.deepcopy(decoder_layer) for _ in range(num_layers)])
        self.num_layers, self.norm = num_layers, norm

    def forward(
        self, tgt: Tensor, memory: Tensor, tgt_mask: Tensor | None = None, memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None, memory_key_padding_mask: Tensor | None = None, tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Tensor:
        for layer in self.layers:
            tgt = layer(tgt, memory, tgt_mask, memory_mask, tgt_key_padding_mask, memory_key_padding_mask)
        return tgt if self.norm is None else self.norm(tgt)


class Transformer(Module):
    """An encoder and a decoder (Vaswani and others, "Attention is all you need", 2017)."""

    def __init__(
        self, d_model: int = 512, nhead: int = 8, num_encoder_layers: int = 6, num_decoder_layers: int = 6, dim_feedforward: int = 2048,
        dropout: float = 0.1, activation: str | Callable[[Tensor], Tensor] = "relu", custom_encoder: Module | None = None,
        custom_decoder: Module | None = None, layer_norm_eps: float = 1e-5, batch_first: bool = False, norm_first: bool = False,
        bias: bool = True, device: Device | str | None = None, dtype: DType | None = None,
    ) -> None:
        super().__init__()
        sizes: tuple[Any, ...] = (d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first, bias, device, dtype)

        def norm() -> LayerNorm:
            return LayerNorm(d_model, layer_norm_eps, bias=bias, device=device, dtype=dtype)

        self.encoder = custom_encoder or TransformerEncoder(TransformerEncoderLayer(*sizes), num_encoder_layers, norm())
        self.decoder = custom_decoder or TransformerDecoder(TransformerDecoderLayer(*sizes), num_decoder_layers, norm())
        for x in self.parameters():
            if x.ndim > 1:
                init.xavier_uniform_(x)
        self.d_model, self.nhead, self.batch_first = d_model, nhead, batch_first

    def forward(
        self, src: Tensor, tgt: Tensor, src_mask: Tensor | None = None, tgt_mask: Tensor | None = None, memory_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None, tgt_key_padding_mask: Tensor | None = None, memory_key_padding_mask: Tensor | None = None,
        src_is_causal: bool | None = None, tgt_is_causal: bool | None = None, memory_is_causal: bool = False,
    ) -> Tensor:
        memory = self.encoder(src, src_mask, src_key_padding_mask)
        return self.decoder(tgt, memory, tgt_mask, memory_mask, tgt_key_padding_mask, memory_key_padding_mask)

    @staticmethod
    def generate_square_subsequent_mask(sz: int, device: Device | str | None = None, dtype: DType | None = None) -> Tensor:
        """The causal mask (sz, sz): -inf above the diagonal, 0 elsewhere."""
        how: dict[str, Any] = {"device": device, "dtype": bp.default_dtype() if dtype is None else dtype}
        return bp.triu(bp.full((sz, sz), -bp.inf, **how), k=1)
