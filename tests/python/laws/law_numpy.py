"""NumPy's (and by hand, the textbook's) form of the entries that have one: op -> function of the op's arguments.

Functions of the same array API name and the same arguments are found by name; the table holds the rest.
"""

import math

import numpy as np
from law_numpy_activations import ACTIVATIONS
from law_numpy_layers import LAYERS
from law_numpy_linalg import LINALG
from law_numpy_losses import LOSSES
from law_numpy_scatter import SCATTERS
from law_numpy_special import SPECIAL
from law_numpy_standard import STANDARD


def axes(axis):
    return tuple(axis) if isinstance(axis, list) else axis


def reduction(name):
    def reduced(x, axis=None, dtype=None, keepdims=False, correction=None):
        more = {} if correction is None else {"ddof": correction}
        more |= {} if dtype is None else {"dtype": dtype}
        return getattr(np, name)(x, axis=axes(axis), keepdims=keepdims, **more)

    return reduced


def softmax(x, axis=(-1,)):
    e = np.exp(x - np.max(np.real(x), axis=tuple(axis), keepdims=True)) if x.size else x
    return e / np.sum(e, axis=tuple(axis), keepdims=True)


def logsumexp(x, axis=None, keepdims=False):
    top = np.max(np.real(x), axis=axes(axis), keepdims=True) if x.size else 0
    found = np.log(np.sum(np.exp(x - top), axis=axes(axis), keepdims=True)) + top
    return found if keepdims else np.squeeze(found, axis=axes(axis))


def logsumexp_weighted(x, weight, axis=None, keepdims=False):
    x, weight = np.broadcast_arrays(x, weight)
    top = np.max(np.real(x), axis=axes(axis), keepdims=True) if x.size else 0
    found = np.log(np.sum(weight * np.exp(x - top), axis=axes(axis), keepdims=True)) + top
    return found if keepdims else np.squeeze(found, axis=axes(axis))


def padded(x, padding, value=0):
    return np.pad(x, ((0, 0), (0, 0), (padding[0],) * 2, (padding[1],) * 2), constant_values=value)


def windows(x, kernel, stride, dilation=(1, 1)):
    """(n, c, oh, ow, kh, kw)"""
    span = [d * (k - 1) + 1 for d, k in zip(dilation, kernel)]
    found = np.lib.stride_tricks.sliding_window_view(x, span, axis=(2, 3))
    return found[:, :, :: stride[0], :: stride[1], :: dilation[0], :: dilation[1]]


def conv2d(x, w, stride=(1, 1), padding=(0, 0), dilation=(1, 1), groups=1):
    found = windows(padded(x, padding), w.shape[2:], stride, dilation)
    inputs, outputs = np.split(found, groups, axis=1), np.split(w, groups, axis=0)
    return np.concatenate([np.einsum("nchwij,ocij->nohw", i, o) for i, o in zip(inputs, outputs)], axis=1)


def adjoint(forward, at, cotangent):
    """The adjoint of a linear function of an array, entry by entry."""
    found = np.zeros(at, cotangent.dtype)
    for position in np.ndindex(*at):
        unit = np.zeros(at, cotangent.dtype)
        unit[position] = 1
        found[position] = np.sum(forward(unit) * cotangent)
    return found


def max_pool2d(x, kernel, stride=(), padding=(0, 0)):
    return windows(padded(x, padding, -np.inf), kernel, stride or kernel).max(axis=(-1, -2)) if x.size else pooled_shape(x, kernel)


def avg_pool2d(x, kernel, stride=(), padding=(0, 0)):
    return windows(padded(x, padding), kernel, stride or kernel).mean(axis=(-1, -2)) if x.size else pooled_shape(x, kernel)


