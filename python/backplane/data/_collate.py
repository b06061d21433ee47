"""Examples put together to a batch: tensors, arrays and numbers stacked, at the same places in containers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import backplane as bp
from backplane import Tensor

__all__ = ["default_collate", "default_convert"]


def default_collate(batch: list[Any]) -> Any:
    """A batch of examples: tensors, arrays and numbers become tensors with a first axis of examples, strings a list.

    Dicts, tuples, named tuples and lists are put together element by element. Python's floats become the default dtype, ints int64.
    Errors: ArgumentValueError for examples of different shapes or lengths; ArgumentTypeError for other values.
    """
    first = batch[0]
    if isinstance(first, Tensor):
        return _stacked(batch)
    if isinstance(first, (str, bytes)):
        return list(batch)
    if isinstance(first, (bool, int, float, complex)):
        return bp.asarray(list(batch), dtype=bp.int64 if isinstance(first, int) and not isinstance(first, bool) and all(isinstance(x, int) for x in batch) else None)
    if hasattr(first, "__array__"):
        import numpy

        arrays = [numpy.asarray(x) for x in batch]
        _check_shapes([x.shape for x in arrays])
        return bp.asarray(numpy.stack(arrays))
    if isinstance(first, Mapping):
        return {key: default_collate([example[key] for example in batch]) for key in first}
    if isinstance(first, (tuple, list)):
        if any(len(example) != len(first) for example in batch):
            raise bp.ArgumentValueError("default_collate: found examples of different lengths; pass a collate_fn")
        parts = [default_collate(list(part)) for part in zip(*batch)]
        return type(first)(*parts) if hasattr(first, "_fields") else tuple(parts) if isinstance(first, tuple) else parts
    raise bp.ArgumentTypeError(f"default_collate: found {type(first).__name__}, expected tensors, arrays, numbers, strings or containers; pass a collate_fn")


def _check_shapes(shapes):
    if any(shape != shapes[0] for shape in shapes):
        raise bp.ArgumentValueError(f"default_collate: found examples of shapes {sorted(set(map(tuple, shapes)))}, expected one shape; pass a collate_fn")


def _stacked(tensors):
    _check_shapes([tuple(x.shape) for x in tensors])
    return bp.stack(list(tensors))


def default_convert(data: Any) -> Any:
    """An example by itself: arrays become tensors, containers keep their form."""
    if isinstance(data, (Tensor, str, bytes)):
        return data
    if hasattr(data, "__array__"):
        return bp.asarray(data)
    if isinstance(data, Mapping):
        return {key: default_convert(value) for key, value in data.items()}
    if isinstance(data, tuple):
        parts = [default_convert(value) for value in data]
        return type(data)(*parts) if hasattr(data, "_fields") else tuple(parts)
    return [default_convert(value) for value in data] if isinstance(data, list) else data


def moved(batch: Any, device: Any) -> Any:
    """The tensors of a batch on a device."""
    return bp.tree.map(lambda x: x.to(device) if isinstance(x, Tensor) else x, batch)
