"""minimize by L-BFGS-B: minima within bounds satisfy the conditions of a minimum, and no point outside of the bounds is tried."""

import numpy as np
import pytest

import backplane as bp


def rosenbrock(x):
    return (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()


@pytest.mark.parametrize("seed", range(6))
def test_a_minimum_has_a_projected_gradient_of_zero(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 8))
    low = rng.uniform(-2, 0.5, n)
    high, tried = low + rng.uniform(0.1, 2, n), []

    def function(x):
        tried.append(bp.stop_gradient(x).numpy())
        return rosenbrock(x)

    with bp.default_dtype(bp.float64):
        found = bp.minimize(function, bp.asarray(rng.normal(size=n) * 2), bounds=list(zip(low, high)), options={"ftol": 0.0, "gtol": 1e-7})
    x, g = found.x.numpy(), found.jac.numpy()
    assert found.success and found.nfev == len(tried) and all((low <= point).all() and (point <= high).all() for point in tried)
    assert np.abs(np.clip(x - g, low, high) - x).max() <= 1e-7


def test_quadratic_minima_are_exact():
    """Of a convex quadratic function on x >= 0: the gradient is 0 where x > 0, and at least 0 elsewhere."""
    rng = np.random.default_rng(1)
    a = rng.normal(size=(20, 20))
    a, b = a @ a.T + np.eye(20), rng.normal(size=20) * 5
    with bp.default_dtype(bp.float64):
        found = bp.minimize(lambda x: 0.5 * x @ bp.asarray(a) @ x - bp.asarray(b) @ x, bp.zeros(20), bounds=[(0, None)] * 20, tol=1e-8, options={"ftol": 0.0})
    x = found.x.numpy()
    g = a @ x - b
    assert found.success and (x >= 0).all() and np.abs(g[x > 0]).max() < 1e-6 and g[x == 0].min() > -1e-6 and 0 < (x == 0).sum() < 20


def test_without_bounds_and_of_containers():
    found = bp.minimize(rosenbrock, bp.zeros(4, dtype=bp.float64), method="l-bfgs-b", options={"ftol": 0.0})
    assert found.success and bp.allclose(found.x, 1.0, atol=1e-4)
    both = bp.minimize(lambda p: (p["a"] - 1) ** 2 + (p["b"] - 3.0) ** 2, {"a": 0.0, "b": bp.zeros(())}, bounds=[(None, None), (None, 2)])
    assert abs(both.x["a"].item() - 1) < 1e-3 and both.x["b"].item() == 2
    assert bp.minimize(lambda x: ((x - 2) ** 2).sum(), [0, 0], bounds=[(None, 1), (0, None)]).x.tolist() == [1, 2]

    class Bounds:
        lb, ub = -1.0, [1.0, 3.0]

    assert bp.minimize(lambda x: ((x - 2) ** 2).sum(), bp.zeros(2), bounds=Bounds()).x.tolist() == [1, 2]
    assert not bp.minimize(rosenbrock, bp.zeros(4), bounds=[(0, None)] * 4, options={"maxiter": 2}).success


@pytest.mark.parametrize(("arguments", "match"), [
    ({"bounds": [(0, 1)]}, "found 1 entries, expected 2 pairs"), ({"bounds": [(1, 0), (0, 1)]}, "lower bound above the upper one"),
    ({"bounds": [(0, 1)] * 2, "method": "BFGS"}, "found bounds with the method 'BFGS'"), ({"method": "L-BFGS-B", "options": {"eps": 1}}, "found 'eps'"),
])  # fmt: skip
def test_what_is_refused(arguments, match):
    with pytest.raises(bp.ArgumentValueError, match=match):
        bp.minimize(rosenbrock, bp.zeros(2), **arguments)
