"""The step of an optimiser over many parameters: as one compiled call, which reads and writes each tensor once, or op by op."""

from __future__ import annotations

import weakref
from typing import Any

import backplane as bp

from .. import _core
from ._functional import like, momentum

__all__ = []

_MOST_CHANGES = 2  # of options: after more of them the steps of a group run op by op
HALF = ("float16", "bfloat16")  # numbers would be rounded to these first
_kept: weakref.WeakKeyDictionary[Any, dict[int, Any]] = weakref.WeakKeyDictionary()


class _Kept:
    """The compiled step of a group, and the options that it was made for."""

    def __init__(self, rule, options):
        self.options, self.changes = options, 0
        self.function = bp.compile(lambda moving, clock, params, grads, states, options: change(rule, options, moving, clock, params, grads, states))


def fixed_options(optimizer, group):
    """The options of a group without those that move from step to step, the rate and the momentum."""
    options = {word: value for word, value in group.items() if word in optimizer.defaults and word != "lr"}
    if "betas" in options:
        options["betas"] = (None, *options["betas"][1:])
    if "momentum" in options:
        options["momentum"] = bool(options["momentum"])
    return options


def moving_options(group):
    """(rate, momentum) as numbers; 0 where there is none."""
    return float(group["lr"]), float(momentum(group) or 0)


def change(rule, h, moving, clock, params, grads, states):
    """Counts the clock up, and changes parameters and their states in place. moving: (rate, momentum)."""
    if clock is not None:
        clock += 1
    numbers = rule.numbers(h, moving[0], 1 if clock is None else clock, moving[1])
    of_kind = {}
    for p, g, s in zip(params, grads, states):
        kind = (p.dtype, p.device)
        if kind not in of_kind:
            of_kind[kind] = {name: like(x, p) for name, x in numbers.items()}
        value, after = rule.apply(p, -g if h["maximize"] else g, s, of_kind[kind], h)
        p[...] = value
        for name, x in after.items():
            if x is not None:
                s[name][...] = x


def step(optimizer, index, group, clock, params, grads):
    """Changes the parameters of a group that share a clock."""
    states = [{name: x for name, x in optimizer.state[p].items() if name != "step"} for p in params]
    if optimizer._rates is not None:  # within compile(state=)
        bp.unguarded(_check_place, optimizer, index, group)
        change(optimizer.rule, optimizer._fixed[index], optimizer._rates[index], clock, params, grads, states)
        return
    kept = _kept_step(optimizer, index, group, clock, params) if bp.unguarded(_core.has_values, params[0]) else None
    if kept is None:
        change(optimizer.rule, group, (group["lr"], momentum(group)), clock, params, grads, states)
    else:
        moving = bp.asarray(moving_options(group), dtype=bp.float64, device=params[0].device)
        kept.function(moving, clock, params, [g.detach() for g in grads], states, kept.options)


def _check_place(optimizer, index, group):
    """Refuses a step of a compiled function that would be another one than the function's."""
    if optimizer._later is None:
        return
    if fixed_options(optimizer, group) != optimizer._fixed[index] or list(moving_options(group)) != optimizer._moving[index]:
        raise bp.ArgumentValueError(
            f"{type(optimizer).__name__}: found an option that the compiled function changed before the step, and which the step reads when the call "
            "begins. Fix: change it before the call, or with a scheduler behind the step"
        )
    if optimizer._later:
        raise bp.ArgumentValueError(
            f"{type(optimizer).__name__}: found a step of a scheduler before it in the compiled function, whose rate is set when the call ends. "
            "Fix: call the scheduler after the optimiser, or outside of the compiled function"
        )
    if is_in_control_flow():
        raise bp.ArgumentValueError(
            f"{type(optimizer).__name__}: found a step in a function of control flow that is compiled, which cannot change tensors from outside. "
            f"Fix: carry the parameters and the state of bp.optim.{type(optimizer).__name__.lower()} through the loop"
        )


def is_in_control_flow():
    """Is the innermost trace one of scan, while_loop or cond, and not of compile?"""
    found = _core.transforms_of(bp.asarray(0.0) + 1)
    return bool(found) and found[0] not in ("compile", "backward")


def _kept_step(optimizer, index, group, clock, params):
    """The compiled step; None: the step is better run op by op."""
    if len({p.device for p in params} | ({clock.device} if clock is not None else set())) > 1:
        return None  # a graph computes on one device
    if any(p.dtype.name in HALF for p in params) or isinstance(group["lr"], bp.Tensor):
        return None
    options = fixed_options(optimizer, group)
    if any(isinstance(x, bp.Tensor) for x in bp.tree.leaves(options)):
        return None
    groups = _kept.setdefault(optimizer, {})
    kept = groups.get(index)
    if kept is None:
        kept = groups[index] = _Kept(optimizer.rule, options)
    elif kept.options != options:
        kept.options, kept.changes = options, kept.changes + 1
    return kept if kept.changes <= _MOST_CHANGES else None
