"""Lost side effects: one store, written in every way that Python has. By statements, by built-in functions, through the library."""

import array
import bisect
import collections
import contextvars
import ctypes
import functools
import heapq
import io
import itertools
import logging
import operator
import os
import queue
import random
import struct
import sys
import threading
import types
import warnings
import weakref

import backplane as bp
import numpy as np
from staleness_kinds import X, kind


class World:
    """What the statements change; each program has its own. `state()` is a number or a container of numbers."""

    def __init__(self):
        self.t, self.list, self.dict, self.array = 0, [0], {"t": 0}, np.zeros(3)
        self.set, self.Class, self.other = set(), type("Class", (), {"t": 0}), types.SimpleNamespace(t=0)


def augmented_list(w):
    w.list += [1]


def augmented_local(w):
    held = w.list
    held += [1]


def augmented_element(w):
    w.list[0] += 1


def augmented_entry(w):
    w.dict["t"] += 1


def augmented_array(w):
    w.array += 1


def augmented_element_of_an_array(w):
    w.array[0] += 1


def augmented_slice_of_an_array(w):
    w.array[1:] += 1


def augmented_mask_of_an_array(w):
    w.array[w.array < 9] += 1


def augmented_view_of_an_array(w):
    view = w.array[:1]
    view += 1


def augmented_set(w):
    w.set |= {len(w.set)}


def augmented_dict(w):
    w.dict |= {"n": len(w.dict)}


def loop_target(w):
    for w.t in range(w.t, w.t + 2):
        pass


def loop_target_of_elements(w):
    for w.list[0] in (w.list[0], w.list[0] + 1):
        pass


def with_target(w):
    with io.StringIO(str(w.t + 1)) as w.other.file:
        w.t += 1


def unpacking(w):
    w.t, (w.list[0], *w.dict["rest"]) = w.t + 1, (w.list[0] + 1, 2, 3)


def swap(w):
    w.t, w.other.t = w.other.t + 1, w.t


def slice_assignment(w):
    w.list[len(w.list) :] = [1]


def slice_deletion(w):
    w.list += [1, 2]
    del w.list[:1]


def deletion_of_an_entry(w):
    w.dict[len(w.dict)] = 1
    del w.dict["t"]
    w.dict["t"] = 1


def class_attribute(w):
    w.Class.t += 1


def chained(w):
    w.t = w.other.t = w.t + 1


def in_a_comprehension(w):
    [w.list.append(i) for i in range(2)]


def in_a_generator(w):
    any(w.list.append(i) for i in range(2))


def in_a_thread(w):
    thread = threading.Thread(target=lambda: setattr(w, "t", w.t + 1))
    thread.start()
    thread.join()


def in_a_finally(w):
    try:
        return
    finally:
        w.t += 1


def in_an_except(w):
    try:
        raise KeyError
    except KeyError:
        w.t += 1


def by_a_callback(w):
    functools.reduce(lambda a, b: w.list.append(b), [1, 2], None)


def by_a_key(w):
    sorted([1, 2], key=lambda v: w.list.append(v) or v)


def by_warning(w):
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        warnings.warn("stale")
        w.t += len(found)


def by_descriptor(w):
    class Stored:
        def __set__(self, owner, value):
            w.t += value

    type("A", (), {"t": Stored()})().t = 1


def by_init(w):
    class Counted:
        def __init__(self):
            w.t += 1

    Counted()


