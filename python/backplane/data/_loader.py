"""DataLoader: batches of a dataset, made here or by worker processes, with a position that can be kept and resumed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import backplane as bp
from backplane import Device, Generator

from ._collate import default_collate, default_convert, moved
from ._datasets import Batch, IterableDataset
from ._samplers import BatchSampler, RandomSampler, SequentialSampler
from ._workers import Workers

__all__ = ["DataLoader"]


class _Fetch:
    """Makes a batch of numbers, in the loader or in a worker."""

    def __init__(self, collate, is_stream, batch_size, drop_last):
        self.collate, self.is_stream, self.batch_size, self.drop_last = collate, is_stream, batch_size, drop_last

    def started(self, dataset):
        self.dataset = iter(dataset) if self.is_stream else dataset
        return self

    def __call__(self, indices):
        if self.is_stream:
            return self._next(indices)
        if not isinstance(indices, (list, tuple)):
            return self.collate(self.dataset[indices])
        several = getattr(self.dataset, "__getitems__", None)
        found = several(indices) if several is not None else [self.dataset[i] for i in indices]
        if not isinstance(found, Batch):
            return self.collate(found)
        return tuple(found) if self.collate is default_collate else self.collate([self.dataset[i] for i in indices])

    def _next(self, count):
        """The next examples of the stream; None at its end."""
        if count is None:
            return next(((self.collate(example),) for example in self.dataset), None)
        examples = [example for _, example in zip(range(count), self.dataset)]
        if not examples or (self.drop_last and len(examples) < count):
            return None
        return (self.collate(examples),)


class DataLoader:
    """Batches of a dataset.

    dataset: an object with __len__ and __getitem__, or an IterableDataset. batch_size: examples per batch, None for examples by
    themselves. shuffle: in a new order in each pass, by generator. sampler, batch_sampler: an order of one's own. num_workers:
    processes that make batches, each prefetch_factor ahead; they use fork unless multiprocessing_context says otherwise.
    collate_fn: makes a batch of a list of examples, default_collate unless given. device: where batches go.

    The order does not depend on num_workers. Each worker has its own seed for backplane, random and NumPy.
    state_dict() gives the position within a pass, load_state_dict continues there: the same batches follow.
    Errors: ArgumentValueError for arguments that exclude each other. An error of a worker is raised here, with its traceback.
    """

    def __init__(
        self, dataset: Any, batch_size: int | None = 1, shuffle: bool | None = None, sampler: Iterable[Any] | None = None,
        batch_sampler: Iterable[Any] | None = None, num_workers: int = 0, collate_fn: Callable[[list[Any]], Any] | None = None,
        pin_memory: bool = False, drop_last: bool = False, timeout: float = 0, worker_init_fn: Callable[[int], None] | None = None,
        multiprocessing_context: Any = None, generator: Generator | None = None, *, prefetch_factor: int | None = None,
        persistent_workers: bool = False, pin_memory_device: str = "", device: Device | str | None = None,
    ) -> None:
        is_stream = isinstance(dataset, IterableDataset) or not hasattr(dataset, "__getitem__")
        _check(is_stream, batch_size, shuffle, sampler, batch_sampler, num_workers, drop_last, prefetch_factor)
        self.dataset, self.batch_size, self.num_workers, self.drop_last = dataset, batch_size, num_workers, drop_last
        self.timeout, self.worker_init_fn, self.multiprocessing_context = timeout, worker_init_fn, multiprocessing_context
        self.prefetch_factor = prefetch_factor if prefetch_factor is not None else 2 if num_workers else None
        self.generator, self.device, self.pin_memory, self.persistent_workers = generator, device, pin_memory, persistent_workers
        self._is_stream = is_stream
        if sampler is None and not is_stream and batch_sampler is None:
            sampler = RandomSampler(dataset, generator=generator) if shuffle else SequentialSampler(dataset)
        self.sampler = sampler
        if batch_sampler is None and batch_size is not None and not is_stream:
            batch_sampler = BatchSampler(sampler, batch_size, drop_last)  # type: ignore[arg-type]
        self.batch_sampler = batch_sampler
        by_batch = batch_sampler is not None or (is_stream and batch_size is not None)
        self.collate_fn = collate_fn if collate_fn is not None else default_collate if by_batch else default_convert
        self._position: dict[str, Any] | None = None  # of the pass that runs
        self._resumed: dict[str, Any] | None = None  # of the pass to come

    def _fetch(self):
        return _Fetch(self.collate_fn, self._is_stream, self.batch_size, self.drop_last)

    def __len__(self) -> int:
        if self._is_stream:
            count: int = len(self.dataset)  # a TypeError where the stream has no length
            size = self.batch_size or 1
            return count // size if self.drop_last else -(-count // size)
        return len(self.batch_sampler if self.batch_sampler is not None else self.sampler)  # type: ignore[arg-type]

    # ---- one pass ---------------------------------------------------------------------------------------------------

    def __iter__(self) -> Iterator[Any]:
        resumed, self._resumed = self._resumed, None
        source = self.generator if self.generator is not None else bp.default_generator
        if resumed is not None:
            source.state = resumed["generator"]
        begin = source.state
        # The workers' seed is drawn without workers too: the order is then the same.
        seed = int(bp.randint(0, 2**62, (), dtype=bp.int64, generator=source))
        numbers = self._numbers()
        if resumed is not None and "after" in resumed:
            numbers = iter(list(numbers)) if not self._is_stream else numbers
            source.state = resumed["after"]
        skipped = resumed["batches"] if resumed is not None else 0
        self._position = {"generator": begin, "batches": skipped}
        batches = self._by_workers(numbers, seed, skipped) if self.num_workers else self._here(numbers, skipped)
        return self._counted(batches)

    def _numbers(self):
        """What the batches are made of: lists of numbers, numbers, or for a stream how many each takes."""
        if self._is_stream:
            return _endless(self.batch_size)
        chosen = iter(self.batch_sampler if self.batch_sampler is not None else self.sampler)  # type: ignore[arg-type]
        # All random numbers of the order are drawn at the beginning of the pass.
        first = next(chosen, None)
        return iter(()) if first is None else _chain(first, chosen)

    def _counted(self, batches):
        position = self._position
        for batch in batches:
            position["batches"] += 1
            yield batch if self.device is None else moved(batch, self.device)
        if self._position is position:
            self._position = None

    def _here(self, numbers, skipped):
        fetch = self._fetch().started(self.dataset)
        for i, indices in enumerate(numbers):
            if i < skipped and not self._is_stream:
                continue
            batch = fetch(indices)
            if self._is_stream:
                if batch is None:
                    return
                (batch,) = batch
                if i < skipped:
                    continue
            yield batch

    def _by_workers(self, numbers, seed, skipped):
        workers = Workers(self, seed)
        try:
            if self._is_stream:
                yield from self._streams(workers, skipped)
            else:
                yield from self._in_order(workers, numbers, skipped)
        finally:
            workers.close()

    def _in_order(self, workers, numbers, skipped):
        sent = received = 0
        left = enumerate(numbers)
        open_tasks = True
        while open_tasks or received < sent:
            while open_tasks and sent - received < self.num_workers * (self.prefetch_factor or 2):
                i, indices = next(left, (None, None))
                if i is None:
                    open_tasks = False
                elif i >= skipped:
                    workers.send(sent % self.num_workers, sent, indices)
                    sent += 1
            if received < sent:
                yield workers.receive(received)
                received += 1

    def _streams(self, workers, skipped):
        """Each worker has a stream of its own; they take turns until all have ended."""
        ahead = self.prefetch_factor or 2
        active, number, given = list(range(self.num_workers)), 0, 0
        tasks: dict[int, list[int]] = {worker: [] for worker in active}
        while active:
            for worker in list(active):
                while len(tasks[worker]) < ahead:
                    workers.send(worker, number, self.batch_size)
                    tasks[worker].append(number)
                    number += 1
                batch = workers.receive(tasks[worker].pop(0))
                if batch is None:
                    active.remove(worker)
                    continue
                given += 1
                if given > skipped:
                    yield batch[0]

    # ---- position ---------------------------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """The position: how many batches of the pass were given, and the random state from which its order was drawn.

        It fits loaders of the same dataset and batches, with any number of workers. That of a stream needs the same number.
        """
        if self._resumed is not None:
            return dict(self._resumed)
        source = self.generator if self.generator is not None else bp.default_generator
        if self._position is None:
            return {"generator": source.state, "batches": 0, **self._kind()}
        return {**self._position, "after": source.state, **self._kind()}

    def _kind(self):
        """The settings that must match in a loader that continues a pass of this one."""
        if self._is_stream:
            return {"num_workers": self.num_workers, "batch_size": self.batch_size}
        length = len(self.dataset) if hasattr(self.dataset, "__len__") else None
        order = self.sampler if self.sampler is not None else self.batch_sampler
        size = getattr(self.batch_sampler, "batch_size", None)
        return {"length of the dataset": length, "batch_size": size, "sampler": type(order).__name__}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """The next pass continues at this position; passes behind it draw from the random state that was kept beside it.

        Errors: ArgumentValueError for the position of a loader with other batches: of another length, batch_size or sampler.
        """
        if not isinstance(state_dict, Mapping) or not {"generator", "batches"} <= set(state_dict):
            raise bp.ArgumentValueError("DataLoader.load_state_dict: argument state_dict: expected what state_dict of a loader gave")
        for name, own in self._kind().items():
            if name in state_dict and state_dict[name] != own:
                raise bp.ArgumentValueError(
                    f"DataLoader.load_state_dict: found the position of a loader whose {name} is {state_dict[name]}, and here it is {own}; "
                    "make the loader as it was when the position was kept"
                )
        self._resumed = dict(state_dict)


def _chain(first, rest):
    yield first
    yield from rest


def _endless(count):
    while True:
        yield count


def _check(is_stream, batch_size, shuffle, sampler, batch_sampler, num_workers, drop_last, prefetch_factor):
    def refuse(text):
        raise bp.ArgumentValueError(f"DataLoader: {text}")

    if num_workers < 0:
        refuse(f"argument num_workers: found {num_workers}, expected at least 0")
    if prefetch_factor is not None and (num_workers == 0 or prefetch_factor < 1):
        refuse(f"argument prefetch_factor: found {prefetch_factor}, expected a positive number, with workers")
    if is_stream and (shuffle or sampler is not None or batch_sampler is not None):
        refuse("arguments shuffle, sampler and batch_sampler: expected none with an iterable dataset")
    if sampler is not None and shuffle:
        refuse("argument sampler: found one with shuffle, expected one of them")
    if batch_sampler is not None and (batch_size != 1 or shuffle or sampler is not None or drop_last):
        refuse("argument batch_sampler: found one with batch_size, shuffle, sampler or drop_last, expected it alone")
    if batch_size is None and drop_last:
        refuse("argument drop_last: found True without a batch_size")
