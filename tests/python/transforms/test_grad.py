"""grad and value_and_grad: closed forms, arguments and containers, auxiliary values, and nesting."""

import collections
import functools
import math

import backplane as bp
import numpy as np
import pytest


def values(tensor):
    return np.asarray(tensor)


def cube(x):
    return (x * x * x).sum()


def test_gradient_of_a_closed_form():
    x = bp.asarray([1.0, -2.0, 3.0])
    assert bp.grad(cube)(x).tolist() == [3.0, 12.0, 27.0]
    assert bp.grad(lambda x: bp.sin(x))(0.5).item() == pytest.approx(math.cos(0.5), rel=1e-6)


def test_value_and_grad_gives_both():
    value, gradient = bp.value_and_grad(cube)(bp.asarray([1.0, 2.0]))
    assert value.item() == 9 and gradient.tolist() == [3.0, 12.0]
    assert value.requires_grad is False and gradient.requires_grad is False


def test_python_numbers_are_inputs():
    assert bp.grad(lambda x: x * x)(3.0).item() == 6
    assert bp.grad(lambda x: x * x)(3.0).dtype is bp.float32
    assert bp.grad(lambda x: x * x)(np.float64(3.0)).dtype is bp.float64
    assert bp.grad(lambda x: (x * x).sum())(np.ones(2)).tolist() == [2.0, 2.0]


@pytest.mark.parametrize("order", range(5))
def test_grad_of_grad(order):
    function, expected = bp.sin, [math.sin, math.cos, lambda x: -math.sin(x), lambda x: -math.cos(x)][order % 4]
    for _ in range(order):
        function = bp.grad(function)
    assert float(function(bp.asarray(0.7, dtype=bp.float64))) == pytest.approx(expected(0.7), rel=1e-12)


def test_perturbations_are_not_confused():
    assert bp.grad(lambda x: x * bp.grad(lambda y: x + y)(2.0))(1.0).item() == 1
    assert bp.grad(lambda x: x * bp.grad(lambda y: x * y)(2.0))(3.0).item() == 6
    assert bp.grad(lambda x: bp.grad(lambda y: y * bp.grad(lambda z: x * y * z)(1.0))(x))(3.0).item() == 12


def f(a, b, c):
    return (a * b + c * c).sum()


A, B, C = bp.asarray([1.0, 2.0]), bp.asarray([3.0, 4.0]), bp.asarray([5.0, 6.0])
GRADIENTS = {0: [3.0, 4.0], 1: [1.0, 2.0], 2: [10.0, 12.0]}


@pytest.mark.parametrize("argnums", [0, 1, 2, -1, -3, (0,), (1, 2), (2, 0), [0, 2], (-1, 0), ()])
def test_argnums_choose_the_arguments(argnums):
    found = bp.grad(f, argnums)(A, B, C)
    if isinstance(argnums, int):
        assert found.tolist() == GRADIENTS[argnums % 3]
    else:
        assert isinstance(found, tuple)
        assert [one.tolist() for one in found] == [GRADIENTS[number % 3] for number in argnums]


def test_keyword_arguments_are_passed_on():
    assert bp.grad(lambda x, *, scale, b=None: (scale * x).sum())(A, scale=3).tolist() == [3.0, 3.0]
    assert bp.grad(lambda x, y: (x * y).sum())(A, y=B).tolist() == B.tolist()


Point = collections.namedtuple("Point", "x y")


def test_containers_have_gradients_of_their_structure():
    params = {"w": [A, (B,)], "b": Point(C, 2.0), "none": None}
    found = bp.grad(lambda p: (p["w"][0] * p["w"][1][0] + p["b"].x * p["b"].y).sum())(params)
    assert bp.tree.structure(found) == bp.tree.structure(params)
    assert found["w"][0].tolist() == B.tolist() and found["w"][1][0].tolist() == A.tolist()
    assert found["b"].x.tolist() == [2.0, 2.0] and found["b"].y.item() == 11
    assert list(found) == ["w", "b", "none"] and found["none"] is None


def test_aux_comes_out_of_the_level():
    def loss(x):
        y = x * x
        return y.sum(), {"y": y, "label": "text", "n": 3}

    gradient, aux = bp.grad(loss, has_aux=True)(A)
    assert gradient.tolist() == [2.0, 4.0]
    assert (aux["y"] + 1).tolist() == [2.0, 5.0] and aux["label"] == "text" and aux["n"] == 3
    (value, aux), gradient = bp.value_and_grad(loss, has_aux=True)(A)
    assert value.item() == 5 and aux["y"].tolist() == [1.0, 4.0] and gradient.tolist() == [2.0, 4.0]


def test_aux_is_differentiable_at_outer_levels():
    def outer(x):
        _, aux = bp.grad(lambda y: ((y * x).sum(), x * x * y), has_aux=True)(x)
        return aux.sum()

    assert bp.grad(outer)(A).tolist() == [3.0, 12.0]


def test_independent_values_have_zero_gradients():
    assert bp.grad(lambda x: 2.0)(1.0).item() == 0
    assert bp.grad(lambda x, y: y.sum())(A, B).tolist() == [0.0, 0.0]
    assert bp.grad(lambda x: bp.asarray(1.0))(A).tolist() == [0.0, 0.0]
    found = bp.grad(lambda p: p["a"].sum())({"a": A, "b": B})
    assert found["b"].tolist() == [0.0, 0.0]


