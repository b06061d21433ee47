"""torch.utils.checkpoint: calls that the backward pass runs again instead of keeping their intermediate results."""

from __future__ import annotations

from typing import Any

from .._transforms._custom import checkpoint as checkpointed

__all__ = ["checkpoint", "checkpoint_sequential"]


def checkpoint(function: Any, *args: Any, use_reentrant: bool | None = None, preserve_rng_state: bool = True, determinism_check: str = "default", **kwargs: Any) -> Any:
    """function(*args, **kwargs); the backward pass runs it again instead of keeping what it computed."""
    return checkpointed(lambda *given: function(*given, **kwargs))(*args)


def checkpoint_sequential(functions: Any, segments: int, input: Any, use_reentrant: bool | None = None, **kwargs: Any) -> Any:
    """The functions (or the layers of a Sequential) one after the other, in so many checkpoints; the last segment is kept."""
    functions = list(functions)
    size = len(functions) // segments

    def run(part: Any) -> Any:
        def of_part(x: Any) -> Any:
            for one in part:
                x = one(x)
            return x

        return of_part

    for start in range(0, size * (segments - 1), size):
        input = checkpointed(run(functions[start : start + size]))(input)
    return run(functions[size * (segments - 1) :])(input)
