"""biject_to and transform_to: from numbers without a constraint to the values that fulfil one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import backplane as bp

from . import constraints
from ._constraints import Constraint
from ._joined_transforms import CatTransform, IndependentTransform, SoftmaxTransform, StackTransform, identity_transform
from ._matrix_transforms import CorrCholeskyTransform, LowerCholeskyTransform, PositiveDefiniteTransform, StickBreakingTransform
from ._transforms import AffineTransform, ComposeTransform, ExpTransform, SigmoidTransform, Transform

__all__ = ["ConstraintRegistry", "biject_to", "transform_to"]


class ConstraintRegistry:
    """Transforms for constraints: registry(constraint) is a transform from all numbers to the values that fulfil the constraint.

    Errors: NotImplementedError for a kind of constraint without a transform; register adds one.
    """

    def __init__(self, name: str = "ConstraintRegistry") -> None:
        self._name, self._makers = name, {}  # type: ignore[var-annotated]

    def register(self, constraint: Constraint | type[Constraint], factory: Callable[[Any], Transform] | None = None) -> Any:
        """Adds factory(constraint) for constraints of this class, or of the class of this constraint; without a factory, a decorator of one."""
        if factory is None:
            return lambda given: self.register(constraint, given)
        kind = type(constraint) if isinstance(constraint, Constraint) else constraint
        if not (isinstance(kind, type) and issubclass(kind, Constraint)):
            raise bp.ArgumentTypeError(f"{self._name}.register: argument constraint: found {constraint!r}, expected a constraint or a class of constraints")
        self._makers[kind] = factory
        return factory

    def __call__(self, constraint: Constraint) -> Transform:
        maker = self._makers.get(type(constraint))
        if maker is None:
            fix = "read it from the distribution, not from its class" if constraints.is_dependent(constraint) else f"add one with {self._name}.register"
            raise NotImplementedError(f"{self._name}: found no transform to {constraint!r}; {fix}")
        return maker(constraint)

    def __repr__(self) -> str:
        return f"<{self._name}>"


biject_to = ConstraintRegistry("biject_to")
transform_to = ConstraintRegistry("transform_to")


def _both(*kinds: Any) -> Callable[[Callable[[Any], Transform]], Callable[[Any], Transform]]:
    """Registers a factory with both, for all these constraints."""

    def register(factory):
        for kind in kinds:
            biject_to.register(kind, factory)
            transform_to.register(kind, factory)
        return factory

    return register


@_both(constraints.real)
def _to_real(constraint):
    return identity_transform


@_both(constraints.greater_than, constraints.greater_than_eq)
def _to_greater(constraint):
    """exp alone for the bound 0."""
    low = constraint.lower_bound
    return ExpTransform() if isinstance(low, int | float) and low == 0 else ComposeTransform([ExpTransform(), AffineTransform(low, 1)])


@_both(constraints.less_than)
def _to_less(constraint):
    return ComposeTransform([ExpTransform(), AffineTransform(constraint.upper_bound, -1)])


@_both(constraints.interval, constraints.half_open_interval)
def _to_interval(constraint):
    """The sigmoid alone for numbers from 0 to 1."""
    low, high = constraint.lower_bound, constraint.upper_bound
    if isinstance(low, int | float) and isinstance(high, int | float) and (low, high) == (0, 1):
        return SigmoidTransform()
    return ComposeTransform([SigmoidTransform(), AffineTransform(low, high - low)])


@_both(constraints.corr_cholesky)
def _to_correlations(constraint):
    return CorrCholeskyTransform()


biject_to.register(constraints.simplex, lambda constraint: StickBreakingTransform())
transform_to.register(constraints.simplex, lambda constraint: SoftmaxTransform())
transform_to.register(constraints.lower_cholesky, lambda constraint: LowerCholeskyTransform())
transform_to.register(constraints.positive_definite, lambda constraint: PositiveDefiniteTransform())
transform_to.register(constraints.positive_semidefinite, lambda constraint: PositiveDefiniteTransform())


def _register_parts(registry: ConstraintRegistry) -> None:
    """The constraints that are made of others, through the transforms of these."""

    def to_independent(one):
        return IndependentTransform(registry(one.base_constraint), one.reinterpreted_batch_ndims)

    def to_cat(one):
        return CatTransform([registry(part) for part in one.cseq], one.dim, one.lengths)

    def to_stack(one):
        return StackTransform([registry(part) for part in one.cseq], one.dim)

    registry.register(constraints.independent, to_independent)
    registry.register(constraints.cat, to_cat)
    registry.register(constraints.stack, to_stack)


_register_parts(biject_to)
_register_parts(transform_to)
