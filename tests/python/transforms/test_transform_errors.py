"""Bad input: each error names the transform, the place and the fix; afterwards everything works as before."""

import functools
import sys
import threading

import backplane as bp
import numpy as np
import pytest

X = bp.asarray([1.0, 2.0, 3.0])
INTS = bp.asarray([1, 2])
Z = bp.asarray([1 + 2j, 0j])


def total(x):
    return (x * x).sum()


ERRORS = {
    # grad and value_and_grad
    "int input": (lambda: bp.grad(total)(INTS), TypeError, r"grad: args\[0\]: found .*int64.*cast it with astype"),
    "int number": (lambda: bp.grad(total)(3), TypeError, r"grad: args\[0\]: found .*int64"),
    "bool input": (lambda: bp.value_and_grad(total)(True), TypeError, r"value_and_grad: args\[0\]: found .*"),
    "int inside": (
        lambda: bp.grad(total)({"w": [X, INTS]}),
        TypeError,
        r"grad: args\[0\]\['w'\]\[1\]: found .*int64",
    ),
    "text input": (lambda: bp.grad(total)("x"), TypeError, r"grad: args\[0\]: found the str 'x', expected"),
    "non-scalar": (
        lambda: bp.grad(lambda x: x)(X),
        ValueError,
        r"grad: the function returned a tensor of shape \(3,\); expected one without dimensions; use jacrev or vjp, or reduce it",
    ),
    "int loss": (lambda: bp.grad(lambda x: bp.argmax(x))(X), TypeError, "grad: .* dtype int64; expected a floating one; cast"),
    "bool loss": (lambda: bp.grad(lambda x: (x > 0).any())(X), TypeError, "grad: .* dtype bool; expected a floating"),
    "number loss": (lambda: bp.grad(lambda x: 2)(X), TypeError, "grad: .* dtype int64"),
    "no tensor": (lambda: bp.grad(lambda x: None)(X), TypeError, "grad: the function returned None; expected a tensor"),
    "list": (lambda: bp.grad(lambda x: [x.sum()])(X), TypeError, "grad: the function returned"),
    "unstated aux": (lambda: bp.grad(lambda x: (x.sum(), x))(X), TypeError, "grad: the function returned .*has_aux=True"),
    "no aux": (
        lambda: bp.grad(total, has_aux=True)(X),
        TypeError,
        r"grad: the function returned .*; expected a pair \(value, aux\), because of has_aux=True",
    ),
    "argnums beyond": (lambda: bp.grad(total, 1)(X), ValueError, "grad: argument argnums: found 1, but the call has 1 pos"),
    "argnums below": (lambda: bp.grad(total, -2)(X), ValueError, "grad: argument argnums: found -2"),
    "argnums by keyword": (lambda: bp.grad(total)(x=X), ValueError, "grad: argument argnums: .* by position"),
    "argnums twice": (lambda: bp.grad(lambda a, b: a, (0, -2))(X, X), ValueError, "grad: .* argument 0 twice"),
    "argnums text": (lambda: bp.grad(total, "x"), TypeError, "grad: argument argnums: found the str 'x', expected an int"),
    "argnums float": (lambda: bp.grad(total, (0, 1.5)), TypeError, "grad: argument argnums: found"),
    "not callable": (lambda: bp.grad(X), TypeError, "grad: argument fun: found .*Tensor, expected a function"),
    "complex loss": (
        lambda: bp.grad(lambda z: (z * z).sum())(Z),
        TypeError,
        "grad: .* complex64; expected a real one; take its real part, or pass holomorphic=True",
    ),
    "holomorphic real": (
        lambda: bp.grad(total, holomorphic=True)(X),
        TypeError,
        r"grad: args\[0\]: found .*float32, expected a complex one, because of holomorphic=True",
    ),
    "holomorphic loss": (
        lambda: bp.grad(lambda z: bp.real(z).sum(), holomorphic=True)(Z),
        TypeError,
        "grad: .* float32; expected a complex one",
    ),
    # vjp and its pullback
    "vjp int": (lambda: bp.vjp(total, X, INTS), TypeError, r"vjp: args\[1\]: found .*int64"),
    "vjp keyword": (lambda: bp.vjp(total, X, y=X), TypeError, "vjp: found the keyword argument 'y', expected only has_aux.*lambda"),
    "vjp result": (lambda: bp.vjp(lambda x: {"a": (x, "n")}, X), TypeError, r"vjp: the function's result\['a'\]\[1\]: found the str 'n'"),
    "vjp nothing": (lambda: bp.vjp(), TypeError, "vjp: argument fun"),
    "cotangents": (lambda: bp.vjp(total, X)[1](1.0, 2.0), TypeError, "vjp: the pullback was called with 2 arguments; expected one"),
    "cotangent structure": (
        lambda: bp.vjp(lambda x: {"a": x}, X)[1]([X]),
        ValueError,
        r"vjp: the cotangent: found a list of 1, expected a dict with the keys \('a',\)",
    ),
    "cotangent shape": (
        lambda: bp.vjp(lambda x: {"a": x}, X)[1]({"a": X[:2]}),
        ValueError,
        r"vjp: the cotangent\['a'\]: found a tensor of shape \(2,\), expected \(3,\)",
    ),
    "cotangent dtype": (
        lambda: bp.vjp(total, X)[1](bp.asarray(1.0, dtype=bp.float64)),
        TypeError,
        "vjp: the cotangent: found .*float64, expected float32.*cast",
    ),
    # jvp
    "jvp primals": (lambda: bp.jvp(total, X, (X,)), TypeError, "jvp: argument primals: found .*Tensor, expected a tuple or list"),
    "jvp tangents": (lambda: bp.jvp(total, (X,), X), TypeError, "jvp: argument tangents: found"),
    "jvp count": (lambda: bp.jvp(total, (X,), (X, X)), ValueError, "jvp: argument tangents: found 2 elements, expected 1"),
    "jvp structure": (
        lambda: bp.jvp(total, ({"a": X},), ([X],)),
        ValueError,
        r"jvp: tangents\[0\]: found a list of 1, expected a dict .* as in primals\[0\]",
    ),
    "jvp shape": (
        lambda: bp.jvp(total, ({"a": X},), ({"a": X[:1]},)),
        ValueError,
        r"jvp: tangents\[0\]\['a'\]: found a tensor of shape \(1,\), expected \(3,\)",
    ),
    "jvp dtype": (lambda: bp.jvp(total, (X,), (X.astype(bp.float64),)), TypeError, r"jvp: tangents\[0\]: .*float64, expected float32"),
    "jvp int": (lambda: bp.jvp(total, (INTS,), (INTS,)), TypeError, r"jvp: primals\[0\]: found .*int64"),
    "jvp result": (lambda: bp.jvp(lambda x: "n", (X,), (X,)), TypeError, "jvp: the function's result: found the str 'n'"),
    # vmap
    "in_axes type": (lambda: bp.vmap(total, "x"), TypeError, "vmap: argument in_axes: found the str 'x', expected an int, None"),
    "out_axes type": (lambda: bp.vmap(total, 0, 1.5), TypeError, "vmap: argument out_axes: found"),
    "in_axes length": (
        lambda: bp.vmap(total, (0, 0))(X),
        ValueError,
        r"vmap: argument in_axes: found the tuple \(0, 0\), but the call has 1 positional arguments",
    ),
    "in_axes structure": (
        lambda: bp.vmap(lambda p: p["a"], ({"b": 0},))({"a": X}),
        ValueError,
        r"vmap: in_axes\[0\]: found a dict with the keys \('b',\), expected .* as in args\[0\]; an int or None there",
    ),
    "in_axes range": (lambda: bp.vmap(total, 1)(X), IndexError, r"vmap: args\[0\]: its in_axes is 1, but its shape is \(3,\): expected an axis from -1 to 0"),
    "in_axes range inside": (
        lambda: bp.vmap(lambda p: p["a"], -3)({"a": bp.ones((2, 2))}),
        IndexError,
        r"vmap: args\[0\]\['a'\]: its in_axes is -3",
    ),
    "no axes": (lambda: bp.vmap(lambda x, y: x)(X, 2.0), ValueError, r"vmap: args\[1\]: found no axes.*in_axes=None"),
    "sizes": (
        lambda: bp.vmap(lambda x, p: x)(X, {"w": bp.ones((4, 2))}),
        ValueError,
        r"vmap: the mapped axes differ in size: args\[0\] has 3 \(axis 0\), args\[1\]\['w'\] has 4 \(axis 0\)",
    ),
    "size of a keyword": (lambda: bp.vmap(lambda x, y: x)(X, y=bp.ones(2)), ValueError, r"args\[0\] has 3 \(axis 0\), y has 2"),
    "axis_size": (lambda: bp.vmap(total, axis_size=4)(X), ValueError, r"args\[0\] has 3 \(axis 0\), axis_size is 4"),
    "axis_size type": (lambda: bp.vmap(total, axis_size="n"), ValueError, "vmap: argument axis_size: found 'n'"),
    "nothing mapped": (lambda: bp.vmap(total, None)(X), ValueError, "vmap: found no mapped argument and no axis_size"),
    "no arguments": (lambda: bp.vmap(lambda: 1.0)(), ValueError, "vmap: found no mapped argument"),
    "out_axes range": (lambda: bp.vmap(lambda x: x, 0, 1)(X), IndexError, r"vmap: the function's result: its out_axes is 1, but with the batch it has 1 axes"),
    "out_axes structure": (
        lambda: bp.vmap(lambda x: {"a": x}, 0, {"b": 0})(X),
        ValueError,
        r"vmap: out_axes: found a dict with the keys \('b',\), expected .* as in the function's result",
    ),
    "out_axes none": (lambda: bp.vmap(lambda x: x, 0, None)(X), ValueError, "vmap: .*differs from row to row"),
    "vmap result": (lambda: bp.vmap(lambda x: "n")(X), TypeError, "vmap: the function's result: found the str 'n', expected a tensor"),
    "randomness": (lambda: bp.vmap(total, randomness="some"), ValueError, "vmap: argument randomness: found 'some', expected 'error', 'same' or 'different'"),
    "random op": (lambda: bp.vmap(lambda x: x + bp.uniform(()))(X), Exception, "randomness"),
    # jacrev, jacfwd
    "jacrev int": (lambda: bp.jacrev(total)(INTS), TypeError, r"jacrev: args\[0\]: found .*int64"),
    "jacrev int result": (lambda: bp.jacrev(lambda x: bp.argmax(x))(X), TypeError, "jacrev: .*int64; expected a floating"),
    "jacrev complex": (lambda: bp.jacrev(lambda z: z)(Z), TypeError, "jacrev: .*complex64; expected a real one, or holomorphic"),
    "jacrev argnums": (lambda: bp.jacrev(total, 3)(X), ValueError, "jacrev: argument argnums: found 3"),
    "jacrev fun": (lambda: bp.jacrev(3), TypeError, "jacrev: argument fun: found a value of type int"),
    "jacfwd int": (lambda: bp.jacfwd(total)(INTS), TypeError, r"jacfwd: primals\[0\]: found .*int64"),
    "jacfwd complex": (lambda: bp.jacfwd(lambda z: z)(Z), TypeError, r"jacfwd: args\[0\]: .*complex64, expected a real one"),
    "jacfwd int result": (lambda: bp.jacfwd(lambda x: bp.argmax(x))(X), TypeError, "jacfwd: .*int64; expected a floating"),
    "jacfwd holomorphic result": (
        lambda: bp.jacfwd(bp.real, holomorphic=True)(Z),
        TypeError,
        "jacfwd: .*float32; expected a complex one, because of holomorphic=True",
    ),
    "jacfwd argnums": (lambda: bp.jacfwd(total, "x"), TypeError, "jacfwd: argument argnums: found 'x'"),
    "hessian argnums": (lambda: bp.hessian(total, (0, 0))(X), ValueError, "argument argnums: found argument 0 twice"),
}


