"""A custom_function in control flow that uses tensors from outside, is batched or is differentiated there: its values and derivatives are
those of the same program without rules, or the tensor that the rules do not cover is named."""

import backplane as bp
import numpy as np
import pytest
from test_make_graph import same

X, FACTOR = bp.asarray([0.5, 0.7]), bp.asarray(2.0)
CONSTANTS = {"a tensor": lambda: FACTOR, "made inside": lambda: bp.asarray(2.0), "from NumPy": lambda: np.float32(2)}
BODIES = {
    "scan": lambda f: lambda y: bp.scan(lambda c, _: (f(c), None), y, None, length=3)[0].sum(),
    "map": lambda f: lambda y: bp.map(f, y).sum(),
    "cond": lambda f: lambda y: bp.cond(y.sum() > 0, f, lambda t: t, y).sum(),
    "fori_loop": lambda f: lambda y: bp.fori_loop(0, 3, lambda i, c: f(c), y).sum(),
}
INSIDE = {
    "called": lambda f: f,
    "batched": lambda f: lambda c: bp.vmap(f)(c) if c.ndim else f(c),
    "differentiated": lambda f: lambda c: bp.grad(lambda c: f(c).sum())(c),
}
OUTSIDE = {
    "grad": lambda f: bp.grad(f)(X),
    "compiled grad": lambda f: bp.compile(bp.grad(f))(X),
    "made grad": lambda f: bp.make_graph(bp.grad(f))(X)(X),
    "compiled vmap of grad": lambda f: bp.compile(bp.vmap(bp.grad(f)))(bp.stack([X, X]))[1],
    "second derivative": lambda f: bp.compile(bp.grad(lambda x: (bp.grad(f)(x) ** 2).sum()))(X),
    "tape": lambda f: bp.gradients(f(x := X.clone().requires_grad_()), [x])[0],
}


def scaled(factor):
    """(the sine times factor(), with rules; the same without)"""
    f = bp.custom_function(lambda t: bp.sin(t) * factor())
    f.defvjp(lambda t: (f(t), t), lambda t, g: (g * bp.cos(t) * factor(),))
    return f, lambda t: bp.sin(t) * factor()


@pytest.mark.parametrize("outside", OUTSIDE)
@pytest.mark.parametrize("inside", INSIDE)
@pytest.mark.parametrize("body", BODIES)
def test_constants_batches_and_derivatives_in_the_body(body, inside, outside):
    for constant in CONSTANTS.values():
        with_rules, plain = (BODIES[body](INSIDE[inside](f)) for f in scaled(constant))
        same(OUTSIDE[outside](with_rules), OUTSIDE[outside](plain))


def test_forward_rules_beside_constants():
    f = bp.custom_function(lambda t: bp.sin(t) * FACTOR)
    f.defjvp(lambda p, t: (bp.sin(p[0]) * FACTOR, t[0] * bp.cos(p[0]) * FACTOR))
    loop = BODIES["scan"]
    expected = bp.jacfwd(loop(lambda t: bp.sin(t) * FACTOR))(X)
    same(bp.jacfwd(loop(f))(X), expected)
    same(bp.compile(bp.jacfwd(loop(f)))(X), expected)


WEIGHT = bp.asarray([1.5, 2.5])
# What the function takes of its weight w, which is an argument of the whole, or a value of the body, and what the body adds.
USES = {
    "the weight": (lambda c, w: w, lambda c, w: 0),
    "also beside the function": (lambda c, w: w, lambda c, w: c * w),
    "a value of the body": (lambda c, w: bp.stop_gradient(c) * 2 + w, lambda c, w: c),
}


def over_steps(use, rules, inner=None):
    take, add = USES[use]

    def whole(y, w):
        def body(c, _):
            k = take(c, w)
            f = scaled(lambda: k)[not rules]
            if inner:
                return bp.scan(lambda d, _: (f(d) + add(d, w), None), c, None, length=inner)[0], None
            return f(c) + add(c, w), None

        return bp.scan(body, y, None, length=3)[0].sum()

    return whole


DERIVED = {
    "grad": lambda f: bp.grad(f)(X, WEIGHT),
    "compiled": lambda f: bp.compile(bp.grad(f))(X, WEIGHT),
    "of compiled": lambda f: bp.grad(bp.compile(f))(X, WEIGHT),
    "of a graph": lambda f: bp.grad(bp.make_graph(f)(X, WEIGHT))(X, WEIGHT),
    "second": lambda f: bp.compile(bp.grad(lambda y: (bp.grad(f)(y, WEIGHT) ** 2).sum()))(X),
    "rows of weights": lambda f: bp.compile(bp.vmap(bp.grad(f), in_axes=(None, 0)))(X, bp.stack([WEIGHT, WEIGHT * 2])),
}


