"""The main kinds of staleness under every transform inside of compile, and with a profiler, a tracer or a debugger at work."""

import bdb
import cProfile
import random
import sys
import threading
import types

import backplane as bp
import numpy as np
from staleness_kinds import GUARDED, X, kind


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


def carried(body):
    return lambda x: bp.scan(lambda c, _: (body(c), c), x, bp.ones(2))[0]


# Those that may be refused.
SOURCES = ("array", "random", "counter")


# body -> function of a tensor that calls it inside of a transform.
TRANSFORMS = {
    "plain": lambda body: body,
    "grad": lambda body: bp.grad(lambda x: body(x * x).sum()),
    "value_and_grad": lambda body: lambda x: bp.value_and_grad(lambda x: body(x * x).sum())(x),
    "grad of grad": lambda body: bp.grad(lambda x: bp.grad(lambda x: body(x * x * x).sum())(x).sum()),
    "jvp": lambda body: lambda x: bp.jvp(body, (x,), (x,)),
    "vmap": lambda body: bp.vmap(body),
    "vmap of grad": lambda body: bp.vmap(bp.grad(lambda x: body(x * x).sum())),
    "checkpoint": lambda body: lambda x: bp.grad(lambda x: bp.checkpoint(body)(bp.tanh(x)).sum())(x),
    "cond": lambda body: lambda x: bp.cond(x.sum() > 1, body, lambda x: x * 9, x),
    "scan": carried,
    "map": lambda body: lambda x: bp.map(body, x),
    "while_loop": lambda body: lambda x: bp.while_loop(lambda v: v.sum() < 5, lambda v: body(v) + 1, x),
    "compile": lambda body: bp.compile(body),
    "make_graph": lambda body: lambda x: bp.make_graph(body)(x)(x),
    "comprehension": lambda body: lambda x: bp.stack([body(row) for row in [x, x + 1]]),
    "generator": lambda body: lambda x: sum(body(x + i) for i in range(2)),
    "coroutine": lambda body: lambda x: awaited(body, x),
    "method": lambda body: type("Model", (), {"__call__": lambda self, x: body(x)})(),
}


def awaited(body, x):
    async def inner():
        return body(x)

    async def outer():
        return await inner()

    try:
        outer().send(None)
    except StopIteration as stop:
        return stop.value


class Debugger(bdb.Bdb):
    def user_line(self, frame):
        self.set_step()


def profiled():
    profile = cProfile.Profile()
    profile.enable()
    return profile.disable


def with_function(set_function, function):
    def start():
        had = sys.gettrace() if set_function is sys.settrace else sys.getprofile()
        set_function(function)
        return lambda: set_function(had)

    return start


def trace(frame, event, argument):
    frame.f_trace_opcodes = True
    return trace


def debugged():
    had, debugger = sys.gettrace(), Debugger()
    debugger.reset()
    debugger.set_step()
    sys.settrace(debugger.trace_dispatch)
    return lambda: sys.settrace(had)


# Starts an observer; returns what stops it.
OBSERVERS = {
    "cProfile": profiled,
    "setprofile": with_function(sys.setprofile, lambda *_: None),
    "settrace": with_function(sys.settrace, lambda *_: None),
    "settrace of lines": with_function(sys.settrace, lambda *_: lambda *_: None),
    "settrace of opcodes": with_function(sys.settrace, trace),
    "debugger": debugged,
}
WHEN = {"at the trace": (True, False), "later": (False, True), "always": (True, True)}


def pytest_generate_tests(metafunc):
    for name, table in (("body", [name for name in BODIES if name not in SOURCES]), ("source", SOURCES), ("transform", TRANSFORMS), ("observer", OBSERVERS), ("when", WHEN)):
        if name in metafunc.fixturenames:
            metafunc.parametrize(name, table)


def state_of(w):
    return lambda: (w.t, w.random.getstate()[1][-1])


@kind(GUARDED)
def test_read_under_a_transform(run, body, transform):
    yield from transformed(run, body, transform)


@kind
def test_source_under_a_transform(run, source, transform):
    yield from transformed(run, source, transform)


def transformed(run, body, transform):
    w = World()
    read, change = BODIES[body]
    f = run(TRANSFORMS[transform](lambda x: read(w, x)), state=state_of(w))
    yield f(X)
    yield f(X)
    change(w)
    yield f(X)
    yield f(X)


@kind(GUARDED)
def test_read_with_an_observer(run, body, observer, when):
    yield from watched(run, body, observer, when)


@kind
def test_source_with_an_observer(run, source, observer, when):
    yield from watched(run, source, observer, when)


def watched(run, body, observer, when):
    w = World()
    read, change = BODIES[body]
    f = run(lambda x: read(w, x), state=state_of(w))
    first, later = (OBSERVERS[observer] if at else lambda: lambda: None for at in WHEN[when])
    yield observed(first, f)
    change(w)
    yield observed(later, f)
    yield observed(later, f)


def observed(start, f):
    stop = start()
    try:
        return f(X)
    finally:
        stop()


@kind
def test_observer_sees_the_same_lines(run):
    """An observer that is there before a trace is there after it."""
    seen = []
    f = run(lambda x: x * 2)
    for set_function, get_function in ((sys.settrace, sys.gettrace), (sys.setprofile, sys.getprofile)):
        had, function = get_function(), lambda *_: seen.append(1)
        set_function(function)
        try:
            f(X + len(seen))
            kept = get_function() is function
        finally:
            set_function(had)
        yield kept, bool(seen)


@kind
def test_observer_of_other_threads(run):
    w, found = World(), []
    f = run(lambda x: x * w.gain)
    threading.settrace(lambda *_: lambda *_: None)
    threading.setprofile(lambda *_: None)
    try:
        for w.gain in (2.0, 3.0):
            thread = threading.Thread(target=lambda: found.append(f(X)))
            thread.start()
            thread.join()
    finally:
        threading.settrace(None)
        threading.setprofile(None)
    yield found


@kind(GUARDED)
def test_function_that_profiles_itself(run):
    w = World()

    def body(x):
        profile = cProfile.Profile()
        return profile.runcall(lambda: x * w.gain)

    f = run(body)
    for w.gain in (2.0, 3.0):
        yield f(X)
