"""custom_function: rules decide, in any nesting; what they lack or get wrong is an error that names the function."""

import gc
import threading
import weakref

import backplane as bp
import numpy as np
import pytest
from test_checkpoint import NESTINGS, eager, values


def plain(x):
    return bp.sum(bp.sin(x) * bp.exp(x) * x)


def slope(x):
    return bp.exp(x) * (bp.sin(x) * (x + 1) + bp.cos(x) * x)


def with_vjp():
    f = bp.custom_function(plain)
    f.defvjp(lambda x: (plain(x), {"x": x, "tag": "t"}), lambda saved, g: (g * slope(saved["x"]),))
    return f


def with_jvp():
    f = bp.custom_function(plain)

    @f.defjvp
    def rule(primals, tangents):
        return plain(*primals), (tangents[0] * slope(primals[0])).sum()

    return f


def with_both():
    f = with_vjp()
    f.defjvp(with_jvp().jvp)
    return f


REVERSE_ONLY = [name for name in NESTINGS if "jvp" not in name and name not in ("hessian", "jacfwd")]


@pytest.mark.parametrize("make, nesting", [(with_vjp, name) for name in REVERSE_ONLY]
                         + [(make, name) for make in (with_jvp, with_both) for name in NESTINGS])
def test_equals_the_plain_function(make, nesting):
    x = bp.asarray(np.linspace(-1.0, 1.5, 6).reshape(2, 3))
    expected = NESTINGS[nesting](plain)(x)
    np.testing.assert_allclose(values(NESTINGS[nesting](make())(x)), values(expected), rtol=1e-11, atol=1e-13)


def clipped():
    f = bp.custom_function(lambda x: x * 1)
    f.defvjp(lambda x: (x * 1, None), lambda _, g: (bp.clip(g, -1, 1),))
    return f


@pytest.mark.parametrize("transform", [bp.grad, eager, lambda f: lambda x: bp.vmap(bp.grad(f))(x[None])[0]])
def test_the_rule_decides(transform):
    x = bp.asarray([0.5, -3.0])
    assert transform(lambda x: (clipped()(x) ** 2).sum())(x).tolist() == [1.0, -1.0]


def test_rules_are_called_only_for_their_transform():
    calls = []
    f = bp.custom_function(lambda x: calls.append("call") or x * 2)
    f.defvjp(lambda x: calls.append("fwd") or (x * 2, ()), lambda saved, g: calls.append("bwd") or (g * 2,))
    f.defjvp(lambda x, t: calls.append("jvp") or (x[0] * 2, t[0] * 2))

    @f.defvmap
    def rule(size, in_batched, x):
        calls.append(("vmap", size, in_batched))
        return x * 2, in_batched[0]

    def seen():
        found = list(calls)
        calls.clear()
        return found

    one, many = bp.asarray(1.0), bp.asarray([1.0, 2.0])
    f(one)
    assert seen() == ["call"]
    bp.grad(f)(one)
    assert seen() == ["fwd", "bwd"]
    bp.jvp(f, (one,), (one,))
    assert seen() == ["jvp"]
    assert bp.vmap(f)(many).tolist() == [2.0, 4.0]
    assert seen() == [("vmap", 2, [True])]
    bp.vmap(bp.grad(f))(many)
    assert seen() == ["fwd", "bwd"]
    bp.grad(lambda x: bp.vmap(f)(x).sum())(many)
    assert seen() == [("vmap", 2, [True])]
    with bp.no_grad():
        f(bp.asarray(1.0).requires_grad_())
    assert seen() == ["call"]


def test_gradients_of_the_rules_are_theirs():
    f = bp.custom_function(lambda x: bp.sin(x))
    f.defvjp(lambda x: (bp.sin(x), x), lambda x, g: (g * x * x * x,))
    assert bp.grad(bp.grad(f))(2.0).item() == 12
    x = bp.asarray(2.0).requires_grad_()
    first = bp.gradients(f(x), x, create_graph=True)
    assert first.item() == 8 and bp.gradients(first, x).item() == 12


