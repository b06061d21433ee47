"""Data-parallel training: each rank has the whole model and a part of each batch, and the gradients are averaged."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import backplane as bp
from backplane import Tensor

from .._transforms import _gradient_sync
from .._graphs._compiled_state import _StatefulFunction
from .._graphs._replaced_entries import tensors_of
from . import _collectives
from ._connection import timeout
from ._groups import Group, chosen
from ._world import world

__all__ = ["average_gradients", "broadcast_state", "data_parallel", "on_one_rank", "save"]

T = TypeVar("T")
_BUCKET = 32 << 20  # bytes


def _buckets(tensors: list[Tensor], bucket_bytes: int) -> Iterable[list[int]]:
    """Numbers of tensors that travel together: of one dtype and device, and no more bytes than a bucket has.

    The last tensors come first: the backward pass has the gradients of the last layers first.
    """
    open_buckets: dict[Any, tuple[list[int], int]] = {}
    for i in reversed(range(len(tensors))):
        x = tensors[i]
        key = (x.dtype, x.device)
        numbers, held = open_buckets.get(key, ([], 0))
        if numbers and held + x.nbytes > bucket_bytes:
            yield numbers
            numbers, held = [], 0
        open_buckets[key] = ([*numbers, i], held + x.nbytes)
    for numbers, _ in open_buckets.values():
        yield numbers


def _in_buckets(tensors: list[Tensor], collective: Callable[..., Any], bucket_bytes: int = _BUCKET, *, overlaps: bool = False) -> list[Tensor]:
    """The results for all elements of the tensors, in few calls of a collective that does the same to each element.

    overlaps: it takes async_op, so that a bucket travels while the next one is joined.
    """
    results: list[Tensor] = list(tensors)
    buckets = list(_buckets(tensors, bucket_bytes))
    begun: list[tuple[list[int], Callable[[], Tensor]]] = []
    for numbers in buckets:
        x = tensors[numbers[0]] if len(numbers) == 1 else bp.concat([tensors[i].reshape((-1,)) for i in numbers])
        if overlaps and len(buckets) > 1:
            begun.append((numbers, collective(x, async_op=True).wait))
        else:
            result: Tensor = collective(x)
            begun.append((numbers, lambda result=result: result))
    for numbers, wait in begun:
        joined = wait()
        if len(numbers) == 1:
            results[numbers[0]] = joined
            continue
        start = 0
        for i in numbers:
            x = tensors[i]
            results[i] = joined[start : start + x.size].reshape(x.shape)
            start += x.size
    return results


def _in_buckets_of(columns: list[list[Tensor]], collective: Callable[[list[Tensor]], list[Tensor]], bucket_bytes: int) -> list[list[Tensor]]:
    """The same for a collective of several devices: each column has one tensor per device."""
    results = list(columns)
    for numbers in _buckets([column[0] for column in columns], bucket_bytes):
        rows = zip(*(columns[i] for i in numbers))  # per device
        joined = collective([bp.concat([x.reshape((-1,)) for x in row]) for row in rows])
        start = 0
        for i in numbers:
            x = columns[i][0]
            results[i] = [flat[start : start + x.size].reshape(x.shape) for flat in joined]
            start += x.size
    return results


def _mean_over(group: Group | None) -> Callable[..., Any]:
    return functools.partial(_collectives.all_reduce, op="mean", group=group)


def average_gradients(gradients: Any, *, group: Group | None = None, bucket_bytes: int = _BUCKET) -> Any:
    """The mean of each tensor of a container over the ranks, in buckets of bucket_bytes: few collectives for many tensors.

    gradients: as bp.grad gives them; what is no tensor stays. A data-parallel step does not average them again.
    """
    chosen("average_gradients", group)
    leaves, structure = bp.tree.flatten(gradients)
    places = [i for i, x in enumerate(leaves) if isinstance(x, Tensor)]
    means = _in_buckets([leaves[i] for i in places], _mean_over(group), bucket_bytes, overlaps=True)
    _gradient_sync.mark(means)
    for i, mean in zip(places, means):
        leaves[i] = mean
    return bp.tree.unflatten(structure, leaves)


class _Average:
    """What _gradient_sync asks within a step. Which tensors are averages is known per thread, for the ranks of run_threads."""

    def __init__(self, group: Group | None, bucket_bytes: int) -> None:
        self.group, self.bucket_bytes = group, bucket_bytes
        self._here = threading.local()

    def _known(self) -> dict[int, Tensor]:
        found: dict[int, Tensor] = self._here.__dict__.setdefault("known", {})
        return found

    def forget(self) -> None:
        self._known().clear()

    def mark(self, gradients: list[Tensor]) -> None:
        bp.unguarded(lambda: self._known().update((id(x), x) for x in gradients))

    def __call__(self, gradients: list[Tensor]) -> list[Tensor]:
        new = bp.unguarded(lambda: [i for i, x in enumerate(gradients) if id(x) not in self._known()])
        means = _in_buckets([gradients[i].detach() for i in new], _mean_over(self.group), self.bucket_bytes, overlaps=True)
        results = list(gradients)
        for i, mean in zip(new, means):
            results[i] = mean
        self.mark(means)
        return results


def _tensors_of(state: Any) -> list[Tensor]:
    """The tensors of modules, optimisers, dicts and lists, each once, in one order on all ranks."""
    finder = _StatefulFunction(lambda: None, [state], {})
    finder._find()
    return list({id(tensor): tensor for _, _, tensor in tensors_of(finder.contents)}.values())


def broadcast_state(state: Any, root: int = 0, *, group: Group | None = None) -> None:
    """Gives the tensors of modules, optimisers, dicts and lists the values that they have on the rank `root`, in place."""
    chosen("broadcast_state", group)
    tensors = [x.detach() for x in _tensors_of(state)]
    with bp.no_grad():
        for x, new in zip(tensors, _in_buckets(tensors, lambda x: _collectives.broadcast(x, root, group=group))):
            x[...] = new


def _state_of(step: Callable[..., Any]) -> Any:
    """What a step changes: the state of a compiled function, else the modules and optimisers that it uses from outside."""
    stated = getattr(step, "_state", None)
    if stated is not None:
        return stated
    inner: Any = step
    while hasattr(inner, "__wrapped__"):
        inner = inner.__wrapped__
    code = getattr(inner, "__code__", None)
    if code is None:
        return []
    used = [inner.__globals__[name] for name in code.co_names if name in inner.__globals__]
    for cell in inner.__closure__ or ():
        try:
            used.append(cell.cell_contents)
        except ValueError:  # not assigned yet
            continue
    used += list(inner.__defaults__ or ())
    return [x for x in used if isinstance(x, (bp.nn.Module, bp.optim.Optimizer))]


_lock = threading.Lock()
_running = [0]


def data_parallel(
    step: Callable[..., Any] | None = None, *, state: Any = None, group: Group | None = None, bucket_bytes: int = _BUCKET, average_results: bool = True
) -> Any:
    """A training step on this rank's part of the batch, as one of several ranks: a function of step's arguments. A decorator.

    step: computes gradients of a loss that is a mean over its examples, and applies them by a bp.optim optimiser, by `update` or by
    `backward` and `step`. It may be compiled: put data_parallel around bp.compile. Within it, optimisers and nn.utils.clip_grad_norm
    average gradients over the ranks before they use them, in buckets of bucket_bytes. What else reads gradients sees this rank's own;
    average_gradients(gradients) averages them there.
    state: the modules and optimisers that step changes, all of which get rank 0's values before the first step. Left out: the state of a
    compiled step, else the modules and optimisers that step uses as globals or from an enclosing function.
    average_results: floating results without axes, as the loss, are means over the ranks.
    The result equals the step of one process on the joined batch, where all ranks have the same number of examples. Not averaged are
    what modules keep by themselves (the running statistics of BatchNorm) and random numbers.
    Errors: ArgumentValueError where no state is found. Those of collectives, where the ranks' steps differ.
    """
    if step is None:
        return functools.partial(data_parallel, state=state, group=group, bucket_bytes=bucket_bytes, average_results=average_results)
    if not callable(step):
        raise bp.ArgumentTypeError(f"data_parallel: argument step: found a value of type {type(step).__name__}, expected a function")
    function: Callable[..., Any] = step
    average = _Average(group, bucket_bytes)
    started = threading.local()

    @functools.wraps(function, updated=())
    def call(*args: Any, **kwargs: Any) -> Any:
        chosen("data_parallel", group)
        if getattr(started, "by", None) is not world("data_parallel"):
            found = state if state is not None else _state_of(function)
            if not _tensors_of(found):
                raise bp.ArgumentValueError("data_parallel: argument state: found no module or optimiser in the step; give state=[model, optimizer]")
            broadcast_state(found, group=group)
            started.by = world("data_parallel")
        with _lock:
            if _running[0] and _gradient_sync.average is not average and world("data_parallel").provider != "threads":
                raise bp.ArgumentValueError("data_parallel: a data-parallel step is called within another")
            _running[0] += 1
            before = _gradient_sync.average
            if before is None or world("data_parallel").provider != "threads":
                _gradient_sync.average = average
        try:
            result = function(*args, **kwargs)
        finally:
            average.forget()
            with _lock:
                _running[0] -= 1
                if not _running[0]:
                    _gradient_sync.average = None
        return _mean_results(result, group) if average_results else result

    return call


def _mean_results(result: Any, group: Group | None) -> Any:
    leaves, structure = bp.tree.flatten(result)
    places = [i for i, x in enumerate(leaves) if isinstance(x, Tensor) and x.ndim == 0 and "floating" in x.dtype.kind]
    if not places:
        return result
    for i, mean in zip(places, _in_buckets([leaves[i].detach() for i in places], _mean_over(group))):
        leaves[i] = mean
    return bp.tree.unflatten(structure, leaves)


def on_one_rank(function: Callable[[], T], *, rank: int = 0, seconds: float = 3600) -> T | None:
    """Calls function on one rank while the others wait, at most so many seconds; they get None. Its error is raised on every rank."""
    own = world("on_one_rank")
    result: T | None = None
    error: Exception | None = None
    with timeout(seconds):
        if own.rank == rank:
            try:
                result = function()
            except Exception as raised:
                error = raised
        failed = _collectives.broadcast(bp.asarray(error is not None), rank).item()
    if error is not None:
        raise error
    if failed:
        raise bp.DeviceError(f"on_one_rank: the function raised an error on rank {rank}, which shows it")
    return result


def save(obj: Any, path: Any, **options: Any) -> None:
    """bp.save on rank 0 while the others wait. bp.load reads the file on any number of ranks."""
    on_one_rank(lambda: bp.save(obj, path, **options))
