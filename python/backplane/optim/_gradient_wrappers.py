"""Transformations of gradients that apply others: to some of the parameters, to each group its own, once in several steps, with changing options."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import backplane as bp
from backplane import Tensor

from .._calls._value_checks import is_readable
from ..nn.modules._module_tree import Base, leaf_names
from ._functional import parts
from ._gradient_transforms import GradientTransformation

__all__ = [
    "InjectHyperparamsState", "MaskedState", "MultiSteps", "MultiStepsState", "PartitionState", "inject_hyperparams", "masked", "multi_transform",
]  # fmt: skip


def _is_none(x):
    return x is None


def _label_of(name, labels, function, argument):
    """The label that names the parameter, or the innermost module around it."""
    whole = name
    while name not in labels:
        name, dot, _ = name.rpartition(".")
        if not dot:
            raise bp.ArgumentValueError(f"{function}: argument {argument}: found nothing for the parameter {whole!r}, expected its name or that of a module around it")
    return labels[name]


def _spread(function: str, argument: str, given: Any, params: Any) -> list[Any]:
    """What a container of labels, or a function that makes one, says of each leaf of params. A label stands for all leaves of its place."""
    given = given(params) if callable(given) else given
    if isinstance(params, Base) and isinstance(given, Mapping):
        return [_label_of(name, given, function, argument) for name in leaf_names(params)]
    found: list[Any] = []
    try:
        bp.tree.map(lambda label, part: found.extend([label] * len(bp.tree.leaves(part))), given, params)
    except ValueError as error:
        fix = "; for a module, write a dict of names" if isinstance(params, Base) else ""
        raise bp.ArgumentValueError(f"{function}: argument {argument}: expected a container with the structure of the parameters, or of its outer levels{fix}: {error}") from None
    return found


def _leaves(updates, params):
    """(the updates as a list, the structure of the result)."""
    if params is None:
        return bp.tree.flatten(updates, is_leaf=_is_none)
    return parts(updates, params), bp.tree.structure(params)


def _joined(structure, updates, params):
    """The updates in the structure of params, with zeros for parameters without a gradient."""
    if params is not None:
        updates = [(bp.zeros_like(p) if isinstance(p, Tensor) else p) if u is None else u for u, p in zip(updates, bp.tree.leaves(params))]
    return bp.tree.unflatten(structure, updates)


class MaskedState(NamedTuple):
    """The state of masked: the state of the inner transformation for the list of the chosen parameters."""

    inner_state: Any


class PartitionState(NamedTuple):
    """The state of multi_transform: for each label the state of its transformation, for the list of the label's parameters."""

    inner_states: dict[Any, Any]


def multi_transform(transforms: Mapping[Any, Any], param_labels: Any) -> GradientTransformation:
    """Applies to each group of parameters a transformation of its own.

    transforms: a transformation by label. param_labels: a container of labels with the structure of the parameters, where one label may stand
    for a whole part; a dict of names for a module; or a function of the parameters that returns one of these.
    Errors: ArgumentValueError for a label without a transformation, and for labels of another structure.

    Example:
        >>> params = {"body": bp.ones(2), "head": bp.ones(2)}
        >>> optimizer = bp.optim.multi_transform({"train": bp.optim.sgd(lr=0.5), "freeze": bp.optim.set_to_zero()}, {"body": "freeze", "head": "train"})
        >>> updates, state = optimizer.update({"body": bp.ones(2), "head": bp.ones(2)}, optimizer.init(params), params)
        >>> updates
        {'body': tensor([0., 0.]), 'head': tensor([-0.5, -0.5])}
    """

    def groups(params):
        found: dict[Any, list[int]] = {label: [] for label in transforms}
        for i, label in enumerate(_spread("multi_transform", "param_labels", param_labels, params)):
            if label not in found:
                raise bp.ArgumentValueError(f"multi_transform: argument param_labels: found {label!r}, expected one of {', '.join(map(repr, transforms))}")
            found[label].append(i)
        return found

    def init(params):
        leaves = bp.tree.leaves(params)
        return PartitionState({label: transforms[label].init([leaves[i] for i in places]) for label, places in groups(params).items()})

    def update(updates, state, params=None):
        before, structure = _leaves(updates, params)
        own = None if params is None else bp.tree.leaves(params)
        after, states = list(before), {}
        for label, places in groups(updates if params is None else params).items():
            chosen = None if own is None else [own[i] for i in places]
            changed, states[label] = transforms[label].update([before[i] for i in places], state.inner_states[label], chosen)
            for i, u in zip(places, bp.tree.leaves(changed, is_leaf=_is_none)):
                after[i] = u
        return _joined(structure, after, params), PartitionState(states)

    return GradientTransformation(init, update)


