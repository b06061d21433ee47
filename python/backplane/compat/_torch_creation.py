"""How PyTorch makes tensors, random ones too, and the classes that are named for a dtype."""

from __future__ import annotations

import math

from .. import _core
from .._calls._ops import NAMESPACE, ops

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

op = getattr(ops, NAMESPACE)

__all__ = [
    "BFloat16Tensor", "BoolTensor", "ByteTensor", "CharTensor", "DoubleTensor", "FloatTensor", "HalfTensor", "IntTensor", "LongTensor", "ShortTensor", "Size", "Tensor",
    "arange", "binomial", "closed_range", "frombuffer", "fresh_seed", "linspace", "made", "multinomial", "normal", "poisson", "randint", "randint_like", "randperm", "rng_state", "set_rng_state", "size_of", "triangle", "window",
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
        return op.cast(1 - op.abs(n * 2.0 / last - 1), dtype)
    constant, first, second = _WEIGHTS[name]
    turn = n * (2 * math.pi) / last  # a graph of any size divides a tensor by a size
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
    if p.device.backend == "cpu" and _core.has_values(p) and not _core.transforms_of(p):
        positive = int(op.min(op.sum(op.greater(p, 0), -1, dtype=_core.int64)).item()) if p.size else count
        if positive < count:
            raise _core.ArgumentValueError(f"multinomial: argument input: found {positive} weights above 0, expected at least num_samples = {count} without replacement")
    # The smallest exponential numbers, each of the rate of its weight, are a draw without replacement (Efraimidis and Spirakis, 2006).
    times = op.divide(op.negative(op.log1p(op.negative(op.uniform(p.shape, dtype=_core.float64, device=p.device, generator=generator)))), op.cast(rows, _core.float64))
    return op.argsort(times, -1)[..., :count]


class _TensorClass(type):
    """The classes torch.Tensor, torch.FloatTensor and so on: tensors of the dtype are instances, calls make tensors, and names are Tensor's."""

    of_dtype = None

    def __call__(cls, *data: Any, device: Any = None) -> Any:
        """A tensor of this dtype (of the default dtype) of a sequence or a tensor, or of the sizes, whose elements are zeros."""
        dtype = _core.default_float() if cls.of_dtype is None else cls.of_dtype
        if len(data) == 1 and isinstance(data[0], Size):
            data = tuple(data[0])
        if len(data) == 1 and not hasattr(data[0], "__index__"):
            return _core.asarray(data[0], dtype=dtype, device=device, copy=True)
        return op.full(data or [0], 0, dtype=dtype, device=device)

    def __instancecheck__(cls, value: Any) -> bool:
        return isinstance(value, _core.Tensor) and cls.of_dtype in (None, value.dtype)

    def __subclasscheck__(cls, other: Any) -> bool:
        return other is _core.Tensor or type.__subclasscheck__(cls, other)

    def __getattr__(cls, name: str) -> Any:
        return getattr(_core.Tensor, name)

    def __eq__(cls, other: Any) -> bool:
        return other is cls or (cls.of_dtype is None and other is _core.Tensor)

    def __hash__(cls) -> int:
        return hash(_core.Tensor) if cls.of_dtype is None else type.__hash__(cls)


class Size(tuple):
    """torch.Size: a tuple of sizes; shapes of tensors are tuples."""

    def numel(self) -> int:
        """The product of the sizes."""
        return math.prod(self)


class Tensor(metaclass=_TensorClass):
    """The class of all tensors; Tensor(data) makes one of the default dtype, and Tensor(2, 3) one of that size."""


def _typed(name: str, dtype: Any) -> _TensorClass:
    return _TensorClass(name, (Tensor,), {"of_dtype": dtype, "__doc__": f"Tensors of {dtype.name}."})


FloatTensor, DoubleTensor, HalfTensor = _typed("FloatTensor", _core.float32), _typed("DoubleTensor", _core.float64), _typed("HalfTensor", _core.float16)
BFloat16Tensor, BoolTensor = _typed("BFloat16Tensor", _core.bfloat16), _typed("BoolTensor", _core.bool)
IntTensor, LongTensor, ShortTensor = _typed("IntTensor", _core.int32), _typed("LongTensor", _core.int64), _typed("ShortTensor", _core.int16)
ByteTensor, CharTensor = _typed("ByteTensor", _core.uint8), _typed("CharTensor", _core.int8)
TYPE_NAMES = {one.__name__: one.of_dtype for one in (
    FloatTensor, DoubleTensor, HalfTensor, BFloat16Tensor, BoolTensor, IntTensor, LongTensor, ShortTensor, ByteTensor, CharTensor
)}  # fmt: skip


def poisson(rate, generator):
    """Counts of Poisson distributions of these rates, in their dtype."""
    from ..distributions._counts import poisson_sample

    if rate.dtype.kind != "real floating" or bool(op.any(op.less(rate, 0))):
        raise _core.ArgumentValueError(f"poisson: argument input: found {rate.dtype.name}, expected floating rates from 0 on")
    return poisson_sample(rate, tuple(rate.shape), generator)


def binomial(count, prob, generator):
    """Counts of successes in `count` trials of the probability, in the dtype of both."""
    from ..distributions._counts import binomial_sample

    shape = op.add(count, prob).shape
    return binomial_sample(op.broadcast_to(count, shape), op.broadcast_to(prob, shape), tuple(shape), generator)


def frombuffer(buffer, dtype, count, offset):
    """A tensor of the bytes of a buffer."""
    import numpy

    return _core.asarray(numpy.frombuffer(buffer, dtype=_core.as_dtype(dtype, "frombuffer").name, count=count, offset=offset))


def fresh_seed():
    """Seeds the default generator at random; returns the seed."""
    import os

    from .._runtime._system import manual_seed

    seed = int.from_bytes(os.urandom(8), "little") >> 1
    manual_seed(seed)
    return seed


def rng_state():
    """The state of the default generator, as bytes."""
    import numpy

    return _core.asarray(numpy.frombuffer(b"".join(part.to_bytes(8, "little") for part in _core.default_generator.state), dtype="uint8").copy())


def set_rng_state(state):
    """Sets the default generator to a state of get_rng_state."""
    content = bytes(state.tolist())
    if len(content) != 16:
        raise _core.ArgumentValueError(f"set_rng_state: argument new_state: found {len(content)} bytes, expected 16, as get_rng_state gives them")
    _core.default_generator.state = (int.from_bytes(content[:8], "little"), int.from_bytes(content[8:], "little"))
