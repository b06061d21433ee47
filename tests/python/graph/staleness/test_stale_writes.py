"""Lost side effects: one store, written in every way that Python has. By statements and by functions."""

import bisect
import collections
import functools
import heapq
import io
import operator
import threading
import types
import warnings

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


def stored(run, do):
    w = World()
    f = run(lambda x: (do(w), x * 2)[1], state=lambda: (w.t, w.list, w.dict, w.array, w.set, w.Class.t, w.other.t))
    for _ in range(3):
        yield f(X)
    w.t, w.list[0], w.dict["t"], w.array[0] = 7, 7, 7, 7
    yield f(X)


def pytest_generate_tests(metafunc):
    for name, table in (("statement", STATEMENTS), ("function", FUNCTIONS)):
        if name in metafunc.fixturenames:
            metafunc.parametrize(name, table)


@kind
def test_statement(run, statement):
    yield from stored(run, STATEMENTS[statement])


@kind
def test_function(run, function):
    yield from stored(run, FUNCTIONS[function])
