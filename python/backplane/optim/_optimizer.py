"""Optimizer: parameters in groups with their options, the tensors that an optimiser keeps of each, and the step over all of them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import Any, ClassVar

import backplane as bp
from backplane import Tensor

from .._transforms import _gradient_sync
from ..nn.modules._module_tree import Base
from ..nn._parameter import latest
from . import _optimizer_state, _whole_step

__all__ = ["Optimizer"]


class Optimizer:
    """The base class of the optimisers.

    params: tensors, pairs (name, tensor), or dicts, each a group with options of its own beside "params".
    A step changes the parameters in place: `step()` after `loss.backward()`, or `update(model, gradients)` with what
    bp.grad or bp.value_and_grad gave of the model. Both can be part of a compiled function (bp.compile with state=).
    `param_groups` are dicts of options, which may change at any time; `state` holds tensors by parameter.

    Errors: ArgumentTypeError and ArgumentValueError for parameters that are not tensors, not floating or given twice, and for options
        out of range.
    """

    rule: ClassVar[Any] = None

    def __init__(self, params: Any, defaults: dict[str, Any]) -> None:
        self.defaults = defaults
        self.param_groups: list[dict[str, Any]] = []
        self._group_count = 0  # what a compiled function reads: with the list's length it would guard every option
        self.state: dict[Tensor, dict[str, Any]] = defaultdict(dict)
        # The rates and momentums of the groups, and their other options, for a compiled function that may not read them as numbers.
        self._rates: Tensor | None = None
        self._fixed: list[Any] = []
        self._later: list[Any] | None = None  # in a trace of a compiled function: the schedulers' steps for the end of the call
        self._step_hooks: dict[str, list[Any]] = {"before": [], "after": []}
        if isinstance(params, Tensor):
            raise bp.ArgumentTypeError(f"{self._name()}: argument params: found a tensor, expected a list of them")
        if isinstance(params, Base):
            params = params.parameters()
        elif isinstance(params, dict):
            params = list(params.values())
        groups = list(params)
        if not groups:
            raise bp.ArgumentValueError(f"{self._name()}: argument params: found no parameters")
        for group in groups if isinstance(groups[0], dict) else [{"params": groups}]:
            self.add_param_group(group)

    def _name(self) -> str:
        return type(self).__name__

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Adds a dict of "params" and options; options that are absent there are those of the constructor."""
        given = param_group["params"]
        found = [given] if isinstance(given, Tensor) else list(given.parameters() if isinstance(given, Base) else given)
        names = [pair[0] for pair in found if isinstance(pair, tuple)]
        found = [pair[1] if isinstance(pair, tuple) else pair for pair in found]
        own = {x for group in self.param_groups for x in group["params"]}
        for x in found:
            if not isinstance(x, Tensor) or "floating" not in x.dtype.kind:
                kind = x.dtype.name if isinstance(x, Tensor) else type(x).__name__
                raise bp.ArgumentTypeError(f"{self._name()}: argument params: found {kind}, expected floating tensors")
            if not x.is_leaf:
                raise bp.ArgumentValueError(f"{self._name()}: argument params: found a tensor that is computed from others, expected leaves")
            if x in own:
                raise bp.ArgumentValueError(f"{self._name()}: argument params: found a parameter twice")
            own.add(x)
            if self.rule is not None:
                self.rule.check(x)
        group = {**self.defaults, **param_group, "params": found}
        if names:
            group["param_names"] = names
        self._check(group)
        self.param_groups.append(group)
        self._group_count = len(self.param_groups)

    def _parameters(self) -> list[Tensor]:
        return [p for i in range(self._group_count) for p in self.param_groups[i]["params"]]

    def _check(self, group: dict[str, Any]) -> None:
        _optimizer_state.check_options(self._name(), group)

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Removes the gradients of the parameters, or fills them with 0."""
        bp.unguarded(self._follow_moves)
        for p in self._parameters():
            p.grad = None if set_to_none or p.grad is None else bp.zeros_like(p.grad)

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Changes each parameter that has a gradient. closure: computes the loss and the gradients first; its result is returned."""
        loss = None
        if closure is not None:
            self._check_closure(closure)
            with bp.enable_grad():
                loss = closure()
        bp.unguarded(self._follow_moves)
        for hook in list(self._step_hooks["before"]):
            hook(self, (closure,), {})
        self._apply({p: p.grad for p in self._parameters() if p.grad is not None})
        for hook in list(self._step_hooks["after"]):
            hook(self, (closure,), {})
        return loss

    def _check_closure(self, closure: Any) -> None:
        """Refuses gradients: a module of gradients can be called, but it is not a function of the loss."""
        if isinstance(closure, Base) or not callable(closure):
            raise bp.ArgumentTypeError(
                f"{self._name()}.step: argument closure: found {type(closure).__name__}, expected a function that computes the loss. Fix: for gradients, call update(model, gradients)"
            )

    def update(self, model: Any, gradients: Any) -> None:
        """Changes the parameters of a model, in place, by gradients as bp.grad gives them.

        model: the module whose parameters the optimiser has, a list or a dict of them. gradients: a container of the same structure,
        a module of gradients, or a dict by name. Errors: ArgumentValueError for a parameter that the optimiser does not have.
        """
        bp.unguarded(self._follow_moves)
        own = set(self._parameters())
        by_id = {}
        for p, g in _optimizer_state.pairs(model, gradients):
            if g is None or not p.requires_grad:
                continue
            if p not in own:
                raise bp.ArgumentValueError(f"{self._name()}.update: argument model: found a parameter that the optimiser does not have")
            by_id[p] = g.detach()
        self._apply(by_id)

    def init_state(self) -> None:
        """Makes the tensors that the optimiser keeps of each parameter, which the first step does otherwise."""
        if self.rule is None:  # a class of the user's
            return
        self._follow_moves()
        for group in self.param_groups:
            self._start(group, [p for p in group["params"] if p.requires_grad])

    # ---- the step ---------------------------------------------------------------------------------------------------

    def _apply(self, gradients: dict[Any, Tensor], averaged: bool = False) -> None:
        if not averaged:
            gradients = _gradient_sync.averaged_values(gradients)
        with bp.no_grad():
            for index in range(self._group_count):
                group = self.param_groups[index]
                active = [p for p in group["params"] if p in gradients]
                if active:
                    self._apply_group(index, group, active, gradients)

    def _apply_group(self, index, group, active, gradients):
        for p in active:
            g = gradients[p]
            if tuple(g.shape) != tuple(p.shape):
                raise bp.ShapeError(f"{self._name()}: found a gradient of shape {tuple(g.shape)}, expected {tuple(p.shape)}, that of its parameter")
        for clock, params in self._clocks(group if self._rates is None else {**self._fixed[index], "params": group["params"]}, active):
            _whole_step.step(self, index, group, clock, params, [gradients[p] for p in params])

    def _start(self, group, params):
        """The state of parameters that have none yet: of all that begin together, one step."""
        rule, clock = self.rule, None
        for p in params:
            s = self.state.get(p)
            if s:
                if rule.uses_step(group) and "step" not in s:  # an option that needs it is new: the first step is over
                    s["step"] = bp.ones((), dtype=bp.float64, device=p.device)
                continue
            if s is None:  # assigned: a trace does not see the dict that defaultdict adds by itself
                s = self.state[p] = {}
            if rule.uses_step(group):
                clock = bp.zeros((), dtype=bp.float64, device=p.device) if clock is None else clock
                s["step"] = clock
            for name in rule.slots(group):
                s[name] = rule.start(name, p.detach(), group)

    def _clocks(self, group, active):
        """(counter of steps, the parameters that have it) of each counter; None for a rule that counts none."""
        rule = self.rule
        self._start(group, active)
        if not rule.uses_step(group):
            return [(None, active)]
        chosen = set(active)
        found: dict[Any, Tensor] = {}
        for p in active:
            found[self.state[p]["step"]] = self.state[p]["step"]
        rest = {p for p in group["params"] if p not in chosen}
        frozen = [s.get("step") for p, s in self.state.items() if p in rest] if rest else []  # a trace takes a look for a key as a read of it
        for step in list({x: x for x in frozen if x in found}.values()):  # others share it, who have no gradient now: it stays theirs
            found[step] = mine = bp.copy(step)
            for q in active:
                if self.state[q]["step"] is step:
                    self.state[q]["step"] = mine
        by_clock = [(clock, []) for clock in {x: x for x in found.values()}.values()]
        for p in active:
            for clock, params in by_clock:
                if self.state[p]["step"] is clock:
                    params.append(p)
        return by_clock

    def _follow_moves(self):
        """Takes the tensors that Module.to put in the place of parameters, and moves the state with them."""
        self._group_count = len(self.param_groups)
        for group in self.param_groups:
            for i, p in enumerate(group["params"]):
                new = latest(p)
                if new is not p:
                    group["params"][i] = new
                    if p in self.state:
                        self.state[new] = _optimizer_state.moved_state(self.state.pop(p), p, new)

    # ---- state ------------------------------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """{"state": {number of a parameter: its tensors}, "param_groups": options, parameters by number}: PyTorch's form."""
        return _optimizer_state.state_dict(self)

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes the state of such a dict, PyTorch's too. Nothing changes where an error is raised.

        Errors: ArgumentValueError where the groups differ in number or size.
        """
        _optimizer_state.load_state_dict(self, state_dict)

    def register_step_pre_hook(self, hook: Callable[..., Any]) -> Any:
        """hook(optimizer, args, kwargs) before each step()."""
        return _optimizer_state.add_hook(self._step_hooks["before"], hook)

    def register_step_post_hook(self, hook: Callable[..., Any]) -> Any:
        """hook(optimizer, args, kwargs) after each step()."""
        return _optimizer_state.add_hook(self._step_hooks["after"], hook)

    def __repr__(self) -> str:
        lines = [f"{self._name()} ("]
        for i, group in enumerate(self.param_groups):
            lines.append(f"Parameter Group {i}")
            lines += [f"    {name}: {group[name]}" for name in sorted(group) if name != "params"]
        return "\n".join([*lines, ")"])


