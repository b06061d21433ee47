"""Calls every op that takes bools with bools whose bytes are changed to any other ones after they entered, through the memory that they share.

The samples as they are, and as large as a kernel's blocks, by kernels and by decompositions. Prints a line per op, and
one that begins with "wrong" where the results are not those of the same bools as 0 and 1. What leaves its memory ends
the process, or is seen by the address sanitizer; what does not end is the caller's to stop.
"""

import itertools

import backplane as bp
import numpy as np
from backplane import _core
from law_inputs import arrays_of, is_array, is_array_list, tensors_of
from law_registry import registry
from law_running import function_of, results_of

BYTES = np.random.default_rng(5).integers(0, 256, 1 << 16).astype(np.uint8)
WIDER = 200  # times along an axis, so that blocks are crossed


class Odd:
    """Tensors of one call whose bools are spoiled at once, when all have entered."""

    def __init__(self):
        self.memory = []

    def tensor(self, array):
        self.memory.append(np.zeros(array.shape, np.bool_))
        return bp.asarray(self.memory[-1], copy=False)

    def spoil(self):
        for memory in self.memory:
            memory.reshape(-1).view(np.uint8)[...] = np.resize(BYTES, memory.size)


class Plain(Odd):
    """The same bools as bytes of 0 and 1."""

    def spoil(self):
        for memory in self.memory:
            memory[...] = np.resize(BYTES, memory.size).reshape(memory.shape) != 0


def each_array(value, function):
    if is_array(value):
        return function(value)
    return [item if item is None else function(item) for item in value] if is_array_list(value) else value


def widened(array, axis):
    return np.repeat(array, WIDER, axis=axis) if array.ndim else array


def read(tensor):
    if tensor.dtype == bp.bool:
        return tensor.numpy().view(np.uint8) != 0
    return np.asarray(tensor.tolist()) if tensor.dtype == bp.bfloat16 else tensor.numpy()


def results(case, arrays, odd):
    """As arrays; None where the sizes do not fit, or a result is no tensor."""
    bools = {name: each_array(value, lambda array: odd.tensor(array) if array.dtype == np.bool_ else bp.asarray(array))
             for name, value in arrays.items() if is_array(value) or is_array_list(value)}  # fmt: skip
    arguments = {**tensors_of(case, {name: value for name, value in arrays.items() if name not in bools}), **bools}
    odd.spoil()
    try:
        return [read(result) for result in results_of(function_of(case.entry)(**arguments))]
    except (bp.BackplaneError, AttributeError):
        return None


def outcome(case, arrays):
    """Whether it ran, and whether odd bools gave what the same as 0 and 1 do."""
    odd = Odd()
    found = results(case, arrays, odd)
    if not odd.memory or found is None:
        return 0, True
    if "random" in case.entry.flags:
        return 1, True
    expected = results(case, arrays, Plain())
    return 1, expected is not None and all(np.array_equal(a, b, equal_nan=a.dtype.kind in "fc")
                                           for a, b in zip(found, expected, strict=True))  # fmt: skip


def variants(case):
    accepted = [arg for arg in case.entry.args if arg.is_tensor and "bool" in arg.accepts]
    # An op whose results depend on the dtype shows the bytes.
    if not accepted or "higher_order" in case.entry.flags or "dtypes" in case.entry.exempt:
        return
    arrays = arrays_of(case, "bool")
    yield arrays
    for axis in (0, -1):
        yield {name: each_array(value, lambda array: widened(array, axis)) for name, value in arrays.items()}


def main():
    bp.set_memory_limit(1 << 28)  # of products of what was widened
    for name, cases in itertools.groupby(registry(), key=lambda case: case.entry.name):
        ran = 0
        for case in cases:
            for arrays in variants(case):
                for decomposed in (False, True):
                    _core.force_decomposition(decomposed)
                    once, right = outcome(case, arrays)
                    ran += once
                    if not right:
                        shapes = {name: getattr(value, "shape", value) for name, value in arrays.items()}
                        print(f"wrong: {name}{', decomposed' if decomposed else ''}: {shapes}", flush=True)
        if ran:
            print(f"{name}: {ran}", flush=True)


main()
