"""odeint, minimize, least_squares and cg against known solutions, with the gradients of these."""

import math

import pytest

import backplane as bp


@pytest.fixture(autouse=True)
def float64():
    with bp.default_dtype(bp.float64):
        yield


@pytest.mark.parametrize("options", [{}, {"method": "rk4", "steps": 40}])
def test_odeint(options):
    t = bp.linspace(0.0, 2.0, 5)
    decay = lambda y, t, k: -k * y  # noqa: E731
    assert bp.allclose(bp.odeint(decay, bp.asarray(1.0), t, 1.5, **options), bp.exp(-1.5 * t), rtol=1e-5)
    swing = bp.odeint(lambda y, t: {"x": y["v"], "v": -y["x"]}, {"x": 1.0, "v": 0.0}, t, **options)
    assert bp.allclose(swing["x"], bp.cos(t), atol=1e-5) and bp.allclose(swing["v"], -bp.sin(t), atol=1e-5)
    back = bp.odeint(decay, bp.asarray(1.0), bp.flip(t), 1.5, **options)
    assert bp.allclose(back, bp.exp(1.5 * (2 - bp.flip(t))), rtol=1e-5)
    k = bp.asarray(1.5)
    end = lambda k: bp.odeint(lambda y, t: -k * y, bp.asarray(1.0), t, **options)[-1]  # noqa: E731
    assert math.isclose(bp.grad(end)(k).item(), -2 * math.exp(-3), rel_tol=1e-4)
    assert math.isclose(bp.compile(end)(k).item(), math.exp(-3), rel_tol=1e-5)
    assert bp.allclose(bp.vmap(end)(bp.asarray([1.0, 2.0])), bp.exp(bp.asarray([-2.0, -4.0])), rtol=1e-5)


def test_odeint_refuses():
    f = lambda y, t: -y  # noqa: E731
    with pytest.raises(bp.ArgumentValueError, match="times that grow"):
        bp.odeint(f, bp.asarray(1.0), [0.0, 1.0, 0.5])
    with pytest.raises(bp.ArgumentValueError, match="argument method"):
        bp.odeint(f, bp.asarray(1.0), [0.0, 1.0], method="euler")
    with pytest.raises(ArithmeticError, match="within 3 steps"):
        bp.odeint(f, bp.asarray(1.0), [0.0, 100.0], mxstep=3)
    with pytest.raises(bp.ShapeError, match="returned 2 elements, expected 1"):
        bp.odeint(lambda y, t: bp.ones(2), bp.asarray(1.0), [0.0, 1.0])
    with pytest.raises(bp.MissingRuleError, match="no reverse mode"):
        bp.compile(bp.grad(lambda y: bp.odeint(f, y, bp.asarray([0.0, 1.0]))[-1]))(bp.asarray(1.0))


def rosenbrock(x):
    return ((1 - x[:-1]) ** 2 + 100 * (x[1:] - x[:-1] ** 2) ** 2).sum()


def test_minimize():
    found = bp.minimize(rosenbrock, bp.zeros(4))
    assert found.success and bp.allclose(found.x, bp.ones(4), atol=1e-5) and found.fun.item() < 1e-9 and found["nit"] == found.nit
    both = bp.minimize(lambda p, b: (p["a"] - 1) ** 2 + (p["b"] - b) ** 2, {"a": 0.0, "b": bp.zeros(())}, args=(3.0,))
    assert abs(both.x["a"].item() - 1) < 1e-5 and abs(both.x["b"].item() - 3) < 1e-5
    assert not bp.minimize(rosenbrock, bp.zeros(4), options={"maxiter": 2}).success
    with pytest.raises(bp.ArgumentValueError, match="expected 'BFGS' or 'L-BFGS-B'"):
        bp.minimize(rosenbrock, bp.zeros(2), method="Powell")


def test_least_squares():
    t = bp.linspace(0, 1, 20)
    y = 2.5 * bp.exp(-1.3 * t)
    found = bp.least_squares(lambda p: p[0] * bp.exp(-p[1] * t) - y, [1.0, 0.0])
    assert found.success and found.cost.item() < 1e-12
    assert bp.allclose(bp.stack(found.x), bp.asarray([2.5, 1.3]), atol=1e-5)
    straight = bp.least_squares(lambda p, y: p["slope"] * t + p["at"] - y, {"slope": 0.0, "at": 0.0}, args=(3 * t + 1,))
    assert abs(straight.x["slope"].item() - 3) < 1e-6 and straight.jac.shape == (20, 2)


