"""Maxima, means and norms of windows over one to three axes, adaptive windows, and unpooling of maxima."""

import math
from collections.abc import Callable, Sequence

import backplane as bp
from backplane import Tensor, _core

from .._calls._half_floats import rounds_once
from ._arguments import sizes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal, Protocol, overload

    class MaxPool(Protocol):
        """The results of max pooling; with return_indices, a pair."""

        @overload
        def __call__(
            self, input: Tensor, kernel_size: int | Sequence[int], stride: int | Sequence[int] | None = None, padding: int | Sequence[int] = 0,
            dilation: int | Sequence[int] = 1, ceil_mode: bool = False, return_indices: Literal[False] = False
        ) -> Tensor: ...
        @overload
        def __call__(
            self, input: Tensor, kernel_size: int | Sequence[int], stride: int | Sequence[int] | None = None, padding: int | Sequence[int] = 0,
            dilation: int | Sequence[int] = 1, ceil_mode: bool = False, *, return_indices: Literal[True]
        ) -> tuple[Tensor, Tensor]: ...

    class AdaptiveMaxPool(Protocol):
        """The results of adaptive max pooling; with return_indices, a pair."""

        @overload
        def __call__(self, input: Tensor, output_size: int | Sequence[int | None], return_indices: Literal[False] = False) -> Tensor: ...
        @overload
        def __call__(self, input: Tensor, output_size: int | Sequence[int | None], return_indices: Literal[True]) -> tuple[Tensor, Tensor]: ...


def _typed_max_pool(function: "Callable[..., Tensor | tuple[Tensor, Tensor]]") -> "MaxPool":
    return function


def _typed_adaptive_max_pool(function: "Callable[..., Tensor | tuple[Tensor, Tensor]]") -> "AdaptiveMaxPool":
    return function


__all__ = [
    "adaptive_avg_pool1d",
    "adaptive_avg_pool2d",
    "adaptive_avg_pool3d",
    "adaptive_max_pool1d",
    "adaptive_max_pool2d",
    "adaptive_max_pool3d",
    "avg_pool1d",
    "avg_pool2d",
    "avg_pool3d",
    "lp_pool1d",
    "lp_pool2d",
    "lp_pool3d",
    "max_pool1d",
    "max_pool2d",
    "max_pool3d",
    "max_unpool1d",
    "max_unpool2d",
    "max_unpool3d",
]


def _batched(function, input, axes):
    """The input as (n, c, *spatial), and how to bring a result back to the input's form."""
    if input.ndim == axes + 2:
        return input, lambda y: y
    if input.ndim == axes + 1:
        return bp.expand_dims(input, [0]), lambda y: bp.squeeze(y, [0])
    raise bp.ShapeError(f"{function}: argument input: found shape {tuple(input.shape)}, expected {axes + 1} or {axes + 2} axes")


def _kernel_and_stride(function, kernel_size, stride, axes):
    kernel = sizes(function, "kernel_size", kernel_size, axes)
    absent = stride is None or (hasattr(stride, "__len__") and len(stride) == 0)
    return kernel, kernel if absent else sizes(function, "stride", stride, axes)


def _max_pool(function, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices, axes):
    x, back = _batched(function, input, axes)
    kernel, stride = _kernel_and_stride(function, kernel_size, stride, axes)
    padding, dilation = sizes(function, "padding", padding, axes), sizes(function, "dilation", dilation, axes)
    values, indices = bp.max_pool_with_indices(x, kernel, stride, padding, dilation, bool(ceil_mode))
    return (back(values), back(indices)) if return_indices else back(values)


@_typed_max_pool
def max_pool1d(
    input: Tensor, kernel_size: int | Sequence[int], stride: int | Sequence[int] | None = None, padding: int | Sequence[int] = 0,
    dilation: int | Sequence[int] = 1, ceil_mode: bool = False, return_indices: bool = False
) -> Tensor | tuple[Tensor, Tensor]:
    """The largest element of each window of input (n, c, l) or (c, l); with return_indices also its position along l."""
    return _max_pool("max_pool1d", input, kernel_size, stride, padding, dilation, ceil_mode, return_indices, 1)


@_typed_max_pool
def max_pool2d(
    input: Tensor, kernel_size: int | Sequence[int], stride: int | Sequence[int] | None = None, padding: int | Sequence[int] = 0,
    dilation: int | Sequence[int] = 1, ceil_mode: bool = False, return_indices: bool = False
) -> Tensor | tuple[Tensor, Tensor]:
    """The largest element of each window of input (n, c, h, w) or (c, h, w); with return_indices also its position in the flattened image."""
    return _max_pool("max_pool2d", input, kernel_size, stride, padding, dilation, ceil_mode, return_indices, 2)


