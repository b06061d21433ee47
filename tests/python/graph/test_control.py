"""Laws of control flow: the op does what the Python statement does, eagerly, in a graph, differentiated and batched."""

import backplane as bp
import numpy as np
import pytest
from test_make_graph import same, tensor

RUN = {
    "eager": lambda f, *args: f(*args),
    "graph": lambda f, *args: bp.make_graph(f)(*args)(*args),
    "compiled": lambda f, *args: bp.compile(f)(*args),
}
MODES = pytest.mark.parametrize("run", RUN.values(), ids=RUN)


def steep(x):
    return bp.sin(x) * 3.0


def flat(x):
    return x * x


def either(x):
    return bp.cond(x.sum() > 0, steep, flat, x)


def either_in_python(x):
    return steep(x) if float(x.detach().sum()) > 0 else flat(x)


@MODES
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_cond_is_the_statement(run, sign):
    x = bp.abs(tensor(4)) * sign
    same(run(either, x), either_in_python(x))
    branch = steep if sign > 0 else flat
    same(run(bp.grad(lambda y: either(y).sum()), x), bp.grad(lambda y: branch(y).sum())(x))
    same(run(lambda y: bp.jvp(either, (y,), (bp.ones_like(y),)), x), bp.jvp(branch, (x,), (bp.ones_like(x),)))


@MODES
def test_a_batch_of_conditions_chooses_row_by_row(run):
    rows = bp.asarray(np.array([[1.0, 2.0], [-1.0, -2.0], [0.5, -0.25]], dtype="float32"))
    expected = bp.stack([either_in_python(row) for row in rows])
    same(run(lambda x: bp.vmap(either)(x), rows), expected)
    gradients = bp.stack([bp.grad(lambda y: bp.cond(y.sum() > 0, steep, flat, y).sum())(row) for row in rows])
    same(run(lambda x: bp.vmap(bp.grad(lambda y: either(y).sum()))(x), rows), gradients)
    same(run(bp.grad(lambda x: bp.vmap(either)(x).sum()), rows), gradients)


@MODES
def test_one_condition_for_a_batch(run):
    rows = tensor(3, 2)
    for pred in (True, False):
        flag = bp.asarray(pred)
        found = run(lambda p, x: bp.vmap(lambda row: bp.cond(p, steep, flat, row))(x), flag, rows)
        same(found, steep(rows) if pred else flat(rows))


@MODES
def test_functions_use_tensors_from_outside(run):
    weight = tensor(3, seed=4)

    def function(x, w):
        return bp.cond(x.sum() > 0, lambda y: (y * w, {"n": y.sum()}), lambda y: (w - y, {"n": weight.sum()}), x)

    x = bp.abs(tensor(3))
    same(run(function, x, weight), (x * weight, {"n": x.sum()}))
    same(run(function, -x, weight), (weight + x, {"n": weight.sum()}))
    same(run(bp.grad(lambda y, w: function(y, w)[0].sum(), argnums=(0, 1)), x, weight), (weight, x))


