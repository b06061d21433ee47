"""A custom_function inside control flow keeps its rules: each derivative equals the derivative of a Python loop that calls it."""

import backplane as bp
import numpy as np
import pytest
from test_make_graph import same


@bp.custom_function
def doubled(x):
    return x * 2


# Factors that the function does not have show that the rules were used.
doubled.defvjp(lambda x: (x * 2, x), lambda x, g: (g * x * 100,))
doubled.defjvp(lambda primals, tangents: (primals[0] * 2, tangents[0] * primals[0] * 100))


@bp.custom_function
def combined(x, y):
    return bp.sin(x) * y, x + y


combined.defvjp(
    lambda x, y: ((bp.sin(x) * y, x + y), (x, y)),
    lambda residuals, g: (g[0] * residuals[1] * 5 + g[1], g[0] * 7 + g[1] * residuals[0]),
)


@bp.custom_function
def rows_summed(x):
    return x * 3


rows_summed.defvjp(lambda x: (x * 3, None), lambda _, g: (g * 11,))
rows_summed.defvmap(lambda size, batched, x: (x * 30, True))


@bp.custom_function
def softplus(x):
    return bp.log(1 + bp.exp(x))


softplus.defvjp(lambda x: (softplus(x), x), lambda x, g: (g * 7 / (1 + bp.exp(-x)),))  # its forward part calls the function


def loop(f, carry, rows, reverse=False):
    found = []
    order = range(len(rows) - 1, -1, -1) if reverse else range(len(rows))
    for i in order:
        carry, y = f(carry, rows[i])
        found.append(y)
    return carry, bp.stack(found[::-1] if reverse else found)


def step(c, x):
    return c * 0.5 + doubled(x + c), doubled(c) + x


def pair_step(c, x):
    u, v = combined(c, x)
    return u + v * 0.1, u * v


def nested_step(c, x):
    inner = bp.scan(lambda d, e: (d + doubled(e * d), d), c, bp.stack([x, x * 2]))
    return inner[0] * 0.1, inner[1].sum()


def branching_step(c, x):
    return bp.cond(x > 0.5, lambda t: doubled(t) * 0.1, lambda t: t * 2, c + x), c


def softplus_step(c, x):
    return softplus(c * x), softplus(x) + c


STEPS = {"one": step, "calls itself": softplus_step, "two results": pair_step, "branches": branching_step}
X = bp.asarray([0.3, 0.7, 0.2, 1.1])


def total(run, f, reverse):
    def value(x):
        carry, ys = run(f, bp.asarray(0.4), x, reverse)
        return carry * 2 + (ys * ys).sum()

    return value


def scan(f, carry, x, reverse):
    return bp.scan(f, carry, x, reverse=reverse)


def branches_in_python(c, x):
    t = c + x
    return (doubled(t) * 0.1 if float(bp.stop_gradient(x)) > 0.5 else t * 2), c


DERIVED = {
    "value": lambda f: f(X),
    "grad": lambda f: bp.grad(f)(X),
    "tape": lambda f: bp.gradients(f(x := X.clone().requires_grad_()), [x])[0],
    "compiled grad": lambda f: bp.compile(bp.grad(f))(X),
    "grad of compiled": lambda f: bp.grad(bp.compile(f))(X),
    "vmap of grad": lambda f: bp.vmap(bp.grad(f))(bp.stack([X, X]))[1],
    "grad of vmap": lambda f: bp.grad(lambda x: bp.vmap(f)(bp.stack([x, x])).sum() / 2)(X),
    "checkpoint": lambda f: bp.grad(bp.checkpoint(f))(X),
    "made graph": lambda f: bp.grad(bp.make_graph(f)(X))(X),
    "grad of grad": lambda f: bp.grad(lambda x: (bp.grad(f)(x) ** 2).sum())(X),
}


@pytest.mark.parametrize("derived", DERIVED)
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("name", STEPS)
def test_scan_has_the_derivatives_of_the_loop(name, reverse, derived):
    if name == "branches" and "vmap" in derived:
        pytest.skip("the Python loop branches on a value")
    if name == "branches" and derived == "grad of grad":
        pytest.skip("a first derivative's forward pass of a cond within a scan goes by the rules: the factors count twice")
    expected = DERIVED["value" if derived == "value" else "grad of grad" if derived == "grad of grad" else "grad"](
        total(loop, branches_in_python if name == "branches" else STEPS[name], reverse)
    )
    same(DERIVED[derived](total(scan, STEPS[name], reverse)), expected)


def test_nested_control_flow_keeps_rules():
    def by_loops(c, x):
        inner = loop(lambda d, e: (d + doubled(e * d), d), c, bp.stack([x, x * 2]))
        return inner[0] * 0.1, inner[1].sum()

    same(bp.grad(total(scan, nested_step, False))(X), bp.grad(total(loop, by_loops, False))(X))


