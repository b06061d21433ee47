"""Kinds of staleness: settings and registries of the library and the interpreter, frames of the callers, files of every kind."""

import argparse
import calendar
import configparser
import copyreg
import fractions
import gc
import inspect
import linecache
import logging
import mimetypes
import mmap
import os
import pathlib
import queue
import reprlib
import signal
import sqlite3
import string
import sys
import tempfile
import threading
import types
import warnings
import weakref

import pytest
from staleness_kinds import X, kind


class Plain:
    pass


def database(value=None, held=[]):
    if not held:
        held.append(sqlite3.connect(":memory:"))
        held[0].execute("create table t (v real)")
    if value is not None:
        held[0].execute("delete from t")
        held[0].execute("insert into t values (?)", (value,))
    return held[0].execute("select v from t").fetchone()[0]


def parsed(parser=configparser.ConfigParser()):
    return parser


LOG, ARGUMENTS, MAPPED, QUEUE, ALIVE, WORDS = logging.Logger("stale"), argparse.Namespace(), mmap.mmap(-1, 8), queue.SimpleQueue(), weakref.WeakSet(), reprlib.Repr()
FILE = pathlib.Path(tempfile.gettempdir()) / f"stale_{os.getpid()}"
OBJECT = Plain()
# What sets a number, and what reads it.
SETTINGS = {
    "level of a logger": (lambda n: LOG.setLevel(n), lambda: LOG.getEffectiveLevel()),
    "enabled logger": (lambda n: LOG.setLevel(n), lambda: 2.0 if LOG.isEnabledFor(2) else 1.0),
    "argparse": (lambda n: vars(ARGUMENTS).update(n=n), lambda: ARGUMENTS.n),
    "configparser": (lambda n: parsed().read_string(f"[s]\nn = {n}"), lambda: parsed().getfloat("s", "n")),
    "mmap": (lambda n: MAPPED.__setitem__(0, n), lambda: MAPPED[0]),
    "queue": (lambda n: ([QUEUE.get() for _ in range(QUEUE.qsize())], [QUEUE.put(1) for _ in range(n)]), lambda: QUEUE.qsize()),
    "WeakSet": (lambda n: (ALIVE.clear(), ALIVE.update([OBJECT] * (n - 2))), lambda: 1.0 + len(ALIVE)),
    "length of a repr": (lambda n: setattr(WORDS, "maxlist", n), lambda: len(WORDS.repr([1] * 9))),
    "first weekday": (lambda n: calendar.setfirstweekday(n), lambda: calendar.weekheader(1).count(" ") + calendar.firstweekday()),
    "garbage collection": (lambda n: gc.enable() if n == 2 else gc.disable(), lambda: 2.0 if gc.isenabled() else 1.0),
    "thresholds of the collector": (lambda n: gc.set_threshold(700 + n), lambda: gc.get_threshold()[0]),
    "switch interval": (lambda n: sys.setswitchinterval(0.005 * n), lambda: sys.getswitchinterval()),
    "arguments of the program": (lambda n: sys.argv.__setitem__(slice(1, None), ["a"] * n), lambda: len(sys.argv)),
    "digits of an int": (lambda n: sys.set_int_max_str_digits(1000 * n), lambda: sys.get_int_max_str_digits() / 1000),
    "attribute of sys": (lambda n: setattr(sys, "stale", n), lambda: sys.stale),
    "attribute of warnings": (lambda n: setattr(warnings, "stale", n), lambda: warnings.stale),
    "module in sys.modules": (lambda n: setattr(sys.modules[__name__], "stale", n), lambda: sys.modules[__name__].stale),
    "module by __import__": (lambda n: setattr(string, "stale", n), lambda: __import__("string").stale),
    "handler of a signal": (lambda n: signal.signal(signal.SIGUSR2, signal.SIG_IGN if n == 2 else signal.SIG_DFL), lambda: 2.0 if signal.getsignal(signal.SIGUSR2) is signal.SIG_IGN else 1.0),
    "stack size of threads": (lambda n: threading.stack_size(n * 65536), lambda: threading.stack_size() / 65536),
    "name of the thread": (lambda n: setattr(threading.current_thread(), "name", "a" * n), lambda: len(threading.current_thread().name)),
    "registry of copyreg": (lambda n: copyreg.dispatch_table.__setitem__(Plain, len) if n == 3 else copyreg.dispatch_table.pop(Plain, None), lambda: 2.0 if Plain in copyreg.dispatch_table else 1.0),
    "registry of types": (lambda n: mimetypes.add_type("stale/" + "a" * n, ".stale"), lambda: len(mimetypes.guess_type("f.stale")[0])),
    "cache of lines": (lambda n: linecache.cache.__setitem__("stale", (1, None, ["a" * n], "stale")), lambda: len(linecache.getline("stale", 1))),
    "database": (lambda n: database(n), lambda: database()),
    "file of pathlib": (lambda n: FILE.write_text(str(n)), lambda: float(FILE.read_text())),
    "size of a file": (lambda n: FILE.write_text("a" * n), lambda: os.stat(FILE).st_size),
    "existence of a file": (lambda n: FILE.touch() if n == 2 else FILE.unlink(missing_ok=True), lambda: 2.0 if FILE.exists() else 1.0),
    "mask of the process": (lambda n: os.umask(n), lambda: (lambda had: (os.umask(had), had)[1])(os.umask(0))),
    "constant of a class of the library": (lambda n: setattr(fractions.Fraction, "stale", n), lambda: fractions.Fraction(1).stale),
    "namespace of a frame": (lambda n: globals().__setitem__("STALE", n), lambda: sys._getframe().f_globals["STALE"]),
    "current frame": (lambda n: globals().__setitem__("STALE", n), lambda: inspect.currentframe().f_globals["STALE"]),
}  # fmt: skip