@pytest.mark.parametrize("name", list(ERRORS))
def test_bad_input_is_named(name):
    call, kind, message = ERRORS[name]
    for _ in range(2):
        with pytest.raises(kind, match=message) as caught:
            call()
        assert isinstance(caught.value, bp.BackplaneError)
        assert len(str(caught.value).splitlines()) <= 10
        assert bp.vmap(bp.grad(total))(X[None]).tolist() == [[2.0, 4.0, 6.0]]


TRANSFORMS = {
    "grad": lambda f: bp.grad(f)(2.0),
    "value_and_grad": lambda f: bp.value_and_grad(f)(2.0),
    "vjp": lambda f: bp.vjp(f, 2.0),
    "jvp": lambda f: bp.jvp(f, (2.0,), (1.0,)),
    "vmap": lambda f: bp.vmap(f)(X),
    "jacrev": lambda f: bp.jacrev(f)(2.0),
    "jacfwd": lambda f: bp.jacfwd(f)(2.0),
    "hessian": lambda f: bp.hessian(f)(2.0),
    "vmap of grad": lambda f: bp.vmap(bp.grad(f))(X),
    "grad of vmap": lambda f: bp.grad(lambda x: bp.vmap(f)(x).sum())(X),
}


class Mine(Exception):
    pass


