"""Times the cases of half_cases.py in float32, float16 and bfloat16, in turns on one thread: the best of many short turns each.

    half_times.py [WORD...]        the cases whose group and name hold all of the words

Out: JSON on standard output, [{name, group, seconds: {dtype: s}}]. A turn is a fifth of a millisecond, which
most often ends before the system takes the processor away. Cases above the limit are measured again: disturbances go, what is slow stays.
"""

import json
import os
import sys
import timeit

import backplane as bp
import numpy as np

import half_cases
from report import HALF_LIMIT

DTYPES = ("float32", "float16", "bfloat16")
TURN = 2e-4
TURNS = 25
AGAIN = 3  # more passes over the cases above the limit


def timers(expression, tensors, names):
    """{dtype: timer}; floating tensors take the dtype."""
    found = {}
    for dtype in DTYPES:
        values = {name: bp.asarray(array, dtype=getattr(bp, dtype) if array.dtype == np.float64 else None, copy=True)
                  for name, array in tensors.items()}
        found[dtype] = timeit.Timer(expression, globals={"bp": bp, **names, **values})
    return found


def cases(words):
    """(cell, arguments of its timers) of the chosen cases."""
    path = os.path.join(os.environ["BACKPLANE_BUILD"], "dispatcher/generated/samples.json")
    found = [({"name": name, "group": "elementwise"}, (expression, tensors, {"op": getattr(bp, name)}))
             for name, (expression, tensors) in half_cases.elementwise(path).items()]
    named = {**half_cases.INEXACT, **half_cases.OTHERS}
    for group, expressions in half_cases.GROUPS.items():
        for name, expression in expressions.items():
            used = set(compile(expression, name, "eval").co_names)
            found.append(({"name": name, "group": group}, (expression, {n: array for n, array in named.items() if n in used}, {})))
    return [pair for pair in found if all(word in f"{pair[0]['group']} {pair[0]['name']}" for word in words)]


def measure(found, best):
    number = {}
    for dtype, timer in found.items():
        once = min(timer.timeit(1), timer.timeit(1))
        number[dtype] = max(1, int(TURN / max(once, 1e-7)))
    for _ in range(TURNS if max(number.values()) > 1 else TURNS // 3):
        for dtype, timer in found.items():
            best[dtype] = min(best.get(dtype, 1), timer.timeit(number[dtype]) / number[dtype])


def above(cell):
    seconds = cell["seconds"]
    return any(seconds[dtype] > HALF_LIMIT * seconds["float32"] for dtype in seconds)


def main():
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[-1:])
    pairs = cases(sys.argv[1:])
    for again in range(1 + AGAIN):
        for cell, arguments in pairs:
            if again and not above(cell):
                continue
            measure(timers(*arguments), cell.setdefault("seconds", {}))
    json.dump([cell for cell, _ in pairs], sys.stdout)


if __name__ == "__main__":
    main()
