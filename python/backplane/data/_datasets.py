"""Datasets: of tensors, parts and sums of others, and streams."""

from __future__ import annotations

import bisect
import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import backplane as bp
from backplane import Generator, Tensor

__all__ = ["ChainDataset", "ConcatDataset", "Dataset", "IterableDataset", "StackDataset", "Subset", "TensorDataset", "random_split"]


class Dataset:
    """Examples by number: a subclass defines __getitem__ and __len__, and __getitems__ where it can give several at once."""

    def __getitem__(self, index: Any) -> Any:
        raise NotImplementedError(f"{type(self).__name__}: __getitem__ is not defined; define it in the subclass")

    def __add__(self, other: Any) -> ConcatDataset:
        return ConcatDataset([self, other])


class IterableDataset(Dataset):
    """Examples one after the other: a subclass defines __iter__. Workers each get a copy: see get_worker_info."""

    def __iter__(self) -> Iterator[Any]:
        raise NotImplementedError(f"{type(self).__name__}: __iter__ is not defined; define it in the subclass")

    def __add__(self, other: Any) -> ChainDataset:  # type: ignore[override]
        return ChainDataset([self, other])


class TensorDataset(Dataset):
    """The rows of tensors or arrays of equal length: example i is the tuple of their rows i."""

    tensors: tuple[Tensor, ...]

    def __init__(self, *tensors: Any) -> None:
        self.tensors = tuple(x if isinstance(x, Tensor) else bp.asarray(x) for x in tensors)
        lengths = [x.shape[0] if x.ndim else 0 for x in self.tensors]
        if not lengths or len(set(lengths)) > 1 or any(x.ndim == 0 for x in self.tensors):
            raise bp.ShapeError(f"TensorDataset: argument tensors: found lengths {lengths}, expected tensors of one length")

    def __getitem__(self, index: Any) -> tuple[Tensor, ...]:
        return tuple(x[index] for x in self.tensors)

    def __getitems__(self, indices: Sequence[int]) -> tuple[Tensor, ...]:
        """A batch at once: rows of each tensor, which the loader takes as collated."""
        chosen = {x.device: bp.asarray(list(indices), dtype=bp.int64, device=x.device) for x in self.tensors}
        return Batch(bp.take(x, chosen[x.device], axis=0) for x in self.tensors)

    def __len__(self) -> int:
        return self.tensors[0].shape[0]


class Batch(tuple):
    """Examples that are collated already."""


class StackDataset(Dataset):
    """Examples made of those of several datasets of equal length: tuples, or dicts of datasets by name."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.datasets: Any = kwargs or args
        parts = list(kwargs.values() or args)
        if (args and kwargs) or not parts or len({len(part) for part in parts}) > 1:
            raise bp.ArgumentValueError("StackDataset: expected datasets of one length, all by position or all by name")
        self._length = len(parts[0])

    def __getitem__(self, index: int) -> Any:
        if isinstance(self.datasets, dict):
            return {name: part[index] for name, part in self.datasets.items()}
        return tuple(part[index] for part in self.datasets)

    def __len__(self) -> int:
        return self._length


class ConcatDataset(Dataset):
    """Datasets one behind the other."""

    def __init__(self, datasets: Iterable[Any]) -> None:
        self.datasets = list(datasets)
        if not self.datasets:
            raise bp.ArgumentValueError("ConcatDataset: argument datasets: found none, expected at least one")
        self.cumulative_sizes: list[int] = []
        for part in self.datasets:
            self.cumulative_sizes.append(len(part) + (self.cumulative_sizes[-1] if self.cumulative_sizes else 0))

    def __getitem__(self, index: int) -> Any:
        found = index + len(self) if index < 0 else index
        if not 0 <= found < len(self):
            raise IndexError(f"ConcatDataset: found index {index}, expected one below {len(self)}")
        part = bisect.bisect_right(self.cumulative_sizes, found)
        return self.datasets[part][found - (self.cumulative_sizes[part - 1] if part else 0)]

    def __len__(self) -> int:
        return self.cumulative_sizes[-1]


class ChainDataset(IterableDataset):
    """Streams one behind the other."""

    def __init__(self, datasets: Iterable[Any]) -> None:
        self.datasets = list(datasets)

    def __iter__(self) -> Iterator[Any]:
        for part in self.datasets:
            yield from part


class Subset(Dataset):
    """Some examples of a dataset, by number."""

    def __init__(self, dataset: Any, indices: Sequence[int]) -> None:
        self.dataset, self.indices = dataset, indices

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, list):
            return self.dataset[[self.indices[i] for i in index]]
        return self.dataset[self.indices[index]]

    def __getitems__(self, indices: Sequence[int]) -> Any:
        own = [self.indices[i] for i in indices]
        several = getattr(self.dataset, "__getitems__", None)
        return several(own) if several is not None else [self.dataset[i] for i in own]

    def __len__(self) -> int:
        return len(self.indices)


def random_split(dataset: Any, lengths: Sequence[int | float], generator: Generator | None = None) -> list[Subset]:
    """The dataset in parts of these lengths, at random; lengths that sum to 1 are shares of it.

    Errors: ArgumentValueError where the lengths do not sum to that of the dataset.
    """
    total, counts = len(dataset), list(lengths)
    if any(isinstance(n, float) for n in counts) and math.isclose(sum(counts), 1):
        counts = [math.floor(total * share) for share in counts]
        for i in range(total - sum(counts)):
            counts[i % len(counts)] += 1
    if sum(counts) != total or any(n < 0 for n in counts):
        raise bp.ArgumentValueError(f"random_split: argument lengths: found {list(lengths)}, expected a sum of {total}, or of 1")
    how: dict[str, Any] = {} if generator is None else {"generator": generator}
    order = bp.permutation(total, **how).tolist()
    parts, start = [], 0
    for n in counts:
        parts.append(Subset(dataset, order[start : start + int(n)]))
        start += int(n)
    return parts
