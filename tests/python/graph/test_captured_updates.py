"""Laws of in-place changes in a trace: captured tensors, running statistics among them, are left as the function leaves them; control flow refuses."""

import backplane as bp
import backplane.nn.functional as F
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


class Counter:
    def __init__(self):
        self.seen, self.total = bp.zeros((), dtype=bp.int64), tensor(3)

    def forward(self, x):
        self.seen += 1
        self.total[1:] += x[1:]
        tail = self.total[:2]
        tail *= 2
        return x * self.seen, self.total.sum()


def test_captured_tensors_are_left_as_the_function_leaves_them():
    ours, eager = Counter(), Counter()
    kept = ours.total
    compiled = bp.compile(ours.forward)
    for seed in range(4):
        x = tensor(3, seed=seed)
        same(state_of(compiled(x), ours.seen, ours.total), state_of(eager.forward(x), eager.seen, eager.total))
    assert ours.total is kept and "1 nodes" not in bp.compile_log()[-1]
    log = bp.compile_log()
    compiled(tensor(3))
    assert bp.compile_log() == log
    ours.total = tensor(3, seed=9)
    eager.forward(tensor(3))
    eager.total = tensor(3, seed=9)
    same(state_of(compiled(x), ours.total), state_of(eager.forward(x), eager.total))


def test_a_tensor_made_inside_is_a_new_one_at_each_call():
    def function(x):
        sums = bp.asarray([0.0, 0.0, 0.0], dtype=bp.float64)
        sums += x
        return sums, sums[1:]

    compiled = bp.compile(function)
    for _ in range(3):
        found = compiled(tensor(3))
        same(state_of(found), state_of(function(tensor(3))))
        found[0].__imul__(3.0)
        np.testing.assert_array_equal(found[1].numpy(), found[0][1:].numpy())


def test_captured_tensors_that_share_memory_run_as_they_are():
    def run(wrap):
        base = tensor(4)
        part = base[1:]

        def function(x):
            base.__iadd__(x)
            return part * 2

        call = wrap(function)
        return [state_of(call(tensor(4)), base) for _ in range(2)]

    for found, expected in zip(run(bp.compile), run(lambda f: f)):
        same(found, expected)


def test_an_argument_that_is_a_captured_tensor():
    def run(wrap):
        held = tensor(3)
        call = wrap(lambda x: (x.__iadd__(held), held * 1)[1])
        return [state_of(call(held), held), state_of(call(tensor(3)), held)]

    for found, expected in zip(run(bp.compile), run(lambda f: f)):
        same(found, expected)


def test_reading_what_the_function_has_changed_is_refused():
    held = tensor(3)
    for read in (lambda: held.numpy(), lambda: held.tolist(), lambda: float(held.sum())):
        with pytest.raises(bp.BackplaneError, match="no value yet"):
            bp.compile(lambda x: (held.__iadd__(x), read()))(tensor(3))


def test_what_a_derivative_keeps_of_a_captured_tensor_is_not_what_it_becomes():
    held = tensor(3)

    def loss(x):
        y = x * held
        held.__imul__(2.0)
        return y.sum()

    for function in (bp.grad(loss), bp.compile(bp.grad(loss))):
        with pytest.raises(bp.ArgumentValueError, match="changed in place"):
            function(tensor(3))


TRANSFORMS = {
    "grad": (bp.grad, 1),
    "jvp": (lambda f: lambda x: bp.jvp(f, (x,), (x,)), 1),
    "vmap": (bp.vmap, 2),
    "grad of vmap": (lambda f: bp.grad(lambda x: bp.vmap(f)(x).sum()), 2),
    "hessian": (bp.hessian, 1),
}


@pytest.mark.parametrize("name", TRANSFORMS)
def test_a_count_of_calls_follows_under_transforms_from_outside(name):
    transform, rank = TRANSFORMS[name]

    def run(wrap):
        count, total = bp.zeros(3, dtype=bp.float64), bp.zeros((), dtype=bp.int64)

        def function(x):
            count[...] = count + 1
            total.__iadd__(2)
            return (x**3 * count).sum()

        call = transform(wrap(function))
        x = tensor(*(2, 3)[2 - rank :])
        return [state_of(call(x), count, total) for _ in range(3)]

    for found, expected in zip(run(bp.compile), run(lambda f: f), strict=True):
        same(found, expected)


def test_what_depends_on_a_followed_argument_is_still_refused():
    count = bp.zeros(3, dtype=bp.float64)

    def function(x):
        count[...] = count + x
        return (x * count).sum()

    for transform, x in ((bp.grad, tensor(3)), (bp.vmap, tensor(2, 3))):
        with pytest.raises(bp.ArgumentValueError, match="cannot be written into a tensor that"):
            transform(bp.compile(function))(x)
    assert count.tolist() == [0, 0, 0]


