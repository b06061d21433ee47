"""Times the cases of compile_cases.py with a given number of threads: every way in turns, the best of many turns each.

    compile_times.py --threads N --loops FILE.so [--quick] [--without WAY...] [WORD...]

Out: JSON on standard output: {"threads": N, "cells": [{name, group, seconds: {way: s}, first: {way: s}}], "fifty ops": {way: {"first": s,
"next": s}}, "one op": {way: s}}. Each way's result is compared with ours, eager, before anything is timed. `first` is the wall time
of the first call of the function, tracing and compiling included, once the library has compiled something else; nothing is kept
between runs. The clock and the turns are those of cpu_times.py.
"""

import argparse
import ctypes
import json
import os
import pathlib
import sys
import tempfile
import time
import timeit

import compile_cases
import numpy as np
from compile_libraries import leaves
from cpu_times import measure, stay_on

COMPILED = ["ours", "torch.compile", "jax.jit", "mlx.compile"]


class Loops:
    """The functions of compile_loops.cpp over outputs that are made once."""

    def __init__(self, path, threads):
        self.c, self.threads = ctypes.CDLL(str(path)), threads
        self.c.set_threads(threads)

    def call(self, case, args):
        """A function that computes the case once and returns the results as the case does; its call looks nothing up."""
        held = []  # the calls have addresses alone

        def address(array):
            held.append(np.require(array, np.float32, "C"))
            return ctypes.c_void_p(held[-1].ctypes.data)

        def made(*shape):
            held.append(np.ones(shape, np.float32))
            return held[-1], ctypes.c_void_p(held[-1].ctypes.data)

        calls, results = getattr(self, case.loop)(address, made, *args)

        def run(_held=held):
            for function, arguments in calls:
                function(*arguments)
            return results

        return run

    def gelu(self, address, made, x):
        out, at = made(*x.shape)
        return [(self.c.gelu, (address(x), at, ctypes.c_int64(x.size)))], out

    def gelu_backward(self, address, made, x, g):
        (out, at), (dx, dx_at) = made(*x.shape), made(*x.shape)
        return [(self.c.gelu_backward, (address(x), address(g), at, dx_at, ctypes.c_int64(x.size)))], (out, (dx,))

    def sizes(self, x):
        return ctypes.c_int64(x.shape[0]), ctypes.c_int64(x.shape[1])

    def layer_norm(self, address, made, x, weight, bias):
        out, at = made(*x.shape)
        return [(self.c.layer_norm, (address(x), address(weight), address(bias), at, *self.sizes(x)))], out

    def layer_norm_backward(self, address, made, x, weight, bias, g):
        found = [made(*shape) for shape in (x.shape, x.shape, weight.shape, bias.shape)]
        sums = made(self.threads, 2, x.shape[1])
        arguments = (*map(address, (x, weight, bias, g)), *(at for _, at in found), sums[1], *self.sizes(x))
        out, *gradients = (array for array, _ in found)
        return [(self.c.layer_norm_backward, arguments)], (out, tuple(gradients))

    def cross_entropy(self, address, made, x, targets):
        out, at = made()
        return [(self.c.cross_entropy, (address(x), address(targets), at, *self.sizes(x)))], out

    def cross_entropy_backward(self, address, made, x, targets, g):
        (out, at), (dx, dx_at) = made(), made(*x.shape)
        return [(self.c.cross_entropy_backward, (address(x), address(targets), address(g), at, dx_at, *self.sizes(x)))], (out, (dx,))

    def adam(self, address, made, *lists):
        *tensors, step = lists
        step_at, calls, results = address(step), [], []
        for p, g, mean, square in zip(*tensors):
            found = [made(*p.shape) for _ in range(3)]
            calls.append((self.c.adam, (*map(address, (p, g, mean, square)), step_at, *(at for _, at in found), ctypes.c_int64(p.size))))
            results.append(tuple(array for array, _ in found))
        return calls, results


def arrays(result):
    return [np.asarray(leaf.detach() if hasattr(leaf, "detach") and hasattr(leaf, "numpy") else leaf) for leaf in leaves(result)]


