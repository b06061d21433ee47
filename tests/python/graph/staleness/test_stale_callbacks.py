"""Kinds of staleness: a function of the program that others run. Built-in functions, the library, NumPy, other threads, event loops."""

import asyncio
import bisect
import concurrent.futures
import contextlib
import contextvars
import copy
import ctypes
import functools
import gc
import itertools
import json
import re
import signal
import threading
import types
import weakref

import backplane as bp
import numpy as np
from staleness_kinds import GUARDED, X, kind

# What runs `read`, a function without arguments that reads state and gives a number.
COMMON = {
    "call": lambda read: read(),
    "map": lambda read: sum(map(lambda _: read(), [1, 2])),
    "map that is consumed later": lambda read: (lambda m: sum([1.0, *m]))(map(lambda _: read(), [1, 2])),
    "filter": lambda read: len([*filter(lambda v: v < read(), [1.0, 2.5, 9.0])]),
    "key of sorted": lambda read: sorted([1.0, 4.0], key=lambda v: abs(v - read()))[0],
    "key of min": lambda read: min([1.0, 4.0], key=lambda v: abs(v - read())),
    "key of groupby": lambda read: len([*itertools.groupby([1.0, 2.5, 9.0], key=lambda v: v < read())]),
    "key of bisect": lambda read: 1 + bisect.bisect([1, 2, 3], 2.5, key=lambda v: v * read() / 2),
    "sort": lambda read: (lambda a: (a.sort(key=lambda v: abs(v - read())), a[0])[1])([1.0, 4.0]),
    "reduce": lambda read: functools.reduce(lambda a, b: a * read() + b, [1.0, 2.0, 3.0]),
    "partial": lambda read: functools.partial(lambda a, b: a + b, read())(1.0),
    "accumulate": lambda read: [*itertools.accumulate([1.0, 2.0], lambda a, b: a * read() + b)][-1],
    "takewhile": lambda read: len([*itertools.takewhile(lambda v: v < read(), itertools.count())]),
    "generator": lambda read: sum(read() for _ in range(2)),
    "iter with a sentinel": lambda read: next(iter(read, None)),
    "any": lambda read: 2.0 if any(v > read() for v in [1.0, 2.5]) else 1.0,
    "comparison": lambda read: 2.0 if type("C", (), {"__lt__": lambda self, other: read() < other})() < 2.5 else 1.0,
    "special method": lambda read: float(type("C", (), {"__float__": lambda self: read()})()),
    "property": lambda read: type("C", (), {"p": property(lambda self: read())})().p,
    "cached property": lambda read: type("C", (Named,), {"p": functools.cached_property(lambda self: read())})().p,
    "constructor": lambda read: type("C", (), {"__init__": lambda self: setattr(self, "v", read())})().v,
    "exit of a context": lambda read: exited(read),
    "tree.map": lambda read: bp.tree.map(lambda v: v * read(), {"a": 1.0})["a"],
}
RARE = {
    "re.sub": lambda read: float(re.sub("n", lambda _: str(read()), "n")),
    "cmp_to_key": lambda read: sorted([1.0, 4.0], key=functools.cmp_to_key(lambda a, b: (a - b) * (read() - 2.5)))[0],
    "json default": lambda read: float(json.dumps({1}, default=lambda _: read())),
    "json hook": lambda read: json.loads('{"a": 1}', object_hook=lambda _: read()),
    "deepcopy": lambda read: copy.deepcopy(type("C", (), {"__deepcopy__": lambda self, memo: read()})()),
    "context run": lambda read: contextvars.copy_context().run(read),
    "vectorize": lambda read: float(np.vectorize(lambda v: v * read())(np.ones(2))[0]),
    "frompyfunc": lambda read: float(np.frompyfunc(lambda v: v * read(), 1, 1)(np.ones(2))[0]),
    "fromfunction": lambda read: float(np.fromfunction(lambda i: i * 0 + read(), (2,))[0]),
    "apply_along_axis": lambda read: float(np.apply_along_axis(lambda v: v * read(), 0, np.ones(2))[0]),
    "__array__": lambda read: float(np.asarray(type("C", (), {"__array__": lambda self, dtype=None, copy=None: np.full(1, read())})())[0]),
    "ctypes callback": lambda read: ctypes.CFUNCTYPE(ctypes.c_double)(read)(),
    "thread": lambda read: in_a_thread(read),
    "executor": lambda read: executed(read),
    "event loop": lambda read: asyncio.run(later(read)),
    "signal handler": lambda read: signalled(read),
    "finalizer": lambda read: finalized(read),
    "collector": lambda read: collected(read),
    "import": lambda read: types.new_class("C", (), {}, lambda names: names.update(v=read())).v,
    "metaclass": lambda read: type("M", (type,), {"__call__": lambda cls: read()})("C", (), {})(),
    "init_subclass": lambda read: subclassed(read),
}


class Named:
    pass


@contextlib.contextmanager
def entered(found, read):
    yield
    found.append(read())


def exited(read):
    found = []
    with entered(found, read):
        pass
    return found[0]


def in_a_thread(read):
    found = []
    thread = threading.Thread(target=lambda: found.append(read()))
    thread.start()
    thread.join()
    return found[0]


def executed(read):
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        return pool.submit(read).result()


async def later(read):
    await asyncio.sleep(0)
    return read()


def signalled(read):
    found = []
    had = signal.signal(signal.SIGUSR1, lambda *_: found.append(read()))
    try:
        signal.raise_signal(signal.SIGUSR1)
    finally:
        signal.signal(signal.SIGUSR1, had)
    return found[0]


def finalized(read):
    found, o = [], Named()
    weakref.finalize(o, lambda: found.append(read()))
    del o
    return found[0]


def collected(read):
    found = []

    def callback(phase, info):
        found.append(read())

    gc.callbacks.append(callback)
    try:
        gc.collect(0)
    finally:
        gc.callbacks.remove(callback)
    return found[0]


def subclassed(read):
    class Base:
        def __init_subclass__(cls):
            cls.v = read()

    class Derived(Base):
        pass

    return Derived.v


def pytest_generate_tests(metafunc):
    for name, table in (("common", COMMON), ("rare", RARE)):
        if name in metafunc.fixturenames:
            metafunc.parametrize(name, table)


def called(run, way):
    o, c = types.SimpleNamespace(s=2.0), type("C", (), {"s": 2.0})
    f, g = run(lambda x: x * way(lambda: o.s)), run(lambda x: x * way(lambda: c.s))
    for o.s, c.s in ((2.0, 2.0), (3.0, 2.0), (3.0, 3.0), (2.0, 2.0)):
        yield f(X), g(X)


@kind(GUARDED)
def test_function_that_others_call(run, common):
    yield from called(run, COMMON[common])


@kind
def test_function_that_others_call_rarely(run, rare):
    yield from called(run, RARE[rare])
