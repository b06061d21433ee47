"""Random numbers of a graph become inputs of it, which PyTorch draws at each call.

A compiled program then follows torch.manual_seed and draws what the uncompiled one draws. Operators that make a tensor of none and
have no row become inputs too: Backplane would take their results for constants.
"""

from __future__ import annotations

import torch

import backplane as bp

from ._host_steps import computed_on_host, is_host_factory, is_random

__all__ = ["lift_random"]

_aten = torch.ops.aten


def lift_random(module):
    """(a module with a placeholder behind the others per random node, functions of the inputs that draw a value for each).

    A node is lifted if it depends on the sizes of tensors alone; others keep their row, which draws from Backplane's generator.
    """
    nodes = [node for node in module.graph.nodes if is_random(node) or is_host_factory(node)]
    if not nodes:
        return module, []
    graph, draws, values = torch.fx.Graph(), [], {}
    placeholders = [node for node in module.graph.nodes if node.op == "placeholder"]
    lifted = [node for node in nodes if _drawn_from_shapes(node)]
    for node in placeholders:
        values[node] = graph.node_copy(node)
    drawn = {}
    for node in lifted:
        drawn[node] = graph.placeholder(node.name + "_drawn")
        drawn[node].meta = dict(node.meta)
        draws.append(_Draw(node, placeholders))
    for node in module.graph.nodes:
        if node in drawn and node.target is _aten.native_dropout.default:
            drawn[node].meta["val"] = node.meta["val"][1]
            values[node] = graph.call_function(dropped, (values[node.args[0]], drawn[node], node.args[1]))
            values[node].meta = dict(node.meta)
        elif node in drawn:
            values[node] = drawn[node]
        elif node not in values:
            values[node] = graph.node_copy(node, values.__getitem__)
    graph.eliminate_dead_code()
    return torch.fx.GraphModule(module, graph), draws


_OF_SHAPES = {_aten.rand_like.default, _aten.randn_like.default, _aten.bernoulli.p, _aten.randint_like.default, _aten.randint_like.low_dtype, _aten.rand.default,
              _aten.randn.default, _aten.randint.default, _aten.randint.low, _aten.randperm.default, _aten.uniform.default, _aten.normal_functional.default,
              _aten.exponential.default, _aten.geometric.default, _aten.cauchy.default, _aten.log_normal.default, _aten.random.default, _aten.random.to,
              getattr(_aten.random, "from")}  # fmt: skip


def dropped(x, kept, p):
    """native_dropout's two results, from the elements that are kept."""
    return x * (bp.ops.bp.cast(kept, x.dtype) * (1 / (1 - p))), kept


dropped.takes_backplane = True


def _draw_dropout(x, p, train):
    """The draws of PyTorch's CPU for a dropout: floats, from which the mask is made."""
    return torch.empty_like(x).bernoulli_(1 - p).bool()


def _drawn_from_shapes(node):
    if node.target is _aten.native_dropout.default:
        return node.args[2] is not False and 0 < node.args[1] < 1
    return (node.target in _OF_SHAPES or is_host_factory(node)) and all(isinstance(used.meta.get("val"), (torch.Tensor, torch.SymInt, int)) for used in node.all_input_nodes)


class _Draw:
    """Draws the value of one random node. Its tensors are empty, with the right layout; its sizes are computed from the inputs."""

    def __init__(self, node, placeholders):
        self._node = node
        self._symbols = {}
        for place, holder in enumerate(placeholders):
            value = holder.meta.get("val")
            if isinstance(value, torch.Tensor):
                for axis, size in enumerate(value.shape):
                    self._note(size, place, axis)
            else:
                self._note(value, place, None)

    def _note(self, size, place, axis):
        if isinstance(size, torch.SymInt) and size.node.expr.is_symbol:
            self._symbols.setdefault(size.node.expr, (place, axis))

    def __call__(self, inputs):
        known = {symbol: inputs[place] if axis is None else inputs[place].shape[axis] for symbol, (place, axis) in self._symbols.items()}
        size_of = lambda n: int(n.node.expr.subs(known)) if isinstance(n, torch.SymInt) else n  # noqa: E731

        def value(used):
            found = used.meta["val"]
            if not isinstance(found, torch.Tensor):
                return size_of(found)
            sizes = [size_of(n) for n in found.shape]
            if found.is_contiguous():
                return torch.empty((), dtype=found.dtype).expand(sizes)
            return torch.empty_strided(sizes, [size_of(n) for n in found.stride()], dtype=found.dtype)  # numbers are drawn in memory's order

        args = torch.fx.map_arg(self._node.args, value)
        kwargs = torch.fx.map_arg(self._node.kwargs, value)
        if is_host_factory(self._node):
            return computed_on_host(self._node.target, *args, **kwargs)
        target = _draw_dropout if self._node.target is _aten.native_dropout.default else self._node.target
        return target(*args, **kwargs)
