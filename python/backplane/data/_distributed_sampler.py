"""DistributedSampler: each rank's part of the examples."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import backplane as bp

from ._samplers import Sampler

__all__ = ["DistributedSampler"]


class DistributedSampler(Sampler):
    """Every num_replicas-th example from the rank-th on, of an order that all ranks share: the ranks' batches together are a batch of it.

    num_replicas, rank: those of bp.distributed unless given. shuffle: in a new order in each epoch, by seed and epoch; set_epoch(epoch)
    before each. drop_last: without the examples that do not make one for every rank; else the first ones come again.
    set_epoch(epoch, start=n) leaves out the first n examples of the order, which were used before: a run resumes within an epoch, also with
    another number of ranks. Errors: ArgumentValueError for a rank that is not there.
    """

    def __init__(
        self, dataset: Any, num_replicas: int | None = None, rank: int | None = None, shuffle: bool = True, seed: int = 0, drop_last: bool = False
    ) -> None:
        self.dataset = dataset
        self.num_replicas = bp.distributed.size() if num_replicas is None else num_replicas
        self.rank = bp.distributed.rank() if rank is None else rank
        if not 0 <= self.rank < self.num_replicas:
            raise bp.ArgumentValueError(f"DistributedSampler: argument rank: found {self.rank}, expected a rank from 0 to {self.num_replicas - 1}")
        self.shuffle, self.seed, self.drop_last = shuffle, seed, drop_last
        self.epoch = self.start = 0

    def set_epoch(self, epoch: int, start: int = 0) -> None:
        """The epoch of the passes to come, and how many examples of its order were used before."""
        if not 0 <= start <= len(self.dataset):
            raise bp.ArgumentValueError(f"DistributedSampler.set_epoch: argument start: found {start}, expected from 0 to {len(self.dataset)}")
        self.epoch, self.start = epoch, start

    def __len__(self) -> int:
        left = len(self.dataset) - self.start
        return left // self.num_replicas if self.drop_last else -(-left // self.num_replicas)

    def __iter__(self) -> Iterator[int]:
        n = len(self.dataset)
        order: list[int] = list(range(n))
        if self.shuffle:
            order = bp.permutation(n, generator=bp.Generator(self.seed + self.epoch)).tolist()
        order = order[self.start :]
        total = len(self) * self.num_replicas
        while order and len(order) < total:
            order += order[: total - len(order)]
        return iter(order[:total][self.rank :: self.num_replicas])
