"""Filling tensors with their first values: PyTorch's names, arguments and distributions. Each changes its tensor in place and returns it."""

from __future__ import annotations

import math
from typing import Any

import backplane as bp
from backplane import Generator, Tensor

from .._calls._ops import refuse_names as _refuse_names

__all__ = [
    "calculate_gain", "constant_", "dirac_", "eye_", "kaiming_normal_", "kaiming_uniform_", "normal_", "ones_", "orthogonal_", "sparse_",
    "trunc_normal_", "uniform_", "xavier_normal_", "xavier_uniform_", "zeros_",
]  # fmt: skip
__dir__ = __all__.copy

_GAINS = {"linear": 1.0, "identity": 1.0, "sigmoid": 1.0, "tanh": 5 / 3, "relu": math.sqrt(2), "selu": 0.75}


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """The factor that keeps variances through a nonlinearity: 'linear', 'convNd', 'sigmoid', 'tanh', 'relu', 'leaky_relu' (param: its
    negative slope, 0.01 unless given), 'selu'. Errors: ArgumentValueError for another name."""
    if nonlinearity in _GAINS or nonlinearity.startswith("conv"):
        return _GAINS.get(nonlinearity, 1.0)
    if nonlinearity == "leaky_relu":
        return math.sqrt(2 / (1 + (0.01 if param is None else param) ** 2))
    raise bp.ArgumentValueError(f"calculate_gain: argument nonlinearity: found {nonlinearity!r}, expected one of {', '.join(_GAINS)} or leaky_relu")


def _fill(tensor, values):
    with bp.no_grad():
        tensor.detach()[...] = values
    return tensor


def _random(name, tensor, **how):
    dtype = tensor.dtype if tensor.dtype.kind == "real floating" else bp.float32
    how = {key: value for key, value in how.items() if value is not None}
    return getattr(bp, name)(tuple(tensor.shape), dtype=dtype, device=tensor.device, **how)


