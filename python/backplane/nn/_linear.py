"""Linear and bilinear maps of the last axis."""

import backplane as bp

__all__ = ["linear"]


def linear(input, weight, bias=None):
    """input (*, in) times the transpose of weight (out, in), plus bias (out)."""
    return bp.linear(input, weight, bias)
