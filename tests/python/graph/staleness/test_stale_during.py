"""Kinds of staleness: state that others change while a function is traced or runs. Threads, signal handlers, finalizers."""

import signal
import threading
import types
import weakref

import backplane as bp
import pytest
from staleness_kinds import GUARDED, X, kind


def in_a_thread(function, *args):
    thread = threading.Thread(target=function, args=args)
    thread.start()
    thread.join()


class Plain:
    s = 2.0


@kind
def test_thread_that_changes_an_attribute_during_the_trace(run):
    o = types.SimpleNamespace(s=2.0)

    def body(x):
        y = x * o.s
        if o.s == 2.0:
            other()
        return y

    def other():
        in_a_thread(setattr, o, "s", 3.0)

    f = run(body, state=lambda: o.s)
    yield f(X)
    yield f(X)
    o.s = 2.5
    yield f(X)


@kind
def test_thread_that_waits_for_the_trace(run):
    o = types.SimpleNamespace(s=2.0)
    inside, changed = threading.Event(), threading.Event()

    def body(x):
        y = x * o.s
        inside.set()
        changed.wait(1)
        return y

    def other():
        inside.wait(1)
        o.s = 3.0
        changed.set()

    f = run(body)
    thread = threading.Thread(target=other)
    thread.start()
    yield f(X)
    thread.join()
    yield f(X)
    yield f(X)


@kind
def test_thread_that_changes_a_list_during_the_trace(run):
    held = [2.0]
    inside, changed = threading.Event(), threading.Event()

    def body(x):
        y = x * held[0] + len(held)
        inside.set()
        changed.wait(1)
        return y

    def other():
        inside.wait(1)
        held[:] = [3.0, 1.0]
        changed.set()

    f = run(body)
    thread = threading.Thread(target=other)
    thread.start()
    yield f(X)
    thread.join()
    yield f(X)


@kind
def test_signal_handler_during_the_trace(run):
    o = types.SimpleNamespace(s=2.0)

    def body(x):
        y = x * o.s
        if o.s == 2.0:
            signal.raise_signal(signal.SIGUSR1)
        return y

    f = run(body, state=lambda: o.s)
    had = signal.signal(signal.SIGUSR1, lambda *_: setattr(o, "s", 3.0))
    try:
        yield f(X)
        yield f(X)
    finally:
        signal.signal(signal.SIGUSR1, had)


@kind
def test_signal_handler_that_is_not_called_by_the_function(run):
    o = types.SimpleNamespace(s=2.0)

    def body(x):
        y = x * o.s
        kill()
        return y

    kill = types.SimpleNamespace(do=lambda: signal.raise_signal(signal.SIGUSR1)).do
    f = run(body, state=lambda: o.s)
    had = signal.signal(signal.SIGUSR1, lambda *_: setattr(o, "s", o.s + 1))
    try:
        for _ in range(3):
            yield f(X)
    finally:
        signal.signal(signal.SIGUSR1, had)


@kind
def test_finalizer_during_the_trace(run):
    o = types.SimpleNamespace(s=2.0)

    class Noted:
        def __del__(self):
            o.s += 1

    def body(x):
        Noted()
        return x * o.s

    f = run(body, state=lambda: o.s)
    for _ in range(3):
        yield f(X)


@pytest.mark.xfail(strict=True, reason="an object that was taken out of a container is held until the trace ends")
@kind
def test_callback_of_a_weak_reference(run):
    o, held = types.SimpleNamespace(s=2.0), [Plain(), Plain(), Plain()]
    kept = [weakref.ref(one, lambda _: setattr(o, "s", o.s + 1)) for one in held]

    def body(x):
        held.pop()
        return x * o.s

    f = run(body, state=lambda: (o.s, len(held)))
    for _ in range(3):
        yield f(X), len(kept)


@kind(GUARDED)
def test_calls_at_once(run):
    o, found = types.SimpleNamespace(s=2.0), {}
    f = run(lambda x: x * o.s + x.shape[0])
    start = threading.Barrier(4)

    def call(index):
        start.wait(10)
        found[index] = [f(bp.ones(1 + index)) for _ in range(5)]

    for o.s in (2.0, 3.0):
        threads = [threading.Thread(target=call, args=(index,)) for index in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        yield [found[index] for index in range(4)]


@kind
def test_counter_of_calls_at_once(run):
    o = types.SimpleNamespace(t=0)
    lock = threading.Lock()

    def body(x):
        o.t += 1
        return x * 2

    f = run(body)
    yield f(X)

    def call():
        for _ in range(5):
            with lock:
                f(X)

    threads = [threading.Thread(target=call) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    yield o.t
