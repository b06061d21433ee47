"""Elements as devices without 8-bit or 64-bit storage take them: four words of 32 bits each, whatever the dtype."""

import numpy as np


def to_words(array):
    words = np.zeros((len(array), 4), np.uint32)
    kind, size = array.dtype.kind, array.dtype.itemsize
    if size >= 4:
        words[:, : size // 4] = np.ascontiguousarray(array).view(np.uint32).reshape(len(array), size // 4)
    else:
        words[:, 0] = array.astype(np.int32 if kind == "i" else np.uint32).view(np.uint32)
    return words


def from_words(words, dtype):
    dtype = np.dtype(dtype)
    if dtype.itemsize >= 4:
        return np.ascontiguousarray(words[:, : dtype.itemsize // 4]).view(dtype).reshape(len(words))
    return words[:, 0].astype(dtype)


def by_op(functions):
    """The functions of each op, with their places among them."""
    groups = {}
    for function in functions:
        groups.setdefault(function.op, []).append(function)
    return groups
