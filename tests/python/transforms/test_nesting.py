"""Transforms in every order: the same derivative of the same rows, whichever is outside."""

import itertools

import backplane as bp
import numpy as np
import pytest

RNG = np.random.default_rng(5)


def f(x):
    return bp.exp(bp.sin(x) * x) + x * x * x


def derivative(order, x):
    """Central differences of high order are not needed: Taylor coefficients by complex quadrature (Cauchy)."""
    n, radius = 64, 0.3
    angles = 2 * np.pi * np.arange(n) / n
    z = x[:, None] + radius * np.exp(1j * angles)
    values = np.exp(np.sin(z) * z) + z**3
    coefficient = (values * np.exp(-1j * order * angles)).mean(axis=1) / radius**order
    return (coefficient * [1, 1, 2, 6, 24][order]).real


def forward(function):
    return lambda x: bp.jvp(function, (x,), (bp.ones_like(x),))[1]


def pulled(function):
    def slope(x):
        value, pullback = bp.vjp(function, x)
        return pullback(bp.ones_like(value))[0]

    return slope


STEPS = {"grad": bp.grad, "jvp": forward, "vjp": pulled, "jacrev": bp.jacrev, "jacfwd": bp.jacfwd}


@pytest.mark.parametrize("names", list(itertools.product(STEPS, repeat=2)))
def test_second_derivatives_under_vmap(names):
    x = RNG.uniform(-1, 1, 5)
    expected = derivative(2, x)
    function = f
    for name in names:
        function = STEPS[name](function)
    assert np.asarray(bp.vmap(function)(bp.asarray(x))) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("place", range(4))
@pytest.mark.parametrize("names", list(itertools.product(["grad", "jvp", "vjp"], repeat=3)))
def test_third_derivatives_with_vmap_at_every_place(names, place):
    """Inside vmap a step differentiates one row; outside of it, the sum of all rows."""
    x = RNG.uniform(-1, 1, 4)
    function = f
    for i, name in enumerate(names):
        if i == place:
            function = bp.vmap(function)
        if name == "grad" and place <= i:
            function = bp.grad(lambda x, function=function: function(x).sum())
        else:
            function = STEPS[name](function)
    if place >= len(names):
        function = bp.vmap(function)
    assert np.asarray(function(bp.asarray(x))) == pytest.approx(derivative(3, x), rel=1e-8)


def test_vmap_inside_grad_inside_vmap():
    x, w = bp.asarray(RNG.normal(size=(3, 4))), bp.asarray(RNG.normal(size=(5, 4)))

    def loss(w, row):
        return bp.vmap(lambda weight: bp.tanh(weight * row).sum())(w[None]).sum()

    found = bp.vmap(bp.vmap(bp.grad(loss), (0, None)), (None, 0))(w, x)
    a, b = np.asarray(x)[:, None, :], np.asarray(w)[None]
    assert np.asarray(found) == pytest.approx(b * 0 + a / np.cosh(a * b) ** 2)


def test_gradients_through_an_inner_gradient_step():
    """One step of gradient descent inside, as in MAML (Finn, Abbeel, Levine, 2017): its derivative in closed form."""
    rate = 0.1
    targets = bp.asarray([1.0, 2.0, -1.0], dtype=bp.float64)

    def task_loss(w, target):
        return (w - target) * (w - target)

    def adapted(w, target):
        return task_loss(w - rate * bp.grad(task_loss)(w, target), target)

    found = bp.vmap(bp.grad(adapted), (None, 0))(bp.asarray(0.5, dtype=bp.float64), targets)
    assert np.asarray(found) == pytest.approx(2 * (1 - 2 * rate) ** 2 * (0.5 - np.asarray(targets)))


def test_tapes_record_through_all_of_them():
    x = bp.asarray([0.5, 1.0], dtype=bp.float64).requires_grad_()
    bp.vmap(bp.grad(forward(f)))(x).sum().backward()
    assert np.asarray(x.grad) == pytest.approx(derivative(3, np.array([0.5, 1.0])), rel=1e-9)
