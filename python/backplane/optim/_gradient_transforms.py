"""Functions of gradients with a state, which chain combines with optimisers that are pure functions, as in optax."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import backplane as bp
from backplane import Tensor

from ._functional import like

__all__ = ["GradientTransformation", "add_decayed_weights", "chain", "clip", "clip_by_global_norm", "identity", "scale", "scale_by_schedule", "set_to_zero", "zero_nans"]


class GradientTransformation(NamedTuple):
    """init(params) gives a state; update(updates, state, params) gives the changed updates and the next state.

    The pure optimisers (bp.optim.adam and the others) have the same two functions, and may be parts of a chain.
    """

    init: Callable[[Any], Any]
    update: Callable[..., tuple[Any, Any]]


def _is_number(x):
    return isinstance(x, Tensor) and "floating" in x.dtype.kind


def _stateless(change):
    """A transformation of each floating tensor: change(update, parameter or None)."""

    def update(updates, state, params=None):
        if params is None:
            return bp.tree.map(lambda u: change(u, None) if _is_number(u) else u, updates), state
        return bp.tree.map(lambda u, p: change(u, p) if _is_number(u) else u, updates, params), state

    return GradientTransformation(lambda params: (), update)


def chain(*transforms: Any) -> GradientTransformation:
    """One transformation after the other; their states are a tuple.

    Example:
        >>> optimizer = bp.optim.chain(bp.optim.clip_by_global_norm(1.0), bp.optim.adam(lr=0.1))
        >>> params = {"w": bp.ones(3)}
        >>> state = optimizer.init(params)
        >>> updates, state = optimizer.update({"w": bp.ones(3)}, state, params)
        >>> bp.optim.apply_updates(params, updates)["w"]
        tensor([0.9, 0.9, 0.9])
    """
    for part in transforms:
        if not (hasattr(part, "init") and hasattr(part, "update")):
            raise bp.ArgumentTypeError(f"chain: found {type(part).__name__}, expected transformations with init and update, as bp.optim.adam(lr=1e-3)")

    def init(params):
        return tuple(part.init(params) for part in transforms)

    def update(updates, state, params=None):
        if len(state) != len(transforms):
            raise bp.ArgumentValueError(f"chain: argument state: found {len(state)} states, expected {len(transforms)}, those that init made")
        after = []
        for part, own in zip(transforms, state):
            updates, own = part.update(updates, own, params)
            after.append(own)
        return updates, tuple(after)

    return GradientTransformation(init, update)


def clip(max_delta: float) -> GradientTransformation:
    """Each element within -max_delta and max_delta."""
    return _stateless(lambda u, p: bp.clip(u, like(-max_delta, u), like(max_delta, u)))


def scale(step_size: float) -> GradientTransformation:
    """Times a number."""
    return _stateless(lambda u, p: u * like(step_size, u))


def identity() -> GradientTransformation:
    """No change."""
    return GradientTransformation(lambda params: (), lambda updates, state, params=None: (updates, state))


def set_to_zero() -> GradientTransformation:
    """0 in the place of every gradient: the parameters stay as they are."""
    return _stateless(lambda u, p: bp.zeros_like(u))


def zero_nans() -> GradientTransformation:
    """0 in the place of NaN."""
    return _stateless(lambda u, p: bp.where(bp.isnan(u), 0, u))


def add_decayed_weights(weight_decay: float) -> GradientTransformation:
    """Adds weight_decay times the parameters. Errors: ArgumentValueError without params."""

    def change(u, p):
        if p is None:
            raise bp.ArgumentValueError("add_decayed_weights: argument params: found None, expected the parameters")
        return u + like(weight_decay, u) * p

    return _stateless(change)


def clip_by_global_norm(max_norm: float) -> GradientTransformation:
    """Scales all tensors together, so that their norm is at most max_norm."""

    def update(updates, state, params=None):
        found = [u for u in bp.tree.leaves(updates) if _is_number(u)]
        if not found:
            return updates, state
        first = found[0]
        norm = bp.linalg.vector_norm(bp.stack([bp.linalg.vector_norm(u).to(first.device).astype(first.dtype) for u in found]))
        share = bp.where(norm > max_norm, max_norm / bp.where(norm > max_norm, norm, 1), 1)
        return bp.tree.map(lambda u: u * share.to(u.device).astype(u.dtype) if _is_number(u) else u, updates), state

    return GradientTransformation(lambda params: (), update)


def scale_by_schedule(step_size_fn: Callable[[Any], Any]) -> GradientTransformation:
    """Times a function of the step's number, of `bp.optim.schedules` for example; the state is the number."""

    def update(updates, state, params=None):
        size = step_size_fn(state)
        size = size if isinstance(size, Tensor) else bp.asarray(size, dtype=bp.float64)
        return bp.tree.map(lambda u: u * size.to(u.device).astype(u.dtype) if _is_number(u) else u, updates), state + 1

    return GradientTransformation(lambda params: bp.asarray(0.0, dtype=bp.float64), update)
