"""An optimiser's state as a dict and back, its options checked, and gradients matched with parameters."""

from __future__ import annotations

import math
from typing import Any

import backplane as bp
from backplane import Tensor

from ..nn.modules._module_hooks import HookHandle
from ..nn.modules._module_tree import Base, own_tensors

__all__ = []

_POSITIVE = ("lr", "eps", "weight_decay", "lr_decay", "momentum_decay", "initial_accumulator_value", "momentum")
_LATER = ("maximize", "decoupled_weight_decay")  # options that states of older versions of PyTorch do not have


def check_options(name, group):
    for option in _POSITIVE:
        value = group.get(option)
        if isinstance(value, (int, float)) and not (value >= 0 and math.isfinite(value)):
            raise bp.ArgumentValueError(f"{name}: argument {option}: found {value}, expected a number of at least 0")
    for i, beta in enumerate(group.get("betas", ())):
        if not isinstance(beta, Tensor) and not 0 <= beta < 1:
            raise bp.ArgumentValueError(f"{name}: argument betas: found {beta} at {i}, expected at least 0 and below 1")
    for option in ("rho", "alpha"):
        if option in group and not 0 <= group[option] <= 1:
            raise bp.ArgumentValueError(f"{name}: argument {option}: found {group[option]}, expected a number from 0 to 1")
    if group.get("nesterov") and "dampening" in group and (group["momentum"] <= 0 or group["dampening"] != 0):
        raise bp.ArgumentValueError(f"{name}: argument nesterov: found True, expected it with a momentum and without dampening")


def pairs(model, gradients):
    """(parameter, gradient or None) of a module or a container of parameters."""
    if isinstance(model, Base):
        if isinstance(gradients, dict):
            return [(p, gradients.get(name)) for name, p in model.named_parameters()]
        if not isinstance(gradients, Base):
            raise bp.ArgumentTypeError(f"update: argument gradients: found {type(gradients).__name__}, expected a module of gradients, or a dict by name")
        named = {}
        for start, owner in gradients.named_modules(remove_duplicate=False):
            named.update({f"{start}.{path}" if start else path: x for path, x in own_tensors(owner)})
        return [(p, named.get(name)) for name, p in model.named_parameters()]
    parameters, structure = bp.tree.flatten(model)
    found, own = bp.tree.flatten(gradients, is_leaf=lambda x: isinstance(x, type(None)))
    if len(parameters) != len(found):
        raise bp.ArgumentValueError(f"update: argument gradients: found {own}, expected {structure}")
    return list(zip(parameters, found))


def moved_state(state, old, new):
    """The state on the device of the moved parameter; tensors of the parameter's shape also get its dtype."""
    moved = {}
    for name, x in state.items():
        if isinstance(x, Tensor) and name != "step":
            x = x.to(new.device)
            x = x.astype(new.dtype) if x.dtype == old.dtype else x
        moved[name] = x
    return moved


def add_hook(hooks, hook):
    entry = [hook]

    def call(*args):
        return entry[0](*args)

    hooks.append(call)
    return HookHandle(hooks, call)


def state_dict(optimizer):
    numbers, groups = {}, []
    optimizer._follow_moves()
    for group in optimizer.param_groups:
        for p in group["params"]:
            numbers[p] = len(numbers)
        groups.append({**{name: value for name, value in group.items() if name != "params"}, "params": [numbers[p] for p in group["params"]]})
    state = {number: _detached(optimizer.state[p]) for p, number in numbers.items() if optimizer.state.get(p)}
    return {"state": state, "param_groups": groups}


def _detached(state):
    return {name: x.detach() if isinstance(x, Tensor) else x for name, x in state.items()}


def load_state_dict(optimizer, given):
    groups, own = given["param_groups"], optimizer.param_groups
    if len(groups) != len(own) or any(len(a["params"]) != len(b["params"]) for a, b in zip(groups, own)):
        found = [len(group["params"]) for group in groups]
        expected = [len(group["params"]) for group in own]
        raise bp.ArgumentValueError(f"load_state_dict: found groups of {found} parameters, expected {expected}")
    optimizer._follow_moves()
    _check_kind(optimizer, groups)
    clocks: dict[Any, Tensor] = {}
    states = {}
    for i, (theirs, ours) in enumerate(zip(groups, own)):
        options = {**ours, **{name: value for name, value in theirs.items() if name != "params"}}
        for number, p in zip(theirs["params"], ours["params"]):
            found = given["state"].get(number, given["state"].get(str(number)))
            if found is not None:
                states[p] = {name: _loaded(name, x, p, clocks, i) for name, x in found.items()}
                _complete(optimizer, states[p], p, options)
    for theirs, ours in zip(groups, own):
        ours.update({name: _copied(value) for name, value in theirs.items() if name != "params"})
    optimizer.state.clear()
    optimizer.state.update(states)


def _check_kind(optimizer, groups):
    """Refuses groups of another kind of optimiser, which lack options of this one."""
    for group in groups:
        if missing := [name for name in optimizer.defaults if name not in group and name not in _LATER]:
            found = ", ".join(name for name in group if name != "params")
            raise bp.ArgumentValueError(
                f"load_state_dict: argument state_dict: found a group with the options {found}, expected those of {optimizer._name()}: "
                f"{', '.join(missing)} missing. Fix: load it into an optimiser of the class that it was saved from"
            )


def _copied(value):
    return list(value) if isinstance(value, list) else value


def _loaded(name, x, p, clocks, group):
    """A copy of a tensor of a state; counters of equal value in a group become one."""
    if name == "step":
        value = float(x)
        return clocks.setdefault((group, value), bp.asarray(value, dtype=bp.float64, device=p.device))
    if not isinstance(x, Tensor) and not hasattr(x, "__dlpack__"):
        return x
    x = bp.asarray(x).detach()
    x = x.astype(p.dtype) if "floating" in x.dtype.kind else x
    return bp.copy(x.to(p.device))


def _complete(optimizer, state, p, options):
    """Tensors that another version of the optimiser does not keep, as before the first step."""
    rule = optimizer.rule
    if rule is None:
        return
    slots = rule.slots(options)
    missing = [name for name in slots if name not in state]
    foreign = [name for name, x in state.items() if isinstance(x, Tensor) and name not in (*slots, "step")]
    if missing and foreign:
        raise bp.ArgumentValueError(
            f"load_state_dict: argument state_dict: found {', '.join(foreign)} of a parameter, expected {', '.join(slots)}, which {optimizer._name()} "
            "keeps. Fix: load it into an optimiser of the class that it was saved from"
        )
    for name in slots:
        if state.get(name) is None:
            state[name] = rule.start(name, p.detach(), options)
        elif tuple(state[name].shape) not in (tuple(p.shape), ()) and rule.start(name, p.detach(), options).shape != state[name].shape:
            raise bp.ArgumentValueError(f"load_state_dict: {name}: found shape {tuple(state[name].shape)} for a parameter of shape {tuple(p.shape)}")
    if rule.uses_step(options) and "step" not in state:
        state["step"] = bp.asarray(2.0, dtype=bp.float64)  # a buffer is there, so the first step was done
