"""Constraint, the base class, constraints of numbers, and those that are made of another one or that only a distribution knows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import backplane as bp
from backplane import Tensor


class Constraint:
    """A set of values. check(value) says for each value whether it belongs to the set.

    event_dim: how many axes of a tensor, from the last one, are one value. is_discrete: whether the values are integers.
    A subclass defines `check`, which returns bools of the shape of value without the axes of a value.
    """

    is_discrete: Any = False
    event_dim: Any = 0

    def check(self, value: Tensor) -> Tensor:
        raise NotImplementedError(f"{type(self).__name__}: check is not defined; define it in the subclass")

    def __repr__(self) -> str:
        arguments = ", ".join(f"{name}={x}" for name, x in vars(self).items())
        return f"{type(self).__name__}({arguments})"


_UNKNOWN = object()


class Dependent(Constraint):
    """The constraint of a parameter that other parameters decide, seen from the class: check raises ArgumentValueError."""

    def __init__(self, *, is_discrete: Any = _UNKNOWN, event_dim: Any = _UNKNOWN) -> None:
        self._facts = {"is_discrete": is_discrete, "event_dim": event_dim}

    def _fact(self, name: str) -> Any:
        if self._facts[name] is _UNKNOWN:
            raise NotImplementedError(f"{type(self).__name__}: {name} is known for a distribution, not for its class")
        return self._facts[name]

    @property
    def is_discrete(self) -> bool:
        return self._fact("is_discrete")

    @property
    def event_dim(self) -> int:
        return self._fact("event_dim")

    def __call__(self, *, is_discrete: Any = _UNKNOWN, event_dim: Any = _UNKNOWN) -> Dependent:
        """The same with these facts."""
        given = {"is_discrete": is_discrete, "event_dim": event_dim}
        return Dependent(**{name: self._facts[name] if x is _UNKNOWN else x for name, x in given.items()})

    def check(self, value: Tensor) -> Tensor:
        raise bp.ArgumentValueError("dependent.check: the constraint depends on the parameters of a distribution; read it from the distribution, not from its class")

    def __repr__(self) -> str:
        return "Dependent()"


class dependent_property(property, Dependent):
    """A property that is a constraint of each distribution; read from the class, it is `dependent`.

    Write it with or without the facts: @dependent_property, or @dependent_property(is_discrete=False, event_dim=0).
    """

    def __init__(self, fn: Callable[[Any], Any] | None = None, *, is_discrete: Any = _UNKNOWN, event_dim: Any = _UNKNOWN) -> None:
        property.__init__(self, fn)
        Dependent.__init__(self, is_discrete=is_discrete, event_dim=event_dim)

    def __call__(self, fn: Callable[[Any], Any]) -> dependent_property:  # type: ignore[override]
        return dependent_property(fn, **self._facts)


def is_dependent(constraint: Any) -> bool:
    """Whether only a distribution, and not its class, knows the constraint."""
    return isinstance(constraint, Dependent)


def require_constraint(name: str, found: Any) -> Constraint:
    if not isinstance(found, Constraint):
        raise bp.ArgumentTypeError(f"{name}: found {type(found).__name__}, expected a constraint, as constraints.positive or constraints.interval(0.0, 1.0)")
    return found


def all_last(good: Tensor, count: int) -> Tensor:
    """Whether all bools of the last `count` axes are true."""
    return bp.all(good, axis=list(range(-count, 0))) if count else good


class _OfAnother(Constraint):
    """A constraint that applies another one."""

    base_constraint: Constraint

    @property
    def is_discrete(self) -> bool:
        return self.base_constraint.is_discrete

    @property
    def event_dim(self) -> int:
        return self.base_constraint.event_dim


class IndependentConstraint(_OfAnother):
    """Another constraint, which all values along the last reinterpreted_batch_ndims axes of the batch fulfil. Errors: ShapeError for too few axes."""

    def __init__(self, base_constraint: Constraint, reinterpreted_batch_ndims: int) -> None:
        self.base_constraint = require_constraint("independent", base_constraint)
        if reinterpreted_batch_ndims < 0:
            raise bp.ArgumentValueError(f"independent: argument reinterpreted_batch_ndims: found {reinterpreted_batch_ndims}, expected an int of at least 0")
        self.reinterpreted_batch_ndims = int(reinterpreted_batch_ndims)

    @property
    def event_dim(self) -> int:
        return self.base_constraint.event_dim + self.reinterpreted_batch_ndims

    def check(self, value: Tensor) -> Tensor:
        if value.ndim < self.event_dim:
            raise bp.ShapeError(f"{self!r}.check: found a value of {value.ndim} axes, expected at least {self.event_dim}")
        return all_last(self.base_constraint.check(value), self.reinterpreted_batch_ndims)

    def __repr__(self) -> str:
        return f"IndependentConstraint({self.base_constraint!r}, {self.reinterpreted_batch_ndims})"


class MixtureSameFamilyConstraint(_OfAnother):
    """The constraint of a mixture's components, which a value of the mixture fulfils for each component."""

    def __init__(self, base_constraint: Constraint) -> None:
        self.base_constraint = require_constraint("MixtureSameFamilyConstraint", base_constraint)

    def check(self, value: Tensor) -> Tensor:
        if value.ndim < self.event_dim:
            raise bp.ShapeError(f"{self!r}.check: found a value of {value.ndim} axes, expected at least {self.event_dim}")
        good = self.base_constraint.check(bp.expand_dims(value, axis=-1 - self.event_dim))
        return all_last(good, good.ndim - (value.ndim - self.event_dim))

    def __repr__(self) -> str:
        return f"MixtureSameFamilyConstraint({self.base_constraint!r})"