def test_containers_none_and_static_leaves():
    @bp.custom_function
    def f(state, factor, mode):
        assert mode == "m"
        return {"out": state["w"] * state["b"][0] * factor, "n": state["n"] + 1, "mode": mode}

    def fwd(state, factor, mode):
        return f.fun(state, factor, mode), (state, factor, mode)

    def bwd(saved, g):
        state, factor, mode = saved
        assert mode == "m" and g["n"] is None and g["mode"] is None
        return {"w": g["out"] * state["b"][0] * factor, "b": (None,), "n": None}, None, None

    f.defvjp(fwd, bwd)
    state = {"w": bp.asarray(2.0).requires_grad_(), "b": (bp.asarray(3.0).requires_grad_(),), "n": bp.asarray(1)}
    out = f(state, 2.0, mode="m")
    assert out["out"].item() == 12 and out["n"].item() == 2 and out["mode"] == "m"
    out["out"].backward()
    assert state["w"].grad.item() == 6 and state["b"][0].grad is None
    w = bp.grad(lambda w: f({**state, "w": w}, 2.0, "m")["out"])(2.0)
    assert w.item() == 6


def test_nondiff_argnums_come_first():
    @bp.custom_function(nondiff_argnums=(0, 2))
    def apply(function, x, power, y):
        return function(x) ** power * y

    def fwd(function, x, power, y):
        return apply.fun(function, x, power, y), (x, y)

    def bwd(function, power, saved, g):
        x, y = saved
        return g * power * function(x) ** (power - 1) * y, g * function(x) ** power

    apply.defvjp(fwd, bwd)
    apply.defjvp(lambda function, power, p, t: (function(p[0]) ** power * p[1],
                                                t[0] * power * function(p[0]) ** (power - 1) * p[1]
                                                + t[1] * function(p[0]) ** power))
    double = lambda x: x + 0  # noqa: E731
    gx, gy = bp.grad(lambda x, y: apply(double, x, 3, y), argnums=(0, 1))(2.0, 5.0)
    assert (gx.item(), gy.item()) == (60, 8)
    one = bp.asarray(1.0)
    assert bp.jvp(lambda x: apply(double, x, 3, bp.asarray(5.0)), (bp.asarray(2.0),), (one,))[1].item() == 60


def test_methods_bind():
    class Layer:
        def __init__(self, k):
            self.k = k

        @bp.custom_function
        def scale(self, x):
            return x * self.k

        scale.defvjp(lambda self, x: (x * self.k, self.k), lambda k, g: (None, g * k * 10))

    assert bp.grad(Layer(3.0).scale)(1.0).item() == 30


def test_integers_have_no_tangent_and_no_cotangent():
    f = bp.custom_function(lambda x, n: (x * n, n + 1))

    def rule(primals, tangents):
        assert tangents[1] is None
        return (primals[0] * primals[1], primals[1] + 1), (tangents[0] * primals[1], None)

    f.defjvp(rule)
    f.defvjp(lambda x, n: (f.fun(x, n), n), lambda n, g: (g[0] * n, None) if g[1] is None else None)
    n = bp.asarray(3)
    assert bp.grad(lambda x: f(x, n)[0])(2.0).item() == 3
    assert bp.jvp(lambda x: f(x, n)[0], (bp.asarray(2.0),), (bp.asarray(1.0),))[1].item() == 3


def test_unbatched_arguments_get_the_sum_over_rows():
    f = bp.custom_function(lambda x, w: (x * w, w * 1))
    f.defvjp(lambda x, w: ((x * w, w * 1), (x, w)), lambda s, g: (g[0] * s[1], g[0] * s[0] + g[1]))
    xs, w = bp.asarray([1.0, 2.0, 3.0]), bp.asarray(2.0)

    def loss(w):
        a, b = bp.vmap(f, in_axes=(0, None))(xs, w)
        return a.sum() + (b * b).sum()

    assert bp.grad(loss)(w).item() == 6 + 3 * 4
    rows = bp.vmap(bp.grad(lambda x, w: f(x, w)[0], argnums=(0, 1)), in_axes=(0, None))(xs, w)
    assert [row.tolist() for row in rows] == [[2.0] * 3, [1.0, 2.0, 3.0]]