def uniform_(tensor: Tensor, a: float = 0.0, b: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Uniform numbers in [a, b)."""
    return _fill(tensor, _random("uniform", tensor, low=a, high=b, generator=generator))


def normal_(tensor: Tensor, mean: float = 0.0, std: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Normal numbers."""
    return _fill(tensor, _random("normal", tensor, mean=mean, std=std, generator=generator))


def trunc_normal_(
    tensor: Tensor, mean: float = 0.0, std: float = 1.0, a: float = -2.0, b: float = 2.0, generator: Generator | None = None
) -> Tensor:
    """Normal numbers truncated to [a, b], drawn by the inverse of the distribution function."""
    def share(x):
        return (1 + math.erf((x - mean) / std / math.sqrt(2))) / 2

    low, high = 2 * share(a) - 1, 2 * share(b) - 1
    values = bp.erfinv(_random("uniform", tensor, low=low, high=high, generator=generator))
    return _fill(tensor, bp.clip(values * (std * math.sqrt(2)) + mean, a, b))


def constant_(tensor: Tensor, val: float) -> Tensor:
    """One number everywhere."""
    return _fill(tensor, val)


def ones_(tensor: Tensor) -> Tensor:
    return _fill(tensor, 1)


def zeros_(tensor: Tensor) -> Tensor:
    return _fill(tensor, 0)


def eye_(tensor: Tensor) -> Tensor:
    """1 on the diagonal of a matrix, 0 elsewhere."""
    if tensor.ndim != 2:
        raise bp.ShapeError(f"eye_: argument tensor: found shape {tuple(tensor.shape)}, expected two axes")
    return _fill(tensor, bp.eye(*tensor.shape, dtype=tensor.dtype, device=tensor.device))


def dirac_(tensor: Tensor, groups: int = 1) -> Tensor:
    """The weight (out, in, *kernel) of a convolution that keeps its channels: 1 at the middle of the kernel."""
    if not 3 <= tensor.ndim <= 5 or tensor.shape[0] % groups:
        raise bp.ShapeError(f"dirac_: argument tensor: found shape {tuple(tensor.shape)}, expected (out, in, *kernel) with out a multiple of groups")
    values = bp.zeros(tensor.shape, dtype=tensor.dtype, device=tensor.device)
    middle = tuple(size // 2 for size in tensor.shape[2:])
    per_group = tensor.shape[0] // groups
    for group in range(groups):
        for i in range(min(per_group, tensor.shape[1])):
            values[(group * per_group + i, i, *middle)] = 1
    return _fill(tensor, values)


def _fans(function, tensor):
    """The number of inputs and outputs of an element of a layer."""
    if tensor.ndim < 2:
        raise bp.ShapeError(f"{function}: argument tensor: found shape {tuple(tensor.shape)}, expected at least two axes")
    field = math.prod(tensor.shape[2:])
    return tensor.shape[1] * field, tensor.shape[0] * field


def xavier_uniform_(tensor: Tensor, gain: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Uniform numbers of variance gain² · 2 / (inputs + outputs) (Glorot and Bengio, 2010)."""
    fan_in, fan_out = _fans("xavier_uniform_", tensor)
    bound = gain * math.sqrt(6 / (fan_in + fan_out))
    return uniform_(tensor, -bound, bound, generator)


def xavier_normal_(tensor: Tensor, gain: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Normal numbers of variance gain² · 2 / (inputs + outputs)."""
    fan_in, fan_out = _fans("xavier_normal_", tensor)
    return normal_(tensor, 0.0, gain * math.sqrt(2 / (fan_in + fan_out)), generator)


def _kaiming_std(function, tensor, a, mode, nonlinearity):
    if mode not in ("fan_in", "fan_out"):
        raise bp.ArgumentValueError(f"{function}: argument mode: found {mode!r}, expected 'fan_in' or 'fan_out'")
    fan = _fans(function, tensor)[mode == "fan_out"]
    return calculate_gain(nonlinearity, a) / math.sqrt(fan) if fan else 0.0


def kaiming_uniform_(
    tensor: Tensor, a: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu", generator: Generator | None = None
) -> Tensor:
    """Uniform numbers of variance gain² / inputs, or outputs for mode 'fan_out' (He et al., 2015)."""
    bound = math.sqrt(3.0) * _kaiming_std("kaiming_uniform_", tensor, a, mode, nonlinearity)
    return uniform_(tensor, -bound, bound, generator)


def kaiming_normal_(
    tensor: Tensor, a: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu", generator: Generator | None = None
) -> Tensor:
    """Normal numbers of variance gain² / inputs, or outputs for mode 'fan_out'."""
    return normal_(tensor, 0.0, _kaiming_std("kaiming_normal_", tensor, a, mode, nonlinearity), generator)


def orthogonal_(tensor: Tensor, gain: float = 1, generator: Generator | None = None) -> Tensor:
    """gain times a random matrix of orthonormal rows or columns, the tensor being (rows, everything else) (Saxe et al., 2014)."""
    if tensor.ndim < 2:
        raise bp.ShapeError(f"orthogonal_: argument tensor: found shape {tuple(tensor.shape)}, expected at least two axes")
    if tensor.size == 0:
        return tensor
    rows = tensor.shape[0]
    columns = tensor.size // rows
    dtype = bp.float64 if tensor.dtype == bp.float64 else bp.float32
    how: dict[str, Any] = {} if generator is None else {"generator": generator}
    flat = bp.normal((max(rows, columns), min(rows, columns)), dtype=dtype, device=tensor.device, **how)
    q, r = bp.linalg.qr(flat)
    q = q * bp.sign(bp.linalg.diagonal(r))
    q = q.T if rows < columns else q
    return _fill(tensor, (gain * q).reshape(tensor.shape).astype(tensor.dtype))


def sparse_(tensor: Tensor, sparsity: float, std: float = 0.01, generator: Generator | None = None) -> Tensor:
    """Fills a matrix with normal numbers, and sets a share `sparsity` of each column to 0."""
    if tensor.ndim != 2:
        raise bp.ShapeError(f"sparse_: argument tensor: found shape {tuple(tensor.shape)}, expected two axes")
    rows = tensor.shape[0]
    rank = bp.argsort(bp.argsort(_random("uniform", tensor, generator=generator), axis=0), axis=0)
    kept = rank >= math.ceil(sparsity * rows)
    return _fill(tensor, bp.where(kept, _random("normal", tensor, std=std, generator=generator), 0))


TYPE_CHECKING = False
if not TYPE_CHECKING:
    __getattr__ = _refuse_names(__name__)
del TYPE_CHECKING
