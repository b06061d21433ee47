"""Kinds of staleness: what functions of C read besides their arguments. Contexts of decimals and NumPy, locks, time zones, counters."""

import contextvars
import ctypes
import datetime
import decimal
import hashlib
import inspect
import os
import signal
import sys
import threading
import time
import tracemalloc
import weakref
import zlib

import backplane as bp
import numpy as np
from staleness_kinds import X, kind

D = decimal.Decimal
ARITHMETIC = {
    "quotient": lambda: D(1) / D(3),
    "square root": lambda: D("1.2345").sqrt(),
    "round": lambda: round(D("1.2345"), 3) + D(0),
    "quantize": lambda: D("1.2355").quantize(D("0.001")),
    "sum": lambda: sum([D("1.2345"), D("1.2345")]),
    "sum of a map": lambda: sum(map(D, ["1.2345", "1.2345"])),
    "fma": lambda: D("1.2345").fma(D("1.1"), D("1.1")),
    "negative": lambda: -D("1.2345"),
    "power": lambda: D("1.2345") ** 2,
    "exponential": lambda: D("1.2345").exp(),
    "array": lambda: np.sum(np.array([D("1.2345"), D("1.2345")])),
    "context": lambda: decimal.getcontext().divide(D(1), D(3)),
    "precision": lambda: decimal.getcontext().prec,
}
STAMP = datetime.datetime(2020, 1, 1)
OF_TIME_ZONE = {
    "timestamp": lambda: STAMP.timestamp() % 100000,
    "fromtimestamp": lambda: datetime.datetime.fromtimestamp(0).hour + 1,
    "mktime": lambda: time.mktime((2020, 1, 1, 0, 0, 0, 0, 0, 0)) % 100000,
    "astimezone": lambda: STAMP.astimezone(datetime.timezone.utc).hour + 1,
    "timezone": lambda: time.timezone + 1,
}
NOW = {
    "now": lambda: np.datetime64("now").astype(int) % 100000,
    "today": lambda: np.datetime64("today", "s").astype(int) % 100000,
    "array of now": lambda: np.array("now", dtype="datetime64[s]").astype(int) % 100000,
}
OF_NUMPY = {
    "geterr": (lambda: np.errstate(over="raise"), lambda: 2.0 if np.geterr()["over"] == "raise" else 3.0),
    "geterrcall": (lambda: np.errstate(call=print), lambda: 2.0 if np.geterrcall() is None else 3.0),
    "print options": (lambda: np.printoptions(precision=1), lambda: len(str(np.array([1.23456])))),
    "get_printoptions": (lambda: np.printoptions(precision=1), lambda: np.get_printoptions()["precision"]),
}
OF_BACKPLANE = {
    "threads": (lambda: bp.set_num_threads(bp.get_num_threads() % 2 + 1), lambda: bp.get_num_threads()),
    "print options": (lambda: bp.set_printoptions(precision=bp.get_printoptions()["precision"] % 7 + 1), lambda: bp.get_printoptions()["precision"]),
}
LOCK, EVENT = threading.Lock(), threading.Event()
HASH, PACKER, ALIVE = hashlib.sha256(b"a"), zlib.compressobj(), []


class Plain:
    pass


