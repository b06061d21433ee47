"""State that a traced function reads, replaces or reaches by another way: its calls follow it as eager ones do, or say why they cannot."""

import backplane as bp
import pytest

LOOPS = {
    "while_loop": lambda v: bp.while_loop(lambda q: q.sum() < 5, lambda q: q + 10, v),
    "scan": lambda v: bp.scan(lambda c, x: (c + x, c), bp.zeros(()), v)[0],
    "map": lambda v: bp.map(lambda x: x * 1, v),
    "cond": lambda v: bp.cond(bp.asarray(True), lambda q: q * 1, lambda q: q * 2, v),
    "cond of a captured one": lambda v: bp.cond(bp.asarray(True), lambda: v * 1, lambda: v * 2),
}


@pytest.mark.parametrize("wrap", [bp.compile, lambda f: lambda x: bp.make_graph(f)(bp.zeros((2, 2)))(x)], ids=["compile", "make_graph"])
@pytest.mark.parametrize("name", LOOPS)
def test_control_flow_sees_a_view_as_its_base_is_now(name, wrap):
    def function(x):
        row = x[0]
        x += 1
        return LOOPS[name](row)

    assert wrap(function)(bp.zeros((2, 2))).tolist() == function(bp.zeros((2, 2))).tolist()


def test_slots_are_guarded_as_attributes_are():
    class Meter:
        __slots__ = ["total", "scale"]

        def add(self, x):
            self.total += x * self.scale
            return self.total * 1

    meter = Meter()
    meter.total, meter.scale = bp.zeros(()), 1
    add = bp.compile(meter.add)
    assert add(bp.ones(())).item() == 1
    meter.total = bp.asarray(10.0)
    assert add(bp.ones(())).item() == 11 and meter.total.item() == 11
    meter.scale = 5
    assert add(bp.ones(())).item() == 16
    assert "static argument self.scale: found 5, had 1" in bp.compile_log()[-1]


class Named(list):
    __slots__ = ["name"]


class Table(dict):
    __slots__ = ["name"]


@pytest.mark.parametrize("kind", [Named, Table])
def test_containers_with_slots_are_guarded_by_what_they_contain(kind):
    held = kind([1.0, 2.0]) if kind is Named else kind({0: 1.0, 1: 2.0})
    held.name = "weights"
    call = bp.compile(lambda x: x * held[0] + held[1])
    assert call(bp.ones(())).item() == 3
    held[1] = 5.0
    assert call(bp.ones(())).item() == 6


class Cell:
    def __init__(self):
        self.h = bp.zeros((2,))

    def step(self, x):
        self.h = self.h * 0.5 + x
        return self.h * 2


class SlottedCell(Cell):
    __slots__ = ["h"]


@pytest.mark.parametrize("kind", [Cell, SlottedCell])
def test_state_that_is_replaced_is_refused_and_left(kind):
    cell = kind()
    had = cell.h
    with pytest.raises(bp.ArgumentValueError, match=r"replaces static argument self.h, which it reads, .* x\[\.\.\.\] = value"):
        bp.compile(cell.step)(bp.ones((2,)))
    assert cell.h is had and had.tolist() == [0, 0]


def test_a_variable_that_is_replaced_is_refused_and_left():
    state = had = bp.zeros((2,))

    @bp.compile
    def step(x):
        nonlocal state
        state = state * 0.5 + x
        return state * 2

    with pytest.raises(bp.ArgumentValueError, match="replaces variable state, which it reads"):
        step(bp.ones((2,)))
    assert state is had


def test_gradients_of_tensors_are_no_part_of_a_trace():
    w = bp.ones((2,)).requires_grad_()
    (w * w).sum().backward()

    def captured():
        w.sub_(0.25 * w.grad)

    def given(p):
        return p if p.grad is None else p - p.grad

    for call in (bp.compile(captured), lambda: bp.compile(given)(w), lambda: bp.make_graph(given)(w)):
        with pytest.raises(bp.ArgumentValueError, match="pass the gradients as arguments"), bp.no_grad():
            call()
    assert w.tolist() == [1, 1]