def test_functions_of_control_flow_refuse():
    def step(c, x):
        c += x
        return c, c

    for call in (lambda f: f, bp.compile):
        with pytest.raises(bp.MissingRuleError, match="scan: its function changes its argument x0 in place"):
            call(lambda x: bp.scan(step, x[0], x))(tensor(3, 2))


@pytest.mark.parametrize("write", [lambda w, x: w.__iadd__(x), lambda w, x: w[1:].__imul__(2.0), lambda w, x: w.reshape((-1,)).__imul__(x)])
def test_functions_of_control_flow_write_into_nothing_from_outside(write):
    held = tensor(2)
    for call in (lambda f: f, bp.compile):
        with pytest.raises(bp.ArgumentValueError, match="outside"):
            call(lambda x: bp.map(lambda row: (write(held, row), row)[1], x))(tensor(3, 2))
    np.testing.assert_array_equal(held.numpy(), tensor(2).numpy())


# ---- normalisations with running statistics

NORMS = {"batch_norm": lambda x, mean, var: F.batch_norm(x, mean, var, training=True), "instance_norm": F.instance_norm}


class Running:
    def __init__(self):
        self.mean, self.var = bp.zeros((3,), dtype=bp.float64), bp.ones((3,), dtype=bp.float64)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("held", ["arguments", "captured"])
@pytest.mark.parametrize("how", ["forward", "value_and_grad", "step", "vmap of rows", "checkpoint"])
def test_running_statistics_follow_as_they_do_eagerly(norm, held, how):
    def run(wrap):
        running = Running()

        def loss(w, x, r):
            return ((NORMS[norm](x * w, r.mean, r.var) if held == "captured" else NORMS[norm](x * w, r["mean"], r["var"])) ** 3).sum()

        def forward(w, x, r):
            return loss(w, x, r)

        def with_gradient(w, x, r):
            return bp.value_and_grad(loss)(w, x, r)

        def step(w, x, r):
            value, gradient = bp.value_and_grad(loss)(w, x, r)
            w -= 0.01 * gradient
            return value

        def rows(w, x, r):
            return bp.vmap(lambda v: v * 2)(x).sum() + loss(w, x, r)

        def recomputed(w, x, r):
            return bp.grad(lambda v: bp.checkpoint(lambda u: (u**2).sum())(v) + loss(v, x, r))(w)

        function = {"forward": forward, "value_and_grad": with_gradient, "step": step, "vmap of rows": rows, "checkpoint": recomputed}[how]
        given = running if held == "captured" else {"mean": running.mean, "var": running.var}
        call, w, states = wrap(function), tensor(3, 1, seed=7), []
        for seed in range(4):
            states += state_of(call(w, tensor(4, 3, 5, seed=seed), given), w, running.mean, running.var)
        return states

    for found, expected in zip(run(bp.compile), run(lambda f: f), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)


def test_running_statistics_with_parameters_on_the_tape():
    def run(wrap):
        w, mean, var = tensor(3, 1).requires_grad_(), bp.zeros((3,), dtype=bp.float64), bp.ones((3,), dtype=bp.float64)
        call = wrap(lambda w, x, mean, var: (NORMS["batch_norm"](x * w, mean, var) ** 3).sum())
        states = []
        for seed in range(3):
            call(w, tensor(4, 3, 5, seed=seed), mean, var).backward()
            states += state_of(w.grad, mean, var)
        return states

    for found, expected in zip(run(bp.compile), run(lambda f: f), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("sizes", [{0: "n"}, {0: "n", 2: "length"}], ids=["batch", "batch and length"])
def test_running_statistics_follow_batches_of_any_size(norm, sizes):
    def run(wrap):
        running = Running()
        call, states = wrap(lambda x: NORMS[norm](x, running.mean, running.var)), []
        for n, length in ((4, 5), (2, 5), (9, 5), (3, 8)) if 2 in sizes else ((4, 5), (2, 5), (9, 5)):
            states += [call(tensor(n, 3, length, seed=n)).numpy(), *state_of(running.mean, running.var)]
        return states

    for found, expected in zip(run(lambda f: bp.compile(f, dynamic={"x": sizes})), run(lambda f: f), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("norm", NORMS)
def test_running_statistics_that_all_rows_of_vmap_share_are_refused_in_a_trace(norm):
    running = Running()
    with pytest.raises(ValueError, match=r"running statistics: .*vmap.*in_axes=0"):
        bp.compile(lambda x: bp.vmap(lambda row: NORMS[norm](row, running.mean, running.var))(x))(tensor(2, 4, 3, 5))
    same(state_of(running.mean, running.var), state_of(Running().mean, Running().var))