OBJECT, VARIABLE = Plain(), contextvars.ContextVar("stale_ambient")
# What sets an on or off, and what reads it.
SWITCHES = {
    "lock": (lambda on: LOCK.acquire(blocking=False) if on else LOCK.locked() and LOCK.release(), lambda: 2.0 if LOCK.locked() else 3.0),
    "event": (lambda on: EVENT.set() if on else EVENT.clear(), lambda: 2.0 if EVENT.is_set() else 3.0),
    "signal": (lambda on: signal.signal(signal.SIGUSR1, signal.SIG_IGN if on else signal.SIG_DFL), lambda: 2.0 if signal.getsignal(signal.SIGUSR1) == signal.SIG_IGN else 3.0),
    "tracemalloc": (lambda on: tracemalloc.start() if on else tracemalloc.stop(), lambda: 2.0 if tracemalloc.is_tracing() else 3.0),
    "weak references": (lambda on: ALIVE.append(weakref.ref(OBJECT, lambda _: None)) if on else ALIVE.clear(), lambda: 1 + weakref.getweakrefcount(OBJECT)),
    "hash": (lambda on: HASH.update(b"b"), lambda: HASH.digest()[0] + 1),
    "copied context": (lambda on: VARIABLE.set(float(on)), lambda: contextvars.copy_context()[VARIABLE] + 1),
    "copied context, get": (lambda on: VARIABLE.set(float(on)), lambda: contextvars.copy_context().get(VARIABLE, 7.0) + 1),
    "run in a copied context": (lambda on: VARIABLE.set(float(on)), lambda: contextvars.copy_context().run(VARIABLE.get, 7.0) + 1),
    "directory": (lambda on: os.chdir("/" if on else "/tmp"), lambda: len(os.getcwd())),
    "recursion limit": (lambda on: sys.setrecursionlimit(5000 + on), lambda: sys.getrecursionlimit()),
}


class Pair(ctypes.Structure):
    _fields_ = [("a", ctypes.c_double), ("b", ctypes.c_int * 3)]


PAIR = Pair(2.0)
POINTER = ctypes.pointer(PAIR)
RAW = ctypes.create_string_buffer(b"abc")
NUMBERS = (ctypes.c_double * 3)(1, 2, 3)
OF_CTYPES = {
    "field": lambda: PAIR.a,
    "element of a field": lambda: PAIR.b[1] + 1,
    "pointer": lambda: POINTER.contents.a,
    "element of a pointer": lambda: POINTER[0].a,
    "cast": lambda: ctypes.cast(POINTER, ctypes.POINTER(ctypes.c_double))[0],
    "string_at": lambda: ctypes.string_at(ctypes.addressof(RAW), 1)[0],
    "value": lambda: len(RAW.value) + RAW.value[0],
    "slice": lambda: sum(NUMBERS[1:]),
    "loop": lambda: sum(v for v in NUMBERS),
    "array": lambda: np.ctypeslib.as_array(NUMBERS)[1:].sum(),
    "addressed": lambda: ctypes.c_double.from_address(ctypes.addressof(NUMBERS) + 8).value,
}


def pytest_generate_tests(metafunc):
    tables = {"computed": ARITHMETIC, "zoned": OF_TIME_ZONE, "now": NOW, "of_numpy": OF_NUMPY, "of_backplane": OF_BACKPLANE,
              "switch": SWITCHES, "of_ctypes": OF_CTYPES}  # fmt: skip
    for name, table in tables.items():
        if name in metafunc.fixturenames:
            metafunc.parametrize(name, table)


@kind
def test_context_of_decimals(run, computed):
    f = run(lambda x: x * float(ARITHMETIC[computed]()))
    for precision, rounding in ((28, decimal.ROUND_HALF_EVEN), (5, decimal.ROUND_UP), (4, decimal.ROUND_DOWN)):
        with decimal.localcontext() as context:
            context.prec, context.rounding = precision, rounding
            yield f(X)


@kind
def test_captured_context_of_decimals(run):
    context = decimal.Context(prec=3)
    f = run(lambda x: x * float(context.divide(D(1), D(3))))
    for context.prec in (3, 5, 2):
        yield f(X)


@kind
def test_time_zone(run, zoned):
    had = os.environ.get("TZ")
    f = run(lambda x: bp.asarray(float(OF_TIME_ZONE[zoned]()), dtype=bp.float64) + x.sum())
    try:
        for zone in ("UTC", "JST-9", "UTC"):
            os.environ["TZ"] = zone
            time.tzset()
            yield f(X)
    finally:
        os.environ.pop("TZ") if had is None else os.environ.update(TZ=had)
        time.tzset()


