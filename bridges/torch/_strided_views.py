"""as_strided and as_strided_scatter over elements that lie in row-major order from the storage's first one on."""

from __future__ import annotations

import backplane as bp

__all__ = ["function_of"]

op = bp.ops.bp


def function_of(node):
    """What computes a node of as_strided or as_strided_scatter.

    Errors: MissingRuleError where the tensor is itself a view: what lies beside its elements is not known in a graph.
    """
    base = node.args[0].meta.get("val")
    if base is None or not base.is_contiguous() or base.storage_offset() != 0:
        raise bp.MissingRuleError(f"{node.target}: found a tensor that is itself a view. Fix: use the operators of views (transpose, slice, unfold)")
    return {"aten::as_strided": _gather, "aten::as_strided_scatter": _scatter}[node.target.name()]


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