@MODES
def test_while_loop_is_the_statement(run):
    def collatz(n):
        return bp.while_loop(
            lambda s: s["n"] != 1,
            lambda s: {"n": bp.where(s["n"] % 2 == 0, s["n"] // 2, 3 * s["n"] + 1), "steps": s["steps"] + 1},
            {"n": n, "steps": bp.zeros_like(n)},
        )["steps"]

    steps = {1: 0, 6: 8, 7: 16, 27: 111}
    for n, expected in steps.items():
        assert int(run(collatz, bp.asarray(n))) == expected
    found = run(lambda x: bp.vmap(collatz)(x), bp.asarray(list(steps)))
    np.testing.assert_array_equal(found.numpy(), list(steps.values()))


@MODES
def test_while_loop_has_forward_mode_and_says_that_it_has_no_other(run):
    def power(x):
        return bp.while_loop(lambda s: s[0] < 5, lambda s: (s[0] + 1, s[1] * x), (bp.asarray(0), bp.ones_like(x)))[1]

    x = tensor(3)
    value, tangent = run(lambda y: bp.jvp(power, (y,), (bp.ones_like(y),)), x)
    same(value, x**5)
    np.testing.assert_allclose(tangent.numpy(), 5 * x.numpy() ** 4, rtol=1e-5)
    with pytest.raises(bp.MissingRuleError, match="scan"):
        bp.grad(lambda y: power(y).sum())(x)


def cell(w, h, x):
    h = bp.tanh(h @ w + x)
    return h, h * 2.0


def recurrent(w, h, xs, reverse=False):
    return bp.scan(lambda carry, x: cell(w, carry, x), h, xs, reverse=reverse)


def recurrent_in_python(w, h, xs, reverse=False):
    found = []
    for i in reversed(range(xs.shape[0])) if reverse else range(xs.shape[0]):
        h, y = cell(w, h, xs[i])
        found.append(y)
    return h, bp.stack(found[::-1] if reverse else found)


def total(function, reverse):
    return lambda w, h, xs: sum((leaf * leaf).sum() for leaf in function(w, h, xs, reverse))


@MODES
@pytest.mark.parametrize("reverse", [False, True])
def test_scan_is_the_loop(run, reverse):
    args = (tensor(3, 3, seed=1) * 0.5, tensor(3, seed=2), tensor(5, 3, seed=3))
    same(run(lambda *a: recurrent(*a, reverse), *args), recurrent_in_python(*args, reverse))
    expected = bp.grad(total(recurrent_in_python, reverse), argnums=(0, 1, 2))(*args)
    for found, eager in zip(run(bp.grad(total(recurrent, reverse), argnums=(0, 1, 2)), *args), expected):
        np.testing.assert_allclose(found.numpy(), eager.numpy(), rtol=1e-4, atol=1e-5)
    tangents = tuple(bp.ones_like(a) for a in args)
    for found, eager in zip(
        run(lambda *a: bp.jvp(lambda *b: recurrent(*b, reverse), a, tangents)[1], *args),
        bp.jvp(lambda *b: recurrent_in_python(*b, reverse), args, tangents)[1],
    ):
        np.testing.assert_allclose(found.numpy(), eager.numpy(), rtol=1e-4, atol=1e-5)


@MODES
def test_scan_batches_over_each_argument(run):
    w, h, xs = tensor(3, 3, seed=1) * 0.5, tensor(3, seed=2), tensor(5, 3, seed=3)
    for axes in ((0, None, None), (None, 0, None), (None, None, 0), (0, 0, 0)):
        args = [bp.stack([a, a * 0.5]) if axis == 0 else a for a, axis in zip((w, h, xs), axes)]
        found = run(lambda *a: bp.vmap(recurrent, in_axes=axes)(*a), *args)
        for row in range(2):
            expected = recurrent_in_python(*(a[row] if axis == 0 else a for a, axis in zip(args, axes)))
            same(bp.tree.map(lambda leaf: leaf[row], found), expected)


@MODES
def test_second_order_through_scan(run):
    w, h, xs = tensor(2, 2, seed=1) * 0.5, tensor(2, seed=2), tensor(3, 2, seed=3)

    def twice(function):
        return lambda a: bp.grad(lambda b: (bp.grad(total(function, False))(b, h, xs) ** 2).sum())(a)

    np.testing.assert_allclose(run(twice(recurrent), w).numpy(), twice(recurrent_in_python)(w).numpy(), rtol=1e-3, atol=1e-3)


def test_a_loop_is_one_node_whatever_its_length():
    graph = bp.make_graph(lambda w, h, xs: recurrent(w, h, xs))(tensor(3, 3), tensor(3), tensor(500, 3))
    assert [node.op for node in graph] == ["bp::scan"]


@MODES
def test_no_step_and_no_carry(run):
    carry, found = run(lambda xs: bp.scan(lambda c, x: (c + x.sum(), x * 2), bp.asarray(1.0), xs), bp.zeros((0, 3)))
    assert float(carry) == 1.0 and found.shape == (0, 3)
    same(run(lambda xs: bp.map(lambda x: x * x, xs), tensor(4, 2)), tensor(4, 2) ** 2)
    carry, none = run(lambda c: bp.scan(lambda a, _: (a * 2, None), c, None, length=5), bp.asarray(1.0))
    assert float(carry) == 32.0 and none is None


@MODES
@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 8, 13])
@pytest.mark.parametrize("reverse", [False, True])
def test_associative_scan_is_the_running_combination(run, size, reverse):
    x = tensor(2, size)
    found = run(lambda y: bp.associative_scan(bp.add, y, reverse=reverse, axis=1), x)
    array = x.numpy()
    expected = np.cumsum(array[:, ::-1], axis=1)[:, ::-1] if reverse else np.cumsum(array, axis=1)
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-5, atol=1e-6)


