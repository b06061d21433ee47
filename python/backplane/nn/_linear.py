"""Linear and bilinear maps of the last axis."""

import backplane as bp

__all__ = ["bilinear", "linear"]


def linear(input, weight, bias=None):
    """input (*, in) times the transpose of weight (out, in), plus bias (out)."""
    return bp.linear(input, weight, bias)


def bilinear(input1, input2, weight, bias=None):
    """For each matrix of weight (out, in1, in2), input1 (*, in1) times it times input2 (*, in2), plus bias (out)."""
    return bp.bilinear(input1, input2, weight, bias)