@pytest.mark.parametrize("derived", DERIVED)
@pytest.mark.parametrize("inner", [None, 2])
@pytest.mark.parametrize("use", USES)
def test_tensors_of_the_program_that_are_not_differentiated(use, inner, derived):
    same(DERIVED[derived](over_steps(use, True, inner)), DERIVED[derived](over_steps(use, False, inner)))


@pytest.mark.parametrize("use", USES)
def test_a_differentiated_tensor_that_the_rules_do_not_cover_is_named(use):
    whole = over_steps(use, True)
    for run in (lambda f: f, bp.compile):
        for derived in (bp.grad(whole, argnums=1), bp.grad(whole, argnums=(0, 1)), bp.grad(bp.make_graph(whole)(X, WEIGHT), argnums=1)):
            with pytest.raises(bp.ArgumentValueError, match=r"float32 of shape \(2,\), that .* differentiates, and which its rules do not cover"):
                run(derived)(X, WEIGHT)


def test_a_stopped_tensor_needs_no_rule():
    def whole(rules):
        def of_weight(w):
            f = scaled(lambda: bp.stop_gradient(w))[not rules]
            return bp.scan(lambda c, _: (f(c), None), X * w, None, length=3)[0].sum()

        return of_weight

    same(bp.compile(bp.grad(whole(True)))(WEIGHT), bp.grad(whole(False))(WEIGHT))


def test_batched_tensors_from_outside_beside_a_rule_for_batches():
    def row(w):
        f = scaled(lambda: w)[0]
        f.defvmap(lambda size, batched, t: (bp.sin(t) * 30, True))
        return bp.scan(lambda c, _: (f(c), None), X * w, None, length=2)[0].sum()

    with pytest.raises(bp.ArgumentValueError, match=r"float32 of shape \(2,\), that vmap batches"):
        bp.vmap(row)(bp.stack([WEIGHT, WEIGHT]))


def test_random_numbers_are_refused():
    f = bp.custom_function(lambda t: t * bp.rand(2))
    f.defvjp(lambda t: (f(t), None), lambda _, g: (g,))
    with pytest.raises(bp.MissingRuleError, match="give the function the random numbers that it draws as arguments"):
        bp.grad(BODIES["scan"](f))(X)


def test_a_row_that_is_the_same_for_all_is_batched_as_its_rule_says():
    @bp.custom_function
    def constant(t):
        return t * 2, bp.ones(2)

    constant.defvjp(lambda t: ((t * 2, bp.ones(2)), None), lambda _, g: (g[0] * 7 + g[1].sum(),))

    def whole(y):
        def body(c, _):
            a, b = bp.vmap(constant)(c)
            return a * 0.1 + b.sum(1), None

        return bp.scan(body, y, None, length=2)[0].sum()

    # Of each step: 0.7 by the first result, and 2 by the second, which the rule makes a derivative of.
    same(bp.grad(whole)(X), bp.full((2,), 2.7 * 2.7))
    same(bp.compile(bp.grad(whole))(X), bp.full((2,), 2.7 * 2.7))


def test_implicit_derivatives_in_a_step():
    def root(a):
        step = lambda s: (s[0] + 1, 0.5 * (s[1] + a / s[1]))
        return bp.while_loop(lambda s: bp.abs(s[1] ** 2 - a) > 1e-6, step, (0, a * 0 + 2.0))[1]

    f = bp.custom_function(root)
    f.defvjp(lambda a: (lambda r: (r, r))(f(a)), lambda r, g: (g / (2 * r),))
    whole = lambda root: lambda a: bp.scan(lambda c, _: (root(c) + a, None), a, None, length=4)[0]
    a = bp.asarray(3.0)
    same(bp.compile(bp.grad(whole(f)))(a), bp.grad(whole(bp.sqrt))(a))
    same(bp.compile(bp.grad(bp.grad(whole(f))))(a), bp.grad(bp.grad(whole(bp.sqrt)))(a))


def test_a_rule_reads_the_tensor_of_each_call():
    factor = bp.asarray(2.0)
    compiled = bp.compile(bp.grad(BODIES["scan"](scaled(lambda: factor)[0])))
    plain = BODIES["scan"](lambda t: bp.sin(t) * factor)
    for _ in range(2):
        same(compiled(X), bp.grad(plain)(X))
        factor += 1.0
