"""Times the cases of growth_cases.py on one thread: every library in turns, the best of several turns.

    growth_times.py [--quick] [WORD...]

Out: JSON on standard output, {"growth": [{name, touched, seconds: {library: s}, small: s}], "whole": [{name, seconds}]}; `small` is our time
with a tensor of SMALL elements in place of SIZE. Progress on standard error.
"""

import argparse
import json
import sys
import timeit

import numpy as np
import torch

import backplane as bp
import growth_cases

LIBRARIES = {"ours": ({"bp": bp}, lambda a: bp.asarray(a, copy=True)), "numpy": ({"np": np}, np.copy),
             "torch": ({"torch": torch}, lambda a: torch.from_numpy(a.copy()))}


def timer(library, statement, given):
    names, take = LIBRARIES[library]
    return timeit.Timer(statement, globals={**names, **{name: take(value) if isinstance(value, np.ndarray) else value for name, value in given.items()}})


def best(timers, turns):
    """{name: seconds} of one call each."""
    found, counts = {}, {}
    for name, one in timers.items():
        one.timeit(1)
        counts[name] = max(1, min(1000, int(2e-3 / max(one.timeit(1), 1e-7))))
    for _ in range(turns):
        for name, one in timers.items():
            found[name] = min(found.get(name, np.inf), one.timeit(counts[name]) / counts[name])
    return found


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("words", nargs="*")
    options = parser.parse_args()
    torch.set_num_threads(1)
    turns = 3 if options.quick else 7
    result = {"growth": [], "whole": []}
    for case in growth_cases.GROWTH:
        if not all(word in case.name for word in options.words):
            continue
        for touched in growth_cases.TOUCHED:
            large = growth_cases.inputs(case, growth_cases.SIZE, touched)
            timers = {library: timer(library, text, large) for library, text in case.statements.items()}
            small = touched * (growth_cases.ROW if case.rows else 1) <= growth_cases.SMALL
            if small:
                timers["small"] = timer("ours", case.statements["ours"], growth_cases.inputs(case, growth_cases.SMALL, touched))
            seconds = best(timers, turns)
            result["growth"].append({"name": case.name, "touched": touched, "small": seconds.pop("small", None), "seconds": seconds})
            print(case.name, touched, {library: f"{s * 1e6:.2f} µs" for library, s in seconds.items()}, file=sys.stderr, flush=True)
    for name, (make, case) in growth_cases.WHOLE.items():
        if not all(word in name for word in options.words):
            continue
        given = make(np.random.default_rng(0))
        seconds = best({library: timer(library, text, given) for library, text in case.statements.items()}, turns)
        result["whole"].append({"name": name, "seconds": seconds})
        print(name, {library: f"{s * 1e3:.3f} ms" for library, s in seconds.items()}, file=sys.stderr, flush=True)
    json.dump(result, sys.stdout)


if __name__ == "__main__":
    main()