@kind
def test_clock_of_numpy(run, now):
    f = run(lambda x: bp.asarray(float(NOW[now]()), dtype=bp.float64) + x.sum())
    f(X)
    yield run.compiled and "was not refused"


@kind
def test_settings_of_numpy(run, of_numpy):
    block, read = OF_NUMPY[of_numpy]
    f = run(lambda x: x * read())
    yield f(X)
    with block():
        yield f(X)
    yield f(X)


@kind
def test_error_of_numpy(run):
    big = np.array([1e308, 1.0])
    f = run(lambda x: x * float((big * 10)[1]) * float(np.multiply(big, 10)[1]))
    with np.errstate(over="ignore"):
        yield f(X)
    try:
        with np.errstate(over="raise"):
            yield f(X)
    except FloatingPointError:
        yield "raised"


@kind
def test_settings_of_backplane(run, of_backplane):
    change, read = OF_BACKPLANE[of_backplane]
    had = bp.get_num_threads(), bp.get_printoptions()["precision"]
    f = run(lambda x: x * read())
    try:
        bp.set_num_threads(1)
        seen = []
        for _ in range(2):
            seen.append(f(X)[0].item())
            change()
        yield seen
    finally:
        bp.set_num_threads(had[0])
        bp.set_printoptions(precision=had[1])


@kind
def test_switch(run, switch):
    change, read = SWITCHES[switch]
    directory, limit = os.getcwd(), sys.getrecursionlimit()
    global HASH
    HASH = hashlib.sha256(b"a")
    f = run(lambda x: x * float(read()))
    try:
        for on in (False, True, False):
            change(on)
            yield f(X)
    finally:
        os.chdir(directory)
        sys.setrecursionlimit(limit)


@kind
def test_memory_of_ctypes(run, of_ctypes):
    PAIR.a, PAIR.b[1], RAW.raw, NUMBERS[1] = 2.0, 3, b"abc\0", 4.0
    f = run(lambda x: x * float(OF_CTYPES[of_ctypes]()))
    yield f(X)
    PAIR.a, PAIR.b[1], RAW.raw, NUMBERS[1] = 5.0, 7, b"z\0\0\0", 9.0
    yield f(X)


@kind
def test_exception_that_a_caller_handles(run):
    f = run(lambda x: x * (2.0 if sys.exc_info()[1] is None else 3.0))
    yield f(X)
    try:
        raise ValueError
    except ValueError:
        yield f(X)
    yield f(X)


@kind
def test_exception_of_its_own(run):
    o = Plain()
    o.k = 2.0

    def f(x):
        try:
            raise ValueError(o.k)
        except ValueError:
            return x * sys.exc_info()[1].args[0]

    f = run(f)
    yield f(X)
    o.k = 3.0
    yield f(X)


@kind
def test_frame_of_the_caller(run):
    f = run(lambda x: x * len(inspect.currentframe().f_back.f_code.co_name))

    def ab():
        return f(X)

    yield ab()


@kind
def test_trace_function(run):
    f = run(lambda x: x * (2.0 if sys.gettrace() is None else 3.0))
    yield f(X)


@kind
def test_id_of_an_object_that_is_made(run):
    seen = set()
    held = []
    f = run(lambda x: (held.append([]), seen.add(id(held[-1])), x * 1)[-1], state=lambda: len(held))
    for _ in range(3):
        yield f(X)
    yield len(seen)


@kind
def test_state_of_a_generator_of_numpy(run):
    g = np.random.PCG64(0)
    f = run(lambda x: x * (g.state["state"]["state"] % 7))
    yield f(X)
    g.random_raw()
    yield f(X)


@kind
def test_count_of_an_iterator_of_numpy(run):
    it = np.arange(6.0).flat
    f = run(lambda x: x * (it.index + 1))
    yield f(X)
    next(it)
    yield f(X)