def masked(inner: Any, mask: Any) -> GradientTransformation:
    """Applies a transformation to the parameters for which mask is True; the gradients of the others stay as they are.

    mask: a container of bools with the structure of the parameters, where one bool may stand for a whole part; a dict of names for a module;
    or a function of the parameters that returns one of these. Errors: ArgumentValueError for another structure.

    Example:
        >>> decay = bp.optim.masked(bp.optim.add_decayed_weights(0.5), lambda params: bp.tree.map(lambda p: p.ndim > 1, params))
        >>> params = [bp.ones((1, 2)), bp.ones(2)]
        >>> decay.update([bp.zeros((1, 2)), bp.zeros(2)], decay.init(params), params)[0]
        [tensor([[0.5, 0.5]]), tensor([0., 0.])]
    """

    def chosen(params):
        return [i for i, one in enumerate(_spread("masked", "mask", mask, params)) if one]

    def init(params):
        leaves = bp.tree.leaves(params)
        return MaskedState(inner.init([leaves[i] for i in chosen(params)]))

    def update(updates, state, params=None):
        after, structure = _leaves(updates, params)
        places = chosen(updates if params is None else params)
        own = None if params is None else [bp.tree.leaves(params)[i] for i in places]
        changed, new = inner.update([after[i] for i in places], state.inner_state, own)
        for i, u in zip(places, bp.tree.leaves(changed, is_leaf=_is_none)):
            after[i] = u
        return _joined(structure, after, params), MaskedState(new)

    return GradientTransformation(init, update)


class MultiStepsState(NamedTuple):
    """mini_step: the gradients since the last update. gradient_step: the updates so far. acc_grads: their mean, or sum; of half floats in float32."""

    mini_step: Tensor
    gradient_step: Tensor
    inner_opt_state: Any
    acc_grads: Any


class MultiSteps:
    """Collects the gradients of several steps, and updates the parameters with their mean: a large batch in parts. The updates between are 0.

    every_k_schedule: the number of steps, or a function of the number of updates so far. use_grad_mean=False: the sum instead of the mean.

    Example:
        >>> optimizer = bp.optim.MultiSteps(bp.optim.sgd(lr=1.0), every_k_schedule=2)
        >>> params = bp.zeros(1)
        >>> state = optimizer.init(params)
        >>> updates, state = optimizer.update(bp.asarray([1.0]), state, params)
        >>> after, state = optimizer.update(bp.asarray([3.0]), state, params)
        >>> updates, after, optimizer.has_updated(state)
        (tensor([0.]), tensor([-2.]), tensor(True))
    """

    def __init__(self, opt: Any, every_k_schedule: int | Callable[[Any], Any], use_grad_mean: bool = True) -> None:
        if not (hasattr(opt, "init") and hasattr(opt, "update")):
            raise bp.ArgumentTypeError(f"MultiSteps: argument opt: found {type(opt).__name__}, expected a transformation with init and update, as bp.optim.adam(lr=1e-3)")
        if not callable(every_k_schedule) and every_k_schedule < 1:
            raise bp.ArgumentValueError(f"MultiSteps: argument every_k_schedule: found {every_k_schedule}, expected an int of at least 1")
        self._opt, self._every, self._mean = opt, every_k_schedule, use_grad_mean

    def init(self, params: Any) -> MultiStepsState:
        zero = bp.asarray(0, dtype=bp.int64)
        collected = bp.tree.map(lambda p: bp.zeros_like(p.detach(), dtype=_wide(p)) if isinstance(p, Tensor) else p, params)
        return MultiStepsState(zero, zero, self._opt.init(params), collected)

    def _collected(self, gradient, before, count):
        if gradient is None or not isinstance(before, Tensor) or "floating" not in before.dtype.kind:
            return before
        if not self._mean:
            return before + gradient
        return before + (gradient - before) / count.astype(before.dtype).to(before.device)

    def update(self, updates: Any, state: MultiStepsState, params: Any = None) -> tuple[Any, MultiStepsState]:
        gradients, structure = _leaves(updates, params)
        count = state.mini_step + 1
        collected = [self._collected(g, before, count) for g, before in zip(gradients, bp.tree.leaves(state.acc_grads))]
        every = self._every(state.gradient_step) if callable(self._every) else self._every
        is_last = count >= every
        if is_readable(is_last) and not bool(is_last):
            nothing = bp.tree.unflatten(structure, [_as_before(_zero(x), g) for x, g in zip(collected, gradients)])
            return nothing, state._replace(mini_step=count, acc_grads=bp.tree.unflatten(structure, collected))
        mean = [_as_before(x, g) for x, g in zip(collected, gradients)]
        found, inner = self._opt.update(bp.tree.unflatten(structure, mean), state.inner_opt_state, params)
        found = bp.tree.map(lambda u: _chosen(is_last, u, _zero(u)), found)
        inner = bp.tree.map(lambda new, old: _chosen(is_last, new, old), inner, state.inner_opt_state)
        left = bp.tree.unflatten(structure, [_chosen(is_last, _zero(x), x) for x in collected])
        mini = bp.where(is_last, bp.zeros_like(count), count)
        return found, MultiStepsState(mini, state.gradient_step + is_last.astype(bp.int64), inner, left)

    def has_updated(self, state: MultiStepsState) -> Tensor:
        """Whether the last call of update changed the parameters, as a bool tensor."""
        return (state.mini_step == 0) & (state.gradient_step > 0)

    def gradient_transformation(self) -> GradientTransformation:
        return GradientTransformation(self.init, self.update)


