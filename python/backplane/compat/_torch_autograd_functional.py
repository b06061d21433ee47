"""torch.autograd.functional: derivatives of functions of tensors."""

from __future__ import annotations

from typing import Any

from . import _torch_autograd
from ._calls import require_one_of

__all__ = ["hessian", "jacobian", "jvp", "vjp"]


def jacobian(func: Any, inputs: Any, create_graph: bool = False, strict: bool = False, vectorize: bool = False, strategy: str = "reverse-mode") -> Any:
    """The derivatives of each element of func's results by each element of the inputs."""
    require_one_of("jacobian", "strict", strict, (False,))
    return _torch_autograd.functional_jacobian(func, inputs, create_graph)


def hessian(
    func: Any, inputs: Any, create_graph: bool = False, strict: bool = False, vectorize: bool = False, outer_jacobian_strategy: str = "reverse-mode"
) -> Any:
    """The second derivatives of func, which returns one number, by the elements of the inputs."""
    require_one_of("hessian", "strict", strict, (False,))
    return _torch_autograd.functional_hessian(func, inputs, create_graph)


def vjp(func: Any, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> Any:
    """func's results, and v times the Jacobian."""
    require_one_of("vjp", "strict", strict, (False,))
    return _torch_autograd.functional_vjp(func, inputs, v, create_graph)


def jvp(func: Any, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> Any:
    """func's results, and the Jacobian times v."""
    require_one_of("jvp", "strict", strict, (False,))
    return _torch_autograd.functional_jvp(func, inputs, v)
