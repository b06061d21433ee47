"""The order in which a loader takes examples."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import backplane as bp
from backplane import Generator

__all__ = ["BatchSampler", "RandomSampler", "Sampler", "SequentialSampler", "SubsetRandomSampler", "WeightedRandomSampler"]


def drawn(generator):
    return {} if generator is None else {"generator": generator}


class Sampler:
    """The numbers of examples, in order: a subclass defines __iter__, and __len__ where it is known."""

    def __iter__(self) -> Iterator[Any]:
        raise NotImplementedError(f"{type(self).__name__}: __iter__ is not defined; define it in the subclass")


class SequentialSampler(Sampler):
    """All examples in order."""

    def __init__(self, data_source: Any) -> None:
        self.data_source = data_source

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self.data_source)))

    def __len__(self) -> int:
        return len(self.data_source)


class RandomSampler(Sampler):
    """All examples at random, or num_samples of them; replacement: each drawn from all."""

    def __init__(self, data_source: Any, replacement: bool = False, num_samples: int | None = None, generator: Generator | None = None) -> None:
        if num_samples is not None and num_samples < 1:
            raise bp.ArgumentValueError(f"RandomSampler: argument num_samples: found {num_samples}, expected at least 1")
        self.data_source, self.replacement, self.generator, self._count = data_source, replacement, generator, num_samples

    @property
    def num_samples(self) -> int:
        return len(self.data_source) if self._count is None else self._count

    def __iter__(self) -> Iterator[int]:
        n, count = len(self.data_source), self.num_samples
        if self.replacement:
            return iter(bp.randint(0, n, (count,), dtype=bp.int64, **drawn(self.generator)).tolist())
        order: list[int] = []
        while n and len(order) < count:
            order += bp.permutation(n, **drawn(self.generator)).tolist()
        return iter(order[:count])

    def __len__(self) -> int:
        return self.num_samples


class SubsetRandomSampler(Sampler):
    """Given numbers at random, each once."""

    def __init__(self, indices: Sequence[int], generator: Generator | None = None) -> None:
        self.indices, self.generator = indices, generator

    def __iter__(self) -> Iterator[int]:
        return (self.indices[i] for i in bp.permutation(len(self.indices), **drawn(self.generator)).tolist())

    def __len__(self) -> int:
        return len(self.indices)


class WeightedRandomSampler(Sampler):
    """num_samples numbers, each with a probability in proportion to its weight."""

    def __init__(self, weights: Sequence[float], num_samples: int, replacement: bool = True, generator: Generator | None = None) -> None:
        self.weights = bp.asarray(weights, dtype=bp.float64)
        available = int((self.weights > 0).sum())
        if self.weights.ndim != 1 or not bool((self.weights >= 0).all()) or not available:
            raise bp.ArgumentValueError("WeightedRandomSampler: argument weights: expected a vector of numbers of at least 0, not all 0")
        if num_samples < 1 or (not replacement and num_samples > available):
            raise bp.ArgumentValueError(f"WeightedRandomSampler: argument num_samples: found {num_samples}, expected from 1 to {available} without replacement")
        self.num_samples, self.replacement, self.generator = num_samples, replacement, generator

    def __iter__(self) -> Iterator[int]:
        if self.replacement:
            sums = bp.cumulative_sum(self.weights)
            places = bp.uniform((self.num_samples,), dtype=bp.float64, **drawn(self.generator)) * sums[-1]
            return iter(bp.searchsorted(sums, places, side="right").tolist())
        # The largest of log(u) / w are a draw without replacement (Efraimidis and Spirakis, 2006).
        keys = bp.log(bp.uniform(self.weights.shape, dtype=bp.float64, **drawn(self.generator))) / self.weights
        return iter(bp.argsort(bp.where(self.weights > 0, keys, -bp.inf), descending=True)[: self.num_samples].tolist())

    def __len__(self) -> int:
        return self.num_samples


class BatchSampler(Sampler):
    """Lists of batch_size numbers of another sampler; drop_last: without a shorter one at the end."""

    def __init__(self, sampler: Iterable[Any], batch_size: int, drop_last: bool = False) -> None:
        if not isinstance(batch_size, int) or isinstance(batch_size, bool) or batch_size < 1:
            raise bp.ArgumentValueError(f"BatchSampler: argument batch_size: found {batch_size!r}, expected a positive integer")
        self.sampler, self.batch_size, self.drop_last = sampler, batch_size, drop_last

    def __iter__(self) -> Iterator[list[Any]]:
        batch = []
        for index in self.sampler:
            batch.append(index)
            if len(batch) == self.batch_size:
                yield batch
                batch = []
        if batch and not self.drop_last:
            yield batch

    def __len__(self) -> int:
        count: int = len(self.sampler)  # type: ignore[arg-type]
        return count // self.batch_size if self.drop_last else -(-count // self.batch_size)
