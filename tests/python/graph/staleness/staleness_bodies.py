"""The main kinds of staleness as functions of a world and a tensor, for the tests that run them under transforms and observers."""

import random
import types

import numpy as np


class Setting:
    scale = 2.0


class World:
    """What the bodies read and change; each program has its own."""

    def __init__(self):
        self.Class = type("Class", (Setting,), {})
        self.module = types.ModuleType("stale_module")
        self.module.scale = self.module.scale_of = 2.0
        self.array, self.table, self.t, self.gain = np.full(3, 2.0), {"k": 2.0}, 0, 2.0
        self.random = random.Random(3)
        self.scaled = self.closure()

    def closure(self):
        scale = 2.0

        def scaled(x):
            return x * scale

        def change():
            nonlocal scale
            scale = 3.0

        self.change_closure = change
        return scaled


def counted(w, x):
    w.t += 1
    return x * w.t


# A body, of the world and a tensor, and the change before the second call.
BODIES = {
    "attribute": (lambda w, x: x * w.gain, lambda w: setattr(w, "gain", 3.0)),
    "class attribute": (lambda w, x: x * w.Class.scale, lambda w: setattr(w.Class, "scale", 3.0)),
    "module constant": (lambda w, x: x * w.module.scale, lambda w: setattr(w.module, "scale", 3.0)),
    "dict": (lambda w, x: x * w.table["k"], lambda w: w.table.update(k=3.0)),
    "closure of a function": (lambda w, x: w.scaled(x), lambda w: w.change_closure()),
    "missing attribute": (lambda w, x: x * getattr(w, "absent", 1.0), lambda w: setattr(w, "absent", 3.0)),
    "array": (lambda w, x: x * float(w.array[0]), lambda w: w.array.fill(3.0)),
    "random": (lambda w, x: x * w.random.random(), lambda w: None),
    "counter": (counted, lambda w: None),
}


# Those that may be refused.
SOURCES = ("array", "random", "counter")


READS = tuple(name for name in BODIES if name not in SOURCES)


def state_of(w):
    return lambda: (w.t, w.random.getstate()[1][-1])
