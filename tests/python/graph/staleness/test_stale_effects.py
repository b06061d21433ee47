"""Lost side effects: what a call changes in containers, arrays and files must be there after each call, as after an eager one."""

import collections
import io

import numpy as np
from staleness_kinds import X, kind

# What a call does to a container, and the container.
CHANGES = {
    "append": (lambda a, x: a.append(len(a)), list),
    "append a constant": (lambda a, x: a.append("called"), list),
    "extend": (lambda a, x: a.extend([1, 2]), list),
    "extend by +=": (lambda a, x: a.__iadd__([1]), list),
    "insert": (lambda a, x: a.insert(0, len(a)), list),
    "element": (lambda a, x: a.__setitem__(0, a[0] + 1), lambda: [1.0]),
    "slice": (lambda a, x: a.__setitem__(slice(0, 1), [a[0] + 1, 2]), lambda: [1.0]),
    "del": (lambda a, x: a.__delitem__(0), lambda: [1, 2, 3, 4, 5]),
    "pop": (lambda a, x: a.pop(), lambda: [1, 2, 3, 4, 5]),
    "remove": (lambda a, x: a.remove(min(a)), lambda: [1, 2, 3, 4, 5]),
    "sort": (lambda a, x: a.sort(key=lambda v: -v), lambda: [1, 2, 3]),
    "reverse": (lambda a, x: a.reverse(), lambda: [1, 2, 3]),
    "clear": (lambda a, x: a.clear(), lambda: [1, 2, 3]),
    "dict entry": (lambda d, x: d.__setitem__("n", d.get("n", 0) + 1), dict),
    "dict update": (lambda d, x: d.update(n=len(d), m=2), dict),
    "dict update of a new key": (lambda d, x: d.update({len(d): 1}), dict),
    "dict pop": (lambda d, x: d.pop(len(d) - 1), lambda: dict(enumerate("abcde"))),
    "dict popitem": (lambda d, x: d.popitem(), lambda: dict(enumerate("abcde"))),
    "dict or": (lambda d, x: d.__ior__({len(d): 1}), dict),
    "set add": (lambda s, x: s.add(len(s)), set),
    "set discard": (lambda s, x: s.discard(max(s)), lambda: {1, 2, 3, 4, 5}),
    "deque append": (lambda q, x: q.append(len(q)), collections.deque),
    "deque popleft": (lambda q, x: q.popleft(), lambda: collections.deque(range(9))),
    "deque rotate": (lambda q, x: q.rotate(1), lambda: collections.deque(range(9))),
    "Counter": (lambda c, x: c.update("ab"), collections.Counter),
    "defaultdict": (lambda d, x: d["k"].append(1), lambda: collections.defaultdict(list)),
    "defaultdict entry by a read": (lambda d, x: d[len(d)], lambda: collections.defaultdict(int)),
    "bytearray": (lambda b, x: b.append(len(b)), bytearray),
    "shape": (lambda a, x: a.append(x.shape[0]), list),
    "tensor": (lambda a, x: a.append(x * 2), list),
    "tensor in a dict": (lambda d, x: d.__setitem__("y", x * 2), dict),
    "argument": (lambda a, x: a.append(x), list),
    "array element": (lambda k, x: k.__setitem__(0, k[0] + 1), lambda: np.zeros(3)),
    "array +=": (lambda k, x: k.__iadd__(1), lambda: np.zeros(3)),
    "array fill": (lambda k, x: k.fill(k[0] + 1), lambda: np.zeros(3)),
    "array sort": (lambda k, x: k.sort(), lambda: np.array([3.0, 1.0, 2.0])),
    "array out": (lambda k, x: np.add(k, 1, out=k), lambda: np.zeros(3)),
    "array copyto": (lambda k, x: np.copyto(k, k + 1), lambda: np.zeros(3)),
    "array put": (lambda k, x: np.put(k, [0], k[0] + 1), lambda: np.zeros(3)),
    "array shape": (lambda k, x: setattr(k, "shape", (-1, 1)), lambda: np.zeros(3)),
}


def pytest_generate_tests(metafunc):
    if "change" in metafunc.fixturenames:
        metafunc.parametrize("change", CHANGES)


@kind
def test_change_of_a_container(run, change):
    do, make = CHANGES[change]
    held = make()

    @run(state=lambda: held)
    def f(x):
        do(held, x)
        return x * 2

    for _ in range(3):
        yield f(X), len(held)


@kind
def test_change_of_a_container_that_is_an_argument(run):
    held, table = [1], {"n": 0}

    @run(state=lambda: (held, table))
    def f(x, held, table):
        held.append(len(held))  # here
        table["n"] += 1  # here
        return x * table["n"]

    for _ in range(3):
        yield f(X, held, table)


@kind
def test_store_of_a_callback_argument(run):
    seen = []
    f = run(lambda x, callback: (callback("step"), x * 2)[1], state=lambda: seen)
    for _ in range(3):
        yield f(X, seen.append)


@kind
def test_text_that_is_written(run):
    file = io.StringIO()

    @run(state=file.getvalue)
    def f(x):
        file.write("called\n")
        return x * 2

    for _ in range(3):
        yield f(X)
