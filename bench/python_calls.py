"""Times small calls from Python: ours, NumPy's and PyTorch's, in one process and in turns, best of many.

Out: JSON on standard output, {case: {library: nanoseconds}}. One-element float32 tensors, and for views 8 elements or 8 by 8; one
thread.
"""

import json
import timeit

import backplane as bp
import numpy
import torch

NUMBER = 20_000
ROUNDS = 9

torch.set_num_threads(1)
one = numpy.ones(1, dtype=numpy.float32)
eight = numpy.ones(8, dtype=numpy.float32)
square = numpy.ones((8, 8), dtype=numpy.float32)


def recording(tensor):
    tensor.requires_grad = True
    return tensor


NAMES = {
    "backplane": {"a": bp.asarray(one), "b": bp.asarray(one), "v": bp.asarray(eight), "M": bp.asarray(square),
                  "r": recording(bp.asarray(one.copy())), "s": recording(bp.asarray(one.copy()))},
    "numpy": {"a": one, "b": one.copy(), "v": eight, "M": square},
    "torch": {"a": torch.ones(1), "b": torch.ones(1), "v": torch.ones(8), "M": torch.ones(8, 8),
              "r": recording(torch.ones(1)), "s": recording(torch.ones(1))},
}
CASES = {
    "add": ("a + b", ["backplane", "numpy", "torch"]),
    "view": ("v.reshape((2, 4))", ["backplane", "numpy", "torch"]),
    "select": ("M[0]", ["backplane", "numpy", "torch"]),
    "slice": ("M[0:1]", ["backplane", "numpy", "torch"]),
    "transpose": ("M.T", ["backplane", "numpy", "torch"]),
    "add_recording": ("r + s", ["backplane", "torch"]),
    "backward": ("(r * s).sum().backward()", ["backplane", "torch"]),
}


def main():
    best = {case: {} for case in CASES}
    for _ in range(ROUNDS):
        for case, (statement, libraries) in CASES.items():
            for library in libraries:
                number = NUMBER if case != "backward" else NUMBER // 10
                seconds = timeit.timeit(statement, globals=NAMES[library], number=number)
                nanoseconds = seconds / number * 1e9
                best[case][library] = min(nanoseconds, best[case].get(library, nanoseconds))
    print(json.dumps(best))


if __name__ == "__main__":
    main()