STATEMENTS = {
    function.__name__.replace("_", " "): function
    for function in (
        augmented_list, augmented_local, augmented_element, augmented_entry, augmented_array, augmented_element_of_an_array, augmented_slice_of_an_array,
        augmented_mask_of_an_array, augmented_view_of_an_array, augmented_set, augmented_dict, loop_target, loop_target_of_elements, with_target, unpacking, swap, slice_assignment,
        slice_deletion, deletion_of_an_entry, class_attribute, chained, in_a_comprehension, in_a_generator, in_a_thread, in_a_finally, in_an_except, by_a_callback, by_a_key,
        by_warning, by_descriptor, by_init)
}  # fmt: skip
FUNCTIONS = {
    "setattr": lambda w: setattr(w, "t", w.t + 1),
    "object.__setattr__": lambda w: object.__setattr__(w, "t", w.t + 1),
    "__setattr__": lambda w: w.__setattr__("t", w.t + 1),
    "type.__setattr__": lambda w: type.__setattr__(w.Class, "t", w.Class.t + 1),
    "vars": lambda w: vars(w).update(t=w.t + 1),
    "__dict__": lambda w: w.__dict__.__setitem__("t", w.t + 1),
    "exec": lambda w: exec("w.t += 1", {"w": w}),
    "operator.setitem": lambda w: operator.setitem(w.dict, "t", w.dict["t"] + 1),
    "operator.delitem": lambda w: (w.list.extend([1, 2]), operator.delitem(w.list, 0)),
    "operator.iadd": lambda w: operator.iadd(w.list, [1]),
    "list.append": lambda w: list.append(w.list, 1),
    "append of a variable": lambda w: (lambda append: append(1))(w.list.append),
    "map of append": lambda w: list(map(w.list.append, [1, 2])),
    "deque of a map": lambda w: collections.deque(map(w.list.append, [1, 2]), maxlen=0),
    "partial of append": lambda w: functools.partial(w.list.append, 1)(),
    "partial of setattr": lambda w: functools.partial(setattr, w, "t")(w.t + 1),
    "methodcaller": lambda w: operator.methodcaller("append", 1)(w.list),
    "dict.update": lambda w: dict.update(w.dict, t=w.dict["t"] + 1),
    "dict.setdefault": lambda w: w.dict.setdefault(len(w.dict), 1),
    "dict.pop": lambda w: w.dict.update({len(w.dict): 1}, t=w.dict.pop("t") + 1),
    "heappush": lambda w: heapq.heappush(w.list, -len(w.list)),
    "insort": lambda w: bisect.insort(w.list, len(w.list)),
    "sort": lambda w: (w.list.append(-len(w.list)), w.list.sort()),
    "np.add.at": lambda w: np.add.at(w.array, [0, 0], 1),
    "np.add out": lambda w: np.add(w.array, 1, out=w.array),
    "np.place": lambda w: np.place(w.array, w.array < 9, w.array + 1),
    "put_along_axis": lambda w: np.put_along_axis(w.array, np.array([0]), w.array[0] + 1, 0),
    "itemset of a view": lambda w: w.array[:1].fill(w.array[0] + 1),
    "array through a tensor": lambda w: bp.from_numpy(w.array).add_(1),
    "lambda with a walrus": lambda w: setattr(w.other, "t", (value := w.other.t + 1)) or value,
}  # fmt: skip
# An object beside the world, a change of it, and what it is then.
OBJECTS = {
    "deque": (lambda: collections.deque([0]), lambda q: q.appendleft(len(q)), list),
    "ChainMap": (lambda: collections.ChainMap({"t": 0}), lambda m: m.update(t=m["t"] + 1), dict),
    "OrderedDict": (lambda: collections.OrderedDict(a=1, b=2), lambda d: d.move_to_end(next(iter(d))), list),
    "UserDict": (lambda: collections.UserDict(t=0), lambda d: d.update(t=d["t"] + 1), dict),
    "array": (lambda: array.array("d", [0]), lambda a: a.append(len(a)), list),
    "memoryview": (lambda: memoryview(bytearray(2)), lambda m: m.__setitem__(0, m[0] + 1), bytes),
    "bytearray": (lambda: bytearray(1), lambda b: b.extend(b"a"), bytes),
    "pack_into": (lambda: bytearray(8), lambda b: struct.pack_into("<d", b, 0, struct.unpack("<d", b)[0] + 1), bytes),
    "ctypes number": (lambda: ctypes.c_int(0), lambda c: setattr(c, "value", c.value + 1), lambda c: c.value),
    "ctypes array": (lambda: (ctypes.c_int * 2)(), lambda a: a.__setitem__(0, a[0] + 1), list),
    "memmove": (lambda: (ctypes.c_int * 2)(1, 2), lambda a: ctypes.memmove(a, (ctypes.c_int * 1)(a[0] + 1), 4), list),
    "thread local": (threading.local, lambda v: setattr(v, "t", getattr(v, "t", 0) + 1), lambda v: getattr(v, "t", 0)),
    "context variable": (lambda: contextvars.ContextVar("v", default=0), lambda v: v.set(v.get() + 1), lambda v: v.get()),
    "queue": (queue.SimpleQueue, lambda q: q.put(1), lambda q: q.qsize()),
    "event": (threading.Event, lambda e: e.clear() if e.is_set() else e.set(), lambda e: e.is_set()),
    "semaphore": (lambda: threading.Semaphore(9), lambda s: s.acquire(), lambda s: s._value),
    "count": (lambda: itertools.count(), next, repr),
    "file": (io.BytesIO, lambda file: file.write(b"a"), lambda file: file.getvalue()),
    "file descriptor": (os.pipe, lambda pipe: os.write(pipe[1], b"a"), lambda pipe: pending(pipe)),
    "print": (io.StringIO, lambda file: print("a", file=file), lambda file: file.getvalue()),
    "log": (lambda: Handler(), lambda handler: handler.log.warning("a"), lambda handler: list(handler.seen)),
    "random": (lambda: random.Random(3), lambda r: r.random(), lambda r: r.getstate()[1][-1]),
    "seed": (lambda: random.Random(3), lambda r: r.seed(r.getstate()[1][0] % 97), lambda r: r.getstate()[1][:3]),
    "environment": (lambda: os.environ.pop("STALE", None), lambda _: os.environ.update(STALE=os.environ.get("STALE", "") + "a"), lambda _: os.environ.get("STALE")),
    "weak dictionary": (lambda: (weakref.WeakKeyDictionary(), Key()), lambda pair: pair[0].update({pair[1]: pair[0].get(pair[1], 0) + 1}), lambda pair: list(pair[0].values())),
    "modules": (lambda: sys.modules.pop("stale_made", None), lambda _: sys.modules.update(stale_made=types.ModuleType("m")), lambda _: sys.modules.pop("stale_made", None) is not None),
    "cached function": (lambda: functools.lru_cache(lambda n: n), lambda f: f(f.cache_info().misses), lambda f: f.cache_info().misses),
    "cell": (lambda: (lambda n: lambda: n)(0), lambda f: setattr(f.__closure__[0], "cell_contents", f() + 1), lambda f: f()),
    "function": (lambda: types.FunctionType((lambda: 0).__code__, {}), lambda f: setattr(f, "t", getattr(f, "t", 0) + 1), lambda f: getattr(f, "t", 0)),
    "defaults": (lambda: (lambda n=0: n), lambda f: setattr(f, "__defaults__", (f() + 1,)), lambda f: f()),
    "generator of backplane": (lambda: bp.Generator(3), lambda g: bp.uniform((2,), generator=g), lambda g: str(g.get_state()) if hasattr(g, "get_state") else repr(g)),
    "tensor": (lambda: bp.zeros(2), lambda t: t.add_(1), lambda t: t.tolist()),
    "tensor element": (lambda: bp.zeros(2), lambda t: t.__setitem__(0, t[0] + 1), lambda t: t.tolist()),
    "required gradient": (lambda: bp.zeros(2), lambda t: setattr(t, "requires_grad", True), lambda t: t.requires_grad),
    "default dtype": (lambda: None, lambda _: bp.set_default_dtype(bp.float64), lambda _: (str(bp.zeros(1).dtype), bp.set_default_dtype(bp.float32))[0]),
    "recorded gradients": (lambda: None, lambda _: bp.set_grad_enabled(False), lambda _: (bp.is_grad_enabled(), bp.set_grad_enabled(True))[0]),
}  # fmt: skip


