"""Linear and bilinear maps of the last axis."""

import backplane as bp
from backplane import Tensor

__all__ = ["bilinear", "linear"]


def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """input (*, in) times the transpose of weight (out, in), plus bias (out). Integers are multiplied as they are."""
    if all(isinstance(x, Tensor) and bp.isdtype(x.dtype, "integral") for x in (input, weight)):
        product = bp.matmul(input, weight.T)
        return product if bias is None else bp.add(product, bias)
    return bp.linear(input, weight, bias)


def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """For each matrix of weight (out, in1, in2), input1 (*, in1) times it times input2 (*, in2), plus bias (out)."""
    return bp.bilinear(input1, input2, weight, bias)
