"""Laws of random numbers in control flow: a function draws the same bits eagerly, traced and compiled, others in each step, and derivatives see them as they were."""

import backplane as bp
import numpy as np
import pytest


def tensor(*shape, seed=0):
    return bp.asarray(np.random.default_rng(seed).standard_normal(shape).astype("float32"))


def dropped(c, x, generator):
    kept = bp.dropout(c * x, p=0.5, generator=generator)
    return c + kept, (kept, bp.uniform(x.shape, generator=generator), bp.randint(0, 100, (2,), generator=generator))


def inner(c, x, generator):
    return bp.scan(lambda d, y: (d + bp.normal((), generator=generator) * y, d), c.sum(), x)


FUNCTIONS = {
    "scan": lambda x, g: bp.scan(lambda c, e: dropped(c, e, g), x[0], x),
    "reverse": lambda x, g: bp.scan(lambda c, e: dropped(c, e, g), x[0], x, reverse=True),
    "by length": lambda x, g: bp.scan(lambda c, _: (c + bp.normal(c.shape, generator=g), c), x[0], None, length=4),
    "map": lambda x, g: bp.map(lambda e: e * bp.normal(e.shape, generator=g), x),
    "bits of another dtype": lambda x, g: bp.map(lambda e: bp.normal((3,), dtype=bp.float64, generator=g), x),
    "nested": lambda x, g: bp.map(lambda e: inner(e, e, g), x),
    "cond": lambda x, g: bp.cond(x.sum() > 0, lambda e: bp.dropout(e, generator=g), lambda e: e + bp.normal(e.shape, generator=g), x),
    "cond in scan": lambda x, g: bp.scan(lambda c, e: (bp.cond(e.sum() > 0, lambda d: bp.dropout(d, generator=g), lambda d: d * 2, c), c), x[0], x),
    "vmap in map": lambda x, g: bp.map(lambda e: bp.vmap(lambda y: y + bp.normal((), generator=g), randomness="different")(e), x),
    "checkpoint in scan": lambda x, g: bp.scan(lambda c, e: (c + bp.grad(lambda d: bp.checkpoint(lambda y: bp.dropout(y * y, generator=g).sum())(d))(e), c), x[0], x),
    "of length 0": lambda x, g: bp.map(lambda e: e * bp.normal(e.shape, generator=g), x[:0]),
    "with weights from outside": lambda x, g: bp.scan(lambda c, e: (c * WEIGHT + bp.uniform(e.shape, generator=g), bp.normal((), generator=g) * WEIGHT), x[0], x),
    "vmap": lambda x, g: bp.vmap(lambda row: bp.scan(lambda c, e: (c + bp.normal((), generator=g), c * e), row[0], row), randomness="different")(x),
}
WEIGHT = tensor(4, seed=9)


def same(found, expected):
    for ours, eager in zip(bp.tree.leaves(found), bp.tree.leaves(expected), strict=True):
        assert ours.dtype is eager.dtype and ours.shape == eager.shape
        np.testing.assert_array_equal(ours.numpy(), eager.numpy())


@pytest.mark.parametrize("name", FUNCTIONS)
def test_eager_traced_and_compiled_draw_the_same_bits(name):
    function, x = FUNCTIONS[name], tensor(5, 4)
    eager, traced, compiled = (bp.Generator(7) for _ in range(3))
    graph, call = bp.make_graph(function)(x, traced), bp.compile(function)
    assert traced.state == (7, 0)
    for seed in range(3):
        x = tensor(5, 4, seed=seed)
        expected = function(x, eager)
        same(graph(x, traced), expected)
        same(call(x, compiled), expected)
        assert traced.state == eager.state == compiled.state


DIFFERENTIATED = ("scan", "reverse", "map", "nested", "cond", "cond in scan", "with weights from outside")


@pytest.mark.parametrize("name", DIFFERENTIATED)
def test_derivatives_are_of_the_numbers_that_were_drawn(name):
    x = tensor(5, 4)

    def loss(x, g):
        return sum((leaf.astype(bp.float32) ** 2).sum() for leaf in bp.tree.leaves(FUNCTIONS[name](x, g)))

    gradient, compiled = bp.grad(loss), bp.compile(bp.grad(loss))
    found = gradient(x, bp.Generator(7))
    np.testing.assert_allclose(compiled(x, bp.Generator(7)).numpy(), found.numpy(), rtol=1e-5, atol=1e-5)
    direction = tensor(5, 4, seed=3)
    along = bp.jvp(lambda y: loss(y, bp.Generator(7)), (x,), (direction,))[1]
    np.testing.assert_allclose(along.numpy(), (found * direction).sum().numpy(), rtol=1e-3)
    on_tape = x.copy().requires_grad_()
    loss(on_tape, bp.Generator(7)).backward()
    np.testing.assert_allclose(on_tape.grad.numpy(), found.numpy(), rtol=1e-5, atol=1e-5)


def test_each_step_has_numbers_of_its_own_and_the_default_generator_goes_on():
    draw = bp.compile(lambda: bp.map(lambda _: bp.uniform((2,)), bp.zeros((50,))))
    first, second = draw().numpy(), draw().numpy()
    assert len(np.unique(first)) == len(np.unique(second)) == 100 and not np.array_equal(first, second)
    bp.manual_seed(3)
    eager = bp.map(lambda _: bp.uniform((2,)), bp.zeros((50,)))
    bp.manual_seed(3)
    same(draw(), eager)


def test_a_generator_made_inside_begins_anew_in_each_step():
    def function(x):
        return bp.map(lambda e: e * 0 + bp.normal(e.shape, generator=bp.Generator(5)), x)

    for call in (function, bp.compile(function)):
        for _ in range(2):
            same(call(bp.ones((3, 4))), bp.stack([bp.normal((4,), generator=bp.Generator(5))] * 3))


def test_rows_of_vmap_share_numbers_or_not_as_is_said():
    x = tensor(3, 5)

    def rows(randomness):
        function = lambda row: bp.map(lambda e: bp.uniform(()) + e * 0, row)
        return bp.vmap(function, randomness=randomness)(x).numpy()

    assert len(np.unique(rows("different"))) == 15
    alike = rows("same")
    assert len(np.unique(alike[0])) == 5 and (alike == alike[0]).all()
    with pytest.raises(bp.ArgumentValueError, match="randomness"):
        bp.vmap(lambda row: bp.map(lambda e: bp.uniform(()) + e, row))(x)


def test_a_scan_with_dropout_trains_under_compile():
    def loss(w, xs, generator):
        carry, _ = bp.scan(lambda c, x: (bp.tanh(bp.dropout(c, p=0.2, generator=generator) @ w + x), None), xs[0], xs)
        return (carry**2).sum()

    def step(w, xs, generator):
        value, gradient = bp.value_and_grad(loss)(w, xs, generator)
        w -= 0.1 * gradient
        return value

    def run(call):
        w, generator = tensor(4, 4, seed=1), bp.Generator(11)
        return [call(w, tensor(6, 4, seed=i), generator).item() for i in range(4)] + w.tolist()

    np.testing.assert_allclose(np.hstack(run(bp.compile(step))), np.hstack(run(step)), rtol=1e-5)


def test_while_loop_refuses():
    with pytest.raises(bp.MissingRuleError, match="while_loop: .*random numbers.*the number of its runs is not known"):
        bp.while_loop(lambda c: c.sum() < 9, lambda c: c + bp.uniform(c.shape), bp.zeros((2,)))
