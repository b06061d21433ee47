"""Laws of in-place changes in a trace: compiled, a function leaves its arguments and captured tensors as in eager mode, call after call."""

import random

import backplane as bp
import numpy as np
import pytest


def tensor(*shape, seed=0, dtype="float64"):
    return bp.asarray(np.random.default_rng(seed).standard_normal(shape).astype(dtype))


def state_of(*trees):
    return [leaf.numpy().copy() if isinstance(leaf, bp.Tensor) else leaf for leaf in bp.tree.leaves(trees)]


def same(found, expected):
    assert len(found) == len(expected)
    for ours, theirs in zip(found, expected):
        np.testing.assert_array_equal(ours, theirs)


def set_row(x):
    x[1] = x[0] * 2
    return x.sum()


def through_views(x):
    row, column = x[0], x.T[1]
    row *= 3
    column += row[1]
    return row, x * 1, column[1:]


def replaced(x, y):
    x[...] = y
    y += x
    return y - x


def swapped(x, y):
    kept = x.copy()
    x[...] = y
    y[...] = kept


def scattered(x):
    x[x > 0] = 0.5
    x[:, 1] -= 1
    return x


def of_container(x, y):
    state = {"x": x, "more": [y]}
    state["more"][0] -= state["x"]
    state["x"] += 1
    return state


CHANGES = {
    "whole": lambda x: x.__iadd__(1) * 2,
    "itself": lambda x: x.__imul__(2),
    "nothing returned": lambda x: (x.__imul__(2), None)[1],
    "a row": set_row,
    "through views": through_views,
    "of the old value": lambda x: (x.copy(), x.__iadd__(1), x[0])[::2],
    "a view from before": lambda x: (x[0], x.__iadd__(1))[0],
    "by another argument": replaced,
    "swapped": swapped,
    "mask and slice": scattered,
    "container": of_container,
    "twice": lambda x, y: (x.__iadd__(y), y.__imul__(x), x.__isub__(y), None)[3],
    "under vmap": lambda x: bp.vmap(lambda row: (row.__iadd__(1), row * 2)[1])(x),
    "inside grad": lambda x: bp.grad(lambda y: (y.__imul__(2) ** 2).sum())(x),
    "with a gradient of it": lambda x: x.__isub__(0.1 * bp.grad(lambda y: (y**3).sum())(x)),
    "cast": lambda x: x.__iadd__(bp.ones((3,), dtype=bp.float32)),
    "no_grad": lambda x: quietly(x),
}


def quietly(x):
    with bp.no_grad():
        x *= 0.5
    return x + 1


@pytest.mark.parametrize("name", CHANGES)
@pytest.mark.parametrize("through", ["compile", "make_graph"])
def test_arguments_are_left_as_the_function_leaves_them(name, through):
    function = CHANGES[name]
    n = 2 if name in ("by another argument", "swapped", "container", "twice") else 1
    ours, eager = ([tensor(3, 3, seed=i) for i in range(n)] for _ in range(2))
    call = bp.compile(function) if through == "compile" else bp.make_graph(function)(*ours)
    same(state_of(ours), state_of(eager))
    for _ in range(3):
        found, expected = call(*ours), function(*eager)
        same(state_of(found, ours), state_of(expected, eager))
        for results in (found, expected):  # what shares memory with what
            for leaf in bp.tree.leaves(results):
                if isinstance(leaf, bp.Tensor):
                    leaf *= 1.5
        same(state_of(found, ours), state_of(expected, eager))


def test_a_graph_shows_what_it_updates_and_its_text_reads_back():
    def function(x, y):
        x += y
        return y * 2, x[0]

    graph = bp.make_graph(function)(tensor(3), tensor(3, seed=1))
    assert [value.name for value in graph.updates] == ["x"] and len(graph.outputs) == 2
    assert "update %0 = %2" in str(graph)
    model = bp.parse_graph(str(graph))
    assert str(model) == str(graph)
    ours, eager = tensor(3), tensor(3)
    found, expected = model(ours, tensor(3, seed=1)), function(eager, tensor(3, seed=1))
    same(state_of(found, ours), state_of(expected, eager))
    assert "new x" in graph.dot(tensor(3), tensor(3))


def test_an_edited_graph_updates_too():
    graph = bp.make_graph(lambda x: x.__iadd__(1).sum())(tensor(3))
    edited = graph.edit(lambda node, *tensors: tensors[0] * 3 if node.op == "bp::add" else None)
    x = tensor(3)
    edited(x)
    np.testing.assert_array_equal(x.numpy(), tensor(3).numpy() * 3)


