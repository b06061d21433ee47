"""Tensors of a trace that its function keeps in objects and variables, or returns within objects that are not taken apart: refused when it
is traced, and taken out of where they were kept."""

import asyncio
import bisect
import collections
import dataclasses
import functools
import heapq
import types

import backplane as bp
import pytest

X = bp.asarray([1.0, 2.0, 3.0])
LAST = None


@dataclasses.dataclass
class Result:
    y: object


class Slotted:
    __slots__ = ["last"]


class Meter:
    def __init__(self):
        self.last, self.n, self.all, self.by_name = None, 0, [], {}

    def keep(self, x):
        self.last = x.sum().detach()
        return x * 2

    def keep_new(self, x):
        self.newest = {"loss": [x.sum()]}
        return x * 2

    def keep_in_place_of_a_tensor(self, x):
        self.by_name["w"] = x * 3
        return x * 2

    def append(self, x):
        self.all.append(x * 2)
        return x * 2

    def fill(self, x):
        self.by_name["y"] = Result(x * 2)
        return x * 2

    def close_over(self, x):
        self.last = lambda: x
        return x * 2


PLACES = {
    "keep": r"static argument self\.last",
    "keep_new": r"static argument self\.newest",
    "keep_in_place_of_a_tensor": r"static argument self\.by_name\['w'\]",
    "append": r"static argument self\.all",
    "fill": r"static argument self\.by_name\['y'\]",
    "close_over": r"static argument self\.last",
}


@pytest.mark.parametrize("name", PLACES)
def test_a_tensor_that_self_keeps_is_refused_and_taken_back(name):
    meter = Meter()
    meter.by_name["w"] = X
    before, entries = dict(vars(meter)), dict(meter.by_name)
    for trace in (bp.compile, bp.make_graph):
        with pytest.raises(bp.ArgumentValueError, match=f"{trace.__name__}: the function keeps a tensor in {PLACES[name]} .*Fix: return the tensor"):
            trace(getattr(meter, name))(X)
        assert vars(meter) == before and meter.all == [] and list(map(id, meter.by_name.values())) == list(map(id, entries.values()))


def test_where_it_cannot_be_traced_it_runs_as_it_is():
    meter = Meter()
    lenient = bp.compile(meter.keep, fullgraph=False)
    assert lenient(X).tolist() == [2, 4, 6] and meter.last.item() == 6.0
    assert lenient(X * 2).tolist() == [4, 8, 12] and meter.last.item() == 12.0


def test_a_tensor_that_variables_keep_is_refused_and_taken_back():
    found, window, seen, slotted, last = [1], collections.deque(maxlen=3), {2}, Slotted(), None

    def in_a_variable(x):
        nonlocal last
        last = x * 2
        return x

    def in_a_global(x):
        global LAST
        LAST = (x * 2,)
        return x

    for function, place in [
        (lambda x: found.append(x * 2) or x, "variable found"),
        (lambda x: found.insert(0, {"y": x}) or x, "variable found"),
        (lambda x: window.append(x * 2) or x, "variable window"),
        (lambda x: seen.add(x * 2) or x, "variable seen"),
        (lambda x: setattr(slotted, "last", x * 2) or x, r"variable slotted\.last"),
        (in_a_variable, "variable last"),
        (in_a_global, "global LAST"),
    ]:
        with pytest.raises(bp.ArgumentValueError, match=f"keeps a tensor in {place}"):
            bp.compile(function)(X)
    assert (found, list(window), seen, last, LAST) == ([1], [], {2}, None, None) and not hasattr(slotted, "last")


def nested():
    return collections.defaultdict(list)


# Places where C code stores a tensor that no instruction of the function names: how it is stored, what holds it, and whether that is
# restored. A Future can be set only once.
UNSEEN = {
    "a defaultdict makes the entry": (lambda d, y: d["a"].append(y), lambda: collections.defaultdict(list), True),
    "defaultdicts in defaultdicts": (lambda d, y: d["a"]["b"].append(y), lambda: collections.defaultdict(nested), True),
    "a class derived from defaultdict": (lambda d, y: d["a"].append(y), lambda: type("Own", (collections.defaultdict,), {})(list), True),
    "heappush": (lambda h, y: heapq.heappush(h, (1, y)), list, True),
    "a made list behind heappush": (lambda h, y: (made := [], heapq.heappush(h, (1, made)), made.append({"y": y})), list, True),
    "insort": (lambda h, y: bisect.insort(h, y, key=id), list, True),
    "extend by a generator": (lambda h, y: h.extend(z for z in [y]), list, True),
    "map over append": (lambda h, y: list(map(h.append, [y])), list, True),
    "a partial's state": (lambda p, y: p.__setstate__((int, (y,), {}, {})), lambda: functools.partial(int), False),
    "a Future": (lambda f, y: f.set_result(y), lambda: asyncio.Future(loop=asyncio.new_event_loop()), False),
}