class Real(Constraint):
    """Numbers, infinite ones included: all but NaN."""

    def check(self, value: Tensor) -> Tensor:
        return value == value  # noqa: PLR0124


class From(Constraint):
    def __init__(self, lower_bound: Any) -> None:
        self.lower_bound = lower_bound


class UpTo(Constraint):
    def __init__(self, upper_bound: Any) -> None:
        self.upper_bound = upper_bound


class Between(Constraint):
    def __init__(self, lower_bound: Any, upper_bound: Any) -> None:
        self.lower_bound, self.upper_bound = lower_bound, upper_bound


class GreaterThan(From):
    """Numbers above lower_bound."""

    def check(self, value: Tensor) -> Tensor:
        return self.lower_bound < value


class GreaterThanEq(From):
    """Numbers of at least lower_bound."""

    def check(self, value: Tensor) -> Tensor:
        return self.lower_bound <= value


class LessThan(UpTo):
    """Numbers below upper_bound."""

    def check(self, value: Tensor) -> Tensor:
        return value < self.upper_bound


class Interval(Between):
    """Numbers from lower_bound to upper_bound, both included."""

    def check(self, value: Tensor) -> Tensor:
        return (self.lower_bound <= value) & (value <= self.upper_bound)


class HalfOpenInterval(Between):
    """Numbers from lower_bound to upper_bound, which is not included."""

    def check(self, value: Tensor) -> Tensor:
        return (self.lower_bound <= value) & (value < self.upper_bound)


class Boolean(Constraint):
    """0 and 1."""

    is_discrete = True

    def check(self, value: Tensor) -> Tensor:
        return (value == 0) | (value == 1)


class IntegerInterval(Between):
    """Integers from lower_bound to upper_bound, both included."""

    is_discrete = True

    def check(self, value: Tensor) -> Tensor:
        return (value % 1 == 0) & (self.lower_bound <= value) & (value <= self.upper_bound)


class IntegerGreaterThan(From):
    """Integers of at least lower_bound."""

    is_discrete = True

    def check(self, value: Tensor) -> Tensor:
        return (value % 1 == 0) & (value >= self.lower_bound)