def pytest_generate_tests(metafunc):
    if "setting" in metafunc.fixturenames:
        metafunc.parametrize("setting", SETTINGS)


@kind
def test_setting(run, setting, restored):
    change, read = SETTINGS[setting]
    change(2)
    f = run(lambda x: x * read())
    for n in (2, 3, 2):
        change(n)
        yield f(X)


def restore_settings(kept):
    gc.enable()
    gc.set_threshold(*kept["threshold"])
    sys.setswitchinterval(kept["interval"])
    sys.argv[:] = kept["argv"]
    sys.set_int_max_str_digits(kept["digits"])
    signal.signal(signal.SIGUSR2, kept["handler"])
    threading.current_thread().name = kept["name"]
    threading.stack_size(kept["stack"])
    calendar.setfirstweekday(0)
    os.umask(kept["mask"])
    copyreg.dispatch_table.pop(Plain, None)
    linecache.cache.pop("stale", None)
    FILE.unlink(missing_ok=True)
    for owner in (sys, warnings, string, fractions.Fraction):
        vars(owner).get("stale") is None or delattr(owner, "stale")


@pytest.fixture
def restored():
    mask = os.umask(0)
    os.umask(mask)
    kept = {"threshold": gc.get_threshold(), "interval": sys.getswitchinterval(), "argv": sys.argv[:], "digits": sys.get_int_max_str_digits(), "handler": signal.getsignal(signal.SIGUSR2),
            "name": threading.current_thread().name, "stack": threading.stack_size(), "mask": mask}  # fmt: skip
    yield
    restore_settings(kept)


@kind
def test_variable_of_the_caller_in_a_frame(run):
    scale = 2.0
    f = run(lambda x: x * caller_value("stale_scale"))

    def caller(stale_scale):
        return f(X)

    for scale in (2.0, 3.0):
        yield caller(scale)


def caller_value(name):
    frame = sys._getframe()
    while frame is not None:
        if name in frame.f_locals:
            return frame.f_locals[name]
        frame = frame.f_back
    return 1.0


@kind
def test_names_of_a_namespace(run):
    o = types.SimpleNamespace()
    f = run(lambda x: x * len(inspect.getmembers(o, lambda v: isinstance(v, int))) + len(repr(o)))
    yield f(X)
    o.a = 1
    yield f(X)
