"""How PyTorch makes tensors, random ones too, and the classes that are named for a dtype."""

from __future__ import annotations

import math

from .. import _core
from .._calls._ops import NAMESPACE, ops

op = getattr(ops, NAMESPACE)

__all__ = [
    "BFloat16Tensor", "BoolTensor", "ByteTensor", "CharTensor", "DoubleTensor", "FloatTensor", "HalfTensor", "IntTensor", "LongTensor", "ShortTensor",
    "arange", "closed_range", "linspace", "made", "multinomial", "normal", "randint", "randint_like", "randperm", "size_of", "triangle", "window",
]  # fmt: skip


def size_of(size):
    """The shape, which a call gives as one sequence or number by number."""
    return size[0] if len(size) == 1 else size


def made(x, requires_grad):
    return x.requires_grad_() if requires_grad else x


def arange(start, end, step, dtype, device):
    start, end = (0, start) if end is None else (start, end)
    return op.arange(start, end, step, dtype=dtype, device=device)


def closed_range(start, end, step, dtype, device):
    """torch.range: the end included, floats unless stated."""
    start, end = (0, start) if end is None else (start, end)
    count = int((end - start) / step) + 1
    dtype = _core.default_float() if dtype is None else dtype
    return op.cast(op.add(op.multiply(op.cast(op.iota(count, device=device), _core.float64), step), start), dtype)


def linspace(start, end, steps, dtype, device):
    """Integers are rounded towards zero."""
    whole = dtype is not None and _core.as_dtype(dtype, "linspace").kind in ("signed integer", "unsigned integer")
    found = op.linspace(start, end, steps, dtype=_core.float64 if whole else dtype, device=device)
    return op.cast(op.trunc(found), dtype) if whole else found


def triangle(function, row, col, offset, dtype, device):
    """The positions as two rows."""
    found = op.stack(function(row, offset, col, device=device))
    return found if dtype is None else op.cast(found, dtype)


_WEIGHTS = {"hann_window": (0.5, 0.5, 0.0), "hamming_window": (0.54, 0.46, 0.0), "blackman_window": (0.42, 0.5, 0.08)}


def window(name, length, periodic, dtype, device):
    """Windows of signal processing; periodic ones are one point longer, and leave the last out."""
    dtype = _core.default_float() if dtype is None else dtype
    if length < 2:
        return op.full([length], 1.0, dtype=dtype, device=device)
    n = op.cast(op.iota(length, device=device), _core.float64)
    last = length if periodic else length - 1
    if name == "bartlett_window":
        return op.cast(1 - op.abs(n * (2.0 / last) - 1), dtype)
    constant, first, second = _WEIGHTS[name]
    turn = n * (2 * math.pi / last)
    return op.cast(constant - first * op.cos(turn) + second * op.cos(2 * turn), dtype)


def randint(low, high, size, generator, dtype, device):
    """randint(high, size) and randint(low, high, size)."""
    if size is None:
        low, high, size = 0, low, high
    if not isinstance(size, (tuple, list)):
        raise _core.ArgumentTypeError(f"randint: argument size: found {size!r}, expected a tuple of sizes")
    return op.randint(low, high, tuple(size), dtype=_core.int64 if dtype is None else dtype, device=device, generator=generator)


def randint_like(x, low, high, dtype, device):
    low, high = (0, low) if high is None else (low, high)
    found = op.randint(low, high, x.shape, device=x.device if device is None else device)
    return op.cast(found, x.dtype if dtype is None else dtype)


def randperm(n, generator, dtype, device):
    found = op.permutation(n, generator=generator, device=device)
    return found if dtype is None else op.cast(found, dtype)


def normal(mean, std, size, generator, dtype, device):
    """Of means and deviations in tensors, or of a size."""
    if size is None and not isinstance(mean, _core.Tensor) and not isinstance(std, _core.Tensor):
        raise _core.ArgumentTypeError("normal: found numbers and no size, expected a size, or means or standard deviations in a tensor")
    if size is None:
        return op.normal(mean, std, generator=generator)
    return op.normal(size, mean=mean, std=std, dtype=dtype, device=device, generator=generator)


def multinomial(p, count, replacement, generator):
    """Positions drawn in proportion to the weights along the last axis."""
    rows = op.divide(p, op.sum(p, -1, keepdims=True))
    if replacement:
        draws = op.uniform([*p.shape[:-1], count, 1], dtype=_core.float64, device=p.device, generator=generator)
        below = op.less_equal(op.cumsum(op.cast(op.expand_dims(rows, -2), _core.float64), -1), draws)
        return op.minimum(op.sum(below, -1, dtype=_core.int64), p.shape[-1] - 1)
    if count > p.shape[-1]:
        raise _core.ArgumentValueError(f"multinomial: argument num_samples: found {count}, expected at most {p.shape[-1]} without replacement")
    # The smallest exponential numbers, each of the rate of its weight, are a draw without replacement (Efraimidis and Spirakis, 2006).
    times = op.divide(op.negative(op.log1p(op.negative(op.uniform(p.shape, dtype=_core.float64, device=p.device, generator=generator)))), op.cast(rows, _core.float64))
    return op.argsort(times, -1)[..., :count]


def _typed(name, dtype):
    def make(*data):
        """A tensor of this dtype of a sequence, or zeros of the sizes."""
        if len(data) == 1 and not hasattr(data[0], "__index__"):
            return _core.asarray(data[0], dtype=dtype, copy=True)
        return op.full(data, 0, dtype=dtype) if data else op.full([0], 0, dtype=dtype)

    make.__name__ = make.__qualname__ = name
    return make


FloatTensor, DoubleTensor, HalfTensor = _typed("FloatTensor", _core.float32), _typed("DoubleTensor", _core.float64), _typed("HalfTensor", _core.float16)
BFloat16Tensor, BoolTensor = _typed("BFloat16Tensor", _core.bfloat16), _typed("BoolTensor", _core.bool)
IntTensor, LongTensor, ShortTensor = _typed("IntTensor", _core.int32), _typed("LongTensor", _core.int64), _typed("ShortTensor", _core.int16)
ByteTensor, CharTensor = _typed("ByteTensor", _core.uint8), _typed("CharTensor", _core.int8)
