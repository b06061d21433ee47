"""Layers whose weights are divided among the ranks of a group, after Megatron-LM (Shoeybi et al., 2019): one sum over the ranks per pair."""

from __future__ import annotations

from typing import Any

import backplane as bp
from backplane import Tensor, nn

from ._collectives import site
from ._connection import ops
from ._groups import Group, chosen

__all__ = ["ColumnParallelLinear", "ParallelAttention", "RowParallelLinear"]

F = nn.functional


def _entered(x: Tensor, group: Group) -> Tensor:
    """x, which all ranks have: its cotangents are summed over them."""
    return ops().to_parts(x, n=group.size, group=group.name, site=site())


def _summed(x: Tensor, group: Group) -> Tensor:
    """The sum of the ranks' parts, which all ranks go on with."""
    return ops().sum_of_parts(x, n=group.size, group=group.name, site=site())


def _part(name: str, x: Tensor, dim: int, group: Group) -> Tensor:
    """This rank's block of a weight along a dimension, as a parameter."""
    size = x.shape[dim]
    if size % group.size:
        raise bp.ShapeError(f"{name}: found {size} features, expected a number that {group.size} divides, the number of ranks")
    k = size // group.size
    block = x.detach()[group.rank * k : (group.rank + 1) * k] if dim == 0 else x.detach()[:, group.rank * k : (group.rank + 1) * k]
    return nn.Parameter(bp.copy(block))


def _linear(name: str, linear: Any) -> Any:
    if not isinstance(linear, nn.Linear):
        raise bp.ArgumentTypeError(f"{name}: argument linear: found a value of type {type(linear).__name__}, expected an nn.Linear, alike on all ranks")
    return linear


class ColumnParallelLinear(nn.Module):
    """An nn.Linear that computes a part of its output features on each rank: input (*, in_features), output (*, out_features / ranks).

    linear: the whole layer, alike on all ranks (broadcast_state makes it so); this rank keeps its block of rows of the weight. The output
    is the input of a RowParallelLinear, or of functions of each feature. Errors: ShapeError where the ranks do not divide out_features.
    """

    def __init__(self, linear: nn.Linear, *, group: Group | None = None) -> None:
        super().__init__()
        self.group = chosen("ColumnParallelLinear", group)
        whole = _linear("ColumnParallelLinear", linear)
        self.weight = _part("ColumnParallelLinear", whole.weight, 0, self.group)
        self.bias = None if whole.bias is None else _part("ColumnParallelLinear", whole.bias, 0, self.group)

    def forward(self, input: Tensor) -> Tensor:
        return F.linear(_entered(input, self.group), self.weight, self.bias)

    def extra_repr(self) -> str:
        return f"in_features={self.weight.shape[1]}, out_features={self.weight.shape[0]} of {self.weight.shape[0] * self.group.size}"


class RowParallelLinear(nn.Module):
    """An nn.Linear that takes a part of its input features on each rank: input (*, in_features / ranks), output (*, out_features) on all.

    linear: the whole layer, alike on all ranks; this rank keeps its block of columns of the weight, and all of the bias. The ranks sum
    their products. Errors: ShapeError where the ranks do not divide in_features.
    """

    def __init__(self, linear: nn.Linear, *, group: Group | None = None) -> None:
        super().__init__()
        self.group = chosen("RowParallelLinear", group)
        whole = _linear("RowParallelLinear", linear)
        self.weight = _part("RowParallelLinear", whole.weight, 1, self.group)
        self.bias = None if whole.bias is None else nn.Parameter(bp.copy(whole.bias.detach()))

    def forward(self, input: Tensor) -> Tensor:
        product = _summed(F.linear(input, self.weight), self.group)
        return product if self.bias is None else product + self.bias

    def extra_repr(self) -> str:
        return f"in_features={self.weight.shape[1]} of {self.weight.shape[1] * self.group.size}, out_features={self.weight.shape[0]}"


class ParallelAttention(nn.Module):
    """An nn.MultiheadAttention that computes a part of its heads on each rank: query, key, value (n, length, embed_dim) on all ranks.

    attention: the whole layer, alike on all ranks. It has batch_first, one size of query, key and value, and no dropout. The result is
    (output like query, None). Errors: ShapeError where the ranks do not divide the number of heads; ArgumentValueError for other layers.
    """

    def __init__(self, attention: nn.MultiheadAttention, *, group: Group | None = None) -> None:
        super().__init__()
        name, self.group = "ParallelAttention", chosen("ParallelAttention", group)
        if not isinstance(attention, nn.MultiheadAttention):
            raise bp.ArgumentTypeError(f"{name}: argument attention: found a value of type {type(attention).__name__}, expected an nn.MultiheadAttention, alike on all ranks")
        weight = attention.in_proj_weight
        if weight is None or attention.bias_k is not None or attention.add_zero_attn or attention.dropout or not attention.batch_first:
            raise bp.ArgumentValueError(
                f"{name}: argument attention: expected a layer with batch_first=True, without kdim, vdim, dropout, add_bias_kv and add_zero_attn; found {attention}"
            )
        if attention.num_heads % self.group.size:
            raise bp.ShapeError(f"{name}: found {attention.num_heads} heads, expected a number that {self.group.size} divides, the number of ranks")
        self.num_heads, self.head_dim = attention.num_heads // self.group.size, attention.head_dim
        bias = attention.in_proj_bias
        for i, word in enumerate("qkv"):
            rows = slice(i * attention.embed_dim, (i + 1) * attention.embed_dim)
            setattr(self, f"{word}_weight", _part(name, weight.detach()[rows], 0, self.group))
            setattr(self, f"{word}_bias", None if bias is None else _part(name, bias.detach()[rows], 0, self.group))
        self.out_proj = RowParallelLinear(attention.out_proj, group=self.group)

    def _heads(self, word: str, x: Tensor) -> Tensor:
        y = F.linear(x, getattr(self, f"{word}_weight"), getattr(self, f"{word}_bias"))
        return y.reshape((*y.shape[:2], self.num_heads, self.head_dim)).swapaxes(1, 2)

    def forward(self, query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None = None, is_causal: bool = False) -> tuple[Tensor, None]:
        """attn_mask (target, source): True where attention is not allowed, as for nn.MultiheadAttention, or numbers that are added."""
        if query.ndim != 3:
            raise bp.ShapeError(f"ParallelAttention: argument query: found shape {tuple(query.shape)}, expected (n, length, embed_dim)")
        entered = {id(x): _entered(x, self.group) for x in (query, key, value)}  # one sum of cotangents for one tensor
        q, k, v = (self._heads(word, entered[id(x)]) for word, x in zip("qkv", (query, key, value)))
        mask = bp.logical_not(attn_mask) if attn_mask is not None and attn_mask.dtype == bp.bool else attn_mask
        y = F.scaled_dot_product_attention(q, k, v, mask, is_causal=is_causal)
        return self.out_proj(y.swapaxes(1, 2).reshape((*query.shape[:2], self.num_heads * self.head_dim))), None
