"""Discrete Fourier transforms: the array API's extension of that name, with its signatures, and NumPy's over two axes.

    spectrum = bp.fft.rfft(signal)

What is computed is in three ops of the registry: complex to complex, real to complex, complex to real. The functions here pad
and trim along the transformed axes and choose the op.
"""

from __future__ import annotations

from . import _core
from ._calls._ops import ops, refuse_names as _refuse_names
from ._api._manipulation_functions import normalized_axes as _normalized_axes, normalized_axis as _normalized_axis
from ._calls._tensor_argument import given_tensor as _given_tensor, takes_dim as _takes_dim, takes_tensor as _takes_tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ._core import DType, Device, Tensor

_bp = ops.bp

__all__ = [
    "fft",
    "fft2",
    "fftfreq",
    "fftn",
    "fftshift",
    "hfft",
    "ifft",
    "ifft2",
    "ifftn",
    "ifftshift",
    "ihfft",
    "irfft",
    "irfft2",
    "irfftn",
    "rfft",
    "rfft2",
    "rfftfreq",
    "rfftn",
]
__dir__ = __all__.copy

# The direction that the division by n goes with, seen from the other one.
_OPPOSITE = {"backward": "forward", "ortho": "ortho", "forward": "backward"}


def _checked_norm(name, norm):
    """The norm, 'backward' for None, as in NumPy."""
    norm = "backward" if norm is None else norm
    if norm not in _OPPOSITE:
        raise _core.ArgumentValueError(f"{name}: argument norm: found {norm!r}, expected 'backward', 'ortho' or 'forward'")
    return norm


def _complex(x):
    if x.dtype.kind == "complex floating":
        return x
    x = _floating(x)
    return _bp.complex_from(x, _bp.zeros_like(x))


def _floating(x):
    if x.dtype in (_core.float32, _core.float64):
        return x
    wide = x.dtype.kind != "real floating" and _core.default_float() is _core.float64
    return _bp.cast(x, _core.float64 if wide else _core.float32)


def _axes_and_sizes(name, x, s, axes):
    """Axes from 0, and the size that each is to have: x's own where none is stated."""
    several = name[-1] in "2n"
    if several and axes is None:
        count = x.ndim if s is None else len(s)
        axes = range(x.ndim - count, x.ndim)
    found = _normalized_axes(name, axes, x.ndim) if several else [_normalized_axis(name, axes, x.ndim)]
    if s is not None and len(s) != len(found):
        raise _core.ArgumentValueError(f"{name}: argument s: found {len(s)} sizes for {len(found)} axes")
    if not found and name not in ("fftn", "ifftn"):
        raise _core.ArgumentValueError(f"{name}: argument axes: found no axis, expected one or more")
    sizes = [x.shape[axis] if s is None or s[i] is None or s[i] == -1 else s[i] for i, axis in enumerate(found)]
    for size in sizes:
        if size < 1:
            raise _core.ArgumentValueError(f"{name}: found {size} elements to transform, expected one or more")
    return found, sizes


def _fit(x, axes, sizes):
    """x trimmed, or padded with zeros at the end, to a size along each axis."""
    short = [(axis, size) for axis, size in zip(axes, sizes) if size < x.shape[axis]]
    if short:
        cut, stops = zip(*short)
        x = _bp.slice(x, cut, (0,) * len(cut), stops, (1,) * len(cut))
    after = [0] * x.ndim
    for axis, size in zip(axes, sizes):
        after[axis] = size - x.shape[axis]
    return _bp.pad(x, (0,) * x.ndim, after) if any(after) else x


def _c2c(name, x, s, axes, norm, forward):
    norm = _checked_norm(name, norm)
    axes, sizes = _axes_and_sizes(name, x, s, axes)
    x = _fit(_complex(x), axes, sizes)
    return _bp.fft_c2c(x, axes, norm=norm, forward=forward) if axes else x


