"""Worker processes of a loader: each makes batches, whose tensors come back through shared memory."""

from __future__ import annotations

import multiprocessing
import os
import queue as queues
import sys
import traceback
from collections import namedtuple
from multiprocessing import resource_tracker, shared_memory
from typing import Any

import backplane as bp
from backplane import Tensor, _core

__all__ = ["WorkerInfo", "get_worker_info"]

WorkerInfo = namedtuple("WorkerInfo", ["id", "num_workers", "seed", "dataset"])
_info: Any = None
_Place = namedtuple("_Place", ["offset", "nbytes", "shape", "dtype"])


def get_worker_info() -> Any:
    """In a worker process: its id, the number of workers, its seed and its dataset. Elsewhere None."""
    return _info


class _Failure:
    """An error of a worker, as text."""

    def __init__(self, error):
        self.kind, self.text = type(error), traceback.format_exc()

    def reraise(self, worker):
        text = f"DataLoader: worker {worker} failed:\n{self.text}"
        try:
            error = self.kind(text)
        except Exception:  # of a class that takes other arguments
            error = RuntimeError(text)
        raise error


def _packed(batch):
    """(the name of a shared block with the tensors' bytes or None, the batch with places instead of them)."""
    leaves, structure = bp.tree.flatten(batch)
    parts, size = {}, 0
    for i, x in enumerate(leaves):
        if isinstance(x, Tensor):
            data = _core.to_bytes(x.detach())
            parts[i] = (size, data)
            leaves[i] = _Place(size, len(data), tuple(x.shape), x.dtype.name)
            size += -(-len(data) // 64) * 64
    if not parts:
        return None, batch
    block = shared_memory.SharedMemory(create=True, size=max(size, 1))
    for offset, data in parts.values():
        block.buf[offset : offset + len(data)] = data
    name = block.name
    block.close()
    resource_tracker.unregister(block._name, "shared_memory")  # the loader removes it
    return name, bp.tree.unflatten(structure, [_Wrapped(x) if isinstance(x, _Place) else x for x in leaves])


class _Wrapped:
    """A place as a leaf: named tuples are containers."""

    def __init__(self, place):
        self.place = place


def unpacked(name, batch):
    """The batch again, with tensors of their own memory; the shared block is removed."""
    if name is None:
        return batch
    block = shared_memory.SharedMemory(name=name)
    try:
        def read(x):
            if not isinstance(x, _Wrapped):
                return x
            offset, nbytes, shape, dtype = x.place
            return _core.from_bytes(bytes(block.buf[offset : offset + nbytes]), list(shape), _core.as_dtype(dtype, "DataLoader"), _core.Device("cpu"))

        return bp.tree.map(read, batch)
    finally:
        block.close()
        block.unlink()


def _seed(seed):
    """Own random numbers for this process, of each library that the program uses."""
    import random

    random.seed(seed)
    bp.manual_seed(seed)
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        numpy.random.seed(numpy.random.SeedSequence(seed).generate_state(4))


def _run(worker, count, seed, dataset, fetch, tasks, results, init):
    """A worker's life: (number, indices) in, (number, block, batch or failure) out; None ends it."""
    global _info
    _info = WorkerInfo(worker, count, seed + worker, dataset)
    _seed(seed + worker)
    failure, parent = None, os.getppid()
    try:
        if init is not None:
            init(worker)
        fetch = fetch.started(dataset)
    except Exception as error:
        failure = _Failure(error)
    while True:
        try:
            task = tasks.get(timeout=5)
        except queues.Empty:
            if os.getppid() != parent:
                return
            continue
        if task is None:
            return
        number, indices = task
        try:
            found = (None, failure) if failure else _packed(fetch(indices))
        except Exception as error:
            found = (None, _Failure(error))
        results.put((worker, number, *found))


class Workers:
    """The processes of one pass over a loader's batches, which come in order."""

    def __init__(self, loader, seed):
        context = loader.multiprocessing_context
        context = multiprocessing.get_context(context) if context is None or isinstance(context, str) else context
        self.loader, self.results, self.tasks, self.processes = loader, context.Queue(), [], []
        for worker in range(loader.num_workers):
            tasks = context.Queue()
            arguments = (worker, loader.num_workers, seed, loader.dataset, loader._fetch(), tasks, self.results, loader.worker_init_fn)
            process = context.Process(target=_run, args=arguments, daemon=True)
            process.start()
            self.tasks.append(tasks)
            self.processes.append(process)
        self.waiting: dict[int, Any] = {}

    def send(self, worker, number, indices):
        self.tasks[worker].put((number, indices))

    def receive(self, number):
        """The batch of a number."""
        while number not in self.waiting:
            worker, found, name, batch = self._next()
            self.waiting[found] = (worker, name, batch)
        worker, name, batch = self.waiting.pop(number)
        if isinstance(batch, _Failure):
            batch.reraise(worker)
        return unpacked(name, batch)

    def _next(self):
        waited = 0.0
        while True:
            try:
                return self.results.get(timeout=1.0)
            except queues.Empty:
                waited += 1.0
                dead = [i for i, process in enumerate(self.processes) if not process.is_alive()]
                if dead:
                    raise RuntimeError(f"DataLoader: worker {dead[0]} ended with exit code {self.processes[dead[0]].exitcode}") from None
                if self.loader.timeout and waited >= self.loader.timeout:
                    raise RuntimeError(f"DataLoader: no batch within timeout={self.loader.timeout} seconds") from None

    def close(self):
        """Ends the processes and removes the blocks that nobody has read."""
        for tasks in self.tasks:
            tasks.put(None)
        for process in self.processes:
            process.join(timeout=0.5 if self.waiting else 5)
            if process.is_alive():
                process.terminate()
                process.join()
        while True:
            try:
                _, _, name, _ = self.results.get(timeout=0.01)
            except (queues.Empty, OSError):
                break
            self.waiting[len(self.waiting) - (1 << 40)] = (0, name, None)
        for _, name, _ in self.waiting.values():
            if name is not None:
                shared_memory.SharedMemory(name=name).unlink()
        self.waiting.clear()
        self.processes = []
