"""PyTorch's transforms of signals by windows: stft, istft and kaiser_window."""

from __future__ import annotations

from .. import _core, fft
from .._api._padding import pad
from ._calls import op

__all__ = ["istft", "kaiser_window", "stft"]


def kaiser_window(length, periodic, beta, dtype, device):
    """I0(beta * sqrt(1 - r**2)) / I0(beta) for r from -1 to 1; a periodic one is one point longer, and leaves the last out."""
    dtype = _core.default_float() if dtype is None else dtype
    if length < 2:
        return op.full([length], 1.0, dtype=dtype, device=device)
    last = length if periodic else length - 1
    r = op.subtract(op.multiply(op.cast(op.iota(length, device=device), _core.float64), 2.0 / last), 1.0)
    inside = op.multiply(op.sqrt(op.maximum(op.subtract(1.0, op.square(r)), 0.0)), beta)
    return op.cast(op.divide(op.i0(inside), op.i0(_core.asarray(float(beta), _core.float64))), dtype)


def _centred(window, win_length, n_fft, dtype, device, function):
    """The window with zeros on both sides, as long as a transform."""
    if window is None:
        window = op.full([win_length], 1.0, dtype=dtype, device=device)
    if window.shape != (win_length,):
        raise _core.ShapeError(f"{function}: argument window: found shape {tuple(window.shape)}, expected ({win_length},), the window length")
    left = (n_fft - win_length) // 2
    return pad(window, [(left, n_fft - win_length - left)]) if win_length < n_fft else window


def _lengths(function, n_fft, hop_length, win_length):
    hop = n_fft // 4 if hop_length is None else hop_length
    length = n_fft if win_length is None else win_length
    if not 0 < length <= n_fft or hop < 1:
        raise _core.ArgumentValueError(f"{function}: found hop_length {hop} and win_length {length}, expected them from 1 on, win_length at most {n_fft}")
    return hop, length


def _real_dtype(x):
    return {"complex64": _core.float32, "complex128": _core.float64}.get(x.dtype.name, x.dtype)


def stft(x, n_fft, hop_length, win_length, window, center, pad_mode, normalized, onesided, return_complex):
    """The transforms of a signal (or rows of signals) under a moving window: (*, frequencies, frames)."""
    if x.ndim not in (1, 2):
        raise _core.ShapeError(f"stft: argument input: found {x.ndim} dimensions, expected a signal or a batch of signals")
    hop, length = _lengths("stft", n_fft, hop_length, win_length)
    is_complex = x.dtype.kind == "complex floating" or (window is not None and window.dtype.kind == "complex floating")
    onesided = not is_complex if onesided is None else onesided
    if return_complex is None and not is_complex:
        raise _core.ArgumentValueError("stft: argument return_complex: found None, expected True, or False for pairs of real numbers")
    if onesided and is_complex:
        raise _core.ArgumentValueError("stft: argument onesided: found True for complex elements, expected False")
    window = _centred(window, length, n_fft, _real_dtype(x), x.device, "stft")
    if center:
        half = n_fft // 2
        mode = {"constant": "constant", "reflect": "reflect", "replicate": "edge", "circular": "wrap"}.get(pad_mode)
        if mode is None or (mode == "reflect" and half >= x.shape[-1]):
            raise _core.ArgumentValueError(f"stft: found pad_mode {pad_mode!r} for {x.shape[-1]} elements, expected constant, replicate, circular, or reflect of more than {half}")
        x = pad(x, [*[(0, 0)] * (x.ndim - 1), (half, half)], mode)
    if x.shape[-1] < n_fft:
        raise _core.ShapeError(f"stft: argument n_fft: found {n_fft}, expected at most {x.shape[-1]}, the size of the signal")
    frames = op.multiply(x.unfold(-1, n_fft, hop), window)
    norm = "ortho" if normalized else "backward"
    found = op.moveaxis(fft.rfft(frames, norm=norm) if onesided else fft.fft(frames, norm=norm), -1, -2)
    if return_complex or return_complex is None:
        return found
    return op.stack([op.real(found), op.imag(found)], axis=-1)


def istft(x, n_fft, hop_length, win_length, window, center, normalized, onesided, length, return_complex):
    """The signal of stft's result: windowed frames added up, over the sum of the squared windows."""
    if x.dtype.kind != "complex floating" or x.ndim not in (2, 3):
        raise _core.ArgumentTypeError(f"istft: argument input: found {x.dtype.name} and {x.ndim} dimensions, expected complex (frequencies, frames) or a batch")
    hop, size = _lengths("istft", n_fft, hop_length, win_length)
    onesided = x.shape[-2] != n_fft if onesided is None else onesided
    if x.shape[-2] != (n_fft // 2 + 1 if onesided else n_fft):
        raise _core.ShapeError(f"istft: argument input: found {x.shape[-2]} frequencies, expected {n_fft // 2 + 1 if onesided else n_fft}")
    window = _centred(window, size, n_fft, _real_dtype(x), x.device, "istft")
    norm = "ortho" if normalized else "backward"
    rows = op.moveaxis(x, -1, -2)
    frames = fft.irfft(rows, n_fft, norm=norm) if onesided else fft.ifft(rows, norm=norm)
    if not return_complex and not onesided:
        frames = op.real(frames)
    frames = op.multiply(frames, window)
    count = frames.shape[-2]
    whole = n_fft + hop * (count - 1)
    places = op.reshape(op.add(op.expand_dims(op.multiply(op.iota(count, device=x.device), hop), 1), op.iota(n_fft, device=x.device)), [-1])
    zeros = op.full([whole, *frames.shape[:-2]], 0, dtype=frames.dtype, device=x.device)
    added = op.index_add(zeros, 0, places, op.moveaxis(op.reshape(frames, [*frames.shape[:-2], -1]), -1, 0))
    squares = op.index_add(op.full([whole], 0, dtype=window.dtype, device=x.device), 0, places, op.tile(op.square(window), [count]))
    start = n_fft // 2 if center else 0
    stop = start + length if length is not None else whole - (n_fft // 2 if center else 0)
    signal, weights = op.moveaxis(added[start : min(stop, whole)], 0, -1), squares[start : min(stop, whole)]
    if weights.size and _core.has_values(weights) and float(op.min(op.abs(weights))) < 1e-11:
        raise _core.ArgumentValueError("istft: argument window: found a sum of windows that is 0 within the signal, expected windows that overlap")
    signal = op.divide(signal, weights)
    missing = stop - whole
    return pad(signal, [*[(0, 0)] * (signal.ndim - 1), (0, missing)]) if missing > 0 else signal