@pytest.mark.parametrize("name", list(TRANSFORMS))
def test_the_users_exception_comes_out_unchanged(name):
    mine = Mine("its own text")

    def f(x):
        x * 2
        raise mine

    for _ in range(3):
        with pytest.raises(Mine) as caught:
            TRANSFORMS[name](f)
        assert caught.value is mine
        assert bp.grad(lambda x: x * bp.grad(lambda y: x * y)(2.0))(3.0).item() == 6
        assert bp.zeros(2).tolist() == [0, 0]


def test_exceptions_may_be_caught_inside():
    def inner(y):
        raise Mine

    def f(x):
        try:
            bp.grad(inner)(x)
        except Mine:
            return x * x
        raise AssertionError

    assert bp.grad(f)(3.0).item() == 6


@pytest.mark.parametrize("name", ["grad", "jvp", "vmap", "vmap of grad"])
def test_escaped_tensors_are_refused(name):
    kept = []

    def f(x):
        kept.append(x * 1)
        return x * x

    TRANSFORMS[name](f)
    with pytest.raises(ValueError, match="has ended.*return it from the transformed function"):
        kept[0] + 1
    assert "inside" in repr(kept[0])


@pytest.mark.parametrize("name", ["grad", "jvp", "vmap"])
def test_tensors_of_another_thread_are_refused(name):
    caught = []

    def f(x):
        def other():
            try:
                x + 1
            except ValueError as error:
                caught.append(str(error))

        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
        return x * x

    TRANSFORMS[name](f)
    assert len(caught) == 1 and "not active here" in caught[0]


