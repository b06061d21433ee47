"""The main kinds of staleness with a profiler, a tracer or a debugger at work."""

import bdb
import cProfile
import sys
import threading

from staleness_bodies import BODIES, READS, SOURCES, World, state_of
from staleness_kinds import GUARDED, X, kind


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
    for name, table in (("body", READS), ("source", SOURCES), ("observer", OBSERVERS), ("when", WHEN)):
        if name in metafunc.fixturenames:
            metafunc.parametrize(name, table)


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
