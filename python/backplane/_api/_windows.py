"""NumPy's windows of signal processing: symmetric, of M points, in the default dtype. PyTorch's hann_window and others are periodic ones."""

from __future__ import annotations

from ..compat import torch as _torch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .._core import Tensor

__all__ = ["bartlett", "blackman", "hamming", "hanning", "kaiser"]


def bartlett(M: int) -> Tensor:
    """The triangular window of M points, 0 at both ends. Shape (M), in the default dtype; empty for M below 1."""
    return _torch.bartlett_window(max(M, 0), False)


def blackman(M: int) -> Tensor:
    """Blackman's window of M points: 0.42 - 0.5 cos(2 pi n / (M - 1)) + 0.08 cos(4 pi n / (M - 1)). Shape (M); empty for M below 1."""
    return _torch.blackman_window(max(M, 0), False)


def hamming(M: int) -> Tensor:
    """Hamming's window of M points: 0.54 - 0.46 cos(2 pi n / (M - 1)). Shape (M), in the default dtype; empty for M below 1."""
    return _torch.hamming_window(max(M, 0), False)


def hanning(M: int) -> Tensor:
    """Hann's window of M points: 0.5 - 0.5 cos(2 pi n / (M - 1)). Shape (M), in the default dtype; empty for M below 1."""
    return _torch.hann_window(max(M, 0), False)


def kaiser(M: int, beta: float) -> Tensor:
    """Kaiser's window of M points: I0(beta sqrt(1 - (2 n / (M - 1) - 1)^2)) / I0(beta). beta: its shape, 0 for a rectangle. Shape (M)."""
    return _torch.kaiser_window(max(M, 0), False, beta)
