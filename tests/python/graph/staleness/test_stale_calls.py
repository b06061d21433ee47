"""Kinds of staleness: what runs on the way through a function. Methods that count, exceptions, recursion, imports."""

import gc
import sys
import types

from staleness_kinds import GUARDED, X, kind


class Plain:
    s = 2.0


@kind
def test_property_that_counts(run):
    class A:
        reads = 0

        @property
        def s(self):
            self.reads += 1  # here
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
            self.calls += 1  # here
            return 1.0 * self.calls

        def __eq__(self, other):
            self.calls += 1  # here
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
            self.entered += 1  # here

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
        calls.append(value)  # here
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
