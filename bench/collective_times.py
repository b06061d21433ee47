"""Times all_reduce of float32 on two ranks: MPI's own call in a loop of C, our op in C++, and our function in Python, in turns.

    backplane launch -n 2 --logs FOLDER bench/collective_times.py LIBRARY [--quick]

LIBRARY: bench_collectives of the build. Out, of rank 0: a line of JSON, [{"bytes": n, "mpi": s, "op": s, "python": s}], the best of several turns.
"""

import ctypes
import json
import sys
import time

import numpy as np

import backplane as bp

SIZES = [4, 1 << 10, 64 << 10, 1 << 20, 16 << 20]
d = bp.distributed


def python(x, repeats):
    d.barrier()
    start = time.perf_counter()
    for _ in range(repeats):
        d.all_reduce(x)
    return (time.perf_counter() - start) / repeats


def times(library, size, turns):
    given, out = np.ones(size // 4, np.float32), np.empty(size // 4, np.float32)
    x = bp.asarray(given)
    pointers = [array.ctypes.data_as(ctypes.c_void_p) for array in (given, out)]
    repeats = max(3, min(5000, (256 << 20) // (size * 64)))
    ways = {
        "mpi": lambda: library.bench_mpi(*pointers, given.size, repeats),
        "op": lambda: library.bench_op(pointers[0], given.size, d.size(), repeats),
        "python": lambda: python(x, repeats),
    }
    found = dict.fromkeys(ways, float("inf"))
    for _ in range(turns):
        for name, way in ways.items():
            found[name] = min(found[name], way())
    assert min(found.values()) > 0, "our op failed"
    return {"bytes": size, **found}


def main():
    d.init(timeout=60)
    library = ctypes.CDLL(sys.argv[1])
    library.bench_mpi.restype = library.bench_op.restype = ctypes.c_double
    quick = "--quick" in sys.argv
    rows = [times(library, size, 5 if quick else 15) for size in (SIZES[:1] + SIZES[3:4] if quick else SIZES)]
    if d.rank() == 0:
        print(json.dumps(rows), flush=True)


if __name__ == "__main__":
    main()