def pooled_shape(x, kernel):
    return np.zeros((*x.shape[:2], x.shape[2] // kernel[0], x.shape[3] // kernel[1]))


def normalised(x, axis, eps):
    return (x - x.mean(axis=axis, keepdims=True)) / np.sqrt(x.var(axis=axis, keepdims=True) + eps)


def per_channel(v, x):
    return np.asarray(v).reshape([1, x.shape[1]] + [1] * (x.ndim - 2))


def layer_norm(x, weight=1.0, bias=0.0, axis=(-1,), eps=1e-5):
    return normalised(x, tuple(axis), eps) * weight + bias


def batch_norm(x, weight=None, bias=None, eps=1e-5):
    axis = tuple(i for i in range(x.ndim) if i != 1)
    y = normalised(x, axis, eps)
    y = y if weight is None else y * per_channel(weight, x)
    return (y if bias is None else y + per_channel(bias, x)), x.mean(axis=axis), x.var(axis=axis)


def layer_norm_grad(cotangent, x, weight=1.0, axis=(-1,), eps=1e-5):
    axis = tuple(axis)
    r = 1 / np.sqrt(np.var(x, axis, keepdims=True) + eps)
    n, h = (x - np.mean(x, axis, keepdims=True)) * r, cotangent * weight
    return r * (h - np.mean(h, axis, keepdims=True) - n * np.mean(h * n, axis, keepdims=True))


def batch_norm_grad(cotangent, x, weight=None, eps=1e-5):
    axes = tuple(i for i in range(x.ndim) if i != 1)
    column = (1, -1) + (1,) * (x.ndim - 2)
    r = 1 / np.sqrt(x.var(axes, keepdims=True) + eps)
    n = (x - x.mean(axes, keepdims=True)) * r
    h = cotangent * (1 if weight is None else weight.reshape(column))
    x_grad = r * (h - h.mean(axes, keepdims=True) - n * (h * n).mean(axes, keepdims=True))
    return x_grad, (cotangent * n).sum(axes), cotangent.sum(axes)


def batch_norm_inference(x, mean, var, weight=None, bias=None, eps=1e-5):
    y = (x - per_channel(mean, x)) / np.sqrt(per_channel(var, x) + eps)
    y = y if weight is None else y * per_channel(weight, x)
    return y if bias is None else y + per_channel(bias, x)


def cross_entropy(logits, labels, axis=-1):
    logs = logits - logsumexp(logits, [axis], True)
    return -np.take_along_axis(logs, np.expand_dims(labels, axis), axis).squeeze(axis)


def key_of(axes, starts, stops, steps, ndim):
    found = [slice(None)] * ndim
    for axis, start, stop, step in zip(axes, starts, stops, steps):
        found[axis] = slice(start, stop, step)
    return tuple(found)


def written(x, key, value, accumulate=False):
    found = np.array(x)
    if accumulate:
        np.add.at(found, key, value)
    else:
        found[key] = value
    return found


def select_key(x, axis, index):
    return key_of([axis], [index % x.shape[axis]], [index % x.shape[axis] + 1], [1], x.ndim)


def index_key(indices):
    return tuple(slice(None) if item is None else item for item in indices)


def along(x, indices, axis):
    key = list(np.ogrid[tuple(slice(0, size) for size in x.shape)])
    key[axis] = indices
    return tuple(key)


def diagonal_put(x, value, offset=0, axis1=0, axis2=1):
    found = np.array(x)
    view = np.moveaxis(found, (axis1, axis2), (0, 1))
    at = np.arange(value.shape[-1])
    view[at + max(-offset, 0), at + max(offset, 0)] = np.moveaxis(value, -1, 0)
    return found


def unfold(x, axis, size, step=1, dilation=1):
    found = np.lib.stride_tricks.sliding_window_view(x, dilation * (size - 1) + 1, axis=axis)
    axis %= x.ndim
    return np.take(found, np.arange(0, found.shape[axis], step), axis=axis)[..., ::dilation]


def argsort(x, axis=-1, descending=False, stable=True):
    if not descending:
        return np.argsort(x, axis=axis, kind="stable")
    backwards = np.argsort(np.flip(x, axis), axis=axis, kind="stable")
    return np.flip(x.shape[axis] - 1 - backwards, axis)


def sort(x, axis=-1, descending=False, stable=True):
    return np.take_along_axis(x, argsort(x, axis, descending), axis)


def topk(x, k, axis=-1, largest=True):
    order = np.take(argsort(x, axis, largest), np.arange(k), axis=axis)
    return np.take_along_axis(x, order, axis), order


def sort_with_indices(x, axis=-1, descending=False, stable=True):
    y = np.atleast_1d(x)
    order = argsort(y, axis, descending)
    return np.take_along_axis(y, order, axis).reshape(x.shape), order.reshape(x.shape)


def prod_of_others(x, axis=None):
    def others(position):
        y = np.array(x)
        y[position] = 1
        return np.prod(y, axis=axes(axis), keepdims=True)

    return np.array([np.broadcast_to(others(i), x.shape)[i] for i in np.ndindex(x.shape)], x.dtype).reshape(x.shape)


def gelu(x):
    return 0.5 * x * (1 + erf(x * math.sqrt(0.5)))


def by_element(function):
    return lambda x: np.vectorize(function, otypes=[float])(x) if np.size(x) else np.asarray(x)


erf = by_element(math.erf)


def erfinv(y):
    """By bisection."""
    low, high = -6.0, 6.0
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if math.erf(middle) < y else (low, middle)
    return low


def digamma(x):
    """The asymptotic series, reached by the recurrence."""
    if x < 20:
        return digamma(x + 1) - 1 / x
    return math.log(x) - 1 / (2 * x) - 1 / (12 * x**2) + 1 / (120 * x**4) - 1 / (252 * x**6) + 1 / (240 * x**8)


def polygamma(n, x):
    """The defining series, with the integral of its rest by the midpoint rule."""
    count = 4000
    total = sum((x + k) ** -(n + 1) for k in range(count)) + (x + count - 0.5) ** -n / n
    total -= (n + 1) * (x + count - 0.5) ** -(n + 2) / 24
    return (-1) ** (n + 1) * math.factorial(n) * total


def sign(x):
    return np.where(x == 0, 0, x / np.where(x == 0, 1, np.abs(x))) if np.asarray(x).dtype.kind == "c" else np.sign(x)


def iota(n, start=0, step=1, dtype=None):
    return (start + np.arange(n) * step).astype(dtype or np.result_type(type(start), type(step)) if n else dtype)


def put_along(x, indices, values, axis=-1, accumulate=False):
    return written(x, along(x, indices, axis), values, accumulate)


def take_put(x, indices, values, axis=0, accumulate=False):
    return written(x, (slice(None),) * (axis % x.ndim) + (indices,), values, accumulate)


def one_hot(x, n, dtype="float32"):
    return (x[..., None] == np.arange(n)).astype(dtype)


def numpys(name):
    return lambda **arguments: getattr(np, name)(*arguments.values())


def by_name(*names):
    """Ops that are NumPy's function of the same name, called with the same keywords in the same order."""

    return {name: numpys(name) for name in names}


REFERENCE = {
    **by_name("abs", "negative", "square", "sqrt", "reciprocal", "exp", "expm1", "log", "log1p", "log2", "sin", "cos", "tan"),
    **by_name("tanh", "floor", "ceil", "trunc", "round", "isnan", "isinf", "isfinite", "logical_not", "conj", "real", "imag"),
    **by_name("add", "subtract", "multiply", "divide", "floor_divide", "remainder", "maximum", "minimum", "where"),
    **by_name("bitwise_and", "bitwise_or", "bitwise_xor", "logical_and", "logical_or", "logical_xor"),
    **by_name("equal", "not_equal", "less", "less_equal", "greater", "greater_equal", "matmul", "moveaxis"),
    **by_name("reshape", "argwhere"),
    **by_name("positive", "signbit", "exp2", "log10", "cbrt", "sinh", "cosh", "hypot", "copysign", "nextafter", "logaddexp"),
    **by_name("sinc", "deg2rad", "rad2deg", "fmod", "fmax", "fmin", "gcd", "lcm", "heaviside", "ldexp", "isposinf", "isneginf"),
    **by_name("nancumsum", "nancumprod"),
    **by_name("dot", "inner", "vdot", "flipud", "fliplr", "fabs", "iscomplex", "isreal"),
    **{name: reduction(name) for name in ("sum", "prod", "mean", "var", "std", "max", "min", "any", "all", "argmax", "argmin")},
    **{name: reduction(name) for name in ("nansum", "nanprod", "nanmean", "nanvar", "nanstd", "nanmax", "nanmin", "ptp")},
    "isclose": lambda x, y, **options: np.isclose(x, y, **options),
    "copy": lambda x: np.copy(x),
    "cast": lambda x, dtype: x.astype(dtype),
    "sum_to": lambda x, shape: adjoint(lambda s: np.broadcast_to(s, x.shape), tuple(shape), x) if x.size else np.zeros(shape),
    "complex_from": lambda re, im: re + 1j * im,
    "sign": sign,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "atan": lambda x: np.arctan(x),
    "atan2": lambda x, y: np.arctan2(x, y),
    "pow": lambda x, y: np.power(x, y),
    **{name: numpys(f"arc{name[1:]}") for name in ("asin", "acos", "asinh", "acosh", "atanh")},
    "erf": erf,
    "erfc": by_element(math.erfc),
    "erfinv": by_element(erfinv),
    "lgamma": by_element(math.lgamma),
    "digamma": by_element(digamma),
    "polygamma": lambda n, x: by_element(lambda value: polygamma(n, value))(x),
    "logit": lambda x: np.log(x) - np.log1p(-x),
    "frac": lambda x: x - np.trunc(x),
    "xlogy": lambda x, y: x * np.log(y),
    "nan_to_num": lambda x, nan=0, posinf=None, neginf=None: np.nan_to_num(x, nan=nan, posinf=posinf, neginf=neginf),
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "relu": lambda x: np.maximum(x, 0),
    "silu": lambda x: x / (1 + np.exp(-x)),
    "gelu": gelu,
    **ACTIVATIONS,
    **LOSSES,
    **SCATTERS,
    **SPECIAL,
    "bitwise_invert": lambda x: np.invert(x),
    "bitwise_left_shift": lambda x, y: np.left_shift(x, y),
    "bitwise_right_shift": lambda x, y: np.right_shift(x, y),
    "masked_fill": lambda x, mask, value: np.where(mask, value, x),
    "lerp": lambda x, y, weight: x * (1 - weight) + y * weight,
    "addcmul": lambda x, tensor1, tensor2, value=1: x + value * tensor1 * tensor2,
    "addcdiv": lambda x, tensor1, tensor2, value=1: x + value * tensor1 / tensor2,
    "addmm": lambda x, mat1, mat2, beta=1, alpha=1: beta * x + alpha * (mat1 @ mat2),
    "matmul_add": lambda x, y, z: x @ y + z,
    "angle": lambda x: np.angle(x),
    "clip": lambda x, min=None, max=None: np.clip(x, min, max),
    "full": lambda shape, fill_value, dtype=None: np.full(shape, fill_value, dtype=dtype),
    "zeros": lambda shape, dtype="float32": np.zeros(shape, dtype),
    "ones": lambda shape, dtype="float32": np.ones(shape, dtype),
    "full_like": lambda x, fill_value: np.full_like(x, fill_value),
    "zeros_like": lambda x: np.zeros_like(x),
    "ones_like": lambda x: np.ones_like(x),
    "iota": iota,
    "arange": lambda start, stop=None, step=1: np.arange(start, step=step) if stop is None else np.arange(start, stop, step),
    "linspace": lambda start, stop, num, dtype="float32", endpoint=True: np.linspace(start, stop, num, endpoint=endpoint, dtype=dtype),
    "eye": lambda n_rows, n_cols=None, k=0, dtype="float32": np.eye(n_rows, n_cols, k, dtype=dtype),
    "prod_of_others": prod_of_others,
    "logsumexp": logsumexp,
    "logsumexp_weighted": logsumexp_weighted,
    "cumsum": lambda x, axis: np.cumsum(x, axis=axis).reshape(x.shape),
    "cumprod": lambda x, axis: np.cumprod(x, axis=axis).reshape(x.shape),
    **STANDARD,
    "matrix_transpose": lambda x: np.swapaxes(x, -1, -2),
    "permute_dims": lambda x, axes: np.transpose(x, axes),
    "broadcast_to": lambda x, shape: np.broadcast_to(x, shape),
    "select": lambda x, axis, index: np.take(x, index, axis=axis),
    "slice": lambda x, axes, starts, stops, steps: x[key_of(axes, starts, stops, steps, x.ndim)],
    "squeeze": lambda x, axis: np.squeeze(x, tuple(axis)),
    "expand_dims": lambda x, axis: np.expand_dims(x, tuple(axis)),
    "diagonal": lambda x, offset=0, axis1=0, axis2=1: np.diagonal(x, offset, axis1, axis2),
    "unfold": unfold,
    "bitcast": lambda x, dtype: x.view(dtype),
    "flip": lambda x, axis=None: np.flip(x, axes(axis)),
    "concat": lambda arrays, axis=0: np.concatenate(arrays, axis),
    "stack": lambda arrays, axis=0: np.stack(arrays, axis),
    "pad": lambda x, before, after, value=0: np.pad(x, list(zip(before, after)), constant_values=value) if x.ndim else x,
    "slice_put": lambda x, value, axes, starts, stops, steps: written(x, key_of(axes, starts, stops, steps, x.ndim), value),
    "select_put": lambda x, value, axis, index: written(x, select_key(x, axis, index), np.expand_dims(np.broadcast_to(value, np.delete(x.shape, axis)), axis)),
    "diagonal_put": diagonal_put,
    "tril": lambda x, k=0: np.tril(x, k),
    "triu": lambda x, k=0: np.triu(x, k),
    "index": lambda x, indices: x[index_key(indices)],
    "index_put": lambda x, indices, values, accumulate=False: written(x, index_key(indices), values, accumulate),
    "take": lambda x, indices, axis=0: np.take(x, indices, axis=axis),
    "take_put": take_put,
    "take_along_axis": lambda x, indices, axis=-1: x[along(x, indices, axis)],
    "put_along_axis": put_along,
    "masked_select": lambda x, mask: x[mask],
    "masked_put": lambda x, mask, values: written(x, mask, values),
    "embedding": lambda weight, indices: weight[indices],
    "one_hot": one_hot,
    "argsort": argsort,
    "sort": sort,
    "topk": topk,
    "sort_with_indices": sort_with_indices,
    "softmax": softmax,
    "log_softmax": lambda x, axis=(-1,): x - logsumexp(x, list(axis), True),
    "cross_entropy": cross_entropy,
    "nll_loss": lambda log_probs, labels, axis=-1: -np.take_along_axis(log_probs, np.expand_dims(labels, axis), axis).squeeze(axis),
    **LAYERS,
    **LINALG,
    "conv2d": conv2d,
    "conv2d_input_grad": lambda y, w, shape, **how: adjoint(lambda x: conv2d(x, w, **how), tuple(shape), y),
    "conv2d_weight_grad": lambda y, x, shape, **how: adjoint(lambda w: conv2d(x, w, **how), tuple(shape), y),
    "max_pool2d": max_pool2d,
    "max_pool2d_with_indices": lambda **arguments: [max_pool2d(**arguments)],
    "avg_pool2d": avg_pool2d,
    "layer_norm": layer_norm,
    "batch_norm": batch_norm,
    "batch_norm_grad": batch_norm_grad,
    "layer_norm_grad": layer_norm_grad,
    "batch_norm_inference": batch_norm_inference,
}
