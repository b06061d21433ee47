"""Fourier transforms of signals, and the matrix that turns spectra into mel bands."""

import numpy as np

import backplane as bp

from ._shape_ops import pad_with, whole_axis
from ._table import op
from ._types import dtype_of
from ._values import to_tensor


def _with_parts(z):
    """A complex tensor as pairs of reals, along a new last axis."""
    return bp.stack([bp.real(z), bp.imag(z)], axis=-1)


def _without_parts(x):
    """Pairs of reals as a complex tensor; a last axis of 1 holds reals. In double precision, as zeros of a spectrum are small differences."""
    x = bp.cast(x, bp.float64)
    return x[..., 0] if x.shape[-1] == 1 else bp.cast(x[..., 0], bp.complex128) + x[..., 1] * 1j


def _transformed(z, length, axis, inverse, onesided, dtype):
    if inverse and onesided:
        y = bp.expand_dims(bp.fft.irfft(z, n=length or 2 * (z.shape[axis] - 1), axis=axis), axis=-1)
    elif inverse:
        y = _with_parts(bp.fft.ifft(bp.cast(z, bp.complex128), n=length, axis=axis))
    elif onesided and not bp.is_complex(z):
        y = _with_parts(bp.fft.rfft(z, n=length, axis=axis))
    else:
        y = bp.fft.fft(bp.cast(z, bp.complex128), n=length, axis=axis)
        y = _with_parts(bp.slice(y, [axis], [0], [y.shape[axis] // 2 + 1], [1]) if onesided else y)
    return bp.cast(y, dtype)


@op("DFT", 17, static=(1,))
def dft_along_attribute(x, length=None, *, axis=1, inverse=0, onesided=0):
    length = None if length is None else int(length)
    return _transformed(_without_parts(x), length, whole_axis(axis, x.ndim), inverse, onesided, x.dtype)


@op("DFT", 20, static=(1, 2))
def dft(x, length=None, axis=None, *, inverse=0, onesided=0):
    axis = -2 if axis is None else int(axis)
    length = None if length is None else int(length)
    return _transformed(_without_parts(x), length, whole_axis(axis, x.ndim), inverse, onesided, x.dtype)


@op("STFT", 17, static=(1, 3))
def stft(signal, frame_step, window=None, frame_length=None, *, onesided=1):
    length = int(frame_length) if frame_length is not None else window.shape[0]
    frames = bp.unfold(_without_parts(signal), 1, length, int(frame_step))  # (batch, frames, length)
    if window is not None:
        if window.shape[0] < length:
            before = (length - window.shape[0]) // 2
            window = pad_with(window, [(before, length - window.shape[0] - before)], 0)
        frames = frames * window
    return _transformed(frames, length, 2, 0, onesided, signal.dtype)


@op("MelWeightMatrix", 17, static=(0, 1, 2, 3, 4))
def mel_weights(node, n_bands, length, sample_rate, low, high, *, output_datatype=1):
    """Triangles over the bins of a spectrum, spaced evenly on the mel scale (2595 log10(1 + f / 700))."""
    bands, length, rate = int(n_bands), int(length), int(sample_rate)
    low_mel, high_mel = (2595 * np.log1p(float(edge) / 700) / np.log(10) for edge in (low, high))
    mels = np.arange(bands + 2) * (high_mel - low_mel) / (bands + 2) + low_mel
    bins = ((length + 1) * 700 * np.expm1(mels / 2595 * np.log(10)) // rate).astype(int)
    matrix = np.zeros((length // 2 + 1, bands))
    for i in range(bands):
        left, center, right = bins[i : i + 3]
        if left == center:
            matrix[center, i] = 1
        else:
            matrix[left : center + 1, i] = np.arange(center - left + 1) / (center - left)
        if right > center:
            matrix[center:right, i] = np.arange(right - center, 0, -1) / (right - center)
    return bp.cast(to_tensor(matrix, node.device), dtype_of(output_datatype))
