"""Activation functions. `inplace=True` writes the result into input, where PyTorch has that argument."""

import backplane as bp
from backplane import DType, Generator, Tensor, _core
from backplane._api._manipulation_functions import normalized_axis
from backplane._calls._tensor_argument import require_real

from ._arguments import either, warn

__all__ = [
    "celu",
    "celu_",
    "elu",
    "elu_",
    "gelu",
    "glu",
    "gumbel_softmax",
    "hardshrink",
    "hardsigmoid",
    "hardswish",
    "hardtanh",
    "hardtanh_",
    "leaky_relu",
    "leaky_relu_",
    "log_softmax",
    "logsigmoid",
    "mish",
    "prelu",
    "relu",
    "relu6",
    "relu_",
    "rrelu",
    "rrelu_",
    "selu",
    "selu_",
    "sigmoid",
    "silu",
    "softmax",
    "softmin",
    "softplus",
    "softshrink",
    "softsign",
    "tanh",
    "tanhshrink",
    "threshold",
    "threshold_",
]


def _applied(name, input, inplace, *args, **numbers):
    """The op of a name, or its in-place form."""
    return getattr(input, name + "_")(*args, **numbers) if inplace else getattr(bp, name)(input, *args, **numbers)


def _limited(name, input, inplace, **numbers):
    """The op of a name, of an input and two numbers; integers stay integers where the numbers are whole, as in PyTorch."""
    if input.dtype.kind not in ("signed integer", "unsigned integer") or any(number != number // 1 for number in numbers.values()):
        return _applied(name, input, inplace, **numbers)
    first, second = map(int, numbers.values())
    found = bp.where(bp.less_equal(input, first), second, input) if name == "threshold" else bp.clip(input, first, second)
    if not inplace:
        return found
    input[...] = found
    return input


def relu(input: Tensor, inplace: bool = False) -> Tensor:
    """max(input, 0)."""
    return _applied("relu", input, inplace)


def relu6(input: Tensor, inplace: bool = False) -> Tensor:
    """input limited to [0, 6]; integers stay integers."""
    return _limited("hardtanh", input, inplace, min_val=0, max_val=6)


def elu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """input where input > 0, alpha * (exp(input) - 1) elsewhere."""
    return _applied("elu", input, inplace, alpha=alpha)


def selu(input: Tensor, inplace: bool = False) -> Tensor:
    """elu with the alpha and scale that keep mean 0 and variance 1."""
    return _applied("selu", input, inplace)


def celu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """input where input > 0, alpha * (exp(input / alpha) - 1) elsewhere."""
    return _applied("celu", input, inplace, alpha=alpha)


def leaky_relu(input: Tensor, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    """input where input > 0, negative_slope * input elsewhere."""
    return _applied("leaky_relu", input, inplace, negative_slope=negative_slope)


def prelu(input: Tensor, weight: Tensor) -> Tensor:
    """input where input > 0, weight * input elsewhere. weight has one element, or one per channel (axis 1 of input)."""
    if weight.ndim > 1:
        raise bp.ShapeError(f"prelu: argument weight: found shape {tuple(weight.shape)}, expected one axis or none")
    channels = input.shape[1] if input.ndim > 1 else 1
    if weight.size not in (1, channels):
        raise bp.ShapeError(f"prelu: argument weight: found {weight.size} elements, expected 1 or {channels}")
    if weight.size == 1:
        return bp.prelu(input, bp.reshape(weight, []))
    return bp.prelu(input, bp.reshape(weight, [channels] + [1] * (input.ndim - 2)))


def rrelu(
    input: Tensor, lower: float = 1.0 / 8, upper: float = 1.0 / 3, training: bool = False, inplace: bool = False,
    *, generator: Generator | None = None
) -> Tensor:
    """leaky_relu with a slope per element, uniform on [lower, upper) in training and the middle of it elsewhere."""
    if not training:
        return leaky_relu(input, (lower + upper) / 2, inplace)
    slope = bp.uniform(input.shape, low=lower, high=upper, dtype=input.dtype, device=input.device, generator=generator)
    if not inplace:
        return bp.prelu(input, slope)
    input[...] = bp.prelu(input, slope)
    return input


def gelu(input: Tensor, approximate: str = "none") -> Tensor:
    """input times the standard normal distribution function at input. approximate: 'none' (by erf) or 'tanh'."""
    if approximate not in ("none", "tanh"):
        raise bp.ArgumentValueError(f"gelu: argument approximate: found {approximate!r}, expected 'none' or 'tanh'")
    return bp.gelu(input) if approximate == "none" else bp.gelu_tanh(input)


def silu(input: Tensor, inplace: bool = False) -> Tensor:
    """input * sigmoid(input)."""
    return _applied("silu", input, inplace)


def mish(input: Tensor, inplace: bool = False) -> Tensor:
    """input * tanh(softplus(input))."""
    return _applied("mish", input, inplace)


def hardtanh(input: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> Tensor:
    """input limited to [min_val, max_val]; integers by whole limits stay integers."""
    if min_val > max_val:
        raise bp.ArgumentValueError(f"hardtanh: argument min_val: found {min_val}, expected at most max_val, {max_val}")
    return _limited("hardtanh", input, inplace, min_val=min_val, max_val=max_val)


def hardswish(input: Tensor, inplace: bool = False) -> Tensor:
    """input * hardsigmoid(input)."""
    return _applied("hardswish", input, inplace)


def hardsigmoid(input: Tensor, inplace: bool = False) -> Tensor:
    """(input + 3) / 6 limited to [0, 1]."""
    return _applied("hardsigmoid", input, inplace)


def hardshrink(input: Tensor, lambd: float = 0.5) -> Tensor:
    """input where |input| > lambd, 0 elsewhere."""
    return bp.hardshrink(input, lambd=lambd)


def softshrink(input: Tensor, lambd: float = 0.5) -> Tensor:
    """input moved toward 0 by lambd; 0 where |input| <= lambd."""
    if lambd < 0:
        raise bp.ArgumentValueError(f"softshrink: argument lambd: found {lambd}, expected at least 0")
    return bp.softshrink(input, lambd=lambd)


def tanhshrink(input: Tensor) -> Tensor:
    """input - tanh(input)."""
    return bp.tanhshrink(input)


def softplus(input: Tensor, beta: float = 1.0, threshold: float = 20.0) -> Tensor:
    """log(1 + exp(beta * input)) / beta; input where beta * input > threshold."""
    return bp.softplus(input, beta=beta, threshold=threshold)


def softsign(input: Tensor) -> Tensor:
    """input / (1 + |input|)."""
    return bp.softsign(input)


def logsigmoid(input: Tensor) -> Tensor:
    """log(sigmoid(input)), without overflow."""
    return bp.logsigmoid(input)


def threshold(input: Tensor, threshold: float, value: float, inplace: bool = False) -> Tensor:
    """input where input > threshold, value elsewhere. With whole numbers, integers stay integers."""
    return _limited("threshold", input, inplace, threshold=threshold, value=value)


def sigmoid(input: Tensor) -> Tensor:
    """1 / (1 + exp(-input))."""
    return bp.sigmoid(input)


def tanh(input: Tensor) -> Tensor:
    """Hyperbolic tangent."""
    return bp.tanh(input)


def glu(input: Tensor, dim: int | None = None, *, axis: int | None = None) -> Tensor:
    """The first half of input along dim (default: the last) times the sigmoid of the second half."""
    dim = either("glu", "dim", "axis", (dim, axis), -1)
    if input.ndim == 0 or input.shape[normalized_axis("glu", dim, input.ndim, "dim")] % 2:
        raise bp.ShapeError(f"glu: argument input: found shape {tuple(input.shape)}, expected an even size of axis {dim}")
    return bp.glu(input, axis=dim)


def _softmax_axis(function, input, dim, axis):
    """The stated axis; without one the axis that PyTorch's old rule chooses, with a warning as there."""
    chosen = either(function, "dim", "axis", (dim, axis), None)
    if chosen is not None:
        return chosen
    warn(f"{function}: state dim; without it the axis is chosen by the number of axes")
    return 0 if input.ndim in (0, 1, 3) else 1


def _softmax(function, op, input, dim, axis, dtype):
    axis = _softmax_axis(function, input, dim, axis)
    if dtype is not None and _core.as_dtype(dtype, function).kind != "complex floating":
        require_real(function, "input", input)
    x = input if dtype is None else bp.cast(input, dtype)
    if x.ndim == 0 and isinstance(axis, int) and axis in (0, -1):
        return bp.reshape(op(bp.reshape(x, [1]), axis=[0]), [])
    return op(x, axis=[axis])


def softmax(
    input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: DType | None = None, *, axis: int | None = None
) -> Tensor:
    """exp(input) divided by its sum along dim; dtype: of the computation and the result."""
    return _softmax("softmax", bp.softmax, input, dim, axis, dtype)


def softmin(
    input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: DType | None = None, *, axis: int | None = None
) -> Tensor:
    """softmax of -input."""
    return _softmax("softmin", bp.softmax, bp.negative(input), dim, axis, dtype)


def log_softmax(
    input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: DType | None = None, *, axis: int | None = None
) -> Tensor:
    """log(softmax(input)) along dim, without overflow."""
    return _softmax("log_softmax", bp.log_softmax, input, dim, axis, dtype)


def gumbel_softmax(
    logits: Tensor, tau: float = 1, hard: bool = False, eps: float = 1e-10, dim: int | None = None, *, axis: int | None = None,
    generator: Generator | None = None
) -> Tensor:
    """Softmax of (logits + noise of the Gumbel distribution) / tau; hard: one-hot, with the gradient of the soft result.

    eps is accepted and not used, as in PyTorch.
    """
    dim = either("gumbel_softmax", "dim", "axis", (dim, axis), -1)
    uniform = bp.uniform(logits.shape, dtype=logits.dtype, device=logits.device, generator=generator)
    # 1 - u lies in (0, 1], so that only the outer logarithm can meet a 0: its result is then +inf at no finite logit.
    exponential = bp.maximum(bp.negative(bp.log(bp.subtract(1, uniform))), float(bp.finfo(logits.dtype).smallest_normal))
    soft = bp.softmax(bp.divide(bp.subtract(logits, bp.log(exponential)), tau), axis=[dim])
    if not hard:
        return soft
    at = bp.argmax(soft, axis=dim, keepdims=True)
    one_hot = bp.put_along_axis(bp.zeros_like(soft), at, 1, axis=dim)
    return bp.add(bp.subtract(one_hot, bp.stop_gradient(soft)), soft)


def relu_(input: Tensor) -> Tensor:
    """relu, written into input."""
    return relu(input, True)


def elu_(input: Tensor, alpha: float = 1.0) -> Tensor:
    """elu, written into input."""
    return elu(input, alpha, True)


def selu_(input: Tensor) -> Tensor:
    """selu, written into input."""
    return selu(input, True)


def celu_(input: Tensor, alpha: float = 1.0) -> Tensor:
    """celu, written into input."""
    return celu(input, alpha, True)


def leaky_relu_(input: Tensor, negative_slope: float = 0.01) -> Tensor:
    """leaky_relu, written into input."""
    return leaky_relu(input, negative_slope, True)


def hardtanh_(input: Tensor, min_val: float = -1.0, max_val: float = 1.0) -> Tensor:
    """hardtanh, written into input."""
    return hardtanh(input, min_val, max_val, True)


def threshold_(input: Tensor, threshold: float, value: float) -> Tensor:
    """threshold, written into input."""
    return _limited("threshold", input, True, threshold=threshold, value=value)


def rrelu_(
    input: Tensor, lower: float = 1.0 / 8, upper: float = 1.0 / 3, training: bool = False, *, generator: Generator | None = None
) -> Tensor:
    """rrelu, written into input."""
    return rrelu(input, lower, upper, training, True, generator=generator)