def test_pullbacks_of_an_ended_batch_are_refused():
    kept = []

    def f(w):
        kept.append(bp.vjp(lambda x: x * w, 2.0)[1])
        return w

    bp.vmap(f)(X)
    with pytest.raises(ValueError, match="vmap that has ended"):
        kept[0](1.0)


def test_results_whose_shape_depends_on_values_are_not_batched():
    with pytest.raises(NotImplementedError, match=r"not known inside vmap. Fix: keep all elements, and choose with where\(mask"):
        bp.vmap(lambda x: x[x > 0])(bp.ones((2, 3)))
    with pytest.raises(NotImplementedError, match="cannot be batched by vmap"):
        bp.vmap(bp.nonzero)(bp.ones((2, 3)))
    assert bp.grad(lambda x: x[x > 1].sum())(X).tolist() == [0.0, 1.0, 1.0]


@pytest.mark.parametrize("transform", [bp.compile, bp.make_graph, bp.vmap])
def test_a_hook_where_no_tape_is_names_the_transform(transform):
    def hooked(x):
        y = x * 2
        y.register_hook(lambda g: g * 10)
        return y.sum()

    with pytest.raises(ValueError, match=f"hook: the tensor belongs to a {transform.__name__}, which the tape does not record. Fix: set the hook on an argument or a result"):
        transform(hooked)(bp.ones((2, 3)))
    assert bp.compile(bp.grad(hooked))(X).tolist() == bp.grad(hooked)(X).tolist() == [20.0] * len(X)


def test_threads_transform_independently():
    failures = []

    def work(seed):
        x = bp.asarray(np.random.default_rng(seed).normal(size=4))
        try:
            for _ in range(200):
                found = bp.vmap(bp.grad(lambda v: v * bp.jvp(lambda y: v * y * y, (v,), (bp.ones_like(v),))[1]))(x)
                np.testing.assert_allclose(np.asarray(found), 6 * np.asarray(x) ** 2)  # v * 2 v v
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_deep_recursion_is_an_error_and_not_a_crash():
    @functools.partial(bp.grad)
    def endless(x):
        return endless(x)

    before = sys.getrecursionlimit()
    sys.setrecursionlimit(400)  # the stack of a sanitized build has room for that
    try:
        with pytest.raises(RecursionError):
            endless(1.0)
    finally:
        sys.setrecursionlimit(before)
    assert bp.grad(total)(X).tolist() == [2.0, 4.0, 6.0]
