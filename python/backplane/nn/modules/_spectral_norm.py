"""Spectral normalisation: a weight divided by its largest singular value, which power iterations estimate (Miyato et al., 2018)."""

from __future__ import annotations

from typing import Any

import backplane as bp
from backplane import Tensor

from .._parameter import Parameter
from ._convolution_layers import ConvTranspose1d, ConvTranspose2d, ConvTranspose3d

__all__ = ["remove_spectral_norm", "spectral_norm"]

_TRANSPOSED = (ConvTranspose1d, ConvTranspose2d, ConvTranspose3d)


def unit(x: Tensor, eps: float) -> Tensor:
    """x divided by its norm, or by eps if that is larger."""
    return x / bp.maximum(bp.linalg.vector_norm(x), bp.asarray(eps, dtype=x.dtype, device=x.device))


def random_unit(size: int, like: Tensor, eps: float) -> Tensor:
    return unit(bp.normal((size,), dtype=like.dtype, device=like.device), eps)


def as_matrix(weight: Tensor, dim: int) -> Tensor:
    """The weight as a matrix whose rows are the slices along dim."""
    return bp.moveaxis(weight, dim, 0).reshape((weight.shape[dim], -1))


def checked_weight(module: Any, name: str, n_power_iterations: int) -> Tensor:
    if n_power_iterations < 1:
        raise bp.ArgumentValueError(f"spectral_norm: argument n_power_iterations: found {n_power_iterations}, expected at least 1")
    weight = getattr(module, name, None)
    if not isinstance(weight, Tensor):
        raise bp.ArgumentValueError(f"spectral_norm: argument name: found {name!r}, expected a parameter or buffer of the module")
    return weight


def row_axis(module: Any, dim: int | None) -> int:
    return dim if dim is not None else 1 if isinstance(module, _TRANSPOSED) else 0


class _SpectralNorm:
    """The hook that makes the weight before each call."""

    def __init__(self, name, n_power_iterations, dim, eps):
        self.name, self.n_power_iterations, self.dim, self.eps = name, n_power_iterations, dim, eps

    def __call__(self, module, args):
        vars(module)[self.name] = self.weight(module, moves=module.training)

    def weight(self, module, moves):
        original, u, v = (vars(module)[f"{self.name}_{part}"] for part in ("orig", "u", "v"))
        matrix = as_matrix(original, self.dim)
        if moves:
            with bp.no_grad():
                fixed = bp.stop_gradient(matrix)
                for _ in range(self.n_power_iterations):
                    v = unit(fixed.mT @ u, self.eps)
                    u = unit(fixed @ v, self.eps)
            setattr(module, f"{self.name}_u", u)
            setattr(module, f"{self.name}_v", v)
        return original / bp.vecdot(u, matrix @ v)


def _entry(module, name):
    return next((entry for entry in module._own_hooks().before if isinstance(entry[0], _SpectralNorm) and entry[0].name == name), None)


def spectral_norm(module: Any, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12, dim: int | None = None) -> Any:
    """Divides a parameter by its largest singular value, before each call of the module. Returns the module.

    name_orig is the parameter; the buffers name_u and name_v are the singular vectors, which each call in training mode improves by
    n_power_iterations. The matrix has the axis dim as its rows; the default is 1 for transposed convolutions, else 0. eps: the smallest
    norm that a vector is divided by. `parametrizations.spectral_norm` computes the parameter at each use instead.
    Errors: ArgumentValueError for less than one iteration, and where the parameter has a spectral norm already.
    """
    weight = checked_weight(module, name, n_power_iterations)
    if _entry(module, name) is not None:
        raise bp.ArgumentValueError(f"spectral_norm: argument name: found {name!r}, which has a spectral norm already")
    hook = _SpectralNorm(name, n_power_iterations, row_axis(module, dim), eps)
    matrix = as_matrix(weight.detach(), hook.dim)
    del vars(module)[name], module._roles[name]
    module.register_parameter(f"{name}_orig", Parameter(weight.detach()))
    module.register_buffer(name, weight.detach(), persistent=False)
    for part, size in zip("uv", matrix.shape):
        module.register_buffer(f"{name}_{part}", random_unit(size, weight, eps))
    module.register_forward_pre_hook(hook)
    return module


def remove_spectral_norm(module: Any, name: str = "weight") -> Any:
    """Makes the parameter one tensor again, with its values of now. Errors: ArgumentValueError where it has no spectral norm."""
    entry = _entry(module, name)
    if entry is None:
        raise bp.ArgumentValueError(f"remove_spectral_norm: argument name: found {name!r}, which has no spectral norm")
    weight = entry[0].weight(module, moves=False).detach()
    module._own_hooks().before.remove(entry)
    for part in (name, f"{name}_orig", f"{name}_u", f"{name}_v"):
        del vars(module)[part], module._roles[part]
    module.register_parameter(name, Parameter(weight))
    return module