def test_cg():
    a, b = bp.asarray([[4.0, 1.0], [1.0, 3.0]]), bp.asarray([1.0, 2.0])
    x, count = bp.cg(a, b, tol=1e-12)
    assert bp.allclose(x, bp.linalg.solve(a, b)) and count.item() == 2
    solve, solved = (lambda a, b: bp.cg(a, b, tol=1e-12)[0]), bp.linalg.solve
    loss = lambda f: lambda a, b: (f(a, b) ** 2).sum()  # noqa: E731
    for one, other in zip(bp.grad(loss(solve), (0, 1))(a, b), bp.grad(loss(solved), (0, 1))(a, b)):
        assert bp.allclose(one, other)
    assert bp.allclose(bp.compile(bp.grad(loss(solve)))(a, b), bp.grad(loss(solved))(a, b))
    assert bp.allclose(bp.jvp(lambda b: solve(a, b), (b,), (b,))[1], x)
    assert bp.allclose(bp.vmap(lambda b: solve(a, b))(bp.stack([b, 2 * b]))[1], 2 * x)
    tree, _ = bp.cg(lambda v: {"u": 2 * v["u"]}, {"u": b}, tol=1e-12)
    assert bp.allclose(tree["u"], b / 2)
    assert bp.cg(a, b, maxiter=1, tol=1e-12)[1].item() == -1
    with pytest.raises(bp.ShapeError):
        bp.cg(lambda v: v[:1], b)


def test_derivatives_of_cg_over_batches_and_of_second_order():
    a = bp.asarray([[4.0, 1.0, 0.5], [1.0, 3.0, 0.25], [0.5, 0.25, 2.0]])
    b = bp.asarray([[1.0, -2.0, 0.5], [0.3, 0.2, 1.0]])

    def through(solve):
        return lambda a, b: bp.sin(solve(a, b)).sum()

    f, expected = through(lambda a, b: bp.cg(a, b, tol=1e-13)[0]), through(bp.linalg.solve)
    rows = bp.stack([bp.grad(expected, 1)(a, row) for row in b])
    assert bp.allclose(bp.grad(lambda b: bp.vmap(f, in_axes=(None, 0))(a, b).sum())(b), rows, rtol=1e-8)
    assert bp.allclose(bp.vmap(bp.grad(f, 1), in_axes=(None, 0))(a, b), rows, rtol=1e-8)
    whole = bp.grad(lambda a: sum(expected(a, row) for row in b))(a)
    assert bp.allclose(bp.grad(lambda a: bp.vmap(f, in_axes=(None, 0))(a, b).sum())(a), whole, rtol=1e-8)
    assert bp.allclose(bp.hessian(lambda b: f(a, b))(b[0]), bp.hessian(lambda b: expected(a, b))(b[0]), rtol=1e-8)


THROUGH_CG = {
    "grad": lambda f, a, b: bp.grad(lambda a: f(a, b[0]))(a),
    "jvp": lambda f, a, b: bp.jvp(lambda a: f(a, b[0]), (a,), (a * 0.5,))[1],
    "jvp of grad": lambda f, a, b: bp.jvp(bp.grad(lambda a: f(a, b[0])), (a,), (a * 0.5,))[1],
    "grad of jvp": lambda f, a, b: bp.grad(lambda a: bp.jvp(lambda a: f(a, b[0]), (a,), (a * 0.5,))[1])(a),
    "map": lambda f, a, b: bp.grad(lambda a: bp.map(lambda row: f(a, row), b).sum())(a),
    "scan": lambda f, a, b: bp.grad(lambda a: bp.scan(lambda k, row: (k + f(a, row), k), bp.asarray(0.0, dtype=bp.float64), b)[0])(a),
    "cond": lambda f, a, b: bp.grad(lambda a: bp.cond(a.sum() > 0, lambda: f(a, b[0]), lambda: f(a, b[1])))(a),
    "fori_loop": lambda f, a, b: bp.grad(lambda a: bp.fori_loop(0, 2, lambda i, k: k + f(a, b[i]), bp.asarray(0.0, dtype=bp.float64)))(a),
    "jvp of map": lambda f, a, b: bp.jvp(lambda a: bp.map(lambda row: f(a, row), b), (a,), (a,))[1],
    "compile": lambda f, a, b: bp.compile(bp.grad(lambda a: f(a, b[0])))(a),
    "vmap": lambda f, a, b: bp.grad(lambda a: bp.vmap(lambda row: f(a, row))(b).sum())(a),
    "checkpoint": lambda f, a, b: bp.grad(lambda a: bp.checkpoint(f)(a, b[0]))(a),
}


@pytest.mark.parametrize("preconditioned", [False, True])
@pytest.mark.parametrize("matrix", [True, False], ids=["matrix", "function"])
@pytest.mark.parametrize("through", THROUGH_CG)
def test_derivatives_of_cg_by_the_matrix(through, matrix, preconditioned):
    a = bp.asarray([[4.0, 1.0, 0.5], [1.0, 3.0, 0.25], [0.5, 0.25, 2.0]], dtype=bp.float64)
    b = bp.asarray([[1.0, -2.0, 0.5], [0.3, 0.2, 1.0]], dtype=bp.float64)

    def solve(a, b):
        inverse = (lambda v: v / bp.diagonal(a)) if preconditioned else None
        return bp.sin(bp.cg(a if matrix else lambda v: a @ v, b, tol=1e-13, M=inverse)[0]).sum()

    found, expected = (THROUGH_CG[through](f, a, b) for f in (solve, lambda a, b: bp.sin(bp.linalg.solve(a, b)).sum()))
    assert bp.allclose(found, expected, rtol=1e-8)
