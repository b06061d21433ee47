"""What objects hold that are guarded as a whole: subclasses of containers, deques, sets, long lists and dicts, buffers, among the arguments
and as variables. One that holds something else makes another kind of call."""

import array
import collections
import types

import backplane as bp
import pytest

X = bp.asarray([1.0, 2.0, 3.0])
N = 5000  # more than are looked at one by one


class Table(dict):
    pass


class Row(list):
    scale = 1


class Attributes(dict):
    __getattr__ = dict.__getitem__
    __setattr__ = dict.__setitem__


def put(key, value):
    return lambda held: held.__setitem__(key, value)


# How it is made, what reads it, and what changes it.
HELD = {
    "order of a dict": (lambda: Table(a=1.0, b=2.0), lambda h: next(iter(h.values())), lambda h: h.update(a=h.pop("a"))),
    "dict subclass": (lambda: Table(k=2.0), lambda h: h["k"], put("k", 3.0)),
    "tensor of a dict subclass": (lambda: Table(k=X), lambda h: h["k"], put("k", X + 1)),
    "unregistered attributes": (lambda: Attributes(k=X), lambda h: h.k, lambda h: setattr(h, "k", X + 1)),
    "dict in a dict subclass": (lambda: Table(inner={"k": 2.0}), lambda h: h["inner"]["k"], lambda h: h["inner"].update(k=3.0)),
    "Counter": (lambda: collections.Counter("aab"), lambda h: h["a"], lambda h: h.update("a")),
    "list subclass": (lambda: Row([1.0, 2.0]), sum, lambda h: h.append(3.0)),
    "tensor of a list subclass": (lambda: Row([X]), lambda h: h[0], put(0, X + 1)),
    "attribute of a list subclass": (lambda: Row([1.0]), lambda h: h[0] * h.scale, lambda h: setattr(h, "scale", 2)),
    "deque": (lambda: collections.deque([1.0, 2.0]), sum, lambda h: h.append(3.0)),
    "full deque": (lambda: collections.deque([1.0, 2.0], maxlen=2), sum, lambda h: h.append(3.0)),
    "tensor of a deque": (lambda: collections.deque([X]), lambda h: h[0], put(0, X + 1)),
    "dict in a deque": (lambda: collections.deque([{"k": 2.0}]), lambda h: h[0]["k"], lambda h: h[0].update(k=3.0)),
    "set": (lambda: {1.0, 2.0}, sum, lambda h: h.add(5.0)),
    "array": (lambda: array.array("f", [1, 2]), sum, put(1, 7.0)),
    "bytearray": (lambda: bytearray([1, 2]), sum, put(1, 7)),
}
LONG = {
    "long list": (lambda: [1.0] * N, lambda h: h[N // 2], put(N // 2, 7.0)),
    "longer list": (lambda: [1.0] * N, len, lambda h: h.append(7.0)),
    "tensor of a long list": (lambda: [X] * N, lambda h: h[N // 2], put(N // 2, X + 1)),
    "dict in a long list": (lambda: [{"k": 1.0}] * N, lambda h: h[N // 2]["k"], lambda h: h[0].update(k=7.0)),
    "long dict": (lambda: dict.fromkeys(range(N), 1.0), lambda h: h[7], put(7, 5.0)),
    "list in a long dict": (lambda: dict.fromkeys(range(N), [1.0]), lambda h: h[7][0], lambda h: h[9].append(h[9].pop() + 1)),
}
ALL = {**HELD, **LONG}


def expected(read, held):
    return (X * read(held)).tolist()


def check(call, read, change, held):
    assert call() == expected(read, held)
    traces = len(bp.compile_log())
    assert call() == expected(read, held) and len(bp.compile_log()) == traces
    change(held)
    assert call() == expected(read, held)


@pytest.mark.parametrize("name", HELD)
def test_an_argument_that_holds_something_else_is_seen(name):
    make, read, change = HELD[name]
    held = make()
    compiled = bp.compile(lambda x, held: x * read(held))
    check(lambda: compiled(X, held).tolist(), read, change, held)


@pytest.mark.parametrize("name", ALL)
def test_a_variable_that_holds_something_else_is_seen(name):
    make, read, change = ALL[name]
    held = make()
    compiled = bp.compile(lambda x: x * read(held))
    check(lambda: compiled(X).tolist(), read, change, held)


@pytest.mark.parametrize("name", ALL)
def test_an_attribute_that_holds_something_else_is_seen(name):
    make, read, change = ALL[name]
    owner = types.SimpleNamespace(held=make())
    compiled = bp.compile(lambda x, owner: x * read(owner.held))
    check(lambda: compiled(X, owner).tolist(), read, change, owner.held)


def test_the_log_says_what_holds_other_elements():
    held = collections.deque([1.0])
    compiled = bp.compile(lambda x, q: x * q[0])
    compiled(X, held)
    held[0] = 2.0
    compiled(X, held)
    assert "static argument q: found other elements" in bp.compile_log()[-1]


def test_containers_that_are_equal_are_not_taken_for_one_another():
    compiled = bp.compile(lambda x, t: x * t["k"])
    assert [compiled(X, Table(k=k)).tolist() for k in (X, X + 1)] == [(X * X).tolist(), (X * (X + 1)).tolist()]
    whole = bp.ones((), dtype=bp.int64)
    assert [compiled(whole, Table(k=k)).dtype for k in (1, 1.0)] == [(whole * k).dtype for k in (1, 1.0)]


def test_state_in_other_containers_is_refused_and_left():
    window, rows = collections.deque([X, X + 1], maxlen=2), [X] * N
    first, last = window

    def shift(x):
        window.append(window[0] + x)
        return window[0] * 1

    def replace(x):
        rows[N - 1] = rows[N - 1] + x
        return rows[N - 1] * 1

    for function, place in [(shift, "variable window"), (replace, rf"variable rows\[{N - 1}\]")]:
        with pytest.raises(bp.ArgumentValueError, match=f"(replaces|keeps a tensor in) {place}"):
            bp.compile(function)(X)
    assert list(map(id, window)) == [id(first), id(last)] and rows[N - 1] is X


@pytest.mark.parametrize("held", [Table(w=X), Row([X]), collections.deque([X]), Table(inner={"w": X})], ids=lambda h: type(h).__name__)
@pytest.mark.parametrize("look", [bp.make_graph, lambda f: lambda d: bp.export(f, [d], "/dev/null")], ids=["make_graph", "export"])
def test_a_graph_takes_no_tensors_of_containers_that_are_not_taken_apart(look, held):
    with pytest.raises(bp.ArgumentTypeError, match=f"make_graph: d: found .*{type(held).__name__}.*, whose tensors would be constants.*tree.register"):
        look(lambda d: X * 2)(held)


def test_a_graph_takes_what_holds_no_tensors_and_objects():
    weights = types.SimpleNamespace(w=X + 1)
    graph = bp.make_graph(lambda x, counts, o: x * counts["a"] * o.w)(X, collections.Counter("aab"), weights)
    assert [value.name for value in graph.inputs] == ["x"] and len(graph.constants) == 1
