"""Normalisation by means and variances, or norms, of groups of elements."""

import backplane as bp

from ._arguments import sizes

__all__ = ["layer_norm"]


def _last_axes(function, input, normalized_shape):
    """The axes that normalized_shape covers. Errors: ValueError where the input's last sizes differ from it."""
    shape = sizes(function, "normalized_shape", normalized_shape, 1) if hasattr(normalized_shape, "__index__") else list(normalized_shape)
    if not shape or list(input.shape[-len(shape) :]) != shape:
        raise bp.ShapeError(
            f"{function}: argument normalized_shape: found {shape} with an input of shape {tuple(input.shape)}, expected its last sizes"
        )
    return list(range(-len(shape), 0))


def layer_norm(input, normalized_shape, weight=None, bias=None, eps=1e-05):
    """input less its mean, divided by sqrt(variance + eps), over the last axes, whose sizes are normalized_shape."""
    return bp.layer_norm(input, weight, bias, axis=_last_axes("layer_norm", input, normalized_shape), eps=eps)