def running(fn, elements, reverse):
    """The running combinations, one after the other, in JAX's order of operands."""
    order = range(len(elements))[:: -1 if reverse else 1]
    found = {}
    for before, at in zip([None, *order], order):
        found[at] = elements[at] if before is None else fn(found[before], elements[at])
    return [found[at] for at in sorted(found)]


@MODES
@pytest.mark.parametrize("size", [1, 2, 5, 8])
@pytest.mark.parametrize("reverse", [False, True])
def test_associative_scan_keeps_the_order_of_operands(run, size, reverse):
    x, weight = tensor(size, 2, 2), tensor(size, 2, 2, seed=1)
    stacked = lambda y: bp.stack(running(bp.matmul, [y[i] for i in range(size)], reverse))
    scanned = lambda y: bp.associative_scan(bp.matmul, y, reverse=reverse)
    same(run(scanned, x), stacked(x))
    loss = lambda function: lambda y: (function(y) * weight).sum()
    same(run(bp.grad(loss(scanned)), x), bp.grad(loss(stacked))(x))
    rows = tensor(3, size, 2, 2, seed=2)
    same(run(bp.vmap(scanned), rows), bp.stack([stacked(row) for row in rows]))


def test_associative_scan_from_the_end_begins_with_the_last_element():
    assert bp.associative_scan(lambda a, b: a, bp.arange(4), reverse=True).tolist() == [3, 3, 3, 3]
    assert bp.associative_scan(lambda a, b: b, bp.arange(4), reverse=True).tolist() == [0, 1, 2, 3]


def nested(xs):
    """A scan in a scan, whose inner step uses what the outer one carries, and whose first value is made of a number."""

    def outer(total, row):
        inner = bp.scan(lambda c, x: (c + x * total, c), 0.5, row)
        return total + inner[0], inner[1]

    return bp.scan(outer, bp.asarray(1.0), xs)


def nested_in_python(xs):
    total, found = bp.asarray(1.0), []
    for row in xs:
        c, ys = bp.asarray(0.5), []
        for x in row:
            ys.append(c)
            c = c + x * total
        total = total + c
        found.append(bp.stack(ys))
    return total, bp.stack(found)


@MODES
def test_loops_nest_and_the_inner_one_uses_what_the_outer_one_carries(run):
    xs = tensor(3, 4) * 0.5
    same(run(nested, xs), nested_in_python(xs))
    found = run(bp.grad(lambda x: nested(x)[0]), xs)
    np.testing.assert_allclose(found.numpy(), bp.grad(lambda x: nested_in_python(x)[0])(xs).numpy(), rtol=1e-5, atol=1e-6)

    def counted(x):
        return bp.while_loop(lambda s: s[0] < 3, lambda s: (s[0] + 1, bp.scan(lambda c, _: (c + s[1], None), s[1], None, 2)[0]), (0, x))[1]

    same(run(counted, bp.asarray(1.0)), bp.asarray(27.0))


