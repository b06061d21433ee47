"""Sequences of different lengths: padded into one tensor, or packed step by step."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Sequence
from typing import Any

import backplane as bp
from backplane import Tensor

__all__ = [
    "PackedSequence", "invert_permutation", "pack_padded_sequence", "pack_sequence", "pad_packed_sequence", "pad_sequence", "unpack_sequence", "unpad_sequence",
]  # fmt: skip
__dir__ = __all__.copy

PackedSequence = namedtuple("PackedSequence", ["data", "batch_sizes", "sorted_indices", "unsorted_indices"], defaults=[None, None])
PackedSequence.__doc__ = """Sequences, longest first, step by step: data (elements, *), batch_sizes (steps), int64, how many sequences have each step."""


def pack_padded_sequence(input: Tensor, lengths: Tensor | Sequence[int], batch_first: bool = False, enforce_sorted: bool = True) -> Any:
    """Packs input (length, n, *), or (n, length, *) with batch_first, of sequences of these lengths.

    enforce_sorted: they are longest first already. Without it they are sorted, and outputs are given in the order of the input.
    Errors: ArgumentValueError for lengths that are not positive, or not sorted; ShapeError.
    """
    counts = [int(n) for n in (lengths.tolist() if hasattr(lengths, "tolist") else lengths)]
    x = input.swapaxes(0, 1) if batch_first else input
    if len(counts) != x.shape[1] or not counts or min(counts) < 1 or max(counts) > x.shape[0]:
        raise bp.ArgumentValueError(f"pack_padded_sequence: argument lengths: found {counts}, expected {x.shape[1]} of them, from 1 to {x.shape[0]}")
    order = None
    if not enforce_sorted:
        order = sorted(range(len(counts)), key=lambda i: -counts[i])
        x = bp.take(x, bp.asarray(order, dtype=bp.int64, device=x.device), axis=1)
        counts = [counts[i] for i in order]
    elif counts != sorted(counts, reverse=True):
        raise bp.ArgumentValueError(f"pack_padded_sequence: argument lengths: found {counts}, expected the longest first, or enforce_sorted=False")
    sizes = [sum(n > step for n in counts) for step in range(counts[0])]
    rows = [step * len(counts) + i for step, size in enumerate(sizes) for i in range(size)]
    data = bp.take(x[: counts[0]].reshape((-1, *x.shape[2:])), bp.asarray(rows, dtype=bp.int64, device=x.device), axis=0)
    batch_sizes = bp.asarray(sizes, dtype=bp.int64, device="cpu")
    if order is None:
        return PackedSequence(data, batch_sizes)
    back = sorted(range(len(order)), key=order.__getitem__)
    return PackedSequence(data, batch_sizes, *(bp.asarray(i, dtype=bp.int64, device=x.device) for i in (order, back)))


def pad_packed_sequence(sequence: Any, batch_first: bool = False, padding_value: float = 0.0, total_length: int | None = None) -> tuple[Tensor, Tensor]:
    """(the padded sequences, their lengths), in the order in which they were packed. total_length: at least the longest."""
    sizes = sequence.batch_sizes.tolist()
    steps, count = len(sizes), sizes[0]
    if total_length is not None and total_length < steps:
        raise bp.ArgumentValueError(f"pad_packed_sequence: argument total_length: found {total_length}, expected at least {steps}")
    data = sequence.data
    starts = [sum(sizes[:step]) for step in range(steps)]
    rows = [starts[step] + i if i < sizes[step] else data.shape[0] for step in range(steps) for i in range(count)]
    rows += [data.shape[0]] * (((total_length or steps) - steps) * count)
    filler = bp.full((1, *data.shape[1:]), padding_value, dtype=data.dtype, device=data.device)
    x = bp.take(bp.concat([data, filler]), bp.asarray(rows, dtype=bp.int64, device=data.device), axis=0)
    x = x.reshape((-1, count, *data.shape[1:]))
    lengths = bp.asarray([sum(size > i for size in sizes) for i in range(count)], dtype=bp.int64, device="cpu")
    if sequence.unsorted_indices is not None:
        x, lengths = bp.take(x, sequence.unsorted_indices, axis=1), bp.take(lengths, sequence.unsorted_indices.to("cpu"), axis=0)
    return (x.swapaxes(0, 1) if batch_first else x), lengths


def pad_sequence(sequences: Sequence[Tensor], batch_first: bool = False, padding_value: float = 0.0, padding_side: str = "right") -> Tensor:
    """Sequences (length, *) as one tensor (longest, n, *), or (n, longest, *) with batch_first."""
    if padding_side not in ("right", "left"):
        raise bp.ArgumentValueError(f"pad_sequence: argument padding_side: found {padding_side!r}, expected 'right' or 'left'")
    longest = max(x.shape[0] for x in sequences)
    padded = []
    for x in sequences:
        filler = bp.full((longest - x.shape[0], *x.shape[1:]), padding_value, dtype=x.dtype, device=x.device)
        padded.append(bp.concat([x, filler] if padding_side == "right" else [filler, x]))
    return bp.stack(padded, axis=0 if batch_first else 1)


def unpad_sequence(padded_sequences: Tensor, lengths: Tensor | Sequence[int], batch_first: bool = False) -> list[Tensor]:
    """The sequences of pad_sequence again."""
    x = padded_sequences if batch_first else padded_sequences.swapaxes(0, 1)
    counts = lengths.tolist() if hasattr(lengths, "tolist") else lengths
    return [row[: int(n)] for row, n in zip(x, counts)]


def pack_sequence(sequences: Sequence[Tensor], enforce_sorted: bool = True) -> Any:
    """Packs sequences (length, *)."""
    return pack_padded_sequence(pad_sequence(sequences), [x.shape[0] for x in sequences], enforce_sorted=enforce_sorted)


def unpack_sequence(packed_sequences: Any) -> list[Tensor]:
    """The sequences (length, *) of a packed one, in the order in which they were packed."""
    padded, lengths = pad_packed_sequence(packed_sequences, batch_first=True)
    return unpad_sequence(padded, lengths, batch_first=True)


def invert_permutation(permutation: Tensor | None) -> Tensor | None:
    """The permutation that undoes another one, a vector of int64; None for None."""
    return None if permutation is None else bp.argsort(permutation)