def check(case, way, found, expected):
    for got, wanted in zip(arrays(found), expected, strict=True):
        scale = np.abs(wanted).max() + 1e-6
        if got.shape != wanted.shape or not np.abs(got - wanted).max() <= 2e-3 * scale:
            raise SystemExit(f"bench compile: {case.title}: {way} gives something else than ours, eager: "
                             f"{got.ravel()[:3]} of shape {got.shape}, expected {wanted.ravel()[:3]} of shape {wanted.shape}")


def first_call(function):
    start = time.perf_counter()
    result = function()
    return time.perf_counter() - start, result


def cell(case, ways, loops, rounds, seconds, threads, after):
    args = case.inputs()
    functions = {way: call(case, args) for way, call in ways.items()}
    if case.loop:
        functions["loop"] = loops.call(case, args)
    first, results = {}, {}
    for way, function in functions.items():
        first[way], results[way] = first_call(function)
    expected = arrays(results["ours, eager"])
    for way, result in results.items():
        check(case, way, result, expected)
    timers = {way: timeit.Timer("f()", globals={"f": function}) for way, function in functions.items()}
    return {"name": case.title, "group": case.group, "seconds": measure(timers, rounds, seconds, threads, after),
            "first": {way: first[way] for way in COMPILED if way in first}}


def besides(ways, threads, after):
    """The costs beside the arithmetic: of a first call and of the next ones of 50 ops, and of each call of one op."""
    x = np.float32(np.linspace(0, 1, 16))
    fifty = compile_cases.Case("fifty ops", compile_cases.fifty_ops, lambda: (x,))
    one = compile_cases.Case("one op", compile_cases.one_op, lambda: (x,))
    found = {"fifty ops": {}, "one op": {}}
    functions = {way: ways[way](fifty, (x,)) for way in COMPILED if way in ways}
    for way, function in functions.items():
        found["fifty ops"][way] = {"first": first_call(function)[0]}
    timers = {way: timeit.Timer("f()", globals={"f": function}) for way, function in functions.items()}
    for way, best in measure(timers, 25, 0.4, threads, after).items():
        found["fifty ops"][way]["next"] = best
    timers = {way: timeit.Timer("f()", globals={"f": ways[way](one, (x,))}) for way in ways}
    found["one op"] = measure(timers, 25, 0.4, threads, after)
    return found


def warm_up(ways):
    """What a library loads once, when it compiles for the first time."""
    x = np.float32([1, 2, 3])
    case = compile_cases.Case("warm-up", lambda m, x: m.sum(m.exp(x) * 3, axis=0), lambda: (x,), 1, True)
    for call in ways.values():
        call(case, (x, np.float32(1)))()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--threads", type=int, required=True)
    parser.add_argument("--loops", type=pathlib.Path, required=True)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--without", nargs="+", default=[])
    parser.add_argument("words", nargs="*")
    options = parser.parse_intermixed_args()
    stay_on(options.threads)
    with tempfile.TemporaryDirectory() as folder:
        # One process compiles, as one does for the others, and nothing comes from an earlier run.
        os.environ.update(TORCHINDUCTOR_CACHE_DIR=folder, TORCHINDUCTOR_COMPILE_THREADS="1")
        import compile_libraries
        import tqdm

        ways = {way: call for way, call in compile_libraries.load(options.threads).items() if way not in options.without}
        loops = Loops(options.loops, options.threads)
        warm_up(ways)
        rounds, seconds = (5, 0.2) if options.quick else (25, 1.0)

        def after(way):
            pass

        label = f"{options.threads} thread{'s' if options.threads > 1 else ''}"
        result = {"threads": options.threads, "cells": []}
        cases = compile_cases.chosen(options.words, options.quick)
        with tqdm.tqdm(cases, desc=label, file=sys.stderr, mininterval=0.5) as bar:
            for case in bar:
                bar.set_postfix_str(case.title)
                result["cells"].append(cell(case, ways, loops, rounds, seconds, options.threads, after))
        if not options.words:
            result.update(besides(ways, options.threads, after))
        print(json.dumps(result))


if __name__ == "__main__":
    main()
