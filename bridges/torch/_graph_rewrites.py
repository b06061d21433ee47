"""Rewrites of AOTAutograd's graphs that save copies and loops on the device."""

from __future__ import annotations

import torch

from ._rows.networks import fused_layer_norm

__all__ = ["fuse_norms", "join_before_merging"]

_aten = torch.ops.aten
_FULL = {torch.float32, torch.float64}  # a norm of half floats is rounded once, behind the weight


def fuse_norms(module: torch.fx.GraphModule):
    """Layer norms are computed from the moments that they return."""
    for node in module.graph.find_nodes(op="call_function", target=_aten.native_layer_norm.default):
        dtypes = {x.meta["val"].dtype for x in node.all_input_nodes if isinstance(x.meta["val"], torch.Tensor)}
        if len(dtypes) == 1 and dtypes <= _FULL:
            node.target = _fused_layer_norm


def _fused_layer_norm(x, shape, weight, bias, eps):
    return fused_layer_norm(x, shape, weight, bias, eps)


_fused_layer_norm.takes_backplane = True


def join_before_merging(module: torch.fx.GraphModule):
    """cat([view(x, [*s, n * d]), ...], -1) becomes view(cat([x, ...], -2)): a join copies its operands, so they need not be row-major before."""
    for node in list(module.graph.find_nodes(op="call_function", target=_aten.cat.default)):
        parts = _merged_parts(node)
        if parts is None:
            continue
        with module.graph.inserting_before(node):
            joined = module.graph.call_function(_aten.cat.default, (parts, parts[0].meta["val"].dim() - 2))
            joined.meta["val"] = _aten.cat.default([x.meta["val"] for x in parts], joined.args[1])
            viewed = module.graph.call_function(_aten.view.default, (joined, list(node.meta["val"].shape)))
            viewed.meta["val"] = node.meta["val"]
        views = list(node.args[0])
        node.replace_all_uses_with(viewed)
        for unused in (node, *dict.fromkeys(views)):
            module.graph.erase_node(unused)


def _merged_parts(node):
    """What the operands of a join view, if each view only merges the last two axes; else None."""
    views = node.args[0]
    if not all(view.target == _aten.view.default and set(view.users) == {node} for view in views):
        return None
    parts = [view.args[0] for view in views]
    values, merged = [x.meta["val"] for x in parts], [view.meta["val"] for view in views]
    sizes = [*(n for x in (*values, *merged) for n in x.shape)]
    axis = node.args[1] if len(node.args) > 1 else 0
    if not all(type(n) is int for n in sizes) or axis not in (-1, merged[0].dim() - 1) or len({x.dtype for x in values}) > 1:
        return None
    fits = all(x.dim() == y.dim() + 1 and x.shape[:-2] == y.shape[:-1] and x.shape[-1] == values[0].shape[-1] for x, y in zip(values, merged))
    return parts if fits else None