def test_export_says_what_to_do_instead(tmp_path):
    with pytest.raises(bp.MissingRuleError, match="changes its argument x in place.*return the new value"):
        bp.export(lambda x: x.__iadd__(1), [tensor(3)], str(tmp_path / "model.safetensors"))


def test_dynamic_sizes_are_updated():
    def function(x):
        x[0] = x.sum(0)
        x *= 2
        return x[1:]

    compiled = bp.compile(function, dynamic={"x": {0: "n"}})
    for n in (4, 7, 2, 7):
        ours, eager = tensor(n, 3), tensor(n, 3)
        same(state_of(compiled(ours), ours), state_of(function(eager), eager))
    assert "for any size" in bp.compile_log()[-1]


# ---- sharing


def both(x, y):
    x += 1
    return x * y


ALIASED = {
    "the same tensor": lambda x: (x, x),
    "a view": lambda x: (x, x[::-1]),
    "overlapping parts": lambda x: (x[:3], x[1:]),
}


@pytest.mark.parametrize("name", ALIASED)
def test_arguments_that_share_memory_are_what_they_are_eagerly(name):
    ours, eager = tensor(4), tensor(4)
    compiled = bp.compile(both)
    for _ in range(3):
        same(state_of(compiled(*ALIASED[name](ours)), ours), state_of(both(*ALIASED[name](eager)), eager))
    assert "runs as it is where tensors overlap" in bp.compile_log()[-1]
    kept = ours.numpy().copy()
    x, y = ALIASED[name](ours)
    with pytest.raises(bp.ArgumentValueError, match="changes its argument x in place.*its argument y shares memory"):
        bp.make_graph(both)(x.copy(), y.copy())(x, y)
    np.testing.assert_array_equal(ours.numpy(), kept)


def test_parts_of_one_tensor_that_do_not_overlap_are_compiled():
    ours, eager = tensor(6), tensor(6)
    compiled = bp.compile(both)
    for _ in range(2):
        same(state_of(compiled(ours[:3], ours[3:]), ours), state_of(both(eager[:3], eager[3:]), eager))
    assert "overlap" not in bp.compile_log()[-1]


def test_strided_arguments_are_updated_where_they_are():
    def function(x):
        x += x.max()  # a sum rounds by the order in memory
        return x[0]

    compiled = bp.compile(function)
    for take in (lambda b: b[::2, 1:], lambda b: b.T[:2], lambda b: b[::-1]):
        ours, eager = tensor(4, 4), tensor(4, 4)
        same(state_of(compiled(take(ours)), ours), state_of(function(take(eager)), eager))


def test_what_may_be_a_view_or_a_copy_of_an_argument_is_not_read_after_its_change():
    def function(x):
        flat = x.reshape((-1,))
        x += 1
        return flat * 2

    with pytest.raises(bp.ArgumentValueError, match="reshape.*view.*or a copy.*after the change"):
        bp.compile(function)(tensor(3, 2))

    def after(x):
        x += 1
        return x.reshape((-1,)) * 2, x.reshape((-1,))

    ours, eager = tensor(3, 2), tensor(3, 2)
    same(state_of(bp.compile(after)(ours), ours), state_of(after(eager), eager))


def test_donated_arguments_that_are_changed():
    def step(w, g):
        new = w * 2
        w -= g
        return new, g + w

    compiled = bp.compile(step, donate=(0, 1))
    w, other = tensor(64, 64), tensor(64, 64)
    for seed in range(3):
        found, expected = compiled(w, tensor(64, 64, seed=seed)), step(other, tensor(64, 64, seed=seed))
        same(state_of(found, w), state_of(expected, other))


# ---- the tape


def test_a_leaf_is_refused_as_it_is_eagerly():
    def function(w):
        w -= 1
        return w.sum()

    def quiet(w):
        with bp.no_grad():
            w -= 1
        return w.sum()

    for call in (lambda f: f, bp.compile):
        w = tensor(3).requires_grad_()
        with pytest.raises(bp.ArgumentValueError, match="requires a gradient and is a leaf"):
            call(function)(w)
        np.testing.assert_array_equal(w.detach().numpy(), tensor(3).numpy())
        with bp.no_grad():
            call(function)(w)
        call(quiet)(w)
        assert w.requires_grad and w.is_leaf
        np.testing.assert_array_equal(w.detach().numpy(), tensor(3).numpy() - 2)


