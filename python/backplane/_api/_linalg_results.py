"""What the functions of backplane.linalg return: tuples with names."""

from __future__ import annotations

from collections import namedtuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NamedTuple

    from .._core import Tensor
else:

    class _Named(type):
        def __new__(cls, name, bases, space):
            return namedtuple(name, space["__annotations__"], module="backplane.linalg") if bases else type.__new__(cls, name, bases, space)

    class NamedTuple(metaclass=_Named):
        """As typing's, whose import takes longer than all of this package's modules together."""


class EigResult(NamedTuple):
    eigenvalues: Tensor
    eigenvectors: Tensor


class EighResult(NamedTuple):
    eigenvalues: Tensor
    eigenvectors: Tensor


class QRResult(NamedTuple):
    Q: Tensor
    R: Tensor


class LUFactorResult(NamedTuple):
    LU: Tensor
    pivots: Tensor
    permutation: Tensor


class LUResult(NamedTuple):
    P: Tensor
    L: Tensor
    U: Tensor


class SlogdetResult(NamedTuple):
    sign: Tensor
    logabsdet: Tensor


class SVDResult(NamedTuple):
    U: Tensor
    S: Tensor
    Vh: Tensor


class LstsqResult(NamedTuple):
    x: Tensor
    residuals: Tensor
    rank: Tensor
    s: Tensor