def test_map_and_cond_keep_rules():
    same(bp.grad(lambda x: bp.map(doubled, x).sum())(X), X * 100)
    for run in (lambda f: f, bp.compile):
        chosen = run(lambda x, p: bp.cond(p, doubled, lambda t: t * t, x).sum())
        same(bp.grad(chosen)(X, bp.asarray(True)), X * 100)
        same(bp.grad(chosen)(X, bp.asarray(False)), X * 2)


def test_forward_mode_uses_the_forward_rule():
    ones = bp.ones_like(X)
    expected = bp.jvp(total(loop, step, False), (X,), (ones,))[1]
    for run in (lambda f: f, bp.compile):
        same(run(lambda x: bp.jvp(total(scan, step, False), (x,), (ones,))[1])(X), expected)

    def repeated(x):
        return bp.while_loop(lambda s: s[0] < 3, lambda s: (s[0] + 1, doubled(s[1]) * 0.1), (bp.asarray(0), x))[1]

    once = X
    tangent = ones
    for _ in range(3):
        once, tangent = once * 0.2, tangent * once * 10
    same(bp.jvp(repeated, (X,), (ones,))[1], tangent)


def test_a_rule_for_batches_is_used():
    def running(x):
        return bp.scan(lambda c, e: (c + rows_summed(e), c), bp.asarray(0.0), x)[0]

    rows = bp.stack([X, X])
    same(bp.vmap(running)(rows), rows.sum(1) * 30)
    same(bp.grad(running)(X), bp.ones_like(X) * 11)


def test_a_rule_that_is_missing_is_named():
    @bp.custom_function
    def once(x):
        return x * 2

    once.defvjp(lambda x: (x * 2, None), lambda _, g: (g,))
    with pytest.raises(bp.MissingRuleError, match="once: jvp needs a rule"):
        bp.jvp(lambda x: bp.map(once, x), (X,), (X,))


CONSTANTS = {
    "a number": lambda x: x * 2.5,
    "a list of indices": lambda x: x[[1, 0]],
    "a NumPy index": lambda x: x[np.array([1, 0])],
    "an index tensor": lambda x: x[ORDER],
    "a list of numbers": lambda x: x + bp.asarray([1.0, 2.0]),
    "a NumPy array": lambda x: x * np.ones(2, "f"),
    "a mask": lambda x: bp.where(MASK, x, 0.0),
    "a tensor": lambda x: x * WEIGHT,
    "a write through a mask": lambda x: written(x),
}
ORDER, MASK, WEIGHT = bp.asarray([1, 0]), bp.asarray([True, False]), bp.asarray(3.0)
BODIES = {
    "map": lambda f: lambda xs: bp.map(f, xs),
    "scan": lambda f: lambda xs: bp.scan(lambda k, x: (k, f(x)), 0, xs)[1],
    "cond": lambda f: lambda xs: bp.stack([bp.cond(bp.asarray(True), f, lambda x: x, x) for x in xs]),
    "fori_loop": lambda f: lambda xs: bp.stack([bp.fori_loop(0, 1, lambda i, k: f(x), x) for x in xs]),
}


def written(x):
    made = x.copy()
    made[MASK] = 0.0
    return made


@pytest.mark.parametrize("body", BODIES)
@pytest.mark.parametrize("constant", CONSTANTS)
def test_rules_are_used_beside_constants(constant, body):
    function = bp.custom_function(CONSTANTS[constant])
    function.defvjp(lambda x: (function(x), x), lambda x, g: (g * 7,))
    xs = bp.asarray([[1.0, 2.0], [3.0, 4.0]])
    same(BODIES[body](function)(xs), bp.stack([CONSTANTS[constant](x) for x in xs]))
    same(bp.grad(lambda xs: BODIES[body](function)(xs).sum())(xs), bp.full((2, 2), 7.0))


def test_a_function_that_captures_a_differentiated_tensor_is_not_differentiated_without_its_rules():
    def total(weight, xs):
        @bp.custom_function
        def weighted(x):
            return x * weight

        weighted.defvjp(lambda x: (x * weight, None), lambda _, g: (g,))
        return bp.map(weighted, xs).sum()

    same(total(bp.asarray(3.0), X), 3 * X.sum())
    with pytest.raises(bp.ArgumentValueError, match="weighted: uses a tensor from outside.*do not cover"):
        bp.grad(total)(bp.asarray(3.0), X)


def test_a_forward_rule_whose_result_is_the_same_for_all_rows():
    @bp.custom_function
    def constant(x):
        return bp.ones(3)

    constant.defjvp(lambda primals, tangents: (bp.ones(3), tangents[0] * primals[0]))
    xs, weights = bp.asarray([[1.0, 2, 3], [4, 5, 6]]), bp.asarray([[1.0, 1, 2], [3, 5, 8]])
    same(bp.grad(lambda xs: (bp.vmap(constant)(xs) * weights).sum())(xs), xs * weights)
