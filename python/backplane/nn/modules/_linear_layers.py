"""Linear, Bilinear, Embedding and EmbeddingBag: layers of one weight matrix."""

from __future__ import annotations

import backplane as bp
from backplane import DType, Device, Tensor

from .. import functional as F
from .. import init
from ._layer_arguments import check_dtype, fan_bound, new_parameter, uniform_parameter
from ._module import Module
from .._parameter import Parameter

__all__ = ["Bilinear", "Embedding", "EmbeddingBag", "Linear"]


class Linear(Module):
    """y = x · weightᵀ + bias: input (*, in_features), output (*, out_features).

    weight (out_features, in_features) and bias (out_features) begin uniform within ±1 / sqrt(in_features).
    """

    def __init__(
        self, in_features: int, out_features: int, bias: bool = True, device: Device | str | None = None, dtype: DType | None = None
    ) -> None:
        super().__init__()
        self.in_features, self.out_features = in_features, out_features
        self.weight = new_parameter((out_features, in_features), device, dtype)
        self.bias = new_parameter((out_features,), device, dtype) if bias else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws the weights anew."""
        bound = fan_bound(self.in_features)
        init.uniform_(self.weight, -bound, bound)
        if self.bias is not None:
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input: Tensor) -> Tensor:
        check_dtype(self, self.weight, input)
        return F.linear(input, self.weight, self.bias)

    def extra_repr(self) -> str:
        return f"in_features={self.in_features}, out_features={self.out_features}, bias={self.bias is not None}"


class Bilinear(Module):
    """y = x1ᵀ · weight · x2 + bias: inputs (*, in1_features) and (*, in2_features), output (*, out_features)."""

    def __init__(
        self, in1_features: int, in2_features: int, out_features: int, bias: bool = True, device: Device | str | None = None,
        dtype: DType | None = None,
    ) -> None:
        super().__init__()
        self.in1_features, self.in2_features, self.out_features = in1_features, in2_features, out_features
        bound = fan_bound(in1_features)
        self.weight = uniform_parameter((out_features, in1_features, in2_features), bound, device, dtype)
        self.bias = uniform_parameter((out_features,), bound, device, dtype) if bias else None

    def forward(self, input1: Tensor, input2: Tensor) -> Tensor:
        check_dtype(self, self.weight, input1, input2)
        return F.bilinear(input1, input2, self.weight, self.bias)

    def extra_repr(self) -> str:
        sizes = f"in1_features={self.in1_features}, in2_features={self.in2_features}, out_features={self.out_features}"
        return f"{sizes}, bias={self.bias is not None}"


def _row(layer, padding_idx, rows):
    if padding_idx is None:
        return None
    if not -rows <= padding_idx < rows:
        raise bp.OutOfRangeError(f"{layer}: argument padding_idx: found {padding_idx}, expected a row of {rows}")
    return padding_idx % rows


def _table(layer, shape, padding_idx, given, device, dtype):
    if given is not None:
        if tuple(given.shape) != tuple(shape):
            raise bp.ShapeError(f"{layer}: argument _weight: found shape {tuple(given.shape)}, expected {tuple(shape)}")
        return Parameter(given)
    table = init.normal_(new_parameter(shape, device, dtype))
    if padding_idx is not None:
        with bp.no_grad():
            table.detach()[padding_idx] = 0
    return table


class Embedding(Module):
    """The rows of weight (num_embeddings, embedding_dim) at integers: input (*), output (*, embedding_dim).

    weight begins with normal numbers. padding_idx: a row that begins with 0 and gets no gradient.
    """

    def __init__(
        self, num_embeddings: int, embedding_dim: int, padding_idx: int | None = None, max_norm: float | None = None,
        norm_type: float = 2.0, scale_grad_by_freq: bool = False, sparse: bool = False, _weight: Tensor | None = None,
        _freeze: bool = False, device: Device | str | None = None, dtype: DType | None = None,
    ) -> None:
        super().__init__()
        self.num_embeddings, self.embedding_dim = num_embeddings, embedding_dim
        self.padding_idx = _row("Embedding", padding_idx, num_embeddings)
        self.max_norm, self.norm_type, self.scale_grad_by_freq, self.sparse = max_norm, norm_type, scale_grad_by_freq, sparse
        table = _table("Embedding", (num_embeddings, embedding_dim), self.padding_idx, _weight, device, dtype)
        self.weight = Parameter(table, requires_grad=False) if _freeze else table

    @classmethod
    def from_pretrained(
        cls, embeddings: Tensor, freeze: bool = True, padding_idx: int | None = None, max_norm: float | None = None,
        norm_type: float = 2.0, scale_grad_by_freq: bool = False, sparse: bool = False,
    ) -> Embedding:
        """An embedding of given rows. freeze: they get no gradient."""
        rows, columns = embeddings.shape
        return cls(rows, columns, padding_idx, max_norm, norm_type, scale_grad_by_freq, sparse, _weight=embeddings, _freeze=freeze)

    def forward(self, input: Tensor) -> Tensor:
        return F.embedding(input, self.weight, self.padding_idx, self.max_norm, self.norm_type, self.scale_grad_by_freq, self.sparse)

    def extra_repr(self) -> str:
        padding = "" if self.padding_idx is None else f", padding_idx={self.padding_idx}"
        return f"{self.num_embeddings}, {self.embedding_dim}{padding}"


class EmbeddingBag(Module):
    """Sums, means or maxima of rows of weight: of each row of input (b, n), or of input (n) cut at offsets."""

    def __init__(
        self, num_embeddings: int, embedding_dim: int, max_norm: float | None = None, norm_type: float = 2.0,
        scale_grad_by_freq: bool = False, mode: str = "mean", sparse: bool = False, _weight: Tensor | None = None,
        include_last_offset: bool = False, padding_idx: int | None = None, device: Device | str | None = None, dtype: DType | None = None,
    ) -> None:
        super().__init__()
        self.num_embeddings, self.embedding_dim, self.mode = num_embeddings, embedding_dim, mode
        self.max_norm, self.norm_type, self.scale_grad_by_freq, self.sparse = max_norm, norm_type, scale_grad_by_freq, sparse
        self.include_last_offset, self.padding_idx = include_last_offset, _row("EmbeddingBag", padding_idx, num_embeddings)
        self.weight = _table("EmbeddingBag", (num_embeddings, embedding_dim), self.padding_idx, _weight, device, dtype)

    def forward(self, input: Tensor, offsets: Tensor | None = None, per_sample_weights: Tensor | None = None) -> Tensor:
        return F.embedding_bag(
            input, self.weight, offsets, self.max_norm, self.norm_type, self.scale_grad_by_freq, self.mode, self.sparse,
            per_sample_weights, self.include_last_offset, self.padding_idx,
        )  # fmt: skip

    def extra_repr(self) -> str:
        return f"{self.num_embeddings}, {self.embedding_dim}, mode={self.mode!r}"
