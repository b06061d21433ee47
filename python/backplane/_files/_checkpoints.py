"""CheckpointManager: numbered checkpoints in a folder. It keeps the newest and the best ones."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping
from typing import Any

import backplane as bp
from backplane import Tensor

__all__ = ["CheckpointManager"]

_NAME = "step-{:010d}.safetensors"
_NUMBER = "backplane.checkpoint"


class CheckpointManager:
    """Checkpoints of a run in a folder: one file per step, each whole or absent, whatever ends the process.

    max_to_keep: how many of the newest stay; None: all. best_fn: gives a number of the metrics of a save; the keep_best with the
    best numbers stay too. The newest is that which was saved last: after restore(20), save(21) is newer than a step 30 of the run that
    was left, so nothing that was just saved is removed. best_mode: "min" or "max". asynchronous: save copies the tensors and returns,
    a thread writes.

    Example:
        >>> manager = bp.CheckpointManager("run", max_to_keep=2)
        >>> for step in range(4):
        ...     manager.save(step, {"w": bp.ones(2) * step})
        >>> manager.all_steps(), manager.restore()["w"].tolist()
        ([2, 3], [3.0, 3.0])
    """

    def __init__(
        self, directory: str | os.PathLike[str], max_to_keep: int | None = None, *, keep_best: int = 1,
        best_fn: Callable[[Mapping[str, Any]], float] | None = None, best_mode: str = "min", asynchronous: bool = False,
    ) -> None:
        if max_to_keep is not None and max_to_keep < 1:
            raise bp.ArgumentValueError(f"CheckpointManager: argument max_to_keep: found {max_to_keep}, expected at least 1, or None")
        if best_mode not in ("min", "max"):
            raise bp.ArgumentValueError(f"CheckpointManager: argument best_mode: found {best_mode!r}, expected 'min' or 'max'")
        self.directory = os.fspath(directory)
        self.max_to_keep, self.keep_best, self.best_fn, self.best_mode, self.asynchronous = max_to_keep, keep_best, best_fn, best_mode, asynchronous
        self._thread: threading.Thread | None = None
        self._error: BaseException | None = None
        os.makedirs(self.directory, exist_ok=True)

    def _path(self, step: int) -> str:
        return os.path.join(self.directory, _NAME.format(step))

    def all_steps(self) -> list[int]:
        """The steps of the checkpoints that are there, in order."""
        names = os.listdir(self.directory)
        return sorted(int(name[5:-12]) for name in names if name.startswith("step-") and name.endswith(".safetensors") and name[5:-12].isdigit())

    def latest_step(self) -> int | None:
        """The step of the newest checkpoint, that which was saved last; None where there is none."""
        steps = self._by_age()
        return steps[-1] if steps else None

    def _by_age(self):
        """The steps in the order in which they were saved."""
        return sorted(self.all_steps(), key=lambda step: (self._number_of(step), step))

    def _number_of(self, step):
        """The number of a save, counted in the folder: a run that goes back to an old step saves smaller steps later."""
        from ._safetensors import Tensors

        try:
            return int(Tensors(self._path(step)).metadata.get(_NUMBER, -1))
        except (bp.ArgumentValueError, ValueError):  # a damaged file
            return -1

    def metrics(self, step: int) -> dict[str, Any]:
        """What save was given as metrics at a step."""
        return self._load(step)["metrics"]

    def best_step(self) -> int | None:
        """The step of the checkpoint with the best metrics, as best_fn says."""
        ranked = self._ranked()
        return ranked[0] if ranked else None

    def _ranked(self):
        if self.best_fn is None:
            return []
        sign = 1 if self.best_mode == "min" else -1
        numbers = {step: self.metrics(step) for step in self.all_steps()}
        return sorted((step for step, found in numbers.items() if found), key=lambda step: (sign * self.best_fn(numbers[step]), -step))

    def save(self, step: int, state: Any, metrics: Mapping[str, Any] | None = None) -> None:
        """Writes a checkpoint: containers as bp.save takes them, with modules, optimisers and schedulers among them.

        It is the newest from then on, whatever its step, and takes the place of one of the same step.
        """
        if int(step) < 0:
            raise bp.ArgumentValueError(f"CheckpointManager.save: argument step: found {step}, expected at least 0")
        self.wait_until_finished()
        try:
            state = _states(state)
        except RecursionError:
            raise bp.ArgumentValueError("CheckpointManager.save: argument state: found a container that contains itself or is nested too deeply, expected a tree") from None
        content = {"step": int(step), "metrics": {name: _number(value) for name, value in (metrics or {}).items()}, "state": state}
        if not self.asynchronous:
            self._write(step, content)
            return
        content = bp.tree.map(lambda x: bp.copy(x) if isinstance(x, Tensor) else x, content)
        self._thread = threading.Thread(target=self._write_later, args=(step, content), name="checkpoint")
        self._thread.start()

    def _write(self, step, content):
        number = 1 + max(map(self._number_of, self.all_steps()), default=-1)
        bp.save(content, self._path(step), metadata={_NUMBER: str(number)})
        if self.max_to_keep is None:
            return
        kept = set(self._by_age()[-self.max_to_keep :]) | set(self._ranked()[: self.keep_best])
        for old in self.all_steps():
            if old not in kept:
                os.unlink(self._path(old))

    def _write_later(self, step, content):
        try:
            self._write(step, content)
        except BaseException as error:
            self._error = error

    def wait_until_finished(self) -> None:
        """Waits for the thread that writes. Errors: every error of the write."""
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        if self._error is not None:
            error, self._error = self._error, None
            raise error

    def _load(self, step):
        if step not in self.all_steps():
            raise FileNotFoundError(f"CheckpointManager: no checkpoint of step {step} in {self.directory}; found {self.all_steps()}")
        return bp.load(self._path(step))

    def restore(self, step: int | None = None, into: Any = None) -> Any:
        """The state of a step, the newest unless given.

        into: a container like the one that was saved, whose modules, optimisers and schedulers load their part of it.
        Errors: FileNotFoundError where there is none.
        """
        self.wait_until_finished()
        step = self.latest_step() if step is None else step
        if step is None:
            raise FileNotFoundError(f"CheckpointManager: no checkpoint in {self.directory}")
        state = self._load(step)["state"]
        if into is not None:
            _load_into(into, state, "into")
        return state

    def close(self) -> None:
        self.wait_until_finished()

    def __enter__(self) -> CheckpointManager:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def _number(value):
    return value.item() if hasattr(value, "item") else value


def _states(x):
    """The containers with states in the place of modules, optimisers and schedulers."""
    if hasattr(x, "state_dict") and not isinstance(x, (Tensor, dict)):
        return x.state_dict()
    if isinstance(x, dict):
        return {key: _states(value) for key, value in x.items()}
    return type(x)(map(_states, x)) if type(x) in (list, tuple) else x


def _load_into(into, state, place):
    if hasattr(into, "load_state_dict"):
        into.load_state_dict(state)
    elif isinstance(into, dict):
        for key, value in into.items():
            if key not in state:
                raise bp.ArgumentValueError(f"restore: {place}: found the key {key!r}, which the checkpoint does not have")
            _load_into(value, state[key], f"{place}[{key!r}]")
    elif isinstance(into, (list, tuple)):
        for i, (value, part) in enumerate(zip(into, state)):
            _load_into(value, part, f"{place}[{i}]")
    elif isinstance(into, Tensor):
        with bp.no_grad():
            into.detach()[...] = state.astype(into.dtype).to(into.device)
