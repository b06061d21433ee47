"""Operands with their named axes in one order, so that an elementwise function broadcasts them."""

from __future__ import annotations

from .. import _core
from ._tensor import DimTensor, is_among, permuted, union_of

__all__ = []


def aligned(operands, order=None):
    """(the operands as tensors with the axes of all dims first, these dims). Numbers and tensors stay as they are."""
    named = [x for x in operands if isinstance(x, DimTensor)]
    dims = union_of(named) if order is None else order
    device = next((x.device for x in operands if isinstance(x, _core.Tensor) or (isinstance(x, DimTensor) and not x.is_free)), None)
    arrays = [value_on(x, device) if isinstance(x, DimTensor) else x for x in operands]
    ndims = [array.ndim - (len(x.dims) if isinstance(x, DimTensor) else 0) for x, array in zip(operands, arrays) if isinstance(array, _core.Tensor)]
    ndim = max(ndims)
    return [_spread(x, array, dims, ndim) if isinstance(x, DimTensor) else array for x, array in zip(operands, arrays)], dims


def value_on(x, device):
    """The tensor of an operand, with the named axes first; one of Dims alone goes to the device of the others."""
    array = x._value()
    return array.to_device(device) if x.is_free and device is not None and array.device != device else array


def _spread(x, array, dims, ndim):
    own = tuple(dim for dim in dims if is_among(dim, x.dims))
    array = permuted(array, x.dims, own)
    missing = ndim - (array.ndim - len(own))
    if len(own) == len(dims) and not missing:
        return array
    key = [slice(None) if is_among(dim, own) else None for dim in dims]
    key += [None] * missing if own else []
    while key and key[0] is None:  # broadcasting adds the first axes
        del key[0]
    return array[tuple(key)] if None in key else array
