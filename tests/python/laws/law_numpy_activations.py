"""NumPy's form of the activation functions and of their derivatives, from the definitions."""

import math

import numpy as np

erf = np.vectorize(math.erf, otypes=[float])


def each(function):
    """A function of one element over all of them; empty arrays stay."""
    return lambda x, **numbers: np.vectorize(lambda v: function(v, **numbers), otypes=[float])(x) if np.size(x) else np.asarray(x, float)


def times(slope):
    """dy times a function of the second argument."""
    return lambda dy, **rest: dy * slope(**rest)


def sigmoid(x):
    return np.where(x < 0, np.exp(np.minimum(x, 0)), 1) / (1 + np.exp(-abs(x)))


def softplus(v, beta=1, threshold=20):
    return v if v * beta > threshold else math.log1p(math.exp(v * beta)) / beta


def elu(v, alpha=1, scale=1, input_scale=1):
    return scale * (v if v > 0 else alpha * math.expm1(v * input_scale))


def elu_slope(v, alpha=1, scale=1, input_scale=1):
    return scale * (1 if v > 0 else alpha * input_scale * math.exp(v * input_scale))


def mish(v):
    return v * math.tanh(softplus(v))


def mish_slope(v):
    t = math.tanh(softplus(v))
    return t + v * (1 - t * t) / (1 + math.exp(-v))


def gelu_tanh(v):
    return 0.5 * v * (1 + math.tanh(math.sqrt(2 / math.pi) * (v + 0.044715 * v**3)))


def gelu_tanh_slope(v):
    t = math.tanh(math.sqrt(2 / math.pi) * (v + 0.044715 * v**3))
    return 0.5 * (1 + t) + 0.5 * v * (1 - t * t) * math.sqrt(2 / math.pi) * (1 + 3 * 0.044715 * v * v)


def gelu_slope(v):
    return 0.5 * (1 + math.erf(v / math.sqrt(2))) + v * math.exp(-v * v / 2) / math.sqrt(2 * math.pi)


def silu_slope(v):
    s = float(sigmoid(np.float64(v)))
    return s * (1 + v * (1 - s))


def glu(x, axis=-1):
    first, second = np.split(x, 2, axis)
    return first * sigmoid(second)


ACTIVATIONS = {
    "sigmoid_grad": times(lambda y: y * (1 - y)),
    "tanh_grad": times(lambda y: 1 - y * y),
    "silu_grad": times(each(silu_slope)),
    "gelu_grad": times(each(gelu_slope)),
    "gelu_tanh": each(gelu_tanh),
    "gelu_tanh_grad": times(each(gelu_tanh_slope)),
    "mish": each(mish),
    "mish_grad": times(each(mish_slope)),
    "elu": each(elu),
    "elu_grad": times(each(elu_slope)),
    "selu": each(lambda v: elu(v, 1.6732632423543772, 1.0507009873554805)),
    "celu": each(lambda v, alpha=1: max(v, 0) + min(0, alpha * math.expm1(v / alpha))),
    "leaky_relu": lambda x, negative_slope=0.01: np.where(x > 0, x, negative_slope * x),
    "leaky_relu_grad": times(lambda x, negative_slope=0.01: np.where(x > 0, 1, negative_slope)),
    "prelu": lambda x, weight: np.where(x > 0, x, weight * x),
    "softplus": each(softplus),
    "softplus_grad": times(each(lambda v, beta=1, threshold=20: 1 if v * beta > threshold else 1 / (1 + math.exp(-v * beta)))),
    "logsigmoid": each(lambda v: -math.log1p(math.exp(-v)) if v > 0 else v - math.log1p(math.exp(v))),
    "softsign": lambda x: x / (1 + abs(x)),
    "softsign_grad": times(lambda x: (1 + abs(x)) ** -2.0),
    "tanhshrink": lambda x: x - np.tanh(x),
    "tanhshrink_grad": times(lambda x: np.tanh(x) ** 2),
    "hardtanh": lambda x, min_val=-1, max_val=1: np.clip(x, min_val, max_val),
    "hardtanh_grad": times(lambda x, min_val=-1, max_val=1: (x > min_val) & (x < max_val)),
    "relu6": lambda x: np.clip(x, 0, 6),
    "hardsigmoid": lambda x: np.clip(x / 6 + 0.5, 0, 1),
    "hardsigmoid_grad": times(lambda x: np.where(abs(x) < 3, 1 / 6, 0)),
    "hardswish": lambda x: x * np.clip(x / 6 + 0.5, 0, 1),
    "hardswish_grad": times(lambda x: np.where(x <= -3, 0, np.where(x >= 3, 1, x / 3 + 0.5))),
    "hardshrink": lambda x, lambd=0.5: np.where(abs(x) > lambd, x, 0),
    "softshrink": lambda x, lambd=0.5: np.sign(x) * np.maximum(abs(x) - lambd, 0),
    "shrink_grad": times(lambda x, lambd=0.5: abs(x) > lambd),
    "threshold": lambda x, threshold, value: np.where(x > threshold, x, value),
    "threshold_grad": times(lambda x, threshold=0: x > threshold),
    "glu": glu,
}