def test_a_tensor_with_a_history_goes_on_with_it():
    def function(h, x):
        h *= x
        return h[0] * 2, h.sum()

    def run(wrap):
        w, x = tensor(3).requires_grad_(), tensor(3, seed=1).requires_grad_()
        h = w * 2
        first, second = wrap(function)(h, x)
        (first + second + (h**2).sum()).backward()
        return state_of(h.detach(), w.grad, x.grad)

    for found, expected in zip(run(bp.compile), run(lambda f: f)):
        np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_a_saved_value_that_is_overwritten_is_noticed():
    w, x = tensor(3).requires_grad_(), tensor(3, seed=1)
    y = w * x
    bp.compile(lambda t: t.__iadd__(1))(x)
    with pytest.raises(bp.BackplaneError, match="changed in place"):
        y.sum().backward()


@pytest.mark.parametrize("outer", ["grad", "vmap", "jvp"])
def test_transforms_around_do_as_around_the_function(outer):
    def function(x, y):
        y *= x
        return (y**2).sum()

    def run(call):
        x, y = tensor(4, 3), tensor(4, 3, seed=1)
        if outer == "vmap":
            return state_of(bp.vmap(call)(x, y), x, y)
        if outer == "jvp":
            return state_of(bp.jvp(call, (x, y), (x, y)), x, y)
        return state_of(bp.grad(call, argnums=(0, 1))(x, y), x, y)

    for found, expected in zip(run(bp.compile(function)), run(function)):
        np.testing.assert_allclose(found, expected, rtol=1e-12)


# ---- random programs


class Program:
    """A function of two arguments and a captured tensor that reads, views and changes its tensors in random order."""

    def __init__(self, seed):
        chosen = random.Random(seed)
        self.captured = tensor(3, 3, seed=2)
        self.steps = [(chosen.randrange(8), chosen.randrange(100), chosen.randrange(100), chosen.randrange(3)) for _ in range(chosen.randint(2, 9))]
        self.returned = [chosen.randrange(100) for _ in range(3)]

    def run(self, x, y):
        pool = [x, y, self.captured]
        for what, a, b, i in self.steps:
            first, second = pool[a % len(pool)], pool[b % len(pool)]
            if what == 0:
                first += 1
            elif what == 1:
                first *= 0.5
                pool.append(first * 2)
            elif what == 2 and first.ndim == 2 and first.shape[0] > i:
                pool.append(first[i])
            elif what == 3 and first.ndim == 2:
                pool.append(first.T)
            elif what == 4 and first.shape == second.shape:
                first -= second.copy()
            elif what == 5 and first.shape[0] > 0:
                first[0] = i
            elif what == 6:
                pool.append(bp.tanh(first) + second.sum())
            elif what == 7:
                pool.append(first[1:])
        return [pool[k % len(pool)] for k in self.returned]


@pytest.mark.parametrize("seed", range(150))
def test_random_programs(seed):
    ours, eager = Program(seed), Program(seed)
    mine, theirs = [tensor(3, 3), tensor(3, 3, seed=1)], [tensor(3, 3), tensor(3, 3, seed=1)]
    compiled = bp.compile(ours.run)
    for _ in range(3):
        found, expected = compiled(*mine), eager.run(*theirs)
        for one, other in zip(state_of(found, mine, ours.captured), state_of(expected, theirs, eager.captured), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-12)
        for results in (found, expected):
            for leaf in results:
                leaf *= 0.75
        for one, other in zip(state_of(found, mine, ours.captured), state_of(expected, theirs, eager.captured), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-12)
    assert "overlap" not in bp.compile_log()[-1]


# ---- memory of other libraries


def test_arrays_of_numpy_are_changed_and_their_overlaps_seen():
    def run(wrap):
        base = np.arange(6.0)
        call = wrap(lambda x, y: (bp.asarray(x).__iadd__(1), bp.asarray(y) * 2)[1])
        states = [state_of(call(base[a], base[b]), bp.asarray(base)) for a, b in ((slice(0, 3), slice(3, 6)), (slice(0, 3), slice(1, 4)))]
        inside = wrap(lambda x: (bp.asarray(base).__iadd__(x), None)[1])
        inside(bp.ones((6,), dtype=bp.float64))
        inside(bp.ones((6,), dtype=bp.float64))
        return [*states, [base.copy()]]

    for found, expected in zip(run(bp.compile), run(lambda f: f), strict=True):
        same(found, expected)
