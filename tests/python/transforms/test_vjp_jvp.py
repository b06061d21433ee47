"""vjp and jvp: adjoint to each other, over containers; pullbacks live on; Jacobians both ways."""

import math

import backplane as bp
import numpy as np
import pytest

RNG = np.random.default_rng(4)


def drawn(*shape):
    return bp.asarray(RNG.normal(size=shape))


def inner(a, b):
    return sum(float((x * y).sum()) for x, y in zip(bp.tree.leaves(a), bp.tree.leaves(b)))


def f(p, q):
    return {"s": bp.sin(p["x"]) @ q, "t": [p["x"].sum() * q[0, 0]]}


def test_forward_and_reverse_are_adjoint():
    p, q = {"x": drawn(2, 3)}, drawn(3, 4)
    dp, dq = {"x": drawn(2, 3)}, drawn(3, 4)
    value, pullback = bp.vjp(f, p, q)
    same, tangent = bp.jvp(f, (p, q), (dp, dq))
    assert bp.tree.structure(value) == bp.tree.structure(tangent) == bp.tree.structure(same)
    cotangent = bp.tree.map(lambda leaf: drawn(*leaf.shape), value)
    assert inner(cotangent, tangent) == pytest.approx(inner(pullback(cotangent), (dp, dq)), rel=1e-10)


def test_a_pullback_is_called_again_and_later():
    x = drawn(3)
    value, pullback = bp.vjp(lambda x: x * x, x)
    again = [pullback(value)[0].tolist() for _ in range(3)]
    assert again[0] == again[1] == again[2]
    assert pullback(bp.zeros(3, dtype=bp.float64))[0].tolist() == [0, 0, 0]


def test_none_is_a_zero_cotangent():
    x = drawn(2)
    _, pullback = bp.vjp(lambda x: (2 * x, 3 * x), x)
    assert pullback((None, bp.ones(2, dtype=bp.float64)))[0].tolist() == [3, 3]


def test_numbers_are_cotangents_of_results_without_dimensions():
    _, pullback = bp.vjp(lambda x: x * x, 3.0)
    assert pullback(1.0)[0].item() == 6
    assert bp.jvp(lambda x: x * x, (3.0,), (1,))[1].item() == 6


def test_integer_results_have_no_derivative():
    x = drawn(3)
    value, pullback = bp.vjp(lambda x: (x, bp.argmax(x)), x)
    assert pullback((bp.ones(3, dtype=bp.float64), None))[0].tolist() == [1, 1, 1]
    (_, index), (_, tangent) = bp.jvp(lambda x: (x, bp.argmax(x)), (x,), (x,))
    assert index.item() == value[1].item() and tangent.item() == 0


def test_aux_comes_beside():
    x = drawn(2)
    value, pullback, aux = bp.vjp(lambda x: (x * 2, {"twice": x * 2, "name": "n"}), x, has_aux=True)
    assert aux["twice"].tolist() == value.tolist() and aux["name"] == "n"
    value, tangent, aux = bp.jvp(lambda x: (x * 2, {"twice": x * 2, "name": "n"}), (x,), (x,), has_aux=True)
    assert aux["twice"].tolist() == value.tolist() == tangent.tolist() and aux["name"] == "n"


def test_perturbations_are_not_confused():
    def d(function):
        return lambda x: bp.jvp(function, (x,), (1.0,))[1]

    assert d(lambda x: x * d(lambda y: x + y)(2.0))(1.0).item() == 1
    assert d(lambda x: x * d(lambda y: x * y)(2.0))(3.0).item() == 6
    assert d(lambda x: x * bp.grad(lambda y: x * y)(2.0))(3.0).item() == 6
    assert bp.grad(lambda x: x * d(lambda y: x * y)(2.0))(3.0).item() == 6


def test_pullbacks_are_differentiated_and_mapped():
    def g(x):
        value, pullback = bp.vjp(bp.sin, x)
        return pullback(value)[0]  # sin x cos x

    assert bp.grad(g)(0.3).item() == pytest.approx(math.cos(0.6), rel=1e-6)
    x = drawn(4)
    assert np.asarray(bp.vmap(g)(x)) == pytest.approx(np.sin(np.asarray(x)) * np.cos(np.asarray(x)))
    value, pullback = bp.vjp(bp.sin, x)
    rows = bp.vmap(pullback)(bp.eye(4, dtype=bp.float64))[0]
    assert np.asarray(rows) == pytest.approx(np.diag(np.cos(np.asarray(x))))


