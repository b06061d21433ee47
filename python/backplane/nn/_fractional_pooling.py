"""Maxima of windows whose positions are drawn, for outputs of any size: fractional max pooling (Graham 2014)."""

import math
from collections.abc import Sequence

import backplane as bp
from backplane import Generator, Tensor

from ._arguments import sizes

op = bp.ops.bp

__all__ = ["fractional_max_pool2d", "fractional_max_pool3d"]


def fractional_max_pool2d(
    input: Tensor, kernel_size: int | Sequence[int], output_size: int | Sequence[int] | None = None, output_ratio: float | Sequence[float] | None = None,
    return_indices: bool = False, _random_samples: Tensor | None = None, *, generator: Generator | None = None
) -> Tensor | tuple[Tensor, Tensor]:
    """The largest elements of windows of kernel_size at drawn positions: input (n, c, h, w) or (c, h, w), output (..., *output_size).

    output_ratio: output_size as parts of the input's sizes, between 0 and 1; give one of the two. return_indices: also the positions
    in the flattened (h, w). Each image and channel draws its positions anew, from generator.
    Errors: ArgumentValueError for both or none of the sizes, and for windows that do not fit.
    """
    return _fractional("fractional_max_pool2d", 2, input, kernel_size, output_size, output_ratio, return_indices, _random_samples, generator)


def fractional_max_pool3d(
    input: Tensor, kernel_size: int | Sequence[int], output_size: int | Sequence[int] | None = None, output_ratio: float | Sequence[float] | None = None,
    return_indices: bool = False, _random_samples: Tensor | None = None, *, generator: Generator | None = None
) -> Tensor | tuple[Tensor, Tensor]:
    """fractional_max_pool2d over three axes: input (n, c, d, h, w) or (c, d, h, w)."""
    return _fractional("fractional_max_pool3d", 3, input, kernel_size, output_size, output_ratio, return_indices, _random_samples, generator)


def _fractional(name, rank, input, kernel_size, output_size, output_ratio, return_indices, samples, generator):
    if input.ndim not in (rank + 1, rank + 2):
        raise bp.ShapeError(f"{name}: argument input: found {input.ndim} axes, expected {rank + 1} or {rank + 2}")
    if (output_size is None) == (output_ratio is None):
        raise bp.ArgumentValueError(f"{name}: found {'neither' if output_size is None else 'both'} of output_size and output_ratio, expected one of them")
    spatial = input.shape[input.ndim - rank :]
    kernel_size = sizes(name, "kernel_size", kernel_size, rank)
    if output_ratio is not None:
        ratios = list(output_ratio) if isinstance(output_ratio, (list, tuple)) else [output_ratio] * rank
        if len(ratios) != rank or not all(0 < ratio < 1 for ratio in ratios):
            raise bp.ArgumentValueError(f"{name}: argument output_ratio: found {output_ratio}, expected numbers between 0 and 1, one or {rank}")
        output_size = [int(size * ratio) for size, ratio in zip(spatial, ratios)]
    output_size = sizes(name, "output_size", output_size, rank)
    if any(count < 1 or width < 1 or count + width - 1 > size for count, width, size in zip(output_size, kernel_size, spatial)):
        raise bp.ArgumentValueError(
            f"{name}: found output_size {tuple(output_size)} and kernel_size {tuple(kernel_size)}, expected sizes from 1 whose sum is at most "
            f"one more than the input's {tuple(spatial)}"
        )
    if samples is None:
        batch = input.shape[: input.ndim - rank] if input.ndim == rank + 2 else (1, input.shape[0])
        samples = bp.uniform((*batch, rank), dtype=input.dtype, device=input.device, generator=generator)
    found = pooled(input, kernel_size, output_size, samples)
    return found if return_indices else found[0]


def _starts(sample, n, width, count):
    """(*sample.shape, count): where the windows of one axis begin."""
    if count == 1:
        return bp.full([*sample.shape, 1], n - width, dtype=bp.int64, device=sample.device)
    step = bp.asarray((n - width) / (count - 1), dtype=sample.dtype, device=sample.device)
    sample = bp.expand_dims(sample, [-1])
    places = bp.arange(count - 1, dtype=sample.dtype, device=sample.device)
    begun = op.cast((places + sample) * step, bp.int64) - op.cast(sample * step, bp.int64)
    return bp.concat([begun, bp.full([*begun.shape[:-1], 1], n - width, dtype=bp.int64, device=sample.device)], axis=-1)


def pooled(x: Tensor, kernel_size: Sequence[int], output_size: Sequence[int], samples: Tensor) -> tuple[Tensor, Tensor]:
    """(maxima, positions in the flattened spatial axes); samples: numbers on [0, 1) of shape (n, c, spatial axes), in two dimensions
    those of the width first."""
    rank = len(kernel_size)
    if x.ndim == rank + 1:
        found, indices = pooled(bp.expand_dims(x, [0]), kernel_size, output_size, samples)
        return found[0], indices[0]
    batch, spatial = list(x.shape[:2]), list(x.shape[2:])
    flat = bp.zeros([1] * (2 + 2 * rank), dtype=bp.int64, device=x.device)
    for axis, (n, width, count) in enumerate(zip(spatial, kernel_size, output_size)):
        sample = samples[..., rank - 1 - axis if rank == 2 else axis]
        within = bp.expand_dims(_starts(sample, n, width, count), [-1]) + bp.arange(width, device=x.device)
        shape = [*batch, *[count if i == axis else 1 for i in range(rank)], *[width if i == axis else 1 for i in range(rank)]]
        flat = flat * n + bp.reshape(within, shape)
    flat = bp.reshape(flat, [*batch, math.prod(output_size), math.prod(kernel_size)])
    plane = bp.reshape(x, [*batch, math.prod(spatial)])
    windows = bp.reshape(op.take_along_axis(plane, bp.reshape(flat, [*batch, -1]), axis=2), flat.shape)
    chosen = bp.argmax(windows, axis=-1, keepdims=True)
    shape = [*batch, *output_size]
    return bp.reshape(op.take_along_axis(windows, chosen, axis=3), shape), bp.reshape(op.take_along_axis(flat, chosen, axis=3), shape)
