"""NumPy's form of the layers of networks: linear maps, windows, norms, attention, cells and resampling."""

import numpy as np


def linear(x, weight, bias=0.0):
    return x @ weight.T + bias


def per_axis(values, n):
    return list(values) * n if len(values) == 1 else list(values)


def conv(x, w, stride=(1,), padding=(0,), dilation=(1,), groups=1):
    """Tap by tap: each is a product of one slice of the padded input with one matrix of channels."""
    n = x.ndim - 2
    stride, padding, dilation = per_axis(stride, n), per_axis(padding, n), per_axis(dilation, n)
    x = np.pad(x, [(0, 0), (0, 0)] + [(p, p) for p in padding])
    sizes = [(x.shape[i + 2] - dilation[i] * (w.shape[i + 2] - 1) - 1) // stride[i] + 1 for i in range(n)]
    y = np.zeros([x.shape[0], w.shape[0]] + sizes)
    for tap in np.ndindex(*w.shape[2:]):
        key = tuple(slice(t * d, t * d + (size - 1) * s + 1, s) for t, d, size, s in zip(tap, dilation, sizes, stride))
        part, kernel = x[(slice(None), slice(None), *key)], w[(slice(None), slice(None), *tap)]
        pairs = zip(np.split(part, groups, axis=1), np.split(kernel, groups, axis=0))
        y += np.concatenate([np.einsum("nc...,oc->no...", i, o) for i, o in pairs], axis=1)
    return y


def conv_transpose(x, w, stride=(1,), padding=(0,), output_padding=(0,), dilation=(1,), groups=1):
    n = x.ndim - 2
    stride, padding, dilation, more = (per_axis(v, n) for v in (stride, padding, dilation, output_padding))
    sizes = [(x.shape[i + 2] - 1) * stride[i] + dilation[i] * (w.shape[i + 2] - 1) + 1 + more[i] for i in range(n)]
    y = np.zeros([x.shape[0], w.shape[1] * groups] + sizes)
    for tap in np.ndindex(*w.shape[2:]):
        key = tuple(slice(t * d, t * d + (size - 1) * s + 1, s) for t, d, size, s in zip(tap, dilation, x.shape[2:], stride))
        pairs = zip(np.split(x, groups, axis=1), np.split(w[(slice(None), slice(None), *tap)], groups, axis=0))
        y[(slice(None), slice(None), *key)] += np.concatenate([np.einsum("nc...,co->no...", i, o) for i, o in pairs], axis=1)
    return y[(slice(None), slice(None), *(slice(p, size - p) for p, size in zip(padding, sizes)))]


def overlap_add(x, axis, size, step=1, dilation=1):
    x = np.moveaxis(x, axis % (x.ndim - 1), 0)
    y = np.zeros((size, *x.shape[1:-1]), x.dtype)
    for window, k in np.ndindex(x.shape[0], x.shape[-1]):
        y[window * step + k * dilation] += x[window, ..., k]
    return np.moveaxis(y, 0, axis)


LAYERS = {
    "conv": conv,
    "conv_transpose": conv_transpose,
    "overlap_add": overlap_add,
    "linear": linear,
}