def _wide(p):
    """The dtype in which gradients of a parameter are summed."""
    return bp.float32 if p.dtype in (bp.float16, bp.bfloat16) else p.dtype


def _zero(x):
    return bp.zeros_like(x) if isinstance(x, Tensor) else x


def _chosen(is_last, new, old):
    return bp.where(is_last.to(new.device), new, old) if isinstance(new, Tensor) else new


class InjectHyperparamsState(NamedTuple):
    """count: the steps so far. hyperparams: the options of the next step by name, which a program may replace. inner_state: the optimiser's."""

    count: Tensor  # type: ignore[assignment]
    hyperparams: dict[str, Any]
    inner_state: Any


def inject_hyperparams(inner_factory: Callable[..., Any], static_args: str | Iterable[str] = ()) -> Callable[..., GradientTransformation]:
    """Makes the numbers with which an optimiser is called a part of its state, so that a program can read and change them between steps.

    Numbers, tensors and schedules (functions of the step's number) among the arguments are in `state.hyperparams`; the schedules are followed.
    static_args: names of arguments that stay as they are, as those on which the optimiser branches.

    Example:
        >>> optimizer = bp.optim.inject_hyperparams(bp.optim.sgd)(lr=0.5)
        >>> state = optimizer.init(bp.zeros(1))
        >>> state.hyperparams["lr"] = 0.25
        >>> optimizer.update(bp.ones(1), state, bp.zeros(1))[0]
        tensor([-0.25])
    """
    fixed = {static_args} if isinstance(static_args, str) else set(static_args)
    signature = inspect.signature(inner_factory)
    unknown = fixed - set(signature.parameters)
    if unknown:
        raise bp.ArgumentValueError(f"inject_hyperparams: argument static_args: found {sorted(unknown)}, expected names among {', '.join(signature.parameters)}")

    @functools.wraps(inner_factory)
    def wrapped(*args: Any, **kwargs: Any) -> GradientTransformation:
        given = dict(signature.bind(*args, **kwargs).arguments)
        for parameter in signature.parameters.values():
            if parameter.kind is parameter.VAR_POSITIONAL and parameter.name in given:
                raise bp.ArgumentTypeError(f"inject_hyperparams: found positional arguments of *{parameter.name}, expected arguments by name")
            if parameter.kind is parameter.VAR_KEYWORD:
                given |= given.pop(parameter.name, {})
        numbers: dict[str, Any] = {}
        schedules: dict[str, Any] = {}
        rest: dict[str, Any] = {}
        for name, x in given.items():
            if name in fixed or isinstance(x, bool):
                rest[name] = x
            elif callable(x):
                schedules[name] = x
            elif isinstance(x, int | float | Tensor):
                numbers[name] = x
            else:
                rest[name] = x

        def current(count, before):
            values = {name: before.get(name, x) for name, x in numbers.items()}
            values |= {name: schedule(count) for name, schedule in schedules.items()}
            return {name: x if isinstance(x, Tensor) else bp.asarray(x, dtype=bp.float64) for name, x in values.items()}

        def init(params):
            count = bp.asarray(0, dtype=bp.int64)
            values = current(count, {})
            return InjectHyperparamsState(count, values, inner_factory(**rest, **values).init(params))

        def update(updates, state, params=None):
            values = current(state.count, state.hyperparams)
            found, inner = inner_factory(**rest, **values).update(updates, state.inner_state, params)
            found = bp.tree.map(_as_before, found, updates if params is None else params)
            inner = bp.tree.map(_as_before, inner, state.inner_state)
            return found, InjectHyperparamsState(state.count + 1, values, inner)

        return GradientTransformation(init, update)

    return wrapped


def _as_before(new, old):
    """A tensor in the dtype of the one in its place: numbers of the state are float64, parameters may not be."""
    return new.astype(old.dtype) if isinstance(new, Tensor) and isinstance(old, Tensor) and new.dtype != old.dtype else new