@pytest.mark.parametrize("given", ["made", "handed in"])
@pytest.mark.parametrize("name", UNSEEN)
def test_a_tensor_that_c_code_keeps_is_refused(name, given):
    store, make, is_restored = UNSEEN[name]
    holder = make()

    def step(x):
        store(holder, x * 2 if given == "made" else x)
        return x + 1

    with pytest.raises(bp.ArgumentValueError, match="compile: the function (keeps|leaves) a tensor .*Fix: return the tensor"):
        bp.compile(step)(X)
    if is_restored:
        assert list(holder) == []
    assert bp.compile(lambda x: x + 1)(X).tolist() == [2, 3, 4]  # what was left there is not another run's


def test_a_defaultdict_makes_its_entries_at_each_call():
    found = collections.defaultdict(list)
    step = bp.compile(lambda x: (found["a"].append(2), x + len(found["a"]))[1])
    assert [step(bp.zeros(())).item() for _ in range(3)] == [1, 2, 3]
    found.clear()
    assert [step(bp.zeros(())).item() for _ in range(3)] == [1, 2, 3] and found == {"a": [2, 2, 2]}


def test_a_trace_that_fails_keeps_nothing():
    meter = Meter()

    def step(x):
        meter.keep(x), meter.append(x), meter.fill(x)
        return x @ bp.ones((7,))

    with pytest.raises(bp.ShapeError):
        bp.compile(step)(X)
    assert meter.last is None and meter.all == [] and meter.by_name == {}


def test_what_holds_no_tensor_of_the_trace_may_be_kept():
    meter = Meter()
    meter.w = X

    def step(x):
        meter.n += 1
        meter.all.append(x.shape)
        meter.by_name["kept"] = (meter.w, "words")
        meter.w += 1
        meter.last = lambda: meter
        return x * 2

    assert bp.compile(step)(X * 1).tolist() == [2, 4, 6]
    assert meter.n == 1 and meter.all == [(3,)] and meter.by_name["kept"][0] is meter.w and meter.last() is meter
    meter.w -= 1


class Model:
    scale = 2

    def __init__(self):
        self.w = X * 3


def of_a_generator(x):
    return (y for y in (x, x))


HOLDERS = {
    "dataclass": lambda x: Result(x),
    "nested": lambda x: Result({"y": [x]}),
    "set": lambda x: {x},
    "deque": lambda x: collections.deque([x]),
    "generator": of_a_generator,
    "generator of numbers": lambda x: (i for i in range(3)),
    "iterator": lambda x: iter([x]),
    "closure": lambda x: lambda: x,
    "default": lambda x: lambda y=x: y,
    "namespace": lambda x: types.SimpleNamespace(y=x),
    "bound method": lambda x: x.sum,
}


@pytest.mark.parametrize("name", HOLDERS)
@pytest.mark.parametrize("trace", [bp.compile, bp.make_graph, lambda f: lambda x: bp.export(f, [x], "/dev/null")], ids=["compile", "make_graph", "export"])
def test_what_is_returned_holds_its_tensors_in_containers(trace, name):
    function = HOLDERS[name]
    for returned, place in [(function, r"the function's result"), (lambda x: (x, {"y": function(x)}), r"the function's result\[1\]\['y'\]")]:
        with pytest.raises(bp.ArgumentTypeError, match=f"(compile|make_graph): {place}: found .*, expected "):
            trace(lambda x: returned(x * 2))(X)


def test_where_what_is_returned_is_not_taken_apart_it_runs_as_it_is():
    lenient = bp.compile(lambda x: Result(x * 2), fullgraph=False)
    assert [lenient(x).y.tolist() for x in (X, X + 1)] == [[2, 4, 6], [4, 6, 8]]


def test_other_values_are_given_as_they_are():
    model, notes = Model(), {1, 2}
    values = (3, 2.5, "word", None, b"bytes", 1j, bp.float32, slice(1), range(3), notes, model, Model, len, frozenset([1]))
    y, *found = bp.compile(lambda x: (x * model.w, *values))(X)
    assert y.tolist() == [3, 12, 27] and all(a is b for a, b in zip(found, values))
    assert bp.compile(lambda x: lambda: 7)(X)() == 7