# ---- Jacobians ------------------------------------------------------------------------------------------------------

JACOBIANS = [bp.jacrev, bp.jacfwd]


@pytest.mark.parametrize("jacobian", JACOBIANS)
def test_jacobian_of_a_closed_form(jacobian):
    a = drawn(3, 4)
    x = drawn(4)
    assert np.asarray(jacobian(lambda x: a @ x)(x)) == pytest.approx(np.asarray(a))
    found = jacobian(lambda x: bp.sin(x) * x)(x)
    at = np.asarray(x)
    assert np.asarray(found) == pytest.approx(np.diag(np.cos(at) * at + np.sin(at)))
    assert jacobian(lambda x: x.sum())(drawn(2, 3)).shape == (2, 3)
    assert jacobian(lambda x: x[None] * bp.ones((5, 1, 1), dtype=bp.float64))(drawn(2, 3)).shape == (5, 2, 3, 2, 3)


def test_both_jacobians_agree_over_containers():
    p, q = {"x": drawn(2, 3)}, drawn(3, 4)
    for argnums in (0, 1, (0, 1), (-1,)):
        reverse, forward = (jacobian(f, argnums)(p, q) for jacobian in JACOBIANS)
        assert bp.tree.structure(reverse) == bp.tree.structure(forward)
        for a, b in zip(bp.tree.leaves(reverse), bp.tree.leaves(forward)):
            assert a.shape == b.shape and np.asarray(a) == pytest.approx(np.asarray(b))
    assert reverse["s"][0].shape == (2, 4, 3, 4) and reverse["t"][0][0].shape == (3, 4)


@pytest.mark.parametrize("jacobian", JACOBIANS)
def test_jacobian_aux(jacobian):
    x = drawn(3)
    found, aux = jacobian(lambda x: (x * x, {"x": x + bp.ones(3, dtype=bp.float64), "n": "text"}), has_aux=True)(x)
    assert found.shape == (3, 3) and aux["n"] == "text"
    assert np.asarray(aux["x"]) == pytest.approx(np.asarray(x) + 1)


@pytest.mark.parametrize("jacobian", JACOBIANS)
def test_holomorphic_jacobians(jacobian):
    z = bp.asarray([1 + 2j, 3 - 1j])
    found = jacobian(lambda z: z * z, holomorphic=True)(z)
    assert np.asarray(found) == pytest.approx(np.diag(2 * np.asarray(z)))


@pytest.mark.parametrize("jacobian", JACOBIANS)
def test_jacobians_of_empty_tensors_are_empty(jacobian):
    assert jacobian(lambda x: x * 2)(bp.zeros((0, 2))).shape == (0, 2, 0, 2)
    assert jacobian(lambda p: {"a": bp.ones(2)})({}) == {"a": {}}


@pytest.mark.parametrize("outer", JACOBIANS)
@pytest.mark.parametrize("inner_one", JACOBIANS)
def test_hessians_in_every_order(outer, inner_one):
    a = drawn(3, 3)
    x = drawn(3)
    found = np.asarray(outer(inner_one(lambda x: x @ a @ x + (x * x * x).sum()))(x))
    assert found == pytest.approx(np.asarray(a) + np.asarray(a).T + np.diag(6 * np.asarray(x)))


def test_hessian_of_containers():
    p = {"a": drawn(2), "b": drawn(3)}
    found = bp.hessian(lambda p: p["a"].sum() * (p["b"] * p["b"]).sum())(p)
    assert found["a"]["b"].shape == (2, 3) and found["b"]["a"].shape == (3, 2)
    assert np.asarray(found["a"]["a"]) == pytest.approx(np.zeros((2, 2)))
    assert np.asarray(found["b"]["b"]) == pytest.approx(2 * float(p["a"].sum()) * np.eye(3))
    matrix, aux = bp.hessian(lambda x: ((x * x).sum(), x + 1), has_aux=True)(drawn(2))
    assert matrix.shape == (2, 2)


def test_jacobians_look_like_the_function():
    def named(x):
        """Its documentation."""
        return x

    for made in (bp.jacrev(named), bp.jacfwd(named), bp.hessian(named)):
        assert made.__name__ == "named" and made.__doc__ == "Its documentation."
