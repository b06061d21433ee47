"""Optimisers as pure functions: init(params) gives a state, update(grads, state, params) gives updates and the next state."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import backplane as bp
from backplane import Tensor

from .._transforms import _gradient_sync
from ..nn.modules._module_tree import Base, leaf_names


__all__ = ["Functional", "apply_updates"]


class Functional(NamedTuple):
    """An optimiser without a state of its own, for containers of tensors, modules among them.

    Example:
        >>> adam = bp.optim.adam(lr=0.1)
        >>> params = {"w": bp.ones(3)}
        >>> state = adam.init(params)
        >>> updates, state = adam.update({"w": bp.ones(3)}, state, params)
        >>> bp.optim.apply_updates(params, updates)["w"]
        tensor([0.9, 0.9, 0.9])
    """

    rule: Any
    options: dict[str, Any]

    def init(self, params: Any) -> dict[str, Any]:
        """The state before the first step: {"step": 0, name: a container like params}."""
        slots = self.rule.slots(self.options)
        return {"step": bp.asarray(0.0, dtype=bp.float64), **{name: bp.tree.map(lambda p: self._start(name, p), params) for name in slots}}

    def _start(self, name, p):
        if not isinstance(p, Tensor) or "floating" not in p.dtype.kind:
            return p
        self.rule.check(p)
        value = self.rule.start(name, p.detach(), self.options)
        return bp.zeros((), dtype=p.dtype, device=p.device) if value is None else value  # of a tensor that the rule does not keep

    def update(self, grads: Any, state: dict[str, Any], params: Any, *, lr: float | Tensor | Callable[[Any], Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """(what to add to the parameters, the next state). lr replaces the learning rate of the constructor.

        A learning rate may be a function of the step's number, from 0 on, as those of `bp.optim.schedules`.
        """
        h = self.options
        t = state["step"] + 1
        lr = h["lr"] if lr is None else lr
        numbers = self.rule.numbers(h, lr(state["step"]) if callable(lr) else lr, t, momentum(h))
        leaves, structure = bp.tree.flatten(params)
        gradients = parts(grads, params)
        if _gradient_sync.average is not None:
            given = [i for i, g in enumerate(gradients) if g is not None]
            for i, mean in zip(given, _gradient_sync.averaged([gradients[i] for i in given])):
                gradients[i] = mean
        names = self.rule.slots(h)
        kept = {name: bp.tree.leaves(state[name]) for name in names}
        updates, new = [], {name: [] for name in names}
        for i, (p, g) in enumerate(zip(leaves, gradients)):
            s = {name: kept[name][i] for name in names}
            if g is None:
                update, after = (bp.zeros_like(p) if isinstance(p, Tensor) else p), s
            else:
                value, after = self.rule.apply(p, -g if h["maximize"] else g, s, {name: like(x, p) for name, x in numbers.items()}, h)
                update = value - p
            updates.append(update)
            for name in names:
                new[name].append(s[name] if after[name] is None else after[name])
        state = {"step": t, **{name: bp.tree.unflatten(structure, new[name]) for name in names}}
        return bp.tree.unflatten(structure, updates), state


def parts(grads, params):
    """The gradient of each leaf of params, or None: grads has the structure of params, or is the module that grad gives of one."""
    if isinstance(params, Base):
        named = grads if isinstance(grads, dict) else dict(zip(leaf_names(grads), bp.tree.leaves(grads)))
        return [named.get(name) for name in leaf_names(params)]
    leaves, structure = bp.tree.flatten(params)
    found, own = bp.tree.flatten(grads, is_leaf=lambda x: isinstance(x, type(None)))
    if len(found) != len(leaves):
        raise bp.ArgumentValueError(f"update: argument grads: found {own}, expected {structure}, the structure of params")
    return found


def momentum(h):
    """The momentum of a group of options, which is the first of its betas; None: it has none."""
    return h["betas"][0] if "betas" in h else h.get("momentum")


def like(x, p):
    """A number that is a tensor, in the dtype and on the device of a parameter."""
    return x.astype(p.dtype).to(p.device) if isinstance(x, Tensor) else x


def apply_updates(params: Any, updates: Any) -> Any:
    """params + updates, leaf by leaf."""
    return bp.tree.map(lambda p, u: p + u if isinstance(p, Tensor) and "floating" in p.dtype.kind else p, params, updates)


def make(rule, defaults):
    return Functional(rule, {"maximize": False, **defaults})