@_typed_max_pool
def max_pool3d(
    input: Tensor, kernel_size: int | Sequence[int], stride: int | Sequence[int] | None = None, padding: int | Sequence[int] = 0,
    dilation: int | Sequence[int] = 1, ceil_mode: bool = False, return_indices: bool = False
) -> Tensor | tuple[Tensor, Tensor]:
    """The largest element of each window of input (n, c, d, h, w) or (c, d, h, w); with return_indices also its position in the flattened volume."""
    return _max_pool("max_pool3d", input, kernel_size, stride, padding, dilation, ceil_mode, return_indices, 3)


def _avg_pool(function, input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor, axes):
    x, back = _batched(function, input, axes)
    kernel, stride = _kernel_and_stride(function, kernel_size, stride, axes)
    if divisor is not None and divisor == 0:
        raise bp.ArgumentValueError(f"{function}: argument divisor_override: found 0, expected a number of at least 1")
    padding = sizes(function, "padding", padding, axes)
    return back(bp.avg_pool(x, kernel, stride, padding, bool(ceil_mode), bool(count_include_pad), divisor))


def avg_pool1d(
    input: Tensor, kernel_size: int | Sequence[int], stride: int | Sequence[int] | None = None, padding: int | Sequence[int] = 0,
    ceil_mode: bool = False, count_include_pad: bool = True
) -> Tensor:
    """The mean of each window of input (n, c, l) or (c, l)."""
    return _avg_pool("avg_pool1d", input, kernel_size, stride, padding, ceil_mode, count_include_pad, None, 1)


def avg_pool2d(
    input: Tensor, kernel_size: int | Sequence[int], stride: int | Sequence[int] | None = None, padding: int | Sequence[int] = 0,
    ceil_mode: bool = False, count_include_pad: bool = True, divisor_override: int | None = None
) -> Tensor:
    """The mean of each window of input (n, c, h, w) or (c, h, w), or its sum divided by divisor_override."""
    return _avg_pool("avg_pool2d", input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override, 2)


def avg_pool3d(
    input: Tensor, kernel_size: int | Sequence[int], stride: int | Sequence[int] | None = None, padding: int | Sequence[int] = 0,
    ceil_mode: bool = False, count_include_pad: bool = True, divisor_override: int | None = None
) -> Tensor:
    """The mean of each window of input (n, c, d, h, w) or (c, d, h, w), or its sum divided by divisor_override."""
    return _avg_pool("avg_pool3d", input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override, 3)


def _adaptive(function, op, input, output_size, axes):
    x, back = _batched(function, input, axes)
    given = [output_size] * axes if output_size is None or hasattr(output_size, "__index__") else list(output_size)
    if len(given) == axes:
        given = [x.shape[i + 2] if size is None else size for i, size in enumerate(given)]
    size = sizes(function, "output_size", given, axes)
    if min(size) < 1:
        raise bp.ArgumentValueError(f"{function}: argument output_size: found {size}, expected sizes of at least 1")
    return op(x, size, any_size=any(map(_core.is_dynamic, [*x.shape[2:], *size]))), back


def _adaptive_max(function, input, output_size, return_indices, axes):
    (values, indices), back = _adaptive(function, bp.adaptive_max_pool_with_indices, input, output_size, axes)
    return (back(values), back(indices)) if return_indices else back(values)


def _adaptive_avg(function, input, output_size, axes):
    y, back = _adaptive(function, bp.adaptive_avg_pool, input, output_size, axes)
    return back(y)


@_typed_adaptive_max_pool
def adaptive_max_pool1d(
    input: Tensor, output_size: int | Sequence[int | None], return_indices: bool = False
) -> Tensor | tuple[Tensor, Tensor]:
    """The maxima of output_size windows that cover the axis of input (n, c, l) or (c, l)."""
    return _adaptive_max("adaptive_max_pool1d", input, output_size, return_indices, 1)


@_typed_adaptive_max_pool
def adaptive_max_pool2d(
    input: Tensor, output_size: int | Sequence[int | None], return_indices: bool = False
) -> Tensor | tuple[Tensor, Tensor]:
    """The maxima of output_size windows that cover the axes of input (n, c, h, w) or (c, h, w); None keeps an axis."""
    return _adaptive_max("adaptive_max_pool2d", input, output_size, return_indices, 2)


@_typed_adaptive_max_pool
def adaptive_max_pool3d(
    input: Tensor, output_size: int | Sequence[int | None], return_indices: bool = False
) -> Tensor | tuple[Tensor, Tensor]:
    """The maxima of output_size windows that cover the axes of input (n, c, d, h, w) or (c, d, h, w); None keeps an axis."""
    return _adaptive_max("adaptive_max_pool3d", input, output_size, return_indices, 3)


def adaptive_avg_pool1d(input: Tensor, output_size: int | Sequence[int | None]) -> Tensor:
    """The means of output_size windows that cover the axis of input (n, c, l) or (c, l)."""
    return _adaptive_avg("adaptive_avg_pool1d", input, output_size, 1)


