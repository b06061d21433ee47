"""What training does with parameters as a whole: clipping gradients, one vector of all, weight and spectral norm, parametrisations, and sequences (rnn)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import backplane as bp
from backplane import Tensor

from ..._transforms import _gradient_sync
from ..._calls._ops import refuse_names as _refuse_names
from . import parametrizations as parametrizations
from . import parametrize as parametrize
from . import rnn as rnn
from ._fusion import fuse_conv_bn_eval, fuse_conv_bn_weights, fuse_linear_bn_eval, fuse_linear_bn_weights
from ..modules._spectral_norm import remove_spectral_norm, spectral_norm
from ..modules._weight_norm import remove_weight_norm, weight_norm

__all__ = [
    "clip_grad_norm", "clip_grad_norm_", "clip_grad_value_", "clip_grads_with_norm_", "fuse_conv_bn_eval", "fuse_conv_bn_weights",
    "fuse_linear_bn_eval", "fuse_linear_bn_weights", "get_total_norm", "parameters_to_vector", "parametrizations", "parametrize",
    "remove_spectral_norm", "remove_weight_norm", "rnn", "spectral_norm", "vector_to_parameters", "weight_norm",
]  # fmt: skip
__dir__ = __all__.copy


def _several(parameters):
    return [parameters] if isinstance(parameters, Tensor) else list(parameters)


def get_total_norm(tensors: Tensor | Iterable[Tensor], norm_type: float = 2.0, error_if_nonfinite: bool = False) -> Tensor:
    """The norm of all elements of the tensors. error_if_nonfinite: ArgumentValueError where it is not finite."""
    found = [x.detach() for x in _gradient_sync.averaged(_several(tensors))]
    if not found:
        return bp.asarray(0.0)
    first = found[0].device
    norms = [bp.linalg.vector_norm(x, ord=norm_type).to(first) for x in found]
    total = bp.linalg.vector_norm(bp.stack(norms), ord=norm_type)
    if error_if_nonfinite and not bool(bp.isfinite(total)):
        raise bp.ArgumentValueError(f"get_total_norm: found a norm of {float(total)} of the gradients; find the cause, or pass error_if_nonfinite=False")
    return total


def clip_grad_norm_(parameters: Tensor | Iterable[Tensor], max_norm: float, norm_type: float = 2.0, error_if_nonfinite: bool = False, foreach: bool | None = None) -> Tensor:
    """Scales the gradients of the parameters, in place, so that their norm together is at most max_norm. Returns the norm before."""
    grads = [x.grad for x in _several(parameters) if x.grad is not None]
    _average(grads)
    total = get_total_norm(grads, norm_type, error_if_nonfinite)
    _scale(grads, max_norm, total)
    return total


def _average(grads):
    """In place, within a data-parallel step."""
    if _gradient_sync.average is None:
        return
    with bp.no_grad():
        for g, mean in zip(grads, _gradient_sync.averaged(grads)):
            if g is not mean:
                g[...] = mean
    _gradient_sync.mark(grads)


def _scale(grads, max_norm, total):
    with bp.no_grad():
        share = bp.clip(max_norm / (total + 1e-6), max=1.0)
        for g in grads:
            g *= share.to(g.device).astype(g.dtype)


def clip_grads_with_norm_(parameters: Tensor | Iterable[Tensor], max_norm: float, total_norm: Tensor, foreach: bool | None = None) -> None:
    """The second half of clip_grad_norm_: scales the gradients by max_norm / total_norm where that is below 1."""
    grads = [x.grad for x in _several(parameters) if x.grad is not None]
    _average(grads)
    _scale(grads, max_norm, total_norm)


def clip_grad_norm(grads: Any, max_norm: float, norm_type: float = 2.0) -> tuple[Any, Tensor]:
    """(gradients scaled so that their norm together is at most max_norm, the norm before), of a container as bp.grad gives it.

    The gradients themselves stay as they are, so it can be used under transforms and in compiled functions.
    """
    if _gradient_sync.average is not None:
        leaves, structure = bp.tree.flatten(grads)
        places = [i for i, x in enumerate(leaves) if isinstance(x, Tensor)]
        for i, mean in zip(places, _gradient_sync.averaged([leaves[i] for i in places])):
            leaves[i] = mean
        grads = bp.tree.unflatten(structure, leaves)
    leaves = [x for x in bp.tree.leaves(grads) if isinstance(x, Tensor)]
    total = get_total_norm(leaves, norm_type)
    share = bp.clip(max_norm / (total + 1e-6), max=1.0)
    scaled = bp.tree.map(lambda x: x * share.astype(x.dtype) if isinstance(x, Tensor) else x, grads)
    _gradient_sync.mark([x for x in bp.tree.leaves(scaled) if isinstance(x, Tensor)])
    return scaled, total


def clip_grad_value_(parameters: Tensor | Iterable[Tensor], clip_value: float, foreach: bool | None = None) -> None:
    """Limits the elements of the gradients, in place, to ±clip_value."""
    own = _several(parameters)
    _average([x.grad for x in own if x.grad is not None])
    with bp.no_grad():
        for x in own:
            if x.grad is not None:
                x.grad[...] = bp.clip(x.grad, -clip_value, clip_value)


def parameters_to_vector(parameters: Iterable[Tensor]) -> Tensor:
    """All elements of the parameters in one vector."""
    return bp.concat([x.reshape((-1,)) for x in parameters])


def vector_to_parameters(vec: Tensor, parameters: Iterable[Tensor]) -> None:
    """Writes the elements of a vector into the parameters, in order. Errors: ShapeError where their number differs."""
    own = list(parameters)
    if vec.ndim != 1 or vec.size != sum(x.size for x in own):
        raise bp.ShapeError(f"vector_to_parameters: argument vec: found shape {tuple(vec.shape)}, expected ({sum(x.size for x in own)},)")
    start = 0
    with bp.no_grad():
        for x in own:
            x.detach()[...] = vec[start : start + x.size].reshape(x.shape).detach()
            start += x.size


TYPE_CHECKING = False
if not TYPE_CHECKING:
    __getattr__ = _refuse_names(__name__)
del TYPE_CHECKING
