"""choice and shuffle, as numpy.random has them."""

from __future__ import annotations

from .. import _core
from .._calls._tensor_argument import given_tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .._core import Generator, Tensor

__all__ = ["choice", "shuffle"]


def _drawing(generator):
    from ..random import default_rng

    return default_rng(_core.default_generator if generator is None else generator)


def choice(a: Any, size: Any = None, replace: bool = True, p: Any = None, axis: int = 0, *, generator: Generator | None = None) -> Tensor:
    """Random elements of `a`, or of arange(a) if it is an int: numpy.random.choice.

    size: the shape of the result in place of the axis. replace: False draws no element twice. p: the probability of each element.
    """
    return _drawing(generator).choice(a, size=size, replace=replace, p=p, axis=axis)


def shuffle(x: Any, axis: int = 0, *, generator: Generator | None = None) -> None:
    """Puts the slices of x along an axis into random order, in place: numpy.random.shuffle. `x[permutation(len(x))]` is a copy instead."""
    _drawing(generator).shuffle(given_tensor("shuffle", "x", x), axis=axis)
