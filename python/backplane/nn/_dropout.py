"""Dropout: of elements, of whole channels, and with the mean and variance kept. Random bits come from `generator`, or the default one.

With the probability 0, no random bits are drawn and the result is the input.
"""

import math

import backplane as bp
from backplane import Generator, Tensor

__all__ = ["alpha_dropout", "dropout", "dropout1d", "dropout2d", "dropout3d", "feature_alpha_dropout"]

# What selu tends to for small arguments: -scale * alpha.
_ALPHA = -1.0507009873554805 * 1.6732632423543772


def _check(function, p):
    if not 0 <= p <= 1:
        raise bp.ArgumentValueError(f"{function}: argument p: found {p}, expected a probability")


def _result(input, found, inplace):
    if not inplace:
        return found
    input[...] = found
    return input


def _kept(input, p, shape, generator):
    return bp.bernoulli(1 - p, shape, device=input.device, generator=generator)


def dropout(
    input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False, *, generator: Generator | None = None
) -> Tensor:
    """In training each element set to 0 with probability p, the others divided by 1 - p; else input."""
    _check("dropout", p)
    return _result(input, bp.dropout(input, p=p, generator=generator), inplace) if training and p != 0 else input


def _channels(function, input, p, training, inplace, axes, generator):
    """Whole channels of (n, c, *spatial) or (c, *spatial) set to 0."""
    _check(function, p)
    if input.ndim not in (axes + 1, axes + 2):
        raise bp.ShapeError(f"{function}: argument input: found shape {tuple(input.shape)}, expected {axes + 1} or {axes + 2} axes")
    if not training or p == 0:
        return input
    keep = _kept(input, p, [*input.shape[: input.ndim - axes], *[1] * axes], generator)
    return _result(input, bp.where(keep, bp.multiply(input, 1 / (1 - p) if p < 1 else 0), 0), inplace)


def dropout1d(
    input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False, *, generator: Generator | None = None
) -> Tensor:
    """dropout of whole channels of input (n, c, l) or (c, l)."""
    return _channels("dropout1d", input, p, training, inplace, 1, generator)


def dropout2d(
    input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False, *, generator: Generator | None = None
) -> Tensor:
    """dropout of whole channels of input (n, c, h, w) or (c, h, w)."""
    return _channels("dropout2d", input, p, training, inplace, 2, generator)


def dropout3d(
    input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False, *, generator: Generator | None = None
) -> Tensor:
    """dropout of whole channels of input (n, c, d, h, w) or (c, d, h, w)."""
    return _channels("dropout3d", input, p, training, inplace, 3, generator)


def _alpha(function, input, p, training, inplace, shape, generator):
    _check(function, p)
    if not training or p == 0:
        return input
    if p == 1:
        return _result(input, bp.multiply(input, 0), inplace)
    scale = 1 / math.sqrt((1 - p) * (1 + p * _ALPHA**2))
    found = bp.add(bp.multiply(bp.where(_kept(input, p, shape, generator), input, _ALPHA), scale), -scale * _ALPHA * p)
    return _result(input, found, inplace)


def alpha_dropout(
    input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False, *, generator: Generator | None = None
) -> Tensor:
    """In training each element set to what selu tends to with probability p, then scaled and moved so that mean 0 and variance 1 stay."""
    return _alpha("alpha_dropout", input, p, training, inplace, input.shape, generator)


def feature_alpha_dropout(
    input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False, *, generator: Generator | None = None
) -> Tensor:
    """alpha_dropout of whole channels of input (n, c, *)."""
    return _alpha("feature_alpha_dropout", input, p, training, inplace, [*input.shape[:2], *[1] * (input.ndim - 2)], generator)
