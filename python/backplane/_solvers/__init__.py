"""Solvers: odeint, minimize, least_squares and cg, over containers of tensors and with gradients where these exist."""

from ._linear import cg
from ._ode import odeint
from ._optimize import OptimizeResult, least_squares, minimize

__all__ = ["OptimizeResult", "cg", "least_squares", "minimize", "odeint"]
