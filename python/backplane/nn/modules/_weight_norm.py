"""Weight normalisation: a weight as a length times a direction, each a parameter (Salimans and Kingma, 2016)."""

from __future__ import annotations

from typing import Any

import backplane as bp

from .._parameter import Parameter

__all__ = ["remove_weight_norm", "weight_norm"]


class _WeightNorm:
    """The hook that makes the weight before each call."""

    def __init__(self, name, dim):
        self.name, self.dim = name, dim

    def __call__(self, module, args):
        vars(module)[self.name] = self.weight(module)

    def weight(self, module):
        g, v = vars(module)[f"{self.name}_g"], vars(module)[f"{self.name}_v"]
        return v * (g / norm(v, self.dim))


def norm(v, dim):
    """The norms of the slices along dim, or of the whole for None."""
    axes = None if dim is None else [axis for axis in range(v.ndim) if axis != dim % v.ndim]
    return bp.linalg.vector_norm(v, axis=axes, keepdims=dim is not None)


def weight_norm(module: Any, name: str = "weight", dim: int | None = 0) -> Any:
    """Replaces a parameter by name_g, the norms of its slices along dim (None: of the whole), and name_v, its direction.

    The module computes the parameter from both before each call. Errors: ArgumentValueError where the parameter has a weight norm already.
    """
    weight = module.get_parameter(name)
    own = module._own_hooks()
    if any(isinstance(entry[0], _WeightNorm) and entry[0].name == name for entry in own.before):
        raise bp.ArgumentValueError(f"weight_norm: argument name: found {name!r}, which has a weight norm already")
    hook = _WeightNorm(name, dim)
    del vars(module)[name], module._roles[name]
    module.register_parameter(f"{name}_g", Parameter(bp.copy(norm(weight.detach(), dim))))
    module.register_parameter(f"{name}_v", Parameter(weight.detach()))
    module.register_buffer(name, hook.weight(module), persistent=False)
    module.register_forward_pre_hook(hook)
    return module


def remove_weight_norm(module: Any, name: str = "weight") -> Any:
    """Makes the parameter one tensor again. Errors: ArgumentValueError where it has no weight norm."""
    own = module._own_hooks()
    entry = next((entry for entry in own.before if isinstance(entry[0], _WeightNorm) and entry[0].name == name), None)
    if entry is None:
        raise bp.ArgumentValueError(f"remove_weight_norm: argument name: found {name!r}, which has no weight norm")
    weight = entry[0].weight(module).detach()
    own.before.remove(entry)
    for part in (name, f"{name}_g", f"{name}_v"):
        del vars(module)[part], module._roles[part]
    module.register_parameter(name, Parameter(weight))
    return module