def test_identity_returns_a_gradient_of_its_own():
    first = bp.grad(lambda x: x)(2.0)
    first += 5
    assert bp.grad(lambda x: x)(2.0).item() == 1


def test_stop_gradient_is_constant_at_every_level():
    assert bp.grad(lambda x: (bp.stop_gradient(x) * x).sum())(A).tolist() == A.tolist()
    assert bp.grad(bp.grad(lambda x: x * x * bp.stop_gradient(x)))(3.0).item() == 6
    _, tangent = bp.jvp(lambda x: bp.stop_gradient({"a": x, "b": 2})["a"], (A,), (B,))
    assert tangent.tolist() == [0.0, 0.0]
    x = bp.ones(2).requires_grad_()
    assert not bp.stop_gradient(x).requires_grad
    y = bp.stop_gradient(A)
    assert y.tolist() == A.tolist()


def test_complex_arguments():
    z = bp.asarray(1 + 2j, dtype=bp.complex128)
    assert bp.grad(lambda z: bp.real(z * bp.conj(z)))(z).item() == 2 + 4j  # df/dx + i df/dy
    assert bp.grad(lambda z: z * z * z, holomorphic=True)(z).item() == pytest.approx(3 * (1 + 2j) ** 2)
    second = bp.grad(bp.grad(lambda z: z * z * z, holomorphic=True), holomorphic=True)
    assert second(z).item() == pytest.approx(6 * (1 + 2j))


def test_results_look_like_the_function():
    def documented(x):
        """What it does."""
        return x

    made = bp.grad(documented)
    assert made.__name__ == "documented" and made.__doc__ == "What it does." and made.__wrapped__ is documented
    assert made.__module__ == __name__ and "grad of" in repr(made)
    made.note = 3
    assert made.note == 3

    @functools.wraps(made)
    def again(x):
        return made(x)

    assert again.__name__ == "documented"


def test_results_bind_as_methods():
    class Model:
        scale = 3.0

        @functools.partial(bp.grad, argnums=1)
        def slope(self, x):
            return self.scale * x * x

    assert Model().slope(2.0).item() == 12


def test_any_callable_is_transformed():
    class Callable:
        def __call__(self, x):
            return x * x

    assert bp.grad(Callable())(2.0).item() == 4
    assert bp.grad(functools.partial(lambda a, x: a * x, 3.0))(2.0).item() == 3
    assert bp.grad(bp.exp)(0.0).item() == 1


def test_cycles_through_the_function_are_collected():
    import gc
    import weakref

    class Owner:
        def __init__(self):
            self.slope = bp.grad(self.value)

        def value(self, x):
            return x

    owner = Owner()
    watched = weakref.ref(owner)
    del owner
    gc.collect()
    assert watched() is None


def test_gradients_inside_a_recorded_computation():
    w = bp.asarray([2.0, 3.0]).requires_grad_()
    slope = bp.grad(lambda x: (w * x * x).sum())(A)
    slope.sum().backward()
    assert w.grad.tolist() == [2.0, 4.0]


def test_large_inputs_run_without_the_lock_and_agree():
    x = bp.ones(100_000)
    assert bp.grad(cube)(x).sum().item() == 300_000


def test_no_grad_acts_on_all_levels_that_began_outside_of_it():
    def f(x):
        with bp.no_grad():
            constant = x * x
        return (constant * x).sum()

    assert bp.grad(f)(A).tolist() == [1.0, 4.0]
    assert bp.grad(lambda x: bp.grad(f)(x).sum())(A).tolist() == [0.0, 0.0]
    assert bp.grad(lambda x: bp.grad(bp.compile(f))(x).sum())(A).tolist() == [0.0, 0.0]
    assert bp.jacrev(bp.grad(f))(A).tolist() == [[0.0, 0.0], [0.0, 0.0]]
    assert bp.hessian(f)(A).tolist() == [[2.0, 0.0], [0.0, 4.0]]  # forward mode knows no no_grad
    with bp.no_grad():
        assert bp.grad(cube)(A).tolist() == [3.0, 12.0]

    def inside(x):
        with bp.no_grad():
            return bp.grad(cube)(x).sum()

    assert bp.grad(inside)(A).tolist() == [0.0, 0.0]


def test_no_grad_in_a_transform_is_of_the_tape_too():
    weight, average = bp.ones(2).requires_grad_(), bp.zeros(2)

    def loss(x):
        with bp.no_grad():
            average.mul_(0.5).add_(weight * 0.5)
            weight.mul_(2)
        return ((weight - average) * x).sum()

    for rows in (0.5, 1.25):
        assert bp.grad(loss)(A).tolist() == [2 * rows + 0.5 if rows == 0.5 else 2.75] * 2
        assert average.tolist() == [rows] * 2 and not average.requires_grad and weight.requires_grad
    with bp.no_grad():
        bp.grad(lambda x: (x * x).sum())(A)
        assert not bp.is_grad_enabled()
    assert bp.is_grad_enabled() and (weight * 1).requires_grad


def test_signatures_are_those_of_the_functions():
    import inspect

    def named(a, b=2, *, c):
        return a

    assert inspect.signature(bp.grad(named)) == inspect.signature(named)
    assert str(inspect.signature(bp.grad)) == "(fun, argnums=0, has_aux=False, holomorphic=False)"
    assert str(inspect.signature(bp.vjp)) == "(fun, *primals, has_aux=False)"
