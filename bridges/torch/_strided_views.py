"""as_strided and as_strided_scatter of tensors whose elements fill their storage, in any order of axes."""

from __future__ import annotations

import backplane as bp

__all__ = ["function_of"]

op = bp.ops.bp


def function_of(node):
    """What computes a node of as_strided or as_strided_scatter.

    Errors: MissingRuleError where the tensor shows a part of its storage: what lies beside its elements is not known in a graph.
    """
    base = node.args[0].meta.get("val")
    order = None if base is None else _order_in_memory(base)
    if order is None:
        raise bp.MissingRuleError(f"{node.target}: found a tensor that is a part of another. Fix: use the operators of views (transpose, slice, unfold)")
    back = [order.index(axis) for axis in range(len(order))]
    if node.target.name() == "aten::as_strided":
        return lambda x, *args, **kwargs: _gather(bp.permute_dims(x, order), *args, **kwargs)
    return lambda x, *args, **kwargs: bp.permute_dims(_scatter(bp.permute_dims(x, order), *args, **kwargs), back)


def _order_in_memory(x):
    """The order of axes in which the elements lie row by row from the storage's first one on, or None."""
    order = sorted(range(x.dim()), key=lambda axis: (-x.stride(axis), x.shape[axis] == 1))
    if x.storage_offset() != 0 or not x.permute(order).is_contiguous():
        return None
    return order


def _places(size, stride, offset):
    found = bp.asarray(0 if offset is None else offset)
    for length, step in zip(size, stride):
        found = bp.expand_dims(found, [-1]) + bp.arange(length) * step
    return bp.reshape(found, [-1])


def _gather(x, size, stride, storage_offset=None):
    return bp.reshape(bp.take(bp.reshape(x, [-1]), _places(size, stride, storage_offset), axis=0), list(size))


def _scatter(x, src, size, stride, storage_offset=None):
    values = bp.reshape(src, [-1])
    return bp.reshape(op.take_put(bp.reshape(x, [-1]), _places(size, stride, storage_offset), values, axis=0), x.shape)
