"""Arithmetic, comparisons, logic and the elementary functions of ONNX."""

import backplane as bp
from backplane import Tensor

from ._table import op, refuse

_UNARY = {
    "Abs": bp.abs, "Neg": bp.negative, "Exp": bp.exp, "Log": bp.log, "Sqrt": bp.sqrt, "Sin": bp.sin, "Cos": bp.cos, "Tan": bp.tan, "Asin": bp.asin,
    "Acos": bp.acos, "Atan": bp.atan, "Sinh": bp.sinh, "Cosh": bp.cosh, "Asinh": bp.asinh, "Acosh": bp.acosh, "Atanh": bp.atanh, "Erf": bp.erf,
    "Ceil": bp.ceil, "Floor": bp.floor, "Round": bp.rint, "Sign": bp.sign, "IsNaN": bp.isnan, "Not": bp.logical_not, "Reciprocal": bp.reciprocal,
    "BitwiseNot": bp.bitwise_invert,
}  # fmt: skip
_BINARY = {
    "Add": bp.add, "Sub": bp.subtract, "Mul": bp.multiply, "Equal": bp.equal, "Less": bp.less, "LessOrEqual": bp.less_equal, "Greater": bp.greater,
    "GreaterOrEqual": bp.greater_equal, "And": bp.logical_and, "Or": bp.logical_or, "Xor": bp.logical_xor, "BitwiseAnd": bp.bitwise_and,
    "BitwiseOr": bp.bitwise_or, "BitwiseXor": bp.bitwise_xor, "Where": bp.where,
}  # fmt: skip


def _plain(function):
    """The op without attributes: the same function of its inputs."""
    return lambda *inputs: function(*inputs)


for _name, _function in {**_UNARY, **_BINARY}.items():
    op(_name, 6 if _name in _UNARY else 7)(_plain(_function))


def is_floating(x: Tensor) -> bool:
    return bp.isdtype(x.dtype, "real floating")


@op("Div", 7)
def divide(x, y):
    return bp.divide(x, y) if is_floating(x) else truncated_quotient(x, y)


def truncated_quotient(x: Tensor, y: Tensor) -> Tensor:
    """The quotient of integers, rounded towards zero."""
    quotient = bp.floor_divide(x, y)
    if bp.isdtype(x.dtype, "unsigned integer"):
        return quotient
    is_rounded_down = bp.logical_and(bp.not_equal(quotient * y, x), bp.not_equal(bp.less(x, 0), bp.less(y, 0)))
    return quotient + bp.cast(is_rounded_down, x.dtype)


@op("Mod", 10)
def modulo(x, y, *, fmod=0):
    return bp.fmod(x, y) if fmod else bp.remainder(x, y)


@op("Pow", 7)
def power(x, y):
    if is_floating(x):
        return bp.pow(x, bp.cast(y, x.dtype))
    if is_floating(y):
        return bp.cast(bp.pow(bp.cast(x, bp.float64), bp.cast(y, bp.float64)), x.dtype)
    return bp.pow(x, bp.cast(y, x.dtype))


@op("BitShift", 11)
def bit_shift(x, y, *, direction):
    return bp.bitwise_left_shift(x, y) if direction == "LEFT" else bp.bitwise_right_shift(x, y)


@op("IsInf", 10)
def is_infinite(x, *, detect_negative=1, detect_positive=1):
    if detect_negative and detect_positive:
        return bp.isinf(x)
    if detect_negative:
        return bp.isneginf(x)
    return bp.isposinf(x) if detect_positive else bp.zeros_like(x, dtype=bp.bool)


def _folded(function):
    def of_all(*inputs):
        found = inputs[0]
        for x in inputs[1:]:
            found = function(found, x)
        return found

    return of_all


op("Max", 6)(_folded(bp.maximum))
op("Min", 6)(_folded(bp.minimum))
op("Sum", 6)(_folded(bp.add))


@op("Mean", 6)
def mean(*inputs):
    return _folded(bp.add)(*inputs) / len(inputs)


@op("Clip", 6)
def clip_by_attributes(x, *, min=None, max=None):
    return _clipped(x, min, max)


@op("Clip", 11)
def clip(x, low=None, high=None):
    return _clipped(x, low, high)


def _clipped(x, low, high):
    """As NumPy does it: where low > high, all elements are high."""
    if low is not None:
        x = bp.maximum(x, low)
    return x if high is None else bp.minimum(x, high)


@op("Relu", 6)
def relu(x):
    return bp.relu(x) if is_floating(x) else bp.maximum(x, bp.zeros_like(x))


op("Sigmoid", 6)(_plain(bp.sigmoid))
op("Tanh", 6)(_plain(bp.tanh))
op("HardSwish", 14)(_plain(bp.hardswish))
op("Mish", 18)(_plain(bp.mish))
op("Softsign", 1)(_plain(bp.softsign))


@op("Softplus", 1)
def softplus(x):
    return bp.softplus(x, threshold=50)


