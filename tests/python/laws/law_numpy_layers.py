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


def rms_norm(x, weight=1.0, axis=(-1,), eps=1e-6):
    return x / np.sqrt(np.mean(x**2, axis=tuple(axis), keepdims=True) + eps) * weight


def group_norm(x, groups, weight=None, bias=None, eps=1e-5):
    parts = x.reshape(x.shape[0], groups, int(np.prod(x.shape[1:])) // groups)
    y = ((parts - parts.mean(-1, keepdims=True)) / np.sqrt(parts.var(-1, keepdims=True) + eps)).reshape(x.shape) if x.size else x
    channel = [-1] + [1] * (x.ndim - 2)
    y = y if weight is None else y * np.reshape(weight, channel)
    return y if bias is None else y + np.reshape(bias, channel)


def local_response_norm(x, size, alpha=1e-4, beta=0.75, k=1):
    sums = np.zeros_like(x)
    for c in range(x.shape[1]):
        sums[:, c] = (x[:, max(c - size // 2, 0) : c + (size - 1) // 2 + 1] ** 2).sum(1)
    return x / (k + alpha / size * sums) ** beta


def normalize(x, p=2, axis=(1,), eps=1e-12):
    axis = axis if axis is None else tuple(axis)
    if p in (np.inf, -np.inf):
        norm = (np.max if p > 0 else np.min)(np.abs(x), axis=axis, keepdims=True) if x.size else 1.0
    elif p == 0:
        norm = np.sum(x != 0, axis=axis, keepdims=True)
    else:
        norm = np.sum(np.abs(x) ** p, axis=axis, keepdims=True) ** (1 / p)
    return x / np.maximum(norm, eps)


def bilinear(x, y, weight, bias=0.0):
    return np.einsum("...n,onm,...m->...o", x, weight, y) + bias


def im2col(x, kernel, stride=(1, 1), padding=(0, 0), dilation=(1, 1)):
    """A convolution with one filter per channel and tap that is 1 there and 0 elsewhere."""
    taps = x.shape[1] * kernel[0] * kernel[1]
    y = conv(x, np.eye(taps).reshape(taps, x.shape[1], *kernel), stride, padding, dilation)
    return y.reshape(*y.shape[:2], y.shape[2] * y.shape[3])


def col2im(x, size, kernel, stride=(1, 1), padding=(0, 0), dilation=(1, 1)):
    taps = x.shape[1]
    w = np.eye(taps).reshape(taps, taps // (kernel[0] * kernel[1]), *kernel)
    sizes = [(size[i] + 2 * padding[i] - dilation[i] * (kernel[i] - 1) - 1) // stride[i] + 1 for i in range(2)]
    more = [size[i] - ((sizes[i] - 1) * stride[i] - 2 * padding[i] + dilation[i] * (kernel[i] - 1) + 1) for i in range(2)]
    return conv_transpose(x.reshape(*x.shape[:2], *sizes), w, stride, padding, more, dilation)


def pixel_shuffle(x, factor):
    y = np.zeros((*x.shape[:-3], x.shape[-3] // factor**2, x.shape[-2] * factor, x.shape[-1] * factor), x.dtype)
    for i, j in np.ndindex(factor, factor):
        y[..., i::factor, j::factor] = x[..., i * factor + j :: factor**2, :, :]
    return y


def pixel_unshuffle(x, factor):
    y = np.zeros((*x.shape[:-3], x.shape[-3] * factor**2, x.shape[-2] // factor, x.shape[-1] // factor), x.dtype)
    for i, j in np.ndindex(factor, factor):
        y[..., i * factor + j :: factor**2, :, :] = x[..., i::factor, j::factor]
    return y


def channel_shuffle(x, groups):
    per = x.shape[1] // groups
    return x[:, [group * per + i for i in range(per) for group in range(groups)]]


def pad_edges(x, before, after, mode="replicate"):
    modes = {"replicate": "edge", "reflect": "reflect", "symmetric": "symmetric", "circular": "wrap"}
    return np.pad(x, list(zip(before, after)), mode=modes[mode]) if x.ndim else x


def resample(weight, reach, limited):
    """Along an axis: each element j counts with weight(position - j); positions are limited to the axis, or elements are repeated."""

    def resampled(x, axis, size, step, offset=0, over=1):
        n, start, step = x.shape[axis], offset * step / over - offset, step / over
        rows = np.zeros((size, n))
        for i in range(size):
            p = min(max(start + i * step, 0), n - 1) if limited else start + i * step
            for j in range(int(np.floor(p)) - reach + 1, int(np.floor(p)) + reach + 1):
                rows[i, min(max(j, 0), n - 1)] += weight(abs(p - j))
        return np.moveaxis(np.tensordot(rows, x, (1, axis)), 0, axis)

    return resampled


def keys(t, a=-0.75):
    if t <= 1:
        return ((a + 2) * t - (a + 3)) * t * t + 1
    return a * t**3 - 5 * a * t**2 + 8 * a * t - 4 * a if t < 2 else 0.0


def resample_smooth(x, axis, size, step, mode="linear"):
    """Each result is a mean around the middle of its stretch of the axis; the weight stretches with it where that is longer than an element."""
    rows = np.zeros((size, x.shape[axis]))
    for i, j in np.ndindex(rows.shape):
        away = abs(j + 0.5 - (i + 0.5) * step) / max(step, 1)
        rows[i, j] = max(1 - away, 0) if mode == "linear" else keys(away, a=-0.5)
    return np.moveaxis(np.tensordot(rows / rows.sum(1, keepdims=True), x, (1, axis)), 0, axis)


def resample_nearest(x, axis, size, step, offset=0, over=1):
    at = [min(max(int(np.floor((i + offset) * step / over)), 0), x.shape[axis] - 1) for i in range(size)]
    return np.take(x, at, axis)


def affine_grid(theta, size, align_corners=False):
    def along(n):
        if n == 1:
            return np.zeros(1)
        return np.linspace(-1, 1, n) if align_corners else (2 * np.arange(n) + 1) / n - 1

    points = np.stack([*np.meshgrid(*map(along, size[2:]), indexing="ij")[::-1], np.ones(size[2:])], axis=-1)
    return np.einsum("...j,nij->n...i", points, theta)


def reflected(p, n, align_corners):
    """A point that leaves the image on one side comes back by mirroring, as often as it takes."""
    low, high = (0, n - 1) if align_corners else (-0.5, n - 0.5)
    while not low <= p <= high:
        p = 2 * low - p if p < low else 2 * high - p
    return p


def grid_sample(x, grid, mode="bilinear", padding_mode="zeros", align_corners=False):
    """Point by point: the sum over all elements, each with a tent (or a box) around it; bicubic over its sixteen taps."""
    if mode == "bicubic":
        return grid_sample_cubic(x, grid, padding_mode, align_corners)
    y = np.zeros((*x.shape[:2], *grid.shape[1:-1]))
    for at in np.ndindex(*grid.shape[:-1]):
        weight = np.ones(())
        for n, g in zip(x.shape[2:], grid[at][::-1]):
            p = (g + 1) / 2 * (n - 1) if align_corners else ((g + 1) * n - 1) / 2
            if padding_mode != "zeros":
                p = reflected(p, n, align_corners) if padding_mode == "reflection" else p
                p = min(max(p, 0), n - 1)
            away = np.arange(n) - (np.round(p) if mode == "nearest" else p)
            weight = np.multiply.outer(weight, (away == 0) if mode == "nearest" else np.maximum(1 - np.abs(away), 0))
        y[(at[0], slice(None), *at[1:])] = (x[at[0]] * weight).reshape(x.shape[1], -1).sum(1)
    return y


def grid_sample_cubic(x, grid, padding_mode, align_corners):
    y = np.zeros((*x.shape[:2], *grid.shape[1:-1]))
    for at in np.ndindex(*grid.shape[:-1]):
        weight = np.ones(())
        for n, g in zip(x.shape[2:], grid[at][::-1]):
            p, along = (g + 1) / 2 * (n - 1) if align_corners else ((g + 1) * n - 1) / 2, np.zeros(n)
            for tap in range(int(np.floor(p)) - 1, int(np.floor(p)) + 3):
                q = reflected(tap, n, align_corners) if padding_mode == "reflection" else tap
                q = q if padding_mode == "zeros" else min(max(q, 0), n - 1)
                if 0 <= q < n:
                    along[int(q)] += keys(abs(p - tap))
            weight = np.multiply.outer(weight, along)
        y[(at[0], slice(None), *at[1:])] = (x[at[0]] * weight).reshape(x.shape[1], -1).sum(1)
    return y


def adaptive_avg_pool(x, size, any_size=False):
    for axis, m in enumerate(size, start=2):
        n = x.shape[axis]
        bins = [np.take(x, range(i * n // m, -((i + 1) * n // -m)), axis).mean(axis) for i in range(m)]
        x = np.stack(bins, axis)
    return x


def attention_scores(query, key, mask=None, causal=False, scale=None):
    scores = query @ np.swapaxes(key, -1, -2) * (1 / np.sqrt(query.shape[-1]) if scale is None else scale)
    if causal:
        scores = np.where(np.tril(np.ones(scores.shape, bool)), scores, -np.inf)
    if mask is None:
        return scores
    return np.where(mask, scores, -np.inf) if mask.dtype == bool else scores + mask


def attention_with_lse(query, key, value, mask=None, causal=False, scale=None):
    weights = np.exp(attention_scores(query, key, mask, causal, scale))
    sums = weights.sum(-1, keepdims=True)
    values = weights / np.where(sums == 0, 1, sums) @ value
    with np.errstate(divide="ignore"):
        return values, np.broadcast_to(np.log(sums[..., 0]), values.shape[:-1])


def attention_grad(query, key, value, cotangent, lse, delta, mask=None, causal=False, scale=None):
    weights = np.exp(attention_scores(query, key, mask, causal, scale) - lse[..., None])
    slopes = weights * (cotangent @ np.swapaxes(value, -1, -2) - delta[..., None])
    slopes = slopes * (1 / np.sqrt(query.shape[-1]) if scale is None else scale)
    return slopes @ key, np.swapaxes(slopes, -1, -2) @ query, np.swapaxes(weights, -1, -2) @ cotangent


def rotary_embedding(x, cos, sin, interleaved=False):
    """Pairs of features as complex numbers, times a complex number of modulus 1 (if cos and sin are of an angle)."""
    half = x.shape[-1] // 2
    first, second = (np.s_[..., 0::2], np.s_[..., 1::2]) if interleaved else (np.s_[..., :half], np.s_[..., half:])
    turned = (x[first] + 1j * x[second]) * (cos + 1j * sin)
    y = np.empty_like(x)
    y[first], y[second] = turned.real, turned.imag
    return y


def pooled(reduce):
    """Window by window: reduce(elements inside, their positions in the flattened axes, the window's size with padding but not beyond it)."""

    def run(x, kernel, stride=(), padding=(0,), dilation=(1,), ceil_mode=False):
        n = x.ndim - 2
        kernel, padding, dilation = per_axis(kernel, n), per_axis(padding, n), per_axis(dilation, n)
        stride = per_axis(stride or kernel, n)
        flat, number = x.reshape(*x.shape[:2], int(np.prod(x.shape[2:]))), np.arange(int(np.prod(x.shape[2:]))).reshape(x.shape[2:])
        starts = []
        for i in range(n):
            room = x.shape[i + 2] + 2 * padding[i] - dilation[i] * (kernel[i] - 1) - 1
            last = -(-room // stride[i]) if ceil_mode else room // stride[i]
            starts.append([o * stride[i] - padding[i] for o in range(last + 1) if not ceil_mode or o * stride[i] < x.shape[i + 2] + padding[i]])
        results = []
        for corner in np.ndindex(*map(len, starts)):
            taps = [[starts[i][corner[i]] + t * dilation[i] for t in range(kernel[i])] for i in range(n)]
            within = [[t for t in taps[i] if t < x.shape[i + 2] + padding[i]] for i in range(n)]
            at = number[np.ix_(*[[t for t in taps[i] if 0 <= t < x.shape[i + 2]] for i in range(n)])].reshape(-1)
            results.append(reduce(flat[..., at], at, int(np.prod([len(w) for w in within]))))
        return np.stack(results, -1).reshape(*x.shape[:2], *map(len, starts))

    return run


def max_pool_with_indices(x, *where, **how):
    values = pooled(lambda part, at, count: part.max(-1))(x, *where, **how)
    return [values, pooled(lambda part, at, count: at[part.argmax(-1)])(x, *where, **how)]


def avg_pool(x, kernel, stride=(), padding=(0,), ceil_mode=False, count_include_pad=True, divisor=None):
    def mean(part, at, count):
        return part.sum(-1) / (divisor or (count if count_include_pad else len(at)))

    return pooled(mean)(x, kernel, stride, padding, (1,), ceil_mode)


def lp_pool(x, p, kernel, stride=(), ceil_mode=False):
    whole = int(np.prod(per_axis(kernel, x.ndim - 2)))
    return pooled(lambda part, at, count: ((part**p).sum(-1) * whole / count) ** (1 / p))(x, kernel, stride, (0,), (1,), ceil_mode)


def adaptive_max_pool_with_indices(x, size, any_size=False):
    number = np.arange(int(np.prod(x.shape[2:]))).reshape(x.shape[2:])
    flat, values, indices = x.reshape(*x.shape[:2], int(np.prod(x.shape[2:]))), np.zeros((*x.shape[:2], *size)), np.zeros((*x.shape[:2], *size), int)
    for o in np.ndindex(*size):
        bins = [range(i * n // m, -((i + 1) * n // -m)) for i, n, m in zip(o, x.shape[2:], size)]
        at = number[np.ix_(*bins)].reshape(-1)
        values[(..., *o)] = flat[..., at].max(-1)
        indices[(..., *o)] = at[flat[..., at].argmax(-1)]
    return [values, indices]


def max_unpool(x, indices, size):
    y = np.zeros((*x.shape[:2], int(np.prod(size))))
    np.put_along_axis(y, indices.reshape(*x.shape[:2], int(np.prod(x.shape[2:]))), x.reshape(*x.shape[:2], int(np.prod(x.shape[2:]))), -1)
    return y.reshape(*x.shape[:2], *size)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def lstm_gates(x, y, c, bias_x=0.0, bias_y=0.0):
    i, f, g, o = np.split(x + bias_x + y + bias_y, 4, axis=-1)
    c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
    return [sigmoid(o) * np.tanh(c), c]


def gru_gates(x, y, h, bias_x=0.0, bias_y=0.0):
    (r, z, n), (hr, hz, hn) = np.split(x + bias_x, 3, axis=-1), np.split(y + bias_y, 3, axis=-1)
    z = sigmoid(z + hz)
    return (1 - z) * np.tanh(n + sigmoid(r + hr) * hn) + z * h


LAYERS = {
    "max_pool_with_indices": max_pool_with_indices,
    "avg_pool": avg_pool,
    "lp_pool": lp_pool,
    "adaptive_max_pool_with_indices": adaptive_max_pool_with_indices,
    "max_unpool": max_unpool,
    "lstm_cell": lambda x, h, c, w_ih, w_hh, b_ih=0.0, b_hh=0.0: lstm_gates(x @ w_ih.T, h @ w_hh.T, c, b_ih, b_hh),
    "gru_cell": lambda x, h, w_ih, w_hh, b_ih=0.0, b_hh=0.0: gru_gates(x @ w_ih.T, h @ w_hh.T, h, b_ih, b_hh),
    "lstm_gates": lstm_gates,
    "gru_gates": gru_gates,
    "rnn_tanh_cell": lambda x, h, w_ih, w_hh, b_ih=0.0, b_hh=0.0: np.tanh(x @ w_ih.T + b_ih + h @ w_hh.T + b_hh),
    "rnn_relu_cell": lambda x, h, w_ih, w_hh, b_ih=0.0, b_hh=0.0: np.maximum(x @ w_ih.T + b_ih + h @ w_hh.T + b_hh, 0),
    "attention": lambda *arguments, **more: attention_with_lse(*arguments, **more)[0],
    "attention_scores": attention_scores,
    "attention_weights": lambda query, key, lse, *rest, **more: np.exp(attention_scores(query, key, *rest, **more) - lse[..., None]),
    "attention_with_lse": attention_with_lse,
    "attention_grad": attention_grad,
    "rotary_embedding": rotary_embedding,
    "adaptive_avg_pool": adaptive_avg_pool,
    "rms_norm": rms_norm,
    "group_norm": group_norm,
    "local_response_norm": local_response_norm,
    "normalize": normalize,
    "bilinear": bilinear,
    "im2col": im2col,
    "col2im": col2im,
    "pixel_shuffle": pixel_shuffle,
    "pixel_unshuffle": pixel_unshuffle,
    "channel_shuffle": channel_shuffle,
    "pad_edges": pad_edges,
    "resample_nearest": resample_nearest,
    "resample_smooth": resample_smooth,
    "resample_linear": resample(lambda t: max(1 - t, 0), 2, True),
    "resample_cubic": resample(keys, 2, False),
    "affine_grid": affine_grid,
    "grid_sample": grid_sample,
    "conv": conv,
    "conv_transpose": conv_transpose,
    "overlap_add": overlap_add,
    "linear": linear,
}