def test_a_function_of_control_flow_is_traced_once_however_deep_it_stands():
    calls = []

    def step(c, x):
        bp.unguarded(calls.append, len(calls))
        return c + x * 2.0, c + bp.asarray([1.0, 2.0])

    bp.make_graph(lambda xs: bp.scan(lambda c, x: (bp.scan(step, c, x)[0], None), bp.zeros((2,)), xs))(tensor(3, 4, 2))
    assert len(calls) == 1
    calls.clear()
    bp.cond(bp.asarray(True), lambda x: step(x, 1.0)[1], lambda x: step(x, 2.0)[1] + tensor(2), tensor(2))
    assert len(calls) == 2


def pair(x):
    return x.astype(bp.float64), x


LOOP = (lambda c: c.sum() < 5, lambda c: c.astype(bp.float64) + 1)


@pytest.mark.parametrize("run", [RUN["eager"], RUN["graph"]], ids=["eager", "graph"])
@pytest.mark.parametrize(
    ("function", "error", "says"),
    [
        (lambda x: bp.cond(x.sum() > 0, lambda y: y[1:], lambda y: y, x), bp.ShapeError, r"result 0 is float32 of shape \(1,\).*float32 of shape \(2,\).*Fix: "),
        (lambda x: bp.cond(True, lambda y: y[1:], lambda y: y, x), bp.ShapeError, "different shapes"),
        (lambda x: bp.cond(x.sum() > 0, pair, lambda y: (y, y), x), bp.ShapeError, r"result 0 is float64 .*float32"),
        (lambda x: bp.cond(x.sum() > 0, pair, lambda y: [y, y], x), bp.ArgumentTypeError, "structure"),
        (lambda x: bp.cond(x.sum() > 0, pair, lambda y: y, x), bp.ArgumentTypeError, "structure"),
        (lambda x: bp.while_loop(*LOOP, x), bp.ShapeError, r"element 0 comes as float32 of shape \(2,\) and is returned as float64.*Fix: cast"),
        (lambda x: bp.while_loop(lambda c: c < 5, lambda c: c + 1.5, bp.asarray(0)), bp.ShapeError, r"comes as int64 .* returned as float.*Fix: cast"),
        (lambda x: bp.scan(lambda c, y: (c.astype(bp.float64), y), x, x), bp.ShapeError, r"comes as float32 .*returned as float64.*Fix: cast"),
        (lambda x: bp.while_loop(lambda c: c.sum() < 9, lambda c: c + bp.uniform(c.shape), x), bp.MissingRuleError, "^while_loop: .*random"),
        (lambda x: bp.map(lambda y: y, (x, x[:1])), bp.ShapeError, "^map: "),
        (lambda x: bp.map(lambda y: y, x.sum()), bp.ShapeError, "^map: "),
    ],
)
def test_eager_and_traced_say_the_same_of_what_does_not_fit(run, function, error, says):
    with pytest.raises(error, match=says):
        run(function, bp.abs(tensor(2)))


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: bp.cond(bp.asarray([True, False]), flat, flat, tensor(2)), "2 elements"),
        (lambda: bp.cond(bp.asarray(True), lambda x: (x, x), flat, tensor(2)), "structure"),
        (lambda: bp.make_graph(lambda p: bp.cond(p, lambda x: x[1:], flat, tensor(2)))(bp.asarray(True)), "different shapes"),
        (lambda: bp.scan(lambda c, x: (bp.stack([c, c]), x), tensor(), tensor(3)), "changes the shape"),
        (lambda: bp.scan(lambda c, x: (c, x), tensor(), (tensor(3), tensor(4))), "sizes"),
        (lambda: bp.while_loop(lambda c: c.sum() < 1e9, lambda c: bp.stack([c, c]), tensor(2)), "changes the shape"),
    ],
)
def test_what_does_not_fit_is_an_error(call, says):
    with pytest.raises(bp.BackplaneError, match=says):
        call()


@pytest.mark.parametrize("length", [-1, -(2**63)])
def test_a_negative_length_is_refused(length):
    with pytest.raises(bp.OutOfRangeError, match="scan: argument length: found -.*, expected 0 or more"):
        bp.scan(lambda carry, _: (carry, carry), bp.asarray(1.0), None, length=length)


