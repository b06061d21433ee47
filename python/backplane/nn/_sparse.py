"""Rows of tables by their numbers: embedding, embedding_bag, one_hot."""

import backplane as bp
from backplane import Tensor

from .. import _core

__all__ = ["embedding", "embedding_bag", "one_hot"]


def _row(function, number, rows):
    if number is None:
        return None
    if not -rows <= number < rows:
        raise bp.OutOfRangeError(f"{function}: argument padding_idx: found {number}, expected a row of {rows}")
    return number % rows


def _limit_norms(weight, index, max_norm, norm_type):
    """Scales the rows that are used, in place, to norms of at most max_norm; what is used then carries no gradient of that."""
    with bp.no_grad():
        rows = bp.embedding(weight.detach(), index)
        norm = bp.pow(bp.sum(bp.pow(bp.abs(rows), norm_type), [-1], dtype=rows.dtype, keepdims=True), 1 / norm_type)
        scale = bp.where(bp.greater(norm, max_norm), bp.divide(max_norm, bp.add(norm, 1e-7)), 1)
        weight.detach()[index] = bp.multiply(rows, scale)


def _by_frequency(rows, index, count):
    """The rows with a gradient that is divided by how often each occurs."""
    ones = bp.full([index.size], 1, dtype=rows.dtype, device=rows.device)
    often = bp.take(bp.segment_sum(ones, bp.reshape(index, [-1]), count), index)
    share = bp.expand_dims(bp.divide(1, often), [-1])
    return bp.add(bp.multiply(rows, share), bp.stop_gradient(bp.subtract(rows, bp.multiply(rows, share))))


def embedding(
    input: Tensor, weight: Tensor, padding_idx: int | None = None, max_norm: float | None = None, norm_type: float = 2.0,
    scale_grad_by_freq: bool = False, sparse: bool = False
) -> Tensor:
    """The rows of weight at input. The row padding_idx gets no gradient; max_norm first scales the rows that are used, in place.

    Gradients are dense tensors, whatever sparse says.
    """
    padding = _row("embedding", padding_idx, weight.shape[0])
    if max_norm is not None:
        _limit_norms(weight, input, max_norm, norm_type)
    rows = bp.embedding(weight, input)
    if scale_grad_by_freq:
        rows = _by_frequency(rows, input, weight.shape[0])
    if padding is None:
        return rows
    return bp.where(bp.expand_dims(bp.equal(input, padding), [-1]), bp.stop_gradient(rows), rows)


def _check_starts(starts, offsets, count):
    """Offsets begin at 0, do not fall and end within count. Read as positions in a table, so that the device checks them."""
    ends = bp.concat([starts[1:], bp.cast(offsets[-1:], bp.int64) if starts.shape != offsets.shape else bp.full([1], count, device=starts.device)])
    steps = bp.concat([bp.multiply(starts[:1], count + 1), bp.subtract(ends[: starts.shape[0]], starts)])
    try:
        bp.take(bp.zeros([count + 1], dtype=bp.int8, device=steps.device), bp.cast(steps, bp.uint64))
    except bp.DataError:
        raise bp.DataError(
            f"embedding_bag: argument offsets: found {offsets}, expected positions that begin at 0, do not fall, and end at most at {count}"
        ) from None


def _bags(input, offsets, include_last_offset):
    """The numbers (n) and for each the bag it is in, and how many bags there are."""
    if input.ndim == 2:
        if offsets is not None:
            raise bp.ArgumentValueError("embedding_bag: argument offsets: found a tensor with input of two axes, expected none")
        bag = bp.broadcast_to(bp.expand_dims(bp.arange(input.shape[0], dtype=bp.int64, device=input.device), [1]), input.shape)
        return bp.reshape(input, [-1]), bp.reshape(bag, [-1]), input.shape[0]
    if input.ndim != 1 or offsets is None or offsets.ndim != 1:
        raise bp.ShapeError("embedding_bag: found input of one axis without a vector of offsets, expected offsets, or input of two axes")
    starts = bp.cast(offsets[:-1] if include_last_offset else offsets, bp.int64)
    _check_starts(starts, offsets, input.shape[0])
    marks = bp.put_along_axis(bp.zeros([input.shape[0] + 1], dtype=bp.int64, device=input.device), starts, 1, accumulate=True)
    bag = bp.subtract(bp.cumulative_sum(marks)[:-1], 1)
    if include_last_offset:
        bag = bp.where(bp.less(bp.arange(input.shape[0], device=input.device), offsets[-1]), bag, -1)  # beyond the end: in no bag
    return input, bag, starts.shape[0]


def embedding_bag(
    input: Tensor, weight: Tensor, offsets: Tensor | None = None, max_norm: float | None = None, norm_type: float = 2,
    scale_grad_by_freq: bool = False, mode: str = "mean", sparse: bool = False, per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False, padding_idx: int | None = None
) -> Tensor:
    """Sums, means or maxima (mode) of rows of weight: of each row of input (b, n), or of input (n) cut where offsets say.

    padding_idx: numbers that do not count. per_sample_weights: of each number, with mode 'sum'. Empty bags are 0.
    """
    if mode not in ("sum", "mean", "max"):
        raise bp.ArgumentValueError(f"embedding_bag: argument mode: found {mode!r}, expected 'sum', 'mean' or 'max'")
    if per_sample_weights is not None and (mode != "sum" or per_sample_weights.shape != input.shape):
        raise bp.ArgumentValueError("embedding_bag: argument per_sample_weights: expected mode 'sum', and the shape of input")
    padding = _row("embedding_bag", padding_idx, weight.shape[0])
    numbers, bag, count = _bags(input, offsets, include_last_offset)
    rows = embedding(numbers, weight, None, max_norm, norm_type, scale_grad_by_freq)
    if per_sample_weights is not None:
        rows = bp.multiply(rows, bp.reshape(per_sample_weights, [-1, 1]))
    if padding is not None:
        bag = bp.where(bp.equal(numbers, padding), -1, bag)
    if mode != "max":
        return (bp.segment_sum if mode == "sum" else bp.segment_mean)(rows, bag, count)
    found = bp.segment_max(rows, bag, count)
    filled = bp.segment_sum(bp.full(bag.shape, 1, dtype=bp.int64, device=bag.device), bag, count)
    return bp.where(bp.expand_dims(bp.equal(filled, 0), [-1]), 0, found)


def one_hot(tensor: Tensor, num_classes: int = -1) -> Tensor:
    """A new last axis of num_classes that is 1 at the number and 0 elsewhere, int64; -1: as many as the largest number asks for."""
    if not hasattr(num_classes, "__index__"):
        raise bp.ArgumentTypeError(f"one_hot: argument num_classes: found {num_classes!r}, expected an integer")
    known = _core.has_values(tensor)
    if num_classes == -1:
        if not known or tensor.size == 0:
            raise bp.ArgumentValueError("one_hot: argument num_classes: found -1 with an empty tensor, expected the number of classes")
        num_classes = int(bp.max(tensor)) + 1
    if num_classes < 0:
        raise bp.ArgumentValueError(f"one_hot: argument num_classes: found {num_classes}, expected at least 0")
    if known and tensor.size and not 0 <= int(bp.min(tensor)) <= int(bp.max(tensor)) < num_classes:
        raise bp.DataError(f"one_hot: argument tensor: found a number out of range, expected 0 to {num_classes - 1}")
    return bp.one_hot(tensor, num_classes, dtype=bp.int64)