def _r2c(name, x, s, axes, norm):
    norm = _checked_norm(name, norm)
    if x.dtype.kind == "complex floating":
        raise _core.DtypeError(f"{name}: argument x: found {x.dtype.name}, expected a real floating dtype")
    axes, sizes = _axes_and_sizes(name, x, s, axes)
    return _bp.fft_r2c(_fit(_floating(x), axes, sizes), axes, norm=norm)


def _c2r(name, x, s, axes, norm):
    norm = _checked_norm(name, norm)
    axes, sizes = _axes_and_sizes(name, x, s, axes)
    if s is None or s[-1] in (None, -1):
        sizes[-1] = 2 * (x.shape[axes[-1]] - 1)
    if sizes[-1] < 1:
        raise _core.ArgumentValueError(f"{name}: found {sizes[-1]} elements to transform, expected one or more")
    x = _fit(_complex(x), axes, [*sizes[:-1], sizes[-1] // 2 + 1])
    return _bp.fft_c2r(x, axes, sizes[-1], norm=norm)


def _one(name, n):
    if n is not None and not hasattr(n, "__index__"):
        raise _core.ArgumentTypeError(f"{name}: argument n: found {n!r}, expected an int")
    if n is not None and n < 1:  # -1 stands for the axis's own size in fftn alone
        raise _core.ArgumentValueError(f"{name}: argument n: found {n}, expected one or more")
    return None if n is None else (n,)


@_takes_dim
@_takes_tensor
def fft(x: Tensor, n: int | None = None, axis: int = -1, norm: str | None = "backward") -> Tensor:
    """The discrete Fourier transform along axis, of n elements."""
    return _c2c("fft", x, _one("fft", n), axis, norm, True)


@_takes_dim
@_takes_tensor
def ifft(x: Tensor, n: int | None = None, axis: int = -1, norm: str | None = "backward") -> Tensor:
    """The inverse of fft."""
    return _c2c("ifft", x, _one("ifft", n), axis, norm, False)


@_takes_dim
@_takes_tensor
def fftn(
    x: Tensor, s: Sequence[int] | None = None, axes: Sequence[int] | None = None, norm: str | None = "backward"
) -> Tensor:
    """The discrete Fourier transform over axes (all, or the last len(s)), of s elements."""
    return _c2c("fftn", x, s, axes, norm, True)


@_takes_dim
@_takes_tensor
def ifftn(
    x: Tensor, s: Sequence[int] | None = None, axes: Sequence[int] | None = None, norm: str | None = "backward"
) -> Tensor:
    """The inverse of fftn."""
    return _c2c("ifftn", x, s, axes, norm, False)


@_takes_dim
@_takes_tensor
def rfft(x: Tensor, n: int | None = None, axis: int = -1, norm: str | None = "backward") -> Tensor:
    """The transform of real x along axis: its n // 2 + 1 values that determine the others."""
    return _r2c("rfft", x, _one("rfft", n), axis, norm)


@_takes_dim
@_takes_tensor
def irfft(x: Tensor, n: int | None = None, axis: int = -1, norm: str | None = "backward") -> Tensor:
    """The inverse of rfft, with n real elements (2 (m - 1) from m unless stated)."""
    return _c2r("irfft", x, _one("irfft", n), axis, norm)


@_takes_dim
@_takes_tensor
def rfftn(
    x: Tensor, s: Sequence[int] | None = None, axes: Sequence[int] | None = None, norm: str | None = "backward"
) -> Tensor:
    """The transform of real x over axes; the last of them keeps s // 2 + 1 values."""
    return _r2c("rfftn", x, s, axes, norm)


@_takes_dim
@_takes_tensor
def irfftn(
    x: Tensor, s: Sequence[int] | None = None, axes: Sequence[int] | None = None, norm: str | None = "backward"
) -> Tensor:
    """The inverse of rfftn."""
    return _c2r("irfftn", x, s, axes, norm)


@_takes_dim
@_takes_tensor
def hfft(x: Tensor, n: int | None = None, axis: int = -1, norm: str | None = "backward") -> Tensor:
    """The real transform of a signal with Hermitian symmetry, given by its first n // 2 + 1 values."""
    norm = _checked_norm("hfft", norm)
    return _c2r("hfft", _bp.conj(x), _one("hfft", n), axis, _OPPOSITE[norm])


@_takes_dim
@_takes_tensor
def ihfft(x: Tensor, n: int | None = None, axis: int = -1, norm: str | None = "backward") -> Tensor:
    """The inverse of hfft."""
    norm = _checked_norm("ihfft", norm)
    return _bp.conj(_r2c("ihfft", x, _one("ihfft", n), axis, _OPPOSITE[norm]))


@_takes_dim
@_takes_tensor
def fft2(
    x: Tensor, s: Sequence[int] | None = None, axes: Sequence[int] | None = (-2, -1), norm: str | None = "backward"
) -> Tensor:
    """fftn over two axes."""
    return _c2c("fft2", x, s, axes, norm, True)


@_takes_dim
@_takes_tensor
def ifft2(
    x: Tensor, s: Sequence[int] | None = None, axes: Sequence[int] | None = (-2, -1), norm: str | None = "backward"
) -> Tensor:
    """The inverse of fft2."""
    return _c2c("ifft2", x, s, axes, norm, False)


@_takes_dim
@_takes_tensor
def rfft2(
    x: Tensor, s: Sequence[int] | None = None, axes: Sequence[int] | None = (-2, -1), norm: str | None = "backward"
) -> Tensor:
    """rfftn over two axes."""
    return _r2c("rfft2", x, s, axes, norm)


@_takes_dim
@_takes_tensor
def irfft2(
    x: Tensor, s: Sequence[int] | None = None, axes: Sequence[int] | None = (-2, -1), norm: str | None = "backward"
) -> Tensor:
    """The inverse of rfft2."""
    return _c2r("irfft2", x, s, axes, norm)


def _frequencies(name, n, d, count, dtype, device, positions):
    if n < 1:
        raise _core.ArgumentValueError(f"{name}: argument n: found {n}, expected one or more")
    dtype = _core.default_float() if dtype is None else _core.as_dtype(dtype, name)
    if dtype.kind not in ("real floating", "complex floating"):
        raise _core.DtypeError(f"{name}: argument dtype: found {dtype.name}, expected a floating dtype")
    return _bp.divide(_bp.cast(positions(_bp.iota(count, device=device)), dtype), n * d)


def fftfreq(n: int, d: float = 1.0, *, dtype: DType | None = None, device: Device | None = None) -> Tensor:
    """The frequencies of fft's values, for n elements d apart, in cycles per unit of d."""
    half = (n - 1) // 2
    return _frequencies("fftfreq", n, d, n, dtype, device, lambda i: _bp.subtract(_bp.remainder(_bp.add(i, n // 2), n), n - 1 - half))


def rfftfreq(n: int, d: float = 1.0, *, dtype: DType | None = None, device: Device | None = None) -> Tensor:
    """The frequencies of rfft's values, for n elements d apart."""
    return _frequencies("rfftfreq", n, d, n // 2 + 1, dtype, device, lambda i: i)


def _shifted(name, x, axes, shift):
    x = _given_tensor(name, "x", x)
    given = x
    for axis in range(x.ndim) if axes is None else _normalized_axes(name, axes, x.ndim):
        size = x.shape[axis]
        first = shift(size)
        if first == 0:
            continue
        tail = _bp.slice(x, (axis,), (first,), (None,), (1,))
        x = _bp.concat((tail, _bp.slice(x, (axis,), (0,), (first,), (1,))), axis=axis)
    return _bp.copy(x) if x is given else x


@_takes_dim
def fftshift(x: Tensor, axes: int | Sequence[int] | None = None) -> Tensor:
    """x with the frequency 0 moved to the middle of each axis."""
    return _shifted("fftshift", x, axes, lambda size: (size + 1) // 2)


@_takes_dim
def ifftshift(x: Tensor, axes: int | Sequence[int] | None = None) -> Tensor:
    """The inverse of fftshift."""
    return _shifted("ifftshift", x, axes, lambda size: size // 2)


if not TYPE_CHECKING:  # to whom a name that is in no list is an error
    __getattr__ = _refuse_names(__name__)