class Key:
    pass


class Handler(logging.Handler):
    def __init__(self):
        super().__init__()
        self.seen, self.log = [], logging.Logger("stale")
        self.log.addHandler(self)

    def emit(self, record):
        self.seen.append(record.getMessage())


def pending(pipe):
    os.set_blocking(pipe[0], False)
    held = getattr(pending, "held", b"")
    try:
        held += os.read(pipe[0], 99)
    except BlockingIOError:
        pass
    os.write(pipe[1], held)
    return held


def pytest_generate_tests(metafunc):
    for name, table in (("statement", STATEMENTS), ("function", FUNCTIONS), ("held", OBJECTS)):
        if name in metafunc.fixturenames:
            metafunc.parametrize(name, table)


def stored(run, do):
    w = World()
    f = run(lambda x: (do(w), x * 2)[1], state=lambda: (w.t, w.list, w.dict, w.array, w.set, w.Class.t, w.other.t))
    for _ in range(3):
        yield f(X)
    w.t, w.list[0], w.dict["t"], w.array[0] = 7, 7, 7, 7
    yield f(X)


@kind
def test_statement(run, statement):
    yield from stored(run, STATEMENTS[statement])


@kind
def test_function(run, function):
    yield from stored(run, FUNCTIONS[function])


@kind
def test_object(run, held):
    make, change, look = OBJECTS[held]
    o = make()
    f = run(lambda x: (change(o), x * 2)[1])
    for _ in range(3):
        yield f(X), look(o)
