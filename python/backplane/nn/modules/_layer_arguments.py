"""Shared by layers: creating parameters, and checking the dtype of the input."""

import math

import backplane as bp

from .. import init
from .._parameter import Parameter

__all__ = []


def new_parameter(shape, device, dtype):
    """A parameter without values yet."""
    return Parameter(bp.empty(tuple(shape), dtype=floating(dtype), device=device))


def floating(dtype):
    return bp.default_dtype() if dtype is None else dtype


def uniform_parameter(shape, bound, device, dtype):
    return init.uniform_(new_parameter(shape, device, dtype), -bound, bound)


def fan_bound(fan_in):
    return 1 / math.sqrt(fan_in) if fan_in > 0 else 0.0


def _is_cast(x, weight):
    """Does a block of autocast cast between these dtypes?"""
    return bp.float64 not in (x.dtype, weight.dtype) and bp.unguarded(bp.is_autocast_enabled, x.device)


def check_dtype(layer, weight, *inputs):
    """Refuses floats of another dtype than the weights', whose results would be promoted."""
    for x in inputs:
        if x is not None and x.dtype != weight.dtype and "floating" in x.dtype.kind and not _is_cast(x, weight):
            raise bp.DtypeError(
                f"{type(layer).__name__}: argument input: found {x.dtype.name}, expected {weight.dtype.name}, the dtype of the layer; "
                "use x.astype, or to(dtype) of the layer"
            )