def test_missing_rules_are_named():
    f = bp.custom_function(plain)
    x = bp.asarray([1.0, 2.0])
    with pytest.raises(bp.MissingRuleError, match="plain: grad .*defvjp"):
        bp.grad(f)(x)
    with pytest.raises(bp.MissingRuleError, match="plain: backward .*defvjp"):
        f(bp.asarray([1.0]).requires_grad_())
    for made in (f, with_vjp()):
        with pytest.raises(bp.MissingRuleError, match="plain: jvp .*defjvp"):
            bp.jvp(made, (x,), (x,))
    assert f(x).item() == pytest.approx(plain(x).item())
    assert bp.vmap(f)(bp.stack([x, x])).shape == (2,)


def test_captured_tensors_are_refused():
    def captures(w):
        f = bp.custom_function(lambda x: x * w)
        f.defvjp(lambda x: (x * w, None), lambda _, g: (g * w,))
        f.defjvp(lambda p, t: (p[0] * w, t[0] * w))
        return f

    one = bp.asarray(1.0)
    for bad in (
        lambda: bp.grad(lambda w: captures(w)(one))(2.0),
        lambda: bp.grad(lambda w: captures(w)(w))(2.0),
        lambda: bp.jvp(lambda w: captures(w)(w), (one,), (one,)),
        lambda: captures(bp.asarray(1.0).requires_grad_())(one),
    ):
        with pytest.raises(bp.ArgumentValueError, match="make it an argument"):
            bad()
    assert bp.grad(lambda w: captures(bp.stop_gradient(w))(w))(2.0).item() == 2
    assert bp.vmap(lambda w: captures(w)(one))(bp.asarray([1.0, 2.0])).tolist() == [1.0, 2.0]


def custom(fwd=None, bwd=None, jvp=None, vmap=None):
    f = bp.custom_function(lambda x: x * 2)
    f.__name__ = "wrong"
    f.fun.__name__ = "wrong"
    if fwd:
        f.defvjp(fwd, bwd)
    if jvp:
        f.defjvp(jvp)
    if vmap:
        f.defvmap(vmap)
    return f


def good(x):
    return x * 2, ()