WRITES = {
    "data": lambda p: p.data.mul_(3.0),
    "data by index": lambda p: p.data.__setitem__(0, 7.0),
    "detach": lambda p: p.detach().add_(1.0),
    "stop_gradient": lambda p: bp.stop_gradient(p).add_(1.0),
}


@pytest.mark.parametrize("name", WRITES)
def test_writes_through_what_detach_gave_are_not_lost_in_silence(name):
    p = bp.asarray([1.0, 2.0])
    with pytest.raises(bp.ArgumentValueError, match="Fix: change the tensor itself, under no_grad"):
        bp.compile(WRITES[name])(p)
    assert p.tolist() == [1, 2]


def test_data_that_is_assigned_is_no_lost_write():
    def function(p):
        p.data -= 0.5
        p.data[...] = p.data * 2
        return p * 1

    def twice(p):
        d = p.data
        d *= 2
        p.data = d
        d += 1

    with pytest.raises(bp.ArgumentValueError, match="bp::slice_put: writing through the result of detach"):
        bp.compile(function)(bp.ones((2,)))
    with pytest.raises(bp.ArgumentValueError, match="bp::add: writing through the result of detach"):
        bp.compile(twice)(bp.ones((2,)))
    p = bp.ones((2,))
    assert bp.compile(lambda p: (setattr(p, "data", p.data - 0.5), p * 2)[1])(p).tolist() == [1, 1] and p.tolist() == [0.5, 0.5]


def test_a_captured_tensor_is_changed_through_its_data():
    t = bp.asarray([1.0, 2.0])
    add = bp.compile(lambda x: t.data.add_(x).sum())
    assert add(bp.ones((2,))).item() == 5 and add(bp.ones((2,))).item() == 7
    assert t.tolist() == [3, 4]


def test_backward_through_a_function_that_counts_its_calls():
    w, calls = bp.asarray([1.0, 2.0]).requires_grad_(), bp.zeros((), dtype=bp.int64)

    @bp.compile
    def forward(w, x):
        calls.add_(1)
        return (w * x).sum()

    for n in (1, 2):
        forward(w, bp.ones((2,))).backward()
        assert calls.item() == n and w.grad.tolist() == [n, n]


def follow_detached(y):
    d = y.detach()
    y += 1
    y[:1] *= 3
    return d, d[1:] * 2


def follow_a_view_of_what_was_detached(y):
    v = y.detach()[1:]
    y *= 2
    return v + 0, v.sum()


def follow_data(y):
    d = y.data
    y -= 4
    return d * y


FOLLOWED = [follow_detached, follow_a_view_of_what_was_detached, follow_data]


def results_of(function, y):
    return [t.tolist() for t in bp.tree.leaves(function(y))]


@pytest.mark.parametrize("function", FOLLOWED, ids=lambda f: f.__name__)
def test_what_was_detached_shows_what_its_tensor_becomes(function):
    def inside(x):
        return function(x * 1)

    x = bp.asarray([1.0, 2.0, 3.0])
    wanted = results_of(inside, x)
    assert results_of(bp.compile(inside), x) == wanted
    assert results_of(bp.make_graph(inside)(x), x) == wanted
    argument, same = x.copy(), x.copy()
    assert results_of(bp.compile(function), argument) == results_of(function, same)
    assert argument.tolist() == same.tolist()
    outside = x.copy()
    compiled = bp.compile(lambda: function(outside))
    assert [t.tolist() for t in bp.tree.leaves(compiled())] == wanted
    assert [t.tolist() for t in bp.tree.leaves(compiled())] != wanted
    assert results_of(lambda x: bp.cond(x.sum() > 0, inside, inside, x), x) == wanted
    rows = bp.map(inside, bp.stack([x, x]))
    assert [t[1].tolist() for t in bp.tree.leaves(rows)] == wanted
