"""Times the cases of cpu_cases.py with a given number of threads: every library in turns, the best of many turns each.

    cpu_times.py --threads N [--quick] [--floor FILE.so] [WORD...]

Out: JSON on standard output, {"threads": N, "cells": [{name, group, size, seconds: {library: s}, absent: reason}]}; a progress bar on
standard error. A turn is as many calls as take about 2 milliseconds, after one that is not timed. On one thread the clock is the process's
own time, which other programs on the machine do not lengthen; on more it is the wall's, and a turn begins once all other threads sleep:
those of OpenMP spin for some 5 to 17 milliseconds after their last work, on the processor that the next library needs. Another program that takes a core for
half a second spoils a cell in all its turns, so the cells in which another library was faster are measured again at the end, all libraries
of them: every time is the best of all turns.
"""

import argparse
import ctypes
import json
import os
import pathlib
import sys
import threading
import time
import timeit

import numpy as np

import cpu_cases

TURN = 2e-3
ASLEEP = 5e-2  # the longest wait for threads to sleep, seconds
AGAIN = 2  # more passes over the cells in which another library was faster


class Floor:
    """The C functions of cpu_floor.c, over outputs that are made once per shape."""

    def __init__(self, path, threads):
        self.c = ctypes.CDLL(str(path))
        self.c.set_threads(threads)
        self.outputs = {}

    def output(self, shape):
        if shape not in self.outputs:
            self.outputs = {shape: np.zeros(shape, np.float32) + 1}
        return self.outputs[shape].ctypes.data

    def calls(self, expression, values):
        """A function that calls the C function with addresses looked up beforehand."""
        def address(array):
            return ctypes.c_void_p(array.ctypes.data)

        def copy(x):
            return self.c.floor_copy, (address(x), ctypes.c_void_p(self.output(x.shape)), ctypes.c_int64(x.size))

        def add(x, y):
            return self.c.floor_add, (address(x), address(y), ctypes.c_void_p(self.output(x.shape)), ctypes.c_int64(x.size))

        def matmul(x, y, x_transposed, y_transposed):
            m, k = x.shape[-2:][::-1] if x_transposed else x.shape[-2:]
            n = y.shape[-2] if y_transposed else y.shape[-1]
            count = x.shape[0] if x.ndim == 3 else 1
            out = ctypes.c_void_p(self.output((count, m, n)))
            return self.c.floor_matmul, (address(x), address(y), out, ctypes.c_int64(count), m, n, k, x_transposed, y_transposed)

        self.copy, self.add, self.matmul = copy, add, matmul
        return eval(expression, {"floor": self, **values})


def timers(case, libraries, floor):
    """{library: timeit.Timer} of the libraries that can compute the case."""
    inputs = case.inputs()
    found = {}
    for library, expression in case.expressions.items():
        if library == "floor":
            if floor:
                function, arguments = floor.calls(expression, inputs)
                # The arguments are addresses: the timer keeps the memory alive.
                found[library] = timeit.Timer("function(*arguments)",
                                              globals={"function": function, "arguments": arguments, "inputs": inputs})
        elif library in libraries:
            found[library] = libraries[library].timer(expression, inputs)
    return found


def other_threads_run():
    me = threading.get_native_id()
    for thread in pathlib.Path("/proc/self/task").iterdir():
        try:
            state = (thread / "stat").read_text().rpartition(")")[2].split()[0]
        except FileNotFoundError:
            continue  # it has ended
        if state == "R" and int(thread.name) != me:
            return True
    return False


def let_threads_sleep():
    """Waits until no other thread of this process runs; where the system does not say, as long as they may take."""
    if not pathlib.Path("/proc/self/task").is_dir():
        return time.sleep(ASLEEP)
    end = time.perf_counter() + ASLEEP
    while other_threads_run() and time.perf_counter() < end:
        time.sleep(5e-4)


def measure(found, rounds, seconds, threads, after):
    """Best seconds per call of each library."""
    best, number = {}, {}
    for timer in found.values():
        timer.timer = time.perf_counter if threads > 1 else time.process_time
    for library, timer in found.items():
        once = min(timer.timeit(1), timer.timeit(1))
        number[library] = max(1, int(TURN / max(once, 1e-7)))
        if number[library] > 1:
            once = timer.timeit(number[library] // 8 + 1) / (number[library] // 8 + 1)
            number[library] = max(1, int(TURN / max(once, 1e-8)))
        best[library] = once
        after(library)
    start = time.perf_counter()
    for turn in range(rounds):
        if turn >= 3 and time.perf_counter() - start > seconds:
            break
        for library, timer in found.items():
            if threads > 1:
                let_threads_sleep()
            if best[library] < 5e-2:
                timer.timeit(1)
            best[library] = min(best[library], timer.timeit(number[library]) / number[library])
            after(library)
    return best


def beaten(cell):
    """Whether another library was faster than ours; of products, whether OpenBLAS itself was."""
    others = {library: time for library, time in cell.get("seconds", {}).items()
              if library != "ours" and (library != "floor" or cell["group"] == "matmul")}
    return bool(others) and cell["seconds"]["ours"] > min(others.values())


def stay_on(count):
    """Keeps the process on as many processors as it may have threads, before the libraries start theirs. XLA starts one per processor,
    whatever its flags say, and a process's clock leaves out what a thread on another processor has done in its current slice."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[-count:])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--threads", type=int, required=True)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--floor", type=pathlib.Path)
    parser.add_argument("words", nargs="*")
    options = parser.parse_args()
    stay_on(options.threads)
    import cpu_libraries
    import tqdm

    libraries = cpu_libraries.load(options.threads)
    floor = Floor(options.floor, options.threads) if options.floor else None

    def after(library):
        if library == "floor":
            floor.c.end_matmul()

    rounds, seconds = (5, 0.1) if options.quick else (25, 0.4)
    pairs = [(case, {"name": case.name, "group": case.group, "size": case.size}) for case in cpu_cases.chosen(options.words, options.quick)]
    label = f"{options.threads} thread{'s' if options.threads > 1 else ''}"
    for again in range(1 + AGAIN):
        chosen = [(case, cell) for case, cell in pairs if again == 0 or beaten(cell)]
        with tqdm.tqdm(chosen, desc=f"{label}, again" if again else label, file=sys.stderr, mininterval=0.5) as bar:
            for case, cell in bar:
                bar.set_postfix_str(case.title, refresh=False)
                try:
                    found = measure(timers(case, libraries, floor), rounds, seconds, options.threads, after)
                except (AttributeError, NotImplementedError) as error:
                    cell["absent"] = str(error).split("\n")[0]
                    continue
                before = cell.get("seconds", found)
                cell["seconds"] = {library: min(before[library], found[library]) for library in found}
    cells = [cell for _, cell in pairs]
    json.dump({"threads": options.threads, "cells": cells, "peers": sorted(set(libraries) - {"ours"})}, sys.stdout)


if __name__ == "__main__":
    main()
