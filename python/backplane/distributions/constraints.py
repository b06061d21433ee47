"""Constraints: which values a parameter or a draw may have, under PyTorch's names.

    from backplane.distributions import constraints
    constraints.interval(-1.0, 2.0).check(bp.asarray([0.0, 3.0]))
"""

from __future__ import annotations

from . import _constraints as _kinds
from . import _shaped_constraints as _shaped
from .._calls._ops import refuse_names as _refuse_names
from ._constraints import Constraint, MixtureSameFamilyConstraint, dependent_property, is_dependent

__all__ = [
    "Constraint", "MixtureSameFamilyConstraint", "boolean", "cat", "corr_cholesky", "dependent", "dependent_property", "greater_than", "greater_than_eq",
    "half_open_interval", "independent", "integer_interval", "interval", "is_dependent", "less_than", "lower_cholesky", "lower_triangular", "multinomial",
    "nonnegative", "nonnegative_integer", "one_hot", "positive", "positive_definite", "positive_integer", "positive_semidefinite", "real", "real_vector",
    "simplex", "square", "stack", "symmetric", "unit_interval",
]  # fmt: skip

dependent = _kinds.Dependent()
independent = _kinds.IndependentConstraint
boolean = _kinds.Boolean()
one_hot = _shaped.OneHot()
integer_interval = _kinds.IntegerInterval
nonnegative_integer = _kinds.IntegerGreaterThan(0)
positive_integer = _kinds.IntegerGreaterThan(1)
real = _kinds.Real()
real_vector = independent(real, 1)
positive = _kinds.GreaterThan(0.0)
nonnegative = _kinds.GreaterThanEq(0.0)
greater_than = _kinds.GreaterThan
greater_than_eq = _kinds.GreaterThanEq
less_than = _kinds.LessThan
interval = _kinds.Interval
half_open_interval = _kinds.HalfOpenInterval
unit_interval = _kinds.Interval(0.0, 1.0)
multinomial = _shaped.Multinomial
simplex = _shaped.Simplex()
lower_triangular = _shaped.LowerTriangular()
lower_cholesky = _shaped.LowerCholesky()
corr_cholesky = _shaped.CorrCholesky()
square = _shaped.Square()
symmetric = _shaped.Symmetric()
positive_semidefinite = _shaped.PositiveSemidefinite()
positive_definite = _shaped.PositiveDefinite()
cat = _shaped.Cat
stack = _shaped.Stack

TYPE_CHECKING = False
if not TYPE_CHECKING:
    __getattr__ = _refuse_names(__name__)
del TYPE_CHECKING