def adaptive_avg_pool2d(input: Tensor, output_size: int | Sequence[int | None]) -> Tensor:
    """The means of output_size windows that cover the axes of input (n, c, h, w) or (c, h, w); None keeps an axis."""
    return _adaptive_avg("adaptive_avg_pool2d", input, output_size, 2)


def adaptive_avg_pool3d(input: Tensor, output_size: int | Sequence[int | None]) -> Tensor:
    """The means of output_size windows that cover the axes of input (n, c, d, h, w) or (c, d, h, w); None keeps an axis."""
    return _adaptive_avg("adaptive_avg_pool3d", input, output_size, 3)


def _lp_pool(function, input, norm_type, kernel_size, stride, ceil_mode, axes):
    x, back = _batched(function, input, axes)
    kernel, stride = _kernel_and_stride(function, kernel_size, stride, axes)
    if norm_type == 0:
        raise bp.ArgumentValueError(f"{function}: argument norm_type: found 0, expected another number")
    if norm_type in (math.inf, -math.inf):
        sign = 1 if norm_type > 0 else -1
        largest, _ = bp.max_pool_with_indices(sign * abs(x), kernel, stride, [0] * axes, [1] * axes, bool(ceil_mode))
        return back(sign * largest)
    return back(bp.lp_pool(x, norm_type, kernel, stride, bool(ceil_mode)))


@rounds_once
def lp_pool1d(
    input: Tensor, norm_type: float, kernel_size: int | Sequence[int], stride: int | Sequence[int] | None = None,
    ceil_mode: bool = False
) -> Tensor:
    """The norm_type-th root of the sum of norm_type-th powers in each window of input (n, c, l) or (c, l)."""
    return _lp_pool("lp_pool1d", input, norm_type, kernel_size, stride, ceil_mode, 1)


@rounds_once
def lp_pool2d(
    input: Tensor, norm_type: float, kernel_size: int | Sequence[int], stride: int | Sequence[int] | None = None,
    ceil_mode: bool = False
) -> Tensor:
    """The norm_type-th root of the sum of norm_type-th powers in each window of input (n, c, h, w) or (c, h, w)."""
    return _lp_pool("lp_pool2d", input, norm_type, kernel_size, stride, ceil_mode, 2)


@rounds_once
def lp_pool3d(
    input: Tensor, norm_type: float, kernel_size: int | Sequence[int], stride: int | Sequence[int] | None = None,
    ceil_mode: bool = False
) -> Tensor:
    """The norm_type-th root of the sum of norm_type-th powers in each window of input (n, c, d, h, w) or (c, d, h, w)."""
    return _lp_pool("lp_pool3d", input, norm_type, kernel_size, stride, ceil_mode, 3)


def _max_unpool(function, input, indices, kernel_size, stride, padding, output_size, axes):
    x, back = _batched(function, input, axes)
    at, _ = _batched(function, indices, axes)
    if x.shape != at.shape:
        raise bp.ShapeError(f"{function}: argument indices: found shape {tuple(indices.shape)}, expected the input's {tuple(input.shape)}")
    kernel, stride = _kernel_and_stride(function, kernel_size, stride, axes)
    padding = sizes(function, "padding", padding, axes)
    size = [(n - 1) * s - 2 * p + k for n, s, p, k in zip(x.shape[2:], stride, padding, kernel)]
    if output_size is not None:
        given = list(output_size)[-axes:]
        for found, usual, step in zip(given, size, stride):
            if not usual - step < found < usual + step:
                raise bp.ArgumentValueError(f"{function}: argument output_size: found {given}, expected less than a stride from {size}")
        size = given
    return back(bp.max_unpool(x, at, size))


def max_unpool1d(
    input: Tensor, indices: Tensor, kernel_size: int | Sequence[int], stride: int | Sequence[int] | None = None,
    padding: int | Sequence[int] = 0, output_size: int | Sequence[int] | None = None
) -> Tensor:
    """Zeros, and the elements of input at the positions that max_pool1d gave as indices."""
    return _max_unpool("max_unpool1d", input, indices, kernel_size, stride, padding, output_size, 1)


def max_unpool2d(
    input: Tensor, indices: Tensor, kernel_size: int | Sequence[int], stride: int | Sequence[int] | None = None,
    padding: int | Sequence[int] = 0, output_size: int | Sequence[int] | None = None
) -> Tensor:
    """Zeros, and the elements of input at the positions that max_pool2d gave as indices."""
    return _max_unpool("max_unpool2d", input, indices, kernel_size, stride, padding, output_size, 2)


def max_unpool3d(
    input: Tensor, indices: Tensor, kernel_size: int | Sequence[int], stride: int | Sequence[int] | None = None,
    padding: int | Sequence[int] = 0, output_size: int | Sequence[int] | None = None
) -> Tensor:
    """Zeros, and the elements of input at the positions that max_pool3d gave as indices."""
    return _max_unpool("max_unpool3d", input, indices, kernel_size, stride, padding, output_size, 3)
