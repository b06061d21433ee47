"""Kinds of staleness: state that others change while a function is traced or runs. Threads, signal handlers, callbacks, finalizers."""

import gc
import signal
import sys
import threading
import types
import weakref

import backplane as bp
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
        changed.wait(5)
        return y

    def other():
        inside.wait(5)
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
        changed.wait(5)
        return y

    def other():
        inside.wait(5)
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


@kind
def test_property_that_counts(run):
    class A:
        reads = 0

        @property
        def s(self):
            self.reads += 1
            return 2.0 * self.reads

    o = A()
    f = run(lambda x: x * o.s, state=lambda: o.reads)
    for _ in range(3):
        yield f(X)


@kind
def test_special_method_that_counts(run):
    class A:
        calls = 0

        def __float__(self):
            self.calls += 1
            return 1.0 * self.calls

        def __eq__(self, other):
            self.calls += 1
            return True

        __hash__ = None

    o = A()
    f = run(lambda x: x * float(o) + (o == 1), state=lambda: o.calls)
    for _ in range(3):
        yield f(X)


@kind
def test_context_manager_that_counts(run):
    class A:
        entered = left = 0

        def __enter__(self):
            self.entered += 1

        def __exit__(self, *_):
            self.left += 1

    o = A()

    def body(x):
        with o:
            return x * o.entered

    f = run(body, state=lambda: (o.entered, o.left))
    for _ in range(3):
        yield f(X)


@kind
def test_key_function_that_counts(run):
    calls = []

    def key(value):
        calls.append(value)
        return -value

    f = run(lambda x: x * sorted([1.0, 2.0], key=key)[0], state=lambda: calls)
    for _ in range(3):
        yield f(X)


@kind
def test_state_that_is_changed_and_restored(run):
    o = types.SimpleNamespace(s=2.0)

    def body(x):
        had, o.s = o.s, 5.0
        try:
            return x * o.s + had
        finally:
            o.s = had

    f = run(body, state=lambda: o.s)
    for o.s in (2.0, 3.0, 2.0):
        yield f(X)


@kind
def test_exception_after_a_store(run):
    o = types.SimpleNamespace(t=0)

    def body(x):
        o.t += 1
        raise ValueError(str(o.t))

    f = run(body, state=lambda: o.t)
    for _ in range(3):
        try:
            f(X)
        except ValueError as error:
            yield str(error), o.t


@kind(GUARDED)
def test_exceptions_as_control_flow(run):
    o = types.SimpleNamespace(value="2")

    def body(x):
        try:
            return x * float(o.value)
        except ValueError:
            return x * len(o.value)
        except TypeError:
            return x

    f = run(body)
    for o.value in ("2", "3", "many", "word", None, "2"):
        yield f(X)


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


@kind(GUARDED)
def test_collection_of_garbage(run):
    class Node:
        pass

    def body(x):
        a = Node()
        a.self = a
        a.s = o.s
        del a
        gc.collect()
        return x * o.s

    o = Plain()
    f = run(body)
    for o.s in (2.0, 3.0):
        yield f(X)


@kind(GUARDED)
def test_recursive_call_of_the_compiled_function(run):
    o = Plain()

    def body(x, n):
        return x * o.s if n == 0 else again(x, n - 1) + 1

    f = run(body)
    again = f.made
    for o.s in (2.0, 3.0):
        yield f(X, 2)


@kind
def test_import_during_the_trace(run):
    sys.modules.pop("stale_imported", None)

    class Finder:
        def find_spec(self, name, path=None, target=None):
            import importlib.machinery

            return importlib.machinery.ModuleSpec(name, self) if name == "stale_imported" else None

        def create_module(self, spec):
            return None

        def exec_module(self, module):
            module.scale = 2.0

    def body(x):
        import stale_imported

        return x * stale_imported.scale

    finder = Finder()
    sys.meta_path.insert(0, finder)
    try:
        f = run(body, state=lambda: "stale_imported" in sys.modules)
        yield f(X)
        sys.modules["stale_imported"].scale = 3.0
        yield f(X)
        del sys.modules["stale_imported"]
        yield f(X)
    finally:
        sys.meta_path.remove(finder)
        sys.modules.pop("stale_imported", None)