X = 2.0
XS = [1.0, 2.0]
WRONG = {
    "fwd no pair": (lambda: bp.grad(custom(lambda x: x, lambda s, g: (g,)))(X), TypeError, "wrong: the fwd.*pair"),
    "bwd no tuple": (lambda: bp.grad(custom(good, lambda s, g: g))(X), TypeError, "wrong: the bwd.*tuple of 1"),
    "bwd too many": (lambda: bp.grad(custom(good, lambda s, g: (g, g)))(X), TypeError, "wrong: the bwd.*tuple of 1"),
    "bwd no tensor": (lambda: bp.grad(custom(good, lambda s, g: (1.0,)))(X), TypeError, "wrong: the bwd.*float"),
    "bwd structure": (lambda: bp.grad(custom(good, lambda s, g: ((g,),)))(X), TypeError, "wrong: the bwd"),
    "bwd shape": (lambda: bp.grad(custom(good, lambda s, g: (g[None],)))(X), ValueError, r"wrong: .*cotangent 0 of shape \(1,\), argument 0 has \(\)"),
    "fwd shape": (lambda: bp.grad(lambda x: custom(lambda x: (x[None], x), lambda s, g: (g,))(x).sum())(X), ValueError, "wrong: .*forward rule returned"),
    "bwd dtype": (lambda: bp.grad(custom(good, lambda s, g: (bp.astype(g, bp.float64),)))(X), TypeError, "wrong: .*float64"),
    "jvp no pair": (lambda: bp.jvp(custom(jvp=lambda p, t: t[0]), (bp.asarray(X),), (bp.asarray(X),)), TypeError,
                    "wrong: the rule of defjvp"),
    "jvp shape": (lambda: bp.jvp(custom(jvp=lambda p, t: (p[0], t[0][None])), (bp.asarray(X),), (bp.asarray(X),)),
                  ValueError, "wrong: .*tangent of another shape"),
    "vmap no pair": (lambda: bp.vmap(custom(vmap=lambda n, b, x: x))(bp.asarray(XS)), TypeError, "wrong: .*defvmap"),
    "vmap size": (lambda: bp.vmap(custom(vmap=lambda n, b, x: (x[:1], True)))(bp.asarray(XS)), ValueError,
                  "wrong: its batch rule"),
    "no function": (lambda: bp.custom_function(3), TypeError, "custom_function: argument fun"),
    "no rule": (lambda: custom().defvjp(good, 3), TypeError, "wrong: defvjp: argument bwd"),
    "nondiff": (lambda: bp.custom_function(lambda x: x, nondiff_argnums=3)(1.0), ValueError, "beyond the 1 given"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_rules_get_wrong_is_an_error(case):
    call, error, words = WRONG[case]
    with pytest.raises(error, match=words):
        call()
    assert bp.grad(with_vjp())(bp.asarray(1.0)).item() == pytest.approx(slope(bp.asarray(1.0)).item())


def boom(*args):
    raise KeyError("boom")


@pytest.mark.parametrize("call", [
    lambda: bp.grad(custom(boom, boom))(X),
    lambda: bp.grad(custom(good, boom))(X),
    lambda: custom(good, boom)(bp.asarray(X).requires_grad_()).backward(),
    lambda: bp.jvp(custom(jvp=boom), (bp.asarray(X),), (bp.asarray(X),)),
    lambda: bp.vmap(custom(vmap=boom))(bp.asarray(XS)),
    lambda: bp.vmap(bp.grad(custom(good, boom)))(bp.asarray(XS)),
    lambda: bp.grad(lambda x: bp.vmap(custom(good, boom))(x).sum())(bp.asarray(XS)),
    lambda: bp.grad(bp.custom_function(boom))(X) if False else bp.custom_function(boom)(bp.asarray(X)),
])
def test_exceptions_in_rules_unwind(call):
    with pytest.raises(KeyError, match="boom"):
        call()
    assert bp.grad(lambda x: x * x)(3.0).item() == 6


def test_residuals_end_with_the_graph():
    class Token:
        pass

    watched = []

    def fwd(x):
        token = Token()
        watched.append(weakref.ref(token))
        return x * 2, token

    f = custom(fwd, lambda token, g: (g * 2,))
    x = bp.asarray(1.0).requires_grad_()
    y = f(x)
    assert watched[0]() is not None
    y.backward()
    gc.collect()
    assert watched[0]() is None
    box = [f(x)]
    thread = threading.Thread(target=box.clear)
    thread.start()
    thread.join()
    gc.collect()
    assert watched[1]() is None


def test_several_threads():
    f = with_both()
    x = bp.asarray(np.linspace(-1.0, 1.5, 6))
    expected = values(slope(x))
    wrong = []

    def work():
        for _ in range(30):
            for transform in (bp.grad, eager):
                if not np.allclose(values(transform(f)(x)), expected):
                    wrong.append(1)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_names_and_signatures():
    import inspect

    @bp.custom_function
    def scaled(x, factor=2.0):
        """Doc."""
        return x * factor

    assert scaled.__name__ == "scaled" and scaled.__doc__ == "Doc."
    assert str(inspect.signature(scaled)) == "(x, factor=2.0)"
    assert scaled(bp.asarray(1.0)).item() == 2 and scaled(x=bp.asarray(1.0), factor=3).item() == 3
    assert "no rules" in repr(scaled)
    only = bp.custom_function(lambda x, *, k: x)
    with pytest.raises(TypeError, match="keyword-only argument 'k'"):
        only(bp.asarray(1.0), k=1)
