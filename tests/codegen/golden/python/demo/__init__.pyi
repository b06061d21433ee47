# Types of the ops of namespace demo. Made by backplane-codegen from golden.yaml; edit that instead.
from collections.abc import Callable, Sequence
from typing import Literal

from backplane import Device, DType, Generator, Tensor
from backplane import bool as bool_, int8, int16, int32, int64, uint8, uint16, uint32, uint64, float16, bfloat16, float32, float64, complex64, complex128

Number = bool | int | float | complex

def axpby(x: Tensor | Number, y: Tensor | Number, *, alpha: Number = 1, beta: Number = 1, out: Tensor | None = None) -> Tensor:
    """Scales two tensors and adds them."""

def axpby_(x: Tensor, y: Tensor | Number, *, alpha: Number = 1, beta: Number = 1) -> Tensor:
    """axpby, written into its first argument, which is returned."""

scaled_sum = axpby

scaled_sum_ = axpby_

def cube(x: Tensor | Number) -> Tensor:
    """x * x * x."""

def window(x: Tensor | Number, axis: int = -1, starts: Sequence[int | None] = (0, 1), *, dtype: DType | None = None, mode: Literal['same', 'full'] = 'same') -> tuple[Tensor, Tensor]:
    """A host op with several results and every sort of argument."""

def noise(shape: int | Sequence[int], generator: Generator) -> Tensor:
    """Random bits."""

def turn(x: Tensor | Number, axes: int | Sequence[int]) -> Tensor:
    """A view with its axes in another order."""