@op("LeakyRelu", 6)
def leaky_relu(x, *, alpha=0.01):
    return bp.leaky_relu(x, negative_slope=alpha)


@op("PRelu", 7)
def parametric_relu(x, slope):
    return bp.where(x < 0, slope * x, x)


@op("Elu", 6)
def elu(x, *, alpha=1.0):
    return bp.elu(x, alpha=alpha)


@op("Selu", 6)
def selu(x, *, alpha=1.67326319217681884765625, gamma=1.05070102214813232421875):
    return bp.elu(x, alpha=alpha, scale=gamma)


@op("Celu", 12)
def celu(x, *, alpha=1.0):
    return bp.celu(x, alpha=alpha)


@op("Gelu", 20)
def gelu(x, *, approximate="none"):
    return bp.gelu_tanh(x) if approximate == "tanh" else bp.gelu(x)


@op("HardSigmoid", 6)
def hard_sigmoid(x, *, alpha=0.2, beta=0.5):
    return bp.clip(x * alpha + beta, 0, 1)


@op("ThresholdedRelu", 10)
def thresholded_relu(x, *, alpha=1.0):
    return bp.where(x > alpha, x, bp.zeros_like(x))


@op("Shrink", 9)
def shrink(x, *, bias=0.0, lambd=0.5):
    wide = x if is_floating(x) else bp.cast(x, bp.float64)
    found = bp.where(wide < -lambd, wide + bias, bp.where(wide > lambd, wide - bias, bp.zeros_like(wide)))
    return bp.cast(found, x.dtype)


@op("Swish", 24)
def swish(x, *, alpha=1.0):
    return bp.silu(x) if alpha == 1 else x * bp.sigmoid(x * alpha)


@op("SwiGLU", 28)
def swiglu(gate, x, *, alpha=1.0):
    return swish(gate, alpha=alpha) * x


@op("CumSum", 11, static=(1,))
def running_sum(x, axis, *, exclusive=0, reverse=0):
    return _running(lambda x, axis: bp.cumsum(x, axis, dtype=x.dtype), 0, x, axis, exclusive, reverse)


@op("CumProd", 26, static=(1,))
def running_product(x, axis, *, exclusive=0, reverse=0):
    return _running(lambda x, axis: bp.cumprod(x, axis, dtype=x.dtype), 1, x, axis, exclusive, reverse)


def _running(function, neutral, x, axis, exclusive, reverse):
    axis = int(axis.reshape(-1)[0])
    axis += x.ndim if axis < 0 else 0
    if reverse:
        x = bp.flip(x, axis)
    if exclusive:
        x = bp.slice(x, [axis], [0], [x.shape[axis] - 1], [1])
        first = bp.full((*x.shape[:axis], 1, *x.shape[axis + 1 :]), neutral, dtype=x.dtype, device=x.device)
        x = bp.concat([first, x], axis=axis)
    found = function(x, axis)
    return bp.flip(found, axis) if reverse else found


@op("Identity", 1)
def identity(x):
    return x


@op("Dropout", 7)
def dropout_of_old_models(node, x, *, ratio=0.5):
    return x, bp.ones_like(x, dtype=bp.bool)


@op("Dropout", 12, static=(1, 2))
def dropout(node, x, ratio=None, training=None, *, seed=None):
    if training is not None and bool(training) and (ratio is None or float(ratio) != 0):
        refuse("training_mode is not supported")
    return x, bp.ones_like(x, dtype=bp.bool)


@op("Softmax", 1)
def softmax_of_matrix(x, *, axis=1):
    return _as_matrix(lambda x: bp.softmax(x, axis=-1), x, axis)


@op("LogSoftmax", 1)
def log_softmax_of_matrix(x, *, axis=1):
    return _as_matrix(lambda x: bp.log_softmax(x, axis=-1), x, axis)


@op("Hardmax", 1)
def hardmax_of_matrix(x, *, axis=1):
    return _as_matrix(lambda x: hardmax(x, axis=-1), x, axis)


def _as_matrix(function, x, axis):
    """Before opset 13 the axes from `axis` on are one."""
    axis += x.ndim if axis < 0 else 0
    rest = 1
    for size in x.shape[axis:]:
        rest = rest * size
    return bp.reshape(function(bp.reshape(x, (*x.shape[:axis], rest))), x.shape)


@op("Softmax", 13)
def softmax(x, *, axis=-1):
    return bp.softmax(x, axis=axis)


@op("LogSoftmax", 13)
def log_softmax(x, *, axis=-1):
    return bp.log_softmax(x, axis=axis)


@op("Hardmax", 13)
def hardmax(x, *, axis=-1):
    axis += x.ndim if axis < 0 else 0
    places = bp.argmax(x, axis=axis, keepdims=True)
    return bp.cast(bp.equal(places, _positions(x, axis)), x.dtype)


def _positions(x, axis):
    return bp.reshape(bp.arange(x.shape[axis], device=x.device), (-1,) + (1,) * (x.ndim - 1 - axis))