@pytest.mark.parametrize("reverse", [False, True])
def test_a_scan_whose_results_no_memory_holds_ends_after_a_step(reverse):
    steps = []

    def body(carry, _):
        steps.append(carry)
        return carry, carry

    for length in (2**50, 2**62):
        with pytest.raises(MemoryError, match=r"bp::scan: \d+ steps with a result of float32 of shape \(\) make a tensor of .* bytes, and the device has"):
            bp.scan(body, bp.asarray(1.0), None, length=length, reverse=reverse)
    assert len(steps) <= 4


def test_an_associative_scan_says_what_its_function_returned():
    x = bp.ones((4, 2))
    with pytest.raises(bp.ArgumentTypeError, match="associative_scan: the function returned .*, expected the structure of elems"):
        bp.associative_scan(lambda a, b: (a, b), x)
    with pytest.raises(bp.ArgumentTypeError, match="associative_scan: the function returned .*, expected the structure of elems"):
        bp.associative_scan(lambda a, b: a[0], (x, x))
    for lost in (lambda a, b: a.sum(0), lambda a, b: a.sum(), lambda a, b: a[:, :1]):
        with pytest.raises(bp.ShapeError, match=r"associative_scan: the function returned a tensor of shape .*, expected the shape of its arguments, \(2, 2\)"):
            bp.associative_scan(lost, x)


@MODES
def test_no_elements_are_no_steps(run):
    endless = lambda e: bp.while_loop(lambda s: s < 10, lambda s: s * 2, e)
    assert run(lambda x: bp.map(endless, x), bp.zeros((0,))).shape == (0,)
    assert run(lambda x: bp.map(bp.linalg.inv, x), bp.zeros((0, 2, 2))).shape == (0, 2, 2)
    assert run(lambda x: bp.grad(lambda y: bp.map(bp.linalg.inv, y).sum())(x), bp.zeros((0, 2, 2))).shape == (0, 2, 2)
    assert run(lambda x: bp.jvp(lambda y: bp.map(bp.linalg.inv, y), (x,), (x,))[1], bp.zeros((0, 2, 2))).shape == (0, 2, 2)
    assert run(lambda x: bp.vmap(lambda y: bp.map(bp.linalg.inv, y))(x), bp.zeros((3, 0, 2, 2))).shape == (3, 0, 2, 2)


@MODES
def test_numbers_adopt_the_dtype_of_what_they_meet(run):
    x = bp.asarray([1.0, 2.0, 3.0], dtype=bp.float64)
    last, before = run(lambda x: bp.scan(lambda c, e: (c + e, c), 0.0, x), x)
    assert last.dtype is bp.float64 and float(last) == 6.0 and before.tolist() == [0.0, 1.0, 3.0]
    chain = run(lambda x: bp.scan(lambda c, e: ((c[0] + c[1], c[1] + e), None), (0, 0.0), x)[0], x)
    assert [c.dtype for c in chain] == [bp.float64] * 2
    for flag, expected in ((True, 6.0), (False, 0.0)):
        for call in (lambda x: bp.cond(bp.asarray(flag), lambda: x.sum(), lambda: 0), lambda x: bp.cond(bp.asarray(not flag), lambda: 0.0, lambda: x.sum())):
            found = run(call, x)
            assert found.dtype is bp.float64 and float(found) == expected
    assert run(lambda x: bp.while_loop(lambda s: s < 5, lambda s: s + x.sum(), 0.0), x).dtype is bp.float64
    with pytest.raises(bp.ShapeError):
        run(lambda x: bp.scan(lambda c, e: (c + e, c), bp.asarray(0.0), x), x)


def test_errors_of_scan_say_what_to_give():
    with pytest.raises(bp.ShapeError, match="Fix: pass length="):
        bp.scan(lambda h, x: (h, x), tensor(2), None)
    with pytest.raises(bp.ArgumentTypeError, match=r"carries on \{'a': \*\}, expected the structure of its argument, \* \(\* is a tensor\)"):
        bp.scan(lambda h, x: ({"a": h}, x), tensor(2), tensor(3, 2))
